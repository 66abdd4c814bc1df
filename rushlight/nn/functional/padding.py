"""Padding: with a number, or with the input's own elements, mirrored, repeated or from the other end."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from rushlight.base.errors import not_implemented_error, runtime_error, value_error
from rushlight.core.arguments import check_dtypes, integer
from rushlight.core.tensor import Tensor
from rushlight.nn.functional.size_arguments import check_filled
from rushlight.ops.shape.pad import bordered, constant_pad
from rushlight.ops.shape.views import clone, contiguous

# mode -> the largest padding of a side, minus the size
PADDING_LIMITS = {"reflect": -1, "circular": 0, "replicate": inf}


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """out = elements before, input, elements after: (before, after) of the last dimension, then of the one before it,
    ...

    `mode`: 'constant' (`value`, default 0), 'reflect' (mirrored at the first and last element), 'replicate' (first and
    last element repeated), 'circular' (continued from the other end). Negative amounts cut off. All but 'constant' pad
    1 to 3 spatial dimensions of (N, C, ...) or (C, ...). RuntimeError for amounts that are too large.

    >>> from rushlight.nn import functional as F
    >>> x = rushlight.tensor([[1, 2, 3]])
    >>> F.pad(x, (1, 2)), F.pad(x, (1, 2), mode="reflect"), F.pad(x, (0, -1))
    (tensor([[0, 1, 2, 3, 0, 0]]), tensor([[2, 1, 2, 3, 2, 1]]), tensor([[1, 2]]))
    """
    amounts = [integer(a, "pad") for a in pad]
    ndim = input._array.ndim
    if len(amounts) % 2:
        raise runtime_error("Padding length must be divisible by 2", pad=tuple(amounts))
    if len(amounts) > 2 * ndim:
        raise runtime_error(
            "Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(amounts)} and input of dimension {ndim}"
        )
    n = len(amounts) // 2
    each = [(0, 0)] * (ndim - n) + list(zip(amounts[::2], amounts[1::2]))[::-1]
    if mode == "constant":
        return constant_pad(input, tuple(each), 0 if value is None else value)
    if value is not None and value != 0:
        raise value_error(f'Padding mode "{mode}" doesn\'t take in value argument', "omit value=")
    if mode not in PADDING_LIMITS or not 1 <= n <= 3 or ndim not in (n + 1, n + 2):
        raise not_implemented_error(
            f"Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now: mode {mode!r}, {n} "
            f"dimensions of an input of {ndim}",
            "pad 1 to 3 spatial dimensions, in mode 'reflect', 'replicate' or 'circular'",
        )
    if mode != "circular":
        check_dtypes(f"pad, mode '{mode}',", "uifc", input)
    if mode == "circular":
        input = contiguous(input)  # torch returns the other modes in the input's memory format
    else:
        check_filled(input, n)
    if not any(amounts):
        return clone(input)  # a copy, as for other amounts
    for d in range(ndim - 1, ndim - 1 - n, -1):
        check_amounts(input, d, *each[d], mode)
    return bordered(input, mode, tuple(each)) if min(amounts) >= 0 else cut(input, each, mode)


def cut(input: Tensor, each: list[tuple[int, int]], mode: str) -> Tensor:
    """The tensor padded by (before, after) of each dimension. Negative amounts cut elements off."""
    less, more = (tuple([(nearer(a, 0), nearer(b, 0)) for a, b in each]) for nearer in (min, max))
    if mode != "circular":
        return constant_pad(bordered(input, mode, more), less, 0)
    # crop first, so that cropped elements are not wrapped around
    input = constant_pad(input, less, 0)
    for d, (before, after) in enumerate(more):
        check_amounts(input, d, before, after, mode)
    return bordered(input, mode, more)


def check_amounts(x: Tensor, dim: int, before: int, after: int, mode: str) -> None:
    """RuntimeError for an amount that is too large for its dimension."""
    size = x._array.shape[dim]
    if not (before or after):
        return
    if size + before + after < 1 or size == 0:
        raise runtime_error(
            f"input (size {size} in dimension {dim}) with padding ({before}, {after}) is too small: calculated "
            f"output size {size + before + after}"
        )
    if max(before, after) > size + PADDING_LIMITS[mode]:
        what = (
            "Padding value causes wrapping around more than once."
            if mode == "circular"
            else (
                f"Padding size should be less than the corresponding input dimension, but got: padding ({before}, "
                f"{after}) at dimension {dim} of input {list(x.shape)}"
            )
        )
        raise runtime_error(what, "pad less", size=size, padding=(before, after))
