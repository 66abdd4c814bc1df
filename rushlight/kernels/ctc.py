"""Connectionist temporal classification: the sum over all alignments, by the forward and backward recursions.

A label sequence l_1 ... l_S is read as b l_1 b l_2 b ... l_S b, with a blank b around each label: L = 2 S + 1 states.
In one step an alignment stays in its state, moves on by one state, or by two if that skips a blank between different
labels. All numbers are logarithms. All samples are computed together, padded to the longest. x is (T, N, C); L belongs
to the longest sequence.

A. Graves and others, Connectionist Temporal Classification, ICML 2006,
https://www.cs.toronto.edu/~graves/icml_2006.pdf"""

from __future__ import annotations

import numpy as np
from numpy import ndarray

Lengths = tuple[int, ...]


def ctc(
    x: ndarray, targets: ndarray, input_lengths: Lengths, target_lengths: Lengths, blank: int
) -> tuple[ndarray, ndarray]:
    """-log of the probability of each sample's labels (N,), and alpha (T, N, L), the log probabilities of the
    sequence's beginnings.
    """
    states, skips = states_of(targets, target_lengths, blank, x.shape[2])
    seen, skips = at_states(x, states), skips.astype(x.dtype)
    alpha = np.full(seen.shape, -np.inf, x.dtype)
    if len(x):
        alpha[0, :, :2] = seen[0, :, :2]
    room = np.empty((3, *seen.shape[1:]), x.dtype)
    with np.errstate(divide="ignore"):
        for t in range(1, len(x)):
            np.add(seen[t], step(alpha[t - 1], skips, room), out=alpha[t])
    n, last = np.arange(x.shape[1]), np.array(input_lengths, np.int64) - 1
    end = 2 * np.array(target_lengths, np.int64)
    done = alpha[last, n, end]
    done = np.where(end > 0, logs_added(done, alpha[last, n, end - 1]), done)
    return np.where(last >= 0, -done, np.where(end > 0, np.inf, 0)).astype(x.dtype, copy=False), alpha


def ctc_slope(
    x: ndarray,
    targets: ndarray,
    nll: ndarray,
    alpha: ndarray,
    input_lengths: Lengths,
    target_lengths: Lengths,
    blank: int,
) -> ndarray:
    """exp(x) - the probability that an alignment has class c at time t (T, N, C); nan for samples without any
    alignment.
    """
    states, skips = states_of(targets, target_lengths, blank, x.shape[2])
    seen = at_states(x, states)
    beta = ends(seen, skips.astype(x.dtype), input_lengths, target_lengths)
    with np.errstate(invalid="ignore"):  # -inf + inf without any alignment
        share = np.exp(alpha + beta + nll[:, None])
    r = np.exp(x, order="C")
    rows = np.arange(0, r.size, x.shape[2]).reshape(*x.shape[:2], 1)
    # several states have the same class
    np.subtract.at(r.reshape(-1), (rows + states).reshape(-1), share.reshape(-1))
    r[:, np.isinf(nll)] = np.nan
    r[np.arange(len(x))[:, None] >= np.array(input_lengths)] = 0
    return r


def states_of(targets: ndarray, lengths: Lengths, blank: int, classes: int) -> tuple[ndarray, ndarray]:
    """(classes (N, L), skips (N, L)): the class of each state; 0 if the state can be reached by skipping one, else
    -inf.
    """
    longest = max(lengths, default=0)
    labels = np.full((len(lengths), longest), blank, np.int64)
    kept = np.arange(longest) < np.array(lengths, np.int64)[:, None]
    labels[kept] = targets[:, :longest][kept] if targets.ndim == 2 else targets
    if labels.size and not 0 <= labels.min() <= labels.max() < classes:
        raise RuntimeError(
            f"targets must be in label range: classes from 0 to {classes - 1}, but they go from {labels.min()} to "
            f"{labels.max()}; hint: log_probs needs one class more than there are labels, for the blank"
        )
    states = np.full((len(lengths), 2 * longest + 1), blank, np.int64)
    states[:, 1::2] = labels
    skips = np.full(states.shape, -np.inf)
    skips[:, 2:][states[:, 2:] != states[:, :-2]] = 0
    return states, skips


def at_states(x: ndarray, states: ndarray) -> ndarray:
    """x (T, N, C) at the classes of the states: (T, N, L)."""
    return np.take_along_axis(x, states[None], 2)


def step(before: ndarray, skips: ndarray, room: ndarray) -> ndarray:
    """log of the sum over the states (N, L) from which each state is reached: itself and the two before it; room (3, N,
    L). The largest term is subtracted first; if all are -inf, the most negative finite number.
    """
    room[0] = before
    room[1, :, 0], room[2, :, :2] = -np.inf, -np.inf
    room[1, :, 1:] = before[:, :-1]
    np.add(before[:, :-2], skips[:, 2:], out=room[2, :, 2:])
    top = np.maximum(np.maximum.reduce(room, 0), LEAST[room.dtype])
    room -= top
    total = np.add.reduce(np.exp(room, out=room), 0)
    return np.add(np.log(total, out=total), top, out=top)


LEAST = {np.dtype(t): np.finfo(t).min for t in (np.float32, np.float64)}


def ends(seen: ndarray, skips: ndarray, input_lengths: Lengths, target_lengths: Lengths) -> ndarray:
    """beta (T, N, L): log of the probability of everything after a state and time, excluding the state's own
    probability.
    """
    beta = np.full(seen.shape, -np.inf, seen.dtype)
    steps, end = np.array(input_lengths, np.int64), 2 * np.array(target_lengths, np.int64)
    state = np.arange(seen.shape[2])
    last = np.where((state == end[:, None]) | (state == end[:, None] - 1), 0, -np.inf).astype(seen.dtype)
    back = skips[:, ::-1]  # state s can skip to s + 2 if `skips` allows s + 2
    leave = np.full_like(back, -np.inf)
    leave[:, 2:] = back[:, :-2]
    room = np.empty((3, *seen.shape[1:]), seen.dtype)
    with np.errstate(divide="ignore"):
        for t in range(len(seen) - 1, -1, -1):
            if t + 1 < len(seen):
                beta[t] = step((seen[t + 1] + beta[t + 1])[:, ::-1], leave, room)[:, ::-1]
            if t + 1 in input_lengths:
                here = steps == t + 1
                beta[t, here] = last[here]
    return beta


def logs_added(*terms: ndarray) -> ndarray:
    """log of the sum of exp of each term; -inf if all terms are -inf."""
    top = terms[0]
    for term in terms[1:]:
        top = np.maximum(top, term)
    base = np.where(np.isneginf(top), 0, top)
    with np.errstate(divide="ignore"):
        return base + np.log(sum(np.exp(term - base) for term in terms))
