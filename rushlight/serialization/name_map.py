"""Names of classes, dtypes and functions in torch's files -> rushlight's objects."""

from __future__ import annotations

import importlib
import sys
from collections import Counter, OrderedDict
from types import FunctionType
from typing import Any

from rushlight.base import dtypes, shown_names
from rushlight.base.device import device
from rushlight.base.errors import not_implemented_error, value_error
from rushlight.base.public_function import private
from rushlight.base.size import Size
from rushlight.core.tensor import Tensor
from rushlight.ops.tensor.quantized_tensor import QINT8, QSCHEMES, QUINT8, qscheme

# imported when a file contains one: nn imports this package
PARAMETER_IN_TORCH = ("torch.nn.parameter", "Parameter")
# our module -> torch's module, for functions pickled by name
FUNCTIONS = {"rushlight": "torch", "rushlight.nn.functional": "torch.nn.functional"}


class Name:
    """A global of a file that may not exist in rushlight: `Name("torch._utils", "_rebuild_tensor_v2")`."""

    __slots__ = ("module", "name")

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __call__(self, *args: Any) -> None:
        """Never called: pickle requires a callable for writing a call."""
        raise not_implemented_error(f"{self.module}.{self.name} is a name, to be written")


class StorageType:
    """Replaces torch.FloatStorage and so on: the storage type of a dtype, or of bytes for None."""

    __slots__ = ("dtype", "itemsize")

    def __init__(self, dtype: dtypes.dtype | None) -> None:
        self.dtype, self.itemsize = dtype, 1 if dtype is None else dtype.itemsize


UNTYPED = Name("torch.storage", "UntypedStorage")
# newer in torch than typed storages
_WITHOUT_STORAGE = (dtypes.uint16, dtypes.uint32, dtypes.uint64)
STORAGE_NAMES = {
    d: UNTYPED if d in _WITHOUT_STORAGE else Name("torch", d.scalar_type + "Storage") for d in dtypes.DTYPES
}

# quantized tensors: the integers have another dtype in files than in memory
QUANTIZED = {QINT8: dtypes.int8, QUINT8: dtypes.uint8}
STORAGE_NAMES |= {d: Name("torch", d.scalar_type + "Storage") for d in QUANTIZED}

CLASSES: dict[Any, tuple[str, str]] = {c: ("torch", c.__name__) for c in (Tensor, Size, device)}


def name_in_torch(thing: Any) -> tuple[str, str] | None:
    """(module, name) of a class, dtype or Name in torch's files; None if it is written under its own name."""
    if isinstance(thing, Name):
        return thing.module, thing.name
    if isinstance(thing, (dtypes.dtype, qscheme)):
        return "torch", thing.name
    if isinstance(thing, type):
        return CLASSES.get(thing) or shown_names.IN_FILES.get(thing)
    function = private(thing)
    if isinstance(function, FunctionType) and function.__module__.startswith("rushlight"):
        name = str(function.__name__)
        return next(
            (
                (there, name)
                for home, there in FUNCTIONS.items()
                if private(getattr(sys.modules.get(home), name, None)) is function
            ),
            None,
        )
    return None


def sparse_maker() -> Any:
    """sparse_coo_tensor, imported when the first sparse tensor is read."""
    return importlib.import_module("rushlight.sparse").sparse_coo_tensor


def compressed_maker() -> Any:
    """sparse_compressed_tensor, imported when the first compressed matrix is read."""
    return importlib.import_module("rushlight.sparse").sparse_compressed_tensor


def parameter_class() -> type[Tensor]:
    """nn.Parameter, imported when the first one is read."""
    module, name = PARAMETER_IN_TORCH
    return getattr(importlib.import_module(module.replace("torch", "rushlight", 1)), name)


def encode(text: str, encoding: str = "latin1") -> bytes:
    """Bytes from text: pickles before protocol 3 write bytes as a call of this function."""
    if not isinstance(text, str) or encoding != "latin1":
        raise value_error(f"bytes are written as text in latin1, not as {type(text).__name__} in {encoding!r}")
    return text.encode(encoding)


def make_bytearray(content: Any = b"", encoding: str = "latin1") -> bytearray:
    """A bytearray of bytes or text. A length is refused, since it could allocate any amount of memory."""
    if isinstance(content, str):
        content = encode(content, encoding)
    if not isinstance(content, (bytes, list)):
        raise value_error(f"a bytearray is written as bytes, not as {type(content).__name__}")
    return bytearray(content)


def allowed_globals() -> dict[tuple[str, str], Any]:
    """{(module, name): object} that a file of weights may name, without the functions that rebuild tensors."""
    found: dict[tuple[str, str], Any] = {
        ("collections", "OrderedDict"): OrderedDict,
        ("collections", "Counter"): Counter,
        ("builtins", "set"): set,
        ("builtins", "complex"): complex,
        ("builtins", "bytearray"): make_bytearray,
        ("_codecs", "encode"): encode,
    }
    found |= {name: thing for thing, name in CLASSES.items()}
    found |= {("torch", d.name): d for d in (*dtypes.DTYPES, *QUANTIZED)}
    found |= {("torch", q.name): q for q in QSCHEMES}
    typed = {d: n for d, n in STORAGE_NAMES.items() if n is not UNTYPED}
    found |= {(n.module, n.name): StorageType(QUANTIZED.get(d, d)) for d, n in typed.items()}
    found |= {(UNTYPED.module, UNTYPED.name): StorageType(None), ("torch", "UntypedStorage"): StorageType(None)}
    return found
