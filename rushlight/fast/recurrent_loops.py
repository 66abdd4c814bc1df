"""Large recurrent layers in float32: one compiled loop runs all steps of a direction, another all steps of its backward
pass.

NumPy makes a dozen passes over the gates of each step, and BLAS copies the same weight again for each small product.
Here the weight is copied once, and a step is a product in vector registers and one pass over the gates; the text is
generated from the cell's rule (fast/recurrent_text.py). BLAS computes the products before and after the loop, over all
steps.

The size decides whether a loop is used, and for small layers the work done so far (policy.py): exp and tanh differ from
NumPy's in the last bits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache, wraps
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray

from rushlight.base.buffer_pool import aligned, memory
from rushlight.base.dependencies import has_llvmlite
from rushlight.fast.index import RECURRENT_ELEMENTS, RECURRENT_PARALLEL_PRODUCTS, RECURRENT_PASSES
from rushlight.fast.policy import charge_passes
from rushlight.kernels.matmul import mm
from rushlight.kernels.recurrent import Arrays, Sizes, Steps, bias_and_projection, steps_of
from rushlight.ops.nn.recurrent_cells import GRU, LSTM, RELU, STATE, TANH, Cell

FLOAT = np.dtype(np.float32)
NOTHING, ZEROS = np.empty(0, FLOAT), np.zeros(64, FLOAT)
HIGHEST = 6  # rows of a tile
NEAR = 1 << 17  # floats of a weight that leave room in the L2 cache


class Loops(NamedTuple):
    """The compiled loops over all steps, forward and backward, and the number of arrays besides `out` that backward
    needs."""

    forward: Callable
    back: Callable
    step: Callable  # a single step, whose product is already computed
    step_back: Callable
    saved: int


@lru_cache(maxsize=64)
def loops(cell: Cell, projected: bool) -> Loops:
    from rushlight.fast import recurrent_text as texts
    from rushlight.loops.cache import compiled

    _, states, saved, _ = texts.tape_of(cell)
    return Loops(
        compiled(texts.forward_text(cell, projected)),
        compiled(texts.back_text(cell, projected)),
        compiled(texts.step_text(cell)),
        compiled(texts.step_back_text(cell)),
        sum([symbol is not states[0] for symbol in saved]),
    )


class Given(NamedTuple):
    """The arguments of a direction of a layer: x (..., gates H), h (N, P), weight (gates H, P); c (N, H) if the outer
    state is not h; the product's bias (gates H,), and a projection (P, H) of h'.
    """

    x: ndarray
    h: ndarray
    weight: ndarray
    c: ndarray | None = None
    bias: ndarray | None = None
    projection: ndarray | None = None

    def is_a_step(self) -> bool:
        return self.projection is None and self.x.size == len(self.h) * self.x.shape[-1]


class Rows(NamedTuple):
    """The steps' rows in memory, in the order of the loop; `apart`: the distance between the sequences of a step."""

    spans: ndarray  # for each step: the first row, the number of rows, and their first row in `saved`
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
        """For each row in memory, the state of the step before: start (N, H), out (rows, H)."""
        if self.apart == 1:
            return steps.before(start, out)
        out = out.reshape(len(start), self.apart, -1)
        found = memory.take(out.shape, FLOAT)
        late, early = (slice(None, -1), slice(1, None)) if steps.reverse else (slice(1, None), slice(None, -1))
        found[:, late], found[:, -1 if steps.reverse else 0] = out[:, early], start
        return found.reshape(-1, out.shape[2])


