"""The names that the texts of loops may use (loops/loop_code.py): each is a number, or a function of the writer and its
arguments.

`f32`, `i64`... convert a number. exp, tanh, where... are the functions of loops/scalar_math.py for float32, and exp64,
tanh64... for float64; they are plain arithmetic without branches, so LLVM vectorizes loops that call them. `plus` and
`times` are steps of sums and products that LLVM may reorder; `largest` and `smallest` are nan if either number is.

`restrict()`: the arrays of this function do not overlap; without this promise, LLVM compares a few pairs of addresses
at run time, and does not vectorize loops over more arrays. The function is not inlined, so that it rounds in the same
way for every caller. `wide()`: use the processor's full vector width, in a function with long loops.
`shaped(x, n)`: an array in C order with another shape. `empty(sizes, f32)`: memory that is freed when the loop returns.
`fused(a, b, c)`: a b + c with one rounding. `word_of`, `real_of`: the bits of a float32 as int32, and the float32 with
these bits.

`math` and `np` have a few of their functions and types, for functions that also run as plain Python."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from math import inf, nan, pi, prod
from platform import machine
from types import SimpleNamespace
from typing import Any

from rushlight.loops import llvm
from rushlight.loops.llvm import (
    BOOL,
    DOUBLE,
    FLOAT,
    INT16,
    INT32,
    INT64,
    POINTER,
    REALS,
    UINT32,
    UINT64,
    Type,
    Value,
    as_bits,
    call_intrinsic,
    converted,
    select,
)
from rushlight.loops.loop_code import Writer
from rushlight.loops.loop_kinds import Array, NotALoop, common

SAME = "where maximum minimum fmax fmin select"  # their operands have one type, which may be any
HALF = Type("half", 2, "f16")


@cache
def scope() -> dict[str, Any]:
    """{name: function or number}."""
    from rushlight.loops.llvm_math import functions
    from rushlight.loops.matmul_tiles import tiles
    from rushlight.loops.simd import instructions

    names: dict[str, Any] = {"inf": inf, "nan": nan, "min": least, "max": most, "empty": empty}
    names |= {name: Conversion(kind) for name, kind in CONVERSIONS.items()}
    for dtype, suffix, kind in (("float32", "", FLOAT), ("float64", "64", DOUBLE)):
        for name, f in functions(dtype).items():
            names[name + suffix] = same(f) if name in SAME.split() else scalar(f, kind)
    names |= {"select": same(select), "restrict": restrict, "wide": wide, "shaped": shaped, "abs": absolute}
    names |= {"plus": reordered("fadd", "add"), "times": reordered("fmul", "mul")}
    names |= {"largest": extreme("maximum"), "smallest": extreme("minimum")}
    names |= {"fused": fused, "word_of": word_of, "real_of": real_of, "len": length}
    names |= {"math": SimpleNamespace(**in_math()), "np": SimpleNamespace(**in_numpy())}
    names |= {"from_half": from_half, "to_half": to_half, "from_bfloat": from_bfloat, "to_bfloat": to_bfloat}
    return names | instructions() | tiles()


CONVERSIONS = {"f32": FLOAT, "f64": DOUBLE, "i64": INT64, "u64": UINT64, "u32": UINT32, "b1": BOOL, "i32": INT32,
    "float": DOUBLE, "int": INT64, "bool": BOOL}  # fmt: skip


class Conversion:
    """A type as a function."""

    def __init__(self, kind: Type):
        self.kind = kind

    def __call__(self, w: Writer, x: Any = 0) -> Value:
        return w.of_kind(x, self.kind)


def same(f: Callable) -> Callable:
    """A function whose operands have one type. The condition of `where` and `select` is a bool."""

    def call(w: Writer, *args: Any) -> Value:
        if len(args) == 3:
            condition = w.truth(args[0])
            return f(condition, *lined_up(w, *args[1:]))
        return f(*lined_up(w, *args))

    return call


def lined_up(w: Writer, a: Any, b: Any) -> tuple[Value, Value]:
    if isinstance(a, Value) and a.lanes or isinstance(b, Value) and b.lanes:
        return a, b
    kind = common(a, b)
    return w.of_kind(a, kind), w.of_kind(b, kind)


def scalar(f: Callable, kind: Type) -> Callable:
    """A function of numbers of one type."""
    return lambda w, *args: f(*[w.of_kind(a, kind) for a in args])


def least(w: Writer, *args: Any) -> Any:
    return chosen(w, "<", args)


def most(w: Writer, *args: Any) -> Any:
    return chosen(w, ">", args)


def chosen(w: Writer, sign: str, args: tuple) -> Any:
    """Python's min or max."""
    best = args[0]
    for a in args[1:]:
        if not isinstance(a, Value) and not isinstance(best, Value):
            best = min(a, best) if sign == "<" else max(a, best)
        else:
            x, y = lined_up(w, a, best)
            best = select(x.compare(sign, y), x, y)
    return best


def absolute(w: Writer, x: Any) -> Any:
    return abs(x)


