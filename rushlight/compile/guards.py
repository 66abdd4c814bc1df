"""What a program was made under, and whether it still holds: the Python values and tensors that a function can reach.

A traced run forgets Python: the program would go on with yesterday's learning rate, or with a layer that has been
replaced. So what is reachable from the function (closure, the globals it names, modules, optimizers, lists...) is noted
item by item, and compared before each run. Values count by equality, objects by identity; their insides are walked too.
Of the user's own objects only what the code names: a trainer's counters are no concern of a step that does not read them.
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
from types import BuiltinFunctionType, CodeType, FunctionType, MappingProxyType, MethodType, MethodWrapperType, ModuleType
from typing import Any
from weakref import WeakValueDictionary, ref

import numpy as np

from rushlight.nn.hooks import EVERYWHERE
from rushlight.nn.module import Module
from rushlight.tensor import Tensor

PLAIN = (type(None), bool, int, float, complex, str, bytes, range, slice, type(Ellipsis))
LIBRARIES = {"rushlight", "numpy", "scipy", "numba", "builtins", *sys.stdlib_module_names}
SMALL = 4096                                      # bytes of an array that are compared at each run
TURNING = (np.random.Generator, np.random.RandomState, random.Random, IOBase)     # who asks them changes them
MOVING = (np.ndarray, *TURNING, bytearray, memoryview, array, Iterator)
MOST = 50_000                                     # items; more is not a training step's state
ANY_NAME = {"getattr", "setattr", "hasattr", "vars", "dir", "__dict__", "attrgetter", "asdict", "astuple", "fields", "copy",
            "deepcopy", "replace", "pickle", "eval", "exec"}     # code with these reads attributes that it does not name
INSIDE = {property: "fget", cached_property: "func", staticmethod: "__func__", classmethod: "__func__"}
OF_MODULES = frozenset([*vars(Module()), *dir(Module)])   # attributes that the library reads, methods that it calls
OPTIMIZER = "rushlight.optim.optimizer", "Optimizer"
STEPPING = frozenset(["state", "step", "state_dict", "load_state_dict"])       # who reads an optimizer's state names one
MADE = {"__init__", "__new__", "__post_init__", "__init_subclass__", "__repr__", "__str__", "__eq__", "__hash__", "__del__",
        "__reduce__", "__getstate__", "__setstate__", "__copy__", "__deepcopy__"}   # not called in a step, as a rule
CHECKS: WeakValueDictionary[str, Callable[[], bool]] = WeakValueDictionary()     # by their text, while programs use them


class Snapshot:
    """Items as (container, key, value): what `container[key]` was. `tensors`: those found on the way."""

    def __init__(self, function: Any, extra: Iterable = ()):
        self.items: list[tuple[Any, Any, Any]] = []
        self.sizes: list[tuple[Any, int]] = []
        self.tensors: dict[int, Tensor] = {}
        self.last: list[tuple[dict, Any]] = []    # dicts, and their last keys: where one is put in anew
        self.flags: list[tuple[Tensor, bool, bool, bool]] = []   # tensor, whether it has no node, no gradient, no hooks
        self.turning: list[tuple[Any, Any]] = []  # generators and files, and where they are
        self.names: set[str] = set()              # that the functions mention
        self.modules: list[dict[str, Any]] = []   # the user's, of which the functions may mention attributes
        self.unnamed: dict[str, list[tuple]] = {}                # attributes that none has mentioned so far
        self.seen: set[int] = set()
        self.kept: list[Any] = []
        self.bytes: list[tuple[np.ndarray, bytes]] = []          # small arrays and their contents
        self.sets: list[tuple[Any, frozenset]] = []
        self.deciding: list[tuple[Tensor, bytes]] = []           # whose numbers decide shapes: masks, and these
        self.placed: set[tuple[int, Any]] = set()                # (id of container, key) of tensors that a run replaces
        piece = getattr(function, "__dict__", {}).get("piece")
        self.apart = frozenset() if piece is None else piece.apart         # code that it does not call: trace.py sees to it
        self.moving = ""                          # a kind of data on the way whose changes cannot be noticed
        todo: list[Any] = [function, *extra]
        while todo and len(self.items) < MOST:
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
            ordered = len(thing) > 1 and type(thing).__reversed__ is not None  # type: ignore[comparison-overlap]
            if ordered and not all([isinstance(v, (Tensor, dict)) for v in thing.values()]):      # not an optimizer's
                self.last.append((thing, next(reversed(thing))))
        elif isinstance(thing, (list, tuple, deque)):
            self.note(thing, enumerate(thing), todo)
        else:
            self.visit_object(thing, todo)
        if isinstance(thing, (dict, list, tuple)) and owned(type(thing)):        # a class with methods of its own
            todo += type(thing), getattr(thing, "__dict__", None)

    def visit_tensor(self, thing: Tensor, todo: list) -> None:
        hooks = None if thing.node is None else thing.node.hooks
        self.tensors[id(thing)] = thing
        self.flags.append((thing, thing.node is None, thing._grad is None, hooks is None))
        self.note_named(vars(thing), [*vars(thing).items()], todo)
        if hooks is not None:
            todo += hooks.tensor, hooks.before, hooks.after, hooks.done

    def visit_object(self, thing: Any, todo: list) -> None:
        if isinstance(thing, MethodType):
            todo += thing.__func__, thing.__self__
        elif isinstance(thing, partial):
            todo += thing.func, thing.args, thing.keywords
        elif type(thing).__module__ == "rushlight.compile.function":
            todo.append(thing.function)
        elif isinstance(thing, np.ndarray) and thing.nbytes <= SMALL:
            self.bytes.append((thing, thing.tobytes()))
        elif isinstance(thing, (set, frozenset)):
            self.sets.append((thing, frozenset(thing)))
        elif isinstance(thing, TURNING):
            self.turn(thing)
        elif isinstance(thing, MOVING):
            self.moving = type(thing).__name__
        elif isinstance(thing, (ref, ContextVar)):
            asked = Asked(thing)
            self.item(asked, 0, asked[0], todo)
        elif isinstance(thing, ModuleType):
            self.visit_module(thing, todo)
        elif isinstance(thing, (BuiltinFunctionType, MethodWrapperType)):
            todo += [] if isinstance(thing.__self__, ModuleType) else [thing.__self__]        # `get` of a dict
        elif isinstance(thing, (attrgetter, methodcaller)):
            self.mention({name for a in thing.__reduce__()[1] if isinstance(a, str) for name in a.split(".")}, todo)
        elif isinstance(thing, (property, cached_property, staticmethod, classmethod)):
            todo.append(getattr(thing, INSIDE[type(thing)]) if type(thing) in INSIDE else None)
        elif isinstance(thing, FunctionType):
            if (owned(thing) or "piece" in thing.__dict__) and thing.__code__ not in self.apart:
                self.visit_function(thing, todo)      # a piece of the library's: what wraps a function of the user's
        elif isinstance(thing, type):
            library = optimizer_of(thing)
            note = partial(self.note_named, read=frozenset(dir(library)) - STEPPING) if library else \
                self.note_named if transparent(thing) else self.note
            for base in thing.__mro__:
                if owned(base):                   # class attributes and methods
                    note(vars(base), [(k, v) for k, v in vars(base).items() if not k.startswith("__") or (
                        isinstance(v, FunctionType) and k not in MADE)], todo)
        else:
            todo.append(type(thing))
            todo += [EVERYWHERE] if isinstance(thing, Module) else []            # hooks of all modules
            state = getattr(thing, "__dict__", None)
            if state is not None:
                own = owned(type(thing))          # what moves inside a library's object is its own business
                note = self.note_named if transparent(type(thing)) else self.note
                if optimizer_of(type(thing)):
                    note = partial(self.note_named, read=state.keys() - STEPPING)
                note(state, [(k, v) for k, v in state.items() if own or not isinstance(v, MOVING)], todo)
            if owned(type(thing)) and (slots := Slots(thing)).names:
                self.note_named(slots, [(name, slots[name]) for name in slots.names], todo)

    def visit_module(self, module: ModuleType, todo: list) -> None:
        """Of a module of the user's, what the functions mention. Of two others the generators, but here alone: threads that
        load data may ask them while a run is watched."""
        library = module.__name__.partition(".")[0]
        if library == "random":
            self.turn(random._inst)  # type: ignore[attr-defined]
        elif library == "numpy":
            self.turn(np.random.mtrand._rand)
        elif library not in LIBRARIES:
            self.modules.append(vars(module))
            for name in sorted(self.names & vars(module).keys()):
                self.item(vars(module), name, vars(module)[name], todo)

    def turn(self, thing: Any) -> None:
        """Note where a generator of random numbers or a file is; if it does not say so, its changes cannot be noticed."""
        try:
            self.turning.append((thing, thing.tell() if isinstance(thing, IOBase) else pickle.dumps(thing)))
        except Exception:
            self.moving = type(thing).__name__

    def visit_function(self, function: FunctionType, todo: list) -> None:
        code = Slots(function, ("__code__", "__defaults__"))
        for name in code.names:                   # which `%autoreload` replaces
            self.items.append((code, name, code[name]))
        for cell in function.__closure__ or ():
            try:
                self.item(cell, None, cell.cell_contents, todo)
            except ValueError:                    # not filled yet
                continue
        names = set(names_in(function.__code__))
        self.mention(names, todo)
        for name in sorted(names & function.__globals__.keys()):
            self.item(function.__globals__, name, function.__globals__[name], todo)
        todo += [sys.modules[name] for name in imported_in(function.__code__) if name in sys.modules]
        todo += [function.__defaults__, function.__kwdefaults__]

    def mention(self, names: set[str], todo: list) -> None:
        """From now on attributes of these names count."""
        new, self.names = names - self.names, names | self.names
        for name in sorted(self.unnamed if new & ANY_NAME else new & self.unnamed.keys()):
            for container, key, value in self.unnamed.pop(name):
                self.item(container, key, value, todo)
        for known in self.modules:
            for name in sorted(new & known.keys()):
                self.item(known, name, known[name], todo)

    def note(self, container: Any, items: Any, todo: list) -> None:
        self.sizes.append((container, len(container)))
        for key, value in list(items):
            self.item(container, key, value, todo)
            if isinstance(key, Tensor):           # an optimizer's state has parameters for keys
                todo.append(key)

    def note_named(self, container: Any, items: list, todo: list, read: Set = OF_MODULES) -> None:
        """The items that code may read: by their names, or in the library those in `read`."""
        anything = bool(self.names & ANY_NAME)
        # by which names code comes to each: to an optimizer's state by any of those that step or load
        ways = [STEPPING if k in STEPPING and read is not OF_MODULES else {k} for k, _ in items]
        named = [anything or k in read or k.startswith("__") or bool(self.names & by) for (k, _), by in zip(items, ways)]
        for (key, value), by, counts in zip(items, ways, named):
            for name in () if counts else by:
                self.unnamed.setdefault(name, []).append((container, key, value))
        self.note(container, [i for i, counts in zip(items, named) if counts], todo)

    def item(self, container: Any, key: Any, value: Any, todo: list) -> None:
        self.items.append((container, key, value))
        todo.append(value)

    def difference(self, other: Snapshot, free: frozenset = frozenset()) -> str:
        """The first item that differs, in words; empty if none does. `free`: (id of container, key) of those that may."""
        if [n for _, n in self.sizes] != [n for _, n in other.sizes]:
            for (c, n), (d, m) in zip(self.sizes, other.sizes):
                if c is d and n != m:
                    return f"a {type(c).__name__} of {n} items now has {m}"
        for (c, key, old), (d, key2, new) in zip(self.items, other.items):
            if not (one(c, d) and (key is key2 or equal(key, key2))):
                return "there are other objects than before"
            if not equal(old, new) and (id(c), key) not in free and not (
                    (id(c), key) in self.placed and stands_for(new, old)) and not (
                    type(old) is type(new) is tuple and alike(old, new, (id(c), key), free)):
                return f"{described(c, key)} was {short(old)} and now is {short(new)}"
        for (a, old_bytes), (b, new_bytes) in zip(self.bytes, other.bytes):
            if a is b and old_bytes != new_bytes:
                return f"an array of {a.size} numbers has other numbers"
        for (t, held), (u, holds) in zip(self.deciding, other.deciding):
            if t is u and held != holds:
                return f"a mask of {t.array.size} elements has other numbers"
        for (e, had), (f, has) in zip(self.sets, other.sets):
            if e is f and had != has:
                return f"a set of {len(had)} items has other items"
        return "" if len(self.items) == len(other.items) else "there are other objects than before"

    def replaced(self, other: Snapshot, read: Container[int]) -> list[tuple[Any, Any, Tensor]]:
        """(container, key, tensor) where one that nobody has read (`read`: ids of arrays) was replaced by another."""
        return [(c, key, new) for (c, key, old), (d, key2, new) in zip(self.items, other.items)
                if c is d and key is key2 and old is not new and type(c) in (dict, list, OrderedDict)
                and stands_for(new, old) and id(new) not in self.tensors and id(old.array) not in read]

    def turned(self, other: Snapshot) -> str:
        """The first generator of random numbers or file that was asked for some or written to since, in words."""
        return next((f"a {type(e).__name__} has gone on" for (e, was), (f, now) in zip(self.turning, other.turning)
                     if e is f and was != now), "")

    def check(self, free: frozenset = frozenset()) -> Callable[[], bool]:
        """A function that says whether everything noted still holds, as fast as Python can.

        `free`: (id of container, key) of numbers that may change, but for their sign.
        """
        names: dict[str, Any] = {"equal": equal}
        tests = []
        containers: dict[int, str] = {}
        for container, n in self.sizes:           # first: to ask a defaultdict for what is gone would change it
            c = containers.setdefault(id(container), f"c{len(containers)}")
            names[c] = container
            tests.append(f"len({c}) == {n}" if n or type(container) not in (dict, list) else f"not {c}")
        for i, (container, key) in enumerate(self.last):
            names[f"l{i}"] = key
            tests.append(f"next(reversed({containers[id(container)]})) is l{i}")
        for i, (container, key, value) in enumerate(self.items):
            c = containers.setdefault(id(container), f"c{len(containers)}")
            names[c], names[f"v{i}"] = container.thing if isinstance(container, Slots) else container, value
            if not isinstance(key, (str, int)):
                names[f"k{i}"] = key
            now = f"{c}.cell_contents" if key is None else f"{c}.{key}" if isinstance(container, Slots) else \
                f"{c}[{key!r}]" if isinstance(key, (str, int)) else f"{c}[k{i}]"
            if (id(container), key) in free:
                tests.append(f"{now} * v{i} > 0")
                continue
            if (id(container), key) in self.placed:
                names["stands_for"] = stands_for
                tests.append(f"stands_for({now}, v{i})")
                continue
            if type(value) is tuple and plain(value):           # `betas`, which some schedules replace
                names["alike"], names["free"] = alike, free
                tests.append(f"({now} is v{i} or alike({now}, v{i}, ({id(container)}, {key!r}), free))")
                continue
            single = isinstance(value, PLAIN[:2])           # None, True, False
            test = f"{now} is {value}" if single else f"{now} is v{i}"
            tests.append(f"({test} or equal({now}, v{i}))" if isinstance(value, PLAIN) and not single else test)
        for i, (a, contents) in enumerate(self.bytes):
            names[f"b{i}"], names[f"s{i}"] = a, contents
            tests.append(f"b{i}.tobytes() == s{i}")
        for i, (t, contents) in enumerate(self.deciding):
            names[f"d{i}"], names[f"m{i}"] = t, contents
            tests.append(f"d{i}.array.tobytes() == m{i}")
        for i, (thing, elements) in enumerate(self.sets):
            names[f"e{i}"], names[f"f{i}"] = thing, elements
            tests.append(f"e{i} == f{i}")
        first: dict[int, int] = {}
        for i, (t, no_node, no_grad, no_hooks) in enumerate(self.flags):
            names[f"t{i}"] = t
            tests.append(f"t{i}.node is{'' if no_node else ' not'} None and t{i}._grad is{'' if no_grad else ' not'} None")
            tests += [] if no_node else [f"t{i}.node.hooks is{'' if no_hooks else ' not'} None"]
            tests += [f"t{i}.array is t{k}.array"] if (k := first.setdefault(id(t.array), i)) != i else []    # one array
        return compiled(tests, names)


class Asked:
    """What a weak reference or a variable of the context holds now."""

    def __init__(self, thing: Any):
        self.thing = thing

    def __getitem__(self, key: Any) -> Any:
        return self.thing() if isinstance(self.thing, ref) else self.thing.get(None)


class Slots:
    """An object's attributes that are in no dict, by name: those in slots."""

    def __init__(self, thing: Any, names: Iterable[str] = ()):
        self.thing = thing
        slots = [vars(c).get("__slots__", ()) for c in type(thing).__mro__]
        found = [name for names in slots for name in ((names,) if isinstance(names, str) else names)]
        self.names = [*names, *(name for name in found if not name.startswith("__") and hasattr(thing, name))]

    def __getitem__(self, name: str) -> Any:
        return getattr(self.thing, name)

    def __len__(self) -> int:
        return len(self.names)


