"""For tests: `assert_close` compares results, `make_tensor` makes inputs."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rushlight.base import dtypes
from rushlight.base.dtypes import dtype as Dtype
from rushlight.base.errors import type_error, value_error, warn
from rushlight.core.tensor import Tensor, from_array
from rushlight.creation.factories import made, tensor
from rushlight.ops.reduce.reduce_api import isclose
from rushlight.ops.tensor.random_tensors import source

__all__ = ["assert_allclose", "assert_close", "make_tensor"]

# -- comparing -------------------------------------------------------------------------------------

# relative and absolute tolerance; all other dtypes must be equal
TOLERANCES = {
    dtypes.float16: (1e-3, 1e-5),
    dtypes.bfloat16: (1.6e-2, 1e-5),
    dtypes.float32: (1.3e-6, 1e-5),
    dtypes.float64: (1e-7, 1e-7),
    dtypes.complex64: (1.3e-6, 1e-5),
    dtypes.complex128: (1e-7, 1e-7),
}
# the tolerances of assert_allclose
WIDER = {dtypes.float16: (1e-3, 1e-3), dtypes.float32: (1e-4, 1e-5), dtypes.float64: (1e-5, 1e-8)}
Message = str | Callable[[str], str] | None
Path = tuple[Any, ...]


class Settings:
    """The settings of an `assert_close` call."""

    __slots__ = ("subclasses", "rtol", "atol", "equal_nan", "device", "dtype", "layout", "stride", "msg")

    def __init__(
        self, subclasses: bool, rtol: float | None, atol: float | None, equal_nan: bool, device: bool, dtype: bool,
        layout: bool, stride: bool, msg: Message,
    ):  # fmt: skip
        self.subclasses, self.rtol, self.atol, self.equal_nan = subclasses, rtol, atol, equal_nan
        self.device, self.dtype, self.layout, self.stride, self.msg = device, dtype, layout, stride, msg

    def tolerances(self, *kinds: Dtype) -> tuple[float, float]:
        """The given tolerances, or the larger defaults of these dtypes."""
        if self.rtol is not None and self.atol is not None:
            return self.rtol, self.atol
        both = [TOLERANCES.get(kind, (0.0, 0.0)) for kind in kinds]
        return max(rtol for rtol, _ in both), max(atol for _, atol in both)

    def error(self, text: str, path: Path) -> AssertionError:
        if path:
            text += f"\n\nThe failure occurred for item {''.join(f'[{step!r}]' for step in path)}"
        return AssertionError(self.msg(text) if callable(self.msg) else text if self.msg is None else self.msg)


def assert_close(
    actual: Any, expected: Any, *, allow_subclasses: bool = True, rtol: float | None = None, atol: float | None = None,
    equal_nan: bool = False, check_device: bool = True, check_dtype: bool = True, check_layout: bool = True,
    check_stride: bool = False, msg: Message = None,
) -> None:  # fmt: skip
    """AssertionError unless |actual - expected| <= atol + rtol |expected|, for all elements of all tensors.

    Takes tensors, arrays, numbers, None, and lists and dicts of them; both sides must have the same structure. `rtol`
    and `atol` are given together; their defaults depend on the dtype: 1.3e-6 and 1e-5 in single precision, 1e-7 in
    double, 1e-3 and 1e-5 in half precision, 1.6e-2 and 1e-5 for bfloat16, else 0. `equal_nan`: nan equals nan. Dtypes
    (`check_dtype`) and shapes must agree, strides only with `check_stride`; there is one device and one layout. `msg`:
    another message, or a function of the message. TypeError for values that cannot be compared, ValueError for one
    tolerance without the other.

    >>> rushlight.testing.assert_close(rushlight.tensor([1., 2.]), rushlight.tensor([1., 2.000001]))
    """
    if (rtol is None) != (atol is None):
        raise value_error(
            "Both 'rtol' and 'atol' must be either specified or omitted, but got no "
            + ("rtol." if rtol is None else "atol.")
        )
    settings = Settings(
        allow_subclasses, rtol, atol, equal_nan, check_device, check_dtype, check_layout, check_stride, msg
    )
    todo: list[tuple[Any, Any, Path]] = [(actual, expected, ())]
    while todo:  # no recursion, and the first failure is also the first in order
        a, b, path = todo.pop()
        todo.extend(reversed(parts(a, b, path, settings) or compared(a, b, path, settings)))


def assert_allclose(
    actual: Any, expected: Any, rtol: float | None = None, atol: float | None = None, equal_nan: bool = True,
    msg: str = "",
) -> None:  # fmt: skip
    """|actual - expected| <= atol + rtol |expected|, or AssertionError: the older form of `assert_close`.

    Wider tolerances (1e-4 and 1e-5 in single precision, 1e-5 and 1e-8 in double, 1e-3 in half), nan equals nan, and
    dtypes may differ.

    >>> rushlight.testing.assert_allclose(rushlight.tensor([1.]), rushlight.tensor([1.00001]))
    """
    warn(
        "torch.testing.assert_allclose() is deprecated since 1.12 and will be removed in a future release. Please use "
        "torch.testing.assert_close() instead.",
        FutureWarning,
    )
    a = actual if isinstance(actual, Tensor) else tensor(actual)
    b = expected if isinstance(expected, Tensor) else tensor(expected, dtype=a.dtype)
    if rtol is None and atol is None:
        both = [WIDER.get(t.dtype, TOLERANCES.get(t.dtype, (0.0, 0.0))) for t in (a, b)]
        rtol, atol = (max(numbers) for numbers in zip(*both))
    assert_close(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None)


def parts(a: Any, b: Any, path: Path, settings: Settings) -> list[tuple[Any, Any, Path]]:
    """The pairs of elements of two lists or dicts; none for other objects."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        if a.keys() != b.keys():
            raise settings.error(
                "The keys of the mappings do not match:\n"
                f"Missing keys in the actual mapping: {sorted(b.keys() - a.keys())}\n"
                f"Additional keys in the actual mapping: {sorted(a.keys() - b.keys())}",
                path,
            )
        return [(a[key], b[key], (*path, key)) for key in a]
    if is_sequence(a) and is_sequence(b):
        if len(a) != len(b):
            raise settings.error(f"The length of the sequences mismatch: {len(a)} != {len(b)}", path)
        return [(x, y, (*path, i)) for i, (x, y) in enumerate(zip(a, b))]
    return []


