"""Instructions of a loop that is being written (loops/loop_code.py): operations of numbers, elements of arrays."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from typing import Any

from rushlight.loops.llvm import (
    BOOL,
    DOUBLE,
    INT64,
    POINTER,
    REALS,
    UINT64,
    Function,
    Type,
    Value,
    call_intrinsic,
    converted,
    literal,
    select,
    spelled,
)  # fmt: skip
from rushlight.loops.llvm_math import called
from rushlight.loops.loop_kinds import Array, NotALoop, common, kind_of

BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
    ast.BitXor: operator.xor, ast.LShift: operator.lshift, ast.RShift: operator.rshift, ast.Pow: operator.pow,
}  # fmt: skip
BITWISE = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift)
PYTHON = {"<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge, "==": operator.eq,
    "!=": operator.ne}  # fmt: skip


class Arithmetic:
    """Writes instructions into the function `f`."""

    f: Function

    # -- numbers --

    def slot(self, kind: Type, lanes: int) -> Value:
        """Memory of a variable; LLVM keeps it in a register."""
        with self.f.at_entry():
            return self.f.put(f"alloca {spelled(kind, lanes)}", POINTER)

    def save(self, x: Value, slot: Value) -> None:
        self.f.lines.append(f"store {x.type} {x.v}, ptr {slot.v}")

    def load(self, slot: Value, kind: Type, lanes: int) -> Value:
        return self.f.put(f"load {spelled(kind, lanes)}, ptr {slot.v}", kind, lanes)

    def number(self, n: Any) -> Value:
        """A Python number as a value."""
        kind = kind_of(n)
        return Value(self.f, literal(kind, n), kind)

    def of_kind(self, x: Any, kind: Type) -> Value:
        """A number in another type."""
        if not isinstance(x, Value):
            if kind in REALS or not isinstance(x, float):
                return Value(self.f, literal(kind, x), kind)
            x = self.number(x)
        if x.lanes:
            return x
        if kind == BOOL and x.kind != BOOL:
            return x != 0
        return converted(x, kind)

    def truth(self, x: Any) -> Value:
        return self.of_kind(x, BOOL)

    def binary(self, op: type, a: Any, b: Any) -> Any:
        """An operation on two numbers, in the type of both."""
        if op not in BINARY:
            raise NotALoop(f"a loop may not contain {op.__name__}")
        if not isinstance(a, Value) and not isinstance(b, Value):
            return BINARY[op](a, b)
        if op is ast.Pow:
            return self.power(a, b)
        kind = common(a, b)
        if kind in REALS and op in BITWISE:
            raise NotALoop(f"{op.__name__} of floats")
        if kind == BOOL and op not in (ast.BitAnd, ast.BitOr, ast.BitXor):
            kind = INT64
        if op is ast.Div and kind not in REALS:
            kind = DOUBLE
        if op in (ast.LShift, ast.RShift) and isinstance(a, Value):  # the number of bits may be signed
            kind = UINT64 if a.kind.unsigned else INT64
        x, y = self.of_kind(a, kind), self.of_kind(b, kind)
        if op in (ast.FloorDiv, ast.Mod):
            return self.divided_reals(op, x, y) if kind in REALS else self.divided(op, x, y)
        return BINARY[op](x, y)

    def power(self, a: Any, b: Any) -> Value:
        """a ** b: products for an integer and a constant exponent, else the C library's function."""
        kind = common(a, b)
        if kind not in REALS and type(b) is int and 0 <= b < 64:
            x, result = self.of_kind(a, UINT64 if a.kind.unsigned else INT64), None
            for _ in range(b):
                result = x if result is None else result * x
            return self.of_kind(1, x.kind) if result is None else result
        if kind not in REALS:
            raise NotALoop("a power of integers with a variable or negative exponent")

        x = self.of_kind(a, kind)
        return x * x if type(b) in (int, float) and b == 2 else called("pow", x, self.of_kind(b, kind))

    def divided_reals(self, op: type, x: Value, y: Value) -> Value:
        """The quotient of floats rounded down, or the rest with the sign of y, as CPython's float_divmod."""

        rest = self.f.put(f"frem {x.type} {x.v}, {y.v}", x.kind)
        apart = (rest != 0.0) & ((rest < 0.0) != (y < 0.0))
        if op is ast.Mod:
            return select(rest == 0.0, call_intrinsic("copysign", rest, y), select(apart, rest + y, rest))
        quotient = (x - rest) / y
        quotient = select(apart, quotient - 1.0, quotient)
        down = call_intrinsic("floor", quotient)
        down = select(quotient - down > 0.5, down + 1.0, down)
        return select(quotient == 0.0, call_intrinsic("copysign", quotient, x / y), down)

    def divided(self, op: type, x: Value, y: Value) -> Value:
        """The quotient of integers rounded down, or the rest with the sign of y; 0 if y is 0, as NumPy's."""
        known = not y.v.startswith("%") and int(y.v) not in (0, -1)  # processors trap at 0, and the quotient by -1
        if x.kind.unsigned:
            safe = y if known else select(y == 0, 1, y)
            result = x // safe if op is ast.FloorDiv else x % safe
            return result if known else select(y == 0, 0, result)
        safe = y if known else select((y == 0) | (y == -1), 1, y)
        quotient = self.f.put(f"sdiv i64 {x.v}, {safe.v}", INT64)
        rest = self.f.put(f"srem i64 {x.v}, {safe.v}", INT64)
        apart = (rest != 0) & ((rest ^ safe) < 0)
        if op is ast.Mod:
            return select(apart, rest + y, rest)
        quotient = quotient - converted(apart, INT64)
        return quotient if known else select(y == 0, 0, select(y == -1, -x, quotient))

    def compared(self, sign: str, a: Any, b: Any) -> Any:
        if not isinstance(a, Value) and not isinstance(b, Value):
            return PYTHON[sign](a, b)
        kind = common(a, b)
        kind = INT64 if kind == BOOL else kind
        x, y = self.of_kind(a, kind), self.of_kind(b, kind)
        if kind == INT64 and UINT64 in [n.kind for n in (a, b) if isinstance(n, Value)]:
            left = isinstance(b, Value) and b.kind == UINT64  # whether a is the signed number
            plain = converted(x, UINT64).compare(sign, converted(y, UINT64))
            below_zero = self.truth(PYTHON[sign](-1, 0) if left else PYTHON[sign](0, -1))
            return select((x if left else y) < 0, below_zero, plain)
        return x.compare(sign, y)

    def both(self, a: Any, b: Any) -> Any:
        if not isinstance(a, Value):
            return b if a else False
        return a & self.of_kind(b, BOOL)

    def product(self, sizes: Sequence[Value]) -> Value:
        total = self.f.whole(1)
        for n in sizes:
            total = total * n
        return total

    def tabled(self, x: tuple, k: Value) -> Value:
        """A number of a tuple of constants, at a place that is a variable."""
        if any([isinstance(n, (Value, Array, tuple)) for n in x]):
            raise NotALoop("the place in a tuple is a variable")
        kind = DOUBLE if DOUBLE in [kind_of(n) for n in x] else INT64
        table = f"[{len(x)} x {kind.name}] [{', '.join([f'{kind.name} {literal(kind, n)}' for n in x])}]"
        every = self.f.module.globals
        found = [line for line in every if line.endswith(f"constant {table}")]
        name = found[0].split()[0] if found else f"@{self.f.name}.table{len(every)}"
        if not found:
            every.append(f"{name} = private unnamed_addr constant {table}")
        place = self.place(k, self.f.whole(len(x)))
        return self.f.load(self.element(Value(self.f, name, POINTER), place, kind), 0, kind)

    def view(self, x: Array, places: list[Any]) -> Array:
        """Part of an array: slices without a step; the other dimensions in front are fixed."""
        if len(places) > len(x.sizes):
            raise NotALoop(f"{len(places)} places in an array of {len(x.sizes)} dimensions")
        starts, sizes = [], []
        for place, n in zip(places, x.sizes):
            if not isinstance(place, slice):
                starts.append(place)
                continue
            if place.step is not None:
                raise NotALoop("a slice with a step")
            low, high = (
                self.f.whole(default) if given is None else self.clamped(given, n)
                for given, default in ((place.start, 0), (place.stop, n))
            )
            starts.append(low)
            sizes.append(select(high > low, high - low, self.f.whole(0)))
        kept = [k for k, p in enumerate(places) if isinstance(p, slice)]
        ordered = kept == [*range(len(places) - len(kept), len(places))] and len(kept) < 2
        starts += [0] * (len(x.sizes) - len(places))
        pointer = self.address(x, starts)
        left = [*kept, *range(len(places), len(x.sizes))]
        every = (*sizes, *x.sizes[len(places) :])
        if x.steps is None and ordered:
            return Array(pointer, x.kind, every)
        steps = self.steps(x)
        return Array(pointer, x.kind, every, tuple([steps[d] for d in left]))

    def steps(self, x: Array) -> tuple[Value, ...]:
        """The steps of an array in bytes."""
        if x.steps is not None:
            return x.steps
        found = [self.f.whole(x.kind.bytes)]
        for n in reversed(x.sizes[1:]):
            found.insert(0, found[0] * n)
        return tuple(found)

    def clamped(self, i: Any, n: Value) -> Value:
        """The end of a slice within 0 to n; a negative one counts from the end."""
        i = self.of_kind(i, INT64)
        i = select(i < 0, i + n, i)
        i = select(i < 0, self.f.whole(0), i)
        return select(i < n, i, n)

    def place(self, i: Any, n: Value) -> Value:
        """A place in a dimension of size n: negative ones count from the end, except of unsigned integers."""
        if not isinstance(i, Value):
            if not isinstance(i, int):
                raise NotALoop(f"{i} is not a place in an array")
            return self.f.whole(int(i)) if i >= 0 else n + i
        if i.kind in REALS:
            raise NotALoop("a float is not a place in an array")
        if i.kind.unsigned or i.kind == BOOL:
            return converted(i, INT64)
        i = converted(i, INT64)
        return select(i < 0, i + n, i)

    def address(self, x: Array, places: Sequence[Any]) -> Value:
        """The address of an element."""
        f = self.f
        if len(places) != len(x.sizes):
            raise NotALoop(f"{len(places)} places in an array of {len(x.sizes)} dimensions")
        found = [self.place(i, n) for i, n in zip(places, x.sizes)]
        if x.steps is None:
            if not found:
                return x.pointer
            total = found[0]
            for i, n in zip(found[1:], x.sizes[1:]):
                total = f.put(f"mul nsw i64 {total.v}, {n.v}", INT64)
                total = f.put(f"add nsw i64 {total.v}, {i.v}", INT64)
            return self.element(x.pointer, total, x.kind)
        pointer = x.pointer
        for i, step in zip(found, x.steps):
            by = f.put(f"mul nsw i64 {i.v}, {step.v}", INT64)
            pointer = f.put(f"getelementptr inbounds i8, ptr {pointer.v}, i64 {by.v}", POINTER)
        return pointer

    def element(self, pointer: Value, i: Any, kind: Type) -> Value:
        """The address of the i-th number from an address on."""
        stored = "i8" if kind == BOOL else kind.name
        return self.f.put(f"getelementptr inbounds {stored}, ptr {pointer.v}, i64 {self.of_kind(i, INT64).v}", POINTER)
