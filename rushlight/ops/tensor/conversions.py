"""Tensors as Python numbers and lists, as NumPy arrays, and through DLPack."""

from __future__ import annotations

import re
from typing import Any

from numpy import asarray, ndarray

from rushlight.base import dtypes
from rushlight.base.errors import runtime_error, statement, type_error, value_error, warn_once
from rushlight.core.mode import mode
from rushlight.core.tensor import Tensor, from_array, handed_out, method, noticed


@method
def item(self: Tensor) -> Any:
    """The only element as a Python number. RuntimeError if there are several or none."""
    if self._array.size != 1:
        raise runtime_error(
            f"a Tensor with {self._array.size} elements cannot be converted to Scalar",
            "index one element, or reduce it (sum, mean) first",
            shape=tuple(self.shape),
        )
    noticed(self)
    return self._array.item() if self._array.dtype.kind != "V" else float(self._array.reshape(()))


@method
def tolist(self: Tensor) -> Any:
    """Nested lists of Python numbers; one number for a 0-d tensor."""
    noticed(self)
    return dtypes.plain(self._array).tolist()


@method
def numpy(self: Tensor, *, force: bool = False) -> ndarray:
    """The NumPy array of the elements, sharing memory.

    RuntimeError for a tensor that requires grad, except with `force=True` or under `no_grad()`."""
    if self._node is not None and not force and mode().grad:
        raise runtime_error(
            "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.",
            "under `with torch.no_grad():` nothing is recorded, and numpy() needs no detach()",
        )
    noticed(self)
    if not isinstance(self._array, ndarray):
        return self._array.numpy()
    handed_out(self)
    return self._array


@method
def __array__(self: Tensor, dtype: Any = None, copy: bool | None = None) -> ndarray:
    array = self.numpy()
    if dtype is not None and array.dtype != dtype:
        return array.astype(dtype)
    return array.copy() if copy else array


@method
def __array_wrap__(self: Tensor, array: ndarray, context: Any = None, return_scalar: bool = False) -> Tensor:
    return from_array(asarray(array))


@method
def __dlpack__(
    self: Tensor,
    *,
    stream: Any = -1,
    max_version: tuple[int, int] | None = None,
    dl_device: Any = None,
    copy: bool | None = None,
) -> Any:
    if self._node is not None:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    # older versions of NumPy lack these dtypes
    options = {"max_version": max_version, "dl_device": dl_device, "copy": copy}
    given = {name: value for name, value in options.items() if value is not None}
    handed_out(self)
    return self._array.__dlpack__(**given)


@method
def __dlpack_device__(self: Tensor) -> tuple:
    return self._array.__dlpack_device__()


def ambiguous(text: str) -> str:
    """The hint for a truth value of several elements, depending on the user's statement."""
    if (found := re.search(r"(?<![\w.])(max|min)\(", text)) is not None:
        bound, other = ("min", "maximum") if found[1] == "max" else ("max", "minimum")
        return (
            f"Python's {found[1]}() compares whole tensors: write x.clamp({bound}=0) for a number, "
            f"torch.{other}(a, b) for two tensors"
        )
    if re.search(r"\b(and|or)\b", text):
        return (
            "element by element, write & for and, | for or, with brackets: (x > 0) & (x < 1); for one answer, "
            ".any() or .all()"
        )
    if re.search(r"\bnot\b", text):
        return "element by element, write ~mask for not mask; for one answer, .any() or .all()"
    if re.search(r"\bsorted\(|\.sort\(", text):
        return "Python's sort compares whole tensors: write x.sort()"
    if re.search(r"\bin\b", text) and not re.search(r"\bfor\b", text):
        return "`in` compares whole tensors by ==: any(x is y for y in list)"
    return "use .any() or .all(), or compare one element"


@method
def __bool__(self: Tensor) -> bool:
    if self._array.size != 1:
        what = "no values" if self._array.size == 0 else "more than one value"
        raise runtime_error(
            f"Boolean value of Tensor with {what} is ambiguous", ambiguous(statement()), shape=tuple(self.shape)
        )
    noticed(self)
    return bool(self._array)


@method
def __float__(self: Tensor) -> float:
    return float(number_of(self))


@method
def __int__(self: Tensor) -> int:
    return int(number_of(self))


@method
def __complex__(self: Tensor) -> complex:
    return complex(number_of(self))


def number_of(self: Tensor) -> Any:
    """`item()` for Python's conversions, which raise ValueError."""
    if self._array.size != 1:
        raise value_error(
            "only one element tensors can be converted to Python scalars",
            "index one element, or reduce it (sum, mean) first",
            shape=tuple(self.shape),
        )
    if self._node is not None:
        warn_once(
            "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior. Consider using "
            "tensor.detach() first."
        )
    return self.item()


@method
def __index__(self: Tensor) -> int:
    if self._array.size != 1 or self._array.dtype.kind not in "iub":
        raise type_error("only integer tensors of a single element can be converted to an index")
    return int(self.item())
