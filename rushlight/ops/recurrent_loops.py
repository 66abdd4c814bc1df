"""Large recurrent layers in float32: all steps of a direction in one compiled loop, and all steps back in another.

NumPy passes a dozen times over the gates of a step, and BLAS lays out the same weight anew for each of the small products.
Here the weight is laid out once, and a step is a product in vector registers and one pass over the gates; the text is made
from the cell's rule (recurrent_texts.py). The products before and after, over all steps, are BLAS's.

The size alone decides whether a loop is used (as in ops/large.py: exp and tanh differ from NumPy's in the last bits).
"""
from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy import ndarray

from rushlight.adding import added
from rushlight.ops.cells import GRU, LSTM, RELU, STATE, TANH, Cell
from rushlight.ops.kernels import recurrent as kernels
from rushlight.ops.kernels.matmul import mm
from rushlight.ops.kernels.memory import memory
from rushlight.ops.kernels.recurrent import Arrays, Sizes, Steps, shaped
from rushlight.optional import has_numba

LEAST = 1 << 15                                   # numbers in the gates of all steps from which loops are used: 2.5 ms, 1.2
FLOAT = np.dtype(np.float32)
NOTHING = np.empty((0, 0), FLOAT)


class Loops(NamedTuple):
    """All steps, compiled, and for the room they need: rows and columns that are multiplied at once."""

    forward: Callable
    back: Callable
    saved: int                                    # arrays that the way back needs besides `out`
    high: int
    wide: int


@lru_cache(maxsize=64)
def loops(cell: Cell, projected: bool) -> Loops:
    from rushlight.compile.cache import compiled
    from rushlight.ops import recurrent_texts as texts
    _, states, saved, _ = texts.tape_of(cell)
    return Loops(compiled(texts.forward_text(cell, projected)), compiled(texts.back_text(cell, projected)),
                 sum([symbol is not states[0] for symbol in saved]), texts.rows_at_once(), texts.columns_at_once())


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


