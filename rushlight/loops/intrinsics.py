"""Numba, imported at the first compilation, and LLVM instructions that Python code cannot express."""

from __future__ import annotations

import math
from functools import cache
from platform import machine
from types import SimpleNamespace
from typing import Any

# loops are not called from C
EXACT = {"error_model": "numpy", "nogil": True, "no_cfunc_wrapper": True}
FLAGS = {"fastmath": {"contract"}, **EXACT}


@cache
def backend() -> SimpleNamespace:
    """`jit`: the decorator of scalar functions; `select`, `bits`...: instructions. ImportError without Numba."""
    try:
        from numba.extending import intrinsic

        from rushlight.loops.ctrl_c import numba
    except ImportError as e:
        raise ImportError(
            "rushlight.compile fuses loops with Numba, which is not installed: pip install numba scipy"
        ) from e
    return instructions(numba, intrinsic)


def instructions(numba: Any, intrinsic: Any) -> SimpleNamespace:
    """The instructions that scalar functions are built from. `jit`: compiles functions that are called by loops
    only."""
    return SimpleNamespace(
        numba=numba,
        jit=numba.njit(no_cpython_wrapper=True, **FLAGS),
        # for functions that are too long for LLVM to inline: a loop with calls is not vectorized
        inlined=numba.njit(no_cpython_wrapper=True, forceinline=True, **FLAGS),
        libm=math,
        select=select(numba, intrinsic),
        cast_bits=lambda frm, to: cast_bits(intrinsic, frm, to),
        restrict=restrict(numba, intrinsic),
        from_half=from_half(numba, intrinsic),
        to_half=to_half(numba, intrinsic),
        scaled=scaled(intrinsic),
        wide=wide(numba, intrinsic),
        shaped=shaped(numba, intrinsic),
        plus=reordered(intrinsic, "fadd"),
        times=reordered(intrinsic, "fmul"),
        largest=extreme(intrinsic, "maximum"),
        smallest=extreme(intrinsic, "minimum"),
    )


def cast_bits(intrinsic: Any, frm: Any, to: Any) -> Any:
    """An instruction: the bits of type `frm` as type `to`."""

    @intrinsic
    def bits(typing, x):
        def generate(context, builder, signature, args):
            return builder.bitcast(args[0], context.get_value_type(to))

        return to(frm), generate

    return bits


@cache
def knows_halves() -> bool:
    """True if this processor has float16 instructions. Without them, LLVM would call functions that are not linked."""
    from llvmlite import binding

    return bool(binding.get_host_cpu_features().get("f16c")) or machine() in ("aarch64", "arm64")


def from_half(numba: Any, intrinsic: Any) -> Any:
    """An instruction: float16 bits -> float32. Only if `knows_halves()`."""
    from llvmlite import ir

    @intrinsic
    def from_half(typing, x):
        def generate(context, builder, signature, args):
            return builder.fpext(builder.bitcast(args[0], ir.HalfType()), ir.FloatType())

        return numba.types.float32(numba.types.int16), generate

    return from_half


def to_half(numba: Any, intrinsic: Any) -> Any:
    """An instruction: float32 -> bits of the nearest float16. Only if `knows_halves()`."""
    from llvmlite import ir

    @intrinsic
    def to_half(typing, x):
        def generate(context, builder, signature, args):
            return builder.bitcast(builder.fptrunc(args[0], ir.HalfType()), ir.IntType(16))

        return numba.types.int16(numba.types.float32), generate

    return to_half


def select(numba: Any, intrinsic: Any) -> Any:
    @intrinsic
    def select(typing, condition, a, b):
        """a or b without a branch."""
        kind = typing.unify_types(a, b)

        def generate(context, builder, signature, args):
            return builder.select(args[0], args[1], args[2])

        return kind(numba.types.boolean, kind, kind), generate

    return select


