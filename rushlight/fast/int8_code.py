"""The machine code of int8_loops.py, built for the processor at hand. Loaded on demand: it imports llvmlite.

`Dots` multiplies and adds bytes by the processor's best instructions. A loop takes a panel of 64 outputs, whose weights
are contiguous, and a few rows; the sums of these rows and of `vectors` registers of outputs stay in registers."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from rushlight.base.array_memory import offset_of_data
from rushlight.kernels.int8 import EPS, INPUTS, OUTPUTS, SMALLEST_SCALE
from rushlight.loops.llvm import (
    BYTE,
    DOUBLE,
    FLOAT,
    INT16,
    INT32,
    INT64,
    POINTER,
    Function,
    Module,
    Target,
    Value,
    call_intrinsic,
    converted,
    host,
    multiply_add,
    picked,
    repeated,
    select,
    total,
)  # fmt: skip

ARGUMENTS, INTEGERS = "table x q out rows k most", "rows k most"
PANEL = "first last"  # the panels of `multiply`
TABLE = "tiles scales sums bias outputs quads"  # int64: the addresses and sizes of a weight
UNROLLED = 2  # steps of 4 inputs in a round of a single row, each with sums of its own: vpdpbusd takes 4 cycles
FLOATS = 16  # numbers that are quantized at once
ENGINES: list[Any] = []  # they own the machine code
MIDDLE = 128.0  # the zero point of torchao's symmetric numbers, as uint8


def compiled(target: Target | None = None) -> dict[str, Callable]:
    """{name: function of (table, x, q, out, rows, k, most, first, last)}: an address, three arrays, integers.

    `quantize_...` quantize, `multiply` multiplies the panels `first` to `last`, `linear_...` do both. `target`: the
    processor, by default this machine's."""
    module = Module(target or host())
    quantizers = [by_tensor(module), by_rows(module)]
    steps = {"quantize_" + f.name: [f] for f in quantizers} | {"multiply": [multiply(module)]}
    steps |= {f"linear_{f.name}": [f, module.functions["multiplied"]] for f in quantizers}
    steps["linear_of_floats"] = [of_floats(module)]
    for name, functions in steps.items():
        entry(module, name, functions)
    engine, offset = module.compiled(), offset_of_data()
    array = ctypes.c_void_p if offset is None else ctypes.py_object
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *[array] * 3, *[ctypes.c_int64] * 5)
    made: dict[str, Callable] = {name: kind(engine.get_function_address(name)) for name in steps}
    ENGINES.append(engine)
    if offset is not None:
        return made
    return {name: partial(by_address, f) for name, f in made.items()}


def by_address(function: Callable, table: int, x: Any, q: Any, out: Any, *more: int) -> None:
    """Call a function with the addresses of arrays."""
    function(table, x.ctypes.data, q.ctypes.data, out.ctypes.data, *more)


def entry(module: Module, name: str, functions: Sequence[Function]) -> None:
    """A function for Python that reads the addresses of arrays from Python's objects, and calls others."""
    f, offset = Function(module, name, f"{ARGUMENTS} {PANEL}", f"{INTEGERS} {PANEL}"), offset_of_data()
    given = dict(f.args)
    for array in ("x", "q", "out") if offset is not None else ():
        given[array] = f.load(f.at(f.args[array], offset, BYTE), 0, POINTER)
    for called in functions:
        f.call(called.name, *[given[n] for n in called.args])
    f.end()


def function(module: Module, name: str, more: str = "") -> Function:
    return Function(module, name, f"{ARGUMENTS} {more}", f"{INTEGERS} {more}", private=True)


class Weight:
    """The entries of `table`."""

    def __init__(self, f: Function):
        for place, name in enumerate(TABLE.split()):
            pointer = name not in ("outputs", "quads")
            setattr(self, name, f.load(f.args["table"], place, POINTER if pointer else INT64))

    tiles: Value
    scales: Value
    sums: Value
    bias: Value
    outputs: Value
    quads: Value


# -- quantizing ------------------------------------------------------------------------------------


def larger(x: Value, y: Any) -> Value:
    return select(x > y, x, y)


def lesser(x: Value, y: Any) -> Value:
    return select(x < y, x, y)


def extremes(f: Function, x: Value, count: Value) -> tuple[Value, Value]:
    """The least and the largest of `count` numbers and 0."""

    def step(i: Value, low: Value, high: Value) -> tuple[Value, Value]:
        some = f.load(x, i, FLOAT, FLOATS if low.lanes else 0)
        return lesser(some, low), larger(some, high)

    whole = count - count % FLOATS
    zero = f.number(FLOAT, 0.0, FLOATS)
    low, high = f.loop(0, whole, FLOATS, step, [zero, zero])
    low, high = f.loop(whole, count, 1, step, [total(low, lesser), total(high, larger)])
    return low, high


