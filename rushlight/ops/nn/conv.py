"""Convolution: three ops, each linear in two operands, and each the derivative of the other two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy import ndarray

from rushlight.base.faster import site
from rushlight.core.build import build, inner
from rushlight.core.tensor import Tensor
from rushlight.core.worlds import ARRAYS, TENSORS
from rushlight.kernels import conv as kernels
from rushlight.kernels import im2col as windows
from rushlight.kernels.conv import of_half
from rushlight.ops.shape.views import others

if TYPE_CHECKING:  # names in rules, provided by the rule's world (core/worlds.py)
    from rushlight.core.rule_names import conv


def plain(x: Tensor, weight: Tensor, *settings: Any) -> Tensor:
    """Convolution without bias, for rules."""
    return convolution(x, weight, None, *settings)


@site
def conv_bias_grad(g: ndarray) -> ndarray:
    """out[o] = sum over n, p of g[n, o, p]."""
    return ARRAYS["sum"](g, others(g))


for name in ("conv", "conv_input_grad", "conv_weight_grad"):
    ARRAYS[name] = getattr(kernels, name)
ARRAYS.update(im2col=windows.unfold, col2im=windows.fold, of_half=of_half)
# on tensors, `of_half` does nothing: a product with a Python number keeps bfloat16
TENSORS.update(conv=plain, of_half=lambda g, weight: g)
TENSORS["conv_bias_grad"] = lambda g: TENSORS["sum"](g, others(g))
ARRAYS["conv_bias_grad"] = conv_bias_grad

# x (N, C, *size), weight (O, C / groups, *kernel), bias (O,) or None -> (N, O, *out); all settings are tuples of ints
# fmt: off
convolution = inner(
    lambda x, weight, bias, /, stride, padding, dilation, groups: conv(
        x, weight, stride, padding, dilation, groups, bias
    ),
    x=lambda g, weight, x_shape, stride, padding, dilation, groups: conv_input_grad(
        g, weight, x_shape[2:], stride, padding, dilation, groups
    ),
    weight=lambda g, x, weight_shape, stride, padding, dilation, groups: conv_weight_grad(
        g, x, weight_shape[2:], stride, padding, dilation, groups
    ),
    bias=lambda g: conv_bias_grad(g),
    node="ConvolutionBackward0", linear="x weight", added="bias", sizes="leading", takes="uifc")
# transposed convolution: x has the shape of a convolution's output, `size` is the size of its input
conv_input_grad = inner(
    lambda x, weight, /, size, stride, padding, dilation, groups: conv_input_grad(
        x, weight, size, stride, padding, dilation, groups
    ),
    x=lambda g, weight, stride, padding, dilation, groups: conv(
        of_half(g, weight), weight, stride, padding, dilation, groups
    ),
    weight=lambda g, x, weight_shape, stride, padding, dilation, groups: conv_weight_grad(
        x, g, weight_shape[2:], stride, padding, dilation, groups
    ),
    node="ConvolutionBackward0", linear="x weight", takes="ifc", sizes="leading")
conv_weight_grad = inner(
    lambda x, y, /, kernel, stride, padding, dilation, groups: conv_weight_grad(
        x, y, kernel, stride, padding, dilation, groups
    ),
    x=lambda g, y, stride, padding, dilation, groups: conv(y, g, stride, padding, dilation, groups),
    y=lambda g, x, y_shape, stride, padding, dilation, groups: conv_input_grad(
        x, g, y_shape[2:], stride, padding, dilation, groups
    ),
    linear="x y")

# windows as columns, and columns added up at their positions: nn.functional.unfold and fold
im2col = inner(lambda x, /, kernel, dilation, padding, stride: im2col(x, kernel, dilation, padding, stride),
    x=lambda g, x_shape, kernel, dilation, padding, stride: col2im(g, x_shape[2:], kernel, dilation, padding, stride),
    node="Im2ColBackward0", batched="fold", takes="bfc")
col2im = inner(lambda x, /, size, kernel, dilation, padding, stride: col2im(x, size, kernel, dilation, padding, stride),
    x=lambda g, kernel, dilation, padding, stride: im2col(g, kernel, dilation, padding, stride),
    node="Col2ImBackward0", batched="fold", takes="bfc")
# fmt: on

build(globals())
