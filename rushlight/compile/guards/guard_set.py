"""Snapshots of the Python values and tensors that a function can reach. A program's guards compare them before each
run.

A trace contains no Python state: without guards a program would continue with an old learning rate, or with a layer
that has been replaced. So everything reachable from the function (closure, the globals that it names, modules,
optimizers, lists...) is recorded item by item. Plain values are compared by equality, objects by identity, and the walk
continues inside objects. For objects of the user's classes, only the attributes that the code names are recorded: a
step does not depend on a trainer's counters that it never reads.
"""

from __future__ import annotations

import pickle
import random
import sys
from array import array
from collections import OrderedDict, deque
from collections.abc import Callable, Container, Iterable, Iterator, Set
from contextvars import ContextVar
from dis import get_instructions
from functools import cached_property, lru_cache, partial
from io import IOBase
from operator import attrgetter, methodcaller
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, MethodWrapperType, ModuleType
from typing import Any
from weakref import ref

import numpy as np

from rushlight.compile.guards.guard_predicates import (
    ARRAY,
    EMPTY,
    ITEMS,
    LAST_KEY,
    PLAIN,
    SIZE,
    UNFILLED,
    Asked,
    Fact,
    Slots,
    alike,
    changed,
    equal,
    fact_of,
    one,
    plain,
    stands_for,
)
from rushlight.core.table import Op
from rushlight.core.tensor import Tensor
from rushlight.nn.hooks import EVERYWHERE
from rushlight.nn.module import Module

# "torch" is the module name of rushlight's classes under compat
LIBRARIES = {"rushlight", "numpy", "scipy", "llvmlite", "builtins", *sys.stdlib_module_names, "torch"}
MAX_ARRAY_BYTES = 4096  # NumPy arrays up to this size are compared before each run
# reading from these changes their state
STATEFUL = (np.random.Generator, np.random.RandomState, random.Random, IOBase)
# kinds whose changes cannot be detected
UNGUARDED = (np.ndarray, *STATEFUL, bytearray, memoryview, array, Iterator)
MAX_ITEMS = 50_000  # a function that reaches more items is not compiled
# Names that let code read attributes without naming them.
ANY_NAME = {
    "getattr", "setattr", "hasattr", "vars", "dir", "__dict__", "attrgetter", "asdict", "astuple", "fields", "copy",
    "deepcopy", "replace", "pickle", "eval", "exec",
}  # fmt: skip
LEADS: dict[type, Callable[[Any], tuple]] = {  # callable type -> the objects that it holds
    MethodType: lambda m: (m.__func__, m.__self__),
    partial: lambda p: (p.func, p.args, p.keywords),
    BuiltinFunctionType: lambda f: () if isinstance(f.__self__, ModuleType) else (f.__self__,),  # the `get` of a dict
    MethodWrapperType: lambda m: (m.__self__,),
    property: lambda p: (p.fget,),
    cached_property: lambda p: (p.func,),
    staticmethod: lambda m: (m.__func__,),
    classmethod: lambda m: (m.__func__,),
}
# attributes and methods of modules that the library reads
OF_MODULES = frozenset([*vars(Module()), *dir(Module)])
OPTIMIZER = "rushlight.optim.optimizer", "Optimizer"
# code that reads an optimizer's state contains one of these names
STEPPING = frozenset(["state", "step", "state_dict", "load_state_dict"])
# Methods that a training step usually does not call.
MADE = {
    "__init__", "__new__", "__post_init__", "__init_subclass__", "__repr__", "__str__", "__eq__", "__hash__", "__del__",
    "__reduce__", "__getstate__", "__setstate__", "__copy__", "__deepcopy__",
}  # fmt: skip


