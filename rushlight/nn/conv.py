"""Convolutions in one, two and three dimensions."""

from __future__ import annotations

import math
from typing import Any

from rushlight.base.errors import value_error
from rushlight.core.tensor import Tensor
from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.functional.size_arguments import each
from rushlight.nn.layer_settings import uninitialized
from rushlight.nn.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.ops.nn.conv import convolution

MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """The base of all convolutions. weight: (out, in / groups, *kernel); transposed: (in, out / groups, *kernel)."""

    _n = 2  # spatial dimensions
    weight: Parameter
    bias: Parameter | None
    _derived = ("_reversed_padding_repeated_twice",)

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
        transposed: bool, output_padding: Any, groups: int, bias: bool, padding_mode: str, device: Any, dtype: Any,
    ):  # fmt: skip
        super().__init__()
        check(in_channels, out_channels, groups, padding_mode)
        n = self._n
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride, self.dilation = each(kernel_size, n), each(stride, n), each(dilation, n)
        self.padding = padding if isinstance(padding, str) else each(padding, n)
        self.transposed, self.output_padding, self.padding_mode = transposed, each(output_padding, n), padding_mode
        if isinstance(padding, str):
            check_words(padding, self.stride)
        first, second = (in_channels, out_channels) if transposed else (out_channels, in_channels)
        self.weight = uninitialized(first, second // groups, *self.kernel_size, dtype=dtype, device=device)
        self.register_parameter("bias", uninitialized(out_channels, dtype=dtype, device=device) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weight, then the bias, uniform in [-k, k), k = 1 / sqrt(fan_in)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            inputs, _ = init.fans(self.weight)
            if inputs:
                bound = 1 / math.sqrt(inputs)
                init.uniform_(self.bias, -bound, bound)

    @property
    def _reversed_padding_repeated_twice(self) -> list[int]:
        """The padding in the form that `F.pad` takes."""
        if not isinstance(self.padding, str):
            return [p for p in reversed(self.padding) for _ in range(2)]
        total = [d * (k - 1) if self.padding == "same" else 0 for d, k in zip(self.dilation, self.kernel_size)]
        return [part for t in reversed(total) for part in (t // 2, t - t // 2)]

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        settings = self.__dict__
        padding, stride, dilation, groups = (settings[key] for key in ("padding", "stride", "dilation", "groups"))
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, self.padding_mode)
            padding = (0,) * self._n
        if isinstance(input, Tensor) and input._array.ndim == self._n + 2 and not isinstance(padding, str):
            return convolution(input, weight, bias, stride, padding, dilation, groups)
        conv = getattr(F, f"conv{self._n}d")  # looked up at each call: autocast may wrap it
        return conv(input, weight, bias, stride, padding, dilation, groups)

    def forward(self, input: Tensor) -> Tensor:
        try:
            own: dict[str, Any] = self._parameters
            weight, bias = own["weight"], own["bias"]
        except (
            KeyError,
            AttributeError,
        ):  # no fast path: `weight` may not be a parameter (weight norm), or `self` not a Module
            weight, bias = self.weight, self.bias
        return self._conv_forward(input, weight, bias)

    def extra_repr(self) -> str:
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        usual = {"padding": (0,) * self._n, "dilation": (1,) * self._n, "output_padding": (0,) * self._n, "groups": 1}
        parts += [f"{name}={getattr(self, name)}" for name, value in usual.items() if getattr(self, name) != value]
        parts += ["bias=False"] if self.bias is None else []
        parts += [f"padding_mode={self.padding_mode}"] if self.padding_mode != "zeros" else []
        return ", ".join(parts)


def check(in_channels: int, out_channels: int, groups: int, padding_mode: str) -> None:
    """ValueError for invalid channels, groups or mode."""
    if groups <= 0:
        raise value_error("groups must be a positive integer")
    if in_channels % groups:
        raise value_error("in_channels must be divisible by groups")
    if out_channels % groups:
        raise value_error("out_channels must be divisible by groups")
    if padding_mode not in MODES:
        raise value_error(f"padding_mode must be one of {set(MODES)}, but got padding_mode='{padding_mode}'")


def check_words(padding: str, stride: tuple[int, ...]) -> None:
    if padding not in ("same", "valid"):
        raise value_error(f"Invalid padding string {padding!r}, should be one of {{'same', 'valid'}}")
    if padding == "same" and any(s != 1 for s in stride):
        raise value_error("padding='same' is not supported for strided convolutions")


class _Plain(_ConvNd):
    """A convolution's constructor."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device: Any = None,
        dtype: Any = None,
    ):  # fmt: skip
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, False, 0, groups, bias, padding_mode,
            device, dtype,
        )  # fmt: skip


class Conv1d(_Plain):
    """out[n, o, p] = b[o] + sum over c, k of x[n, c, p stride - padding + k dilation] w[o, c, k]: (N, C, L) or (C, L).

    Settings as `nn.functional.conv1d`, and `padding_mode` as `F.pad`. Weight (O, C / groups, K) and bias (O,) begin
    uniform in [-k, k), k = 1 / sqrt(C K / groups).

    >>> rushlight.nn.Conv1d(16, 33, 3, stride=2)(rushlight.ones(20, 16, 50)).shape
    torch.Size([20, 33, 24])
    """

    _n = 1


class Conv2d(_Plain):
    """out[n, o, p] = b[o] + sum over c, k of x[n, c, p stride - padding + k dilation] w[o, c, k]: (N, C, H, W) or (C,
    H, W).

    Settings as `nn.functional.conv2d`, and `padding_mode` as `F.pad`. Weight (O, C / groups, *kernel) and bias (O,)
    begin uniform in [-k, k), k = 1 / sqrt(C prod(kernel) / groups).

    >>> conv = rushlight.nn.Conv2d(1, 2, 3, padding=1)
    >>> conv(rushlight.ones(1, 1, 4, 4)).shape, conv.weight.shape
    (torch.Size([1, 2, 4, 4]), torch.Size([2, 1, 3, 3]))
    """

    _n = 2


class Conv3d(_Plain):
    """out[n, o, p] = b[o] + sum over c, k of x[n, c, p stride - padding + k dilation] w[o, c, k]: (N, C, D, H, W).

    Settings as `nn.functional.conv3d`, and `padding_mode` as `F.pad`.

    >>> rushlight.nn.Conv3d(1, 2, kernel_size=(1, 2, 2))(rushlight.ones(1, 1, 4, 4, 4)).shape
    torch.Size([1, 2, 4, 3, 3])
    """

    _n = 3


class _ConvTransposeNd(_ConvNd):
    """A transposed convolution's constructor and forward."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        output_padding: Any = 0, groups: int = 1, bias: bool = True, dilation: Any = 1, padding_mode: str = "zeros",
        device: Any = None, dtype: Any = None,
    ):  # fmt: skip
        if padding_mode != "zeros":
            raise value_error(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, True, output_padding, groups, bias,
            padding_mode, device, dtype,
        )  # fmt: skip

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        extra = self.output_padding if output_size is None else self._output_padding(input, list(output_size))
        transposed = getattr(F, f"conv_transpose{self._n}d")
        return transposed(input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation)

    def _output_padding(self, input: Tensor, size: list[int]) -> tuple[int, ...]:
        """The output padding for an output of this size. ValueError if this size is not possible."""
        n = self._n
        if len(size) == input.dim():
            size = size[-n:]
        if len(size) != n:
            raise value_error(
                f"{type(self).__name__}: for {input.dim()}D input, output_size must have {n} or {input.dim()} "
                f"elements (got {len(size)})"
            )
        least = [
            (i - 1) * s - 2 * p + d * (k - 1) + 1
            for i, s, p, d, k in zip(
                input._array.shape[-n:], self.stride, each(self.padding, n), self.dilation, self.kernel_size
            )
        ]
        most = [m + s - 1 for m, s in zip(least, self.stride)]
        if any(not a <= m <= b for a, m, b in zip(least, size, most)):
            raise value_error(
                f"requested an output size of {size}, but valid sizes range from {least} to {most} (for an input "
                f"of {input.shape[2:]})"
            )
        return tuple(m - a for m, a in zip(size, least))


class ConvTranspose1d(_ConvTransposeNd):
    """out[n, c, p stride - padding + k dilation] += x[n, o, p] w[o, c, k], + b[c]: Conv1d transposed.

    Settings as `nn.functional.conv_transpose1d`.

    >>> rushlight.nn.ConvTranspose1d(2, 1, 2, stride=2)(rushlight.ones(1, 2, 3)).shape
    torch.Size([1, 1, 6])
    """

    _n = 1


class ConvTranspose2d(_ConvTransposeNd):
    """out[n, c, p stride - padding + k dilation] += x[n, o, p] w[o, c, k], + b[c]: Conv2d transposed.

    Settings as `nn.functional.conv_transpose2d`; weight (in_channels, out_channels / groups, *kernel).

    >>> rushlight.nn.ConvTranspose2d(2, 1, 2, stride=2)(rushlight.ones(1, 2, 3, 3)).shape
    torch.Size([1, 1, 6, 6])
    """

    _n = 2


class ConvTranspose3d(_ConvTransposeNd):
    """out[n, c, p stride - padding + k dilation] += x[n, o, p] w[o, c, k], + b[c]: Conv3d transposed.

    Settings as `nn.functional.conv_transpose3d`.

    >>> rushlight.nn.ConvTranspose3d(2, 1, 2, stride=2)(rushlight.ones(1, 2, 3, 3, 3)).shape
    torch.Size([1, 1, 6, 6, 6])
    """

    _n = 3
