"""Windows that slide over the last, spatial dimensions: their number, copies of windows, sums of windows, unfold and
fold.

Tap k of window o is at input position `o * stride - padding + k * dilation`. So one tap over all windows is a strided
slice of the input, and the windows whose tap is outside the input (on padding) are a prefix and a suffix. No array is
padded: a tap is a pair of slices, and positions outside the slices are padding.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from math import prod
from operator import mul
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray
from numpy.lib.stride_tricks import as_strided

Ints = tuple[int, ...]
Pairs = list[tuple[slice, slice]]


class Tap(NamedTuple):
    """One position in the kernel: its subscripts in columns (..., *kernel, *out), in the windows, and in the input."""

    column: tuple
    out: tuple
    input: tuple


def reach(size: int, kernel: int, stride: int, padding: int, dilation: int, out: int) -> list[tuple]:
    """(k, slice of the windows, slice of the input) for each tap k that meets the input, in one dimension."""
    met = []
    for k in range(kernel):
        offset = k * dilation - padding
        first = max(0, -(offset // stride))  # the first window whose tap k is at 0 or later
        last = min(out - 1, (size - 1 - offset) // stride)
        if first <= last:
            start = first * stride + offset
            met.append((k, slice(first, last + 1), slice(start, last * stride + offset + 1, stride)))
    return met


@lru_cache(maxsize=128)
def taps(size: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, out: Ints) -> tuple[Tap, ...]:
    """The taps that meet the input, in row-major order of the kernel."""
    met = []
    for dims in product(*map(reach, size, kernel, stride, padding, dilation, out)):
        at, windows, inputs = zip(*dims)
        met.append(Tap((..., *at, *windows), (..., *windows), (..., *inputs)))
    return tuple(met)


@lru_cache(maxsize=1024)
def window_count(size: int, kernel: int, stride: int, padding: int, dilation: int, ceil: bool = False) -> int:
    """(size + 2 padding - dilation (kernel - 1) - 1) / stride + 1, rounded down, or up if `ceil`; may be 0 or less.

    Rounded up, the last window must start inside the input or the left padding (torch's rule).
    """
    room = size + 2 * padding - dilation * (kernel - 1) - 1
    count = (room + (stride - 1 if ceil else 0)) // stride + 1
    return count - 1 if ceil and (count - 1) * stride >= size + padding else count


def window_counts(size: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil: bool = False) -> Ints:
    return tuple([window_count(*dims, ceil) for dims in zip(size, kernel, stride, padding, dilation)])


def in_3d(numbers: Ints, fill: int) -> Ints:
    """One number for each of three spatial dimensions; missing leading dimensions get `fill`."""
    return (fill,) * (3 - len(numbers)) + tuple(numbers)


def valid_windows(size: int, kernel: int, stride: int, padding: int, dilation: int, out: int) -> list[slice]:
    """Slices of each window without padding, in one dimension."""
    windows = []
    for start in range(-padding, out * stride - padding, stride):
        first = start if start >= 0 else start % dilation
        windows.append(slice(first, min(size, start + (kernel - 1) * dilation + 1), dilation))
    return windows


def adaptive_windows(size: int, out: int) -> list[slice]:
    """Slices of each of `out` nearly equal parts, in one dimension."""
    return [slice(p * size // out, -(-(p + 1) * size // out)) for p in range(out)]


def copy_windows(x: ndarray, columns: ndarray, stride: Ints, padding: Ints, dilation: Ints) -> None:
    """columns (..., *kernel, *out) = the windows of x (..., *size). Elements on padding are left unchanged."""
    n = len(stride)
    size, kernel, out = x.shape[-n:], columns.shape[-2 * n : -n], columns.shape[-n:]
    # 1 to 5 times as fast as one tap at a time
    if all(map(inside, size, kernel, stride, padding, dilation, out)):
        whole: Any = (..., *[slice(-p, None) for p in padding])
        columns[...] = all_windows(x[whole], kernel, out, stride, dilation)
    else:
        for tap in taps(size, kernel, stride, padding, dilation, out):
            columns[tap.column] = x[tap.input]


def inside(size: int, kernel: int, stride: int, padding: int, dilation: int, out: int) -> bool:
    """True if all windows are inside the input, in one dimension."""
    return padding <= 0 and (out - 1) * stride + (kernel - 1) * dilation - padding < size


def all_windows(x: ndarray, kernel: Ints, out: Ints, stride: Ints, dilation: Ints) -> ndarray:
    """The windows of x (..., *size) as a view (..., *kernel, *out) of overlapping memory; read-only."""
    n = len(stride)
    steps = x.strides[-n:]
    strides = [*x.strides[:-n], *map(mul, steps, dilation), *map(mul, steps, stride)]
    return as_strided(x, (*x.shape[:-n], *kernel, *out), strides, writeable=False)


def add_windows(x: ndarray, columns: ndarray, stride: Ints, padding: Ints, dilation: Ints) -> None:
    """x (..., *size) += columns (..., *kernel, *out), each element at its source position: the transpose of
    `copy_windows`.
    """
    n = len(stride)
    kernel, out = columns.shape[-2 * n : -n], columns.shape[-n:]
    for tap in taps(x.shape[-n:], kernel, stride, padding, dilation, out):
        target = x[tap.input]
        np.add(target, columns[tap.column], out=target)


def wide_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype to compute in: float32 for float16 and bfloat16 (kind V), otherwise the array's own."""
    return np.dtype(np.float32) if dtype.itemsize == 2 and dtype.kind in "fV" else dtype


def check_windows(op: str, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> None:
    """RuntimeError unless kernel, stride and dilation are positive and padding is not negative."""
    facts = {"kernel_size": (kernel, 1), "stride": (stride, 1), "padding": (padding, 0), "dilation": (dilation, 1)}
    for name, (values, least) in facts.items():
        if len(values) != len(kernel):
            raise RuntimeError(
                f"{op}: {name} has {len(values)} values for {len(kernel)} spatial dimensions; give one number or "
                f"{len(kernel)}"
            )
        if min(values) < least:
            rule = "should be greater than zero" if least else "should not be negative"
            raise RuntimeError(f"{op}: {name} {rule}, but got {name}={values}")


def unfold(x: ndarray, kernel: Ints, dilation: Ints, padding: Ints, stride: Ints) -> ndarray:
    """Windows as columns: out[n, (c, i, j), (p, q)] = x[n, c, p s - pad + i d, q s - pad + j d], 0 on padding.

    x (N, C, H, W) -> (N, C kh kw, L), the L windows in row-major order; any dtype; any number of spatial dimensions, of
    which torch has two. `fold` is its derivative. RuntimeError if no window fits.

        >>> unfold(np.arange(9.0).reshape(1, 1, 3, 3), (2, 2), (1, 1), (0, 0), (1, 1))[0, :, 0].tolist()
        [0.0, 1.0, 3.0, 4.0]
    """
    check_windows("unfold", kernel, stride, padding, dilation)
    images, channels, *size = x.shape
    out = window_counts(tuple(size), kernel, stride, padding, dilation)
    if min(out) < 1:
        raise RuntimeError(
            f"Given input with spatial size {tuple(size)}, kernel_size={kernel}, dilation={dilation}, "
            f"padding={padding}, calculated shape of the array of sliding blocks as {out}, but its components must be "
            "at least one. unfold: pad the input or take a smaller kernel"
        )
    columns = np.zeros((images, channels, *kernel, *out), x.dtype)
    copy_windows(x, columns, stride, padding, dilation)
    return columns.reshape(images, channels * prod(kernel), prod(out))


def fold(columns: ndarray, output_size: Ints, kernel: Ints, dilation: Ints, padding: Ints, stride: Ints) -> ndarray:
    """The windows added up at their positions: out[n, c, h, w] is the sum of the elements that `unfold` copies from it.

    columns (N, C kh kw, L) -> (N, C, *output_size); any dtype. `unfold` is its derivative. RuntimeError if the rows are
    not a multiple of the kernel's size, or L is not the number of windows in `output_size`.

        >>> fold(np.ones((1, 4, 4)), (3, 3), (2, 2), (1, 1), (0, 0), (1, 1))[0, 0].tolist()
        [[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 1.0]]
    """
    check_windows("fold", kernel, stride, padding, dilation)
    images, rows, length = columns.shape
    if rows % prod(kernel):
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
            f"input.size(1)={rows} and kernel_size={kernel}. fold: it should be channels * {prod(kernel)}"
        )
    out = window_counts(output_size, kernel, stride, padding, dilation)
    if min(out) < 1 or prod(out) != length:
        raise RuntimeError(
            f"Given output_size={output_size}, kernel_size={kernel}, dilation={dilation}, padding={padding}, "
            f"stride={stride}, expected size of input's dimension 2 to match the calculated number of sliding blocks "
            f"{' * '.join(map(str, out))} = {prod(out)}, but got input.size(2)={length}. fold: pass the "
            "same output_size and window as to unfold"
        )
    x = np.zeros((images, rows // prod(kernel), *output_size), wide_dtype(columns.dtype))
    add_windows(x, columns.reshape(*x.shape[:2], *kernel, *out), stride, padding, dilation)
    return x.astype(columns.dtype, copy=False)


def check_indices(op: str, indices: ndarray, size: Ints) -> None:
    volume = prod(size)
    if indices.dtype != np.int64:
        raise IndexError(f"{op}: indices should be int64, but got {indices.dtype}; convert with .long()")
    # as unsigned, a negative number is huge
    if indices.size and indices.view(np.uint64).max() >= volume:
        raise IndexError(
            f"{op}: indices from {indices.min()} to {indices.max()}, but a plane of size {tuple(size)} has the "
            f"positions 0 to {volume - 1}"
        )
