"""(x - mean) / sqrt(var + eps), then times weight, plus bias. Mean and var come out too, dimensions kept."""
from __future__ import annotations

from math import prod

import numpy as np
from numpy import ndarray

from rushlight.ops.kernels.windows import wide_dtype

Dims = tuple[int, ...]


def moments(x: ndarray, dims: Dims) -> tuple[ndarray, ndarray, ndarray]:
    """(x - mean, mean, var) along `dims`, in float32 at least; of nothing, nan."""
    x = x.astype(wide_dtype(x.dtype), copy=False)
    n = x.dtype.type(prod([x.shape[d] for d in dims]))
    mu = np.add.reduce(x, dims, None, None, True) / n
    d = x - mu
    return d, mu, np.add.reduce(d * d, dims, None, None, True) / n


def scaled(d: ndarray, var: ndarray, eps: float, weight: ndarray | None, bias: ndarray | None,
           dtype: np.dtype) -> ndarray:
    """d / sqrt(var + eps) * weight + bias, written into d."""
    d *= 1 / np.sqrt(var + eps)
    if weight is not None:
        d *= weight
    if bias is not None:
        d += bias
    return d.astype(dtype, copy=False)


def layer_norm(x: ndarray, weight: ndarray | None, bias: ndarray | None, dims: Dims,
               eps: float) -> tuple[ndarray, ndarray, ndarray]:
    """Normalized along the trailing `dims`, whose shape weight and bias have."""
    d, mu, var = moments(x, dims)
    return scaled(d, var, eps, weight, bias, x.dtype), mu, var


def batch_norm(x: ndarray, weight: ndarray | None, bias: ndarray | None, dims: Dims,
               eps: float) -> tuple[ndarray, ndarray, ndarray]:
    """Normalized along `dims`, all but the channels in dimension 1; weight and bias (C,)."""
    d, mu, var = moments(x, dims)
    return scaled(d, var, eps, per_channel(weight, x.ndim), per_channel(bias, x.ndim), x.dtype), mu, var


def frozen_batch_norm(x: ndarray, weight: ndarray | None, bias: ndarray | None, mu: ndarray, var: ndarray,
                      eps: float) -> ndarray:
    """batch_norm with mean and var, both (C,), given: a factor and a shift for each channel."""
    wide = wide_dtype(x.dtype)
    factor = 1 / np.sqrt(var + var.dtype.type(eps)) * (1 if weight is None else weight)
    shift = (0 if bias is None else bias) - mu * factor
    factor, shift = (per_channel(a.astype(wide, copy=False), x.ndim) for a in (factor, shift))
    r = x * factor
    r += shift
    return r.astype(x.dtype, copy=False)


def per_channel(a: ndarray | None, ndim: int) -> ndarray | None:
    """(C,) -> (C, 1, 1, ...): to stand against (N, C, ...)."""
    return a if a is None or ndim == 2 else a.reshape((-1,) + (1,) * (ndim - 2))
