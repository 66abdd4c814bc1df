"""The text of a recurrent layer's loops: all steps of a direction, forward and back, for recurrent_loops.py.

What is done to the gates is made from the cell's own rule: the function of ops that says what a step does to each element
(cells.py) is run once on symbols and leaves a tape. The loop forward is the tape written out, the loop back the tape walked
from its end by the rules of the table. What the cell says it saves is read there, everything else computed again.

>>> lines = back_text(TANH, False).splitlines()
>>> print(*lines[lines.index("            for j in range(n):") + 1:][:3], sep="\\n")
                t0 = gh_0[j] + g_out_0[j]
                t1 = t0 * (f32(1) - saved_0[j] * saved_0[j])
                g_0[j] = t1

Products are sums in vector registers (compile/vectors.py): ROWS rows times two vectors of columns at once. Matrices to
multiply with are laid out in panels of two vectors (`panels` in recurrent_loops.py); rows are computed in whole groups, so
what is multiplied has ROWS rows more than it needs, and what comes out is copied where such rows would be in the way.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.compile.vectors import machine
from rushlight.ops.cells import STATE, Cell
from rushlight.ops.cells import TANH as TANH
from rushlight.ops.table import TABLE, parameters, rebind

FLOAT = np.dtype(np.float32)
DEEP = 256                                        # rows of a panel that are multiplied at once: 32 KB, the L1 cache
OF_A_STEP = {"h", "state", "product", "narrow", "gh", "g_state"}      # arrays with the rows of one step
Symbol = object


def rows_at_once() -> int:
    """Sums for so many rows of two vectors fit the registers, with two vectors and a number: 8 of 32, or 4 of 16."""
    return machine()[1] // 4


def columns_at_once() -> int:
    return 2 * machine()[0]


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


class Gates:
    """A loop over the rows and columns of a step, written line by line."""

    def __init__(self, cell: Cell):
        from rushlight.compile.expressions import Scalar
        self.cell, self.scalar = cell, lambda text: Scalar(text, FLOAT)
        self.inputs, self.states, self.saved, self.tape = tape_of(cell)
        self.rows: dict[str, str] = {}
        self.lines: list[str] = []

    def at(self, array: str, k: int = 0) -> str:
        """An element of the k-th gate, or of the k-th saved array. Rows are a step's or, if the array has those of all
        steps, from `start` on; they are named before the loop, or LLVM would not see that elements are neighbours."""
        row = "r" if array in OF_A_STEP else "start + r"
        gate = f"{k} * n:{k + 1} * n" if k else ":n"
        place = f"{k}, {row}, :n" if array == "saved" else f"{row}, {gate}" if array != "bias" else gate
        self.rows.setdefault(f"{array}_{k}", f"{array}[{place}]")
        return f"{array}_{k}[j]"

    def element(self, array: str, k: int = 0) -> Any:
        return self.scalar(self.at(array, k))

    def named(self, value: Any) -> Any:
        if value.text.isidentifier():
            return value
        self.lines.append(f"t{len(self.lines)} = {value.text}")
        return self.scalar(f"t{len(self.lines) - 1}")

    def put(self, place: str, value: Any) -> None:
        self.lines.append(f"{place} = {value.text}")

    def text(self) -> list[str]:
        rows = [f"    {name} = {text}" for name, text in self.rows.items()]
        return ["for r in range(rows):", *rows, "    for j in range(n):", *("        " + line for line in self.lines)]


def product(a: str, at: str, w: str, c: str) -> list[str]:
    """c[:rows] = a[at:at + rows] times the matrix whose panels w holds (columns / two vectors, depth, two vectors)."""
    high, wide, lanes = rows_at_once(), columns_at_once(), machine()[0]
    sums = [(i, v) for i in range(high) for v in range(2)]
    begin = [f"s{i}_{v} = none() if first == 0 else load({c}, to + {i} * width + {v * lanes})" for i, v in sums]
    step = [f"w{v} = load({w}, panel + k * {wide} + {v * lanes})" for v in range(2)]
    for i in range(high):
        step += [f"one = spread({a}, row + {i} * depth + k)", *(f"s{i}_{v} = fma(one, w{v}, s{i}_{v})" for v in range(2))]
    end = [f"store({c}, to + {i} * width + {v * lanes}, s{i}_{v})" for i, v in sums]
    return [f"depth, width = {a}.shape[1], {c}.shape[1]",
            f"for p in range({w}.shape[0]):",
            f"    panel = p * depth * {wide}",
            f"    for first in range(0, depth, {DEEP}):",
            f"        for r in range(0, rows, {high}):",
            f"            row, to = ({at} + r) * depth, r * width + p * {wide}",
            *("            " + line for line in begin),
            f"            for k in range(first, min(first + {DEEP}, depth)):",
            *("                " + line for line in step),
            *("            " + line for line in end)]


def kernel(parameters: str, *parts: list[str]) -> str:
    """A function that does all parts for each step, whose first row and number of rows `spans` holds."""
    lines = [line for part in parts for line in part]
    return "\n".join([f"def kernel({parameters}):", "    restrict()", "    wide()", "    for s in range(spans.shape[0]):",
                      "        start, rows = spans[s, 0], spans[s, 1]", *("        " + line for line in lines)]) + "\n"


def each(line: str) -> list[str]:
    """A line done for each row r and column j of h."""
    return ["m = h.shape[1]", "for r in range(rows):", "    for j in range(m):", f"        {line}"]


def forward_text(cell: Cell, projected: bool) -> str:
    """x, out and saved have the rows of all steps; h, the state now, and the others those of one."""
    gates = Gates(cell)
    from rushlight.compile.expressions import write_out
    known: dict[Symbol, Any] = {}
    for symbol, (k, m) in zip(gates.inputs, cell.sources):
        terms = [gates.at("x", k)] * (k is not None) + [gates.at("product", m)] * (m is not None)
        terms += [gates.at("bias", m)] * (cell.apart and m is not None)
        state = "state" if len(gates.states) > 1 else "h"
        known[symbol] = gates.named(gates.scalar(" + ".join(terms) or gates.at(state)))
    for name, operands, result in gates.tape:
        known[result] = gates.named(write_out(TABLE[name], tuple([known[o] for o in operands])))
    for k, symbol in enumerate(gates.saved):
        if symbol is not gates.states[0]:
            gates.put(gates.at("saved", k), known[symbol])
    for place in ("narrow",) if projected else ("h", "out"):
        gates.put(gates.at(place), known[gates.states[0]])
    if len(gates.states) > 1:
        gates.put(gates.at("state"), known[gates.states[1]])
    after = [*product("narrow", "0", "projection", "product"), *each("h[r, j] = product[r, j]"),
             *each("out[start + r, j] = product[r, j]")] if projected else []
    return kernel("spans, x, weight, bias, projection, h, state, product, narrow, out, saved",
                  ["n = x.shape[1] // " + str(cell.count), *product("h", "0", "weight", "product")], gates.text(), after)


def back_text(cell: Cell, projected: bool) -> str:
    """gh and g_state, the gradients of the states, have the rows of one step; `before` is the state before each step, g and
    g_x are the gradients of product and x, which are one where they are added up; total is that of h'."""
    gates = Gates(cell)
    own = len(gates.states) > 1
    h = gates.element("narrow") if projected else gates.element("gh") + gates.element("g_out")
    if STATE in cell.sources and not own:
        h = h + gates.element("g_state")
    slopes = slopes_of(gates, dict(zip(gates.states, (h, gates.element("g_state")) if own else (h,))))
    for symbol, (k, m) in zip(gates.inputs, cell.sources):
        slope = gates.named(slopes[symbol])
        if (k, m) == STATE:
            gates.put(gates.at("g_state"), slope)
        if m is not None:
            gates.put(gates.at("g", m), slope)
        if k is not None and cell.apart:
            gates.put(gates.at("g_x", k), slope)
    first = ["n = g.shape[1] // " + str(cell.count)]
    if projected:
        first += [line.replace("h.", "gh.") for line in each("total[start + r, j] = gh[r, j] + g_out[start + r, j]")]
        first += product("total", "start", "projection", "narrow")
    last = [*product("g", "start", "weight", "product"),
            *(line.replace("h.", "gh.") for line in each("gh[r, j] = product[r, j]"))]
    return kernel("spans, g_out, weight, projection, gh, g_state, product, narrow, saved, before, total, g, g_x",
                  first, gates.text(), last)


def slopes_of(gates: Gates, found: dict[Symbol, Any]) -> dict[Symbol, Any]:
    """The gradient of every symbol, from those of the states: the tape from its end, by the rules of its ops."""
    from rushlight.compile.expressions import on_symbols, write_out
    known = {symbol: gates.element("saved", k) for k, symbol in enumerate(gates.saved)}
    made = {result: (name, operands) for name, operands, result in gates.tape}

    def value(symbol: Symbol) -> Any:
        """What stood here on the way forward: read, or computed again."""
        if symbol not in known and symbol in made:
            name, operands = made[symbol]
            known[symbol] = gates.named(write_out(TABLE[name], tuple([value(o) for o in operands])))
        return known.get(symbol) or known.setdefault(symbol, gates.element("before"))
    for name, operands, result in reversed(gates.tape):
        op, found[result] = TABLE[name], gates.named(found[result])
        for which, operand in zip(op.inputs, operands):
            rule = op.rules[which]
            given = [result if n == "out" else operands[op.inputs.index(n)] for n in parameters(rule)[1:]]
            slope = on_symbols(rule)(found[result], *map(value, given))
            found[operand] = found[operand] + slope if operand in found else slope
    return found