def scaled(intrinsic: Any) -> Any:
    """An instruction: x 2^n; None without AVX-512, which has a vector instruction for it."""
    from llvmlite import binding, ir

    if not binding.get_host_cpu_features().get("avx512f"):
        return None

    @intrinsic
    def scaled(typing, x, n):
        def generate(context, builder, signature, args):
            kind, number = args[0].type, ir.IntType(32)
            name = f"llvm.ldexp.{'f32' if str(kind) == 'float' else 'f64'}.i32"
            f = builder.module.globals.get(name) or ir.Function(
                builder.module, ir.FunctionType(kind, [kind, number]), name=name
            )
            return builder.call(f, [args[0], args[1] if args[1].type == number else builder.trunc(args[1], number)])

        return x(x, n), generate

    return scaled


def reordered(intrinsic: Any, instruction: str) -> Any:
    @intrinsic
    def step(typing, a, b):
        """a + b in a sum, or a b in a product, that may be reordered, so that LLVM can vectorize it."""

        def generate(context, builder, signature, args):
            step_of = getattr(builder, instruction)
            return step_of(args[0], args[1], flags=("reassoc", "nsz", "contract"))

        return a(a, a), generate

    return step


def extreme(intrinsic: Any, name: str) -> Any:
    @intrinsic
    def extreme(typing, a, b):
        """The maximum or minimum of a and b; nan if either is nan. An LLVM intrinsic, so that LLVM vectorizes
        reductions."""

        def generate(context, builder, signature, args):
            from llvmlite import ir

            kind = args[0].type
            full = f"llvm.{name}.{'f32' if str(kind) == 'float' else 'f64'}"
            f = builder.module.globals.get(full) or ir.Function(
                builder.module, ir.FunctionType(kind, [kind, kind]), name=full
            )
            return builder.call(f, args)

        return a(a, a), generate

    return extreme


def restrict(numba: Any, intrinsic: Any) -> Any:
    @intrinsic
    def restrict(typing):
        """Promise that the arrays of this function do not overlap.

        LLVM checks only a few pairs of pointers at run time, and does not vectorize loops over more arrays. Field 4 of
        an array's arguments is its data pointer. The function is also not inlined, so that it rounds in the same way
        for every caller.
        """

        def generate(context, builder, signature, args):
            builder.function.attributes.add("noinline")
            for a in builder.function.args:
                if a.name.endswith(".4"):
                    a.add_attribute("noalias")
            return context.get_dummy_value()

        return numba.types.void(), generate

    return restrict


def shaped(numba: Any, intrinsic: Any) -> Any:
    @intrinsic
    def shaped(typing, x, shape):
        """A C-contiguous array viewed with another shape."""
        if x.layout != "C":
            raise numba.TypingError("this array is not contiguous")
        kind = numba.types.Array(x.dtype, len(shape), "C")

        def generate(context, builder, signature, args):
            from numba.core import cgutils
            from numba.np.arrayobj import make_array, populate_array

            given, made = make_array(x)(context, builder, args[0]), make_array(kind)(context, builder)
            sizes = cgutils.unpack_tuple(builder, args[1]) if len(shape) else []
            strides = [given.itemsize]
            for n in reversed(sizes[1:]):
                strides.insert(0, builder.mul(strides[0], n))
            populate_array(made, given.data, sizes, strides[len(strides) - len(sizes) :], given.itemsize, None)
            return made._getvalue()

        return kind(x, shape), generate

    return shaped


def wide(numba: Any, intrinsic: Any) -> Any:
    @intrinsic
    def wide(typing):
        """Use the processor's full vector width, in a function with long loops.

        On many processors with AVX-512, LLVM uses half of the width, which suits short loops. llvmlite takes this
        attribute as raw text.
        """

        def generate(context, builder, signature, args):
            set.add(builder.function.attributes, '"prefer-vector-width"="512"')
            return context.get_dummy_value()

        return numba.types.void(), generate

    return wide
