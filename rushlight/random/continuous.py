"""Distributions computed from one uniform or normal per number: exponential, Cauchy, geometric, log-normal."""

from __future__ import annotations

import math

import numpy as np

from rushlight.base.errors import runtime_error
from rushlight.random.blocks import DType, Shape, empty
from rushlight.random.fma import fma64, narrow, near_halfway

from .normal import GROUP, standard
from .stream import Stream
from .vector_math import each, log64

TINY = 2.0**-126  # the least normal float32


def exponential(stream: Stream, shape: Shape, dtype: DType = np.float32, lambd: float = 1.0) -> np.ndarray:
    """-log(1 - u) / lambd: density lambd * exp(-lambd x) for x >= 0.

    Shape: `shape`. Dtypes: float16, bfloat16, float32, float64. RuntimeError unless lambd > 0.

    >>> rushlight.Generator().manual_seed(0).exponential(2)
    array([3.5083263, 1.2303847], dtype=float32)
    """
    if not lambd > 0.0:
        raise runtime_error(f"exponential_ expects lambda > 0.0, but found lambda={lambd}")
    out, flat = empty("exponential_", shape, dtype, "f")
    u = -stream.uniform53(len(flat))
    if out.dtype != np.float32 or not 2.0**-99 < 1.0 / lambd < 2.0**99:
        flat[...] = narrow(-1.0 / lambd * each(math.log1p, u), out.dtype)
        return out
    values = -1.0 / lambd * np.log1p(u)  # may differ by an ulp, which float32 rarely shows
    flat[...] = values
    doubtful = near_halfway(values)
    if doubtful.any():  # about 1 of 33 million numbers
        flat[doubtful] = -1.0 / lambd * each(math.log1p, u[doubtful])
    return out


def cauchy(
    stream: Stream, shape: Shape, dtype: DType = np.float32, median: float = 0.0, sigma: float = 1.0
) -> np.ndarray:
    """median + sigma * tan(pi (u - 1/2)): density sigma / (pi (sigma^2 + (x - median)^2)).

    Shape: `shape`. Dtypes: float16, bfloat16, float32, float64. RuntimeError unless sigma > 0.

    >>> rushlight.Generator().manual_seed(0).cauchy(2)
    array([10.59773  ,  0.7647673], dtype=float32)
    """
    if not sigma > 0.0:
        raise runtime_error(f"cauchy_ expects sigma > 0.0, but found sigma={sigma}")
    out, flat = empty("cauchy_", shape, dtype, "f")
    tangents = each(math.tan, math.pi * (stream.uniform53(len(flat)) - 0.5))
    flat[...] = narrow(fma64(tangents, sigma, median), out.dtype)
    return out


def geometric(stream: Stream, shape: Shape, p: float, dtype: DType = np.float32) -> np.ndarray:
    """ceil(log u / log(1 - p)): k = 1, 2, ... with probability (1 - p)^(k-1) p.

    Shape: `shape`. Dtypes: integers of 8 to 64 bits with a sign, uint8, floating. RuntimeError unless 0 < p < 1.

    >>> rushlight.Generator().manual_seed(0).geometric(3, 0.3)
    array([1., 1., 3.], dtype=float32)
    """
    if not 0.0 < p < 1.0:
        raise runtime_error(f"geometric_ expects p to be in (0, 1), but got p={p}")
    out, flat = empty("geometric_", shape, dtype, "fiu")
    counts = np.ceil(log64(stream.uniform53(len(flat))) / math.log(1.0 - p))
    flat[...] = narrow(counts, out.dtype) if out.dtype.kind not in "iu" else counts.astype(np.int64)
    return out


def log_normal(
    stream: Stream, shape: Shape, dtype: DType = np.float32, mean: float = 1.0, std: float = 2.0
) -> np.ndarray:
    """exp(mean + std * z), z standard normal.

    Shape: `shape`. Dtypes: float16, bfloat16, float32, float64. RuntimeError unless std > 0.

    >>> rushlight.Generator().manual_seed(0).log_normal(2)
    array([59.263416,  1.51156 ], dtype=float32)
    """
    if not std > 0.0:
        raise runtime_error(f"log_normal_ expects std > 0.0, but found std={std}")
    out, flat = empty("log_normal_", shape, dtype, "f")
    exponents = fma64(standard(stream, len(flat)), std, mean)
    if out.dtype != np.float32 or len(flat) < GROUP:
        flat[...] = narrow(each(_exp, exponents), out.dtype)
        return out
    with np.errstate(over="ignore", under="ignore"):
        values = np.exp(exponents)  # may differ by an ulp, as log1p in `exponential`
        flat[...] = values
    # float32 has fewer bits, so its series ends earlier or later
    doubtful = near_halfway(values) | (values < TINY)
    if doubtful.any():
        flat[doubtful] = narrow(each(_exp, exponents[doubtful]), out.dtype)
    return out


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf
