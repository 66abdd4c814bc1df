"""torch.nn.grad: the gradients of convolutions, as functions."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.nn.functional.sizes import each
from rushlight.ops.conv import conv_input_grad, conv_weight_grad
from rushlight.tensor import Tensor


def of_input(n: int) -> Callable:
    """conv1d_input, conv2d_input or conv3d_input."""
    def conv_input(input_size: Any, weight: Tensor, grad_output: Tensor, stride: Any = 1, padding: Any = 0,
                   dilation: Any = 1, groups: int = 1) -> Tensor:
        step, margin, spread = (each(v, n) for v in (stride, padding, dilation))
        return conv_input_grad(grad_output, weight, tuple(input_size)[-n:], step, margin, spread, groups)
    conv_input.__name__ = conv_input.__qualname__ = f"conv{n}d_input"
    conv_input.__doc__ = f"The gradient of conv{n}d's input, of `input_size`, from that of its output."
    return conv_input


def of_weight(n: int) -> Callable:
    """conv1d_weight, conv2d_weight or conv3d_weight."""
    def conv_weight(input: Tensor, weight_size: Any, grad_output: Tensor, stride: Any = 1, padding: Any = 0,
                    dilation: Any = 1, groups: int = 1) -> Tensor:
        step, margin, spread = (each(v, n) for v in (stride, padding, dilation))
        return conv_weight_grad(grad_output, input, tuple(weight_size)[-n:], step, margin, spread, groups)
    conv_weight.__name__ = conv_weight.__qualname__ = f"conv{n}d_weight"
    conv_weight.__doc__ = f"The gradient of conv{n}d's weight, of `weight_size`, from that of its output."
    return conv_weight


conv1d_input, conv2d_input, conv3d_input = (of_input(n) for n in (1, 2, 3))
conv1d_weight, conv2d_weight, conv3d_weight = (of_weight(n) for n in (1, 2, 3))
