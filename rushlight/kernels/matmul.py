"""Products: BLAS through NumPy, and compiled loops (fast/matmul_loops.py) for shapes at which they
are faster.

On several cores loops do all that is large: with one product by threads of BLAS among them, a GPT's
step took 62 ms instead of 42, a large MLP's 100 instead of 57. A few rows times a transpose take
OpenBLAS a third of the time the other way round: 8 x 128 by 384 x 128 20 us instead of 57, 8 x 1024
by 1024 x 1024 550 instead of 1240; and loops 14 and 330."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import prod

import numpy as np
from numpy import ndarray

from rushlight.base.buffer_pool import memory
from rushlight.base.dependencies import has_numba
from rushlight.kernels.float16 import converted, is_half, single
from rushlight.loops.budget import Budget

FLOAT = np.dtype(np.float32)
FEW, MANY = 1 << 18, 1 << 22  # multiplications: up to FEW, OpenBLAS uses one thread by itself
ALONE = 1 << 26  # the same once there are loops, which want the cores of spinning threads
LEAST = 1_000_000  # up to which OpenBLAS copies no operand, and is faster
FLAT, FEW_ROWS = (
    1200,
    40,
)  # numbers of a result from which, and rows up to which a transpose is slow
BROAD = 128  # columns from which it pays to turn a transposed first operand
PAID = 1 << 35  # after which loops do them: 0.7 s of BLAS; they take 0.3 from disk,
LOADED = 1 << 33  # and 0.07 where Numba has been loaded


def mm(x: ndarray, y: ndarray) -> ndarray:
    if x.dtype.itemsize <= 2:
        if x.dtype.kind in "Vf":
            return converted(mm(single(x), single(y)), x.dtype)
        if x.dtype.kind == "b" and x.size:
            raise NotImplementedError(
                "\"addmm_impl_cpu_\" not implemented for 'Bool'; hint: convert: x.float() @ "
                "y.float()"
            )
    try:
        if x.ndim == 2 and y.ndim <= 2:
            if x.size * y.shape[-1] > FEW:
                return large(x, y)
            return blas(x, y)  # small ones cost two thirds of np.matmul's
        if (
            y.ndim == 2 < x.ndim and x.size and x.flags.c_contiguous
        ):  # one product, not one for each matrix of x
            return mm(x.reshape(-1, x.shape[-1]), y).reshape(*x.shape[:-1], y.shape[1])
        if x.ndim > 1 < y.ndim and x.shape[-1] == 1 == y.shape[-2] and x.dtype == y.dtype:
            return np.multiply(x, y, order="C")  # outer products: a third of np.matmul's time
        r = large(x, y) if 2 < x.ndim == y.ndim and x.size * y.shape[-1] > FEW else np.matmul(x, y)
        return r if r.ndim < 3 or r.flags.c_contiguous else r.copy()
    except ValueError:
        left, right = (f"{prod(a.shape[:-1])}x{a.shape[-1]}" for a in (x, y))
        if x.shape[-1] == y.shape[-2]:
            raise  # it is leading dimensions that do not broadcast
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({left} and {right}); hint: the inner "
            f"sizes differ ({x.shape[-1]} and {y.shape[-2]}): "
            + ("did you mean A @ B.mT?" if x.shape[-1] == y.shape[-1] else "transpose one?")
        ) from None


def large(
    x: ndarray, y: ndarray, more: ndarray | None = None, out: ndarray | None = None
) -> ndarray:
    """x y + more, of more than FEW multiplications; of two matrices, or of many without `more`."""
    work = x.size * y.shape[-1]
    loops = compiled() if suits(x, y) and spent.charge(work) else None
    if loops is not None and (
        more is None or more.dtype is FLOAT and more.strides == (4,) and more.shape == y.shape[1:]
    ):
        out = memory.take((*x.shape[:-1], y.shape[-1]), FLOAT) if out is None else out
        loops(x, y, out, more)
        return out
    if x.ndim > 2:
        return np.matmul(x, y, out=out)
    few = work < (MANY if spent.left > 0 else ALONE)
    r = on_one_thread(x, y, out) if few else blas(x, y, out)
    return r if more is None else np.add(r, more, out=r if r.dtype == more.dtype else None)


def stacked(x: ndarray, y: ndarray, out: ndarray | None = None) -> ndarray:
    """np.matmul of stacks of matrices; outer products, which take it four times as long, by
    multiplying."""
    return (np.multiply if x.shape[-1] == 1 else np.matmul)(x, y, out=out)


def into(x: ndarray, y: ndarray, out: ndarray) -> None:
    """out = x y, of one dtype, `out` contiguous: what compiled programs call `matmul`."""
    if 2 <= x.ndim == y.ndim and x.size * y.shape[-1] > FEW:
        large(x, y, None, out)
    elif x.ndim == 2 == y.ndim:
        blas(x, y, out)
    else:
        np.matmul(x, y, out=out)


def blas(x: ndarray, y: ndarray, out: ndarray | None = None) -> ndarray:
    """x y of matrices; by OpenBLAS the other way round where a few rows meet a transpose, as of a
    layer's weight."""
    if not (
        y.ndim == 2
        and y.strides[0] == 4
        and 2 < len(x) < FEW_ROWS
        and len(x) * y.shape[1] > FLAT
        and x.dtype is FLOAT is y.dtype
    ):
        return np.dot(x, y, out)
    work = x.size * y.shape[1]
    loops = (
        compiled() if 0 < work <= FEW and len(y) == x.shape[1] > 1 and spent.charge(work) else None
    )
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
    """Whether loops, if there are any, are faster than OpenBLAS (benchmarks/products.py): where the
    second is a transpose, and where OpenBLAS has to copy or finds few rows or columns."""
    if not x.dtype is FLOAT is y.dtype or x.ndim != y.ndim or x.shape[:-2] != y.shape[:-2]:
        return False
    (m, k), (depth, n) = x.shape[-2:], y.shape[-2:]
    if k != depth:
        return False
    work = m * k * n
    if m < 20 or n < 20 and x.strides[-1] != 4 or k < 16:
        turned = 2 < m < 20 <= n and m * n > FLAT and y.strides[0] == 4
        return x.ndim == 2 and min(m, k) > 1 and (turned or work > LEAST and n > 1)
    if work <= LEAST:
        return n >= 16 and y.strides[-2] == 4 and x.strides[-1] == 4
    return n >= BROAD or x.strides[-1] == 4 or work >= MANY and cores() > 1


