"""Large recurrent layers in float32: all steps of a direction in one compiled loop, and all steps back in another.

NumPy passes a dozen times over the gates of a step, and BLAS lays out the same weight anew for each of the small products.
Here the weight is laid out once, and a step is a product in vector registers and one pass over the gates; the text is made
from the cell's rule (recurrent_texts.py). The products before and after, over all steps, are BLAS's.

The size alone decides whether a loop is used (as in ops/large.py: exp and tanh differ from NumPy's in the last bits).
"""
from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
from numpy import ndarray

from rushlight.ops.cells import GRU, LSTM, RELU, STATE, TANH, Cell
from rushlight.ops.kernels import recurrent as kernels
from rushlight.ops.kernels.matmul import mm
from rushlight.ops.kernels.memory import aligned, memory
from rushlight.ops.kernels.recurrent import Arrays, Sizes, Steps, steps_of
from rushlight.optional import has_numba

LEAST = 1 << 15                                   # numbers in the gates of all steps from which loops are used: 2.5 ms, 1.2
FLOAT = np.dtype(np.float32)
NOTHING, ZEROS = np.empty(0, FLOAT), np.zeros(64, FLOAT)
HIGHEST = 6                                       # rows of a tile


class Loops(NamedTuple):
    """All steps, compiled, forward and back; and how many arrays the way back needs besides `out`."""

    forward: Callable
    back: Callable
    saved: int


@lru_cache(maxsize=64)
def loops(cell: Cell, projected: bool) -> Loops:
    from rushlight.compile.cache import compiled
    from rushlight.ops import recurrent_texts as texts
    _, states, saved, _ = texts.tape_of(cell)
    return Loops(compiled(texts.forward_text(cell, projected)), compiled(texts.back_text(cell, projected)),
                 sum([symbol is not states[0] for symbol in saved]))


def fit(tensors: Arrays) -> bool:
    """Whether loops are to do it."""
    x = tensors[0]
    return x.size >= LEAST and all([t.dtype == FLOAT for t in tensors]) and has_numba()


class Given(NamedTuple):
    """What a direction of a layer takes: x (..., gates H), h (N, P), weight (gates H, P); c (N, H) if the state around the
    product is not h; a bias (gates H,) of the product, and a projection (P, H) of h'.
    """

    x: ndarray
    h: ndarray
    weight: ndarray
    c: ndarray | None = None
    bias: ndarray | None = None
    projection: ndarray | None = None


class Rows(NamedTuple):
    """The steps' rows in memory, in the order of the loop; `apart`: from one sequence of a step to the next."""

    spans: ndarray                                # of each step the first row, how many, and their first in `saved`
    apart: int

    def flat(self, array: ndarray) -> ndarray:
        """(T, N, H), or rows (R, H), as (rows in memory, H)."""
        in_order = array.swapaxes(0, 1) if self.apart > 1 and array.ndim == 3 else array
        return np.ascontiguousarray(in_order).reshape(-1, array.shape[-1])

    def shaped(self, rows: ndarray, like: ndarray) -> ndarray:
        """(rows in memory, H) in the leading shape of the input."""
        if self.apart == 1:
            return rows.reshape(*like.shape[:-1], rows.shape[-1])
        return rows.reshape(like.shape[1], like.shape[0], -1).swapaxes(0, 1)

    def before(self, start: ndarray, out: ndarray, steps: Steps) -> ndarray:
        """For each row in memory the state of the step before: start (N, H), out (rows, H)."""
        if self.apart == 1:
            return steps.before(start, out)
        found, out = memory.take((len(start), self.apart, out.shape[1]), FLOAT), out.reshape(len(start), self.apart, -1)
        late, early = (slice(None, -1), slice(1, None)) if steps.reverse else (slice(1, None), slice(None, -1))
        found[:, late], found[:, -1 if steps.reverse else 0] = out[:, early], start
        return found.reshape(-1, out.shape[2])


