"""The text of a recurrent layer's loops: all steps of a direction, forward and back, for fast/recurrent_loops.py.

The code for the gates is generated from the cell's rule: the function that composes a step's elementwise ops
(ops/nn/recurrent_cells.py) runs once on symbols and records a tape. The forward loop is the tape written out; the
backward loop is the tape in reverse, by the rules of the table. Backward reads the values that the cell saves, and
computes all others again.

>>> lines = back_text(TANH, False).splitlines()
>>> print(*lines[lines.index("                for j in range(n):") + 1:][:3], sep="\\n")
                    t0 = gh_0[j] + g_out_0[j]
                    t1 = t0 * (f32(1) - out_0[j] * out_0[j])
                    now_0[j] = t1

Sequences are independent: several tiles of five or six sequences (loops/matmul_tiles.py) go through all steps
`together` before the next tiles do. The weight's columns are stored in panels as wide as a tile, and each panel is read
once for all these tiles. If the weight exceeds the L2 cache, this matters most (20 steps of 64 sequences, 512 wide: one
tile at a time 45 ms, eight 29); otherwise the results of few tiles stay in the cache. Tiles compute whole groups of
rows and columns; their inputs and outputs are padded for that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rushlight.core.table import TABLE, parameters, rebind
from rushlight.loops.llvm import machine
from rushlight.loops.matmul_tiles import HEIGHTS, WIDTH
from rushlight.ops.nn.recurrent_cells import STATE, Cell
from rushlight.ops.nn.recurrent_cells import TANH as TANH

FLOAT = np.dtype(np.float32)
Symbol = object
PLACES = {  # the start of the k-th part of row r, in flat arrays
    **dict.fromkeys(("x", "g_x"), "here * {count} * n + {k} * n"),
    **dict.fromkeys(("out", "g_out"), "here * m"),
    **dict.fromkeys(("h", "gh"), "r * m"),
    **dict.fromkeys(("state", "g_state"), "r * n"),
    "saved": "((begin + r) * {saved} + {k}) * n",
    "bias": "{k} * n",
    **dict.fromkeys(("product", "narrow", "now"), "(r - i) * line + {k} * n"),
}  # a tile's rows


def columns_at_once() -> int:
    """Columns of a panel."""
    lanes, registers = machine()
    return WIDTH[registers] * lanes


def tape_of(cell: Cell) -> tuple[list[Symbol], tuple, tuple, list[tuple[str, tuple, Symbol]]]:
    """The cell's inputs, new states, saved values, and calls (op, operands, result), in order."""
    tape: list[tuple[str, tuple, Symbol]] = []

    def noted(name: str) -> Callable:
        def call(*operands: Symbol) -> Symbol:
            tape.append((name, operands, object()))
            return tape[-1][2]

        return call

    inputs = [object() for _ in cell.sources]
    names = cell.gates.__code__.co_names
    *states, saved = rebind(cell.gates, {name: noted(name) for name in names})(*inputs)
    return inputs, tuple(states), saved, tape


class Gates:
    """A loop over the rows and columns of a step, written line by line."""

    def __init__(self, cell: Cell):
        from rushlight.fast.rule_text import Scalar

        self.cell, self.scalar = cell, lambda text: Scalar(text, FLOAT)
        self.inputs, self.states, saved, self.tape = tape_of(cell)
        self.saved, self.reads_h = (
            [s for s in saved if s is not self.states[0]],
            self.states[0] in saved,
        )  # h is `out`
        self.rows: dict[str, list[str]] = {}
        self.lines: list[str] = []

    def at(self, array: str, k: int = 0) -> str:
        """An element of the k-th gate, or of the k-th saved array. Rows are named before the loop; otherwise LLVM could
        not tell that elements are neighbours.
        """
        if array == "before":
            self.rows["before_0"] = self.before()
        else:
            place = PLACES[array].format(k=k, count=self.cell.gate_count, saved=len(self.saved))
            self.rows[f"{array}_{k}"] = [f"{array}_{k} = part({array}, {place})"]
        return f"{array}_{k}[j]"

    def before(self) -> list[str]:
        """The state of the step before; if there are two states, the second."""
        own = len(self.states) > 1
        place = f"((earlier_begin + r) * {len(self.saved)} + {self.saved.index(self.states[1]) if own else 0}) * n"
        there = f"part(saved, {place})" if own else "part(out, (earlier_first + r * apart) * m)"
        return ["if r < earlier_end:", f"    before_0 = {there}", "else:", "    before_0 = part(start, r * n)"]

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
        rows = [f"    {line}" for lines in self.rows.values() for line in lines]
        return [
            "for r in range(i, end):",
            "    here = first + r * apart",
            *rows,
            "    for j in range(n):",
            *("        " + line for line in self.lines),
        ]