def reordered(real: str, whole: str) -> Callable:
    def step(w: Writer, a: Any, b: Any) -> Value:
        """A step of a sum or product in the type of a."""
        a = w.of_kind(a, w.number(a).kind) if not isinstance(a, Value) else a
        b = w.of_kind(b, a.kind)
        name = f"{real} reassoc nsz contract" if a.kind in REALS else whole
        return w.f.put(f"{name} {a.type} {a.v}, {b.v}", a.kind, a.lanes)

    return step


def extreme(name: str) -> Callable:
    return lambda w, a, b: call_intrinsic(name, a, w.of_kind(b, a.kind))


def restrict(w: Writer) -> None:
    w.f.apart = True
    w.f.attributes.append("noinline")


def wide(w: Writer) -> None:
    w.f.attributes.append('"prefer-vector-width"="512"')


def shaped(w: Writer, x: Array, sizes: tuple) -> Array:
    if x.steps is not None:
        raise NotALoop("this array is not contiguous")
    return Array(x.pointer, x.kind, tuple([w.of_kind(n, INT64) for n in sizes]))


def empty(w: Writer, sizes: Any, kind: Conversion) -> Array:
    sizes = sizes if isinstance(sizes, tuple) else (sizes,)
    if all(isinstance(n, int) for n in sizes) and prod(sizes) * kind.kind.bytes <= 4096:
        return Array(w.f.room(max(prod(sizes), 1), kind.kind), kind.kind, tuple(map(w.f.whole, sizes)))
    sizes = tuple([w.of_kind(n, INT64) for n in sizes])
    with w.f.at_entry():
        slot = w.f.put("alloca ptr", POINTER)
        w.f.lines.append(f"store ptr null, ptr {slot.v}")
    w.rooms.append(slot)
    w.f.foreign("free", None, [w.f.put(f"load ptr, ptr {slot.v}", POINTER)])
    count = w.product(sizes) * kind.kind.bytes + 64
    made = w.f.foreign("malloc", POINTER, [count])
    w.f.lines.append(f"store ptr {made.v}, ptr {slot.v}")
    start = w.f.put(f"ptrtoint ptr {made.v} to i64", INT64)
    place = w.f.put(f"inttoptr i64 {((start + 63) & -64).v} to ptr", POINTER)
    return Array(place, kind.kind, sizes)


def length(w: Writer, x: Any) -> Any:
    """The size of an array's first dimension, or of a tuple."""
    return x.sizes[0] if isinstance(x, Array) else len(x)


def fused(w: Writer, a: Any, b: Any, c: Any) -> Value:
    kind = common(a, b) if isinstance(a, Value) or isinstance(b, Value) else c.kind
    return call_intrinsic("fma", *[w.of_kind(x, kind) for x in (a, b, c)])


def word_of(w: Writer, x: Any) -> Value:
    return as_bits(w.of_kind(x, FLOAT), INT32)


def real_of(w: Writer, x: Any) -> Value:
    return as_bits(w.of_kind(x, INT32), FLOAT)


def in_math() -> dict[str, Any]:
    """Functions of Python's module `math`, for float64: the C library's. `floor` and `ceil` are float64 here."""
    from rushlight.loops.llvm_math import called

    names: dict[str, Any] = {"inf": inf, "nan": nan, "pi": pi}
    for name in ("exp", "log", "log1p", "lgamma", "cos", "sin", "tan", "pow"):
        names[name] = scalar(partial(called, name), DOUBLE)
    for name in ("sqrt", "floor", "ceil"):
        names[name] = scalar(partial(call_intrinsic, name), DOUBLE)
    return names | {"isnan": lambda w, x: w.of_kind(x, DOUBLE) != w.of_kind(x, DOUBLE)}


def in_numpy() -> dict[str, Any]:
    """Types of NumPy, and `empty`."""
    kinds = {"float32": FLOAT, "float64": DOUBLE, "int32": INT32, "int64": INT64, "uint32": UINT32, "uint64": UINT64}
    return {"empty": empty} | {name: Conversion(kind) for name, kind in kinds.items()}


@cache
def knows_halves() -> bool:
    """True if this processor has float16 instructions. Without them, LLVM would call functions that are not linked."""
    return bool(llvm.binding().get_host_cpu_features().get("f16c")) or machine() in ("aarch64", "arm64")


def from_half(w: Writer, x: Value) -> Value:
    """float16 bits -> float32. Only if `knows_halves()`."""
    return w.f.put(f"fpext half {as_bits(w.of_kind(x, INT16), HALF).v} to float", FLOAT)


def to_half(w: Writer, x: Value) -> Value:
    """float32 -> the bits of the nearest float16. Only if `knows_halves()`."""
    half = w.f.put(f"fptrunc float {w.of_kind(x, FLOAT).v} to half", HALF)
    return as_bits(half, INT16)


def from_bfloat(w: Writer, x: Value) -> Value:
    """The float32 of a bfloat16 given by its bits, int16."""
    return as_bits(converted(x, INT32) << 16, FLOAT)


def to_bfloat(w: Writer, x: Value) -> Value:
    """The bits of the bfloat16 next to a float32, ties to even."""
    x = w.of_kind(x, FLOAT)
    bits = as_bits(x, INT32)
    upper = bits >> 16
    rounded = (bits + 0x7FFF + (upper & 1)) >> 16
    return converted(select(x != x, upper | 0x40, rounded), INT16)
