"""Reordered elements, and rarely used views."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.base.errors import runtime_error
from rushlight.base.size import Size
from rushlight.core.arguments import integer, sizes, wrap
from rushlight.core.tensor import Tensor
from rushlight.ops.composites import composite
from rushlight.ops.linalg.matmul_api import conjugate_transpose
from rushlight.ops.shape import views as s
from rushlight.ops.shape.pad import constant_pad
from rushlight.ops.tensor.node_names import called


@composite()
def ravel(input: Tensor) -> Tensor:
    """The elements as a vector in row-major order: a view if possible, else a copy.

    >>> rushlight.ravel(rushlight.tensor([[1, 2], [3, 4]]))
    tensor([1, 2, 3, 4])
    """
    return s.reshape(s.contiguous(input), (input._array.size,))


@composite()
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """out_ji = input_ij: two dimensions exchanged, a view; `transpose` by NumPy's name.

    >>> rushlight.swapaxes(rushlight.zeros(2, 3), 0, 1).shape
    torch.Size([3, 2])
    """
    return s.transpose(input, axis0, axis1)


@composite()
def adjoint(input: Tensor) -> Tensor:
    """The last two dimensions swapped, and conjugated. RuntimeError for vectors.

    >>> rushlight.adjoint(rushlight.tensor([[1, 2j]]))
    tensor([[1.-0.j],
            [0.-2.j]])
    """
    return conjugate_transpose(input, "adjoint()")


@composite()
def fliplr(input: Tensor) -> Tensor:
    """out[:, i] = input[:, n - 1 - i]: the second dimension reversed, a copy. RuntimeError for less than two
    dimensions.

    >>> rushlight.fliplr(rushlight.tensor([[1, 2], [3, 4]]))
    tensor([[2, 1],
            [4, 3]])
    """
    if input._array.ndim < 2:
        raise runtime_error("Input must be >= 2-d.", "use flip(0)", op="fliplr")
    return s.flip(input, (1,))


@composite()
def flipud(input: Tensor) -> Tensor:
    """out[i] = input[n - 1 - i]: the first dimension reversed, a copy. RuntimeError for a 0-d tensor.

    >>> rushlight.flipud(rushlight.tensor([[1, 2], [3, 4]]))
    tensor([[3, 4],
            [1, 2]])
    """
    if input._array.ndim < 1:
        raise runtime_error("Input must be >= 1-d.", op="flipud")
    return s.flip(input, (0,))


@composite()
def rot90(input: Tensor, k: int = 1, dims: Any = (0, 1)) -> Tensor:
    """Rotated k times by 90 degrees in the plane of two dimensions, from the first towards the second; a copy.

    >>> rushlight.rot90(rushlight.tensor([[1, 2], [3, 4]]))
    tensor([[2, 4],
            [1, 3]])
    """
    k, ndim = integer(k, "k"), input._array.ndim
    if len(dims) != 2:
        raise runtime_error(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if ndim < 2:
        raise runtime_error(f"expected total dims >= 2, but got total dims = {ndim}")
    first, second = wrap(dims[0], ndim), wrap(dims[1], ndim)
    if first == second:
        raise runtime_error(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    if k % 4 == 0:
        return called(s.laid_out(input, tuple(range(ndim))), "Rot90Backward0")
    if k % 4 == 2:
        return called(s.flip(input, (first, second)), "Rot90Backward0")
    return called(
        s.clone(s.transpose(s.flip(input, (second if k % 4 == 1 else first,)), first, second)), "Rot90Backward0"
    )


@composite()
def constant_pad_nd(input: Tensor, pad: Any, value: Any = 0) -> Tensor:
    """The tensor padded with elements of one value; `pad`: the amounts before and after, from the last dimension on.

    Negative amounts crop. RuntimeError for an odd number of amounts, or for more amounts than the dimensions allow.

    >>> rushlight.constant_pad_nd(rushlight.tensor([1, 2]), (1, 2))
    tensor([0, 1, 2, 0, 0])
    """
    amounts, ndim = tuple([integer(n, "pad") for n in pad]), input._array.ndim
    if len(amounts) % 2:
        raise runtime_error(f"Length of pad must be even but instead it equals {len(amounts)}")
    if len(amounts) > 2 * ndim:
        raise runtime_error(
            "Length of pad should be no more than twice the number of dimensions of the input. Pad length is "
            f"{len(amounts)} while the input has {ndim} dimensions."
        )
    pairs = list(zip(amounts[::2], amounts[1::2]))[::-1]
    return constant_pad(input, ((0, 0),) * (ndim - len(pairs)) + tuple(pairs), value)


@composite(tensor=False)
def broadcast_shapes(*shapes: Any) -> Any:
    """The common shape to which all shapes broadcast. RuntimeError if there is none.

    >>> rushlight.broadcast_shapes((2, 1), (3,))
    torch.Size([2, 3])
    """
    try:
        found = np.broadcast_shapes(*[sizes(shape) for shape in shapes])
    except ValueError:
        raise runtime_error(
            "Shape mismatch: objects cannot be broadcast to a single shape",
            "make sizes equal, or 1, counted from the last dimension",
            shapes=shapes,
        ) from None
    return Size(found)