def product(
    a: str,
    at: str,
    step: str,
    depth: str,
    w: str,
    columns: str,
    c: str,
    more: str = "nothing",
    then: Sequence[str] = (),
) -> list[str]:
    """The rows of c = a times the matrix whose panels w holds (columns / panel, depth, panel) + more, tile by tile.

    The row q of a starts at `at`, and rows are `step` apart; `then`: lines for each tile and panel.
    """
    panel, width = columns_at_once(), WIDTH[machine()[1]]
    first = "0" if more == "nothing" else "column"
    six, five = HEIGHTS
    lines = [
        f"for column in range(0, {columns}, {panel}):",
        "    for t in range(group, last):",
        f"        q = {five} * t + min(t, sixes)",
        "        if q >= end:",
        "            break",
    ]
    for high, which in ((six, "if t < sixes:"), (five, "else:")):
        lines += [
            f"        {which}",
            f"            tile{high}x{width}({a}, {at}, {step}, {w}, column * {depth}, {panel}, {more}, {first}, 0, "
            f"{c}, (q - i) * line + column, line, {depth}, {panel})",
        ]
    return lines + [f"        {line}" for line in then]


def fetched(array: str, width: str) -> list[str]:
    """Fetch a panel's columns of a tile's rows of this step, which the gates will read: if the rows of a sequence are
    adjacent, the rows of a step are far apart, and the processor does not prefetch them. An LSTM's loop takes 2.9 ms,
    not 3.3.
    """
    lines = 64 // FLOAT.itemsize  # floats in a cache line
    return [
        f"for r in range(q, min(q + {HEIGHTS[0]}, end)):",
        f"    there = (first + r * apart) * {width} + column",
        f"    for j in range(there, there + {columns_at_once()}, {lines}):",
        f"        ahead({array}, j)",
    ]


def kernel(parameters: str, *parts: list[str], begin: Sequence[str] = (), finish: Sequence[str] = ()) -> str:
    """A function that does all parts for each step and each tile of the `batch` sequences, from the tile `low` to
    `high`, `together` at a time; `begin`, `finish`: before and after the steps.

    `spans` holds for each step its first row in x, the number of rows, and their first row in `saved`; rows of a step
    are `apart` rows apart in x. `nothing`: zeros.
    """
    six, five = HEIGHTS
    return (
        "\n".join(
            [
                f"def kernel(low, high, together, spans, apart, batch, n, m, line, nothing, {parameters}):",
                "    restrict()",
                "    wide()",
                f"    sixes = max(batch - (batch + {six - 1}) // {six} * {five}, 0)",
                "    for group in range(low, high, together):",
                "        last = min(group + together, high)",
                f"        i, top = {five} * group + min(group, sixes), {five} * last + min(last, sixes)",
                *(f"        {line}" for line in begin),
                "        for s in range(spans.shape[0] - 1):",
                "            first, begin, end = spans[s, 0], spans[s, 2], min(top, spans[s, 1])",
                "            if end <= i:",
                "                continue",
                *("            " + line for part in parts for line in part),
                *(f"        {line}" for line in finish),
            ]
        )
        + "\n"
    )


def each(parts: dict[str, str], *lines: str, columns: str = "m") -> list[str]:
    """Lines that run for each row r and column j. `parts`: name of a row -> its array and first element (k for an array
    of the tile's rows)."""
    return [
        "for r in range(i, end):",
        "    k, here = (r - i) * line, first + r * apart",
        *(f"    {name} = part({place})" for name, place in parts.items()),
        f"    for j in range({columns}):",
        *(f"        {line}" for line in lines),
    ]


def new_states(gates: Gates, places: Sequence[str], more: Sequence[str] = ()) -> None:
    """Write out the cell for one element; h' is stored at `places`. `more`: a term added to the product."""
    from rushlight.fast.rule_text import write_out

    cell, known = gates.cell, {}
    for symbol, (k, m) in zip(gates.inputs, cell.sources):
        parts = [("x", k), *((array, m) for array in ("product", *more))]
        terms = [gates.at(array, gate) for array, gate in parts if gate is not None]
        state = "state" if len(gates.states) > 1 else "h"
        known[symbol] = gates.named(gates.scalar(" + ".join(terms) or gates.at(state)))
    for name, operands, result in gates.tape:
        known[result] = gates.named(write_out(TABLE[name], tuple([known[o] for o in operands])))
    for k, symbol in enumerate(gates.saved):
        gates.put(gates.at("saved", k), known[symbol])
    for place in places:
        gates.put(gates.at(place), known[gates.states[0]])
    if len(gates.states) > 1:
        gates.put(gates.at("state"), known[gates.states[1]])


