"""Vector registers in compiled loops, for loops in which LLVM does not keep sums in registers by itself.

Registers (they may be local variables only): `load(x, i)` reads a register of float32 from a flat array, from index i
on; `store(x, i, v)` writes a register; `spread(x, i)` repeats x[i]; `none()` is zeros; `fma(a, b, c)` is a b + c;
`add`, `sub`, `mul` and `bigger(a, b)` (maximum) work lane by lane; `along(v)` is the sum of all lanes, `most(v)` the
largest; `evens(a, b)` has every other number of a, then of b shifted by one; `weight(v)` is exp(v) for v < 88, and 0
for v < -80, which avoids slow denormal numbers.

Partial registers: `load_first(x, i, n)` reads n numbers, and zeros for the rest. `store_first(x, i, v, n)` writes the
first n numbers of v; `store_evens(x, i, v, n)` writes them to every other index from i on. `upto(v, n)` is v with -inf
from number n on.

Arrays: `transpose(x, i, p, y, j, q)` transposes a square of numbers, with rows p apart in x and q apart in y. `get`,
`put` and `copy(x, i, y, j, n)`, x[i:i+n] = y[j:j+n], work for numbers of any type. `part(x, i)` is the array from index
i on. `ahead(x, i)` prefetches the cache line of x[i]. Indices are not checked."""

from __future__ import annotations

import math
from typing import Any

from rushlight.loops.llvm import (
    BOOL,
    FLOAT,
    INT32,
    INT64,
    Function,
    Value,
    as_bits,
    call_intrinsic,
    converted,
    lane,
    machine,
    mixed,
    picked,
    repeated,
    select,
    total,
)
from rushlight.loops.loop_code import Writer
from rushlight.loops.loop_kinds import Array
from rushlight.loops.minimax_polynomials import EXP32


def lanes() -> int:
    return machine()[0]


def instructions() -> dict[str, Any]:
    """{name: function of the writer and the arguments}."""
    named = (get, put, copy, part, ahead, load, store, spread, evens, transpose, none, fma, along, add, sub, mul)
    return {f.__name__: f for f in (*named, bigger, most, weight, load_first, store_first, store_evens, upto)}


def address(w: Writer, x: Array, i: Any) -> Value:
    return w.element(x.pointer, i, x.kind)


def get(w: Writer, x: Array, i: Any) -> Value:
    return w.f.load(address(w, x, i), 0, x.kind)


def put(w: Writer, x: Array, i: Any, v: Any) -> None:
    w.f.store(w.of_kind(v, x.kind), address(w, x, i), 0)


def copy(w: Writer, x: Array, i: Any, y: Array, j: Any, n: Any) -> None:
    count = w.of_kind(n, INT64) * x.kind.bytes
    no = Value(w.f, "false", BOOL)
    w.f.foreign("llvm.memcpy.p0.p0.i64", None, [address(w, x, i), address(w, y, j), count, no])


def part(w: Writer, x: Array, i: Any) -> Array:
    return Array(address(w, x, i), x.kind, (w.f.whole(1),))


def ahead(w: Writer, x: Array, i: Any) -> None:
    fetch(w.f, address(w, x, i))


def fetch(f: Function, where: Value, writing: bool = False) -> None:
    """Prefetch the cache line at this address, for reading or writing."""
    # (write, locality 3: into L1, data cache)
    how = [Value(f, str(n), INT32) for n in (int(writing), 3, 1)]
    f.foreign("llvm.prefetch.p0", None, [where, *how])


def load(w: Writer, x: Array, i: Any) -> Value:
    return w.f.load(address(w, x, i), 0, FLOAT, lanes())


def store(w: Writer, x: Array, i: Any, v: Value) -> None:
    w.f.store(v, address(w, x, i), 0)


def spread(w: Writer, x: Array, i: Any) -> Value:
    return repeated(w.f.load(address(w, x, i), 0, FLOAT), lanes())


def evens(w: Writer, a: Value, b: Value) -> Value:
    return mixed(a, b, [*range(0, lanes(), 2), *range(lanes() + 1, 2 * lanes(), 2)])


def transpose(w: Writer, x: Array, i: Any, p: Any, y: Array, j: Any, q: Any) -> None:
    n, f = lanes(), w.f

    def row(array: Array, first: Any, apart: Any, r: int) -> Value:
        return address(w, array, w.of_kind(first, INT64) + w.of_kind(apart, INT64) * r)

    rows = [f.load(row(x, i, p, r), 0, FLOAT, n) for r in range(n)]
    for half in [1 << k for k in range(n.bit_length() - 1)]:  # squares of 2, 4... change their corners
        upper = [c + n - half if c & half else c for c in range(n)]
        lower = [c + n if c & half else c + half for c in range(n)]
        for r in [r for r in range(n) if not r & half]:
            pair = rows[r], rows[r + half]
            rows[r], rows[r + half] = [mixed(*pair, chosen) for chosen in (upper, lower)]
    for r, v in enumerate(rows):
        f.store(v, row(y, j, q, r), 0)


