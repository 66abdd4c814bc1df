"""Trigonometric and hyperbolic functions; `tanh` is in math/elementwise.py with the sigmoids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight.core.build import build, floating
from rushlight.ops.math import elementwise as elementwise  # its kernels are used here

if TYPE_CHECKING:  # names in rules, provided by the rule's world (core/worlds.py)
    from rushlight.core.rule_names import rsqrt, where

# fmt: off
sin  = floating(lambda x, /: sin(x),  x=lambda g, x: g * cos(x))
cos  = floating(lambda x, /: cos(x),  x=lambda g, x: -g * sin(x))
tan  = floating(lambda x, /: tan(x),  x=lambda g, out: g * (1 + out * out))
asin = floating(lambda x, /: asin(x), x=lambda g, x: g * rsqrt(1 - x * x), alias="arcsin")
acos = floating(lambda x, /: acos(x), x=lambda g, x: -g * rsqrt(1 - x * x), alias="arccos")
atan = floating(lambda x, /: atan(x), x=lambda g, x: g / (1 + x * x), alias="arctan")
atan2 = floating(lambda x, y, /: atan2(x, y), x=lambda g, x, y: g * y / where((x == 0) & (y == 0), 1, x * x + y * y),
    y=lambda g, x, y: -g * x / where((x == 0) & (y == 0), 1, x * x + y * y), alias="arctan2", numbers="", takes="buif")
sinh  = floating(lambda x, /: sinh(x),  x=lambda g, x: g * cosh(x))
cosh  = floating(lambda x, /: cosh(x),  x=lambda g, x: g * sinh(x))
asinh = floating(lambda x, /: asinh(x), x=lambda g, x: g * rsqrt(x * x + 1), alias="arcsinh")
acosh = floating(lambda x, /: acosh(x), x=lambda g, x: g * rsqrt(x - 1) * rsqrt(x + 1), alias="arccosh")
atanh = floating(lambda x, /: atanh(x), x=lambda g, x: g / (1 - x * x), alias="arctanh")
deg2rad = floating(lambda x, /: x * 0.017453292519943295, x=lambda g: g * 0.017453292519943295,
    node="Deg2RadBackward0", takes="buif")
rad2deg = floating(lambda x, /: x * 57.29577951308232, x=lambda g: g * 57.29577951308232,
    node="Rad2DegBackward0", takes="buif")
# fmt: on

build(globals())