def compiled(tests: list[str], names: dict[str, Any]) -> Callable[[], bool]:
    """All tests in one function; an error while testing means that something is gone. Programs for other shapes of arguments
    share theirs: to compile 1400 tests, of a model of 42 modules, takes 14 ms instead of 3, and 0.3 MB."""
    body = "".join(f"        if not ({' and '.join(tests[i:i + 50])}): return False\n" for i in range(0, len(tests), 50))
    text = f"def check():\n    try:\n{body}        return True\n    except Exception:\n        return False\n"
    known = CHECKS.get(text)
    if known is not None and all([same(known.__globals__[name], value) for name, value in names.items()]):
        return known
    exec(compile(text, "<rushlight guards>", "exec"), names)
    CHECKS[text] = names["check"]
    return names["check"]


def same(a: Any, b: Any) -> bool:
    """Whether a test of either is one of the other."""
    return a is b or type(a) is type(b) in (bytes, frozenset, MappingProxyType) and a == b


def one(c: Any, d: Any) -> bool:
    """Whether two containers are the same one."""
    return c is d or type(c) is type(d) and (
        type(c) is MappingProxyType and c == d or isinstance(c, (Slots, Asked)) and c.thing is d.thing)


def equal(a: Any, b: Any) -> bool:
    """Whether two items count as the same: objects by identity, plain values by type and value, zeros by their sign."""
    return a is b or (type(a) is type(b) and (
        isinstance(a, PLAIN) and (a == b and (bool(a) or repr(a) == repr(b)) or a != a and b != b) or (
            type(a) is tuple and plain(a) and alike(a, b))))


