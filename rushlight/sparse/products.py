"""Products with sparse matrices: two ops, each the derivative of the other, and functions composed of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.base.errors import not_implemented_error, runtime_error
from rushlight.base.intp import as_intp
from rushlight.core.build import build, inner
from rushlight.core.tensor import Tensor, from_array
from rushlight.core.worlds import ARRAYS
from rushlight.ops.grad_mode import no_grad
from rushlight.ops.linalg import matmul, matmul_api
from rushlight.ops.linalg.matmul_api import matmul as dense_matmul
from rushlight.sparse import kernels
from rushlight.sparse.graph import linked
from rushlight.sparse.tensor import SparseTensor, offers, opened, with_values

ARRAYS["sparse_product"], ARRAYS["sampled_product"] = kernels.sparse_product, kernels.sampled_product

# values (z,) at row, col of an (n, m) matrix; dense (m, k) -> (n, k)
sparse_product: Any = inner(
    lambda values, dense, row, col, /, n: sparse_product(values, dense, row, col, n),
    values=lambda g, dense, row, col: sampled_product(g, dense, row, col),
    dense=lambda g, values, row, col, dense_shape: sparse_product(values, g, col, row, dense_shape[0]),
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
    if x.is_sparse and x.ndim == 1:
        return product(x.unsqueeze(0), y).squeeze(0)
    if y.is_sparse and y.ndim == 1:
        return product(x, y.unsqueeze(1)).squeeze(1)
    with no_grad():
        result = multiplied(x, y)
    name = "MvBackward" if y.ndim == 1 else "MmBackward"
    saved = y if x._node is not None else None, x if y._node is not None else None
    return linked(result, name, [(x, lambda g, y, _: to_first(g, y)), (y, lambda g, _, x: to_second(g, x))], *saved)


def to_first(g: Tensor, y: Tensor) -> Tensor:
    """The gradient of x in x @ y."""
    if y.ndim == 1:
        return g.outer(y.conj()) if g.ndim else g * y.conj()
    return product_of(g, adjoint(y))


def to_second(g: Tensor, x: Tensor) -> Tensor:
    """The gradient of y in x @ y."""
    if x.ndim == 1:
        return x.conj().outer(g)
    return product_of(adjoint(x), g)


def product_of(x: Tensor, y: Tensor) -> Tensor:
    return product(x, y) if x.is_sparse or y.is_sparse else dense_matmul(x, y)


def adjoint(x: Tensor) -> Tensor:
    """The conjugate transpose of a matrix."""
    return x.t().conj() if x.is_complex() else x.t()


def multiplied(x: Any, y: Any) -> Tensor:
    """x @ y, outside the graph."""
    if not x.is_sparse:
        return multiplied(y.t(), x.t()).t() if x.ndim > 1 else multiplied(y.t(), x)
    if y.is_sparse:
        return of_two(x.detach(), y.detach())
    return weighted(x, x._of, y)


def weighted(x: SparseTensor, values: Tensor, y: Tensor) -> Tensor:
    """x @ y for a dense y, where `values` are the stored elements of x."""
    n, m = shape_of_matrix(x)
    if y.ndim not in (1, 2) or y.shape[0] != m:
        raise runtime_error(
            f"mat1 and mat2 shapes cannot be multiplied ({n}x{m} and {'x'.join(map(str, y.shape))})",
            "the first matrix needs as many columns as the second has rows",
        )
    if y.ndim == 1:
        return weighted(x, values, y.unsqueeze(1)).squeeze(1)
    return sparse_product(values, y, *places(x._at._array), n)


def places(at: np.ndarray) -> list[Tensor]:
    """The indices of each dimension."""
    return [from_array(row) for row in at]


def shape_of_matrix(x: Tensor) -> tuple[int, int]:
    if x.sparse_dim() != 2 or x.dense_dim() != 0:
        raise runtime_error(
            f"mm: Expected dim 2 tensor of numbers, got a sparse tensor with {x.sparse_dim()} sparse and "
            f"{x.dense_dim()} dense dimensions"
        )
    n, m = x.shape
    return n, m


def of_two(x: SparseTensor, y: SparseTensor) -> SparseTensor:
    """The product of two sparse matrices: multiply x[i, j] by y[j, k] for all pairs of stored elements, then sum."""
    (n, m), (rows, k) = shape_of_matrix(x), shape_of_matrix(y)
    if m != rows:
        raise runtime_error(f"mat1 and mat2 shapes cannot be multiplied ({n}x{m} and {rows}x{k})")
    y = y.coalesce()
    row, middle = x._at._array
    first = np.searchsorted(y._at._array[0], np.arange(m + 1))  # the start of the rows of y
    met = as_intp(np.diff(first)[middle])  # for each element of x, the number of matching elements of y
    of_x = np.repeat(np.arange(len(middle)), met)
    of_y = np.arange(len(of_x)) - np.repeat(np.cumsum(met) - met, met) + np.repeat(first[middle], met)
    values = x.elements()[from_array(of_x)] * y.elements()[from_array(of_y)]
    at = np.stack((row[of_x], y._at._array[1][of_y]))
    return with_values(from_array(at), values, (n, k)).coalesce()


@offers(matmul_api.bmm)
def bmm(x: Tensor, y: Tensor) -> Tensor:
    """A batch of sparse matrices (b, n, m) times a batch of dense matrices (b, m, k): one product with a block-diagonal
    matrix."""
    if not x.is_sparse or y.is_sparse or x.sparse_dim() != 3 or y.ndim != 3:
        raise runtime_error("bmm takes a sparse and a dense batch of matrices, in this order")
    (b, n, m), (stacks, rows, k) = x.shape, y.shape
    if (b, m) != (stacks, rows):
        raise runtime_error(f"bmm: stacks of {b} {n}x{m} and {stacks} {rows}x{k} matrices cannot be multiplied")
    which, row, col = x._at._array  # type: ignore[attr-defined]
    at = places(np.stack((which * n + row, which * m + col)))
    with no_grad():
        flat = sparse_product(x._of, y.reshape(b * m, k), *at, b * n)  # type: ignore
        result = flat.reshape(b, n, k)
    return linked(
        result,
        "BmmBackward",
        [(x, lambda g, x, y: dense_matmul(g, y.mH)), (y, lambda g, x, y: bmm(x.transpose(1, 2).conj(), g))],
        x,
        y,
    )


@offers(matmul_api.addmm)
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta input + alpha mat1 @ mat2, where a matrix is sparse."""
    scaled_input = input * beta
    if scaled_input.is_sparse or not (mat1.is_sparse or mat2.is_sparse):
        return scaled_input + (mat1 @ mat2) * alpha
    with no_grad():
        result = scaled_input + multiplied(mat1, mat2) * alpha
    return linked(
        result,
        "AddmmBackward",
        [
            (input, lambda g, x, y: g * beta),
            (mat1, lambda g, x, y: to_first(g, y) * alpha),
            (mat2, lambda g, x, y: to_second(g, x) * alpha),
        ],
        mat1,
        mat2,
    )


