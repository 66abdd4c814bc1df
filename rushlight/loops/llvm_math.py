"""The scalars world (loops/scalar_math.py) on values of LLVM IR: exp, tanh, erf and so on as instructions.

The formulas are scalar_math's own; here are the constants and bit tricks of a real type for values of loops/llvm.py."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from rushlight.loops import llvm, scalar_math
from rushlight.loops.llvm import DOUBLE, FLOAT, INT32, INT64, Value, as_bits, call_intrinsic, converted, select


class Kind:
    """A number type as a function: of a Value, its conversion; of a Python number, NumPy's number. Also a dtype."""

    def __init__(self, dtype: Any, kind: Any):
        self.dtype, self.kind = np.dtype(dtype), kind

    def __call__(self, x: Any) -> Any:
        return converted(x, self.kind) if isinstance(x, Value) else self.dtype.type(x)


F32, F64, I32, I64 = Kind("f4", FLOAT), Kind("f8", DOUBLE), Kind("i4", INT32), Kind("i8", INT64)


class Libm:
    """Functions of the C library: a vector's numbers are passed one by one."""

    def __getattr__(self, name: str) -> Callable[..., Value]:
        return lambda *args: called(name, *args)


def called(name: str, *args: Value) -> Value:
    first = args[0]
    if first.f.module.target.triple.startswith("wasm"):
        raise NotImplementedError(f"{name} needs the C library, which {first.f.module.target.triple} lacks")
    name += "f" * (first.kind == FLOAT)
    lanes = max([a.lanes for a in args])
    if not lanes:
        return first.f.foreign(name, first.kind, args)
    rows = [[llvm.lane(a, k) if a.lanes else a for a in args] for k in range(lanes)]
    return llvm.stacked([first.f.foreign(name, first.kind, row) for row in rows])


def intrinsic(name: str) -> Callable[..., Value]:
    return lambda *args: call_intrinsic(name, *args)


def times_power(k: SimpleNamespace) -> Callable[[Value, Value], Value]:
    """(p, n) -> p 2^n, right for denormals and at the upper end: one instruction of AVX-512, otherwise two products."""

    def power(n: Value) -> Value:
        return k.unbits((n + k.bias) << k.digits)

    def scaled(p: Value, n: Value) -> Value:
        if "+avx512f" in p.f.module.target.features and p.lanes * p.kind.bytes in (0, 64):
            letters = f"v{p.lanes}" * bool(p.lanes)
            name = f"llvm.ldexp.{letters}{p.kind.letters}.{letters}i32"
            return p.f.foreign(name, p.kind, [p, converted(n, INT32)], p.lanes)
        half = n >> 1
        return p * power(half) * power(n - half)

    return scaled


@cache
def kind(dtype: str) -> SimpleNamespace:
    """Constants and bit tricks of "float32" or "float64"."""
    wide = dtype == "float64"
    k = SimpleNamespace(real=F64 if wide else F32, int=I64 if wide else I32, select=select)
    k.digits, k.bias, k.libm = (52, 1023, Libm()) if wide else (23, 127, Libm())
    real, whole = k.real.dtype.type, k.int.dtype.type
    k.bits = lambda x: as_bits(x, k.int.kind) if isinstance(x, Value) else real(x).view(whole)
    k.unbits = lambda x: as_bits(x, k.real.kind) if isinstance(x, Value) else whole(x).view(real)
    k.scaled = times_power(k)
    k.magic = real(1.5 * 2.0**k.digits)
    k.ln2_hi = real(0.693145751953125 if wide else 0.693359375)
    k.ln2_lo = real(1.42860682030941723212e-06 if wide else -2.12194440054690583e-4)
    k.signed = lambda a, x: call_intrinsic("copysign", a if isinstance(a, Value) else x * 0 + a, x)
    k.tiny, k.inf, k.nan = np.finfo(real).tiny, real(np.inf), real(np.nan)
    k.f32, k.f64, k.i32 = F32, F64, I32
    k.floor, k.ceil, k.trunc, k.rint, k.sqrt = map(intrinsic, ("floor", "ceil", "trunc", "rint", "sqrt"))
    k.double = k if wide else kind("float64")
    return k


@cache
def functions(dtype: str) -> dict[str, Callable]:
    """Name -> function of the scalars world, for values of "float32" or "float64"."""
    return scalar_math.functions(kind(dtype))
