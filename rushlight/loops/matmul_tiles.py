"""Products of matrices in vector registers, as instructions for compiled loops (fast/matmul_loops.py).

`tileRxV(x, i, row, y, j, across, more, m, apart, out, o, line, deep, columns)` makes R rows of V registers:

    out[o + r line + c] = more[m + r apart + c] + sum over p < deep of x[i + r row + p] y[j + p across + c]

for c < columns; the last of the V registers may be partial. The sums stay in registers: for each p there are V loads of
y, R loads of x and R V fused multiply-adds (with AVX-512: 24 for 10 loads, where the processor can do one load per
multiply-add). The loop handles two p at a time and prefetches the result's lines. `memory(address)` is a flat array at
an address, `word(address)` the 64-bit integer there.

`dots(x, i, row, y, j, across, more, m, out, o, line, deep, last)` is for a transposed y: the numbers of a column are
contiguous, and columns are `across` apart. It makes SQUARE[0] rows of SQUARE[1] numbers, one register of results, each
number from its own register of sums; 16 products for 8 loads:

    out[o + r line + c] = more[m + c] + sum over p < deep of x[i + r row + p] y[j + c across + p]

`acrossV(x, i, row, y, j, more, m, out, o, line, deep, last, then)` exchanges the operands, for rows that fill V
registers: x is the transposed operand, and y the packed one, with V registers for each p. It computes half a register's
width of columns at a time, writes them as rows, and prefetches the columns that begin at `then`:

    out[o + r line + c] = more[m + c] + sum over p < deep of x[i + c row + p] y[j + p V lanes + r]

Rows beyond row `last` repeat row `last`.
Written as LLVM instructions, since Numba compiles far slower with a local variable for each sum."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

from rushlight.loops.intrinsics import call_llvm
from rushlight.loops.simd import address, fetch, first_lanes, kinds, lane_numbers, machine, spread_value

HEIGHTS = 6, 5  # rows of a tile; any number from 20 on is a sum of sixes and fives
WIDTH = {32: 4, 16: 2}  # number of registers -> registers in a row of the widest tile
SQUARE = {16: (4, 4), 8: (2, 4), 4: (2, 2)}  # numbers in a register -> rows and columns of `dots`


@cache
def tiles() -> dict[str, Any]:
    """{name: instruction}, for the globals of loops."""
    lanes, registers = machine()
    k = kinds(lanes)
    pairs = product(HEIGHTS, range(1, WIDTH[registers] + 1))
    return {
        "memory": memory(k),
        "word": word(k),
        "dots": dots(k),
        "across1": across(k, 1),
        "across2": across(k, 2),
        **{f"tile{rows}x{width}": tile(k, rows, width) for rows, width in pairs},
    }


def memory(k: Any) -> Any:
    """An instruction: a float32 array from this address on, without reference counting."""
    flat = k.types.Array(k.types.float32, 1, "C")

    @k.instruction(lambda place: flat(k.types.intp))
    def memory(context, builder, kinds, args):
        from numba.np.arrayobj import populate_array

        array = context.make_array(flat)(context, builder)
        start = builder.inttoptr(args[0], k.ir.FloatType().as_pointer())
        one, size = (context.get_constant(k.types.intp, n) for n in (1, 4))
        populate_array(array, start, [one], [size], size, None)
        return array._getvalue()

    return memory


def word(k: Any) -> Any:
    @k.instruction(lambda place: k.types.intp(k.types.intp))
    def word(context, builder, kinds, args):
        return builder.load(builder.inttoptr(args[0], k.ir.IntType(64).as_pointer()))

    return word


def tile(k: Any, rows: int, width: int) -> Any:
    n = k.types.intp

    def types_of(x, i, row, y, j, across, more, m, apart, out, o, line, deep, columns):
        return k.types.void(x, n, n, y, n, n, more, n, n, out, n, n, n, n)

    @k.instruction(types_of)
    def tile(*call):
        Tile(k, *call, rows, width).write()

    return tile


def dots(k: Any) -> Any:
    n = k.types.intp

    def types_of(x, i, row, y, j, across, more, m, out, o, line, deep, last):
        return k.types.void(x, n, n, y, n, n, more, n, out, n, n, n, n)

    @k.instruction(types_of)
    def dots(*call):
        Dots(k, *call).write()

    return dots


def across(k: Any, width: int) -> Any:
    n = k.types.intp

    def types_of(x, i, row, y, j, more, m, out, o, line, deep, last, then):
        return k.types.void(x, n, n, y, n, more, n, out, n, n, n, n, n)

    @k.instruction(types_of)
    def across(*call):
        Across(k, *call, width).write()

    return across


class Registers:
    """Helpers for writing the instructions of tiles, dots and across."""

    def __init__(self, k: Any, context: Any, builder: Any):
        self.k, self.ir, self.context, self.builder = k, k.ir, context, builder
        self.zeros, self.align = k.ir.Constant(k.vector, [0.0] * k.lanes), k.ir.Constant(k.ir.IntType(32), 4)

    def number(self, n: int) -> Any:
        return self.context.get_constant(self.k.types.intp, n)

    def pointer(self, array: tuple[Any, Any], place: Any, kind: Any = None) -> Any:
        # array: (type, value)
        found = address(self.context, self.builder, *array, place)
        return self.builder.bitcast(found, (kind or self.k.vector).as_pointer())

    def places(self, numbers: list[int]) -> Any:
        return lane_numbers(self.k, numbers)

    def first(self, count: Any) -> Any:
        return first_lanes(self.k, self.builder, count)

    def load_first(self, where: Any, known: Any) -> Any:
        kind = f"v{self.k.lanes}f32.p0v{self.k.lanes}f32"
        return self.call(f"llvm.masked.load.{kind}", self.k.vector, where, self.align, known, self.zeros)

    def spread(self, value: Any) -> Any:
        return spread_value(self.k, self.builder, value)

    def call(self, name: str, result: Any, *args: Any) -> Any:
        return call_llvm(self.builder, name, result, args)

    def summed(self, sums: list[Any], start: Any, end: Any, step: int, factors: Any) -> list[Any]:
        """The sums after a loop over p from start to end that adds the products of the pairs in `factors(p)`."""
        k, b = self.k, self.builder
        before, loop, after = b.block, b.append_basic_block("products"), b.append_basic_block("sums")
        b.cbranch(b.icmp_signed("<", start, end), loop, after)
        b.position_at_end(loop)
        phis = [b.phi(v.type) for v in (start, *sums)]
        made = phis[1:]
        for pairs in factors(phis[0]):
            made = [self.call(f"llvm.fma.v{k.lanes}f32", k.vector, x, y, total) for (x, y), total in zip(pairs, made)]
        made = [b.add(phis[0], self.number(step)), *made]
        b.cbranch(b.icmp_signed("<", made[0], end), loop, after)
        b.position_at_end(after)
        results = [b.phi(v.type) for v in made]
        for old, new, *both in zip((start, *sums), made, phis, results):
            for phi in both:
                phi.add_incoming(old, before)
                phi.add_incoming(new, loop)
        return results[1:]


class Tile(Registers):
    """The instructions of one tile."""

    def __init__(self, k: Any, context: Any, builder: Any, kinds: Any, args: Any, rows: int, width: int):
        super().__init__(k, context, builder)  # each: (array, place, step between rows)
        self.x, self.y, self.more, self.out = (((kinds[i], args[i]), *args[i + 1 : i + 3]) for i in (0, 3, 6, 9))
        self.deep, columns = args[12:]
        self.rows, self.width = rows, width
        self.known = self.first(builder.sub(columns, self.number((width - 1) * k.lanes)))

    def at(self, array: Any, r: Any, c: Any, number: bool = False) -> Any:
        """The address of register c (or of number c) in row r."""
        b = self.builder
        place = b.add(b.add(array[1], b.mul(array[2], r)), c if number else self.number(c * self.k.lanes))
        return self.pointer(array[0], place, self.ir.FloatType() if number else None)

    def write(self) -> None:
        b, places = self.builder, list(product(range(self.rows), range(self.width)))
        for r, v in places:
            fetch(self.k, b, self.at(self.out, self.number(r), v), writing=True)
        sums, even = [self.zeros] * len(places), self.number(0)
        if self.width == max(WIDTH.values()):
            even = b.and_(self.deep, self.number(-2))
            two = lambda p: [self.factors(p), self.factors(b.add(p, self.number(1)))]
            sums = self.summed(sums, self.number(0), even, 2, two)
        sums = self.summed(sums, even, self.deep, 1, lambda p: [self.factors(p)])
        for (r, v), total in zip(places, sums):
            self.put(r, v, total)

    def factors(self, p: Any) -> Any:
        b = self.builder
        ys = [b.load(self.at(self.y, p, v), align=4) for v in range(self.width)]
        xs = [self.spread(b.load(self.at(self.x, self.number(r), p, number=True))) for r in range(self.rows)]
        return product(xs, ys)

    def put(self, r: int, v: int, total: Any) -> None:
        b = self.builder
        frm, to = (self.at(array, self.number(r), v) for array in (self.more, self.out))
        if v < self.width - 1:
            b.store(b.fadd(total, b.load(frm, align=4)), to, align=4)
            return
        kind = f"v{self.k.lanes}f32.p0v{self.k.lanes}f32"
        made = b.fadd(total, self.load_first(frm, self.known))
        self.call(f"llvm.masked.store.{kind}", self.ir.VoidType(), made, to, self.align, self.known)


class Dots(Registers):
    """The instructions of one square of dot products."""

    def __init__(self, k: Any, context: Any, builder: Any, kinds: Any, args: Any):
        super().__init__(k, context, builder)
        _, i, row, _, j, across, _, self.m, _, o, line, self.deep, last = args
        self.x, self.y, self.more, self.out = ((kinds[n], args[n]) for n in (0, 3, 6, 8))
        rows, self.columns = SQUARE[k.lanes]
        numbers = [self.number(r) for r in range(rows * self.columns)]
        those = [builder.select(builder.icmp_signed("<", r, last), r, last) for r in numbers[:rows]]
        self.own, self.to, self.other = (
            [builder.add(start, builder.mul(r, step)) for r in many]
            for start, step, many in ((i, row, those), (o, line, those), (j, across, numbers[: self.columns]))
        )

    def write(self) -> None:
        b, lanes, small = self.builder, self.k.lanes, self.ir.VectorType(self.ir.FloatType(), self.columns)
        end = b.and_(self.deep, self.number(-lanes))
        known = self.first(b.sub(self.deep, end))
        full, partial = (
            self.factors(lambda at: b.load(at, align=4)),
            self.factors(lambda at: self.load_first(at, known)),
        )
        sums = self.summed([self.zeros] * lanes, self.number(0), end, lanes, full)
        sums = self.summed(sums, end, self.deep, lanes, partial)
        total, more = self.along(sums), b.load(self.pointer(self.more, self.m, small), align=4)
        for r, place in enumerate(self.to):
            own = b.shuffle_vector(total, total, self.places(list(range(r * self.columns, (r + 1) * self.columns))))
            b.store(b.fadd(own, more), self.pointer(self.out, place, small), align=4)

    def factors(self, load: Any) -> Any:
        def loaded(array: Any, starts: list[Any], p: Any) -> list[Any]:
            return [load(self.pointer(array, self.builder.add(start, p))) for start in starts]

        return lambda p: [product(loaded(self.x, self.own, p), loaded(self.y, self.other, p))]

    def along(self, sums: list[Any]) -> Any:
        """The sum of each register: pairs of registers swap halves, then quarters..., and are added."""
        b, lanes = self.builder, self.k.lanes
        while half := len(sums) // 2:
            ways = [
                self.places([c + there if c & half else c + here for c in range(lanes)])
                for there, here in ((lanes - half, 0), (lanes, half))
            ]
            sums = [b.fadd(*(b.shuffle_vector(*pair, way) for way in ways)) for pair in zip(sums, sums[half:])]
        return sums[0]


class Across(Registers):
    """The instructions of one tile whose sums become columns.

    With one register, sums over even and odd p are separate: eight dependent sums would wait for each other."""

    def __init__(self, k: Any, context: Any, builder: Any, kinds: Any, args: Any, width: int):
        super().__init__(k, context, builder)
        self.width, self.columns, b = width, k.lanes // 2, builder
        _, i, row, _, self.j, _, self.m, _, o, line, self.deep, last, self.then = args
        self.x, self.y, self.more, self.out = ((kinds[n], args[n]) for n in (0, 3, 5, 7))
        numbers = [self.number(r) for r in range(width * k.lanes)]
        self.own = [b.add(i, b.mul(row, c)) for c in numbers[: self.columns]]
        self.to = [b.add(o, b.mul(line, b.select(b.icmp_signed("<", r, last), r, last))) for r in numbers]

    def write(self) -> None:
        b, count, one, apart = self.builder, self.columns * self.width, self.number(1), self.width == 1
        even = b.and_(self.deep, self.number(-2))

        def two(p: Any) -> list[list]:
            self.ahead(p)
            pairs = [self.factors(p), self.factors(b.add(p, one))]
            return [[*pairs[0], *pairs[1]]] if apart else pairs

        sums = self.summed([self.zeros] * (count + count * apart), self.number(0), even, 2, two)
        sums = [b.fadd(*both) for both in zip(sums, sums[count:])] if apart else sums
        sums = self.summed(sums, even, self.deep, 1, lambda p: [self.factors(p)])
        more = b.load(self.pointer(self.more, self.m, self.small), align=4)
        for v in range(self.width):
            self.put(self.to[v * self.k.lanes :], sums[v :: self.width], more)

    @property
    def small(self) -> Any:
        return self.ir.VectorType(self.ir.FloatType(), self.columns)

    def ahead(self, p: Any) -> None:
        """Prefetch a cache line of the next tile, for every other p."""
        b = self.builder
        fetch(self.k, b, self.pointer(self.x, b.add(self.then, b.mul(p, self.number(self.columns)))))

    def factors(self, p: Any) -> list:
        b, lanes = self.builder, self.k.lanes
        start = b.add(self.j, b.mul(p, self.number(self.width * lanes)))
        ys = [b.load(self.pointer(self.y, b.add(start, self.number(v * lanes))), align=4) for v in range(self.width)]
        xs = [self.spread(b.load(self.pointer(self.x, b.add(place, p), self.ir.FloatType()))) for place in self.own]
        return [*product(xs, ys)]

    def put(self, to: list[Any], sums: list[Any], more: Any) -> None:
        """Write the transposed registers of sums, plus `more`."""
        b, lanes, columns = self.builder, self.k.lanes, self.columns
        for half in [1 << n for n in range(columns.bit_length() - 1)]:  # squares of 2, 4... change their corners
            ways = [
                self.places([c + there if bool(c & half) == turned else c + here for c in range(lanes)])
                for turned, there, here in ((True, lanes - half, 0), (False, half, lanes))
            ]
            for c in [c for c in range(columns) if not c & half]:
                pair = sums[c], sums[c + half]
                sums[c], sums[c + half] = [b.shuffle_vector(*pair, way) for way in ways]
        for r in range(lanes):
            first, turned = r // columns * columns, sums[r % columns]
            made = b.shuffle_vector(turned, turned, self.places(list(range(first, first + columns))))
            b.store(b.fadd(made, more), self.pointer(self.out, to[r], self.small), align=4)