@lru_cache(maxsize=256)
def rows_of(steps: Steps, back: bool, by_sequence: bool) -> Rows:
    """The rows of x; `by_sequence`: the rows of a sequence are adjacent, not the rows of a step."""
    spans = [(a, b - a, a) for a, b in (reversed(steps.spans) if back else steps.spans)]
    if by_sequence:  # a step's rows are one row of each sequence: the first is the number of the step
        spans = [(a // n, n, a) for a, n, _ in spans]
    return Rows(np.array([*spans, (0, 0, 0)], np.int64), len(spans) if by_sequence else 1)


def by_sequence(x: ndarray) -> bool:
    """True if x (T, N, H) is in memory as (N, T, H)."""
    return x.ndim == 3 and not x.flags.c_contiguous and x.swapaxes(0, 1).flags.c_contiguous


def panels(matrix: ndarray | None) -> int:
    """The number of panels for the columns of (depth, columns)."""
    return 0 if matrix is None else -(-matrix.shape[1] // wide())


def lay(matrix: ndarray | None, room: ndarray) -> ndarray:
    """(depth, columns) as (panels, depth, columns of a panel), padded with zeros."""
    if matrix is not None:
        depth, columns = matrix.shape
        whole, left = divmod(columns, wide())
        out = room.reshape(-1, depth, wide())
        out[:whole] = matrix[:, : columns - left].reshape(depth, whole, wide()).swapaxes(0, 1)
        if left:
            out[whole, :, :left], out[whole, :, left:] = matrix[:, columns - left :], 0
    return room


def room(*sizes: int) -> list[ndarray]:
    """Memory for arrays of these sizes; each starts at a cache line."""
    ends = list(accumulate([-(-n // 16) * 16 for n in sizes]))
    all_of_it = aligned((ends[-1],), FLOAT)
    return [all_of_it[a : a + n] for a, n in zip([0, *ends], sizes)]


def forward(cell: Cell, given: Given, sizes: Sizes, reverse: bool) -> tuple[ndarray, ndarray, ndarray, ndarray]:
    """out (..., P), the last h and c, and the values that backward needs (saved, rows, H)."""
    if given.is_a_step():
        return step(cell, given)
    x, start, weight, c, bias, projection = given
    do, (n, p), width = loops(cell, projection is not None), start.shape, x.shape[-1]
    rows = rows_of(steps_of(x, n, sizes, reverse), False, by_sequence(x))
    hidden, line = width // cell.gate_count, line_of(width)
    turned, last = weight.T, None if projection is None else projection.T
    bounds, flat, tile = shares(n, x.size * p, weight), rows.flat(x), rows_together(n, weight) * line
    out, saved = memory.take((len(flat), p), FLOAT), memory.take((len(flat), do.saved, hidden), FLOAT)
    h, more, first, second, *tiles = room(
        (n + HIGHEST) * p,
        line,
        panels(turned) * p * wide(),
        panels(last) * hidden * wide(),
        *(tile, 0 if projection is None else tile) * len(bounds),
    )
    h[: n * p], h[n * p :], more[:width], more[width:] = start.ravel(), 0, 0 if bias is None else bias, 0
    state, first, second = NOTHING if c is None else c.copy(), lay(turned, first), lay(last, second)
    from rushlight.loops.parallel import pool  # imported late: the browser has no threads

    read = *rows, n, hidden, p, line, ZEROS, flat.ravel(), first, more, second, h, state.ravel()
    made = out.ravel(), saved.ravel()
    pool.run(do.forward, [(*share, *read, *tiles[2 * k : 2 * k + 2], *made) for k, share in enumerate(bounds)])
    return rows.shaped(out, x), h[: n * p].reshape(n, p).copy(), state, saved.swapaxes(0, 1)


def back(
    cell: Cell,
    given: Given,
    sizes: Sizes,
    reverse: bool,
    out: ndarray,
    saved: ndarray,
    g_out: ndarray,
    g_h: ndarray,
    g_c: ndarray | None = None,
) -> tuple[ndarray, ndarray, ndarray, ndarray, ndarray, ndarray]:
    """The gradients of x, h, c, weight, bias, and of h' before its projection (rows, P)."""
    if given.is_a_step():
        return *step_back(cell, given, out, saved, g_out, g_h, g_c), NOTHING
    x, start, weight, c, _, projection = given
    do, (n, p), width = loops(cell, projection is not None), start.shape, x.shape[-1]
    steps, hidden, bounds = steps_of(x, n, sizes, reverse), width // cell.gate_count, shares(n, x.size * p, weight)
    rows = rows_of(steps, True, by_sequence(x))
    out, gh, state = rows.flat(out), g_h.copy(), np.zeros((n, hidden), FLOAT) if g_c is None else g_c.copy()
    g, g_bias = memory.take((len(out), width), FLOAT), np.zeros((len(bounds), width), FLOAT)
    g_x = memory.take((len(out), width), FLOAT) if cell.apart else g
    total = NOTHING if projection is None else memory.take((len(out), p), FLOAT)
    line = line_of(width)
    tile = rows_together(n, weight) * line
    first, second, *tiles = room(
        panels(weight) * width * wide(),
        panels(projection) * p * wide(),
        *(tile, *(0 if projection is None else tile,) * 2, tile, line) * len(bounds),
    )
    early, saved = np.ascontiguousarray(start if c is None else c), np.ascontiguousarray(saved.swapaxes(0, 1))
    g_out, first, second = rows.flat(g_out), lay(weight, first), lay(projection, second)
    from rushlight.loops.parallel import pool  # imported late: the browser has no threads

    layout = *rows, n, hidden, p, line, ZEROS
    read = g_out.ravel(), first, second, gh.ravel(), state.ravel(), early.ravel()
    made = [a.ravel() for a in (out, saved, total, g, g_x)]
    calls = [(*share, *layout, *read, *tiles[5 * k : 5 * k + 5], *made, g_bias[k]) for k, share in enumerate(bounds)]
    pool.run(do.back, calls)
    if c is None and STATE in cell.sources:
        gh += state
    return (rows.shaped(g_x, x), gh, state, mm(g.T, rows.before(start, out, steps)), np.add.reduce(g_bias, 0), total)


def cores() -> int:
    from rushlight.base.threads import cores  # imported late: the browser has no threads

    return cores()


def shares(sequences: int, work: int, weight: ndarray) -> list[tuple[int, int, int]]:
    """For each core: its first tile of sequences, the tile after its last, and the number of tiles that run through the
    steps together; `work`: multiplications.
    """
    tiles = -(-sequences // HIGHEST)
    parts = min(cores(), tiles) if work >= RECURRENT_PARALLEL_PRODUCTS else 1
    return [(*pair, together(weight)) for pair in pairwise([tiles * k // parts for k in range(parts + 1)])]


def together(weight: ndarray) -> int:
    """The number of tiles that run through the steps together. If the weight leaves room in the L2 cache, results of
    two tiles stay there (50 steps of 64 sequences, 128 wide: 0.90 of the time of eight forward, 0.97 backward; 128
    sequences, 64 wide: 0.80, 0.98); otherwise the weight is read once for eight tiles.
    """
    return 2 if weight.size <= NEAR else 8


def rows_together(sequences: int, weight: ndarray) -> int:
    """Rows of the tiles that are computed together."""
    return min(sequences + HIGHEST, HIGHEST * together(weight))


@cache
def wide() -> int:
    """Columns of a panel."""
    from rushlight.fast.recurrent_text import columns_at_once

    return columns_at_once()


def line_of(width: int) -> int:
    """The row length of a tile's results: whole panels, and an odd number of 64 bytes, so that rows map to different
    cache sets.
    """
    return -(-width // wide()) * wide() + 16


# -- a single step, as cells do it -----------------------------------------------------------------


def step(cell: Cell, given: Given) -> tuple[ndarray, ndarray, ndarray, ndarray]:
    """The result of `forward` for one step: BLAS computes the product, a loop the rest."""
    x, start, weight, c, bias, _ = given
    do, (n, p), h, state = loops(cell, False), start.shape, start.copy(), NOTHING if c is None else c.copy()
    out, saved = np.empty((*x.shape[:-1], p), FLOAT), np.empty((n, do.saved, p), FLOAT)
    bias = np.zeros(len(weight), FLOAT) if bias is None else bias
    flat = [a.ravel() for a in (x, np.dot(start, weight.T), bias, h, state, out, saved)]
    do.step(n, p, *flat)
    return out, h, state, saved.swapaxes(0, 1)


def step_back(
    cell: Cell, given: Given, out: ndarray, saved: ndarray, g_out: ndarray, g_h: ndarray, g_c: ndarray | None = None
) -> tuple[ndarray, ndarray, ndarray, ndarray, ndarray]:
    """The gradients of x, h, c, weight and bias."""
    x, start, weight, c, bias, _ = given
    state, g = np.zeros(start.shape, FLOAT) if g_c is None else g_c.copy(), np.empty((len(start), len(weight)), FLOAT)
    g_x = np.empty(g.shape, FLOAT) if cell.apart else g
    arrays = g_h, g_out, state, start if c is None else c, out, saved.swapaxes(0, 1), g, g_x
    loops(cell, False).step_back(*start.shape, *[a.ravel() for a in arrays])
    gh = np.dot(g, weight)
    if c is None and STATE in cell.sources:
        gh += state
    return g_x.reshape(x.shape), gh, state, np.dot(g.T, start), np.add.reduce(g, 0)


# -- the ways of the kernels in kernels/recurrent.py ------------------------------------------------


def fits(tensors: Arrays) -> bool:
    """True if loops support this work."""
    x, h = tensors[:2]
    return all([t.dtype is FLOAT for t in tensors]) and h.size > 0 and x.size > 0 and has_llvmlite()


def charge(tensors: Arrays) -> bool:
    """Charge NumPy's passes over the gates of each step. Returns whether loops do this work."""
    x, h = tensors[:2]
    step_elements = len(h) * x.shape[-1]
    passes = RECURRENT_PASSES * (x.size // step_elements)
    return charge_passes(passes, step_elements, x.size >= RECURRENT_ELEMENTS)


def for_large_layers(way: Callable) -> Callable:
    """The way, but it returns None if NumPy should do the work."""

    @wraps(way)
    def run(tensors: Arrays, *settings: Any) -> Any:
        return way(tensors, *settings) if fits(tensors) and charge(tensors) else None

    return run


@for_large_layers
def lstm(tensors: Arrays, sizes: Sizes, reverse: bool) -> tuple[ndarray, ...]:
    out, *rest = forward(LSTM, given_to_lstm(*tensors), sizes, reverse)
    return out, *rest


@for_large_layers
def lstm_back(tensors: Arrays, sizes: Sizes, reverse: bool) -> list[ndarray]:
    *own, out, saved, g_out, g_h, g_c = tensors
    given = given_to_lstm(*own)
    *found, g_bias, totals = back(LSTM, given, sizes, reverse, out, saved, g_out, g_h, g_c)
    if given.bias is not None:
        found.append(g_bias)
    return found if given.projection is None else [*found, totals.T @ (saved[2] * np.tanh(saved[4]))]


def given_to_lstm(x: ndarray, h: ndarray, c: ndarray, weight: ndarray, *more: ndarray) -> Given:
    return Given(x, h, weight, c, *bias_and_projection(more))


@for_large_layers
def gru(tensors: Arrays, sizes: Sizes, reverse: bool) -> tuple[ndarray, ...]:
    x, h, weight, *bias = tensors
    out, h, _, saved = forward(GRU, Given(x, h, weight, None, *bias), sizes, reverse)
    return out, h, saved


@for_large_layers
def gru_back(tensors: Arrays, sizes: Sizes, reverse: bool) -> list[ndarray]:
    x, h, weight, *bias, out, saved, g_out, g_h = tensors
    g_x, dh, _, g_weight, g_bias, _ = back(GRU, Given(x, h, weight), sizes, reverse, out, saved, g_out, g_h)
    return [g_x, dh, g_weight, *([g_bias] if bias else [])]


@for_large_layers
def rnn(tensors: Arrays, relu: bool, sizes: Sizes, reverse: bool) -> tuple[ndarray, ...]:
    x, h, weight, *bias = tensors
    out, h, _, _ = forward(RELU if relu else TANH, Given(x, h, weight, None, *bias), sizes, reverse)
    return out, h


@for_large_layers
def rnn_back(tensors: Arrays, relu: bool, sizes: Sizes, reverse: bool) -> list[ndarray]:
    x, h, weight, *bias, out, g_out, g_h = tensors
    g_x, dh, _, g_weight, g_bias, _ = back(
        RELU if relu else TANH, Given(x, h, weight), sizes, reverse, out, NOTHING.reshape(0, 0, 0), g_out, g_h
    )
    return [g_x, dh, g_weight, *([g_bias] if bias else [])]


def build(cell: Cell, x: ndarray, h: ndarray, weight: ndarray) -> None:
    """Compile the loops now, by calling them with arrays of one step; the layer's size does not matter."""
    for steps in (1, 2):
        given = Given(np.concatenate([x] * steps), h, weight, h if cell is LSTM else None)
        out, *_, saved = forward(cell, given, None, False)
        back(cell, given, None, False, out, saved, out, h, h if cell is LSTM else None)
