"""Products: BLAS through NumPy."""
from __future__ import annotations

import numpy as np
from numpy import ndarray

FEW, MANY = 1 << 18, 1 << 22                      # multiplications: up to FEW, OpenBLAS uses one thread by itself


def mm(x: ndarray, y: ndarray) -> ndarray:
    if x.dtype.itemsize == 2 and x.dtype.kind in "Vf":
        return mm(x.astype(np.float32), y.astype(np.float32)).astype(x.dtype)
    try:
        if x.ndim == 2 and y.ndim <= 2:
            if FEW < x.size * y.shape[-1] < MANY:
                return on_one_thread(x, y)
            return np.dot(x, y)                   # small ones cost two thirds of np.matmul's
        if y.ndim == 2 < x.ndim and x.size and x.flags.c_contiguous:      # one product, not one for each matrix of x
            return np.dot(x.reshape(-1, x.shape[-1]), y).reshape(*x.shape[:-1], y.shape[1])
        if x.ndim > 1 < y.ndim and x.shape[-1] == 1 == y.shape[-2] and x.dtype == y.dtype:
            return x * y                          # outer products: a third of np.matmul's time
        return np.matmul(x, y)
    except ValueError:
        left, right = (f"{a.size // max(a.shape[-1], 1)}x{a.shape[-1]}" for a in (x, y))
        if x.shape[-1] == y.shape[-2]:
            raise                                 # it is leading dimensions that do not broadcast
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({left} and {right}); cure: the first's last size "
                           "must be the second's size before the last: transpose one?") from None


def on_one_thread(x: ndarray, y: ndarray) -> ndarray:
    """A product of middle size: other threads would not make it faster, but waiting for them slow (threads.py)."""
    from rushlight.threads import alone  # read when first needed
    return alone(np.dot, x, y)


def dot(x: ndarray, y: ndarray) -> ndarray:
    if x.ndim != 1 or y.ndim != 1:
        raise ValueError(f"1D tensors expected, but got {x.ndim}D and {y.ndim}D tensors")
    if x.size != y.size:
        raise ValueError(f"inconsistent tensor size, expected tensor [{x.size}] and src [{y.size}] to have the same "
                         f"number of elements, but got {x.size} and {y.size} elements respectively")
    return mm(x, y)


def mv(x: ndarray, y: ndarray) -> ndarray:
    if x.ndim != 2 or y.ndim != 1:
        raise ValueError(f"vector + matrix @ vector expected, got {y.ndim}, {x.ndim}, {y.ndim}")
    if x.shape[1] != y.size:
        raise ValueError(f"size mismatch, got input ({len(x)}), mat ({len(x)}x{x.shape[1]}), vec ({y.size}); cure: the "
                         "vector must have as many elements as the matrix has columns")
    return mm(x, y)


def linear(x: ndarray, weight: ndarray, bias: ndarray | None) -> ndarray:
    """x w^T + b; x of any leading shape as one product."""
    if x.shape[-1:] != weight.shape[-1:]:
        n = x.shape[-1] if x.ndim else 1
        raise ValueError(f"mat1 and mat2 shapes cannot be multiplied ({x.size // max(n, 1)}x{n} and "
                         f"{weight.shape[-1]}x{weight.shape[0]}): the input has {n} features, "
                         f"the weight takes {weight.shape[-1]}; cure: make the layer take {n} (in_features={n}), or the "
                         f"tensor before it have {weight.shape[-1]}")
    flat = x if x.ndim <= 2 else x.reshape(-1, x.shape[-1])
    r = mm(flat, weight.T)
    if bias is not None:
        r = r + bias if r.dtype != bias.dtype else np.add(r, bias, out=r)
    return r if x.ndim <= 2 else r.reshape(*x.shape[:-1], weight.shape[0])
