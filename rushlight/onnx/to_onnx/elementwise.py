"""Elementwise ops: the op's own rule, run on symbols.

`WORLD` gives the names in rules a meaning (docs/architecture.md, "A rule runs in several worlds"): a function that
appends ONNX nodes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.core.table import BOOL as RESULT_BOOL
from rushlight.core.table import FLOATING, SHARED, TABLE, numbers, rebind
from rushlight.onnx.to_onnx.onnx_graph import BOOL, FLOAT32, INT64, NotExpressed, Symbol, power
from rushlight.onnx.to_onnx.rules import Step


def unary(operator: str, integers: bool = True) -> Callable[[Symbol], Symbol]:
    """A function with a node of this operator. `integers`: False if the function leaves integers as they are."""

    def function(x: Symbol) -> Symbol:
        return x if not integers and x.dtype.kind in "biu" else x.named(operator, shape=x.shape)

    return function


def of_several(operator: str, of_bools: str) -> Callable[[Any, Any], Symbol]:
    """A function of two values of one dtype, such as Max."""

    def function(x: Any, y: Any) -> Symbol:
        graph = x.graph if isinstance(x, Symbol) else y.graph
        x, y = graph.met(x, y)
        return x.named(of_bools if x.dtype == BOOL else operator, y)

    return function


maximum, minimum = of_several("Max", "Or"), of_several("Min", "And")
floor, ceil, rounded = unary("Floor", False), unary("Ceil", False), unary("Round", False)
exp, log, sqrt, tanh, sigmoid = unary("Exp"), unary("Log"), unary("Sqrt"), unary("Tanh"), unary("Sigmoid")
sin, cos, erf, atan = unary("Sin"), unary("Cos"), unary("Erf"), unary("Atan")


def where(condition: Symbol, x: Any, y: Any) -> Symbol:
    """x where the condition is true, else y."""
    if isinstance(x, Symbol) or isinstance(y, Symbol):
        x, y = condition.graph.met(x, y)
    else:
        x = condition.graph.constant(np.array(x, INT64 if isinstance(x, int) and isinstance(y, int) else FLOAT32))
        y = condition.graph.constant(np.array(y, x.dtype))
    if x.dtype == BOOL:
        return (condition & x) | (~condition & y)
    return condition.to(BOOL).named("Where", x, y, dtype=x.dtype)


def sign(x: Symbol) -> Symbol:
    """-1, 0 or 1."""
    return x if x.dtype == BOOL else x.named("Sign")


def trunc(x: Symbol) -> Symbol:
    """Rounded toward 0."""
    return x if x.dtype.kind in "biu" else where(x < 0, ceil(x), floor(x))


def expm1(x: Symbol) -> Symbol:
    """exp(x) - 1, exact also near 0."""
    return tanh(x * 0.5) * (exp(x) + 1)


def log1p(x: Symbol) -> Symbol:
    """log(1 + x), exact also near 0: log(u) x / (u - 1), where u is 1 + x as it is rounded."""
    u = x + 1
    exact = u - 1
    return where(exact == 0, x, log(u) * where(exact == x, 1, x / exact))


def log_of_base(base: float) -> Callable[[Symbol], Symbol]:
    return lambda x: log(x) * (1 / math.log(base))


def isnan(x: Symbol) -> Any:
    """Whether each element is nan."""
    return x.named("IsNaN", dtype=BOOL) if x.dtype.kind in "fV" else x != x


def isinf(x: Symbol, negative: bool = True, positive: bool = True) -> Any:
    """Whether each element is infinite, with one of these signs."""
    if x.dtype.kind not in "fV":
        return x != x
    return x.named("IsInf", dtype=BOOL, detect_negative=int(negative), detect_positive=int(positive))


def signbit(x: Symbol) -> Symbol:
    """Whether each element is negative, also -0."""
    if x.dtype.kind != "f":
        return (x < 0) if x.dtype != BOOL else x ^ x
    return (x < 0) | ((x == 0) & (1 / x < 0))


def fmod(x: Symbol, y: Symbol) -> Symbol:
    """The remainder with the sign of x."""
    x, y = x.graph.met(x, y)
    return x.named("Mod", y, fmod=1)


def remainder(x: Symbol, y: Symbol) -> Symbol:
    """The remainder with the sign of y."""
    x, y = x.graph.met(x, y)
    if x.dtype.kind in "iu":
        return x.named("Mod", y)
    rest = fmod(x, y)
    return where((rest != 0) & ((rest < 0) ^ (y < 0)), rest + y, rest)


def floor_divide(x: Symbol, y: Symbol) -> Symbol:
    """floor(x / y). ONNX's Div rounds integers toward 0."""
    x, y = x.graph.met(x, y)
    if x.dtype.kind == "u":
        return x // y
    if x.dtype.kind == "i":
        quotient = x // y
        return where((quotient * y != x) & ((x < 0) ^ (y < 0)), quotient - 1, quotient)
    rest = remainder(x, y)
    return where(y == 0, x / y, rounded((x - rest) / y))


