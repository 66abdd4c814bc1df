"""Element by element: arithmetic, functions, comparisons."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight.core.build import build, floating, op, predicate, real_valued
from rushlight.core.worlds import adopt
from rushlight.kernels import elementwise as kernels
from rushlight.ops.tensor.node_names import of_power

if TYPE_CHECKING:  # names in rules, provided by the rule's world (core/worlds.py)
    from rushlight.core.rule_names import is_complex, real, zeros_like

adopt(kernels)

# -- arithmetic

# fmt: off
add = op(lambda x, y, /: x + y, x=lambda g: g, y=lambda g: g, numbers="x y")
sub = op(lambda x, y, /: x - y, x=lambda g: g, y=lambda g: -g,
    numbers="x y", alias="subtract", boolean=False, takes="uifc")
mul = op(lambda x, y, /: x * y, x=lambda g, y: g * y, y=lambda g, x: g * x,
    numbers="x y", alias="multiply", single=True)
div = floating(lambda x, y, /: x / y, x=lambda g, y: g / y, y=lambda g, x, y: -g * (x / y / y),
    alias="true_divide", numbers="x y", single=True)
# products and quotients with Python numbers, for composites: the nodes save no tensor, which backward would free
multiple = op(lambda x, /, factor: x * factor, x=lambda g, factor: g * factor,
    node="MulBackward0", called="mul", function=False, method=False)
fraction = op(lambda x, /, divisor: x / divisor, x=lambda g, divisor: g / divisor,
    node="DivBackward0", called="div", function=False, method=False)
pow = op(lambda x, y, /: x**y, x=lambda g, x, y: g * where(y == 0, 0, y * pow(x, y - 1)),
    y=lambda g, x, y, out: g * where((x == 0) & (real(y) >= 0), 0, out * log(x)),
    names={"y": "exponent"}, numbers="x y", node=of_power)
neg        = op(lambda x, /: -x,              x=lambda g: -g, alias="negative", exact=True, takes="uifc")
abs        = real_valued(lambda x, /: abs(x), x=lambda g, x: g * sgn(x), alias="absolute", exact=True, takes="uifc")
square     = op(lambda x, /: x * x,           x=lambda g, x: 2 * (g * x), node="PowBackward0")
reciprocal = floating(lambda x, /: 1 / x,     x=lambda g, out: -g * out * out)
sqrt       = floating(lambda x, /: sqrt(x),   x=lambda g, out: g / (2 * out))
# a root whose gradient at 0 is 0, not nan
root_of_squares = floating(lambda x, /: sqrt(x), x=lambda g, out: where(out == 0, 0, g / (2 * out)),
    method=False, function=False, called="sqrt", node="StdBackward0")
rsqrt = floating(lambda x, /: 1 / sqrt(x), x=lambda g, out: -0.5 * g * out * out * out)
remainder = op(lambda x, y, /: x - y * floor(x / y), x=lambda g: g, y=lambda g, x, y: -g * floor_divide(x, y),
    numbers="x y", fused=False, takes="uif")
fmod = op(lambda x, y, /: x - y * trunc(x / y), x=lambda g: g, y=lambda g, x, y: -g * trunc(x / y),
    fused=False, takes="uif")
floor_divide = op(lambda x, y, /: floor(x / y), x=lambda g: zeros_like(g), y=lambda g: zeros_like(g),
    numbers="x y", fused=False, takes="uif")
trunc_divide = op(lambda x, y, /: trunc(x / y), x=lambda g: zeros_like(g), y=lambda g: zeros_like(g),
    node="DivBackward1", called="div", method=False, function=False, inplace=False, takes="uif")
hypot = op(lambda x, y, /: sqrt(x * x + y * y), x=lambda g, x, out: g * x / out, y=lambda g, y, out: g * y / out,
    numbers="", takes="f")

# -- exponentials and logarithms

exp   = floating(lambda x, /: exp(x),     x=lambda g, out: g * out)
exp2  = floating(lambda x, /: exp2(x),    x=lambda g, out: g * out * 0.6931471805599453, alias="special_exp2")
expm1 = floating(lambda x, /: exp(x) - 1, x=lambda g, out: g * (out + 1), alias="special_expm1")
log   = floating(lambda x, /: log(x),     x=lambda g, x: g / x)
log2  = floating(lambda x, /: log2(x),    x=lambda g, x: g / (x * 0.6931471805599453))
log10 = floating(lambda x, /: log10(x),   x=lambda g, x: g / (x * 2.302585092994046))
log1p = floating(lambda x, /: log(1 + x), x=lambda g, x: g / (x + 1), alias="special_log1p", node="Log1PBackward0")
logaddexp = op(lambda x, y, /: log(exp(x) + exp(y)), x=lambda g, x, y: g * sigmoid(x - y),
    y=lambda g, x, y: g * sigmoid(y - x), numbers="", takes="fc")
logaddexp2 = op(lambda x, y, /: log2(exp2(x) + exp2(y)), x=lambda g, x, y: g * sigmoid((x - y) * 0.6931471805599453),
    y=lambda g, x, y: g * sigmoid((y - x) * 0.6931471805599453), numbers="", fused=False, takes="f")
xlogy = floating(lambda x, y, /: x * log(y), x=lambda g, x, y: g * where((x == 0) & (y <= 0), 0, log(y)),
    y=lambda g, x, y: g * x / y, numbers="x y", alias="special_xlogy", fused=False, takes="buif")

# -- sigmoids and rectifiers

tanh    = floating(lambda x, /: tanh(x),           x=lambda g, out: g * (1 - out * out))
sigmoid = floating(lambda x, /: 1 / (1 + exp(-x)), x=lambda g, out: g * out * (1 - out), alias="special_expit")
# `where` instead of a product, because g may be infinite; a nan in out passes g
relu = op(lambda x, /: maximum(x, 0), x=lambda g, out: where(out != 0, g, 0), exact=True, takes="uif")
silu = floating(lambda x, /: x * sigmoid(x), x=lambda g, x: g * sigmoid(x) * (1 + x * (1 - sigmoid(x))),
    method=False, takes="fc")
softplus = floating(lambda x, /, beta=1.0, threshold=20.0: log1p(exp(x * beta)) / beta,
    x=lambda g, x, beta, threshold: g * where(x * beta > threshold, 1, sigmoid(x * beta)), method=False, takes="f")
leaky_relu = op(lambda x, /, negative_slope=0.01: where(x > 0, x, x * negative_slope),
    x=lambda g, x, negative_slope: where(x > 0, g, g * negative_slope), method=False, takes="f")
elu = floating(
    lambda x, /, alpha=1.0, scale=1.0, input_scale=1.0: where(
        x > 0, x * scale, expm1(minimum(x, 0) * input_scale) * (alpha * scale)
    ),
    x=lambda g, x, alpha, scale, input_scale: where(
        x > 0, g * scale, g * exp(minimum(x, 0) * input_scale) * (alpha * scale * input_scale)
    ),
    method=False, takes="f")
erf = floating(lambda x, /: erf(x), x=lambda g, x: g * exp(-x * x) * 1.1283791670955126,
    alias="special_erf", takes="buif")
erfc = floating(lambda x, /: erfc(x), x=lambda g, x: -g * exp(-x * x) * 1.1283791670955126,
    alias="special_erfc", takes="buif")

# -- steps: flat almost everywhere

floor = op(lambda x, /: floor(x),     x=lambda g: zeros_like(g), exact=True, takes="uif")
ceil  = op(lambda x, /: ceil(x),      x=lambda g: zeros_like(g), exact=True, takes="uif")
trunc = op(lambda x, /: trunc(x),     x=lambda g: zeros_like(g), alias="fix", exact=True, takes="uif")
round = op(lambda x, /: round(x),     x=lambda g: zeros_like(g), exact=True, takes="uif")
frac  = op(lambda x, /: x - trunc(x), x=lambda g: g, takes="f")
sign  = op(lambda x, /: sign(x),      x=lambda g: zeros_like(g), exact=True, takes="buif")
sgn = op(lambda x, /: x / abs(x),
    x=lambda g, x, out: where(x == 0, 0, (g - real(g * out) * conj(out)) / abs(x)) if is_complex(x) else zeros_like(g),
    fused=False)
heaviside = op(lambda x, y, /: where(x == 0, y, x > 0), x=lambda g: zeros_like(g), y=lambda g, x: where(x == 0, g, 0),
    names={"y": "values"}, numbers="", fused=False,
    strict="heaviside is not yet implemented for tensors with different dtypes", takes="buif")

# -- choosing

maximum = op(lambda x, y, /: maximum(x, y), x=lambda g, x, y: where(x == y, g / 2, where(x < y, 0, g)),
    y=lambda g, x, y: where(x == y, g / 2, where(y < x, 0, g)), numbers="", exact=True, takes="buif")
minimum = op(lambda x, y, /: minimum(x, y), x=lambda g, x, y: where(x == y, g / 2, where(x > y, 0, g)),
    y=lambda g, x, y: where(x == y, g / 2, where(y > x, 0, g)), numbers="", exact=True, takes="buif")
clamp_min = op(lambda x, y, /: maximum(y, x), x=lambda g, x, y: where(x >= y, g, 0),
    y=lambda g, x, y: where(x < y, g, 0), names={"y": "min"}, exact=True, takes="buif")
clamp_max = op(lambda x, y, /: minimum(y, x), x=lambda g, x, y: where(x <= y, g, 0),
    y=lambda g, x, y: where(x > y, g, 0), names={"y": "max"}, exact=True, takes="buif")
clamp_both = op(lambda x, /, low, high: minimum(high, maximum(low, x)),
    x=lambda g, x, low, high: where((x >= low) & (x <= high), g, 0),
    method=False, function=False, called="clamp", node="ClampBackward1", exact=True, takes="buif")
fmax = op(lambda x, y, /: fmax(x, y), x=lambda g, x, y: g * ((x >= y) | isnan(y)),
    y=lambda g, x, y: g * ~((x >= y) | isnan(y)), numbers="", exact=True, takes="buif")
fmin = op(lambda x, y, /: fmin(x, y), x=lambda g, x, y: g * ((x <= y) | isnan(y)),
    y=lambda g, x, y: g * ~((x <= y) | isnan(y)), numbers="", exact=True, takes="buif")
copysign = floating(lambda x, y, /: copysign(x, y), x=lambda g, x, out: g * where(isnan(x), x, sign(x) * sign(out)),
    y=lambda g: zeros_like(g), exact=True, takes="buif")
where = op(lambda condition, x, y, /: where(condition, x, y), x=lambda g, condition: where(condition, g, 0),
    y=lambda g, condition: where(condition, 0, g), promote="x y", inplace=False, method=False, exact=True)
masked = op(lambda condition, x, y, /: where(condition, x, y), x=lambda g, condition: where(condition, g, 0),
    y=lambda g, condition: where(condition, 0, g),
    promote="x y", inplace=False, method=False, function=False, node="MaskedFillBackward0", called="masked_fill",
    exact=True)
lerp = op(lambda x, y, weight, /: x + weight * (y - x), x=lambda g, weight: g * (1 - weight),
    y=lambda g, weight: g * weight, weight=lambda g, x, y: g * (y - x),
    names={"y": "end"}, stays="weight", strict=True, takes="fc")
addcmul = op(lambda x, y, z, /, value=1: x + y * z * value, x=lambda g: g, y=lambda g, z, value: g * z * value,
    z=lambda g, y, value: g * y * value, names={"y": "tensor1", "z": "tensor2"})
nan_to_num = op(lambda x, /, nan=0.0, posinf=None, neginf=None: nan_to_num(x, nan, posinf, neginf),
    x=lambda g, x: g * isfinite(x), fused=False)

# -- complex numbers: rules give g times the derivative; backward_text.py conjugates

conj = op(lambda x, /: conj(x), x=lambda g: conj(g), method=False, function=False, fused=False)
angle = floating(lambda x, /: angle(x), x=lambda g, x: g * 1j / conj(x) if is_complex(x) else zeros_like(x),
    fused=False)
# fmt: on

# -- comparisons and tests

eq, ne = predicate(lambda x, y, /: x == y), predicate(lambda x, y, /: x != y, alias="not_equal")
# fmt: off
lt          = predicate(lambda x, y, /: x < y,             alias="less", takes="buif")
le          = predicate(lambda x, y, /: x <= y,            alias="less_equal", takes="buif")
gt          = predicate(lambda x, y, /: x > y,             alias="greater", takes="buif")
ge          = predicate(lambda x, y, /: x >= y,            alias="greater_equal", takes="buif")
isnan       = predicate(lambda x, /: x != x,               inplace=False)
isinf       = predicate(lambda x, /: isinf(x),             inplace=False)
isfinite    = predicate(lambda x, /: isfinite(x),          inplace=False)
isposinf    = predicate(lambda x, /: isposinf(x),          inplace=False)
isneginf    = predicate(lambda x, /: isneginf(x),          inplace=False)
signbit     = predicate(lambda x, /: signbit(x),           inplace=False, takes="buif")
logical_and = predicate(lambda x, y, /: logical_and(x, y), numbers="", fused=False)
logical_or  = predicate(lambda x, y, /: logical_or(x, y),  numbers="", fused=False)
logical_xor = predicate(lambda x, y, /: logical_xor(x, y), numbers="", fused=False)
logical_not = predicate(lambda x, /: logical_not(x),       fused=False)

# -- bits

bitwise_and         = op(lambda x, y, /: x & y,                     numbers="x y")
bitwise_or          = op(lambda x, y, /: x | y,                     numbers="x y")
bitwise_xor         = op(lambda x, y, /: x ^ y,                     numbers="x y")
bitwise_not         = op(lambda x, /: ~x)
bitwise_left_shift  = op(lambda x, y, /: bitwise_left_shift(x, y),  numbers="x y", takes="ui")
bitwise_right_shift = op(lambda x, y, /: bitwise_right_shift(x, y), numbers="x y", takes="ui")
# fmt: on

build(globals())
