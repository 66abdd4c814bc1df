"""Elementwise ops as text, or as machine code: a rule of the table run on symbols that have a dtype.

A printer makes the element of a symbol: `TextPrinter` writes the expression of a fused loop; the printer of
compile/native emits LLVM instructions. Constants of a rule take the dtype of the other operand, so that a float32 loop
stays in float32. Functions come from the scalars world (loops/scalar_math.py); others are expanded by their own rule.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from functools import cache
from math import copysign
from typing import Any

import numpy as np

from rushlight.core.table import BOOL as RESULT_BOOL
from rushlight.core.table import SHARED, TABLE, Op, numbers, rebind
from rushlight.kernels.gelu import ABOVE, BELOW
from rushlight.loops import scalar_math

REALS = (np.dtype(np.float32), np.dtype(np.float64))
BOOL, INT = np.dtype(np.bool_), np.dtype(np.int64)
SHORT = {"float32": "f32", "float64": "f64", "int64": "i64", "bool": "b1"}
TYPES = (*REALS, BOOL, INT)  # dtypes of fused loops
ATOM, PRODUCT, SUM, COMPARISON = 4, 3, 2, 1  # precedence of a text


class NotFused(Exception):
    """Raised for an op that remains a call of its NumPy kernel."""


def infix(sign: str, rank: int, result: np.dtype | None = None) -> tuple[Callable, Callable]:
    """`x sign y` and its reflection."""

    def operator(x: Any, y: Any) -> Scalar:
        x, y = meet(x, y)
        if result is None and x.dtype == BOOL:
            raise NotFused
        if sign == "/" and x.dtype == INT:
            raise NotFused
        return x.like(x.printer.infix(sign, x, y, rank, result is BOOL), result or x.dtype, rank)

    return operator, lambda x, y: operator(y, x)


def logical(sign: str) -> tuple[Callable, Callable]:
    def operator(x: Any, y: Any) -> Scalar:
        if not (isinstance(x, Scalar) and isinstance(y, Scalar) and x.dtype == y.dtype == BOOL):
            raise NotFused
        return x.like(x.printer.logical(sign, x, y), BOOL, COMPARISON + 1)

    return operator, lambda x, y: operator(y, x)


class TextPrinter:
    """Writes each operation on elements as the text of a loop. The parameters named x and y are Scalars."""

    def infix(self, sign: str, x: Any, y: Any, rank: int, compares: bool) -> str:
        return f"{x.within(rank + compares)} {sign} {y.within(rank + 1)}"

    def logical(self, sign: str, x: Any, y: Any) -> str:
        return f"{x.within(ATOM)} {sign} {y.within(ATOM)}"

    def negative(self, x: Any) -> str:
        return f"-{x.within(ATOM)}"

    def inverted(self, x: Any) -> str:
        return f"{x.within(ATOM)} ^ True"

    def absolute(self, x: Any) -> str:
        return f"abs({x.text})"

    def number(self, value: Any, dtype: np.dtype) -> str:
        if dtype == INT:
            return str(value)
        number = repr(float(value)) if float(value) != int_or(value) else str(int(value))
        return f"{SHORT[dtype.name]}({number})"

    def converted(self, x: Any, dtype: np.dtype) -> str:
        return f"{x.within(SUM)} != 0" if dtype == BOOL else f"{SHORT[dtype.name]}({x.text})"

    def call(self, name: str, args: tuple, dtype: np.dtype) -> str:
        """A function of the scalars world; the names of float64 functions contain the dtype."""
        return f"{name}{'' if dtype == REALS[0] else '64'}({', '.join(a.text for a in args)})"


TEXT = TextPrinter()


class Scalar:
    """One element: `text` is what the printer has made, the text or the LLVM value of the element. `rank`: the
    precedence of a text, for brackets."""

    __slots__ = ("dtype", "printer", "rank", "text")

    def __init__(self, text: Any, dtype: np.dtype, rank: int = ATOM, printer: Any = TEXT):
        self.text, self.dtype, self.rank, self.printer = text, dtype, rank, printer

    def like(self, text: Any, dtype: np.dtype, rank: int = ATOM) -> Scalar:
        """An element of the same printer."""
        return Scalar(text, dtype, rank, self.printer)

    # a (b c) and (a b) c differ in the last bit, so the right operand gets brackets at the same rank
    __add__, __radd__ = infix("+", SUM)
    __sub__, __rsub__ = infix("-", SUM)
    __mul__, __rmul__ = infix("*", PRODUCT)
    __truediv__, __rtruediv__ = infix("/", PRODUCT)
    __and__, __rand__ = logical("&")
    __or__, __ror__ = logical("|")
    __xor__, __rxor__ = logical("^")
    __lt__, __gt__ = infix("<", COMPARISON, BOOL)[0], infix(">", COMPARISON, BOOL)[0]
    __le__, __ge__ = infix("<=", COMPARISON, BOOL)[0], infix(">=", COMPARISON, BOOL)[0]
    __eq__, __ne__ = infix("==", COMPARISON, BOOL)[0], infix("!=", COMPARISON, BOOL)[0]
    __hash__ = object.__hash__

    def within(self, rank: int) -> str:
        return self.text if self.rank >= rank else f"({self.text})"

    def __neg__(self) -> Scalar:
        return self.like(self.printer.negative(self), self.dtype, PRODUCT)

    def __invert__(self) -> Scalar:
        if self.dtype != BOOL:
            raise NotFused
        return self.like(self.printer.inverted(self), BOOL, COMPARISON + 1)

    def __pow__(self, n: Any) -> Scalar:
        return power(self, n)

    def __rpow__(self, n: Any) -> Scalar:
        return power(constant(n, self.dtype, self.printer), self)

    def __abs__(self) -> Scalar:
        return self.like(self.printer.absolute(self), self.dtype)


def constant(value: Any, dtype: np.dtype, printer: Any = TEXT) -> Scalar:
    """A Python number as an element of a dtype."""
    if isinstance(value, Scalar):
        return value if value.dtype == dtype else cast(value, dtype)
    if value is True or value is False:
        value = int(value)
    if dtype == INT and isinstance(value, int):
        return Scalar(printer.number(value, dtype), INT, ATOM if value >= 0 else PRODUCT, printer)
    if dtype not in REALS:
        raise NotFused
    return Scalar(printer.number(value, dtype), dtype, ATOM, printer)


def int_or(value: Any) -> Any:
    """The value as an integer; None if it is not one, like -0.0."""
    return int(value) if value == value and abs(value) < 1e15 and (value or copysign(1, value) > 0) else None


def cast(x: Scalar, dtype: np.dtype) -> Scalar:
    if x.dtype == dtype:
        return x
    if dtype == BOOL:
        return x.like(x.printer.converted(x, BOOL), BOOL, COMPARISON)
    if dtype not in TYPES:
        raise NotFused
    return x.like(x.printer.converted(x, dtype), dtype)


def meet(x: Any, y: Any) -> tuple[Scalar, Scalar]:
    """Both operands in one dtype: numbers take the other's dtype, bool is converted."""
    if not isinstance(x, Scalar):
        return constant(x, real_if(x, y.dtype), y.printer), cast(y, real_if(x, y.dtype))
    if not isinstance(y, Scalar):
        return cast(x, real_if(y, x.dtype)), constant(y, real_if(y, x.dtype), x.printer)
    if x.dtype != y.dtype:
        wide = np.promote_types(x.dtype, y.dtype)
        return cast(x, wide), cast(y, wide)
    return x, y