def stands_for(new: Any, old: Any) -> bool:
    """Whether a tensor looks like another to who does not read its numbers."""
    return type(new) is type(old) is Tensor and new.array.shape == old.array.shape and new.array.dtype == old.array.dtype \
        and all([t._grad is None and not t.__dict__ and (t.node is None or not t.node.leaf and t.node.hooks is None)
                 for t in (new, old)]) and (new.node is None) is (old.node is None)


def plain(items: tuple) -> bool:
    return all([isinstance(v, PLAIN) for v in items])


def alike(a: Any, b: tuple, item: tuple = (), free: frozenset = frozenset()) -> bool:
    """Whether a tuple has the plain values of another, but for the sizes of those in `free`: (*item, their places)."""
    return type(a) is tuple and len(a) == len(b) and all([
        equal(v, w) or (*item[:1], (*item[1:], i)) in free and v * w > 0 for i, (v, w) in enumerate(zip(a, b))])


def owned(thing: FunctionType | type) -> bool:
    """Whether a function or class is the user's, not a library's."""
    module = thing.__module__                     # of Cython's functions a descriptor
    return module is None or isinstance(module, str) and module.partition(".")[0] not in LIBRARIES


def transparent(kind: type) -> bool:
    """Whether only the user's code reads the attributes of its objects: a class of the user's, or a module's class."""
    return owned(kind) and all([owned(base) or base is object or base in Module.__mro__ for base in kind.__mro__])