def trunc_divide(x: Symbol, y: Symbol) -> Symbol:
    """x / y, rounded toward 0."""
    x, y = x.graph.met(x, y)
    return x // y if x.dtype.kind in "iu" else trunc(x / y)


def softplus(x: Symbol, beta: float = 1.0, threshold: float = 20.0) -> Symbol:
    """log(1 + exp(beta x)) / beta, and x for large x."""
    if beta == 1:
        return where(x > threshold, x, x.named("Softplus"))
    return where(x * beta > threshold, x, (x * beta).named("Softplus") / beta)


def gelu(x: Symbol) -> Symbol:
    """x P(normal < x)."""
    if x.graph.opset >= 20 and x.dtype == FLOAT32:
        return x.named("Gelu")
    return x * (1 + erf(x * math.sqrt(0.5))) * 0.5


def gelu_tanh(x: Symbol) -> Symbol:
    """The approximation of gelu by tanh."""
    if x.graph.opset >= 20 and x.dtype == FLOAT32:
        return x.named("Gelu", approximate="tanh")
    return x * (1 + tanh((x + x * x * x * 0.044715) * math.sqrt(2 / math.pi))) * 0.5


def leaky_relu(x: Symbol, negative_slope: float = 0.01) -> Symbol:
    return x.named("LeakyRelu", alpha=float(negative_slope))


def relu(x: Symbol) -> Symbol:
    return x.named("Relu") if x.dtype.kind == "f" else maximum(x, 0)


def prelu(x: Symbol, y: Symbol) -> Symbol:
    return where(x > 0, x, x * y)


def logaddexp(x: Symbol, y: Symbol) -> Symbol:
    """log(exp(x) + exp(y)) without overflow."""
    x, y = x.graph.met(x, y)
    return where(x == y, x + math.log(2), maximum(x, y) + log1p(exp(-abs(x - y))))


def logaddexp2(x: Symbol, y: Symbol) -> Symbol:
    two = math.log(2)
    return logaddexp(x * two, y * two) / two


def xlogy(x: Symbol, y: Symbol) -> Symbol:
    x, y = x.graph.met(x, y)
    return where(isnan(y), y, where(x == 0, 0, x * log(y)))


def xlog1py(x: Symbol, y: Symbol) -> Symbol:
    x, y = x.graph.met(x, y)
    return where(isnan(y), y, where(x == 0, 0, x * log1p(y)))


def logit(x: Symbol, eps: float | None = None) -> Symbol:
    """log(x / (1 - x))."""
    x = x if eps is None or eps < 0 else minimum(maximum(x, eps), 1 - eps)
    return log(x / (1 - x))


def entr(x: Symbol) -> Symbol:
    """-x log x."""
    return where(x < 0, -math.inf, where(x == 0, 0, -x * log(x)))


def ndtr(x: Symbol) -> Symbol:
    """P(normal < x)."""
    return (1 + erf(x * math.sqrt(0.5))) * 0.5