def real_if(number: Any, dtype: np.dtype) -> np.dtype:
    """The dtype of a Python number beside an element of `dtype`."""
    if dtype in REALS or (dtype == INT and isinstance(number, int)):
        return dtype
    raise NotFused


def power(x: Scalar, y: Any) -> Scalar:
    """x^y; common exponents as products, like the array kernel."""
    if x.dtype not in REALS:
        raise NotFused
    one = constant(1, x.dtype, x.printer)
    simple: dict[Any, Callable[[], Scalar]] = {
        1: lambda: x,
        2: lambda: x * x,
        3: lambda: x * x * x,
        0.5: lambda: call("sqrt", x),
        -1: lambda: one / x,
        -0.5: lambda: one / call("sqrt", x),
    }
    if not isinstance(y, Scalar) and y in simple:
        return simple[y]()
    return call("pow", *meet(x, y))


def call(name: str, *args: Scalar) -> Scalar:
    """A function of the scalars world."""
    last = next(a for a in reversed(args) if isinstance(a, Scalar))
    if last.dtype not in REALS:
        raise NotFused
    result = BOOL if name in TABLE and TABLE[name].result == RESULT_BOOL else last.dtype
    return last.like(last.printer.call(name, args, last.dtype), result)


def where(c: Scalar, x: Any, y: Any) -> Scalar:
    """x where c, else y."""
    if isinstance(x, Scalar) or isinstance(y, Scalar):
        x, y = meet(x, y)
    if not isinstance(x, Scalar) or c.dtype != BOOL:
        raise NotFused
    if x.dtype not in REALS:
        raise NotFused
    return x.like(x.printer.call("where", (c, x, y), x.dtype), x.dtype)


def function(name: str) -> Callable:
    """The meaning of a name in a rule: a function of the scalars world, or the expanded rule of that name."""
    if name in scalar_math.NAMES:

        def known(*args: Any) -> Scalar:
            first = next(a for a in args if isinstance(a, Scalar))
            together = [constant(a, first.dtype, first.printer) for a in args]
            return call(name, *together)

        return known
    if name in TABLE and TABLE[name].elementwise and can_fuse(TABLE[name]):
        return lambda *args: write_out(TABLE[name], args)
    raise NotFused


class World(dict):
    """The names of a rule, looked up as symbols."""

    def __missing__(self, name: str) -> Any:
        if hasattr(builtins, name) and name not in TABLE:
            raise NotFused
        if name in SHARED:
            found = self[name] = on_symbols(SHARED[name])
            return found
        found = self[name] = SPECIAL.get(name) or function(name)
        return found


def softplus(x: Scalar, beta: float = 1.0, threshold: float = 20.0) -> Scalar:
    bx = x * beta
    return where(bx > threshold, x, call("log1p", call("exp", call("minimum", *meet(bx, threshold)))) / beta)


