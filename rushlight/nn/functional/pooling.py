"""Pooling in one, two and three dimensions: maxima, averages and lengths over windows."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from rushlight.base.errors import runtime_error, value_error
from rushlight.core.arguments import integer
from rushlight.core.build import unrecorded
from rushlight.core.mode import mode
from rushlight.core.tensor import Tensor, created, from_array, holder
from rushlight.core.views import into
from rushlight.kernels.layout import suggests_last
from rushlight.nn.functional.size_arguments import each, with_batch, without_batch
from rushlight.ops.index.along_dim import scatter
from rushlight.ops.math import elementwise as e
from rushlight.ops.nn import pool
from rushlight.ops.shape.views import laid_out, reshape

LETTERS = {1: "L", 2: "H, W", 3: "D, H, W"}


def named(function: Callable, name: str, doc: str) -> Callable:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def max_pooling(n: int) -> tuple[Callable, Callable]:
    """max_pool1d, max_pool2d or max_pool3d, and the form that always returns the indices too."""
    name = f"max_pool{n}d"

    def max_pool(
        input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
        ceil_mode: bool = False, return_indices: bool = False,
    ) -> Any:  # fmt: skip
        kernel, step, margin, spread = window(kernel_size, stride, padding, dilation, n)
        x, added = batched(input, n, name)
        if not return_indices and mode().batch is None and unrecorded(x, ()):
            values = pool.max_values(x, kernel, step, margin, spread, ceil_mode)
            return without_batch(values, added) if added else values
        values, indices = pool.max_pool(x, kernel, step, margin, spread, ceil_mode)
        if added:
            values, indices = without_batch(values, added), without_batch(indices, added)
        return (values, indices) if return_indices else values

    def with_indices(
        input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
        ceil_mode: bool = False, return_indices: bool = False,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        return max_pool(input, kernel_size, stride, padding, dilation, ceil_mode, True)

    return named(
        max_pool,
        name,
        f"""out[n, c, p] = max over k of input[n, c, p stride - padding + k dilation].

    (N, C, {LETTERS[n]}) or (C, {LETTERS[n]}); `stride`: the kernel's size unless told; `ceil_mode`: the last window may
    reach over the end; `return_indices`: (maxima, where they stand, flat over the spatial input). RuntimeError where no
    window fits or the padding is more than half the kernel.

    >>> rushlight.nn.functional.{name}(rushlight.ones(1, 1, {", ".join("4" * n)}), 2).shape
    torch.Size([1, 1, {", ".join("2" * n)}])
    """,
    ), told_where(with_indices, name, n, 3)


def told_where(function: Callable, name: str, n: int, size: int) -> Callable:
    """The form of `name` that always returns indices. `size`: the size with which the example has a single window."""
    return named(
        function,
        f"{name}_with_indices",
        f"""(values, indices) = {name}(..., return_indices=True).

    >>> x = rushlight.arange({3**n}.).reshape(1, 1, {", ".join("3" * n)})
    >>> values, indices = rushlight.nn.functional.{name}_with_indices(x, {size})
    >>> values.item(), indices.item()
    ({3**n - 1}.0, {3**n - 1})
    """,
    )


def avg_pooling(n: int) -> Callable:
    """avg_pool1d, avg_pool2d or avg_pool3d."""
    name = f"avg_pool{n}d"

    def avg_pool(
        input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None, *, out: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        kernel, step, margin, _ = window(kernel_size, None if stride == () else stride, padding, 1, n)
        if divisor_override is not None:
            divisor_override = integer(divisor_override, "divisor_override")
        x, added = batched(input, n, name)
        made = pool.avg_pool(x, kernel, step, margin, ceil_mode, count_include_pad, divisor_override)
        made = without_batch(made, added)
        return made if out is None else into(out, made)

    return named(
        avg_pool,
        name,
        f"""out[n, c, p] = mean over k of input[n, c, p stride - padding + k], padding being 0.

    (N, C, {LETTERS[n]}) or (C, {LETTERS[n]}); `stride`: the kernel's size unless told; `count_include_pad`: padding
    counts as elements; `divisor_override`: divide by this instead. RuntimeError where no window fits.

    >>> rushlight.nn.functional.{name}(rushlight.ones(1, 1, {", ".join("4" * n)}), 2).shape
    torch.Size([1, 1, {", ".join("2" * n)}])
    """,
    )


def window(kernel_size: Any, stride: Any, padding: Any, dilation: Any, n: int) -> tuple[tuple[int, ...], ...]:
    """Kernel, stride, padding and dilation, n numbers each. RuntimeError for invalid windows."""
    if kernel_size.__class__ is padding.__class__ is dilation.__class__ is int and (
        stride is None or stride.__class__ is int
    ):
        return window_of_numbers(kernel_size, stride, padding, dilation, n)
    kernel, margin = each(kernel_size, n, "kernel_size"), each(padding, n, "padding")
    spread = each(dilation, n, "dilation")
    step = kernel if stride is None or stride == [] else each(stride, n, "stride")
    check_window(kernel, step, margin, spread)
    return kernel, step, margin, spread


@lru_cache(maxsize=256)
def window_of_numbers(
    kernel: int, stride: int | None, padding: int, dilation: int, n: int
) -> tuple[tuple[int, ...], ...]:
    step = None if stride is None else (stride,) * n
    return window((kernel,) * n, step, (padding,) * n, (dilation,) * n, n)


@lru_cache(maxsize=256)
def check_window(kernel: tuple, stride: tuple, padding: tuple, dilation: tuple) -> None:
    """RuntimeError, in torch's words, for invalid windows."""
    if min(padding) < 0:
        raise runtime_error(f"pad must be non-negative, but got pad: {min(padding)}")
    for what, values in (("kernel_size", kernel), ("stride", stride), ("dilation", dilation)):
        if min(values) < 1:
            words = "must" if len(kernel) == 1 else "should"
            raise runtime_error(f"{what} {words} be greater than zero, but got {min(values)}")
    for k, p, d in zip(kernel, padding, dilation):
        if p > ((k - 1) * d + 1) // 2:
            raise runtime_error(
                f"pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and "
                f"dilation={d}",
                "pad the input itself: F.pad",
            )


