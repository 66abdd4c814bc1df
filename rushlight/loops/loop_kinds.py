"""The types in loops (loops/loop_code.py): numbers, arrays, tuples; which type an operation or a variable has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rushlight.loops.llvm import (
    BOOL,
    BYTE,
    DOUBLE,
    FLOAT,
    INT16,
    INT32,
    INT64,
    POINTER,
    REALS,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    Type,
    Value,
)  # fmt: skip

KINDS = {
    "f4": FLOAT, "f8": DOUBLE, "b1": BOOL, "i1": BYTE, "i2": INT16, "i4": INT32, "i8": INT64,
    "u1": UINT8, "u2": UINT16, "u4": UINT32, "u8": UINT64,
}  # fmt: skip
ERRORS = (IndexError, ValueError, OverflowError, ZeroDivisionError)  # that a loop may raise
ERROR = Type("i32", 4, "error")  # the result of a loop that raises: 0, or 1 + the place of the error in ERRORS
KINDS["error"] = ERROR
# A type of an argument: "f4", "i8"... of a number; (name, dimensions, whether in C order) of an array; the types of a
# tuple's elements after "tuple".
Kind = Any
NAMES = {kind: name for name, kind in KINDS.items()}


class NotALoop(Exception):
    """Raised for a text outside of the subset, with its line."""


@dataclass(eq=False)
class Array:
    """An array: the address of the first element; the type of the elements; the sizes; the steps in bytes, or None for
    C order."""

    pointer: Value
    kind: Type
    sizes: tuple[Value, ...]
    steps: tuple[Value, ...] | None = None


@dataclass
class Pack:
    """A variable that is a tuple or an array: the kind, and the names of the variables of its numbers."""

    kind: Kind
    names: list[str]


def flat_arguments(kinds: Sequence[Kind], name: str = "x") -> list[tuple[str, Type]]:
    """(name, type) of the numbers that pass arguments of these kinds: an array is an address, sizes, and steps if the
    array is not in C order."""
    found: list[tuple[str, Type]] = []
    for i, kind in enumerate(kinds):
        if isinstance(kind, str):
            found.append((f"{name}{i}", KINDS[kind]))
        elif kind[0] == "tuple":
            found += flat_arguments(kind[1:], f"{name}{i}_")
        else:
            found.append((f"{name}{i}", POINTER))
            found += [(f"{name}{i}_n{d}", INT64) for d in range(kind[1])]
            found += [(f"{name}{i}_s{d}", INT64) for d in range(0 if kind[2] else kind[1])]
    return found


def gathered(kinds: Sequence[Kind], numbers: Any) -> list[Any]:
    """The arguments as values: numbers, Arrays and tuples. `numbers`: an iterator over the numbers that pass them."""
    found: list[Any] = []
    for kind in kinds:
        if isinstance(kind, str):
            found.append(next(numbers))
        elif kind[0] == "tuple":
            found.append(tuple(gathered(kind[1:], numbers)))
        else:
            pointer = next(numbers)
            sizes = tuple([next(numbers) for _ in range(kind[1])])
            steps = None if kind[2] else tuple([next(numbers) for _ in range(kind[1])])
            found.append(Array(pointer, KINDS[kind[0]], sizes, steps))
    return found


def flattened(value: Any) -> list[Any]:
    """The numbers that pass an argument."""
    if isinstance(value, tuple):
        return [n for v in value for n in flattened(v)]
    return [value.pointer, *value.sizes, *(value.steps or ())] if isinstance(value, Array) else [value]


def kind_of(n: Any) -> Type:
    """The type of a Python number."""
    if isinstance(n, bool):
        return BOOL
    if isinstance(n, int):
        return INT64
    if isinstance(n, float):
        return DOUBLE
    raise NotALoop(f"{n!r} is not a number")


def kind_in(value: Any) -> Kind:
    """The kind of an argument, as in a signature."""
    if isinstance(value, tuple):
        return ("tuple", *map(kind_in, value))
    if isinstance(value, Array):
        return NAMES[value.kind], len(value.sizes), value.steps is None
    return NAMES[value.kind if isinstance(value, Value) else kind_of(value)]


def common(a: Any, b: Any) -> Type:
    """The type of an operation on two numbers, as Numba chooses it."""
    kinds = [x.kind if isinstance(x, Value) else kind_of(x) for x in (a, b)]
    if kinds == [BOOL, BOOL]:
        return BOOL
    if DOUBLE in kinds or FLOAT in kinds and kinds != [FLOAT, FLOAT]:
        return DOUBLE
    if FLOAT in kinds:
        return FLOAT
    plain = [k.unsigned or not isinstance(x, Value) and x >= 0 for k, x in zip(kinds, (a, b))]
    return UINT64 if any(k.unsigned for k in kinds) and all(plain) else INT64


def unified(a: Type, b: Type) -> Type:
    """The type of a variable to which numbers of two types are assigned."""
    if a == b:
        return a
    if a in REALS or b in REALS:
        return DOUBLE if DOUBLE in (a, b) or not {a, b} <= {FLOAT, BOOL, BYTE, UINT8, INT16, UINT16} else FLOAT
    if a == BOOL or b == BOOL:
        return b if a == BOOL else a
    return max(a, b, key=lambda kind: kind.bytes) if a.unsigned == b.unsigned else INT64


def alike(a: Kind, b: Kind) -> bool:
    """Whether a variable may have arrays or tuples of both kinds: numbers in tuples may be of any type."""
    if isinstance(a, str) or isinstance(b, str):
        return isinstance(a, str) and isinstance(b, str)
    if a[0] != "tuple" or b[0] != "tuple":
        return a == b
    return len(a) == len(b) and all(map(alike, a[1:], b[1:]))