def sinc(x: Symbol) -> Symbol:
    """sin(pi x) / (pi x)."""
    t = where(x == 0, 1e-20, x) * math.pi
    return sin(t) / t


def sgn(x: Symbol) -> Symbol:
    return sign(x)


def atan2(y: Symbol, x: Symbol) -> Symbol:
    """The angle of the point (x, y)."""
    y, x = y.graph.met(y, x)
    both = isinf(x) & isinf(y)  # the angle of the corner
    y, x = where(both, sign(y), y), where(both, sign(x), x)
    half = where(signbit(y), -math.pi, math.pi)
    angle = atan(y / x) + where(x < 0, half, 0)
    axis = where(signbit(x), half, where(signbit(y), -y.graph.like(0.0, y), 0.0))
    return where(y == 0, where(signbit(x), half, axis.to(y.dtype) * 0 + y), where(x == 0, half * 0.5, angle))


def copysign(x: Symbol, y: Symbol) -> Symbol:
    x, y = x.graph.met(x, y)
    return where(signbit(y), -abs(x), abs(x))


def fmax(x: Symbol, y: Symbol) -> Symbol:
    x, y = x.graph.met(x, y)
    return where(isnan(x), y, where(isnan(y), x, maximum(x, y)))


def fmin(x: Symbol, y: Symbol) -> Symbol:
    x, y = x.graph.met(x, y)
    return where(isnan(x), y, where(isnan(y), x, minimum(x, y)))