def batched(input: Tensor, n: int, name: str) -> tuple[Tensor, bool]:
    """The input as (N, C, *size), and whether N was added to (C, *size). RuntimeError for other shapes."""
    ndim = input._array.ndim
    if ndim == n + 2:
        return input, False
    if ndim != n + 1:
        dims = f"{n + 1}D or {n + 2}D (batch mode) tensor"
        what = (
            f"Expected {dims} with optional 0 dim batch size for input"
            if n == 1
            else f"non-empty {dims} expected for input"
        )
        raise runtime_error(f"{name}: {what}, but got: {list(input.shape)}")
    return input.unsqueeze(0), True


def adaptive(input: Tensor, output_size: Any, n: int, name: str) -> tuple[Tensor, bool, tuple[int, ...]]:
    """The input with a batch dimension, whether the dimension was added, and the output size (None: the input's size).

    ValueError for too few dimensions, RuntimeError for too many or a size of another length.
    """
    if not isinstance(output_size, (tuple, list)):
        output_size = (output_size,) * n
    if len(output_size) != n:
        what = "'output_size' should contain one int" if n == 1 else f"{name}: internal error: output_size must be {n}"
        raise runtime_error(what, f"pass {n} numbers, or one for all dimensions", output_size=tuple(output_size))
    if n > 1 and input._array.ndim <= n:
        raise value_error(f"{name}: Input dimension should be at least {n + 1}", shape=tuple(input.shape))
    x, added = with_batch(input, n, name)
    size = tuple([s if o is None else integer(o, "output_size") for o, s in zip(output_size, x._array.shape[2:])])
    if min(size) < 0:
        raise runtime_error(
            f"Trying to create tensor with negative dimension {min(size)}: elements of output_size must be "
            f"greater than or equal to 0, but got {list(size)}",
            op=name,
        )
    return x, added, size