def quantize(f: Function, x: Value, to: Value, count: Value, inverse: Value, zero: Value) -> None:
    """to = x inverse, rounded, plus zero, in 0 ... 255."""

    def step(i: Value, lanes: int) -> None:
        near = call_intrinsic("nearbyint", f.load(x, i, FLOAT, lanes) * inverse) + zero
        f.store(converted(converted(lesser(larger(near, 0.0), 255.0), INT32), BYTE), to, i)

    whole = count - count % FLOATS
    f.loop(0, whole, FLOATS, lambda i: step(i, FLOATS))
    f.loop(whole, count, 1, lambda i: step(i, 0))


def by_tensor(module: Module) -> Function:
    """kernels/int8.py: by_tensor. All rows get the same scale and zero point."""
    f = function(module, "by_tensor")
    x, q, rows, k, width = f.args["x"], f.args["q"], f.args["rows"], f.args["k"], Weight(f).quads * INPUTS
    low, high = extremes(f, x, rows * k)
    scale, zero = scale_and_zero(f, low, high, f.args["most"])
    inverse, start = 1.0 / scale, f.at(q, rows * 2, FLOAT)
    gapless = k == width  # then all rows are quantized as one
    count, number = select(gapless, rows * k, k), select(gapless, f.whole(1), rows)

    def row(r: Value) -> None:
        quantize(f, f.at(x, r * k, FLOAT), f.at(start, r * width, BYTE), count, inverse, zero)

    f.loop(0, number, 1, row)
    f.loop(0, rows, 1, lambda r: note(f, r, scale, zero))
    f.end()
    return f


def note(f: Function, r: Value, scale: Value, zero: Value) -> None:
    """Store the scale and the zero point of a row."""
    f.store(scale, f.args["q"], r)
    f.store(converted(zero, INT32), f.args["q"], f.args["rows"] + r)


def scale_and_zero(f: Function, low: Value, high: Value, most: Value) -> tuple[Value, Value]:
    """kernels/int8.py: scale_and_zero; two float32, from a range that includes 0."""
    steps = converted(most, DOUBLE)
    scale = (converted(high, DOUBLE) - converted(low, DOUBLE)) / steps
    inverse = 1.0 / converted(scale, FLOAT)
    scale = select(abs(inverse) > 3.4028234e38, f.number(DOUBLE, 0.1), scale)
    least = f.number(FLOAT, SMALLEST_SCALE)
    is_small, factor, all_steps = scale < float(SMALLEST_SCALE), least / converted(scale, FLOAT), converted(most, FLOAT)
    wide_low = select(low == 0.0, low, select(high == 0.0, -(least * all_steps), low * factor))
    wide_high = select(low == 0.0, least * all_steps, select(high == 0.0, high, high * factor))
    low, high = (converted(select(is_small, *pair), DOUBLE) for pair in ((wide_low, low), (wide_high, high)))
    scale = select(is_small, f.number(DOUBLE, float(SMALLEST_SCALE)), scale)
    from_low, above = -low / scale, high / scale
    start = select(abs(from_low) < steps + abs(above), from_low, steps - above)
    start = select(start < 0.0, f.number(DOUBLE, 0.0), select(start > steps, steps, start))
    return converted(scale, FLOAT), converted(call_intrinsic("nearbyint", start), FLOAT)


def by_rows(module: Module) -> Function:
    """kernels/int8.py: by_rows, symmetric."""
    f = function(module, "by_rows")
    x, q, rows, k, width = f.args["x"], f.args["q"], f.args["rows"], f.args["k"], Weight(f).quads * INPUTS
    start, middle = f.at(q, rows * 2, FLOAT), f.number(FLOAT, MIDDLE)

    def row(r: Value) -> None:
        source = f.at(x, r * k, FLOAT)
        low, high = extremes(f, source, k)
        scale = larger(2.0 * larger(-low, high) / 255.0, float(EPS))
        quantize(f, source, f.at(start, r * width, BYTE), k, 1.0 / scale, middle)
        note(f, r, scale, middle)

    f.loop(0, rows, 1, row)
    f.end()
    return f


# -- multiplying -----------------------------------------------------------------------------------


