"""Products with sparse matrices: two ops, each the derivative of the other, and functions composed
of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.base.errors import explain
from rushlight.base.intp import as_intp
from rushlight.core.build import build, inner
from rushlight.core.tensor import Tensor, from_array
from rushlight.core.worlds import ARRAYS
from rushlight.ops.linalg import matmul, matmul_api
from rushlight.ops.linalg.matmul_api import matmul as dense_matmul
from rushlight.sparse import kernels
from rushlight.sparse.tensor import SparseTensor, made, offers

ARRAYS["sparse_product"], ARRAYS["sampled_product"] = (
    kernels.sparse_product,
    kernels.sampled_product,
)

# values (z,) at row, col of an (n, m) matrix; dense (m, k) -> (n, k)
sparse_product: Any = inner(
    lambda values, dense, row, col, /, n: sparse_product(values, dense, row, col, n),
    values=lambda g, dense, row, col: sampled_product(g, dense, row, col),
    dense=lambda g, values, row, col, dense_shape: sparse_product(
        values, g, col, row, dense_shape[0]
    ),
    node="SparseAddmmBackward0",
)
# x (n, k), y (m, k) -> (z,): the elements of x y^T at row, col
sampled_product: Any = inner(
    lambda x, y, row, col, /: sampled_product(x, y, row, col),
    x=lambda g, y, row, col, x_shape: sparse_product(g, y, row, col, x_shape[0]),
    y=lambda g, x, row, col, y_shape: sparse_product(g, x, col, row, y_shape[0]),
)

build(globals())


@offers(matmul_api.matmul, matmul.mm, matmul.mv)
def product(x: Tensor, y: Tensor) -> Tensor:
    """x @ y, at least one of them a sparse matrix: dense unless both are sparse.

    >>> x = rushlight.tensor([[0., 2.], [1., 0.]]).to_sparse()
    >>> rushlight.dsmm(x, rushlight.tensor([[1.], [10.]]))
    tensor([[20.],
            [ 1.]])
    """
    if not x.is_sparse:
        return product(y.t(), x.t()).t() if x.ndim > 1 else product(y.t(), x)
    n, m = shape_of_matrix(x)
    if y.is_sparse:
        return of_two(x, y)  # type: ignore[arg-type]
    if y.ndim not in (1, 2) or y.shape[0] != m:
        raise RuntimeError(
            explain(
                f"mat1 and mat2 shapes cannot be multiplied ({n}x{m} and "
                f"{'x'.join(map(str, y.shape))})",
                "the first matrix needs as many columns as the second has rows",
            )
        )
    if y.ndim == 1:
        return product(x, y.unsqueeze(1)).squeeze(1)
    return sparse_product(x._of, y, *places(x._at._array), n)  # type: ignore[attr-defined]


def places(at: np.ndarray) -> list[Tensor]:
    """The indices of each dimension."""
    return [from_array(row) for row in at]


def shape_of_matrix(x: Tensor) -> tuple[int, int]:
    if x.sparse_dim() != 2 or x.dense_dim() != 0:
        raise RuntimeError(
            explain(
                f"mm: Expected dim 2 tensor of numbers, got a sparse tensor with "
                f"{x.sparse_dim()} sparse and {x.dense_dim()} dense dimensions"
            )
        )
    n, m = x.shape
    return n, m


def of_two(x: SparseTensor, y: SparseTensor) -> SparseTensor:
    """The product of two sparse matrices: a product for each pair of stored elements that meet,
    then added up."""
    (n, m), (rows, k) = shape_of_matrix(x), shape_of_matrix(y)
    if m != rows:
        raise RuntimeError(
            explain(f"mat1 and mat2 shapes cannot be multiplied ({n}x{m} and {rows}x{k})")
        )
    y = y.coalesce()
    row, middle = x._at._array
    first = np.searchsorted(y._at._array[0], np.arange(m + 1))  # where the rows of y begin
    met = np.diff(first)[middle]  # for each element of x, the number of matching elements of y
    met = as_intp(met)
    of_x = np.repeat(np.arange(len(middle)), met)
    of_y = (
        np.arange(len(of_x)) - np.repeat(np.cumsum(met) - met, met) + np.repeat(first[middle], met)
    )
    values = x._of[from_array(of_x)] * y._of[from_array(of_y)]
    at = np.stack((row[of_x], y._at._array[1][of_y]))
    return made(from_array(at), values, (n, k)).coalesce()


@offers(matmul_api.bmm)
def bmm(x: Tensor, y: Tensor) -> Tensor:
    """Products of a stack of sparse matrices (b, n, m) with one of dense matrices (b, m, k): one of
    a block matrix."""
    if not x.is_sparse or y.is_sparse or x.sparse_dim() != 3 or y.ndim != 3:
        raise RuntimeError(
            explain("bmm takes a sparse and a dense batch of matrices, in this order")
        )
    (b, n, m), (stacks, rows, k) = x.shape, y.shape
    if (b, m) != (stacks, rows):
        raise RuntimeError(
            explain(
                f"bmm: stacks of {b} {n}x{m} and {stacks} {rows}x{k} matrices cannot be multiplied"
            )
        )
    which, row, col = x._at._array  # type: ignore[attr-defined]
    at = places(np.stack((which * n + row, which * m + col)))
    flat = sparse_product(x._of, y.reshape(b * m, k), *at, b * n)  # type: ignore
    return flat.reshape(b, n, k)


@offers(matmul_api.addmm)
def addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """beta input + alpha mat1 @ mat2, with mat1 sparse.

    >>> a = rushlight.eye(2).to_sparse()
    >>> rushlight.sparse.addmm(rushlight.ones(2, 2), a, rushlight.ones(2, 2), alpha=3)
    tensor([[4., 4.],
            [4., 4.]])
    """
    return input * beta + (mat1 @ mat2) * alpha


def mm(sparse: Tensor, dense: Tensor, reduce: str = "sum") -> Tensor:
    """out[i, k] = sum over the stored elements of row i: sparse[i, j] dense[j, k].

    A sparse (n, m) matrix by a dense (m, k) one gives a dense (n, k) one; by a sparse one, a sparse
    one. Operands of one dtype; gradients go to the stored values and to the dense operand.
    RuntimeError for shapes that do not fit.

    >>> a = rushlight.sparse_coo_tensor([[0, 1], [2, 0]], [3., 4.], (2, 3))
    >>> rushlight.sparse.mm(a, rushlight.ones(3, 2))
    tensor([[3., 3.],
            [4., 4.]])
    """
    if reduce != "sum":
        raise NotImplementedError(
            explain(
                f"torch.sparse.mm with reduce={reduce!r} is not supported: for a mean, scale "
                "the rows "
                "of the sum"
            )
        )
    return (
        product(sparse, dense)
        if sparse.is_sparse or dense.is_sparse
        else dense_matmul(sparse, dense)
    )


__all__ = ["addmm", "bmm", "mm", "product"]