def forward_text(cell: Cell, projected: bool) -> str:
    """h and state are carried from step to step, with the rows of a step; product and narrow have the rows of a tile."""
    gates = Gates(cell)
    new_states(gates, ("narrow",) if projected else ("h", "out"))
    after = (
        [
            *product("narrow", "(q - i) * line", "line", "n", "projection", "m", "product"),
            *each(
                {"to": "h, r * m", "to_out": "out, here * m", "found": "product, k"},
                "to[j] = found[j]",
                "to_out[j] = found[j]",
            ),
        ]
        if projected
        else []
    )
    width = f"{cell.gate_count} * n"
    return kernel(
        "x, weight, bias, projection, h, state, product, narrow, out, saved",
        product("h", "q * m", "m", "m", "weight", width, "product", "bias", fetched("x", width)),
        gates.text(),
        after,
    )


def back_text(cell: Cell, projected: bool) -> str:
    """gh and g_state, the gradients of the states, have the rows of one step; g and g_x are the gradients of product
    and x: one array, if product and x are added up. g_bias has the sums of g, first over a tile's rows. total is the
    gradient of h' before its projection; `whole` and `now` are the tile's rows of total and g.
    """
    gates = Gates(cell)
    gradients(gates, gates.element("narrow") if projected else gates.element("gh") + gates.element("g_out"))
    earlier = ["earlier_first, earlier_end, earlier_begin = spans[s + 1, 0], spans[s + 1, 1], spans[s + 1, 2]"]
    before = (
        [
            *each(
                {"late": "gh, r * m", "own": "g_out, here * m", "to": "total, (begin + r) * m", "now_to": "whole, k"},
                "to[j] = late[j] + own[j]",
                "now_to[j] = to[j]",
            ),
            *product("whole", "(q - i) * line", "line", "m", "projection", "n", "narrow"),
        ]
        if projected
        else []
    )
    width = f"{cell.gate_count} * n"
    columns = f"for j in range({width}):"
    kept = {"to": f"g, here * {width}", "found": "now, k"}
    return kernel(
        "g_out, weight, projection, gh, g_state, start, product, narrow, whole, now, sums, out, saved, total, g, g_x, "
        "g_bias",
        earlier,
        before,
        gates.text(),
        each(kept, "to[j] = found[j]", "sums[j] += found[j]", columns=width),
        product("now", "(q - i) * line", "line", width, "weight", "m", "product"),
        each({"to": "gh, r * m", "found": "product, k"}, "to[j] = found[j]"),
        begin=[columns, "    sums[j] = f32(0)"],
        finish=[columns, "    g_bias[j] += sums[j]"],
    )


def gradients(gates: Gates, h: Any) -> None:
    """Write out the gradients of an element, from the gradient of h'."""
    cell, own = gates.cell, len(gates.states) > 1
    if STATE in cell.sources and not own:
        h = h + gates.element("g_state")
    slopes = slopes_of(gates, dict(zip(gates.states, (h, gates.element("g_state")) if own else (h,))))
    for symbol, (k, m) in zip(gates.inputs, cell.sources):
        slope = gates.named(slopes[symbol])
        if (k, m) == STATE:
            gates.put(gates.at("g_state"), slope)
        if m is not None:
            gates.put(gates.at("now", m), slope)
        if k is not None and cell.apart:
            gates.put(gates.at("g_x", k), slope)


def one_step(parameters: str, gates: Gates) -> str:
    """A function for the gates of a single step, whose product is already computed."""
    return (
        "\n".join(
            [
                f"def kernel(end, n, {parameters}):",
                "    restrict()",
                "    wide()",
                f"    m, line, i, first, begin, apart, earlier_end = n, {gates.cell.gate_count} * n, 0, 0, 0, 1, 0",
                "    earlier_first = earlier_begin = 0",
                *(f"    {line}" for line in gates.text()),
            ]
        )
        + "\n"
    )


def step_text(cell: Cell) -> str:
    """The step of a cell, forward."""
    gates = Gates(cell)
    new_states(gates, ("h", "out"), ("bias",))
    return one_step("x, product, bias, h, state, out, saved", gates)


def step_back_text(cell: Cell) -> str:
    """The step of a cell, backward: from the gradients of h' to the gradients of the product (now), of x, and of the
    state around the product."""
    gates = Gates(cell)
    gradients(gates, gates.element("gh") + gates.element("g_out"))
    return one_step("gh, g_out, g_state, start, out, saved, now, g_x", gates)


def slopes_of(gates: Gates, found: dict[Symbol, Any]) -> dict[Symbol, Any]:
    """The gradient of every symbol, from the gradients of the states: the tape in reverse, by the ops' rules."""
    from rushlight.fast.rule_text import on_symbols, write_out

    known = {symbol: gates.element("saved", k) for k, symbol in enumerate(gates.saved)}
    made = {result: (name, operands) for name, operands, result in gates.tape}

    def value(symbol: Symbol) -> Any:
        """A value of the forward pass: read from memory, or computed again."""
        if symbol not in known and symbol is gates.states[0] and gates.reads_h:
            known[symbol] = gates.element("out")
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