class Dots:
    """Sums of products of uint8 and int8, for `lanes` outputs: `start`, `step` for each 4 inputs, `end`.

    Without VNNI a register holds two sums for each output. `pairs`: the instruction for products of int16. `vectors`,
    `rows`: the registers of outputs and the rows whose sums fit into the registers together."""

    def __init__(self, f: Function):
        self.f, target = f, f.module.target
        self.vnni, self.pairs = has_vnni(target), pairs_of(target)
        self.lanes = target.lanes if self.vnni else 8 if "512" in self.pairs else 4
        self.vectors, self.rows = (4, 4) if target.registers == 32 else (4, 2)

    def start(self) -> Value:
        return self.f.number(INT32, 0, self.lanes if self.vnni else 2 * self.lanes)

    def step(self, sums: Value, x: Value, w: Value) -> Value:
        """sums + x w: x (4 lanes) holds the same 4 bytes for each output, w (4 lanes) the weights."""
        if self.vnni:
            name = f"llvm.x86.avx512.vpdpbusd.{self.lanes * 32}"
            return self.f.foreign(name, INT32, [sums, x, w], self.lanes)
        a, b = converted(w, INT16), converted(x, INT16, signed=False)
        if self.pairs:
            return sums + self.f.foreign(self.pairs, INT32, [a, b], 2 * self.lanes)
        for places in (range(start, 4 * self.lanes, 2) for start in (0, 1)):
            sums = sums + converted(picked(a, places), INT32) * converted(picked(b, places), INT32)
        return sums

    def end(self, sums: Value) -> Value:
        """int32 (lanes)."""
        if self.vnni:
            return sums
        return picked(sums, range(0, 2 * self.lanes, 2)) + picked(sums, range(1, 2 * self.lanes, 2))


def has_vnni(target: Target) -> bool:
    """Whether the processor has vpdpbusd for its longest registers."""
    features = target.features.split(",")
    return (target.lanes == 16 and "+avx512vnni" in features) or (target.lanes == 8 and "+avxvnni" in features)


def pairs_of(target: Target) -> str:
    """The instruction that multiplies int16 and adds neighbours; "" for processors without it."""
    features = target.features.split(",")
    if target.lanes == 16 and "+avx512bw" in features:
        return "llvm.x86.avx512.pmaddw.d.512"
    return "llvm.x86.avx2.pmadd.wd" if "+avx2" in features else ""


def multiply(module: Module) -> Function:
    """out = (q w - zero sums) scale scales + bias, for the panels `first` to `last`."""
    f = function(module, "multiplied", PANEL)
    over_panels(f, Tile(f))
    return f


def of_floats(module: Module) -> Function:
    """out = x w scales + bias, for the panels `first` to `last`; the rows of x are `quads` times 4 numbers long."""
    f = function(module, "of_floats", PANEL)
    over_panels(f, FloatTile(f))
    return f


def over_panels(f: Function, tile: Tile) -> None:
    """The body of a function: all rows, for some panels."""
    whole = f.args["rows"] - f.args["rows"] % tile.dots.rows

    def panel(p: Value) -> None:
        for part in range(0, OUTPUTS, tile.width):
            f.loop(0, whole, tile.dots.rows, lambda r, part=part: tile.build(p, part, r, tile.dots.rows))
            f.loop(whole, f.args["rows"], 1, lambda r, part=part: tile.build(p, part, r, 1))

    f.loop(f.args["first"], f.args["last"], 1, panel)
    f.end()


