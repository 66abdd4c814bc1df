"""Products of a sparse matrix and a dense one whose results are sparse."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.core.tensor import Tensor, from_array
from rushlight.ops.shape.views import cat
from rushlight.sparse.products import shape_of_matrix, weighted
from rushlight.sparse.tensor import SparseTensor, with_values


def rows_of_product(x: SparseTensor, dense: Tensor) -> tuple[np.ndarray, Tensor]:
    """(the rows of x that store an element, these rows of x @ dense)."""
    x = x.coalesce()
    shape_of_matrix(x)
    rows = np.unique(x._at._array[0])
    return rows, weighted(x, x.elements(), dense)[from_array(rows)]


def elements_of_product(x: SparseTensor, dense: Tensor) -> tuple[np.ndarray, Tensor]:
    """(indices (2, z), values (z,)) of x @ dense: all elements of the rows in which x stores an element."""
    rows, values = rows_of_product(x, dense)
    columns = values.shape[1]
    return np.stack((np.repeat(rows, columns), np.tile(np.arange(columns), len(rows)))), values.reshape(-1)


def hspmm(mat1: SparseTensor, mat2: Tensor, *, out: Any = None) -> SparseTensor:
    """mat1 @ mat2, a sparse matrix by a dense one, as a hybrid tensor: the rows of the result are sparse, its columns
    dense.

    >>> rushlight.hspmm(rushlight.tensor([[0., 0.], [1., 1.]]).to_sparse(), rushlight.ones(2, 1))
    tensor(indices=tensor([[1]]),
           values=tensor([[2.]]),
           size=(2, 1), nnz=1, layout=torch.sparse_coo)
    """
    rows, values = rows_of_product(mat1, mat2)
    return into(out, with_values(from_array(rows[None]), values, (mat1.shape[0], mat2.shape[1])))


def into(out: Any, result: SparseTensor) -> SparseTensor:
    return result if out is None else out.copy_(result)


def sspaddmm(
    input: SparseTensor, mat1: SparseTensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1, out: Any = None
) -> SparseTensor:
    """beta input + alpha mat1 @ mat2, where input and mat1 are sparse, mat2 is dense and the result is sparse.

    >>> a = rushlight.eye(2).to_sparse()
    >>> rushlight.sspaddmm(a, a, rushlight.ones(2, 2)).to_dense()
    tensor([[2., 1.],
            [1., 2.]])
    """
    at, values = elements_of_product(mat1, mat2)
    places = from_array(np.concatenate((input._at._array, at), 1))
    both = cat([input.elements() * beta, values * alpha])
    return into(out, with_values(places, both, input.shape))


def smm(input: SparseTensor, mat: Tensor) -> SparseTensor:
    """input @ mat, a sparse matrix by a dense one, as a sparse matrix.

    >>> rushlight.smm(rushlight.eye(2).to_sparse(), rushlight.ones(2, 1)).to_dense()
    tensor([[1.],
            [1.]])
    """
    at, values = elements_of_product(input, mat)
    return with_values(from_array(at), values, (input.shape[0], mat.shape[1]))


__all__ = ["hspmm", "smm", "sspaddmm"]
