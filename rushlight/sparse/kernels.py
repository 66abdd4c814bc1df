"""Products of sparse matrices with dense ones, on arrays: SciPy's, and sums over the stored elements."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.base.dependencies import scipy_part


def matrix(values: ndarray, row: ndarray, col: ndarray, n: int, m: int) -> Any:
    """SciPy's (n, m) matrix of these elements. No sorting if they are already in order of rows or columns."""
    sparse = scipy_part("sparse", "products of sparse matrices need")
    for kind, at, other, count in ((sparse.csr_array, row, col, n), (sparse.csc_array, col, row, m)):
        if len(at) == 0 or (at[1:] >= at[:-1]).all():
            starts = np.searchsorted(at, np.arange(count + 1))
            return kind((values, other, starts), shape=(n, m))
    return sparse.coo_array((values, (row, col)), shape=(n, m)).tocsr()


def sparse_product(values: ndarray, dense: ndarray, row: ndarray, col: ndarray, n: int) -> ndarray:
    """(n, k): out[row] += values * dense[col], for values (z,) and dense (m, k)."""
    kind = values.dtype
    # sums of half and bfloat16 are in single precision, as in dense products
    if kind.itemsize == 2 and kind.kind in "fV":
        values, dense = values.astype(np.float32), dense.astype(np.float32)
    product = matrix(values, row, col, n, dense.shape[0]) @ dense
    return np.ascontiguousarray(product).astype(kind, copy=False)


def sampled_product(x: ndarray, y: ndarray, row: ndarray, col: ndarray) -> ndarray:
    """(z,): the elements x[row] . y[col] of x y^T, for x (n, k) and y (m, k). Other elements are not computed."""
    out = np.empty(len(row), x.dtype)
    size = max(1, 2**18 // max(1, x.shape[1]))  # elements of a block: its rows stay in the cache
    for start in range(0, len(row), size):
        part = slice(start, start + size)
        a, b = x[row[part]], y[col[part]]
        bfloat16 = x.dtype.kind == "V"
        out[part] = (a.astype(np.float32) * b.astype(np.float32)).sum(1) if bfloat16 else np.einsum("zk,zk->z", a, b)
    return out
