"""torch.nn.grad: the gradients of convolutions, as functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.nn.functional.size_arguments import each
from rushlight.ops.nn.conv import conv_input_grad, conv_weight_grad

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]


def of_input(n: int) -> Callable:
    """conv1d_input, conv2d_input or conv3d_input."""

    def conv_input(
        input_size: Any, weight: Tensor, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:  # fmt: skip
        step, margin, spread = (each(v, n) for v in (stride, padding, dilation))
        return conv_input_grad(grad_output, weight, tuple(input_size)[-n:], step, margin, spread, groups)

    conv_input.__name__ = conv_input.__qualname__ = f"conv{n}d_input"
    conv_input.__doc__ = f"""dx[n, c, p stride - padding + k dilation] += dy[n, o, p] w[o, c, k], conv{n}d's input.

    The gradient of the input from that of the output, dy (`grad_output`); `input_size`: its shape.

    >>> w, dy = rushlight.ones(1, 1, {", ".join("3" * n)}), rushlight.ones(1, 1, {", ".join("2" * n)})
    >>> rushlight.nn.grad.conv{n}d_input((1, 1, {", ".join("4" * n)}), w, dy).sum() == {6**n}
    tensor(True)
    """
    return conv_input


def of_weight(n: int) -> Callable:
    """conv1d_weight, conv2d_weight or conv3d_weight."""

    def conv_weight(
        input: Tensor, weight_size: Any, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:  # fmt: skip
        step, margin, spread = (each(v, n) for v in (stride, padding, dilation))
        return conv_weight_grad(grad_output, input, tuple(weight_size)[-n:], step, margin, spread, groups)

    conv_weight.__name__ = conv_weight.__qualname__ = f"conv{n}d_weight"
    conv_weight.__doc__ = f"""dw[o, c, k] = sum of dy[n, o, p] x[n, c, p stride - padding + k dilation], conv{n}d's weight.

    The gradient of the weight from that of the output, dy (`grad_output`); `weight_size`: its shape.

    >>> x, dy = rushlight.ones(1, 1, {", ".join("4" * n)}), rushlight.ones(1, 1, {", ".join("2" * n)})
    >>> rushlight.nn.grad.conv{n}d_weight(x, (1, 1, {", ".join("3" * n)}), dy).flatten()[0] == {2**n}
    tensor(True)
    """  # noqa: E501
    return conv_weight


conv1d_input, conv2d_input, conv3d_input = (of_input(n) for n in (1, 2, 3))
conv1d_weight, conv2d_weight, conv3d_weight = (of_weight(n) for n in (1, 2, 3))
