"""Matrix products by NumPy, which calls BLAS. fast/matmul.py has faster ways for large products, and for products of a
few rows with a transposed matrix."""

from __future__ import annotations

from math import prod

import numpy as np
from numpy import ndarray

from rushlight.base.faster import site
from rushlight.kernels.float16 import converted, is_half, single

FLOAT = np.dtype(np.float32)
# the sizes from which the hooks are called
LARGE_PRODUCTS = 1 << 18  # multiplications of a product that takes 10 us or more
TRANSPOSE_RESULTS, TRANSPOSE_ROWS = 1200, 40  # least results and most rows of x for which y^T x^T is faster


def mm(x: ndarray, y: ndarray) -> ndarray:
    if x.dtype.itemsize <= 2:
        if x.dtype.kind in "Vf":
            return converted(mm(single(x), single(y)), x.dtype)
        if x.dtype.kind == "b" and x.size:
            raise NotImplementedError(
                "\"addmm_impl_cpu_\" not implemented for 'Bool'; hint: convert: x.float() @ y.float()"
            )
    try:
        if x.ndim == 2 and y.ndim <= 2:
            if x.size * y.shape[-1] > LARGE_PRODUCTS:
                return large(x, y)
            return of_matrices(x, y)  # takes two thirds of np.matmul's time for small products
        if y.ndim == 2 < x.ndim and x.size and x.shape[-1] == len(y) and x.flags.c_contiguous:
            # all matrices of x in one product
            return mm(x.reshape(-1, x.shape[-1]), y).reshape(*x.shape[:-1], y.shape[1])
        if x.ndim > 1 < y.ndim and x.shape[-1] == 1 == y.shape[-2] and x.dtype == y.dtype:
            return np.multiply(x, y, order="C")  # outer products by multiplication: a third of np.matmul's time
        is_large = 2 < x.ndim == y.ndim and x.size * y.shape[-1] > LARGE_PRODUCTS
        r = large(x, y) if is_large else np.matmul(x, y)
        return r if r.ndim < 3 or r.flags.c_contiguous else r.copy()
    except ValueError:
        raise mismatch(x, y) from None


def mismatch(x: ndarray, y: ndarray) -> RuntimeError:
    """The error for batches that do not broadcast, or else for inner sizes that differ."""
    ndim = max(x.ndim, y.ndim)
    for k in range(3, 1 + min(x.ndim, y.ndim)):
        m, n = x.shape[-k], y.shape[-k]
        if m != n and 1 not in (m, n):
            return RuntimeError(
                f"The size of tensor a ({m}) must match the size of tensor b ({n}) at non-singleton dimension "
                f"{ndim - k}; hint: the dimensions before the last two are batch dimensions, here {m} and {n}: make "
                "them equal, or one of them 1"
            )
    left, right = (f"{prod(a.shape[:-1])}x{a.shape[-1]}" for a in (x, y))
    return RuntimeError(
        f"mat1 and mat2 shapes cannot be multiplied ({left} and {right}); hint: the inner sizes differ ({x.shape[-1]} "
        f"and {y.shape[-2]})" + turned(x, y)
    )


def turned(x: ndarray, y: ndarray) -> str:
    """The end of the hint: to transpose the second factor, or to unsqueeze it. "" if neither fits."""
    if x.shape[-1] != y.shape[-1]:
        return ""
    if x.ndim == 3 and y.ndim == 2 and x.shape[0] == y.shape[0]:
        return ": for a vector for each matrix, A @ b.unsqueeze(-1); for all of them, A @ b.mT"
    return ": did you mean A @ B.mT?"


@site
def large(x: ndarray, y: ndarray, bias: ndarray | None = None, out: ndarray | None = None) -> ndarray:
    """x y + bias for more than LARGE_PRODUCTS multiplications; for two matrices, or for stacks without bias."""
    if x.ndim > 2:
        return np.matmul(x, y, out=out)
    r = of_matrices(x, y, out)
    return r if bias is None else np.add(r, bias, out=r if r.dtype == bias.dtype else None)


def stacked(x: ndarray, y: ndarray, out: ndarray | None = None) -> ndarray:
    """np.matmul for stacks of matrices; outer products by multiplication, since np.matmul takes four times as long."""
    return (np.multiply if x.shape[-1] == 1 else np.matmul)(x, y, out=out)


