"""Unpicklers: for files of weights, which may name harmless objects only, and for files that the user trusts."""

from __future__ import annotations

import functools
import importlib
import os
import pickle
import struct
import sys
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from typing import IO, Any

from rushlight.base.errors import first_line
from rushlight.base.size import Size
from rushlight.core.tensor import Tensor
from rushlight.serialization.allowed_globals import user_globals
from rushlight.serialization.name_map import PARAMETER_IN_TORCH, allowed_globals, parameter_class

from .rebuild import REBUILDERS

# The pickle opcodes that files of weights need. Opcodes that name a class themselves (INST, OBJ, EXT...) are missing.
_WEIGHTS = """
    PROTO FRAME STOP MARK POP POP_MARK DUP NONE NEWTRUE NEWFALSE INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT
    BINFLOAT STRING BINSTRING SHORT_BINSTRING BINBYTES SHORT_BINBYTES BINBYTES8 UNICODE BINUNICODE
    SHORT_BINUNICODE BINUNICODE8 EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 EMPTY_LIST APPEND APPENDS LIST EMPTY_DICT
    DICT SETITEM SETITEMS EMPTY_SET ADDITEMS FROZENSET GET BINGET LONG_BINGET PUT BINPUT LONG_BINPUT MEMOIZE GLOBAL
    STACK_GLOBAL REDUCE BUILD NEWOBJ BINPERSID"""
_OPCODES = {getattr(pickle, name)[0] for name in _WEIGHTS.split()}
# in the C unpickler, BUILD may change any object, also classes
PureUnpickler: Any = pickle._Unpickler
CONTAINERS = (set, Counter, OrderedDict, Size)  # calls by which pickles build containers
SIZED = (str, bytes, bytearray, tuple, list, dict, set, frozenset)

Lookup = Callable[[Any], Any]  # persistent id -> memory block
HINT = (
    "If you trust whoever made the file, load it with weights_only=False, or allow what it names with "
    "rushlight.serialization.add_safe_globals([...])"
)


DAMAGE = (
    pickle.UnpicklingError,
    struct.error,
    EOFError,
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
    OverflowError,
)


# The number of elements that the calls of a file may copy: a constant, plus a number for each byte of the file. A file
# can refer to a list many times, and each call would copy the list.
MAX_COPIED_ELEMENTS, MAX_COPIES_PER_BYTE = 2**20, 4
# Elements of the tuples in one dict key: the hash of t takes 2**60 steps after 60 times t = (t, t).
MAX_KEY_ELEMENTS = 1000
MAX_KEY_BITS = 64  # digits of an int as a dict key: longer ints may all have the same hash
CHECKED_READ_BYTES = 2**12  # shorter reads take no memory worth a check


class Refused(pickle.UnpicklingError):
    """A file of weights contains something that is not allowed."""


def refusal(what: str, hint: str = HINT) -> Refused:
    return Refused(f"Weights only load failed: {what}. {hint}")


def whole_lines(readline: Callable[[], bytes]) -> Callable[[], bytes]:
    """`readline` that raises an error for a truncated last line: half a name may be another valid name."""

    def read() -> bytes:
        line = readline()
        if line[-1:] != b"\n":
            raise EOFError("it ends inside a line")
        return line

    return read


def bytes_left(file: IO[bytes]) -> int:
    """Bytes from the position of a file to its end."""
    here = file.tell()
    end = file.seek(0, os.SEEK_END)
    file.seek(here)
    return (file.tell() if end is None else end) - here


def whole_reads(file: IO[bytes]) -> Callable[[int], bytes]:
    """`file.read` that raises an error if the file ends earlier, before memory is taken."""

    def read(count: int) -> bytes:
        if count > CHECKED_READ_BYTES and count > bytes_left(file):
            raise EOFError(f"{count} bytes are declared, and the file ends before")
        content = file.read(count)
        if len(content) < count:
            raise EOFError("it ends inside an object")
        return content

    return read


def check_key(key: Any) -> None:
    """Refuse a dict key, or an element of a set, whose hash would take too long."""
    if key.__class__ is str:
        return
    seen, todo = 0, [key]
    while todo:
        part = todo.pop()
        if isinstance(part, tuple):
            seen += len(part)
            if seen > MAX_KEY_ELEMENTS:
                raise refusal(f"a dict key is a tuple with more than {MAX_KEY_ELEMENTS} elements in all")
            todo.extend(part)
        elif isinstance(part, int) and part.bit_length() > MAX_KEY_BITS:
            raise refusal(f"a dict key is an int of more than {MAX_KEY_BITS} bits")