def cores() -> int:
    from rushlight.base.threads import cores  # read when first needed

    return cores()


@cache
def alone() -> Callable[..., ndarray]:
    from rushlight.base.threads import (
        alone,  # read when first needed; in the function below it takes 1.9 us each time
    )

    return alone


def on_one_thread(x: ndarray, y: ndarray, out: ndarray | None = None) -> ndarray:
    """A product of middle size: other threads would not make it faster, but waiting for them slow
    (base/threads.py)."""
    return alone()(blas, x, y, out)


@cache
def compiled() -> Callable[..., None] | None:
    """The loops; None without Numba, and where registers are not as wide as AVX-512's: with AVX2,
    OpenBLAS is faster."""
    if not has_numba():
        return None
    from rushlight.fast import matmul_loops

    return matmul_loops.product if matmul_loops.machine()[0] == 16 else None


spent = Budget(PAID, PAID - LOADED)  # in multiplications


def dot(x: ndarray, y: ndarray) -> ndarray:
    if x.ndim != 1 or y.ndim != 1:
        raise ValueError(f"1D tensors expected, but got {x.ndim}D and {y.ndim}D tensors")
    if x.size != y.size:
        raise ValueError(
            f"inconsistent tensor size, expected tensor [{x.size}] and src [{y.size}] to have the "
            "same "
            f"number of elements, but got {x.size} and {y.size} elements respectively"
        )
    return mm(x, y)


def mv(x: ndarray, y: ndarray) -> ndarray:
    if x.ndim != 2 or y.ndim != 1:
        raise ValueError(f"vector + matrix @ vector expected, got {y.ndim}, {x.ndim}, {y.ndim}")
    if x.shape[1] != y.size:
        raise ValueError(
            f"size mismatch, got input ({len(x)}), mat ({len(x)}x{x.shape[1]}), vec ({y.size}); "
            "hint: the "
            "vector must have as many elements as the matrix has columns"
        )
    return mm(x, y)


def linear(x: ndarray, weight: ndarray, bias: ndarray | None) -> ndarray:
    """x w^T + b; x of any leading shape as one product."""
    if x.shape[-1:] != weight.shape[-1:]:
        if not x.ndim:
            raise ValueError(
                "both arguments to linear need to be at least 1D, but they are 0D and "
                f"{weight.ndim}D; hint: "
                "x.reshape(1)"
            )
        n, wanted = x.shape[-1], weight.shape[-1]
        raise ValueError(
            f"mat1 and mat2 shapes cannot be multiplied ({x.size // max(n, 1)}x{n} and "
            f"{wanted}x{weight.shape[0]}): the input has {n} features, "
            f"the weight takes {wanted}; hint: "
            + (
                "flatten the input first: x.flatten(1), or nn.Flatten()"
                if prod(x.shape[1:]) == wanted
                else f"use in_features={n}, or an input with {wanted} features"
            )
        )
    if (
        bias is not None and is_half(x) and x.dtype == weight.dtype == bias.dtype
    ):  # rounded once, as in torch
        return converted(linear(single(x), single(weight), single(bias)), x.dtype)
    flat = x if x.ndim <= 2 else x.reshape(prod(x.shape[:-1]), x.shape[-1])
    if x.dtype is FLOAT and flat.ndim == 2 and flat.size * len(weight) > FEW:
        r, bias = large(flat, weight.T, bias), None
    else:
        r = mm(flat, weight.T)
    if bias is not None:
        r = r + bias if r.dtype != bias.dtype else np.add(r, bias, out=r)
    return r if x.ndim <= 2 else r.reshape(*x.shape[:-1], weight.shape[0])
