"""Attention without the full score matrix: scores are computed in blocks that fit the cache, and recomputed in the
backward pass.

tensors: q (..., L, E), k (..., S, E), v (..., S, F) with the same leading dimensions, and an additive mask or None. The
result is 0 for a query whose keys are all masked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.base.buffer_pool import memory
from rushlight.base.faster import site
from rushlight.kernels.float16 import converted, is_half, single
from rushlight.kernels.im2col import wide_dtype
from rushlight.kernels.loss import counted
from rushlight.kernels.summation import add_reduce, max_reduce

BLOCK_SCORES = 1 << 18  # scores computed together: 1 MB of float32, which the L2 cache holds
# from this size on, memory comes from the buffer pool: a lookup takes 1 us
REUSED_ELEMENTS = 1 << 18


def attention(tensors: Sequence[ndarray], causal: bool, scale: float) -> tuple[ndarray, ndarray]:
    """softmax(q k^T scale + mask) v, and for each query log sum exp of its scores."""
    q, k, v, *rest = tensors
    mask = rest[0] if rest else None
    rows = q.shape[-1] == v.shape[-1] and q.strides[-1] == k.strides[-1] == v.strides[-1] == q.itemsize
    out = room((*q.shape[:-1], v.shape[-1]), q if rows else None, v.dtype)
    lse = np.empty(q.shape[:-1], wide_dtype(q.dtype))
    attend(q, k, v, mask, out, lse, causal, scale)
    return out, lse


@site
def attend(
    q: ndarray, k: ndarray, v: ndarray, mask: ndarray | None, out: ndarray, lse: ndarray, causal: bool, scale: float
) -> None:
    """Writes the results of `attention` into out and lse."""
    for _, (a, b, c, m, to, total, _, first) in blocks(q, k, v, mask, out, lse, out):
        s = scores(a * a.dtype.type(scale), b, m, first if causal else None)
        top = max_reduce(s, -1, None, None, True)
        if m is not None:  # all keys of a query are masked
            top = np.where(top == -np.inf, s.dtype.type(0), top)
        s -= top
        np.exp(s, out=s)
        weights = add_reduce(s, -1, None, None, True)
        if m is not None:
            nothing = weights == 0
            weights[nothing] = 1
            top[nothing] = -np.inf
        np.divide(np.matmul(s, c), weights, out=to, casting="same_kind")
        total[...] = (np.log(weights) + top)[..., 0]


def attention_back(tensors: Sequence[ndarray], causal: bool, scale: float) -> list[ndarray]:
    """The gradients of q, k and v. tensors: the arguments and the results of `attention`, then the gradient of its
    first result.

    p = exp(scores - lse), dv = p^T g, ds = p (g v^T - sum(g out)), dq = ds k scale, dk = ds^T q scale."""
    *given, out, lse, g = tensors
    # In half precision the differences have too few digits, also because `out` is rounded.
    if is_half(g):
        wide = [single(a) for a in given]
        made = [*wide, *attention(wide, causal, scale), single(g)]
        return [converted(a, g.dtype) for a in attention_back(made, causal, scale)]
    q, k, v, *rest = given
    mask = rest[0] if rest else None
    dq, dk, dv = rooms(q, k, v)
    attend_back(q, k, v, mask, out, lse, g, dq, dk, dv, causal, scale)
    return [dq, dk, dv]


@site
def attend_back(
    q: ndarray,
    k: ndarray,
    v: ndarray,
    mask: ndarray | None,
    out: ndarray,
    lse: ndarray,
    g: ndarray,
    dq: ndarray,
    dk: ndarray,
    dv: ndarray,
    causal: bool,
    scale: float,
) -> None:
    """Writes the results of `attention_back` into dq, dk and dv."""
    dk[...], dv[...] = 0, 0
    delta = np.add.reduce(g.astype(lse.dtype, copy=False) * out, -1)
    for part, (a, b, c, m, to, total, slope, first) in blocks(q, k, v, mask, dq, lse, g):
        a = a * a.dtype.type(scale)
        p = scores(a, b, m, first if causal else None)
        p -= np.where(total == -np.inf, np.inf, total)[..., None].astype(p.dtype, copy=False)
        np.exp(p, out=p)
        dv[part[0]] += np.matmul(p.swapaxes(-1, -2), slope)
        ds = np.matmul(slope, c.swapaxes(-1, -2))
        ds -= delta[part][..., None]
        ds *= p
        to[...] = np.matmul(ds, b) * a.dtype.type(scale)
        dk[part[0]] += np.matmul(ds.swapaxes(-1, -2), a)


def room(shape: tuple, like: ndarray | None, dtype: np.dtype) -> ndarray:
    """An empty array of this shape with the memory order of `like`: either all heads of a row, or all rows of a head,
    are contiguous.
    """
    take = np.empty if prod(shape) < REUSED_ELEMENTS else memory.take
    if like is not None and len(shape) == 4 and like.strides[1] < like.strides[2]:
        return take((shape[0], shape[2], shape[1], shape[3]), dtype).transpose(0, 2, 1, 3)
    return take(shape, dtype)


def rooms(q: ndarray, k: ndarray, v: ndarray) -> list[ndarray]:
    """Arrays for the gradients. If q, k and v are slices of one array, the gradients are adjacent too, so that
    concatenating them is free.
    """
    if q.ndim == 4 and q.strides == k.strides == v.strides and q.shape == k.shape == v.shape and q.dtype is v.dtype:
        samples, heads, length, width = q.shape
        if q.strides[2] == 3 * heads * q.strides[1] and q.strides[1] == width * q.itemsize:
            whole = memory.take((samples, length, 3, heads, width), q.dtype)
            return [whole[:, :, i].transpose(0, 2, 1, 3) for i in range(3)]
    return [room(a.shape, a, a.dtype) for a in (q, k, v)]


# -- NumPy -----------------------------------------------------------------------------------------


def blocks(
    q: ndarray, k: ndarray, v: ndarray, mask: ndarray | None, out: ndarray, lse: ndarray, g: ndarray
) -> Iterator[tuple]:
    """((samples, queries), (q, k, v, mask, out, lse, g, the first query's number)) for parts of at most BLOCK_SCORES
    scores."""
    lead, (L, S) = q.shape[:-2], (q.shape[-2], k.shape[-2])
    wide = wide_dtype(q.dtype)
    if q.dtype is not wide:
        q, k, v, g = (a.astype(wide) for a in (q, k, v, g))
    if prod(lead) * L * S <= BLOCK_SCORES:
        yield ((...,), (q, k, v, None if mask is None else mask.astype(wide, copy=False), out, lse, g, 0))
        return
    of_sample = prod(lead[1:]) * S
    rows = max(1, BLOCK_SCORES // max(1, of_sample))
    samples = max(1, rows // max(1, L)) if lead else 1
    if mask is not None:
        mask = np.broadcast_to(mask.astype(wide, copy=False), (*lead, L, S))
    for n in range(0, lead[0] if lead else 1, samples):
        own: Any = slice(n, n + samples) if lead else Ellipsis
        for i in range(0, L, min(rows, L)):
            to = slice(i, i + rows)
            part = (own, *(slice(None),) * (len(lead) - 1), to)
            yield (
                part,
                (q[part], k[own], v[own], None if mask is None else mask[part], out[part], lse[part], g[part], i),
            )


def scores(q: ndarray, k: ndarray, mask: ndarray | None, first: int | None) -> ndarray:
    """q k^T + mask. Unless `first` is None, keys after the query's own position (counted from `first`) get -inf."""
    s = np.matmul(q, k.swapaxes(-1, -2))
    if first is not None:
        rows, columns = s.shape[-2:]
        np.copyto(s, -np.inf, where=counted(columns) > counted(first + rows)[first:, None])
    if mask is not None:
        s += mask
    return s