def optimizer_of(kind: type) -> type | None:
    """The library's class that an optimizer's is made of, or is; None of other classes."""
    library = next((c for c in kind.__mro__ if not owned(c)), object)
    return library if any([(c.__module__, c.__name__) == OPTIMIZER for c in library.__mro__]) else None


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """A function and the functions inside it."""
    todo = [code]
    for c in todo:                                # which grows while it is read
        yield c
        todo += [k for k in c.co_consts if isinstance(k, CodeType)]


def names_in(code: CodeType) -> Iterator[str]:
    """The global names that a function and those inside it use."""
    for c in codes_in(code):
        yield from c.co_names
        for k in c.co_consts:                     # getattr(self, "scale"), case Layer(scale=1)
            yield from (t for t in (k if isinstance(k, tuple) else (k,)) if isinstance(t, str))


@lru_cache(maxsize=4096)
def imported_in(code: CodeType) -> list[str]:
    """The modules that a function, and those inside it, import when they run."""
    return [i.argval for c in codes_in(code) for i in get_instructions(c) if i.opname == "IMPORT_NAME"]


def described(container: Any, key: Any) -> str:
    return "a variable of the closure" if key is None else f"{key!r}" if isinstance(key, (str, int)) else "an item"


def short(value: Any) -> str:
    text = repr(value) if isinstance(value, PLAIN) else f"a {type(value).__name__}"
    return text if len(text) < 60 else text[:57] + "..."
