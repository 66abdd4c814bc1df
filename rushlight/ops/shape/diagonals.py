"""Diagonals: reading them, and building matrices from them."""

from __future__ import annotations

from rushlight.base.errors import runtime_error
from rushlight.core.arguments import wrap
from rushlight.core.tensor import Tensor
from rushlight.ops.composites import composite, given
from rushlight.ops.shape import views as s
from rushlight.ops.tensor.casts import clone


@composite()
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Matrices in `dim1` and `dim2` with the input's last dimension on a diagonal, 0 elsewhere.

    RuntimeError if the two dimensions are equal.

    >>> rushlight.diag_embed(rushlight.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    ndim = input._array.ndim + 1
    first, second = wrap(dim1, ndim), wrap(dim2, ndim)
    if first == second:
        raise runtime_error(f"diagonal dimensions cannot be identical {dim1}, {dim2}", op="diag_embed")
    *lead, n = input._array.shape
    size, rest = [], iter(lead)
    for d in range(ndim):
        size.append(n + abs(offset) if d in (first, second) else next(rest))
    return s.embed_diagonal(input, tuple(size), offset, first, second)


@composite()
def diag(input: Tensor, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor:
    """The diagonal of a matrix, as a copy; for a vector, the matrix with this diagonal. RuntimeError for other
    dimensions.

    >>> rushlight.diag(rushlight.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    if input._array.ndim not in (1, 2):
        raise runtime_error(
            f"diag(): Supports 1D or 2D tensors. Got {input._array.ndim}D", "use diagonal() or diag_embed()"
        )
    return given(out, diag_embed(input, diagonal) if input._array.ndim == 1 else clone(s.diagonal(input, diagonal)))


@composite()
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """out[i, i + offset] = input_i, 0 elsewhere: the matrix with all of the input's elements on a diagonal.

    >>> rushlight.diagflat(rushlight.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    return diag_embed(s.reshape(input, (-1,)), offset)


@composite()
def linalg_diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """out[..., i] = A[..., i, i + offset]: the diagonals of matrices, a view; `diagonal` of the last two dimensions.

    >>> rushlight.linalg.diagonal(rushlight.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    return s.diagonal(A, offset, dim1, dim2)