def _refuse(code: int, reader: Any) -> None:
    name = next((n for n in dir(pickle) if n.isupper() and getattr(pickle, n) == bytes([code])), f"0x{code:02x}")
    raise refusal(f"the file uses the pickle instruction {name}, which is not needed for weights")


@functools.cache
def known_globals() -> dict[tuple[str, str], Any]:
    """{(module, name): object} that a file of weights may refer to, without the user's own additions. Read-only."""
    return allowed_globals() | REBUILDERS


@functools.cache
def known_callables() -> frozenset[int]:
    return callables_of(known_globals())


def callables_of(allowed: dict[tuple[str, str], Any]) -> frozenset[int]:
    """The ids of the objects that a file may call: all but Tensor."""
    return frozenset([id(f) for f in allowed.values() if f is not Tensor])


class WeightsUnpickler(PureUnpickler):
    """Reads containers, numbers, text and tensors. pickle.UnpicklingError names anything else in the file.

    Calls are limited to functions and classes that `find_class` allows. BUILD is limited to OrderedDicts with
    attributes and to objects of classes that the user has allowed."""

    dispatch = {code: functools.partial(_refuse, code) for code in range(256)} | {
        code: load for code, load in PureUnpickler.dispatch.items() if code in _OPCODES
    }

    def __init__(self, file: IO[bytes], lookup: Lookup) -> None:
        super().__init__(file, encoding="utf-8")
        self._file_readline = whole_lines(file.readline)
        self._file_read = whole_reads(file)
        self.copies_left = MAX_COPIED_ELEMENTS + MAX_COPIES_PER_BYTE * bytes_left(file)
        self.persistent_load = lookup
        self.users = user_globals()
        self.allowed, self.callables = known_globals(), known_callables()
        if self.users:
            self.allowed = self.allowed | self.users
            self.callables = callables_of(self.allowed)

    def load(self) -> Any:
        """The object. UnpicklingError for invalid pickles, too."""
        try:
            return super().load()
        except Refused:
            raise
        except DAMAGE as error:
            raise pickle.UnpicklingError(
                f"the file is damaged, or was not written by torch.save: {first_line(error)}"
            ) from error

    def find_class(self, module: str, name: str) -> Any:
        """The object for a name in the file, if it is allowed."""
        key = ("builtins" if module == "__builtin__" else module, name)
        if key in self.allowed:
            return self.allowed[key]
        if key == PARAMETER_IN_TORCH:
            return parameter_class()
        if module.startswith(("torch.nn.modules", "rushlight.nn")):
            raise refusal(
                f"the file contains a whole {module}.{name}, not its weights",
                f"Save model.state_dict() instead. {HINT}",
            )
        if module.partition(".")[0] == "torch":
            raise refusal(
                f"the file refers to {module}.{name}, which rushlight does not have",
                "In torch, save plain tensors in dictionaries and lists instead",
            )
        raise refusal(f"the file refers to {module}.{name}, which is not on the list of safe names")

    def load_reduce(self) -> None:
        """Call a function or class with arguments."""
        self._check_call(*self.stack[-2:])
        super().load_reduce()

    def load_newobj(self) -> None:
        """Make an object of a class."""
        self._check_call(*self.stack[-2:])
        super().load_newobj()

    def _check_call(self, function: Any, args: Any) -> None:
        if id(function) not in self.callables:
            raise refusal(f"the file calls {getattr(function, '__name__', type(function).__name__)}, which it may not")
        if not isinstance(args, tuple):
            raise refusal(f"the file calls something with a {type(args).__name__} of arguments")
        for arg in args:
            self._charge(arg, *(arg if isinstance(arg, tuple) else ()))
        if function in CONTAINERS:
            for arg in args:
                if not isinstance(arg, SIZED):
                    raise refusal(f"the file makes a container of a {type(arg).__name__}")
                self._check_keys(arg, function is OrderedDict)

    def _charge(self, *parts: Any) -> None:
        """Count the elements that a call copies."""
        self.copies_left -= sum(len(part) for part in parts if isinstance(part, SIZED))
        if self.copies_left < 0:
            raise refusal("the file copies its containers again and again")

    def _check_keys(self, elements: Any, pairs: bool) -> None:
        """`check_key` of each element, or of the first of each pair."""
        for element in elements:
            check_key(element)
            if pairs and isinstance(element, (list, tuple)) and element:
                check_key(element[0])

    def _check_items(self, target: Any, keys: Sequence[Any], kind: type) -> None:
        """`check_key` of keys that are put into a container; Tensors have items, too."""
        if not isinstance(target, (kind, *self.users.values())):
            raise refusal(f"the file puts items into a {type(target).__name__}, which it may not")
        for key in keys:
            check_key(key)

    def load_setitem(self) -> None:
        """Add a key and its value to a dict."""
        self._check_items(self.stack[-3], self.stack[-2:-1], dict)
        super().load_setitem()

    def load_setitems(self) -> None:
        """Add keys and values to a dict. `stack` begins at the last mark."""
        self._check_items(self.metastack[-1][-1], self.stack[::2], dict)
        super().load_setitems()

    def load_dict(self) -> None:
        """Make a dict of keys and values."""
        self._check_items({}, self.stack[::2], dict)
        super().load_dict()

    def load_additems(self) -> None:
        """Add elements to a set."""
        self._check_items(self.metastack[-1][-1], self.stack, set)
        super().load_additems()

    def load_frozenset(self) -> None:
        """Make a frozenset of elements."""
        self._check_items(set(), self.stack, set)
        super().load_frozenset()

    def load_build(self) -> None:
        """Give an object its attributes."""
        target, state = self.stack[-2:]
        self._charge(state)
        if type(target) is OrderedDict and isinstance(state, dict):
            target.__dict__.update(self.stack.pop())
        elif type(target) in self.users.values():
            super().load_build()
        else:
            raise refusal(f"the file sets attributes of a {type(target).__name__}, which it may not")

    dispatch[pickle.REDUCE[0]] = load_reduce
    dispatch[pickle.NEWOBJ[0]] = load_newobj
    dispatch[pickle.BUILD[0]] = load_build
    dispatch[pickle.SETITEM[0]] = load_setitem
    dispatch[pickle.SETITEMS[0]] = load_setitems
    dispatch[pickle.DICT[0]] = load_dict
    dispatch[pickle.ADDITEMS[0]] = load_additems
    dispatch[pickle.FROZENSET[0]] = load_frozenset