class Snapshot:
    """The state that a function can reach, at one moment.

    `items`: (container, key, value): container[key] was value. `facts`: the other guarded facts about a container
    (compile/guards/guard_predicates.py). `tensors`: id -> tensor, for each tensor found.
    """

    def __init__(self, function: Any, extra: Iterable = ()):
        self.items: list[tuple[Any, Any, Any]] = []
        self.facts: list[Fact] = []
        self.tensors: dict[int, Tensor] = {}
        # (tensor, whether it has no node, no gradient, no hooks)
        self.flags: list[tuple[Tensor, bool, bool, bool]] = []
        # (generator of random numbers or file, its state or position)
        self.states: list[tuple[Any, Any]] = []
        self.names: set[str] = set()  # the names in the functions' code
        self.modules: list[dict[str, Any]] = []  # the namespaces of the user's modules
        # attribute name that no code has named yet -> items
        self.unnamed: dict[str, list[tuple]] = {}
        self.seen: set[int] = set()  # ids of visited objects
        self.kept: list[Any] = []  # the visited objects: keeps their ids valid
        # (id of container, key) of tensors that a run replaces
        self.placed: set[tuple[int, Any]] = set()
        piece = getattr(function, "__dict__", {}).get("piece")
        # code that the piece must not call: compile/capture/trace.py checks
        self.apart = frozenset() if piece is None else piece.apart
        # whether the code may catch an error
        self.catches = any([catches(code) for code in self.apart])
        self.unguarded = ""  # a reachable type whose changes cannot be detected
        todo: list[Any] = [function, *extra]
        while todo and len(self.items) < MAX_ITEMS:
            self.visit(todo.pop(), todo)
        self.complete = not todo

    def visit(self, thing: Any, todo: list) -> None:
        if isinstance(thing, PLAIN) or id(thing) in self.seen or type(thing) is tuple and plain(thing):
            return
        self.seen.add(id(thing))
        self.kept.append(thing)
        if isinstance(thing, Tensor):
            self.visit_tensor(thing, todo)
        elif isinstance(thing, dict):
            self.note(thing, thing.items(), todo)
            ordered = len(thing) > 1 and type(thing).__reversed__ is not None
            # except for an optimizer's state, whose order does not matter
            if ordered and not all([isinstance(v, (Tensor, dict)) for v in thing.values()]):
                self.facts.append(fact_of(LAST_KEY, thing))
        elif isinstance(thing, (list, tuple, deque)):
            self.note(thing, enumerate(thing), todo)
        else:
            self.visit_object(thing, todo)
        # a user's subclass, with methods
        if isinstance(thing, (dict, list, tuple)) and owned(type(thing)):
            todo += type(thing), getattr(thing, "__dict__", None)

    def visit_tensor(self, thing: Tensor, todo: list) -> None:
        hooks = None if thing._node is None else thing._node.hooks
        self.tensors[id(thing)] = thing
        self.flags.append((thing, thing._node is None, thing._grad is None, hooks is None))
        self.note_named(vars(thing), [*vars(thing).items()], todo)
        if hooks is not None:
            todo += hooks.tensor, hooks.before, hooks.after, hooks.done

    def visit_object(self, thing: Any, todo: list) -> None:
        leads = next((LEADS[c] for c in type(thing).__mro__ if c in LEADS), None)
        if leads is not None:
            todo += leads(thing)
        elif type(thing).__module__ == "rushlight.compile.run.compiled_function":
            todo.append(thing.function)
        elif isinstance(thing, np.ndarray) and thing.nbytes <= MAX_ARRAY_BYTES:
            self.facts.append(fact_of(ARRAY, thing))
        elif isinstance(thing, (set, frozenset)):
            self.facts.append(fact_of(ITEMS, thing))
        elif isinstance(thing, STATEFUL):
            self.record_state(thing)
        elif isinstance(thing, UNGUARDED):
            self.unguarded = type(thing).__name__
        elif isinstance(thing, (ref, ContextVar)):
            asked = Asked(thing)
            self.item(asked, 0, asked[0], todo)
        elif isinstance(thing, ModuleType):
            self.visit_module(thing, todo)
        elif isinstance(thing, (attrgetter, methodcaller)):
            paths = [a for a in thing.__reduce__()[1] if isinstance(a, str)]
            self.mention({name for path in paths for name in path.split(".")}, todo)
        elif isinstance(thing, FunctionType):
            # a library function may also be a piece: it wraps a user's function
            if (owned(thing) or "piece" in thing.__dict__) and thing.__code__ not in self.apart:
                self.visit_function(thing, todo)
        elif isinstance(thing, type):
            self.visit_class(thing, todo)
        else:
            self.visit_instance(thing, todo)

    def visit_class(self, cls: type, todo: list) -> None:
        """Record the attributes and methods of a user's class and of its bases."""
        note = self.note_named if transparent(cls) else self.note
        if library := optimizer_of(cls):
            note = partial(self.note_named, read=frozenset(dir(library)) - STEPPING)
        for base in cls.__mro__:
            if owned(base):
                note(vars(base), [item for item in vars(base).items() if is_read(*item)], todo)

    def visit_instance(self, thing: Any, todo: list) -> None:
        """Record the class and the attributes of any other object."""
        kind = type(thing)
        todo.append(kind)
        if isinstance(thing, Module):
            todo.append(EVERYWHERE)  # the global hooks on all modules
        state = getattr(thing, "__dict__", None)
        if state is not None:
            note = self.note_named if transparent(kind) else self.note
            if optimizer_of(kind):
                note = partial(self.note_named, read=state.keys() - STEPPING)
            own = owned(kind)  # unguarded data inside a library's object does not forbid a program
            items = [(k, v) for k, v in state.items() if own or not isinstance(v, UNGUARDED)]
            note(state, items, todo)
        if owned(kind) and ((slots := Slots(thing)).names or slots.empty):
            self.note_named(slots, [(name, slots[name]) for name in slots.names], todo)

    def visit_module(self, module: ModuleType, todo: list) -> None:
        """Record the attributes of a user's module that the functions name, and the state of `random` and
        `numpy.random`.

        The generators are recorded only if the code names their module: loader threads may draw during a traced run."""
        library = module.__name__.partition(".")[0]
        if library == "random":
            self.record_state(random._inst)
        elif library == "numpy":
            self.record_state(np.random.mtrand._rand)
        elif library not in LIBRARIES:
            self.modules.append(vars(module))
            for name in sorted(self.names & vars(module).keys()):
                self.item(vars(module), name, vars(module)[name], todo)

    def record_state(self, thing: Any) -> None:
        """Record the state of a generator of random numbers, or the position of a file; if that fails, it is
        unguarded."""
        try:
            self.states.append((thing, thing.tell() if isinstance(thing, IOBase) else pickle.dumps(thing)))
        except Exception:
            self.unguarded = type(thing).__name__

    def visit_function(self, function: FunctionType, todo: list) -> None:
        code = Slots(function, ("__code__", "__defaults__"))
        for name in code.names:  # IPython's %autoreload replaces the code of functions
            self.items.append((code, name, code[name]))
        for cell in function.__closure__ or ():
            try:
                self.item(cell, None, cell.cell_contents, todo)
            except ValueError:  # an empty closure cell
                continue
        self.catches = self.catches or catches(function.__code__)
        names = set(names_in(function.__code__))
        self.mention(names, todo)
        read = globals_in(function.__code__)
        for name in sorted(names & function.__globals__.keys()):
            value = function.__globals__[name]
            if name in read or isinstance(value, ModuleType):
                self.item(function.__globals__, name, value, todo)
        todo += [sys.modules[name] for name in imported_in(function.__code__) if name in sys.modules]
        todo += [function.__defaults__, function.__kwdefaults__]

    def mention(self, names: set[str], todo: list) -> None:
        """Record the attributes with these names, including the attributes of objects visited before."""
        new, self.names = names - self.names, names | self.names
        for name in sorted(self.unnamed if new & ANY_NAME else new & self.unnamed.keys()):
            for container, key, value in self.unnamed.pop(name):
                self.item(container, key, value, todo)
        for known in self.modules:
            for name in sorted(new & known.keys()):
                self.item(known, name, known[name], todo)

    def note(self, container: Any, items: Any, todo: list) -> None:
        if not isinstance(container, Slots):
            self.facts.append(fact_of(EMPTY if type(container) in (dict, list) and not container else SIZE, container))
        elif container.empty:
            self.facts.append(fact_of(UNFILLED, container))
        for key, value in list(items):
            self.item(container, key, value, todo)
            if isinstance(key, Tensor):  # the keys of an optimizer's state are parameters
                todo.append(key)

    def note_named(self, container: Any, items: list, todo: list, read: Set = OF_MODULES) -> None:
        """Record the items that code may read: items that the user's code names, and items in `read`, which the library
        reads."""
        anything, counting = bool(self.names & ANY_NAME), []
        for key, value in items:
            # code that names any of STEPPING may read the optimizer's state
            names = STEPPING if key in STEPPING and read is not OF_MODULES else {key}
            if anything or key in read or key.startswith("__") or self.names & names:
                counting.append((key, value))
            else:
                for name in names:
                    self.unnamed.setdefault(name, []).append((container, key, value))
        self.note(container, counting, todo)

    def item(self, container: Any, key: Any, value: Any, todo: list) -> None:
        self.items.append((container, key, value))
        todo.append(value)

    def difference(self, other: Snapshot, free: frozenset = frozenset()) -> str:
        """The first item that differs, in words; "" if none does. `free`: (id of container, key) of items that may
        differ."""
        for fact, now in zip(self.facts, other.facts):
            if found := changed(fact, now):
                return found
        for (c, key, old), (d, key2, new) in zip(self.items, other.items):
            if not (one(c, d) and (key is key2 or equal(key, key2))):
                return "there are other objects than before"
            if (
                not equal(old, new)
                and (id(c), key) not in free
                and not ((id(c), key) in self.placed and stands_for(new, old))
                and not (type(old) is type(new) is tuple and alike(old, new, (id(c), key), free))
            ):
                return f"{described(key)} was {short(old)} and now is {short(new)}"
        return "" if len(self.items) == len(other.items) else "there are other objects than before"

    def replaced(self, other: Snapshot, read: Container[int]) -> list[tuple[Any, Any, Tensor]]:
        """(container, key, new tensor) for each tensor that was replaced without being read. `read`: ids of the arrays
        that were read."""
        return [
            (c, key, new)
            for (c, key, old), (d, key2, new) in zip(self.items, other.items)
            if c is d
            and key is key2
            and old is not new
            and type(c) in (dict, list, OrderedDict)
            and stands_for(new, old)
            and id(new) not in self.tensors
            and id(old._array) not in read
        ]

    def state_difference(self, other: Snapshot) -> str:
        """The first generator or file whose state differs between two snapshots, in words; "" if there is none."""
        pairs = zip(self.states, other.states)
        return next((f"a {type(e).__name__} has advanced" for (e, was), (f, now) in pairs if e is f and was != now), "")


