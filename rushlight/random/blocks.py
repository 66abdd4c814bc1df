"""Arrays to be filled with random numbers, block by block, in torch's order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

import numpy as np

from rushlight.base.dtypes import of
from rushlight.base.errors import not_implemented_error

Shape = int | Sequence[int]
DType = str | type | np.dtype  # numpy.typing has such types, but is slow to import
# elements of a block: its float64 temporaries stay in the L2 cache, and whole groups of 16 fit
BLOCK = 32 * 624
_KINDS = {"f": "floating", "c": "complex", "i": "signed integer", "u": "unsigned integer", "b": "bool"}


def empty(op: str, shape: Shape, dtype: DType, kinds: str) -> tuple[np.ndarray, np.ndarray]:
    """A new array and its flat view, of the real and imaginary parts if it is complex.

    `kinds`: the dtypes of `op`: f floating, c complex, i signed, u unsigned integer, b bool. NotImplementedError for
    another dtype, as in torch."""
    out = np.empty(shape, dtype)
    kind = kind_of(out.dtype)
    if kind not in kinds:
        raise not_implemented_error(
            f"\"{op}\" not implemented for '{of(out.dtype).scalar_type}': use a dtype that is "
            + " or ".join(_KINDS[k] for k in kinds)
        )
    flat = out.reshape(-1)
    return out, flat.view(out.real.dtype) if kind == "c" else flat


def count_of(shape: Shape) -> int:
    """The number of elements."""
    return shape if isinstance(shape, int) else prod(shape)


def kind_of(dtype: np.dtype) -> str:
    """NumPy's kind of a dtype; 'f' for bfloat16, too, whose kind in NumPy is 'V'."""
    return "f" if dtype.kind == "V" and dtype.name == "bfloat16" else dtype.kind


def blocks(flat: np.ndarray) -> Iterable[np.ndarray]:
    """Views of up to BLOCK elements, one after another."""
    return (flat,) if len(flat) <= BLOCK else [flat[start : start + BLOCK] for start in range(0, len(flat), BLOCK)]


def memory_axes(array: np.ndarray) -> list[int]:
    """The axes sorted by stride, largest first: torch fills a tensor in place in this order."""
    strides, axes = array.strides, list(range(array.ndim))
    return axes if array.flags.c_contiguous else sorted(axes, key=lambda axis: -abs(strides[axis]))


def in_memory_order(array: np.ndarray) -> np.ndarray:
    """A view with the axes in the order of `memory_axes`.

    For `x.uniform_()` on an array `x` that may be transposed or sliced:

    >>> x = np.empty((3, 2)).T
    >>> target = in_memory_order(x)
    >>> target[...] = rushlight.Generator().uniform(target.shape, target.dtype)
    """
    return array.transpose(memory_axes(array))