def is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def compared(a: Any, b: Any, path: Path, settings: Settings) -> list:
    """AssertionError unless two values without elements are close; TypeError for unsupported types."""
    if all(isinstance(x, (int, float, complex, np.number)) for x in (a, b)):
        a, b = (x.item() if isinstance(x, np.number) else x for x in (a, b))
    if a is None or b is None:
        if a is not b:
            raise settings.error(f"None mismatch: {a} is not {b}", path)
    elif all(isinstance(x, (bool, np.bool_)) for x in (a, b)):
        if bool(a) is not bool(b):
            raise settings.error(f"Booleans mismatch: {a} is not {b}", path)
    elif all(isinstance(x, (int, float, complex)) for x in (a, b)):
        compare_numbers(a, b, path, settings)
    elif related(a, b, settings):
        compare_tensors(as_tensor(a), as_tensor(b), path, settings)
    elif not (is_sequence(a) and is_sequence(b)) and not (isinstance(a, Mapping) and isinstance(b, Mapping)):
        raise type_error(f"No comparison pair was able to handle inputs of type {type(a)} and {type(b)}.")
    return []


def related(a: Any, b: Any, settings: Settings) -> bool:
    """Whether both are tensors, or both arrays, of one class or (if allowed) one of a subclass of the other's."""
    if not all(isinstance(x, Tensor) for x in (a, b)) and not all(
        isinstance(x, (np.ndarray, np.generic)) for x in (a, b)
    ):
        return False
    return type(a) is type(b) or (settings.subclasses and (isinstance(a, type(b)) or isinstance(b, type(a))))


def as_tensor(value: Any) -> Tensor:
    return value if isinstance(value, Tensor) else from_array(np.asarray(value))


