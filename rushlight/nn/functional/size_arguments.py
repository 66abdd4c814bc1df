"""Arguments that are one number for all dimensions, or one for each: kernel sizes, strides, paddings."""

from __future__ import annotations

from typing import Any

from rushlight.base.errors import runtime_error
from rushlight.core.arguments import integer
from rushlight.core.tensor import Tensor


def each(value: Any, n: int, name: str = "size") -> tuple[int, ...]:
    """A tuple of n numbers, from one number or a sequence of length 1 or n. RuntimeError otherwise."""
    if value.__class__ is int:
        return (value,) * n
    if not isinstance(value, (tuple, list)):
        return (integer(value, name),) * n
    found = tuple([integer(v, name) for v in value])
    if len(found) == 1:
        return found * n
    if len(found) != n:
        raise runtime_error(
            f"expected {name} to be a single integer value or a list of {n} values to match the convolution "
            f"dimensions, but got {name}={list(value)}"
        )
    return found


def with_batch(input: Tensor, n: int, name: str) -> tuple[Tensor, bool]:
    """(input as (N, C, *size), whether a batch dimension was added). RuntimeError for another shape."""
    ndim = input._array.ndim
    if ndim == n + 2:
        return input, False
    if ndim == n + 1:
        return input.unsqueeze(0), True
    raise runtime_error(
        f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {name}, but got input of size: "
        f"{list(input.shape)}",
        f"an input without channels: x[None, None] for one of one channel, (1, 1, *{n} sizes)"
        if ndim == n
        else "one batch dimension: x.flatten(0, 1)"
        if ndim == n + 3
        else "add or drop dimensions: unsqueeze(), flatten()",
    )


def check_filled(input: Tensor, n: int) -> None:
    """RuntimeError unless the input is (C, *size) or (N, C, *size) with n non-empty spatial dimensions."""
    shape = input._array.shape
    if len(shape) not in (n + 1, n + 2) or 0 in shape[-n - 1 :]:
        raise runtime_error(
            f"Expected {n + 1}D or {n + 2}D (batch mode) tensor with possibly 0 batch size and other non-zero "
            f"dimensions for input, but got: {list(shape)}"
        )


def without_batch(output: Tensor, added: bool) -> Tensor:
    """The output without the batch dimension that `with_batch` added."""
    return output.squeeze(0) if added else output