def sparse_addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta mat + alpha mat1 @ mat2, with mat1 sparse. The gradient of mat1 is sparse, as for `torch.sparse.mm`.

    >>> a = rushlight.eye(2).to_sparse()
    >>> rushlight.sparse.addmm(rushlight.ones(2, 2), a, rushlight.ones(2, 2), alpha=3)
    tensor([[4., 4.],
            [4., 4.]])
    """
    return mat * beta + mm(mat1, mat2) * alpha


def mm(sparse: Tensor, dense: Tensor, reduce: str | None = None) -> Tensor:
    """out[i, k] = sum over the stored elements of row i: sparse[i, j] dense[j, k].

    `reduce`: "sum", or for a CSR matrix "mean", "amax" or "amin" of these products; 0 for a row without elements.

    The result of a sparse (n, m) and a dense (m, k) matrix is dense, the result of two sparse matrices is sparse. Both
    have one dtype. The gradient of a sparse operand has only the stored elements; for `sparse @ dense` it has all
    elements. RuntimeError for shapes that do not fit.

    >>> a = rushlight.sparse_coo_tensor([[0, 1], [2, 0]], [3., 4.], (2, 3))
    >>> rushlight.sparse.mm(a, rushlight.ones(3, 2))
    tensor([[3., 3.],
            [4., 4.]])
    """
    if reduce is not None:
        return reduced(sparse, dense, reduce)
    x, y = opened(sparse), opened(dense)
    if x.is_sparse and y.is_sparse:
        return of_two(x, y)
    if x.is_sparse:
        return masked_product(x, y)
    if y.is_sparse:
        return mm(y.t(), x.t()).t()
    return dense_matmul(x, y)


def masked_product(x: Any, y: Tensor) -> Tensor:
    """x @ y for a dense y; the gradient of x has the stored elements."""
    with no_grad():
        result = weighted(x, x._of, y)

    def at_stored(g: Tensor, x: Any, y: Tensor) -> SparseTensor:
        x = x.summed_up()
        values = sampled_product(g, y.conj() if y.is_complex() else y, *places(x._at._array))
        return with_values(x._at, values, x._size, True)

    return linked(result, "SparseAddmmBackward", [(x, at_stored), (y, lambda g, x, y: to_second(g, x))], x, y)


# -- reductions ------------------------------------------------------------------------------------

SIGNS = {"amax": 1, "max": 1, "amin": -1, "min": -1}


def reduced(sparse: Tensor, dense: Tensor, reduce: str) -> Tensor:
    """out[i, k]: the mean, the maximum or the minimum of sparse[i, j] dense[j, k] over the stored elements of row i; 0
    for a row without elements."""
    x = opened(sparse)
    if x is sparse:
        raise not_implemented_error(
            "Could not run 'aten::_sparse_mm_reduce_impl' with arguments from the 'SparseCPU' backend.",
            "with reduce=, torch.sparse.mm takes a CSR matrix: x.to_sparse_csr()",
        )
    if reduce == "sum":
        return weighted(x, x.elements(), dense)
    row = x._at._array[0]
    counts = np.bincount(row, minlength=x.shape[0])
    if reduce == "mean":
        share = from_array((1 / np.maximum(counts, 1)).astype(x.dtype.numpy))
        return weighted(x, x.elements(), dense) * share.unsqueeze(1)
    if reduce not in SIGNS:
        raise runtime_error(
            f"sparse_mm_reduce: reduce type of {reduce} has not been enabled.", "sum, mean, amax or amin"
        )
    return extreme(x, dense, counts, SIGNS[reduce])


def extreme(x: SparseTensor, dense: Tensor, counts: np.ndarray, sign: int) -> Tensor:
    """The greatest (sign 1) or least (-1) product of each row; among equal ones, the first gets the gradient."""
    products = x.elements().unsqueeze(1) * dense[from_array(x._at._array[1])]
    filled = np.flatnonzero(counts)
    starts = np.concatenate(([0], np.cumsum(counts)[:-1]))[filled]
    each = np.arange(len(starts)).repeat(counts[filled])
    a = sign * products.detach()._array
    top = np.maximum.reduceat(a, starts, 0) if len(starts) else a[:0]
    order = np.arange(len(a))[:, None]
    first = np.where((a == top[each]) | np.isnan(a), order, len(a))
    which = np.minimum.reduceat(first, starts, 0) if len(starts) else first[:0]
    out = products.new_zeros(x.shape[0], dense.shape[1])
    return out.index_put((from_array(filled),), products.gather(0, from_array(which)))


__all__ = ["addmm", "bmm", "mm", "product", "sparse_addmm"]