def compare_numbers(a: Any, b: Any, path: Path, settings: Settings) -> None:
    if settings.dtype and type(a) is not type(b):
        raise settings.error(f"The (d)types do not match: {type(a)} != {type(b)}.", path)
    rtol, atol = (
        settings.tolerances(dtypes.of_scalar(a), dtypes.of_scalar(b))
        if settings.rtol is not None
        else ((0.0, 0.0) if isinstance(a, int) and isinstance(b, int) else TOLERANCES[dtypes.float64])
    )
    numbers_close(a, b, rtol, atol, path, settings)


def numbers_close(a: Any, b: Any, rtol: float, atol: float, path: Path, settings: Settings) -> None:
    difference = abs(a - b)
    if (
        a == b
        or (settings.equal_nan and a != a and b != b)
        or (math.isfinite(difference) and difference <= atol + rtol * abs(b))
    ):
        return
    exact = rtol == 0 == atol
    relative = difference / abs(b) if b else math.inf
    raise settings.error(
        f"Scalars are not {'equal' if exact else 'close'}!\n\nExpected {b} but got {a}.\nAbsolute difference: "
        f"{difference}"
        + ("" if exact else f" (up to {atol} allowed)")
        + f"\nRelative difference: {relative}"
        + ("" if exact else f" (up to {rtol} allowed)"),
        path,
    )


def compare_sparse(a: Any, b: Any, path: Path, settings: Settings) -> None:
    """AssertionError unless two tensors have the same layout, the same places and close values. At least one tensor is
    sparse."""
    if a.layout is not b.layout:
        text = f"The values for attribute 'layout' do not match: {a.layout} != {b.layout}."
        raise settings.error(text, path)
    if a.shape != b.shape:
        text = f"The values for attribute 'shape' do not match: {a.shape} != {b.shape}."
        raise settings.error(text, path)
    names: tuple[str, ...] = ("indices", "values")
    if not a.is_sparse:
        row = "csr" in repr(a.layout) or "bsr" in repr(a.layout)
        first = ("crow_indices", "col_indices") if row else ("ccol_indices", "row_indices")
        names = (*first, "values")
    else:
        a, b = a.coalesce(), b.coalesce()
    for name in names:
        compare_tensors(getattr(a, name)(), getattr(b, name)(), path, settings)


def compare_tensors(a: Tensor, b: Tensor, path: Path, settings: Settings) -> None:
    if not (a._dense and b._dense):
        compare_sparse(a, b, path, settings)
        return
    for name, checked, x, y in (
        ("shape", True, a.shape, b.shape),
        ("dtype", settings.dtype, a.dtype, b.dtype),
        ("stride()", settings.stride, a.stride(), b.stride()),
    ):
        if checked and x != y:
            raise settings.error(f"The values for attribute '{name}' do not match: {x} != {y}.", path)
    rtol, atol = settings.tolerances(a.dtype, b.dtype)
    kind = dtypes.promote_types(a.dtype, b.dtype)
    kind = dtypes.int64 if kind.category < dtypes.FLOATING else kind
    x, y = (from_array(t._array.astype(kind.numpy)) for t in (a, b))
    near = isclose(x, y, rtol, atol, settings.equal_nan)._array
    if near.all():
        return
    if not near.ndim:
        numbers_close(x._array.item(), y._array.item(), rtol, atol, path, settings)
    raise settings.error(report(x._array, y._array, near, rtol, atol), path)


def report(x: np.ndarray, y: np.ndarray, near: np.ndarray, rtol: float, atol: float) -> str:
    """The number of different elements, and the position of the largest difference."""
    exact = rtol == 0 == atol
    with np.errstate(all="ignore"):
        absolute = np.where(near, 0, np.abs(x - y))
        relative = np.where(near, 0, absolute / np.abs(y))
    lines = [
        f"Tensor-likes are not {'equal' if exact else 'close'}!",
        "",
        f"Mismatched elements: {np.count_nonzero(~near)} / {near.size} ({np.count_nonzero(~near) / near.size:.1%})",
    ]
    for name, values, allowed in (("absolute", absolute, atol), ("relative", relative.astype(relative_dtype(y)), rtol)):
        place = np.unravel_index(np.argmax(values), values.shape)
        lines.append(
            f"Greatest {name} difference: {values[place].item()} at index {tuple(int(i) for i in place)}"
            + ("" if exact else f" (up to {allowed} allowed)")
        )
    return "\n".join(lines)


