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
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from rushlight.loops.intrinsics import backend
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
    """The tools for writing instructions: Numba's `intrinsic` and types, llvmlite's `ir`, and a type for a register."""
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

    return SimpleNamespace(intrinsic=intrinsic, types=types, ir=ir, lanes=lanes, vector=vector, register=Lanes())


def address(context: Any, builder: Any, kind: Any, array: Any, i: Any) -> Any:
    return builder.gep(context.make_array(kind)(context, builder, array).data, [i])


def numbers(k: SimpleNamespace) -> dict[str, Any]:
    @k.intrinsic
    def get(typing, x, i):
        def generate(context, builder, signature, args):
            return builder.load(address(context, builder, signature.args[0], *args))

        return x.dtype(x, k.types.intp), generate

    @k.intrinsic
    def put(typing, x, i, v):
        def generate(context, builder, signature, args):
            builder.store(args[2], address(context, builder, signature.args[0], *args[:2]))
            return context.get_dummy_value()

        return k.types.void(x, k.types.intp, x.dtype), generate

    @k.intrinsic
    def copy(typing, x, i, y, j, n):
        def generate(context, builder, signature, args):
            from numba.core import cgutils

            to = address(context, builder, signature.args[0], *args[:2])
            cgutils.memcpy(builder, to, address(context, builder, signature.args[2], *args[2:4]), args[4])
            return context.get_dummy_value()

        return k.types.void(x, k.types.intp, y, k.types.intp, k.types.intp), generate

    @k.intrinsic
    def part(typing, x, i):
        def generate(context, builder, signature, args):
            made = context.make_array(signature.return_type)(context, builder)
            from numba.np.arrayobj import populate_array

            one = context.get_constant(k.types.intp, 1)
            size = context.get_constant(k.types.intp, x.dtype.bitwidth // 8)
            populate_array(made, address(context, builder, signature.args[0], *args), [one], [size], size, None)
            return made._getvalue()

        return k.types.Array(x.dtype, 1, "C")(x, k.types.intp), generate

    @k.intrinsic
    def ahead(typing, x, i):
        def generate(context, builder, signature, args):
            fetch(k, builder, address(context, builder, signature.args[0], *args))
            return context.get_dummy_value()

        return k.types.void(x, k.types.intp), generate

    return {"get": get, "put": put, "copy": copy, "part": part, "ahead": ahead}


def moves(k: SimpleNamespace) -> dict[str, Any]:
    ir, undefined = k.ir, k.ir.Constant(k.vector, k.ir.Undefined)
    places = lambda numbers: ir.Constant(ir.VectorType(ir.IntType(32), k.lanes), numbers)

    @k.intrinsic
    def load(typing, x, i):
        def generate(context, builder, signature, args):
            where = address(context, builder, signature.args[0], *args)
            return builder.load(builder.bitcast(where, k.vector.as_pointer()), align=4)

        return k.register(x, k.types.intp), generate

    @k.intrinsic
    def store(typing, x, i, v):
        def generate(context, builder, signature, args):
            where = address(context, builder, signature.args[0], *args[:2])
            builder.store(args[2], builder.bitcast(where, k.vector.as_pointer()), align=4)
            return context.get_dummy_value()

        return k.types.void(x, k.types.intp, v), generate

    @k.intrinsic
    def spread(typing, x, i):
        def generate(context, builder, signature, args):
            value = builder.load(address(context, builder, signature.args[0], *args))
            alone = builder.insert_element(undefined, value, ir.Constant(ir.IntType(32), 0))
            return builder.shuffle_vector(alone, undefined, places([0] * k.lanes))

        return k.register(x, k.types.intp), generate

    @k.intrinsic
    def evens(typing, a, b):
        def generate(context, builder, signature, args):
            chosen = [*range(0, k.lanes, 2), *range(k.lanes + 1, 2 * k.lanes, 2)]
            return builder.shuffle_vector(*args, places(chosen))

        return k.register(k.register, k.register), generate

    @k.intrinsic
    def transpose(typing, x, i, p, y, j, q):
        def generate(context, builder, signature, args):
            def row(kind, array, first, apart, r):
                at = builder.add(first, builder.mul(apart, ir.Constant(apart.type, r)))
                return builder.bitcast(address(context, builder, kind, array, at), k.vector.as_pointer())

            rows = [builder.load(row(signature.args[0], *args[:3], r), align=4) for r in range(k.lanes)]
            for half in [1 << n for n in range(k.lanes.bit_length() - 1)]:  # squares of 2, 4... change their corners
                upper = places([c + k.lanes - half if c & half else c for c in range(k.lanes)])
                lower = places([c + k.lanes if c & half else c + half for c in range(k.lanes)])
                for r in [r for r in range(k.lanes) if not r & half]:
                    pair = rows[r], rows[r + half]
                    rows[r], rows[r + half] = [builder.shuffle_vector(*pair, chosen) for chosen in (upper, lower)]
            for r, v in enumerate(rows):
                builder.store(v, row(signature.args[3], *args[3:], r), align=4)
            return context.get_dummy_value()

        n = k.types.intp
        return k.types.void(x, n, n, y, n, n), generate

    return {"load": load, "store": store, "spread": spread, "evens": evens, "transpose": transpose}


def called(k: SimpleNamespace, builder: Any, name: str, result: Any, args: Any, **how: Any) -> Any:
    """A call of an LLVM intrinsic."""
    function = builder.module.globals.get(name) or k.ir.Function(
        builder.module, k.ir.FunctionType(result, [a.type for a in args]), name=name
    )
    return builder.call(function, args, **how)


def fetch(k: SimpleNamespace, builder: Any, where: Any, writing: bool = False) -> None:
    """Prefetch the cache line at this address, for reading or writing."""
    # (write, locality 3: into L1, data cache)
    how = [k.ir.Constant(k.ir.IntType(32), n) for n in (int(writing), 3, 1)]
    called(
        k, builder, "llvm.prefetch.p0i8", k.ir.VoidType(), [builder.bitcast(where, k.ir.IntType(8).as_pointer()), *how]
    )


def product_and(k: SimpleNamespace, builder: Any, *args: Any) -> Any:
    """a b + c."""
    return called(k, builder, f"llvm.fmuladd.v{k.lanes}f32", k.vector, args)


def sums(k: SimpleNamespace) -> dict[str, Any]:
    ir = k.ir

    @k.intrinsic
    def none(typing):
        def generate(context, builder, signature, args):
            return ir.Constant(k.vector, [0.0] * k.lanes)

        return k.register(), generate

    @k.intrinsic
    def fma(typing, a, b, c):
        def generate(context, builder, signature, args):
            return product_and(k, builder, *args)

        return k.register(k.register, k.register, k.register), generate

    @k.intrinsic
    def add(typing, a, b):
        return k.register(k.register, k.register), lambda context, builder, signature, args: builder.fadd(*args)

    @k.intrinsic
    def sub(typing, a, b):
        return k.register(k.register, k.register), lambda context, builder, signature, args: builder.fsub(*args)

    @k.intrinsic
    def along(typing, v):
        def generate(context, builder, signature, args):
            return called(
                k,
                builder,
                f"llvm.vector.reduce.fadd.v{k.lanes}f32",
                ir.FloatType(),
                [ir.Constant(ir.FloatType(), 0.0), args[0]],
                fastmath=("reassoc",),
            )

        return k.types.float32(k.register), generate

    @k.intrinsic
    def mul(typing, a, b):
        return k.register(k.register, k.register), lambda context, builder, signature, args: builder.fmul(*args)

    return {"none": none, "fma": fma, "add": add, "sub": sub, "mul": mul, "along": along}


def weights(k: SimpleNamespace) -> dict[str, Any]:
    """The instructions for softmax."""
    ir = k.ir

    @k.intrinsic
    def bigger(typing, a, b):
        return k.register(k.register, k.register), lambda context, builder, signature, args: larger(builder, *args)

    def larger(builder, a, b):
        return builder.select(builder.fcmp_ordered(">", a, b), a, b)

    @k.intrinsic
    def most(typing, v):
        def generate(context, builder, signature, args):
            v, lane = args[0], ir.IntType(32)
            for half in [1 << n for n in reversed(range(k.lanes.bit_length() - 1))]:
                turned = ir.Constant(ir.VectorType(lane, k.lanes), [c ^ half for c in range(k.lanes)])
                v = larger(builder, v, builder.shuffle_vector(v, v, turned))
            return builder.extract_element(v, ir.Constant(lane, 0))

        return k.types.float32(k.register), generate

    @k.intrinsic
    def weight(typing, v):
        """2^n exp(r), n = round(v / ln 2), as in loops/scalar_math.py; n is computed by shifting the bits of v / ln 2 +
        1.5 2^23.
        """

        def generate(context, builder, signature, args):
            one = lambda x: ir.Constant(k.vector, [float(np.float32(x))] * k.lanes)
            plus_product = partial(product_and, k, builder)
            bits, v = ir.VectorType(ir.IntType(32), k.lanes), args[0]
            whole = lambda x: ir.Constant(bits, [x] * k.lanes)
            t = plus_product(v, one(1 / math.log(2)), one(1.5 * 2.0**23))
            n = builder.fsub(t, one(1.5 * 2.0**23))
            r = plus_product(n, one(2.12194440054690583e-4), plus_product(n, one(-0.693359375), v))
            p = one(EXP32[-1])
            for c in reversed(EXP32[:-1]):
                p = plus_product(p, r, one(c))
            p = builder.fadd(plus_product(builder.fmul(r, r), p, r), one(1))
            n = builder.add(builder.shl(builder.bitcast(t, bits), whole(23)), whole(127 << 23))
            return builder.select(
                builder.fcmp_ordered("<", v, one(-80)), one(0), builder.fmul(p, builder.bitcast(n, k.vector))
            )

        return k.register(k.register), generate

    return {"bigger": bigger, "most": most, "weight": weight}


def parts(k: SimpleNamespace) -> dict[str, Any]:
    """Instructions for partial registers.

    `load_first(x, i, n)` reads n numbers, and zeros for the rest. `store_first(x, i, v, n)` writes the first n numbers
    of v; `store_evens(x, i, v, n)` writes them to every other index from i on. `upto(v, n)` is v with -inf from number
    n on."""
    ir = k.ir

    def first(builder, n):
        """The mask of the first n lanes."""
        lane = ir.IntType(32)
        alone = builder.insert_element(
            ir.Constant(ir.VectorType(lane, k.lanes), ir.Undefined), builder.trunc(n, lane), ir.Constant(lane, 0)
        )
        many = builder.shuffle_vector(alone, alone, ir.Constant(ir.VectorType(lane, k.lanes), [0] * k.lanes))
        return builder.icmp_signed("<", ir.Constant(ir.VectorType(lane, k.lanes), list(range(k.lanes))), many)

    def masked(builder, name, result, args):
        full = f"llvm.masked.{name}.v{k.lanes}f32.p0v{k.lanes}f32"
        function = builder.module.globals.get(full) or ir.Function(
            builder.module, ir.FunctionType(result, [a.type for a in args]), name=full
        )
        return builder.call(function, args)

    @k.intrinsic
    def load_first(typing, x, i, n):
        def generate(context, builder, signature, args):
            where = builder.bitcast(address(context, builder, signature.args[0], *args[:2]), k.vector.as_pointer())
            return masked(
                builder,
                "load",
                k.vector,
                [
                    where,
                    ir.Constant(ir.IntType(32), 4),
                    first(builder, args[2]),
                    ir.Constant(k.vector, [0.0] * k.lanes),
                ],
            )

        return k.register(x, k.types.intp, k.types.intp), generate

    def write(context, builder, kind, array, i, v, mask):
        where = builder.bitcast(address(context, builder, kind, array, i), k.vector.as_pointer())
        masked(builder, "store", ir.VoidType(), [v, where, ir.Constant(ir.IntType(32), 4), mask])

    @k.intrinsic
    def store_first(typing, x, i, v, n):
        def generate(context, builder, signature, args):
            write(context, builder, signature.args[0], *args[:3], first(builder, args[3]))
            return context.get_dummy_value()

        return k.types.void(x, k.types.intp, v, k.types.intp), generate

    @k.intrinsic
    def store_evens(typing, x, i, v, n):
        def generate(context, builder, signature, args):
            array, i, v, n = args
            places = lambda numbers: ir.Constant(ir.VectorType(ir.IntType(32), k.lanes), numbers)
            # each number of half a register is duplicated, and every other one is written
            for half in (0, k.lanes // 2):
                twice = places([half + c // 2 for c in range(k.lanes)])
                known = builder.shuffle_vector(mask := first(builder, n), mask, twice)
                evens = ir.Constant(ir.VectorType(ir.IntType(1), k.lanes), [c % 2 == 0 for c in range(k.lanes)])
                at = builder.add(i, ir.Constant(i.type, 2 * half))
                write(
                    context,
                    builder,
                    signature.args[0],
                    array,
                    at,
                    builder.shuffle_vector(v, v, twice),
                    builder.and_(known, evens),
                )
            return context.get_dummy_value()

        return k.types.void(x, k.types.intp, v, k.types.intp), generate

    @k.intrinsic
    def upto(typing, v, n):
        def generate(context, builder, signature, args):
            return builder.select(first(builder, args[1]), args[0], ir.Constant(k.vector, [float("-inf")] * k.lanes))

        return k.register(k.register, k.types.intp), generate

    return {"load_first": load_first, "store_first": store_first, "store_evens": store_evens, "upto": upto}


GROUPS = numbers, moves, sums, weights, parts