def into(x: ndarray, y: ndarray, out: ndarray) -> None:
    """out = x y for equal dtypes and contiguous `out`: the `matmul` of compiled programs."""
    if 2 <= x.ndim == y.ndim and x.size * y.shape[-1] > LARGE_PRODUCTS:
        large(x, y, None, out)
    elif x.ndim == 2 == y.ndim:
        of_matrices(x, y, out)
    else:
        np.matmul(x, y, out=out)


def of_matrices(x: ndarray, y: ndarray, out: ndarray | None = None) -> ndarray:
    """x y of matrices."""
    if y.ndim == 2 and y.strides[0] == 4 and has_few_rows(x, y):
        return few_rows(x, y, out)
    return np.dot(x, y, out)


def has_few_rows(x: ndarray, y: ndarray) -> bool:
    """True if y^T x^T is faster than x y, for a transposed y."""
    rows = len(x)
    return 2 < rows < TRANSPOSE_ROWS and rows * y.shape[1] > TRANSPOSE_RESULTS and x.dtype is FLOAT is y.dtype


@site
def few_rows(x: ndarray, y: ndarray, out: ndarray | None = None) -> ndarray:
    """x y for few rows of x and a transposed y, such as a layer's weight."""
    return np.dot(x, y, out)


def dot(x: ndarray, y: ndarray) -> ndarray:
    if x.ndim != 1 or y.ndim != 1:
        raise ValueError(
            f"1D tensors expected, but got {x.ndim}D and {y.ndim}D tensors; hint: "
            + ("(a * b).sum(-1) for batches of vectors, " if x.shape == y.shape else "")
            + "a @ b for matrices"
        )
    if x.size != y.size:
        raise ValueError(
            f"inconsistent tensor size, expected tensor [{x.size}] and src [{y.size}] to have the same number of "
            f"elements, but got {x.size} and {y.size} elements respectively"
        )
    return mm(x, y)


def mv(x: ndarray, y: ndarray) -> ndarray:
    if x.ndim != 2 or y.ndim != 1:
        raise ValueError(f"vector + matrix @ vector expected, got {y.ndim}, {x.ndim}, {y.ndim}")
    if x.shape[1] != y.size:
        raise ValueError(
            f"size mismatch, got input ({len(x)}), mat ({len(x)}x{x.shape[1]}), vec ({y.size}); hint: the vector must "
            "have as many elements as the matrix has columns"
        )
    return mm(x, y)


def linear(x: ndarray, weight: ndarray, bias: ndarray | None) -> ndarray:
    """x w^T + b; leading dimensions of x are merged into one product."""
    if x.shape[-1:] != weight.shape[-1:]:
        if not x.ndim:
            raise ValueError(
                f"both arguments to linear need to be at least 1D, but they are 0D and {weight.ndim}D; hint: "
                "x.reshape(1)"
            )
        n, wanted = x.shape[-1], weight.shape[-1]
        raise ValueError(
            f"mat1 and mat2 shapes cannot be multiplied ({x.size // max(n, 1)}x{n} and {wanted}x{weight.shape[0]}): "
            f"the input has {n} features, the weight takes {wanted}; hint: "
            + (
                f"{n} samples of one feature? x.unsqueeze(1)"
                if x.ndim == 1 and wanted == 1
                else "flatten the input first: x.flatten(1), or nn.Flatten()"
                if prod(x.shape[1:]) == wanted
                else "an input of one sample without a batch dimension? x.unsqueeze(0)"
                if x.ndim > 1 and x.size == wanted
                else f"flatten the images first: x.flatten(1), with in_features={prod(x.shape[1:])}"
                if x.ndim == 4
                else f"use in_features={n}, or an input with {wanted} features"
            )
        )
    # rounded once, as in torch
    if bias is not None and is_half(x) and x.dtype == weight.dtype == bias.dtype:
        return converted(linear(single(x), single(weight), single(bias)), x.dtype)
    flat = x if x.ndim <= 2 else x.reshape(prod(x.shape[:-1]), x.shape[-1])
    if x.dtype is FLOAT and flat.ndim == 2 and flat.size * len(weight) > LARGE_PRODUCTS:
        r, bias = large(flat, weight.T, bias), None
    else:
        r = mm(flat, weight.T)
    if bias is not None:
        r = r + bias if r.dtype != bias.dtype else np.add(r, bias, out=r)
    return r if x.ndim <= 2 else r.reshape(*x.shape[:-1], weight.shape[0])
