"""Fractional max pooling: windows that begin at random steps."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from rushlight.base.errors import runtime_error, value_error
from rushlight.core.tensor import Tensor
from rushlight.kernels.fractional_pool import check_windows
from rushlight.nn.functional.size_arguments import each, with_batch, without_batch
from rushlight.ops.nn import pool
from rushlight.ops.op_errors import not_taken
from rushlight.ops.tensor.node_names import called
from rushlight.ops.tensor.random_tensors import rand

LETTERS = {2: "H, W", 3: "D, H, W"}


def fractional_max_pooling(n: int) -> tuple[Callable, Callable]:
    """fractional_max_pool2d or 3d, and the form that always returns the indices too."""
    name = f"fractional_max_pool{n}d"

    def with_indices(
        input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
        return_indices: bool = False, _random_samples: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        if output_size is None and output_ratio is None:
            raise value_error(f"{name} requires specifying either an output_size or an output_ratio")
        kernel = whole(kernel_size, n, name, "kernel_size")
        x, added = with_batch(input, n, name)
        if output_size is None:
            ratios = output_ratio if isinstance(output_ratio, (tuple, list)) else (output_ratio,) * n
            if len(ratios) != n:
                raise value_error(
                    f"{name} requires output_ratio to either be a single Int or tuple of Ints.",
                    f"pass one for each of the {n} dimensions",
                    output_ratio=ratios,
                )
            output_size = tuple(int(s * float(r)) for s, r in zip(x._array.shape[2:], ratios))
        out = whole(output_size, n, name, "output_size")
        check(x, kernel, name)
        check_windows(x._array.shape[2:], kernel, out)  # an error must come before the draw
        samples = (
            rand(*x._array.shape[:2], n, dtype=x.dtype) if _random_samples is None else checked(_random_samples, x, n)
        )
        values, indices = pool.fractional_max_pool(x, samples, kernel, out)
        called(values, f"FractionalMaxPool{n}DBackward0")
        return without_batch(values, added), without_batch(indices, added)

    def fractional_max_pool(
        input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
        return_indices: bool = False, _random_samples: Tensor | None = None,
    ) -> Any:  # fmt: skip
        values, indices = with_indices(input, kernel_size, output_size, output_ratio, True, _random_samples)
        return (values, indices) if return_indices else values

    fractional_max_pool.__name__ = fractional_max_pool.__qualname__ = name
    with_indices.__name__ = with_indices.__qualname__ = f"{name}_with_indices"
    with_indices.__doc__ = f"""(values, indices) = {name}(..., return_indices=True).

    >>> x = rushlight.arange({3**n}.).reshape(1, 1, {", ".join("3" * n)})
    >>> values, indices = rushlight.nn.functional.{name}_with_indices(x, 2, output_size=1)
    >>> values.item(), indices.item()
    ({3**n - 1}.0, {3**n - 1})
    """
    fractional_max_pool.__doc__ = f"""out[n, c, p] = max over k of input[n, c, start(p) + k], starts random, even on average.

    (N, C, {LETTERS[n]}) or (C, {LETTERS[n]}) -> the same with `output_size`, or `output_ratio` times the input's size.
    `return_indices`: (maxima, where they stand, flat); `_random_samples` (N, C, {n}): in place of fresh ones from
    [0, 1). ValueError without size and ratio, RuntimeError where the windows do not fit. B. Graham, *Fractional
    max-pooling*, 2014.

    >>> rushlight.nn.functional.{name}(rushlight.ones(1, 1, {", ".join("7" * n)}), 2, output_size=5).shape
    torch.Size([1, 1, {", ".join("5" * n)}])
    """
    return fractional_max_pool, with_indices


def whole(value: Any, n: int, name: str, what: str) -> tuple[int, ...]:
    if isinstance(value, (tuple, list)) and len(value) not in (1, n):
        raise runtime_error(
            f"{name}: {what} must either be a single Int or tuple of Ints", f"pass 1 or {n} numbers", got=tuple(value)
        )
    return each(value, n, what)


def check(x: Tensor, kernel: tuple[int, ...], name: str) -> None:
    """RuntimeError or NotImplementedError for empty windows, an empty input, or a dtype that the op does not take:
    before random numbers are drawn."""
    op = pool.fractional_max_pool.op
    if x._array.dtype in op.refused:
        raise not_taken(op, (x,), x.dtype)
    if min(kernel) < 1:
        raise runtime_error(f"{name}: kernel_size should be greater than zero, but got {kernel}")
    if prod(x._array.shape[1:]) == 0:
        at = x._array.shape.index(0, 1)
        raise runtime_error(
            f"{name}(): Expected input to have non-zero size for non-batch dimensions, but got{list(x.shape)} "
            f"with dimension {at} being empty."
        )


def checked(samples: Tensor, x: Tensor, n: int) -> Tensor:
    """The given samples. RuntimeError, in torch's words, if they do not fit the input."""
    shape, what = samples._array.shape, ""
    if samples.dtype is not x.dtype:
        what = "Expect _random_samples to have the same dtype as input"
    elif len(shape) != 3:
        what = f"Expect _random_samples to have 3 dimensions, got {len(shape)}"
    elif shape[0] < x._array.shape[0]:
        what = "Expect _random_samples.size(0) no less then input batch size."
    elif shape[1] != x._array.shape[1]:
        what = "Expect _random_samples.size(1) equals to input channel size."
    elif shape[2] != n:
        what = f"Expect _random_samples.size(2) equals to {n}; got {shape[2]}."
    if what:
        raise runtime_error(what, samples=shape, input=tuple(x.shape))
    return samples


fractional_max_pool2d, fractional_max_pool2d_with_indices = fractional_max_pooling(2)
fractional_max_pool3d, fractional_max_pool3d_with_indices = fractional_max_pooling(3)
