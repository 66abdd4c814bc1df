"""Numba, imported at the first compilation, and LLVM instructions that Python code cannot express."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
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


def instruction(intrinsic: Any, types_of: Callable) -> Callable[[Callable], Any]:
    """The decorator of `write(context, builder, kinds, args)`, which writes an instruction.

    `types_of(*types of the arguments)`: the instruction's Numba signature. `write` returns the result, or None.
    """
    own = inspect.Parameter("typing", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = [own, *inspect.signature(types_of).parameters.values()]

    def decorate(write: Callable) -> Any:
        def generate(context, builder, signature, args):
            result = write(context, builder, signature.args, args)
            return context.get_dummy_value() if result is None else result

        def typed(typing, *given):
            return types_of(*given), generate

        typed.__name__ = write.__name__
        typed.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return intrinsic(typed)

    return decorate


def call_llvm(builder: Any, name: str, result: Any, args: Any, **how: Any) -> Any:
    """A call of an LLVM intrinsic; `result`: the type of its result."""
    from llvmlite import ir

    function = builder.module.globals.get(name) or ir.Function(
        builder.module, ir.FunctionType(result, [a.type for a in args]), name=name
    )
    return builder.call(function, args, **how)


def cast_bits(intrinsic: Any, frm: Any, to: Any) -> Any:
    """An instruction: the bits of type `frm` as type `to`."""

    @instruction(intrinsic, lambda x: to(frm))
    def bits(context, builder, kinds, args):
        return builder.bitcast(args[0], context.get_value_type(to))

    return bits


@cache
def knows_halves() -> bool:
    """True if this processor has float16 instructions. Without them, LLVM would call functions that are not linked."""
    from llvmlite import binding

    return bool(binding.get_host_cpu_features().get("f16c")) or machine() in ("aarch64", "arm64")


def from_half(numba: Any, intrinsic: Any) -> Any:
    """An instruction: float16 bits -> float32. Only if `knows_halves()`."""
    from llvmlite import ir

    @instruction(intrinsic, lambda x: numba.types.float32(numba.types.int16))
    def from_half(context, builder, kinds, args):
        return builder.fpext(builder.bitcast(args[0], ir.HalfType()), ir.FloatType())

    return from_half


def to_half(numba: Any, intrinsic: Any) -> Any:
    """An instruction: float32 -> bits of the nearest float16. Only if `knows_halves()`."""
    from llvmlite import ir

    @instruction(intrinsic, lambda x: numba.types.int16(numba.types.float32))
    def to_half(context, builder, kinds, args):
        return builder.bitcast(builder.fptrunc(args[0], ir.HalfType()), ir.IntType(16))

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


def letters(kind: Any) -> str:
    """LLVM's suffix for a floating type in the names of intrinsics."""
    return "f32" if str(kind) == "float" else "f64"


def scaled(intrinsic: Any) -> Any:
    """An instruction: x 2^n; None without AVX-512, which has a vector instruction for it."""
    from llvmlite import binding, ir

    if not binding.get_host_cpu_features().get("avx512f"):
        return None

    @instruction(intrinsic, lambda x, n: x(x, n))
    def scaled(context, builder, kinds, args):
        (x, n), number = args, ir.IntType(32)
        n = n if n.type == number else builder.trunc(n, number)
        suffix = letters(x.type)  # not inside the f-string: exports replace names in the text
        return call_llvm(builder, f"llvm.ldexp.{suffix}.i32", x.type, [x, n])

    return scaled


def reordered(intrinsic: Any, name: str) -> Any:
    """An instruction: a step of a sum (a + b) or product (a b) that LLVM may reorder, and so vectorize."""

    @instruction(intrinsic, lambda a, b: a(a, a))
    def step(context, builder, kinds, args):
        return getattr(builder, name)(*args, flags=("reassoc", "nsz", "contract"))

    return step


def extreme(intrinsic: Any, name: str) -> Any:
    """An instruction: the maximum or minimum of a and b, nan if either is nan. LLVM vectorizes its reductions."""

    @instruction(intrinsic, lambda a, b: a(a, a))
    def extreme(context, builder, kinds, args):
        kind, suffix = args[0].type, letters(args[0].type)
        return call_llvm(builder, f"llvm.{name}.{suffix}", kind, args)

    return extreme


def restrict(numba: Any, intrinsic: Any) -> Any:
    """An instruction: promise that the arrays of this function do not overlap.

    LLVM checks only a few pairs of pointers at run time, and does not vectorize loops over more arrays. The pointer
    "x.4" of an array x is its data; the size of the last dimension of a 5-d array, "x.5.4", is an integer. The function
    is also not inlined, so that it rounds in the same way for every caller."""

    @instruction(intrinsic, lambda: numba.types.void())
    def restrict(context, builder, kinds, args):
        from llvmlite.ir import PointerType

        builder.function.attributes.add("noinline")
        for a in builder.function.args:
            if a.name.endswith(".4") and isinstance(a.type, PointerType):
                a.add_attribute("noalias")

    return restrict


def shaped(numba: Any, intrinsic: Any) -> Any:
    """An instruction: a C-contiguous array viewed with another shape."""

    def viewed(x, shape):
        if x.layout != "C":
            raise numba.TypingError("this array is not contiguous")
        return numba.types.Array(x.dtype, len(shape), "C")

    @instruction(intrinsic, lambda x, shape: viewed(x, shape)(x, shape))
    def shaped(context, builder, kinds, args):
        from numba.core import cgutils
        from numba.np.arrayobj import make_array, populate_array

        given = make_array(kinds[0])(context, builder, args[0])
        made = make_array(viewed(*kinds))(context, builder)
        sizes = cgutils.unpack_tuple(builder, args[1]) if len(kinds[1]) else []
        strides = [given.itemsize]
        for n in reversed(sizes[1:]):
            strides.insert(0, builder.mul(strides[0], n))
        populate_array(made, given.data, sizes, strides[len(strides) - len(sizes) :], given.itemsize, None)
        return made._getvalue()

    return shaped


def wide(numba: Any, intrinsic: Any) -> Any:
    """An instruction: use the processor's full vector width, in a function with long loops.

    On many processors with AVX-512, LLVM uses half of the width, which suits short loops. llvmlite takes this attribute
    as raw text.
    """

    @instruction(intrinsic, lambda: numba.types.void())
    def wide(context, builder, kinds, args):
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')

    return wide
