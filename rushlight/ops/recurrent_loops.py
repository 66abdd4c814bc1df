"""Large recurrent layers: what a step does to the gates as one compiled loop, forward and back.

NumPy passes a dozen times over the gates of a step. The loop's text is made from the cell's own rule: the function of ops
that says what a step does to each element (cells.py) is run once on symbols and leaves a tape; the loop forward is the tape
written out, the loop back the tape walked from its end by the rules of the table. What the cell says it saves is read
there, everything else computed again.

>>> print(back_text(TANH, np.dtype("float32")))
def kernel(h, g_state, saved, before, g, g_x, start):
    restrict()
    wide()
    n = h.shape[1]
    for r in range(h.shape[0]):
        h_0 = h[r, :n]
        saved_0 = saved[0, start + r, :n]
        g_0 = g[start + r, :n]
        for j in range(n):
            t0 = h_0[j]
            t1 = t0 * (f32(1) - saved_0[j] * saved_0[j])
            g_0[j] = t1
"""
from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray

from rushlight.adding import added
from rushlight.ops.cells import GRU, LSTM, RELU, STATE, TANH, Cell
from rushlight.ops.kernels import recurrent as kernels
from rushlight.ops.kernels.memory import memory
from rushlight.ops.kernels.recurrent import Arrays, Sizes, Steps, first_rows, shaped
from rushlight.ops.table import TABLE, parameters, rebind

LEAST = 1 << 17                                   # numbers in the gates of all steps from which loops are used
DTYPES = (np.dtype(np.float32), np.dtype(np.float64))
Symbol = object


class Loops(NamedTuple):
    """The compiled loops of a step, whose texts are below; how many arrays the way back needs besides `out`."""

    forward: Callable
    back: Callable
    saved: int


@lru_cache(maxsize=64)
def loops(cell: Cell, dtype: np.dtype) -> Loops:
    from rushlight.compile.cache import compiled
    text = Text(cell, dtype)
    return Loops(compiled(forward_text(cell, dtype)), compiled(back_text(cell, dtype)),
                 sum([symbol is not text.states[0] for symbol in text.saved]))


def fit(tensors: Arrays) -> bool:
    """Whether loops are to do it: by dtype and size alone, so that a program repeated gives the same numbers."""
    x = tensors[0]
    return x.size >= LEAST and x.dtype in DTYPES and all([t.dtype == x.dtype for t in tensors]) and \
        find_spec("numba") is not None


# -- all steps -----------------------------------------------------------------------------------------------------------

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


def forward(cell: Cell, given: Given, sizes: Sizes, reverse: bool) -> tuple[ndarray, ndarray, ndarray, ndarray]:
    """out (rows, P), the last h and c, and what the way back needs (saved, rows, H)."""
    x, start, weight, c, bias, projection = given
    steps, step = Steps(x, len(start), sizes, reverse), loops(cell, x.dtype)
    x, h, w = np.ascontiguousarray(x.reshape(-1, x.shape[-1])), start.copy(), np.ascontiguousarray(weight.T)
    hidden = start.shape[1] if projection is None else projection.shape[1]
    out, saved = memory.take((len(x), start.shape[1]), x.dtype), memory.take((step.saved, len(x), hidden), x.dtype)
    products, narrow = np.empty((len(h), x.shape[1]), x.dtype), np.empty((len(h), hidden), x.dtype)
    bias, state = np.zeros(x.shape[1], x.dtype) if bias is None else bias.copy(), None if c is None else c.copy()
    for a, b in steps.spans:
        h = first_rows(h, start, b - a)
        product, to = np.matmul(h, w, out=products[:b - a]), out[a:b]
        new = to if projection is None else narrow[:b - a]
        step.forward(product, bias, x, h if state is None else state, new, saved, a)
        h = to if projection is None else np.matmul(new, projection.T, out=to)
    return out, steps.last(out, start), h if state is None else state, saved


def back(cell: Cell, given: Given, sizes: Sizes, reverse: bool, out: ndarray, saved: ndarray, g_out: ndarray, g_h: ndarray,
         g_c: ndarray | None = None) -> tuple[ndarray, ndarray, ndarray, ndarray, ndarray, ndarray]:
    """The gradients of x, h, c, weight, of the product (rows, gates H), and of h' before it is projected (rows, P)."""
    x, start, weight, c, _, projection = given
    steps, step = Steps(x, len(start), sizes, reverse), loops(cell, x.dtype)
    out, g_out = out.reshape(-1, start.shape[1]), g_out.reshape(-1, start.shape[1])
    earlier = steps.before(start, out)
    before = earlier if c is None else steps.before(c, saved[4])
    dh, state = g_h.copy(), np.zeros_like(start) if g_c is None else g_c.copy()
    g = memory.take((len(out), x.shape[-1]), x.dtype)
    g_x = memory.take(g.shape, x.dtype) if cell.apart else g
    totals = np.empty_like(out) if projection is not None else out
    for a, b in reversed(steps.spans):
        h = dh[:b - a]
        np.add(h, g_out[a:b], out=h)
        new = h
        if projection is not None:
            totals[a:b] = h
            new = h @ projection
        step.back(new, state, saved, before, g, g_x, a)
        np.matmul(g[a:b], weight, out=h)
        if c is None and STATE in cell.sources:
            np.add(h, state[:b - a], out=h)
    return g_x.reshape(x.shape), dh, state, g.T @ earlier, g, totals


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


# -- the texts of the loops ----------------------------------------------------------------------------------------------