class Tile:
    """The products of a few rows and of some outputs of a panel."""

    def __init__(self, f: Function):
        self.f, self.dots, self.weight = f, self.instructions(f), Weight(f)
        self.width = self.dots.vectors * self.dots.lanes
        self.numbers, self.row_length = f.at(f.args["q"], f.args["rows"] * 2, FLOAT), self.weight.quads * INPUTS
        self.room = f.room(self.width, FLOAT)

    def instructions(self, f: Function) -> Dots:
        return Dots(f)

    def source(self, row: Value) -> Value:
        """The address of a row's numbers."""
        return self.f.at(self.numbers, row * self.row_length, BYTE)

    def build(self, panel: Value, part: int, row: Value, rows: int) -> None:
        """`part`: the first output in the panel."""
        f, dots, quads = self.f, self.dots, self.weight.quads
        tiles = f.at(self.weight.tiles, panel * quads * (OUTPUTS * INPUTS) + part * INPUTS, BYTE)
        sources = [self.source(row + r) for r in range(rows)]
        copies = UNROLLED if rows == 1 else 1

        def step(quad: Value, *sums: Value) -> list[Value]:
            n = len(sums) // copies
            return [s for c in range(copies) for s in self.step(tiles, sources, quad + c, sums[c * n : c * n + n])]

        whole, number = quads - quads % copies, dots.vectors * rows
        sums = f.loop(0, whole, copies, step, [self.start() for _ in range(number * copies)])
        first, others = sums[:number], sums[number:]
        if others:
            first = f.loop(whole, quads, 1, lambda quad, *s: self.step(tiles, sources, quad, s), first)
            first = [a + b for a, b in zip(first, others)]
        self.finish(panel * OUTPUTS + part, row, first)

    def start(self) -> Value:
        return self.dots.start()

    def step(self, tiles: Value, sources: Sequence[Value], quad: Value, sums: Sequence[Value]) -> list[Value]:
        """The sums, rows by vectors, after 4 more inputs."""
        f, dots, n = self.f, self.dots, self.dots.lanes * INPUTS
        weights = [f.load(tiles, quad * (OUTPUTS * INPUTS) + v * n, BYTE, n) for v in range(dots.vectors)]
        made: list[Value] = []
        for r, source in enumerate(sources):
            quads = repeated(f.load(f.at(source, quad * INPUTS, BYTE), 0, INT32), dots.lanes)
            x = f.put(f"bitcast {quads.type} {quads.v} to {weights[0].type}", BYTE, n)
            made += [dots.step(sums[r * dots.vectors + v], x, w) for v, w in enumerate(weights)]
        return made

    def finish(self, column: Value, row: Value, sums: Sequence[Value]) -> None:
        """Scale the sums, rows by vectors, add the bias, and store the results from `column` on."""
        f, dots, weight = self.f, self.dots, self.weight
        for r in range(len(sums) // dots.vectors):
            found = []
            for v in range(dots.vectors):
                place = column + v * dots.lanes
                exact, factor = self.scaled(row + r, place, sums[r * dots.vectors + v])
                found.append(multiply_add(exact, factor, f.load(weight.bias, place, FLOAT, dots.lanes)))
            self.store(found, f.at(f.args["out"], (row + r) * weight.outputs + column, FLOAT), weight.outputs - column)

    def scaled(self, row: Value, place: Value, sums: Value) -> tuple[Value, Value]:
        """The sums of products with (q - zero), in float32, and their scales."""
        f, lanes, q = self.f, self.dots.lanes, self.f.args["q"]
        scale, zero = f.load(q, row, FLOAT), f.load(q, f.args["rows"] + row, INT32)
        exact = self.dots.end(sums) - zero * f.load(self.weight.sums, place, INT32, lanes)
        return converted(exact, FLOAT), scale * f.load(self.weight.scales, place, FLOAT, lanes)

    def store(self, found: Sequence[Value], to: Value, left: Value) -> None:
        """Write vectors, of which `left` numbers exist."""
        f, lanes = self.f, self.dots.lanes

        def write(target: Value) -> None:
            for v, x in enumerate(found):
                f.store(x, target, v * lanes)

        def some() -> None:
            write(self.room)
            f.loop(0, left, 1, lambda i: f.store(f.load(self.room, i, FLOAT), to, i))

        f.when(left >= self.width, lambda: write(to))
        f.when(left < self.width, some)


class FloatTile(Tile):
    """The products of float32 rows and of some outputs of a panel."""

    def instructions(self, f: Function) -> Dots:
        dots = Dots(f)
        dots.lanes = f.module.target.lanes
        return dots

    def source(self, row: Value) -> Value:
        return self.f.at(self.f.args["x"], row * self.row_length, FLOAT)

    def start(self) -> Value:
        return self.f.number(FLOAT, 0.0, self.dots.lanes)

    def step(self, tiles: Value, sources: Sequence[Value], quad: Value, sums: Sequence[Value]) -> list[Value]:
        f, dots, made = self.f, self.dots, [*sums]
        for v in range(dots.vectors):
            four = f.load(tiles, quad * OUTPUTS + v * dots.lanes, INT32, dots.lanes)
            for j in range(INPUTS):
                w = converted((four << (24 - 8 * j)) >> 24, FLOAT)  # byte j, with its sign
                for r, source in enumerate(sources):
                    x = repeated(f.load(source, quad * INPUTS + j, FLOAT), dots.lanes)
                    place = r * dots.vectors + v
                    made[place] = multiply_add(x, w, made[place])
        return made

    def scaled(self, row: Value, place: Value, sums: Value) -> tuple[Value, Value]:
        return sums, self.f.load(self.weight.scales, place, FLOAT, self.dots.lanes)
