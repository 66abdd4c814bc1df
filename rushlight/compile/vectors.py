"""Vector registers in compiled loops, where LLVM would not find by itself how to keep sums in them.

`load(x, i)` reads as many float32 of a flat array as a register holds, from i on; `spread(x, i)` repeats x[i],
`fma(a, b, c)` is a b + c, `add(a, b)` the sum, `store(x, i, v)` writes, `none()` is zeros, `along(v)` adds up,
`evens(a, b)` is every other number of a, then of what stands one further in b. These live in local variables only. `get`,
`put` and `copy(x, i, y, j, n)`, x[i:i+n] = y[j:j+n], are for numbers of any type; `select(condition, a, b)` chooses without
a branch. Nothing asks whether i is inside.
"""
from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

from rushlight.compile.intrinsics import backend

WIDTHS = (("avx512f", 16, 32), ("avx2", 8, 16), ("neon", 4, 32))          # feature, float32 lanes, registers


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
    """The names, for the globals of loops."""
    k = kinds(machine()[0])
    return {"select": backend().select} | numbers(k) | moves(k) | sums(k)


def kinds(lanes: int) -> SimpleNamespace:
    """What the instructions are written with: Numba's `intrinsic`, its types, and LLVM's, with a type for a register."""
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

    return {"get": get, "put": put, "copy": copy}


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

    return {"load": load, "store": store, "spread": spread, "evens": evens}


def sums(k: SimpleNamespace) -> dict[str, Any]:
    ir = k.ir

    def called(builder, name, result, args, **how):
        function = builder.module.globals.get(name) or ir.Function(
            builder.module, ir.FunctionType(result, [a.type for a in args]), name=name)
        return builder.call(function, args, **how)

    @k.intrinsic
    def none(typing):
        def generate(context, builder, signature, args):
            return ir.Constant(k.vector, [0.0] * k.lanes)
        return k.register(), generate

    @k.intrinsic
    def fma(typing, a, b, c):
        def generate(context, builder, signature, args):
            return called(builder, f"llvm.fmuladd.v{k.lanes}f32", k.vector, args)
        return k.register(k.register, k.register, k.register), generate

    @k.intrinsic
    def add(typing, a, b):
        return k.register(k.register, k.register), lambda context, builder, signature, args: builder.fadd(*args)

    @k.intrinsic
    def along(typing, v):
        def generate(context, builder, signature, args):
            return called(builder, f"llvm.vector.reduce.fadd.v{k.lanes}f32", ir.FloatType(),
                          [ir.Constant(ir.FloatType(), 0.0), args[0]], fastmath=("reassoc",))
        return k.types.float32(k.register), generate

    return {"none": none, "fma": fma, "add": add, "along": along}