def adaptive_avg_pooling(n: int) -> Callable:
    """adaptive_avg_pool1d, 2d or 3d."""
    name = f"adaptive_avg_pool{n}d"

    def adaptive_avg_pool(input: Tensor, output_size: Any) -> Tensor:
        x, added, size = adaptive(input, output_size, n, name)
        return without_batch(pool.adaptive_avg_pool(x, size), added)

    doc = f"""out[n, c, p] = mean of input[n, c, floor(p size / out):ceil((p + 1) size / out)], in each dimension.

    (N, C, {LETTERS[n]}) or (C, {LETTERS[n]}) -> the same with the output size: one number, or one (or None: as it is)
    for each dimension. RuntimeError for an empty input.

    >>> rushlight.nn.functional.{name}(rushlight.ones(1, 1, {", ".join("5" * n)}), 2).shape
    torch.Size([1, 1, {", ".join("2" * n)}])
    """
    return named(adaptive_avg_pool, name, doc)


def adaptive_max_pooling(n: int) -> tuple[Callable, Callable]:
    """adaptive_max_pool1d, 2d or 3d, and the form that always returns the indices too."""
    name = f"adaptive_max_pool{n}d"

    def adaptive_max_pool(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        x, added, size = adaptive(input, output_size, n, name)
        values, indices = (without_batch(t, added) for t in pool.adaptive_max_pool(x, size))
        return (values, indices) if return_indices else values

    def with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> tuple[Tensor, Tensor]:
        return adaptive_max_pool(input, output_size, True)

    doc = f"""out[n, c, p] = max of input[n, c, floor(p size / out):ceil((p + 1) size / out)], in each dimension.

    (N, C, {LETTERS[n]}) or (C, {LETTERS[n]}) -> the same with the output size: one number, or one (or None: as it is)
    for each dimension; `return_indices`: (maxima, where they stand, flat over the spatial input).

    >>> rushlight.nn.functional.{name}(rushlight.ones(1, 1, {", ".join("5" * n)}), 2).shape
    torch.Size([1, 1, {", ".join("2" * n)}])
    """
    return named(adaptive_max_pool, name, doc), told_where(with_indices, name, n, 1)


def max_unpooling(n: int) -> Callable:
    """max_unpool1d, 2d or 3d."""
    name = f"max_unpool{n}d"

    def max_unpool(
        input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
    ) -> Tensor:
        if indices._array.shape != input._array.shape:
            raise runtime_error(
                f"Expected shape of indices to be same as that of the input tensor ({list(input.shape)}) but got "
                f"indices tensor with shape: {list(indices.shape)}"
            )
        x, added = with_batch(input, n, name)
        where = indices.unsqueeze(0) if added else indices
        kernel = each(kernel_size, n, "kernel_size")
        step = kernel if stride is None else each(stride, n, "stride")
        size = unpooled_size(x, kernel, step, each(padding, n, "padding"), output_size, n)
        return without_batch(scatter_to_indices(x, where, size), added)

    doc = f"""out[n, c, indices[n, c, p]] = input[n, c, p], 0 elsewhere: maxima go back where `max_pool{n}d` found them.

    (N, C, {LETTERS[n]}) or (C, {LETTERS[n]}); `indices`, of the input's shape, are flat over the spatial output.
    `output_size`: the size before pooling, where the window leaves it open. ValueError for one that cannot have been,
    RuntimeError for indices outside it.

    >>> from rushlight.nn import functional as F
    >>> x = rushlight.arange({2**n}.).reshape(1, 1, {", ".join("2" * n)})
    >>> F.max_unpool{n}d(*F.max_pool{n}d(x, 2, return_indices=True), 2).flatten()
    tensor([{"0., " * (2**n - 1)}{2**n - 1}.])
    """
    return named(max_unpool, name, doc)


def scatter_to_indices(x: Tensor, where: Tensor, size: tuple[int, ...]) -> Tensor:
    """x (N, C, *out) written to the flat indices `where` of a tensor (N, C, *size); 0 elsewhere. RuntimeError for an
    index out of range."""
    n, c = x._array.shape[:2]
    at = holder(where)._array
    if at.size and (at.min() < 0 or at.max() >= prod(size)):
        raise runtime_error(
            f"Found an invalid max index: {at.max()} (output volumes are of size " + "x".join(map(str, size)) + ")"
        )
    blank = created(from_array(np.zeros((n, c, prod(size)), x._array.dtype)))
    many = prod(x._array.shape[2:])
    flat = scatter(blank, 2, reshape(where, (n, c, many)), reshape(x, (n, c, many)))
    made = reshape(flat, (n, c, *size))
    return in_format_of(x, made) if len(size) == 2 else made  # torch lays out volumes in C order


def in_format_of(images: Tensor, made: Tensor) -> Tensor:
    """The result in the memory format of the input (channels_last stays channels_last)."""
    a = images._array
    return laid_out(made, (0, *range(2, a.ndim), 1)) if a.__class__ is np.ndarray and suggests_last(a) else made


def unpooled_size(x: Tensor, kernel: tuple, stride: tuple, padding: tuple, output_size: Any, n: int) -> tuple[int, ...]:
    """The size before pooling. ValueError if the given size is impossible."""
    usual = [(s - 1) * st + k - 2 * p for s, k, st, p in zip(x._array.shape[2:], kernel, stride, padding)]
    if output_size is None:
        return tuple(usual)
    size = tuple(int(s) for s in output_size)[-n:]
    if len(tuple(output_size)) not in (n, n + 1, n + 2):
        raise value_error(
            f"output_size should be a sequence containing {n} or {n + 2} elements, but it has a length of "
            f"'{len(tuple(output_size))}'"
        )
    for d, (have, want) in enumerate(zip(size, usual)):
        if not want - stride[d] < have < want + stride[d]:
            raise value_error(
                f'invalid output_size "{size}" (dim {d} must be between {want - stride[d]} and {want + stride[d]})'
            )
    return size


def lp_pooling(n: int) -> Callable:
    """lp_pool1d, 2d or 3d."""
    average = AVERAGES[n - 1]

    def lp_pool(
        input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> Tensor:
        volume = prod(each(kernel_size, n, "kernel_size"))
        mean = average(e.pow(input, norm_type), kernel_size, stride, 0, ceil_mode)
        return e.pow(e.mul(e.mul(e.sign(mean), e.relu(e.abs(mean))), volume), 1.0 / norm_type)

    doc = f"""out = (sum over the window of x^p)^(1/p), p = norm_type; windows as in `avg_pool{n}d`.

    (N, C, {LETTERS[n]}) or (C, {LETTERS[n]}). nan where the sum is negative.

    >>> rushlight.nn.functional.lp_pool{n}d(rushlight.ones(1, 1, {", ".join("2" * n)}), 2, 2).flatten()
    tensor([{("1.4142", "2.", "2.8284")[n - 1]}])
    """
    return named(lp_pool, f"lp_pool{n}d", doc)


(
    (max_pool1d, max_pool1d_with_indices),
    (max_pool2d, max_pool2d_with_indices),
    (max_pool3d, max_pool3d_with_indices),
) = (max_pooling(n) for n in (1, 2, 3))
avg_pool1d, avg_pool2d, avg_pool3d = AVERAGES = tuple(avg_pooling(n) for n in (1, 2, 3))
adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = (adaptive_avg_pooling(n) for n in (1, 2, 3))
adaptive_max_pool1d, adaptive_max_pool1d_with_indices = adaptive_max_pooling(1)
adaptive_max_pool2d, adaptive_max_pool2d_with_indices = adaptive_max_pooling(2)
adaptive_max_pool3d, adaptive_max_pool3d_with_indices = adaptive_max_pooling(3)
max_unpool1d, max_unpool2d, max_unpool3d = (max_unpooling(n) for n in (1, 2, 3))
lp_pool1d, lp_pool2d, lp_pool3d = (lp_pooling(n) for n in (1, 2, 3))