def below(t: Scalar) -> tuple[Scalar, Scalar]:
    """exp(-t^2 / 2), and P(normal < -t), for 0 <= t <= 20 (kernels/gelu.py)."""
    bell = call("exp", t * t * -0.5)
    over, under = ([c.item() for c in numbers] for numbers in (ABOVE, BELOW))
    return bell, bell * (polynomial(over, t) / polynomial(under, t))


def polynomial(coefficients: list[float], t: Scalar) -> Scalar:
    """The polynomial in t with these coefficients, the highest power first."""
    r = t * coefficients[0]
    for c in coefficients[1:-1]:
        r = (r + c) * t
    return r + coefficients[-1]


def gelu(x: Scalar) -> Scalar:
    """gelu with the same small relative error below 0 as above; 1 + erf(x) would lose digits below 0."""
    if x.dtype != REALS[0]:
        return symbolic(TABLE["gelu"])(x)
    near = call("minimum", *meet(abs(x), 20.0))
    return (x + abs(x)) * 0.5 - near * below(near)[1]


def gelu_slope(x: Scalar) -> Scalar:
    if x.dtype != REALS[0]:
        return symbolic(TABLE["gelu_slope"])(x)
    bell, h = below(call("minimum", *meet(abs(x), 20.0)))
    return where(x > 0, 1 - h, h) + x * bell * 0.3989422804014327


def erfinv(x: Scalar) -> Scalar:
    if x.dtype != REALS[0]:  # SciPy's function, in double precision
        raise NotFused
    return call("erfinv", x)


def lerp(x: Scalar, y: Scalar, weight: Any) -> Scalar:
    """x + weight (y - x), computed from the nearer end, like the kernel."""
    way = y - x
    if isinstance(weight, Scalar):
        return where(abs(weight) < 0.5, x + weight * way, y - way * (1 - weight))
    return x + way * weight if abs(weight) < 0.5 else y - way * (1 - weight)


def logaddexp(x: Scalar, y: Scalar) -> Scalar:
    """log(exp(x) + exp(y)), from the larger operand, so that nothing overflows; two equal infinities give that
    infinity."""
    x, y = meet(x, y)
    more = call("maximum", x, y) + call("log1p", call("exp", -abs(x - y)))
    return where(x == y, x + 0.6931471805599453, more)


def logit(x: Scalar, eps: float | None = None) -> Scalar:
    if eps is not None and eps >= 0:
        x = call("minimum", *meet(call("maximum", *meet(x, eps)), 1 - eps))
    return call("log", x / (1 - x))


# A world: names in rules that are neither functions of the scalars world nor the op's formula.
SPECIAL: dict[str, Callable] = {
    "gelu": gelu,
    "gelu_slope": gelu_slope,
    "where": where,
    "softplus": softplus,
    "pow": power,
    "lerp": lerp,
    "logaddexp": logaddexp,
    "logit": logit,
    "erfinv": erfinv,
    "expm1": lambda x: call("expm1", x),
    "abs": abs,
    "log1p": lambda x: call("log1p", x),
}


def write_out(op: Op, args: tuple) -> Scalar:
    """The op's rule run on symbols."""
    direct = SPECIAL.get(op.name)
    if direct is None and op.name in scalar_math.NAMES:
        direct = function(op.name)
    return direct(*args) if direct is not None else symbolic(op)(*args)


def can_fuse(op: Op) -> bool:
    """True if a loop may contain the op's formula instead of a call of its kernel."""
    return op.options.get("fused", True)


@cache
def symbolic(op: Op) -> Callable:
    """The op's rule with its names looked up as symbols."""
    # "erfinv(x)" is not a formula: only the kernel exists
    if op.name in op.forward.__code__.co_names:
        raise NotFused
    return on_symbols(op.forward)


def on_symbols(rule: Callable) -> Callable:
    """A rule with its names looked up as symbols in advance, since a code object finds globals only in a plain dict."""
    world = World(__builtins__={})
    for name in rule.__code__.co_names:
        if name not in numbers(rule):
            world[name]
    return rebind(rule, dict(world))


def expression_of(op: Op, of: str, args: list) -> Scalar | None:
    """The op on symbols and settings, or its derivative by an input; None if the result is one of the arguments."""
    if not can_fuse(op):
        raise NotFused
    rule = op.rules[of] if of else None
    made = write_out(op, tuple(args)) if rule is None else on_symbols(rule)(*args)
    if not isinstance(made, Scalar):
        raise NotFused
    return None if any(made is a for a in args) else made


def expression(op: Op, args: tuple, dtype: np.dtype) -> Scalar:
    """The op on symbols and settings, in the dtype of the traced run. NotFused if that is impossible."""
    converts = op is TABLE["to"]
    if not (op.elementwise or converts) or not can_fuse(op) or dtype not in TYPES:
        raise NotFused
    if any(isinstance(a, Scalar) and a.dtype not in TYPES for a in args):
        raise NotFused
    made = cast(args[0], dtype) if converts else write_out(op, args)
    return cast(made, dtype)