def is_read(name: str, value: Any) -> bool:
    """Whether a training step may read the class attribute: among names with two underscores, only the methods that a
    step calls.
    """
    return not name.startswith("__") or (isinstance(value, FunctionType) and name not in MADE)


def owned(thing: FunctionType | type) -> bool:
    """Whether a function or class is the user's, not a library's. An op of the user's file (`rushlight.op`) never
    changes."""
    if isinstance(getattr(thing, "op", None), Op):
        return False
    module = thing.__module__  # may not be a string: Cython's functions have a descriptor
    return module is None or isinstance(module, str) and module.partition(".")[0] not in LIBRARIES


def transparent(kind: type) -> bool:
    """Whether only the user's code and nn.Module read attributes of instances: a user's class or subclass of Module."""
    return owned(kind) and all([owned(base) or base is object or base in Module.__mro__ for base in kind.__mro__])


def optimizer_of(kind: type) -> type | None:
    """The library's optimizer class that `kind` is or inherits from; None if `kind` is not an optimizer."""
    library = next((c for c in kind.__mro__ if not owned(c)), object)
    return library if any([(c.__module__, c.__name__) == OPTIMIZER for c in library.__mro__]) else None


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """The code of a function and of the functions inside it."""
    todo = [code]
    for c in todo:  # the list grows in the loop
        yield c
        todo += [k for k in c.co_consts if isinstance(k, CodeType)]