def panels(matrix: ndarray | None, wide: int) -> ndarray:
    """(depth, columns) -> (columns / wide, depth, wide), zeros where columns end."""
    if matrix is None:
        return NOTHING.reshape(0, 0, 0)
    depth, columns = matrix.shape
    many = -(-columns // wide)
    out = np.zeros((many, depth, wide), FLOAT)
    whole = columns // wide
    out[:whole] = matrix[:, :whole * wide].reshape(depth, whole, wide).swapaxes(0, 1)
    if whole < many:
        out[whole, :, :columns - whole * wide] = matrix[:, whole * wide:]
    return out


def room(rows: int, columns: int, high: int, wide: int = 1, rest: ndarray | None = None) -> ndarray:
    """Zeros for rows and columns in whole groups; the first are those of `rest`."""
    out = np.zeros((-(-rows // high) * high, -(-columns // wide) * wide), FLOAT)
    if rest is not None:
        out[:rows] = rest
    return out


def spans_of(steps: Steps) -> ndarray:
    """First row and number of rows of each step, in order."""
    return np.array([(a, b - a) for a, b in steps.spans], np.int64).reshape(-1, 2)


def forward(cell: Cell, given: Given, sizes: Sizes, reverse: bool) -> tuple[ndarray, ndarray, ndarray, ndarray]:
    """out (rows, P), the last h and c, and what the way back needs (saved, rows, H)."""
    x, start, weight, c, bias, projection = given
    steps, do, (n, p) = Steps(x, len(start), sizes, reverse), loops(cell, projection is not None), start.shape
    x, hidden = np.ascontiguousarray(x.reshape(-1, x.shape[-1])), x.shape[-1] // cell.count
    out, saved = memory.take((len(x), p), FLOAT), memory.take((do.saved, len(x), hidden), FLOAT)
    h, state = room(n, p, do.high, rest=start), NOTHING if c is None else c.copy()
    product, narrow = room(n, x.shape[1], do.high, do.wide), NOTHING if projection is None else room(n, hidden, do.high)
    do.forward(spans_of(steps), x, panels(weight.T, do.wide), np.zeros(x.shape[1], FLOAT) if bias is None else bias.copy(),
               panels(None if projection is None else projection.T, do.wide), h, state, product, narrow, out, saved)
    return out, h[:n].copy(), state, saved


def back(cell: Cell, given: Given, sizes: Sizes, reverse: bool, out: ndarray, saved: ndarray, g_out: ndarray, g_h: ndarray,
         g_c: ndarray | None = None) -> tuple[ndarray, ndarray, ndarray, ndarray, ndarray, ndarray]:
    """The gradients of x, h, c, weight, of the product (rows, gates H), and of h' before it is projected (rows, P)."""
    x, start, weight, c, _, projection = given
    steps, do, (n, p) = Steps(x, len(start), sizes, reverse), loops(cell, projection is not None), start.shape
    out, g_out = out.reshape(-1, p), np.ascontiguousarray(g_out.reshape(-1, p))
    earlier, hidden = steps.before(start, out), x.shape[-1] // cell.count
    before = earlier if c is None else steps.before(c, saved[4])
    gh, state = g_h.copy(), np.zeros((n, hidden), FLOAT) if g_c is None else g_c.copy()
    g = memory.take((len(out) + do.high, x.shape[-1]), FLOAT)
    g_x = memory.take(g.shape, FLOAT) if cell.apart else g
    total = NOTHING if projection is None else np.zeros((len(out) + do.high, p), FLOAT)
    narrow = NOTHING if projection is None else room(n, hidden, do.high, do.wide)
    do.back(spans_of(steps)[::-1].copy(), g_out, panels(weight, do.wide), panels(projection, do.wide), gh, state,
            room(n, p, do.high, do.wide), narrow, saved, before, total, g, g_x)
    if c is None and STATE in cell.sources:
        gh += state
    g, g_x, total = g[:len(out)], g_x[:len(out)], total[:len(out)]
    return g_x.reshape(x.shape), gh, state, mm(g.T, earlier), g, total


# -- the kernels of the ops, by loops where they fit: what they take and give, kernels/recurrent.py says ------------------

def lstm(tensors: Arrays, sizes: Sizes, reverse: bool) -> tuple[ndarray, ...]:
    if not fit(tensors):
        return kernels.lstm(tensors, sizes, reverse)
    out, *rest = forward(LSTM, given_to_lstm(*tensors), sizes, reverse)
    return shaped(out, tensors[0]), *rest


def lstm_back(tensors: Arrays, sizes: Sizes, reverse: bool) -> list[ndarray]:
    if not fit(tensors):
        return kernels.lstm_back(tensors, sizes, reverse)
    *own, out, saved, g_out, g_h, g_c = tensors
    given = given_to_lstm(*own)
    *found, _, totals = back(LSTM, given, sizes, reverse, out, saved, g_out, g_h, g_c)
    return found if given.projection is None else [*found, totals.T @ (saved[2] * saved[5])]


def given_to_lstm(x: ndarray, h: ndarray, c: ndarray, weight: ndarray, projection: ndarray | None = None) -> Given:
    return Given(x, h, weight, c, None, projection)


def gru(tensors: Arrays, sizes: Sizes, reverse: bool) -> tuple[ndarray, ...]:
    if not fit(tensors):
        return kernels.gru(tensors, sizes, reverse)
    x, h, weight, *bias = tensors
    out, h, _, saved = forward(GRU, Given(x, h, weight, None, *bias), sizes, reverse)
    return shaped(out, x), h, saved


def gru_back(tensors: Arrays, sizes: Sizes, reverse: bool) -> list[ndarray]:
    if not fit(tensors):
        return kernels.gru_back(tensors, sizes, reverse)
    x, h, weight, *bias, out, saved, g_out, g_h = tensors
    g_x, dh, _, g_weight, g, _ = back(GRU, Given(x, h, weight), sizes, reverse, out, saved, g_out, g_h)
    return [g_x, dh, g_weight, *([added(g, (0,))] if bias else [])]


def rnn(tensors: Arrays, relu: bool, sizes: Sizes, reverse: bool) -> tuple[ndarray, ...]:
    if not fit(tensors):
        return kernels.rnn(tensors, relu, sizes, reverse)
    out, h, _, _ = forward(RELU if relu else TANH, Given(*tensors), sizes, reverse)
    return shaped(out, tensors[0]), h


def rnn_back(tensors: Arrays, relu: bool, sizes: Sizes, reverse: bool) -> list[ndarray]:
    if not fit(tensors):
        return kernels.rnn_back(tensors, relu, sizes, reverse)
    *own, out, g_out, g_h = tensors
    rows = out.reshape(1, -1, out.shape[-1])
    g_x, dh, _, g_weight, _, _ = back(RELU if relu else TANH, Given(*own), sizes, reverse, out, rows, g_out, g_h)
    return [g_x, dh, g_weight]


def build(cell: Cell, x: ndarray, h: ndarray, weight: ndarray) -> None:
    """Compile the loops now, by a call; given are arrays of a layer whose size does not matter."""
    given = Given(x, h, weight, h if cell is LSTM else None)
    out, *_, saved = forward(cell, given, None, False)
    back(cell, given, None, False, out, saved if len(saved) else out[None], out, h, h if cell is LSTM else None)
