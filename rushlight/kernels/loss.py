"""Losses of single elements, and the negative log-likelihood of classes with its derivative."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy import ndarray

from rushlight.base import dtypes
from rushlight.kernels.float16 import converted, is_half, single
from rushlight.kernels.ufunc_at import all_below


def mse_loss(x: ndarray, y: ndarray) -> ndarray:
    d = np.asarray(x - y)
    d *= d
    return d


def huber_loss(x: ndarray, y: ndarray, delta: float = 1.0) -> ndarray:
    far = np.asarray(x - y)
    np.abs(far, out=far)
    near = np.minimum(far, delta)  # 32,768 in 60 us; `where` takes 190
    far -= 0.5 * near
    far *= near
    return far


def smooth_l1_loss(x: ndarray, y: ndarray, beta: float = 1.0) -> ndarray:
    r = huber_loss(x, y, beta)
    return r if beta == 1 else r / beta


def binary_cross_entropy(x: ndarray, y: ndarray) -> ndarray:
    """-(y log x + (1 - y) log(1 - x)), with logarithms of at least -100."""
    if x.size and not (np.minimum.reduce(x, None) >= 0 and np.maximum.reduce(x, None) <= 1):
        raise ValueError(
            "all elements of input should be between 0 and 1; hint: apply a sigmoid, or use "
            "binary_cross_entropy_with_logits"
        )
    low = x.dtype.type(-100)
    return (y - 1) * np.maximum(np.log1p(-x), low) - y * np.maximum(np.log(x), low)


def binary_cross_entropy_with_logits(x: ndarray, y: ndarray) -> ndarray:
    """(1 - y) max(x, 0) - y min(x, 0) + log(1 + exp(-|x|)), without overflow or cancellation; inf for x inf, y 0."""
    low, high = np.minimum(x, 0), np.maximum(x, 0)
    return np.log1p(np.exp(low - high)) + high * (1 - y) - low * y


@lru_cache(maxsize=64)
def counted(n: int) -> ndarray:
    """0, 1, ... n - 1; shared, so read-only."""
    r = np.arange(n)
    r.flags.writeable = False
    return r


def places(t: ndarray) -> tuple:
    """The key that reads (N, C, *d), or (C,), at the classes t (N, *d), or ()."""
    if t.ndim < 2:
        return (counted(len(t)), t) if t.ndim else (t,)
    first, *rest = grid(t.shape)
    return (first, t, *rest)


@lru_cache(maxsize=64)
def grid(shape: tuple[int, ...]) -> list[ndarray]:
    """Positions along each dimension, which broadcast to the shape; shared, so read-only. The cache saves 30 of the 100
    us of the loss of 2 images of 8 x 8.
    """
    axes = np.ogrid[tuple(slice(n) for n in shape)]
    for axis in axes:
        axis.flags.writeable = False
    return list(axes)


def kept_classes(
    target: ndarray, weight: ndarray | None, classes: int, ignore_index: int, dtype: np.dtype
) -> tuple[ndarray, ndarray | None, ndarray | None]:
    """(classes to look up, weights, ignored mask). Ignored classes have the weight 0. The weights are None if all are
    1, the mask is None if no class can be ignored.

    RuntimeError unless classes are int64 or uint8; IndexError if a class that is not ignored is outside range(classes).
    """
    if target.dtype != np.int64 and target.dtype != np.uint8:
        raise RuntimeError(
            f"expected target dtype to be Long or Byte, but got {dtypes.of(target.dtype).scalar_type}; hint: convert "
            "it with .long()"
        )
    t = target if target.dtype == np.int64 else target.astype(np.int64)
    if (all_below(t, classes) if t.size else classes > 0) and not 0 <= ignore_index < classes:
        return t, None if weight is None else weight[t], None
    ignored = t == ignore_index
    t = np.where(ignored, 0, t)
    if t.size and not all_below(t, classes):
        wrong = t[(t < 0) | (t >= classes)]
        raise IndexError(
            f"Target {wrong[0]} is out of bounds; hint: "
            + (
                f"classes are 0 to {classes - 1}"
                if classes > 1
                else "a single score for two classes: take binary_cross_entropy_with_logits"
            )
        )
    counts = (~ignored).astype(dtype) if weight is None else np.where(ignored, dtype.type(0), weight[t])
    return t, counts, ignored


def single_or_none(weight: ndarray | None) -> ndarray | None:
    return None if weight is None else single(weight)


def nll_loss(x: ndarray, target: ndarray, weight: ndarray | None, ignore_index: int, reduction: str) -> ndarray:
    """-weight[t] x[n, t]; its sum, or its mean over the weights."""
    # in float32, as torch does: sums in bfloat16 stop at 256
    if reduction != "none" and is_half(x):
        total = nll_loss(single(x), target, single_or_none(weight), ignore_index, reduction)
        return np.asarray(total).astype(x.dtype)
    classes = x.shape[min(x.ndim - 1, 1)]
    t, counts, ignored = kept_classes(target, weight, classes, ignore_index, x.dtype)
    found = x[places(t)]
    if counts is not None:
        found = times(found, None if weight is None else counts, ignored)
    if reduction == "none":
        return -found
    total = -np.add.reduce(found.ravel())  # takes half the time of axis=None
    return total if reduction == "sum" else shared_out(total, t, counts)


def times(x: ndarray, weights: ndarray | None, ignored: ndarray | None) -> ndarray:
    """x * weights, but 0 where the class is ignored, even if x is infinite there."""
    r = x
    if weights is not None:
        with np.errstate(invalid="ignore"):
            r = x * weights
    return r if ignored is None else np.where(ignored, x.dtype.type(0), r)


def nll_loss_grad(
    g: ndarray, target: ndarray, weight: ndarray | None, size: tuple, ignore_index: int, reduction: str
) -> ndarray:
    """The derivative of `nll_loss`: -weight[t] g at [n, t], 0 elsewhere."""
    if reduction == "mean" and is_half(g):  # a divisor of 70,000 would be inf in float16
        wide = nll_loss_grad(single(g), target, single_or_none(weight), size, ignore_index, reduction)
        return converted(wide, g.dtype)
    classes = size[min(len(size) - 1, 1)]
    t, counts, ignored = kept_classes(target, weight, classes, ignore_index, g.dtype)
    share = -g
    if reduction == "mean":
        share = shared_out(share, t, counts)
    r = np.zeros(size, g.dtype)
    r[places(t)] = share if counts is None else times(share, None if weight is None else counts, ignored)
    return r


def shared_out(total: ndarray, t: ndarray, counts: ndarray | None) -> ndarray:
    """total / the number of classes, or the sum of their weights; nan if that is 0."""
    if counts is None and t.size:
        return total / total.dtype.type(t.size)
    with np.errstate(invalid="ignore", divide="ignore"):
        return total / total.dtype.type(0 if counts is None else np.add.reduce(counts, None))
