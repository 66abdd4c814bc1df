"""Blocks that vision models are built of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rushlight import nn
from rushlight.base.errors import value_error
from rushlight.core.tensor import Tensor
from rushlight.creation.factories import empty, ones, zeros


class Conv2dNormActivation(nn.Sequential):
    """out = activation(norm(conv(x))): a convolution that keeps the size at stride 1; a layer that is None is left out.

    >>> rushlight.vision.ops.Conv2dNormActivation(3, 8)(rushlight.ones(1, 3, 6, 6)).shape
    torch.Size([1, 8, 6, 6])
    """

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int = 3, stride: int = 1, padding: int | None = None,
        groups: int = 1, norm_layer: Callable[..., nn.Module] | None = nn.BatchNorm2d,
        activation_layer: Callable[..., nn.Module] | None = nn.ReLU, dilation: int = 1, inplace: bool | None = True,
        bias: bool | None = None,
    ):  # fmt: skip
        around = (kernel_size - 1) // 2 * dilation if padding is None else padding
        biased = norm_layer is None if bias is None else bias
        layers: list[nn.Module] = [
            nn.Conv2d(in_channels, out_channels, kernel_size, stride, around, dilation, groups, bias=biased)
        ]
        layers += [norm_layer(out_channels)] if norm_layer is not None else []
        if activation_layer is not None:
            layers.append(activation_layer() if inplace is None else activation_layer(inplace=inplace))
        super().__init__(*layers)
        self.out_channels = out_channels


class SqueezeExcitation(nn.Module):
    """out = x sigmoid(W2 relu(W1 mean(x))): each channel times a weight, found from the channels' means.

    J. Hu et al., *Squeeze-and-excitation networks*, 2018.

    >>> rushlight.vision.ops.SqueezeExcitation(4, 2)(rushlight.ones(1, 4, 5, 5)).shape
    torch.Size([1, 4, 5, 5])
    """

    def __init__(
        self, input_channels: int, squeeze_channels: int, activation: Callable[..., nn.Module] = nn.ReLU,
        scale_activation: Callable[..., nn.Module] = nn.Sigmoid,
    ):  # fmt: skip
        super().__init__()
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc1 = nn.Conv2d(input_channels, squeeze_channels, 1)
        self.fc2 = nn.Conv2d(squeeze_channels, input_channels, 1)
        self.activation, self.scale_activation = activation(), scale_activation()

    def forward(self, input: Tensor) -> Tensor:
        return self.scale_activation(self.fc2(self.activation(self.fc1(self.avgpool(input))))) * input


class MLP(nn.Sequential):
    """Linear layers of `hidden_channels`, each but the last with norm, activation and dropout; dropout at the end.

    >>> rushlight.vision.ops.MLP(4, [8, 2])(rushlight.ones(5, 4)).shape
    torch.Size([5, 2])
    """

    def __init__(
        self, in_channels: int, hidden_channels: Sequence[int], norm_layer: Callable[..., nn.Module] | None = None,
        activation_layer: Callable[..., nn.Module] | None = nn.ReLU, inplace: bool | None = None, bias: bool = True,
        dropout: float = 0.0,
    ):  # fmt: skip
        how: dict[str, Any] = {} if inplace is None else {"inplace": inplace}
        layers: list[nn.Module] = []
        for width in hidden_channels[:-1]:
            layers.append(nn.Linear(in_channels, width, bias=bias))
            layers += [norm_layer(width)] if norm_layer is not None else []
            layers += [activation_layer(**how)] if activation_layer is not None else []
            layers.append(nn.Dropout(dropout, **how))
            in_channels = width
        super().__init__(*layers, nn.Linear(in_channels, hidden_channels[-1], bias=bias), nn.Dropout(dropout, **how))


class Permute(nn.Module):
    """out = x.permute(dims): the dimensions in another order.

    >>> rushlight.vision.ops.Permute([0, 2, 1])(rushlight.ones(2, 3, 4)).shape
    torch.Size([2, 4, 3])
    """

    def __init__(self, dims: Sequence[int]):
        super().__init__()
        self.dims = list(dims)

    def forward(self, x: Tensor) -> Tensor:
        return x.permute(self.dims)


def stochastic_depth(input: Tensor, p: float, mode: str, training: bool = True) -> Tensor:
    """0 with probability p, else input / (1 - p): of the whole ('batch') or of each example ('row'). Huang et al. 2016.

    >>> rushlight.vision.ops.stochastic_depth(rushlight.ones(2), 0.5, "row", training=False)
    tensor([1., 1.])
    """
    if not 0.0 <= p <= 1.0:
        raise value_error(f"drop probability has to be between 0 and 1, but got {p}")
    if mode not in ("batch", "row"):
        raise value_error(f"mode has to be either 'batch' or 'row', but got {mode}")
    if not training or p == 0.0:
        return input
    shape = [input.shape[0] if mode == "row" else 1] + [1] * (input.ndim - 1)
    noise = empty(shape, dtype=input.dtype).bernoulli_(1.0 - p)
    return input * (noise.div_(1.0 - p) if p < 1.0 else noise)


class StochasticDepth(nn.Module):
    """out = stochastic_depth(x, p, mode) in training, else x.

    >>> rushlight.vision.ops.StochasticDepth(0.5, "row").eval()(rushlight.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, p: float, mode: str):
        super().__init__()
        self.p, self.mode = p, mode

    def forward(self, input: Tensor) -> Tensor:
        return stochastic_depth(input, self.p, self.mode, self.training)

    def __repr__(self) -> str:
        return f"StochasticDepth(p={self.p}, mode={self.mode})"


class FrozenBatchNorm2d(nn.Module):
    """(x - mean) / sqrt(var + eps) * weight + bias, all of them constants: batch norm that does not learn.

    >>> list(rushlight.vision.ops.FrozenBatchNorm2d(3).parameters())
    []
    """

    def __init__(self, num_features: int, eps: float = 1e-5):
        super().__init__()
        self.eps = eps
        for name, value in (
            ("weight", ones(num_features)),
            ("bias", zeros(num_features)),
            ("running_mean", zeros(num_features)),
            ("running_var", ones(num_features)),
        ):
            self.register_buffer(name, value)

    def forward(self, x: Tensor) -> Tensor:
        scale = self.weight * (self.running_var + self.eps).rsqrt()
        shift = self.bias - self.running_mean * scale
        return x * scale.reshape(1, -1, 1, 1) + shift.reshape(1, -1, 1, 1)

    def __repr__(self) -> str:
        return f"FrozenBatchNorm2d({self.weight.shape[0]}, eps={self.eps})"