def relative_dtype(y: np.ndarray) -> np.dtype:
    """The dtype of a relative difference of integers: the default dtype."""
    return dtypes.get_default_dtype().numpy if y.dtype.kind == "i" else np.abs(y).dtype


# -- making ----------------------------------------------------------------------------------------


def make_tensor(
    *shape: Any, dtype: Dtype, device: Any = "cpu", low: float | None = None, high: float | None = None,
    requires_grad: bool = False, noncontiguous: bool = False, exclude_zero: bool = False, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """Random numbers, uniform in [low, high): for floating and complex dtypes [-9, 9), integers [-9, 10), bool [0, 2).

    Unsigned integers start at 0. `noncontiguous`: every second element of a larger tensor; `exclude_zero`: 0 becomes 1,
    or the smallest normal number. ValueError for an empty or impossible interval, for integers that are to require
    grad, and for `noncontiguous` with `memory_format`.

    >>> rushlight.testing.make_tensor(2, 3, dtype=rushlight.float32).shape
    torch.Size([2, 3])
    """
    size = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], Sequence) else tuple(shape)
    whole = dtype.category < dtypes.FLOATING
    if noncontiguous and memory_format is not None:
        raise value_error(
            f"The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got {noncontiguous=} "
            f"and {memory_format=}"
        )
    if requires_grad and whole:
        raise value_error(f"`requires_grad=True` is not supported for boolean and integral dtypes, but got {dtype=}")
    least, most = interval(dtype, low, high)
    apart = noncontiguous and math.prod(size) > 1
    array = numbers(dtype, (*size[:-1], 2 * size[-1]) if apart else size, least, most)
    if apart:
        array = array[..., 1::2]
    if exclude_zero:
        array[array == 0] = 1 if whole else tiny(dtype)
    t = made(array, None, False, device)
    if memory_format is not None:
        t = t.contiguous(memory_format=memory_format)
    return t.requires_grad_(requires_grad)


def interval(dtype: Dtype, low: float | None, high: float | None) -> tuple[float, float]:
    """The bounds of the random numbers, limited to the range of the dtype."""
    if dtype.category < dtypes.FLOATING:
        info = None if dtype is dtypes.bool_ else dtypes.iinfo(dtype)
        bottom, top = (0, 2) if info is None else (info.min, min(info.max + 1, 2**63 - 1))
        usual = (0, 2) if info is None else (-9, 10)
    else:
        bottom, top, usual = dtypes.finfo(dtype).min, dtypes.finfo(dtype).max, (-9, 9)
    low, high = usual[0] if low is None else low, usual[1] if high is None else high
    if low != low or high != high:
        raise value_error(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low == high and dtype.category >= dtypes.FLOATING:
        warnings.warn(
            "Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is deprecated. Use "
            "`torch.full(...)` instead.",
            FutureWarning,
            stacklevel=3,
        )
    elif low >= high:
        raise value_error(f"`low` must be less than `high`, but got {low} >= {high}")
    elif high < bottom or low >= top:
        raise value_error(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} only supports "
            f"[{bottom}, {top})"
        )
    low, high = (min(max(bound, bottom), top) for bound in (low, high))
    return (math.ceil(low), math.ceil(high)) if dtype.category < dtypes.FLOATING else (low, high)


def numbers(dtype: Dtype, size: tuple, low: float, high: float) -> np.ndarray:
    """Uniform numbers in [low, high); the same for real and imaginary parts."""
    g = source(None)
    if dtype.category < dtypes.FLOATING:
        return g.randint(int(low), int(high), size, dtype.numpy)
    if low == high:
        return np.full(size, low, dtype.numpy)
    return g.uniform(size, dtype.numpy, low, high)


def tiny(dtype: Dtype) -> complex:
    least = dtypes.finfo(dtype).tiny
    return complex(least, least) if dtype.is_complex else least
