"""Products of matrices in vector registers, as instructions of compiled loops (ops/kernels/product_loops.py).

`tileRxV(x, i, row, y, j, across, more, m, apart, out, o, line, deep, columns)` makes R rows of V registers:

    out[o + r line + c] = more[m + r apart + c] + sum over p < deep of x[i + r row + p] y[j + p across + c]

for c < columns, of which the last register has 1 to all. Sums stay in registers: for each p, V loads of y, R of x and R V
fused multiply-adds, 24 for 10 with AVX-512, which can do one load for each. `memory(address)` is a flat array there,
`word(address)` the number of 64 bits.
Written as LLVM's instructions, since Numba takes thrice as long for the same with a local variable for each sum.
"""
from __future__ import annotations

from functools import cache
from typing import Any

from rushlight.compile.vectors import address, kinds, machine

HEIGHTS = 6, 5                                    # rows of a tile: of both together, any number from 20 on
WIDTH = {32: 4, 16: 2}                            # registers -> those of the widest tile's columns


@cache
def tiles() -> dict[str, Any]:
    """The names, for the globals of loops."""
    lanes, registers = machine()
    k = kinds(lanes)
    pairs = [(rows, width) for rows in HEIGHTS for width in range(1, WIDTH[registers] + 1)]
    return {"memory": memory(k), "word": word(k), **{f"tile{rows}x{width}": tile(k, rows, width) for rows, width in pairs}}


def memory(k: Any) -> Any:
    @k.intrinsic
    def memory(typing, place):
        """float32 from this address on; nobody counts who uses them."""
        made = k.types.Array(k.types.float32, 1, "C")

        def generate(context, builder, signature, args):
            from numba.np.arrayobj import populate_array
            array = context.make_array(made)(context, builder)
            start = builder.inttoptr(args[0], k.ir.FloatType().as_pointer())
            one, size = (context.get_constant(k.types.intp, n) for n in (1, 4))
            populate_array(array, start, [one], [size], size, None)
            return array._getvalue()
        return made(k.types.intp), generate
    return memory


def word(k: Any) -> Any:
    @k.intrinsic
    def word(typing, place):
        def generate(context, builder, signature, args):
            return builder.load(builder.inttoptr(args[0], k.ir.IntType(64).as_pointer()))
        return k.types.intp(k.types.intp), generate
    return word


def tile(k: Any, rows: int, width: int) -> Any:
    @k.intrinsic
    def tile(typing, x, i, row, y, j, across, more, m, apart, out, o, line, deep, columns):
        n = k.types.intp

        def generate(context, builder, signature, args):
            Tile(k, context, builder, signature.args, args, rows, width).write()
            return context.get_dummy_value()
        return k.types.void(x, n, n, y, n, n, more, n, n, out, n, n, n, n), generate
    return tile


class Tile:
    """The instructions of one tile."""

    def __init__(self, k: Any, context: Any, builder: Any, kinds: Any, args: Any, rows: int, width: int):
        self.k, self.ir, self.context, self.builder, self.kinds, self.rows = k, k.ir, context, builder, kinds, rows
        self.x, self.y, self.more, self.out = (args[i:i + 3] for i in (0, 3, 6, 9))      # array, place, step between rows
        self.deep, columns = args[12:]
        self.lane, self.width = k.ir.IntType(32), width
        left = builder.trunc(builder.sub(columns, self.number((width - 1) * k.lanes)), self.lane)
        self.known = builder.icmp_signed("<", k.ir.Constant(k.ir.VectorType(self.lane, k.lanes), list(range(k.lanes))),
                                         self.spread(left))

    def number(self, n: int) -> Any:
        return self.context.get_constant(self.k.types.intp, n)

    def at(self, array: Any, r: Any, c: Any, number: bool = False) -> Any:
        """The address of register c, or of the number c, of row r."""
        b = self.builder
        place = b.add(b.add(array[1], b.mul(array[2], r)), c if number else self.number(c * self.k.lanes))
        found = address(self.context, b, self.kinds[0], array[0], place)
        return found if number else b.bitcast(found, self.k.vector.as_pointer())

    def spread(self, value: Any) -> Any:
        b, lanes = self.builder, self.k.lanes
        nothing = self.ir.Constant(self.ir.VectorType(value.type, lanes), self.ir.Undefined)
        alone = b.insert_element(nothing, value, self.ir.Constant(self.lane, 0))
        return b.shuffle_vector(alone, nothing, self.ir.Constant(self.ir.VectorType(self.lane, lanes), [0] * lanes))

    def call(self, name: str, result: Any, *args: Any) -> Any:
        found = self.builder.module.globals.get(name) or self.ir.Function(
            self.builder.module, self.ir.FunctionType(result, [a.type for a in args]), name=name)
        return self.builder.call(found, args)

    def write(self) -> None:
        sums = self.add_up()
        for r in range(self.rows):
            for v in range(self.width):
                self.put(r, v, sums[r * self.width + v])

    def add_up(self) -> list[Any]:
        k, b = self.k, self.builder
        before, loop, after = b.block, b.append_basic_block("products"), b.append_basic_block("sums")
        b.branch(loop)
        b.position_at_end(loop)
        p, *sums = phis = [b.phi(self.deep.type), *[b.phi(k.vector) for _ in range(self.rows * self.width)]]
        for phi in phis:
            phi.add_incoming(self.number(0) if phi is p else self.ir.Constant(k.vector, [0.0] * k.lanes), before)
        ys = [b.load(self.at(self.y, p, v), align=4) for v in range(self.width)]
        made = []
        for r in range(self.rows):
            x = self.spread(b.load(self.at(self.x, self.number(r), p, number=True)))
            own = sums[r * self.width:(r + 1) * self.width]
            made += [self.call(f"llvm.fma.v{k.lanes}f32", k.vector, x, y, total) for y, total in zip(ys, own)]
        following = b.add(p, self.number(1))
        for phi, value in zip(phis, [following, *made]):
            phi.add_incoming(value, loop)
        b.cbranch(b.icmp_signed("<", following, self.deep), loop, after)
        b.position_at_end(after)
        return made

    def put(self, r: int, v: int, total: Any) -> None:
        b, vector, align = self.builder, self.k.vector, self.ir.Constant(self.lane, 4)
        frm, to = (self.at(array, self.number(r), v) for array in (self.more, self.out))
        kind = f"v{self.k.lanes}f32.p0v{self.k.lanes}f32"
        if v < self.width - 1:
            b.store(b.fadd(total, b.load(frm, align=4)), to, align=4)
            return
        zeros = self.ir.Constant(vector, [0.0] * self.k.lanes)
        more = self.call(f"llvm.masked.load.{kind}", vector, frm, align, self.known, zeros)
        self.call(f"llvm.masked.store.{kind}", self.ir.VoidType(), b.fadd(total, more), to, align, self.known)