# torch's classes that contain functions -> our objects with the same functions
COMPILED = {"_VariableFunctionsClass": lambda: sys.modules["rushlight"], "TensorBase": lambda: Tensor}


class AnyUnpickler(pickle.Unpickler):
    """Reads any pickle. Loading an untrusted file runs its code."""

    def __init__(self, file: IO[bytes], lookup: Lookup) -> None:
        super().__init__(file, encoding="utf-8")
        self.lookup = lookup
        self.known = known_globals()

    def persistent_load(self, pid: Any) -> Any:
        """The memory block of a persistent id."""
        return self.lookup(pid)

    def find_class(self, module: str, name: str) -> Any:
        """The object for a name: torch's names are mapped to rushlight's objects, other names are imported."""
        if (module, name) in self.known:
            return self.known[module, name]
        if (module, name) == PARAMETER_IN_TORCH:
            return parameter_class()
        try:
            return here(module, name) if module.partition(".")[0] == "torch" else super().find_class(module, name)
        except (ImportError, AttributeError) as error:
            raise pickle.UnpicklingError(
                f"the file refers to {module}.{name}, which does not exist ({error}): if it is a model, save its "
                "state_dict() in a program that has the class, and load that into a model created here"
            ) from error


def here(module: str, name: str) -> Any:
    """The rushlight object for a name of torch: rushlight.nn.Linear for torch.nn.modules.linear.Linear.

    torch's compiled functions have names such as torch._C._nn.gelu and torch._C._special.special_expm1; relu is an
    attribute of torch._C._VariableFunctionsClass."""
    path = "torch.nn" if module.startswith("torch.nn.modules.") else module
    if path == "torch._C":
        if name in COMPILED:
            return COMPILED[name]()
    elif path.startswith("torch._C._"):
        part = path.removeprefix("torch._C._")
        path, name = ("torch.nn.functional", name) if part == "nn" else (f"torch.{part}", name.removeprefix(f"{part}_"))
    found: Any = importlib.import_module("rushlight" + path.removeprefix("torch"))
    for part in name.split("."):
        found = getattr(found, part)
    return found