def nan_to_num(x: Symbol, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Symbol:
    """x with numbers in place of nan and infinities."""
    if x.dtype.kind != "f":
        return x
    ends = np.finfo(x.dtype)
    x = where(isnan(x), 0.0 if nan is None else float(nan), x)
    x = where(isinf(x, negative=False), float(ends.max) if posinf is None else float(posinf), x)
    return where(isinf(x, positive=False), float(ends.min) if neginf is None else float(neginf), x)


def lerp(x: Symbol, y: Symbol, weight: Any) -> Symbol:
    """x + weight (y - x), computed from the nearer end."""
    way = y - x
    if not isinstance(weight, Symbol):
        return x + way * weight if abs(weight) < 0.5 else y - way * (1 - weight)
    return where(abs(weight) < 0.5, x + weight * way, y - way * (1 - weight))


def elu(x: Symbol, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Symbol:
    """scale x above 0, scale alpha (exp(input_scale x) - 1) below."""
    if input_scale == 1:
        found = x.named("Elu", alpha=float(alpha))
    else:
        found = where(x > 0, x, expm1(minimum(x, 0.0) * input_scale) * alpha)
    return found if scale == 1 else found * scale


def clamp_both(x: Symbol, low: Any, high: Any) -> Symbol:
    """x between two numbers; where they cross, the upper one."""
    if x.dtype.kind != "f" or not low <= high:
        return minimum(maximum(x, low), high)
    return x.named("Clip", x.graph.like(low, x), x.graph.like(high, x))


def hardsigmoid(x: Symbol) -> Symbol:
    return x.named("HardSigmoid", alpha=1 / 6, beta=0.5)


def logical(operator: Callable) -> Callable:
    """A function of truth values."""
    return lambda *args: operator(*[a.to(BOOL) for a in args])


def left_shift(x: Symbol, y: Symbol) -> Symbol:
    x, y = x.graph.met(x, y)
    return x * power(x.graph.like(2, x), y)


def right_shift(x: Symbol, y: Symbol) -> Symbol:
    x, y = x.graph.met(x, y)
    return floor_divide(x, power(x.graph.like(2, x), y))


def angle(x: Symbol) -> Symbol:
    """0 or pi."""
    return where(isnan(x), x, where(x < 0, math.pi, 0.0))


def real_only(x: Symbol) -> Symbol:
    if x.dtype.kind == "c":
        raise NotExpressed("ONNX has no operators of complex numbers")
    return x


# A world: what names in rules mean.
WORLD: dict[str, Callable] = {
    "abs": abs,
    "acos": unary("Acos"),
    "acosh": unary("Acosh"),
    "angle": angle,
    "asin": unary("Asin"),
    "asinh": unary("Asinh"),
    "atan": atan,
    "atan2": atan2,
    "atanh": unary("Atanh"),
    "bitwise_left_shift": left_shift,
    "bitwise_right_shift": right_shift,
    "ceil": ceil,
    "clamp_both": clamp_both,
    "conj": real_only,
    "copysign": copysign,
    "cos": cos,
    "cosh": unary("Cosh"),
    "elu": elu,
    "entr": entr,
    "erf": erf,
    "erfc": lambda x: 1 - erf(x),
    "exp": exp,
    "exp2": lambda x: power(x.graph.like(2.0, x), x),
    "expm1": expm1,
    "floor": floor,
    "floor_divide": floor_divide,
    "fmax": fmax,
    "fmin": fmin,
    "fmod": fmod,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "hardsigmoid": hardsigmoid,
    "hardswish": unary("HardSwish"),
    "hardtanh": clamp_both,
    "isfinite": lambda x: ~(isnan(x) | isinf(x)),
    "isinf": isinf,
    "isnan": isnan,
    "isneginf": lambda x: isinf(x, positive=False),
    "isposinf": lambda x: isinf(x, negative=False),
    "leaky_relu": leaky_relu,
    "lerp": lerp,
    "log": log,
    "log10": log_of_base(10),
    "log1p": log1p,
    "log2": log_of_base(2),
    "log_sigmoid": lambda x: -(-x).named("Softplus"),
    "logaddexp": logaddexp,
    "logaddexp2": logaddexp2,
    "logical_and": logical(lambda x, y: x & y),
    "logical_not": logical(lambda x: ~x),
    "logical_or": logical(lambda x, y: x | y),
    "logical_xor": logical(lambda x, y: x ^ y),
    "logit": logit,
    "maximum": maximum,
    "minimum": minimum,
    "mish": unary("Mish"),
    "nan_to_num": nan_to_num,
    "ndtr": ndtr,
    "pow": power,
    "prelu_core": prelu,
    "relu": relu,
    "remainder": remainder,
    "round": rounded,
    "rsqrt": lambda x: sqrt(x).named("Reciprocal"),
    "sgn": sgn,
    "sigmoid": sigmoid,
    "sign": sign,
    "signbit": signbit,
    "sin": sin,
    "sinc": sinc,
    "sinh": unary("Sinh"),
    "softplus": softplus,
    "special_ndtr": ndtr,
    "sqrt": sqrt,
    "tan": unary("Tan"),
    "tanh": tanh,
    "trunc": trunc,
    "trunc_divide": trunc_divide,
    "where": where,
    "xlog1py": xlog1py,
    "xlogy": xlogy,
}


def meaning(name: str) -> Any:
    """What a name in a rule means: a function of the world, or another rule."""
    if name in WORLD:
        return WORLD[name]
    if name in SHARED:
        return on_symbols(SHARED[name])
    if name in TABLE and TABLE[name].elementwise and name not in TABLE[name].forward.__code__.co_names:
        return on_symbols(TABLE[name].forward)
    raise NotExpressed("ONNX has no such function")


def on_symbols(rule: Callable) -> Callable:
    """A rule with its names looked up in the world."""
    return rebind(rule, {name: meaning(name) for name in rule.__code__.co_names if name not in numbers(rule)})


def written(step: Step) -> Symbol:
    """The nodes of an elementwise op."""
    op, out = step.op, step.out
    dtypes = [a.dtype for a in step.args if isinstance(a, Symbol)]
    if out.dtype.kind == "c" or any(dtype.kind == "c" for dtype in dtypes):
        raise NotExpressed("ONNX has no operators of complex numbers")
    converts = op.result == FLOATING or op.result != RESULT_BOOL and out.dtype != BOOL
    skipped = {"condition"}
    args = [
        a.to(out.dtype) if converts and isinstance(a, Symbol) and name not in skipped else a
        for a, name in zip(step.args, (*op.inputs, *op.settings))
    ]
    function = meaning(op.name)
    return function(*args).to(out.dtype)