@lru_cache(maxsize=256)
def rows_of(steps: Steps, back: bool, by_sequence: bool) -> Rows:
    """The rows of x; `by_sequence`: those of a sequence lie side by side, not those of a step."""
    spans = [(a, b - a, a) for a, b in (reversed(steps.spans) if back else steps.spans)]
    if by_sequence:
        spans = [(a // n, n, a) for a, n, _ in spans]
    return Rows(np.array([*spans, (0, 0, 0)], np.int64), len(spans) if by_sequence else 1)


def by_sequence(x: ndarray) -> bool:
    """Whether x (T, N, H) lies in memory as (N, T, H)."""
    return x.ndim == 3 and not x.flags.c_contiguous and x.swapaxes(0, 1).flags.c_contiguous


def panels(matrix: ndarray, wide: int) -> ndarray:
    """(depth, columns) -> (columns / wide, depth, wide), zeros where columns end."""
    depth, columns = matrix.shape
    whole, left = divmod(columns, wide)
    out = aligned((whole + (left > 0), depth, wide), FLOAT)
    out[:whole] = matrix[:, :whole * wide].reshape(depth, whole, wide).swapaxes(0, 1)
    if left:
        out[whole, :, :left], out[whole, :, left:] = matrix[:, whole * wide:], 0
    return out.ravel()


def forward(cell: Cell, given: Given, sizes: Sizes, reverse: bool) -> tuple[ndarray, ndarray, ndarray, ndarray]:
    """out (..., P), the last h and c, and what the way back needs (saved, rows, H)."""
    x, start, weight, c, bias, projection = given
    do, (n, p), width = loops(cell, projection is not None), start.shape, x.shape[-1]
    rows, hidden = rows_of(steps_of(x, n, sizes, reverse), False, by_sequence(x)), width // cell.count
    flat = rows.flat(x)
    out, saved = memory.take((len(flat), p), FLOAT), memory.take((len(flat), do.saved, hidden), FLOAT)
    h, more = aligned((n + HIGHEST, p), FLOAT), aligned((line_of(width),), FLOAT)
    h[:n], h[n:], more[:] = start, 0, 0
    if bias is not None:
        more[:width] = bias
    state, (product, narrow) = NOTHING if c is None else c.ravel().copy(), tiles_of(width, 2)
    do.forward(rows.spans, rows.apart, n, hidden, p, line_of(width), ZEROS, flat.ravel(), panels(weight.T, wide()), more,
               NOTHING if projection is None else panels(projection.T, wide()), h.ravel(), state, product, narrow,
               out.ravel(), saved.ravel())
    return rows.shaped(out, x), h[:n].copy(), state.reshape(n, -1), saved.swapaxes(0, 1)


def back(cell: Cell, given: Given, sizes: Sizes, reverse: bool, out: ndarray, saved: ndarray, g_out: ndarray, g_h: ndarray,
         g_c: ndarray | None = None) -> tuple[ndarray, ndarray, ndarray, ndarray, ndarray, ndarray]:
    """The gradients of x, h, c, weight, bias, and of h' before it is projected (rows, P)."""
    x, start, weight, c, _, projection = given
    do, (n, p), width = loops(cell, projection is not None), start.shape, x.shape[-1]
    steps, hidden = steps_of(x, n, sizes, reverse), width // cell.count
    rows = rows_of(steps, True, by_sequence(x))
    out, gh, state = rows.flat(out), g_h.copy(), np.zeros((n, hidden), FLOAT) if g_c is None else g_c.copy()
    g, g_bias = memory.take((len(out), width), FLOAT), np.zeros(width, FLOAT)
    g_x = memory.take((len(out), width), FLOAT) if cell.apart else g
    total = NOTHING if projection is None else memory.take((len(out), p), FLOAT)
    do.back(rows.spans, rows.apart, n, hidden, p, line_of(width), ZEROS, rows.flat(g_out).ravel(), panels(weight, wide()),
            NOTHING if projection is None else panels(projection, wide()), gh.ravel(), state.ravel(),
            np.ascontiguousarray(start if c is None else c).ravel(), *tiles_of(width, 5), out.ravel(),
            np.ascontiguousarray(saved.swapaxes(0, 1)).ravel(), total.ravel(), g.ravel(), g_x.ravel(), g_bias)
    if c is None and STATE in cell.sources:
        gh += state
    return rows.shaped(g_x, x), gh, state, mm(g.T, rows.before(start, out, steps)), g_bias, total


@cache
def wide() -> int:
    """Columns of a panel."""
    from rushlight.ops.recurrent_texts import columns_at_once
    return columns_at_once()


def line_of(width: int) -> int:
    """The row length of what a tile computes: whole panels, and an odd number of 64 bytes, so that rows do not meet in the
    same lines of the cache."""
    return -(-width // wide()) * wide() + 16


def tiles_of(width: int, many: int) -> ndarray:
    """Room for so many tiles."""
    return aligned((many, HIGHEST * line_of(width)), FLOAT)


# -- the kernels of the ops, by loops where they fit: what they take and give, kernels/recurrent.py says ------------------

def lstm(tensors: Arrays, sizes: Sizes, reverse: bool) -> tuple[ndarray, ...]:
    if not fit(tensors):
        return kernels.lstm(tensors, sizes, reverse)
    out, *rest = forward(LSTM, given_to_lstm(*tensors), sizes, reverse)
    return out, *rest


def lstm_back(tensors: Arrays, sizes: Sizes, reverse: bool) -> list[ndarray]:
    if not fit(tensors):
        return kernels.lstm_back(tensors, sizes, reverse)
    *own, out, saved, g_out, g_h, g_c = tensors
    given = given_to_lstm(*own)
    *found, g_bias, totals = back(LSTM, given, sizes, reverse, out, saved, g_out, g_h, g_c)
    if given.bias is not None:
        found.append(g_bias)
    return found if given.projection is None else [*found, totals.T @ (saved[2] * np.tanh(saved[4]))]


def given_to_lstm(x: ndarray, h: ndarray, c: ndarray, weight: ndarray, *more: ndarray) -> Given:
    return Given(x, h, weight, c, *kernels.bias_and_projection(more))


def gru(tensors: Arrays, sizes: Sizes, reverse: bool) -> tuple[ndarray, ...]:
    if not fit(tensors):
        return kernels.gru(tensors, sizes, reverse)
    x, h, weight, *bias = tensors
    out, h, _, saved = forward(GRU, Given(x, h, weight, None, *bias), sizes, reverse)
    return out, h, saved


def gru_back(tensors: Arrays, sizes: Sizes, reverse: bool) -> list[ndarray]:
    if not fit(tensors):
        return kernels.gru_back(tensors, sizes, reverse)
    x, h, weight, *bias, out, saved, g_out, g_h = tensors
    g_x, dh, _, g_weight, g_bias, _ = back(GRU, Given(x, h, weight), sizes, reverse, out, saved, g_out, g_h)
    return [g_x, dh, g_weight, *([g_bias] if bias else [])]


def rnn(tensors: Arrays, relu: bool, sizes: Sizes, reverse: bool) -> tuple[ndarray, ...]:
    if not fit(tensors):
        return kernels.rnn(tensors, relu, sizes, reverse)
    x, h, weight, *bias = tensors
    out, h, _, _ = forward(RELU if relu else TANH, Given(x, h, weight, None, *bias), sizes, reverse)
    return out, h


def rnn_back(tensors: Arrays, relu: bool, sizes: Sizes, reverse: bool) -> list[ndarray]:
    if not fit(tensors):
        return kernels.rnn_back(tensors, relu, sizes, reverse)
    x, h, weight, *bias, out, g_out, g_h = tensors
    g_x, dh, _, g_weight, g_bias, _ = back(RELU if relu else TANH, Given(x, h, weight), sizes, reverse, out,
                                           NOTHING.reshape(0, 0, 0), g_out, g_h)
    return [g_x, dh, g_weight, *([g_bias] if bias else [])]


def build(cell: Cell, x: ndarray, h: ndarray, weight: ndarray) -> None:
    """Compile the loops now, by a call; given are arrays of a layer whose size does not matter."""
    given = Given(x, h, weight, h if cell is LSTM else None)
    out, *_, saved = forward(cell, given, None, False)
    back(cell, given, None, False, out, saved, out, h, h if cell is LSTM else None)
