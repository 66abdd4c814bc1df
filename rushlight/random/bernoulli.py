"""Zeros and ones: `torch.bernoulli`, `bernoulli_`, and the masks of all dropouts."""

from __future__ import annotations

import math

import numpy as np

from rushlight.base.dtypes import of
from rushlight.base.errors import not_implemented_error, runtime_error
from rushlight.random.blocks import DType, Shape, blocks, empty, kind_of
from rushlight.random.choose_loop import Loop

from .stream import MAX_SMALL_DRAW, Stream

_LOOP = Loop("chances", cost=1 / 16, call=1)
STREAMS = ("portable", "intel")
_INTEL_MODULUS, _INTEL_FACTOR = 2**31 - 1, 1132489760
_LOW_53 = np.array(2**53 - 1, np.uint64)


def bernoulli(stream: Stream, p: np.ndarray, dtype: DType | None = None) -> np.ndarray:
    """1 where u < p, else 0, for a probability per element; u has 53 bits if p is float64, else 24.

    Shape: the shape of p. Dtypes: p floating; result: `dtype`, default the dtype of p. RuntimeError if a p is not in
    [0, 1].

    >>> rushlight.Generator().manual_seed(0).bernoulli(np.array([0.5, 1.0, 0.0]))
    array([0., 1., 0.])
    """
    if kind_of(p.dtype) != "f":
        raise not_implemented_error(
            f"\"bernoulli\" not implemented for '{of(p.dtype).scalar_type}': convert p to a floating dtype"
        )
    good = (p >= 0) & (p <= 1)
    if not good.all():
        raise runtime_error(
            "Expected p_in >= 0 && p_in <= 1 to be true, but got false: bernoulli needs probabilities in [0, 1], "
            f"got {p[~good].ravel()[0]}"
        )
    out, flat = empty("bernoulli", p.shape, p.dtype if dtype is None else dtype, "fiub")
    if p.dtype == np.float64:
        flat[...] = stream.uniform53(p.size) < p.reshape(-1)
    else:
        flat[...] = stream.uniform24(p.size) < p.reshape(-1).astype(np.float32, copy=False)
    return out


def bernoulli_scalar(stream: Stream, p: float, shape: Shape, dtype: DType = np.bool_) -> np.ndarray:
    """1 where u < p, else 0, for one probability; u has 53 bits for all dtypes.

    Shape: `shape`. Dtypes: bool, integers, floating. RuntimeError if p is not in [0, 1]. The numbers depend on the
    generator's attribute `stream`; see `Generator`.

    >>> rushlight.Generator().manual_seed(123).bernoulli_scalar(0.5, 6).astype(int)
    array([1, 1, 0, 1, 1, 0])
    """
    if not 0.0 <= p <= 1.0:
        raise runtime_error(f"bernoulli_ expects p to be in [0, 1], but got p={p}")
    out, flat = empty("bernoulli_", shape, dtype, "fiub")
    if stream.variant == "intel":
        flat[...] = intel_uniform(int(stream.words(1)[0]), len(flat)) < p
        return out
    if len(flat) <= MAX_SMALL_DRAW:
        np.less(stream.uniform53(len(flat)), p, out=flat, casting="unsafe")
        return out
    below = np.uint64(math.ceil(p * 2.0**53))  # u < p as integers: u 2^53 < p 2^53
    loop = _LOOP(len(flat)) if flat.dtype == np.float32 else None
    for block in blocks(flat):
        if loop is not None:
            loop(stream.words(2 * len(block)), block, below)
            continue
        bits = stream.double_words(len(block))
        bits &= _LOW_53
        np.less(bits, below, out=block, casting="unsafe")
    return out


def intel_uniform(seed: int, n: int) -> np.ndarray:
    """(n,) float64 in (0, 1) of Intel MKL's generator MCG31m1: x / m, then x <- 1132489760 x mod m, m = 2^31 - 1."""
    x = np.empty(n, np.uint64)
    x[:1] = seed % _INTEL_MODULUS or 1
    done, leap = 1, _INTEL_FACTOR  # leap = factor^done: its product with the first half is the second half
    while done < n:
        x[done : 2 * done] = x[:done][: n - done] * np.uint64(leap) % np.uint64(_INTEL_MODULUS)
        done, leap = 2 * done, leap * leap % _INTEL_MODULUS
    return x / float(_INTEL_MODULUS)
