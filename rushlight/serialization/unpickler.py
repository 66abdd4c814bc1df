"""Unpicklers: for files of weights, which may name harmless objects only, and for files that the
user trusts."""

from __future__ import annotations

import functools
import importlib
import pickle
import struct
import sys
from collections import OrderedDict
from collections.abc import Callable
from typing import IO, Any

from rushlight.core.tensor import Tensor
from rushlight.serialization.allowed_globals import user_globals
from rushlight.serialization.name_map import PARAMETER_IN_TORCH, allowed_globals, parameter_class

from .rebuild import REBUILDERS

# The pickle opcodes that files of weights need. Missing: opcodes that name a class themselves
# (INST, OBJ, EXT...).
_WEIGHTS = """
    PROTO FRAME STOP MARK POP POP_MARK DUP NONE NEWTRUE NEWFALSE INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT
    BINFLOAT STRING BINSTRING SHORT_BINSTRING BINBYTES SHORT_BINBYTES BINBYTES8 UNICODE BINUNICODE
    SHORT_BINUNICODE BINUNICODE8 EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 EMPTY_LIST APPEND APPENDS LIST EMPTY_DICT
    DICT SETITEM SETITEMS EMPTY_SET ADDITEMS FROZENSET GET BINGET LONG_BINGET PUT BINPUT LONG_BINPUT MEMOIZE GLOBAL
    STACK_GLOBAL REDUCE BUILD NEWOBJ BINPERSID"""  # noqa: E501
_OPCODES = {getattr(pickle, name)[0] for name in _WEIGHTS.split()}
# in the C unpickler, BUILD may change any object, also classes
PureUnpickler: Any = pickle._Unpickler

Lookup = Callable[[Any], Any]  # persistent id -> memory block
HINT = (
    "If you trust whoever made the file, load it with weights_only=False, or allow what it names "
    "with "
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


class Refused(pickle.UnpicklingError):
    """A file of weights contains something that is not allowed."""


def refusal(what: str, hint: str = HINT) -> Refused:
    return Refused(f"Weights only load failed: {what}. {hint}")


def whole_lines(readline: Callable[[], bytes]) -> Callable[[], bytes]:
    """`readline` that raises an error for a truncated last line: half a name may be another valid
    name."""

    def read() -> bytes:
        line = readline()
        if line[-1:] != b"\n":
            raise EOFError("it ends inside a line")
        return line

    return read


def _refuse(code: int, reader: Any) -> None:
    name = next(
        (n for n in dir(pickle) if n.isupper() and getattr(pickle, n) == bytes([code])),
        f"0x{code:02x}",
    )
    raise refusal(f"the file uses the pickle instruction {name}, which is not needed for weights")


class WeightsUnpickler(PureUnpickler):
    """Reads containers, numbers, text and tensors. pickle.UnpicklingError names anything else in
    the file.

    Calls are limited to functions and classes that `find_class` allows. BUILD is limited to
    OrderedDicts with attributes and to objects of classes that the user has allowed."""

    dispatch = {code: functools.partial(_refuse, code) for code in range(256)} | {
        code: load for code, load in PureUnpickler.dispatch.items() if code in _OPCODES
    }

    def __init__(self, file: IO[bytes], lookup: Lookup) -> None:
        super().__init__(file, encoding="utf-8")
        self._file_readline = whole_lines(file.readline)
        self.persistent_load = lookup
        self.users = user_globals()
        self.allowed = allowed_globals() | REBUILDERS | self.users
        self.callables = {id(f) for f in self.allowed.values() if f is not Tensor}

    def load(self) -> Any:
        """The object. UnpicklingError for invalid pickles, too."""
        try:
            return super().load()
        except Refused:
            raise
        except DAMAGE as error:
            raise pickle.UnpicklingError(
                f"the file is damaged, or was not written by torch.save: {error}"
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
        self._check_call(self.stack[-2])
        super().load_reduce()

    def load_newobj(self) -> None:
        """Make an object of a class."""
        self._check_call(self.stack[-2])
        super().load_newobj()

    def _check_call(self, function: Any) -> None:
        if id(function) not in self.callables:
            raise refusal(
                f"the file calls {getattr(function, '__name__', type(function).__name__)}, which "
                "it may not"
            )

    def load_build(self) -> None:
        """Give an object its attributes."""
        target, state = self.stack[-2:]
        if type(target) is OrderedDict and isinstance(state, dict):
            target.__dict__.update(self.stack.pop())
        elif type(target) in self.users.values():
            super().load_build()
        else:
            raise refusal(
                f"the file sets attributes of a {type(target).__name__}, which it may not"
            )

    dispatch[pickle.REDUCE[0]] = load_reduce
    dispatch[pickle.NEWOBJ[0]] = load_newobj
    dispatch[pickle.BUILD[0]] = load_build


# torch's classes that contain functions -> our objects with the same functions
COMPILED = {
    "_VariableFunctionsClass": lambda: sys.modules["rushlight"],
    "TensorBase": lambda: Tensor,
}


class AnyUnpickler(pickle.Unpickler):
    """Reads any pickle. Loading an untrusted file runs its code."""

    def __init__(self, file: IO[bytes], lookup: Lookup) -> None:
        super().__init__(file, encoding="utf-8")
        self.lookup = lookup
        self.known = allowed_globals() | REBUILDERS

    def persistent_load(self, pid: Any) -> Any:
        """The memory block of a persistent id."""
        return self.lookup(pid)

    def find_class(self, module: str, name: str) -> Any:
        """The object for a name: torch's names are mapped to rushlight's objects, other names are
        imported."""
        if (module, name) in self.known:
            return self.known[module, name]
        if (module, name) == PARAMETER_IN_TORCH:
            return parameter_class()
        try:
            return (
                here(module, name)
                if module.partition(".")[0] == "torch"
                else super().find_class(module, name)
            )
        except (ImportError, AttributeError) as error:
            raise pickle.UnpicklingError(
                f"the file refers to {module}.{name}, which does not exist ({error}): if it is a "
                "model, "
                "save its "
                "state_dict() where the class is known, and load that into a model made here"
            ) from error


def here(module: str, name: str) -> Any:
    """The rushlight object for a name of torch: rushlight.nn.Linear for
    torch.nn.modules.linear.Linear.

    torch's compiled functions have names such as torch._C._nn.gelu and
    torch._C._special.special_expm1; relu is an attribute of torch._C._VariableFunctionsClass."""
    path = "torch.nn" if module.startswith("torch.nn.modules.") else module
    if path == "torch._C":
        if name in COMPILED:
            return COMPILED[name]()
    elif path.startswith("torch._C._"):
        part = path.removeprefix("torch._C._")
        path, name = (
            ("torch.nn.functional", name)
            if part == "nn"
            else (f"torch.{part}", name.removeprefix(f"{part}_"))
        )
    found: Any = importlib.import_module("rushlight" + path.removeprefix("torch"))
    for part in name.split("."):
        found = getattr(found, part)
    return found
