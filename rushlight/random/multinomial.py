"""Choices by weight: `torch.multinomial`."""

from __future__ import annotations

import numpy as np

from rushlight.base.errors import runtime_error
from rushlight.base.intp import as_int64
from rushlight.base.memory_format import room_like
from rushlight.random.blocks import in_memory_order, kind_of

from .continuous import exponential
from .stream import Stream

_MAX_CATEGORIES = 2**24

# numbers of comparisons, of a row and in total, below which comparing is faster than searching
MAX_ROW_COMPARISONS, MAX_COMPARISONS = 1 << 12, 1 << 22


def multinomial(stream: Stream, weights: np.ndarray, num_samples: int, replacement: bool = False) -> np.ndarray:
    """Indices into the last dimension of `weights`, each drawn in proportion to its weight.

    Shapes: weights (c,) -> (num_samples,), (n, c) -> (n, num_samples). Dtypes: weights floating, result int64.
    RuntimeError for other shapes, weights that are negative, infinite, nan or all zero, and for more samples without
    replacement than categories. One sample, or no replacement: the largest of weight / exponential (equal quotients in
    float16 or bfloat16 may be in another order than torch's). Else the inverse of the cumulative sum.

    >>> rushlight.Generator().manual_seed(0).multinomial(np.array([0.1, 0.2, 0.7]), 2)
    array([2, 1])
    """
    check(weights, num_samples, replacement)
    if replacement and num_samples > 1:
        return _with_replacement(stream, np.atleast_2d(weights), num_samples).reshape(*weights.shape[:-1], num_samples)
    lifetimes = room_like(weights, weights.dtype)
    target = in_memory_order(lifetimes)
    target[...] = exponential(stream, target.shape, weights.dtype)
    with np.errstate(divide="ignore", invalid="ignore"):
        ranks = weights / lifetimes
    if num_samples == 1:
        return as_int64(ranks.argmax(-1))[..., None]
    return as_int64(np.argsort(-ranks, axis=-1, kind="stable"))[..., :num_samples].copy()


def _with_replacement(stream: Stream, weights: np.ndarray, n: int) -> np.ndarray:
    """weights (rows, c) -> (rows, n): how many of a row's cumulative sums are less than a uniform number."""
    cumulative = np.add.accumulate(weights, -1, weights.dtype if weights.itemsize > 2 else np.float32)
    cumulative /= cumulative[:, -1:]
    cumulative[:, -1] = 1
    cumulative, draws = cumulative.astype(np.float64), stream.uniform53(len(weights) * n).reshape(len(weights), n)
    # comparing is faster for many rows with few categories
    if cumulative.shape[1] * n <= MAX_ROW_COMPARISONS and cumulative.size * n <= MAX_COMPARISONS:
        return as_int64(np.count_nonzero(cumulative[:, None] < draws[..., None], -1))
    return np.array([np.searchsorted(row, u, "left") for row, u in zip(cumulative, draws)], np.int64)


def check(weights: np.ndarray, num_samples: int, replacement: bool) -> None:
    if kind_of(weights.dtype) != "f":
        raise runtime_error(
            f"multinomial only supports floating-point dtypes for input, got: {weights.dtype}: convert the "
            "weights to a floating dtype"
        )
    if weights.ndim not in (1, 2):
        raise runtime_error(f"multinomial: prob_dist must be 1 or 2 dim, got shape {weights.shape}")
    categories = weights.shape[-1]
    if num_samples <= 0:
        raise runtime_error(f"multinomial: cannot sample n_sample <= 0 samples, got {num_samples}")
    if not replacement and num_samples > categories:
        raise runtime_error(
            f"multinomial: cannot sample n_sample > prob_dist.size(-1) samples without replacement: {num_samples} "
            f"> {categories}; pass replacement=True or fewer samples"
        )
    if categories > _MAX_CATEGORIES:
        raise runtime_error(f"multinomial: number of categories cannot exceed 2^24, got {categories}")
    if weights.size and weights.itemsize > 2:  # a test of four calls; valid weights need no other
        total, least, most = np.add.reduce(weights, -1), np.minimum.reduce, np.maximum.reduce
        if least(weights, None) >= 0 and least(total, None) > 0 and most(total, None) < np.inf:
            return
    if replacement and not np.isfinite(weights).all():
        raise runtime_error("invalid multinomial distribution (encountering probability entry = infinity or NaN)")
    if replacement and not (weights >= 0).all():
        raise runtime_error("invalid multinomial distribution (encountering probability entry < 0)")
    if not ((weights >= 0) & np.isfinite(weights)).all():
        raise runtime_error("multinomial: probability tensor contains either `inf`, `nan` or element < 0")
    if weights.size and not (weights.sum(-1) > 0).all() or not categories:
        raise runtime_error("multinomial: invalid multinomial distribution (sum of probabilities <= 0)")