class Text:
    """A loop over the rows and columns of h (the new state, or its gradient), written line by line."""

    def __init__(self, cell: Cell, dtype: np.dtype):
        from rushlight.compile.expressions import Scalar
        self.cell, self.scalar = cell, lambda text: Scalar(text, dtype)
        self.inputs, self.states, self.saved, self.tape = tape_of(cell)
        self.rows: dict[str, str] = {}
        self.lines: list[str] = []

    def at(self, array: str, k: int = 0) -> str:
        """An element of the k-th gate, or of the k-th saved array. Rows are a step's or, if the array has those of all
        steps, from `start` on; they are named before the loop, or LLVM would not see that elements are neighbours."""
        row = "r" if array in ("h", "state", "g_state", "product") else "start + r"
        gate = f"{k} * n:{k + 1} * n" if k else ":n"
        place = f"{k}, {row}, :n" if array == "saved" else f"{row}, {gate}" if array != "bias" else gate
        self.rows.setdefault(f"{array}_{k}", f"{array}[{place}]")
        return f"{array}_{k}[j]"

    def named(self, value: Any) -> Any:
        if value.text.isidentifier():
            return value
        self.lines.append(f"t{len(self.lines)} = {value.text}")
        return self.scalar(f"t{len(self.lines) - 1}")

    def put(self, place: str, value: Any) -> None:
        self.lines.append(f"{place} = {value.text}")

    def kernel(self, parameters: str) -> str:
        rows = [f"        {name} = {text}" for name, text in self.rows.items()]
        return "\n".join([f"def kernel({parameters}):", "    restrict()", "    wide()", "    n = h.shape[1]",
                          "    for r in range(h.shape[0]):", *rows, "        for j in range(n):",
                          *("            " + line for line in self.lines)]) + "\n"


def tape_of(cell: Cell) -> tuple[list[Symbol], tuple, tuple, list[tuple[str, tuple, Symbol]]]:
    """The cell's inputs, new states, what it saves, and its calls (op, operands, result), in order."""
    tape: list[tuple[str, tuple, Symbol]] = []

    def noted(name: str) -> Callable:
        def call(*operands: Symbol) -> Symbol:
            tape.append((name, operands, object()))
            return tape[-1][2]
        return call
    inputs = [object() for _ in cell.sources]
    names = cell.gates.__code__.co_names  # type: ignore[attr-defined]
    *states, saved = rebind(cell.gates, {name: noted(name) for name in names})(*inputs)
    return inputs, tuple(states), saved, tape


def forward_text(cell: Cell, dtype: np.dtype) -> str:
    """kernel(product, bias, x, state, h, saved, start): product, state and h have the rows of a step."""
    from rushlight.compile.expressions import write_out
    text = Text(cell, dtype)
    known: dict[Symbol, Any] = {}
    for symbol, (k, m) in zip(text.inputs, cell.sources):
        terms = [text.at("x", k)] * (k is not None) + [text.at("product", m)] * (m is not None)
        terms += [text.at("bias", m)] * (cell.apart and m is not None)
        known[symbol] = text.named(text.scalar(" + ".join(terms) or text.at("state")))
    for name, operands, result in text.tape:
        known[result] = text.named(write_out(TABLE[name], tuple([known[o] for o in operands])))
    for k, symbol in enumerate(text.saved):
        if symbol is not text.states[0]:
            text.put(text.at("saved", k), known[symbol])
    for place, symbol in zip(("h", "state"), text.states):
        text.put(text.at(place), known[symbol])
    return text.kernel("product, bias, x, state, h, saved, start")


def back_text(cell: Cell, dtype: np.dtype) -> str:
    """kernel(h, g_state, saved, before, g, g_x, start): h and g_state, the gradients of the new states, have a step's rows.

    `before` is the state before each step; g and g_x the gradients of product and x, which are one where they are added up.
    """
    text = Text(cell, dtype)
    slopes = slopes_of(text)
    for symbol, (k, m) in zip(text.inputs, cell.sources):
        slope = text.named(slopes[symbol])
        if (k, m) == STATE:
            text.put(text.at("g_state"), slope)
        if m is not None:
            text.put(text.at("g", m), slope)
        if k is not None and cell.apart:
            text.put(text.at("g_x", k), slope)
    return text.kernel("h, g_state, saved, before, g, g_x, start")


def slopes_of(text: Text) -> dict[Symbol, Any]:
    """The gradient of every symbol, as an expression: the tape from its end, by the rules of its ops."""
    from rushlight.compile.expressions import on_symbols, write_out
    known = {symbol: text.scalar(text.at("saved", k)) for k, symbol in enumerate(text.saved)}
    made = {result: (name, operands) for name, operands, result in text.tape}

    def value(symbol: Symbol) -> Any:
        """What stood here on the way forward: read, or computed again."""
        if symbol not in known and symbol in made:
            name, operands = made[symbol]
            known[symbol] = text.named(write_out(TABLE[name], tuple([value(o) for o in operands])))
        return known.setdefault(symbol, text.scalar(text.at("before")))
    found = {symbol: text.scalar(text.at(place)) for symbol, place in zip(text.states, ("h", "g_state"))}
    for name, operands, result in reversed(text.tape):
        op, found[result] = TABLE[name], text.named(found[result])
        for which, operand in zip(op.inputs, operands):
            rule = op.rules[which]
            given = [result if n == "out" else operands[op.inputs.index(n)] for n in parameters(rule)[1:]]
            slope = on_symbols(rule)(found[result], *map(value, given))
            found[operand] = found[operand] + slope if operand in found else slope
    return found
