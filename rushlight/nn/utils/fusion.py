"""A batch norm in evaluation is a linear map, which can be merged into the layer before it."""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.creation.factories import ones_like, zeros_like
from rushlight.nn.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.ops.math import elementwise as e
from rushlight.ops.shape.views import reshape


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A convolution that computes bn(conv(x)), both in evaluation: a copy of `conv` with other weights.

    `transpose`: `conv` is a transposed convolution. AssertionError in training mode.

    >>> conv, bn = rushlight.nn.Conv2d(1, 2, 3).eval(), rushlight.nn.BatchNorm2d(2).eval()
    >>> fused = rushlight.nn.utils.fuse_conv_bn_eval(conv, bn)
    >>> x = rushlight.rand(1, 1, 4, 4)
    >>> rushlight.allclose(fused(x), bn(conv(x)), atol=1e-6)
    True
    """
    return fused(conv, bn, partial(fuse_conv_bn_weights, transpose=transpose))


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A Linear that computes bn(linear(x)), both in evaluation.

    AssertionError in training mode, or if the norm has another number of features than the Linear, and more than one.

    >>> linear, bn, x = rushlight.nn.Linear(2, 3).eval(), rushlight.nn.BatchNorm1d(3).eval(), rushlight.ones(4, 2)
    >>> rushlight.allclose(rushlight.nn.utils.fuse_linear_bn_eval(linear, bn)(x), bn(linear(x)))
    True
    """
    in_evaluation(linear, bn)
    if bn.num_features not in (linear.out_features, 1):
        raise AssertionError("To fuse, linear.out_features == bn.num_features or bn.num_features == 1")
    return fused(linear, bn, fuse_linear_bn_weights)


def fused(layer: Module, bn: Any, weights: Any) -> Module:
    """A copy of the layer with the weights that `weights` computes from the layer's and the norm's."""
    in_evaluation(layer, bn)
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("Fusion needs running statistics: track_running_stats=True")
    made: Any = deepcopy(layer)
    made.weight, made.bias = weights(
        made.weight, made.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return made


def in_evaluation(layer: Module, bn: Module) -> None:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")


def fuse_conv_bn_weights(
    conv_w: Tensor, conv_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor | None,
    bn_b: Tensor | None, transpose: bool = False,
) -> tuple[Parameter, Parameter]:  # fmt: skip
    """w' = w s, b' = (b - mean) s + beta, s = gamma / sqrt(var + eps): of the convolution that computes both.

    >>> w, b, mean, var = rushlight.ones(1, 1,
    ...     1), rushlight.tensor([5.]), rushlight.tensor([1.]), rushlight.tensor([4.])
    >>> w, b = rushlight.nn.utils.fuse_conv_bn_weights(w, b, mean, var, 0.0, None, None)
    >>> w.item(), b.item()  # 1 / sqrt 4, (5 - 1) / sqrt 4
    (0.5, 2.0)
    """
    scale, shift = scale_and_shift(conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)
    ndim = conv_w._array.ndim
    shape = (1, -1) + (1,) * (ndim - 2) if transpose else (-1,) + (1,) * (ndim - 1)
    return like(conv_w, e.mul(conv_w, reshape(scale, shape)), conv_w), like(conv_b, shift, conv_w)


def fuse_linear_bn_weights(
    linear_w: Tensor, linear_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor, bn_b: Tensor
) -> tuple[Parameter, Parameter]:
    """w' = w s, b' = (b - mean) s + beta, s = gamma / sqrt(var + eps): of the Linear that computes both.

    >>> w, b, mean, var = rushlight.ones(1, 1), rushlight.tensor([5.]), rushlight.tensor([1.]), rushlight.tensor([4.])
    >>> w, b = rushlight.nn.utils.fuse_linear_bn_weights(w, b, mean, var, 0.0, rushlight.ones(1), rushlight.zeros(1))
    >>> w.item(), b.item()  # 1 / sqrt 4, (5 - 1) / sqrt 4
    (0.5, 2.0)
    """
    scale, shift = scale_and_shift(linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)
    return like(linear_w, e.mul(linear_w, reshape(scale, (-1, 1))), linear_w), like(linear_b, shift, linear_w)


def scale_and_shift(
    bias: Tensor | None, mean: Tensor, var: Tensor, eps: float, weight: Tensor | None, beta: Tensor | None
) -> tuple[Tensor, Tensor]:
    """s = weight / sqrt(var + eps), and (bias - mean) s + beta; a missing bias or beta is 0, a missing weight 1."""
    bias = zeros_like(mean) if bias is None else bias
    scale = e.mul(ones_like(mean) if weight is None else weight, e.rsqrt(e.add(var, eps)))
    shift = e.add(e.mul(e.sub(bias, mean), scale), zeros_like(mean) if beta is None else beta)
    return scale, shift


def like(old: Tensor | None, value: Tensor, weight: Tensor) -> Parameter:
    """A parameter in the weight's dtype, trained if the old one was."""
    return Parameter(value.detach().to(weight.dtype), old is not None and old.requires_grad)
