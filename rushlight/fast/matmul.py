"""Faster ways of matrix products (kernels/matmul.py): compiled loops (matmul_loops.py), and BLAS with other threads or
another order of the operands.

On several cores loops do all large products. If threads of BLAS do one of them, a GPT's step takes 62 ms instead of 42,
a large MLP's 100 instead of 57, because BLAS keeps its threads spinning. benchmarks/products.py compares loops and
BLAS.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy import ndarray

from rushlight.base.buffer_pool import memory
from rushlight.base.dependencies import has_llvmlite
from rushlight.base.threads import alone, cores
from rushlight.fast.index import (
    BLAS_COPIES_PRODUCTS,
    MIN_COLUMNS_OF_TRANSPOSED,
    ONE_THREAD_PRODUCTS,
    ONE_THREAD_PRODUCTS_BESIDE_LOOPS,
)
from rushlight.fast.policy import charge_products, products
from rushlight.kernels.matmul import LARGE_PRODUCTS, TRANSPOSE_RESULTS, has_few_rows

FLOAT = np.dtype(np.float32)


def large(x: ndarray, y: ndarray, bias: ndarray | None = None, out: ndarray | None = None) -> ndarray | None:
    """x y + bias by loops, or by BLAS on one thread; None if BLAS should use all threads."""
    count = x.size * y.shape[-1]
    loops = compiled() if suits(x, y) and charge_products(count) else None
    if loops is not None and (
        bias is None or bias.dtype is FLOAT and bias.strides == (4,) and bias.shape == y.shape[1:]
    ):
        out = memory.take((*x.shape[:-1], y.shape[-1]), FLOAT) if out is None else out
        loops(x, y, out, bias)
        return out
    before_loops = products.left > 0
    most = ONE_THREAD_PRODUCTS if before_loops else ONE_THREAD_PRODUCTS_BESIDE_LOOPS
    if x.ndim > 2 or count >= most:
        return None
    turned = y.ndim == 2 and y.strides[0] == 4 and has_few_rows(x, y)
    r = on_one_thread(few_rows if turned else np.dot, x, y, out)
    return r if bias is None else np.add(r, bias, out=r if r.dtype == bias.dtype else None)


def few_rows(x: ndarray, y: ndarray, out: ndarray | None = None) -> ndarray:
    """x y for few rows and a transpose: by loops, or by BLAS as the transpose of y^T x^T, which takes OpenBLAS a third
    of the time.
    """
    count = x.size * y.shape[1]
    fits = 0 < count <= LARGE_PRODUCTS and len(y) == x.shape[1] > 1
    loops = compiled() if fits and charge_products(count) else None
    if loops is not None:
        out = np.empty((len(x), y.shape[1]), FLOAT) if out is None else out
        loops(x, y, out)
        return out
    turned = np.dot(y.T, x.T.copy()).T
    if out is None:
        return turned.copy()
    out[...] = turned
    return out


def suits(x: ndarray, y: ndarray) -> bool:
    """True if loops, when available, are faster than OpenBLAS: if y is a transpose, or if OpenBLAS would copy or has
    few rows or columns.
    """
    if not x.dtype is FLOAT is y.dtype or x.ndim != y.ndim or x.shape[:-2] != y.shape[:-2]:
        return False
    (m, k), (depth, n) = x.shape[-2:], y.shape[-2:]
    if k != depth:
        return False
    x_is_by_rows, y_is_transpose, count = x.strides[-1] == 4, y.strides[-2] == 4, m * k * n
    if m < 20 or n < 20 and not x_is_by_rows or k < 16:
        return x.ndim == 2 and suits_flat(m, k, n, y_is_transpose)
    if count <= BLAS_COPIES_PRODUCTS:
        return n >= 16 and y_is_transpose and x_is_by_rows
    spinning = count >= ONE_THREAD_PRODUCTS and cores() > 1  # BLAS would use all threads
    return n >= MIN_COLUMNS_OF_TRANSPOSED or x_is_by_rows or spinning


def suits_flat(m: int, k: int, n: int, y_is_transpose: bool) -> bool:
    """`suits` for (m, k) by (k, n) with few rows, columns or products to add up."""
    if min(m, k) <= 1:
        return False
    if y_is_transpose and 2 < m < 20 <= n and m * n > TRANSPOSE_RESULTS:
        return True
    return m * k * n > BLAS_COPIES_PRODUCTS and n > 1


def on_one_thread(blas: Callable, x: ndarray, y: ndarray, out: ndarray | None) -> ndarray:
    """A product of medium size on one thread: waiting for other threads takes longer than they save (base/threads.py)."""
    return alone(blas, x, y, out)


@cache
def compiled() -> Callable[..., None] | None:
    """The loops; None without llvmlite, or if registers are narrower than AVX-512's: with AVX2, OpenBLAS is faster."""
    if not has_llvmlite():
        return None
    from rushlight.fast import matmul_loops

    return matmul_loops.product if matmul_loops.machine()[0] == 16 else None
