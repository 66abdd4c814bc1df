"""Elementwise ops."""

from __future__ import annotations

from typing import Any

from rushlight.ops.math import activation as a
from rushlight.ops.math import elementwise as e
from rushlight.ops.math import special as s
from rushlight.ops.math import trigonometry as t
from rushlight.ops.nn import loss
from rushlight.ops.shape import views

from .rules import Step, called, expresses, same
from .writer import Symbol

same(
    "default", e.abs, e.angle, e.bitwise_not, e.ceil, e.erf, e.erfc, e.exp, e.exp2, e.expm1, e.floor, e.frac, e.isinf,
    e.isnan, e.isneginf, e.isposinf, e.log, e.log10, e.log1p, e.log2, e.logical_not, e.neg, e.reciprocal, e.relu,
    e.round, e.rsqrt, e.sgn, e.sigmoid, e.sign, e.signbit, e.silu, e.sqrt, e.square, e.tanh, e.trunc, t.acos, t.acosh,
    t.asin, t.asinh, t.atan, t.atanh, t.cos, t.cosh, t.deg2rad, t.rad2deg, t.sin, t.sinh, t.tan, a.hardsigmoid,
    a.hardswish, a.log_sigmoid, a.mish, s.digamma, s.erfinv, s.i0, s.lgamma, s.sinc, e.isfinite, a.gelu,
)  # fmt: skip
same(
    "Tensor", e.add, e.sub, e.mul, e.div, e.bitwise_and, e.bitwise_or, e.bitwise_xor, e.eq, e.ne, e.lt, e.le, e.gt,
    e.ge, e.fmod, e.remainder, e.clamp_min, e.clamp_max, e.copysign, e.xlogy, e.lerp, e.bitwise_left_shift,
    e.bitwise_right_shift,
)  # fmt: skip
same(
    "default", e.floor_divide, e.maximum, e.minimum, e.fmax, e.fmin, e.logical_and, e.logical_or, e.logical_xor,
    e.logaddexp, e.logaddexp2, e.hypot, e.heaviside, t.atan2, e.elu, e.leaky_relu, a.hardtanh, e.softplus, a.threshold,
    a.hardshrink, a.softshrink, s.logit, e.nan_to_num,
)  # fmt: skip
called("pow.Tensor_Tensor", e.pow)
called("clamp.default", e.clamp_both)
called("where.self", e.where, e.masked)
called("sqrt.default", e.root_of_squares)
called("mul.Scalar", e.multiple)
called("div.Scalar", e.fraction)


@expresses(a.gelu_tanh)
def write_gelu(step: Step) -> Symbol:
    return step.call("gelu.default", step.args[0], approximate="tanh")


@expresses(a.prelu_core)
def write_prelu(step: Step) -> Symbol:
    x, slope = step.args
    return step.call("where.self", step.call("gt.Scalar", x, 0), x, step.call("mul.Tensor", slope, x))


@expresses(a.glu_core)
def write_glu(step: Step) -> Symbol:
    x, gate = step.args
    return step.call("mul.Tensor", x, step.call("sigmoid.default", gate))


@expresses(e.trunc_divide)
def write_trunc_divide(step: Step) -> Symbol:
    return step.call("div.Tensor_mode", *step.args, rounding_mode="trunc")


@expresses(e.addcmul)
def write_addcmul(step: Step) -> Symbol:
    *tensors, value = step.args
    return step.call("addcmul.default", *tensors, value=value)


@expresses(loss.mse_loss, loss.binary_cross_entropy)
def write_loss(step: Step) -> Any:
    """A loss of each element: ATen's reduction 0."""
    more = (None,) if step.runs(loss.binary_cross_entropy) else ()
    return step.call(f"{step.op.name}.default", *step.args, *more, 0)


@expresses(views.to)
def write_cast(step: Step) -> Symbol:
    return step.call("to.dtype", step.args[0], step.args[1], False, True)