def names_in(code: CodeType) -> Iterator[str]:
    """The names of globals and attributes, and the strings, in a function and the functions inside it."""
    for c in codes_in(code):
        yield from c.co_names
        yield from strings_in(c)


def strings_in(code: CodeType) -> Iterator[str]:
    for k in code.co_consts:  # getattr(self, "scale"), case Layer(scale=1)
        yield from (t for t in (k if isinstance(k, tuple) else (k,)) if isinstance(t, str))


@lru_cache(maxsize=4096)
def globals_in(code: CodeType) -> frozenset[str]:
    """The names of globals, and the strings, in a function and the functions inside it. Attributes do not count:
    `optimizer.step()` does not read the global loop variable `step`."""
    found: set[str] = set()
    for c in codes_in(code):
        found.update(strings_in(c))
        found.update(i.argval for i in get_instructions(c) if i.opname.endswith(("_GLOBAL", "_NAME")))
    return frozenset(found)


@lru_cache(maxsize=4096)
def imported_in(code: CodeType) -> list[str]:
    """The modules that a function, and the functions inside it, import in their bodies."""
    return [i.argval for c in codes_in(code) for i in get_instructions(c) if i.opname == "IMPORT_NAME"]


@lru_cache(maxsize=4096)
def catches(code: CodeType) -> bool:
    """Whether a function, or one inside it, catches errors by `except`. A `with` statement does not count."""
    for c in codes_in(code):
        names = [i.opname for i in get_instructions(c)]
        if (
            "suppress" in c.co_names
            or "SETUP_FINALLY" in names
            or any([a == "PUSH_EXC_INFO" and b not in (a, "WITH_EXCEPT_START") for a, b in zip(names, names[1:])])
        ):
            return True
    return False


def described(key: Any) -> str:
    return "a variable of the closure" if key is None else f"{key!r}" if isinstance(key, (str, int)) else "an item"


def short(value: Any) -> str:
    text = repr(value) if isinstance(value, PLAIN) else f"a {type(value).__name__}"
    return text if len(text) < 60 else text[:57] + "..."