def none(w: Writer) -> Value:
    return w.f.number(FLOAT, 0.0, lanes())


def fma(w: Writer, a: Value, b: Value, c: Value) -> Value:
    return call_intrinsic("fmuladd", a, b, c)


def along(w: Writer, v: Value) -> Value:
    return total(v)


def add(w: Writer, a: Value, b: Value) -> Value:
    return a + b


def sub(w: Writer, a: Value, b: Value) -> Value:
    return a - b


def mul(w: Writer, a: Value, b: Value) -> Value:
    return a * b


def bigger(w: Writer, a: Value, b: Value) -> Value:
    return larger(a, b)


def larger(a: Value, b: Value) -> Value:
    return select(a > b, a, b)


def most(w: Writer, v: Value) -> Value:
    for half in [1 << n for n in reversed(range(v.lanes.bit_length() - 1))]:
        v = larger(v, picked(v, [c ^ half for c in range(v.lanes)]))
    return lane(v, 0)


def weight(w: Writer, v: Value) -> Value:
    """2^n exp(r), n = round(v / ln 2), as in loops/scalar_math.py; n is computed by shifting the bits of
    v / ln 2 + 1.5 2^23."""

    def plus_product(a: Any, b: Any, c: Any) -> Value:
        return call_intrinsic(
            "fmuladd", *[x if isinstance(x, Value) else w.f.number(FLOAT, x, v.lanes) for x in (a, b, c)]
        )

    t = plus_product(v, 1 / math.log(2), 1.5 * 2.0**23)
    n = t - 1.5 * 2.0**23
    r = plus_product(n, 2.12194440054690583e-4, plus_product(n, -0.693359375, v))
    p: Any = EXP32[-1]
    for c in reversed(EXP32[:-1]):
        p = plus_product(p, r, c)
    p = plus_product(r * r, p, r) + 1
    power = as_bits((as_bits(t, INT32) << 23) + (127 << 23), FLOAT)
    return select(v < -80, w.f.number(FLOAT, 0.0, v.lanes), p * power)


def first_lanes(f: Function, count: Value, n: int) -> Value:
    """The mask of the first `count` of n lanes."""
    places = Value(f, f"<{', '.join([f'i32 {k}' for k in range(n)])}>", INT32, n)
    return places < repeated(converted(count, INT32), n)


def masked_load(f: Function, where: Value, mask: Value) -> Value:
    zeros = Value(f, "zeroinitializer", FLOAT, mask.lanes)
    return f.foreign(
        f"llvm.masked.load.v{mask.lanes}f32.p0", FLOAT, [where, Value(f, "4", INT32), mask, zeros], mask.lanes
    )


def masked_store(f: Function, v: Value, where: Value, mask: Value) -> None:
    f.foreign(f"llvm.masked.store.v{mask.lanes}f32.p0", None, [v, where, Value(f, "4", INT32), mask])


def load_first(w: Writer, x: Array, i: Any, count: Any) -> Value:
    return masked_load(w.f, address(w, x, i), first_lanes(w.f, w.of_kind(count, INT64), lanes()))


def store_first(w: Writer, x: Array, i: Any, v: Value, count: Any) -> None:
    masked_store(w.f, v, address(w, x, i), first_lanes(w.f, w.of_kind(count, INT64), lanes()))


def store_evens(w: Writer, x: Array, i: Any, v: Value, count: Any) -> None:
    n, f = lanes(), w.f
    even = Value(f, f"<{', '.join(['i1 ' + ('true' if c % 2 == 0 else 'false') for c in range(n)])}>", BOOL, n)
    mask = first_lanes(f, w.of_kind(count, INT64), n)
    # each number of half a register is duplicated, and every other copy is written
    for half in (0, n // 2):
        twice = [half + c // 2 for c in range(n)]
        at = address(w, x, w.of_kind(i, INT64) + 2 * half)
        masked_store(f, picked(v, twice), at, picked(mask, twice) & even)


def upto(w: Writer, v: Value, count: Any) -> Value:
    known = first_lanes(w.f, w.of_kind(count, INT64), v.lanes)
    return select(known, v, w.f.number(FLOAT, -math.inf, v.lanes))
