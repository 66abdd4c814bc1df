"""Activations that are not in elementwise.py. nn.functional gives them torch's signatures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight.core.build import build, elementwise
from rushlight.core.table import FLOATING, SAME, entry
from rushlight.core.worlds import adopt, shared
from rushlight.kernels import activation as kernels

if TYPE_CHECKING:  # names in rules, provided by the rule's world (core/worlds.py)
    from rushlight.core.rule_names import erf, exp, log1p, maximum, minimum, sigmoid, softplus, tanh, where

adopt(kernels)

# Functions of nn.functional only: neither methods of Tensor nor names of the package.
smooth = entry(elementwise, FLOATING, method=False, function=False)
pieces = entry(elementwise, SAME, method=False, function=False)

# fmt: off
gelu = smooth(lambda x, /: x * 0.5 * (1 + erf(x * 0.7071067811865476)), x=lambda g, x: g * gelu_slope(x), takes="f")
gelu_slope = smooth(lambda x, /: 0.5 + 0.5 * erf(x * 0.7071067811865476) + x * exp(-0.5 * x * x) * 0.3989422804014327,
    x=lambda g, x: g * (2 - x * x) * exp(-0.5 * x * x) * 0.3989422804014327)
gelu_tanh = smooth(lambda x, /: x * 0.5 * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))),
    x=lambda g, x: g * gelu_tanh_slope(x), node="GeluBackward0", takes="f")
log_sigmoid = smooth(lambda x, /: minimum(x, 0) - log1p(exp(-abs(x))), x=lambda g, x: g * sigmoid(-x), takes="f")
mish        = smooth(lambda x, /: x * tanh(softplus(x)),               x=lambda g, x: g * mish_slope(x), takes="f")

# -- piecewise linear; at the kinks the slope is torch's

hardtanh = pieces(lambda x, /, min_val=-1.0, max_val=1.0: minimum(max_val, maximum(min_val, x)),
    x=lambda g, x, min_val, max_val: where((x > min_val) & (x < max_val), g, 0), exact=True, takes="uif")
# the product of the two halves
glu_core = smooth(lambda x, y, /: x * sigmoid(y), x=lambda g, y: g * sigmoid(y),
    y=lambda g, x, y: g * x * sigmoid(y) * (1 - sigmoid(y)), called="glu", node="GluBackward0", takes="f")
hardsigmoid = smooth(lambda x, /: minimum(maximum(x + 3, 0), 6) / 6, x=lambda g, x: where((x > -3) & (x < 3), g / 6, 0),
    takes="f")
hardswish = smooth(lambda x, /: x * minimum(maximum(x + 3, 0), 6) / 6,
    x=lambda g, x: where(x <= -3, 0, where(x < 3, g * (x / 3 + 0.5), g)), takes="f")
hardshrink = pieces(lambda x, /, lambd=0.5: where((x >= -lambd) & (x <= lambd), 0, x),
    x=lambda g, x, lambd: where((x >= -lambd) & (x <= lambd), 0, g), takes="f")
softshrink = pieces(lambda x, /, lambd=0.5: where(x > lambd, x - lambd, where(x < -lambd, x + lambd, x - x)),
    x=lambda g, x, lambd: where((x >= -lambd) & (x <= lambd), 0, g), takes="f")
threshold = pieces(lambda x, /, threshold, value: where(x <= threshold, value, x),
    x=lambda g, x, threshold: where(x <= threshold, 0, g), exact=True, takes="uif")
prelu_core = pieces(lambda x, y, /: where(x > 0, x, x * y), x=lambda g, x, y: where(x > 0, g, g * y),
    y=lambda g, x: where(x > 0, 0, g * x),
    names={"y": "weight"}, node="PreluKernelBackward0", strict="prelu: Type promoting not supported", called="prelu",
    takes="f")
# fmt: on


@shared
def gelu_tanh_slope(x):
    t = tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * (0.7978845608028654 + 0.1070322243 * x * x)


@shared
def mish_slope(x):
    t = tanh(softplus(x))
    return t + x * sigmoid(x) * (1 - t * t)


build(globals())
