"""Vector registers in compiled loops, for loops in which LLVM does not keep sums in registers by itself.

Registers (they may be local variables only): `load(x, i)` reads a register of float32 from a flat array, from index i
on; `store(x, i, v)` writes a register; `spread(x, i)` repeats x[i]; `none()` is zeros; `fma(a, b, c)` is a b + c;
`add`, `sub`, `mul` and `bigger(a, b)` (maximum) work lane by lane; `along(v)` is the sum of all lanes, `most(v)` the
largest; `evens(a, b)` has every other number of a, then of b shifted by one; `weight(v)` is exp(v) for v < 88, and 0
for v < -80, which avoids slow denormal numbers.

Arrays: `transpose(x, i, p, y, j, q)` transposes a square of numbers, with rows p apart in x and q apart in y. `get`,
`put` and `copy(x, i, y, j, n)`, x[i:i+n] = y[j:j+n], work for numbers of any type; `select(condition, a, b)` chooses
without a branch. `part(x, i)` is the array from index i on, without reference counting (x must outlive it), which is
slow in small functions. `ahead(x, i)` prefetches the cache line of x[i]. Indices are not checked."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from rushlight.loops.intrinsics import backend, call_llvm, instruction
from rushlight.loops.minimax_polynomials import EXP32

# (processor feature, float32 lanes, registers)
WIDTHS = (("avx512f", 16, 32), ("avx2", 8, 16), ("neon", 4, 32))


@cache
def machine() -> tuple[int, int]:
    """(float32 in a vector register, number of registers) of this processor."""
    from llvmlite import binding

    features = binding.get_host_cpu_features()
    for name, lanes, registers in WIDTHS:
        if features.get(name):
            return lanes, registers
    return 4, 16


@cache
def functions() -> dict[str, Any]:
    """{name: instruction}, for the globals of loops."""
    k = kinds(machine()[0])
    return {"select": backend().select} | {name: made for group in GROUPS for name, made in group(k).items()}


@cache
def kinds(lanes: int) -> SimpleNamespace:
    """The tools for writing instructions: `instruction`, Numba's types, llvmlite's `ir`, and a type for a register."""
    backend()
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic, models, register_model

    vector = ir.VectorType(ir.FloatType(), lanes)

    class Lanes(types.Type):
        def __init__(self) -> None:
            super().__init__(name=f"f32x{lanes}")

    @register_model(Lanes)
    class Model(models.PrimitiveModel):
        def __init__(self, manager: Any, kind: Any) -> None:
            super().__init__(manager, kind, vector)

    return SimpleNamespace(
        instruction=partial(instruction, intrinsic), types=types, ir=ir, lanes=lanes, vector=vector, register=Lanes()
    )


def address(context: Any, builder: Any, kind: Any, array: Any, i: Any) -> Any:
    return builder.gep(context.make_array(kind)(context, builder, array).data, [i])


def named(*instructions: Any) -> dict[str, Any]:
    return {made.__name__: made for made in instructions}


def numbers(k: SimpleNamespace) -> dict[str, Any]:
    n, void = k.types.intp, k.types.void

    @k.instruction(lambda x, i: x.dtype(x, n))
    def get(context, builder, kinds, args):
        return builder.load(address(context, builder, kinds[0], *args))

    @k.instruction(lambda x, i, v: void(x, n, x.dtype))
    def put(context, builder, kinds, args):
        builder.store(args[2], address(context, builder, kinds[0], *args[:2]))

    @k.instruction(lambda x, i, y, j, count: void(x, n, y, n, n))
    def copy(context, builder, kinds, args):
        from numba.core import cgutils

        to = address(context, builder, kinds[0], *args[:2])
        cgutils.memcpy(builder, to, address(context, builder, kinds[2], *args[2:4]), args[4])

    @k.instruction(lambda x, i: k.types.Array(x.dtype, 1, "C")(x, n))
    def part(context, builder, kinds, args):
        from numba.np.arrayobj import populate_array

        made = context.make_array(k.types.Array(kinds[0].dtype, 1, "C"))(context, builder)
        one, size = (context.get_constant(n, value) for value in (1, kinds[0].dtype.bitwidth // 8))
        populate_array(made, address(context, builder, kinds[0], *args), [one], [size], size, None)
        return made._getvalue()

    @k.instruction(lambda x, i: void(x, n))
    def ahead(context, builder, kinds, args):
        fetch(k, builder, address(context, builder, kinds[0], *args))

    return named(get, put, copy, part, ahead)


def lane_numbers(k: SimpleNamespace, numbers: list[int]) -> Any:
    """A constant vector of int32, for instance the lanes that a shuffle chooses."""
    return k.ir.Constant(k.ir.VectorType(k.ir.IntType(32), len(numbers)), numbers)


def spread_value(k: SimpleNamespace, builder: Any, value: Any) -> Any:
    """A number in all lanes."""
    undefined = k.ir.Constant(k.ir.VectorType(value.type, k.lanes), k.ir.Undefined)
    alone = builder.insert_element(undefined, value, k.ir.Constant(k.ir.IntType(32), 0))
    return builder.shuffle_vector(alone, undefined, lane_numbers(k, [0] * k.lanes))


def first_lanes(k: SimpleNamespace, builder: Any, count: Any) -> Any:
    """The mask of the first `count` lanes."""
    every = lane_numbers(k, list(range(k.lanes)))
    return builder.icmp_signed("<", every, spread_value(k, builder, builder.trunc(count, k.ir.IntType(32))))


def moves(k: SimpleNamespace) -> dict[str, Any]:
    n, void, register = k.types.intp, k.types.void, k.register

    def place(context, builder, kind, array, i):
        return builder.bitcast(address(context, builder, kind, array, i), k.vector.as_pointer())

    @k.instruction(lambda x, i: register(x, n))
    def load(context, builder, kinds, args):
        return builder.load(place(context, builder, kinds[0], *args), align=4)

    @k.instruction(lambda x, i, v: void(x, n, v))
    def store(context, builder, kinds, args):
        builder.store(args[2], place(context, builder, kinds[0], *args[:2]), align=4)

    @k.instruction(lambda x, i: register(x, n))
    def spread(context, builder, kinds, args):
        return spread_value(k, builder, builder.load(address(context, builder, kinds[0], *args)))

    @k.instruction(lambda a, b: register(register, register))
    def evens(context, builder, kinds, args):
        chosen = [*range(0, k.lanes, 2), *range(k.lanes + 1, 2 * k.lanes, 2)]
        return builder.shuffle_vector(*args, lane_numbers(k, chosen))

    @k.instruction(lambda x, i, p, y, j, q: void(x, n, n, y, n, n))
    def transpose(context, builder, kinds, args):
        def row(kind, array, first, apart, r):
            at = builder.add(first, builder.mul(apart, k.ir.Constant(apart.type, r)))
            return place(context, builder, kind, array, at)

        rows = [builder.load(row(kinds[0], *args[:3], r), align=4) for r in range(k.lanes)]
        for half in [1 << n for n in range(k.lanes.bit_length() - 1)]:  # squares of 2, 4... change their corners
            upper = lane_numbers(k, [c + k.lanes - half if c & half else c for c in range(k.lanes)])
            lower = lane_numbers(k, [c + k.lanes if c & half else c + half for c in range(k.lanes)])
            for r in [r for r in range(k.lanes) if not r & half]:
                pair = rows[r], rows[r + half]
                rows[r], rows[r + half] = [builder.shuffle_vector(*pair, chosen) for chosen in (upper, lower)]
        for r, v in enumerate(rows):
            builder.store(v, row(kinds[3], *args[3:], r), align=4)

    return named(load, store, spread, evens, transpose)


def fetch(k: SimpleNamespace, builder: Any, where: Any, writing: bool = False) -> None:
    """Prefetch the cache line at this address, for reading or writing."""
    # (write, locality 3: into L1, data cache)
    how = [k.ir.Constant(k.ir.IntType(32), n) for n in (int(writing), 3, 1)]
    where = builder.bitcast(where, k.ir.IntType(8).as_pointer())
    call_llvm(builder, "llvm.prefetch.p0i8", k.ir.VoidType(), [where, *how])


def product_and(k: SimpleNamespace, builder: Any, *args: Any) -> Any:
    """a b + c."""
    return call_llvm(builder, f"llvm.fmuladd.v{k.lanes}f32", k.vector, args)


def larger(builder, a, b):
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


def sums(k: SimpleNamespace) -> dict[str, Any]:
    ir, register = k.ir, k.register

    @k.instruction(lambda: register())
    def none(context, builder, kinds, args):
        return ir.Constant(k.vector, [0.0] * k.lanes)

    @k.instruction(lambda a, b, c: register(register, register, register))
    def fma(context, builder, kinds, args):
        return product_and(k, builder, *args)

    @k.instruction(lambda v: k.types.float32(register))
    def along(context, builder, kinds, args):
        name, zero = f"llvm.vector.reduce.fadd.v{k.lanes}f32", ir.Constant(ir.FloatType(), 0.0)
        return call_llvm(builder, name, ir.FloatType(), [zero, args[0]], fastmath=("reassoc",))

    def lanewise(write: Callable) -> Any:
        """An instruction for each pair of lanes: write(builder, a, b)."""
        typed = k.instruction(lambda a, b: register(register, register))
        return typed(lambda context, builder, kinds, args: write(builder, *args))

    pairs = {
        "add": lambda builder, a, b: builder.fadd(a, b),
        "sub": lambda builder, a, b: builder.fsub(a, b),
        "mul": lambda builder, a, b: builder.fmul(a, b),
        "bigger": larger,
    }
    return named(none, fma, along) | {name: lanewise(write) for name, write in pairs.items()}


def weights(k: SimpleNamespace) -> dict[str, Any]:
    """The instructions for softmax."""
    ir, register = k.ir, k.register

    @k.instruction(lambda v: k.types.float32(register))
    def most(context, builder, kinds, args):
        v = args[0]
        for half in [1 << n for n in reversed(range(k.lanes.bit_length() - 1))]:
            turned = lane_numbers(k, [c ^ half for c in range(k.lanes)])
            v = larger(builder, v, builder.shuffle_vector(v, v, turned))
        return builder.extract_element(v, ir.Constant(ir.IntType(32), 0))

    @k.instruction(lambda v: register(register))
    def weight(context, builder, kinds, args):
        """2^n exp(r), n = round(v / ln 2), as in loops/scalar_math.py; n is computed by shifting the bits of
        v / ln 2 + 1.5 2^23."""
        one = lambda x: ir.Constant(k.vector, [float(np.float32(x))] * k.lanes)
        plus_product = partial(product_and, k, builder)
        v, whole = args[0], lambda x: lane_numbers(k, [x] * k.lanes)
        t = plus_product(v, one(1 / math.log(2)), one(1.5 * 2.0**23))
        n = builder.fsub(t, one(1.5 * 2.0**23))
        r = plus_product(n, one(2.12194440054690583e-4), plus_product(n, one(-0.693359375), v))
        p = one(EXP32[-1])
        for c in reversed(EXP32[:-1]):
            p = plus_product(p, r, one(c))
        p = builder.fadd(plus_product(builder.fmul(r, r), p, r), one(1))
        n = builder.add(builder.shl(builder.bitcast(t, whole(0).type), whole(23)), whole(127 << 23))
        result = builder.fmul(p, builder.bitcast(n, k.vector))
        return builder.select(builder.fcmp_ordered("<", v, one(-80)), one(0), result)

    return named(most, weight)


def parts(k: SimpleNamespace) -> dict[str, Any]:
    """Instructions for partial registers.

    `load_first(x, i, n)` reads n numbers, and zeros for the rest. `store_first(x, i, v, n)` writes the first n numbers
    of v; `store_evens(x, i, v, n)` writes them to every other index from i on. `upto(v, n)` is v with -inf from number
    n on."""
    ir, n, void, register = k.ir, k.types.intp, k.types.void, k.register
    first, align = partial(first_lanes, k), ir.Constant(ir.IntType(32), 4)

    def masked(context, builder, name, result, kind, array, i, before, *after):
        where = builder.bitcast(address(context, builder, kind, array, i), k.vector.as_pointer())
        full = f"llvm.masked.{name}.v{k.lanes}f32.p0v{k.lanes}f32"
        return call_llvm(builder, full, result, [*before, where, align, *after])

    def write(context, builder, kind, array, i, v, mask):
        masked(context, builder, "store", ir.VoidType(), kind, array, i, [v], mask)

    @k.instruction(lambda x, i, count: register(x, n, n))
    def load_first(context, builder, kinds, args):
        x, i, count = args
        zeros = ir.Constant(k.vector, [0.0] * k.lanes)
        return masked(context, builder, "load", k.vector, kinds[0], x, i, [], first(builder, count), zeros)

    @k.instruction(lambda x, i, v, count: void(x, n, v, n))
    def store_first(context, builder, kinds, args):
        write(context, builder, kinds[0], *args[:3], first(builder, args[3]))

    @k.instruction(lambda x, i, v, count: void(x, n, v, n))
    def store_evens(context, builder, kinds, args):
        x, i, v, count = args
        evens = ir.Constant(ir.VectorType(ir.IntType(1), k.lanes), [c % 2 == 0 for c in range(k.lanes)])
        mask = first(builder, count)
        # each number of half a register is duplicated, and every other copy is written
        for half in (0, k.lanes // 2):
            twice = lane_numbers(k, [half + c // 2 for c in range(k.lanes)])
            at, known = builder.add(i, ir.Constant(i.type, 2 * half)), builder.shuffle_vector(mask, mask, twice)
            write(context, builder, kinds[0], x, at, builder.shuffle_vector(v, v, twice), builder.and_(known, evens))

    @k.instruction(lambda v, count: register(register, n))
    def upto(context, builder, kinds, args):
        least = ir.Constant(k.vector, [float("-inf")] * k.lanes)
        return builder.select(first(builder, args[1]), args[0], least)

    return named(load_first, store_first, store_evens, upto)


GROUPS = numbers, moves, sums, weights, parts
