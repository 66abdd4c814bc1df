"""Convolutions of one, two and three dimensions, their transposes, unfold and fold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.base import dtypes
from rushlight.base.errors import runtime_error, value_error
from rushlight.core.tensor import Tensor
from rushlight.kernels.float16 import is_half
from rushlight.nn.functional.padding import pad
from rushlight.nn.functional.size_arguments import check_filled, each, with_batch, without_batch
from rushlight.ops.composites import composite
from rushlight.ops.linalg.matmul_api import in_single
from rushlight.ops.math import elementwise as e
from rushlight.ops.nn.conv import col2im, conv_input_grad, convolution, im2col
from rushlight.ops.shape.views import permute, reshape
from rushlight.ops.tensor.node_names import called

LETTERS = {1: "L", 2: "H, W", 3: "D, H, W"}


def convolve(n: int) -> Callable:
    """conv1d, conv2d or conv3d."""
    name = f"conv{n}d"

    def conv(
        input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:  # fmt: skip
        x, added = (input, False) if input._array.ndim == n + 2 else with_batch(input, n, name)
        stride, dilation = each(stride, n, "stride"), each(dilation, n, "dilation")
        if isinstance(padding, str):
            check_weight(weight, n, name, input)
            x, padding = padded(x, padding, weight._array.shape[2:], stride, dilation)
        else:
            padding = each(padding, n, "padding")
        check_steps(stride, padding)
        check_weight(weight, n, name, input)
        check_bias(bias, weight._array.shape[0], name)
        check_dtypes(input, weight=weight, bias=bias)
        if added:
            check_channels_are_no_batch(input, weight, groups, name)
        out = convolution(x, weight, bias, stride, padding, dilation, groups)
        return without_batch(out, added) if added else out

    conv.__name__ = conv.__qualname__ = name
    conv.__doc__ = f"""out[n, o, p] = b[o] + sum over c, k of input[n, c, p stride - padding + k dilation] w[o, c, k].

    input (N, C, {LETTERS[n]}) or (C, {LETTERS[n]}), weight w (O, C / groups, *kernel), bias b (O,) -> (N, O, *out),
    out = (size + 2 padding - dilation (kernel - 1) - 1) // stride + 1. stride, padding, dilation: one number or one for
    each dimension; padding 'same' keeps the size (stride 1 only), 'valid' is 0. `groups`: channels in so many groups,
    each seeing its own. RuntimeError where channels, groups or sizes do not fit.

    >>> from rushlight.nn import functional as F
    >>> F.{name}(rushlight.ones(1, 1, {", ".join("4" * n)}), rushlight.ones(2, 1, {", ".join("3" * n)})).shape
    torch.Size([1, 2, {", ".join("2" * n)}])
    """
    return conv


def padded(x: Tensor, padding: str, kernel: tuple, stride: tuple, dilation: tuple) -> tuple[Tensor, tuple[int, ...]]:
    """(input, padding as numbers) for 'same' and 'valid'. An extra element that 'same' needs on one side is added to
    the input.
    """
    if padding == "valid":
        return x, (0,) * len(kernel)
    if padding != "same":
        raise value_error(f"Invalid padding string {padding!r}, should be one of {{'valid', 'same'}}")
    if any(s != 1 for s in stride):
        raise runtime_error("padding='same' is not supported for strided convolutions", "give numbers")
    total = [d * (k - 1) for k, d in zip(kernel, dilation)]
    if any(t % 2 for t in total):
        x = pad(x, [amount for t in reversed(total) for amount in (0, t % 2)])
    return x, tuple(t // 2 for t in total)


def check_steps(stride: tuple, padding: tuple) -> None:
    """RuntimeError for strides below 1 and paddings below 0."""
    if min(stride) < 1:
        raise runtime_error("non-positive stride is not supported", stride=stride)
    if min(padding) < 0:
        raise runtime_error(
            "negative padding is not supported", "crop the input: F.pad with negative amounts", padding=padding
        )


def check_dtypes(input: Tensor, **others: Tensor | None) -> None:
    """RuntimeError unless all have the input's dtype."""
    for name, t in others.items():
        if t is not None and t._array.dtype != input._array.dtype:
            raise runtime_error(
                f"Input type ({input.dtype}) and {name} type ({t.dtype}) should be the same",
                "convert the input, float64 is NumPy's default: x.float()"
                if input.dtype is dtypes.float64
                else "convert the integers to floating point: x.float()"
                if not (input.is_floating_point() or input.is_complex())
                else "convert one with .to(dtype)",
            )


def check_weight(weight: Tensor, n: int, name: str, input: Tensor) -> None:
    """RuntimeError unless the weight has n + 2 dimensions."""
    dims, shape = weight._array.ndim, list(weight.shape)
    if dims < 3:
        raise runtime_error(f"weight should have at least three dimensions, but has {dims}: {shape}", op=name)
    if dims != n + 2:
        raise runtime_error(
            f"Expected {dims}-dimensional input for {dims}-dimensional weight {shape}, but got "
            f"{input._array.ndim}-dimensional input of size {list(input.shape)} instead",
            f"a weight of {name} has {n + 2} dimensions: (out, in / groups, *kernel)",
            op=name,
        )


def check_channels_are_no_batch(input: Tensor, weight: Tensor, groups: int, name: str) -> None:
    """RuntimeError for an input (N, *size) without a channel dimension, which is read as (C, *size): a batch of grey
    pictures."""
    channels, wanted = input._array.shape[0], weight._array.shape[1] * groups
    if wanted == 1 != channels:
        raise runtime_error(
            f"Given groups={groups}, weight of size {list(weight.shape)}, expected input{list(input.shape)} to "
            f"have 1 channels, but got {channels} channels instead",
            f"{name} reads (channels, *size): for a batch of {channels} with one channel each, add the dimension: "
            "x.unsqueeze(1)",
        )


def check_bias(bias: Tensor | None, channels: int, name: str) -> None:
    """RuntimeError unless the bias has one number for each output channel."""
    if bias is not None and bias._array.shape != (channels,):
        raise runtime_error(
            f"{name}: expected bias to be 1-dimensional with {channels} elements, but got bias of size "
            f"{list(bias.shape)} instead"
        )


def convolve_transposed(n: int) -> Callable:
    """conv_transpose1d, conv_transpose2d or conv_transpose3d."""
    name = f"conv_transpose{n}d"

    def conv(
        input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
        output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
    ) -> Tensor:  # fmt: skip
        x, added = with_batch(input, n, name)
        check_weight(weight, n, name, input)
        # product and bias are rounded once
        if bias is not None and is_half(x._array) and bias.dtype is weight.dtype is x.dtype:
            return called(
                in_single(
                    lambda x, w, b: conv(x, w, b, stride, padding, output_padding, groups, dilation),
                    input,
                    weight,
                    bias,
                ),
                "ConvolutionBackward0",
            )
        stride, padding = each(stride, n, "stride"), each(padding, n, "padding")
        dilation, extra = each(dilation, n, "dilation"), each(output_padding, n, "output_padding")
        check_transposed(x, weight, stride, dilation, extra)
        whole = tuple(
            (i - 1) * s + d * (k - 1) + 1
            for i, s, d, k in zip(x._array.shape[2:], stride, dilation, weight._array.shape[2:])
        )
        size = tuple(m - 2 * p + o for m, p, o in zip(whole, padding, extra))
        if any(m < 1 for m in size):
            raise runtime_error(f"{name}: calculated output size {list(size)} is too small", "pad less")
        if all(o < s for o, s in zip(extra, stride)):
            out = conv_input_grad(x, weight, size, stride, padding, dilation, groups)
        else:  # convolving such an output would give more elements than x has: compute the whole output, then cut it
            out = conv_input_grad(x, weight, whole, stride, (0,) * n, dilation, groups)
            out = pad(out, [a for p, o in reversed(list(zip(padding, extra))) for a in (-p, o - p)])
        if bias is not None:
            check_bias(bias, out._array.shape[1], name)
            out = e.add(out, reshape(bias, (-1,) + (1,) * n))
        return without_batch(out, added)

    conv.__name__ = conv.__qualname__ = name
    conv.__doc__ = f"""out[n, c, p stride - padding + k dilation] += input[n, o, p] w[o, c, k]: conv{n}d transposed.

    input (N, O, {LETTERS[n]}) or (O, {LETTERS[n]}), weight w (O, C / groups, *kernel), bias (C,) -> (N, C, *out),
    out = (size - 1) stride - 2 padding + dilation (kernel - 1) + output_padding + 1. RuntimeError where these do not
    fit.

    >>> from rushlight.nn import functional as F
    >>> F.{name}(rushlight.ones(1, 2, {", ".join("2" * n)}), rushlight.ones(2, 1, {", ".join("3" * n)})).shape
    torch.Size([1, 1, {", ".join("4" * n)}])
    """
    return conv


def check_transposed(x: Tensor, weight: Tensor, stride: tuple, dilation: tuple, extra: tuple) -> None:
    """RuntimeError for a wrong number of channels, or an output padding that is too large."""
    channels, wanted = x._array.shape[1], weight._array.shape[0]
    if channels != wanted:
        raise runtime_error(
            f"Given transposed=1, weight of size {list(weight.shape)}, expected input{list(x.shape)} to have "
            f"{wanted} channels, but got {channels} channels instead",
            f"use in_channels={channels}, or an input with {wanted} channels (dimension 1)",
        )
    for o, s, d in zip(extra, stride, dilation):
        if o >= max(s, d):
            raise runtime_error(
                f"output padding must be smaller than either stride or dilation, but got output_padding={extra}, "
                f"stride={stride}, dilation={dilation}"
            )


conv1d, conv2d, conv3d = convolve(1), convolve(2), convolve(3)
conv_transpose1d, conv_transpose2d, conv_transpose3d = (convolve_transposed(n) for n in (1, 2, 3))


def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """Windows as columns: out[n, (c, i, j), (p, q)] = x[n, c, p s - pad + i d, q s - pad + j d], 0 on padding.

    (N, C, H, W) -> (N, C kh kw, L), or without N. RuntimeError if the input is smaller than a window.

    >>> from rushlight.nn import functional as F
    >>> F.unfold(rushlight.arange(9.).reshape(1, 1, 3, 3), kernel_size=2)  # a column for each of 4 windows
    tensor([[[0., 1., 3., 4.],
             [1., 2., 4., 5.],
             [3., 4., 6., 7.],
             [4., 5., 7., 8.]]])
    """
    check_filled(input, 2)
    x, added = with_batch(input, 2, "unfold")
    sizes = [
        each(v, 2, name)
        for v, name in ((kernel_size, "kernel_size"), (dilation, "dilation"), (padding, "padding"), (stride, "stride"))
    ]
    return without_batch(im2col(x, *sizes), added)


def fold(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """out[n, c, h, w] = sum of the elements that `unfold` takes from [n, c, h, w]: (N, C kh kw, L) -> (N, C,
    *output_size).

    Both may lack N. RuntimeError for columns that do not match the output size.

    >>> from rushlight.nn import functional as F
    >>> F.fold(rushlight.ones(1, 4, 4), output_size=3, kernel_size=2)  # how many windows meet at each place
    tensor([[[[1., 2., 1.],
              [2., 4., 2.],
              [1., 2., 1.]]]])
    """
    check_filled(input, 1)
    x, added = with_batch(input, 1, "fold")
    sizes = [
        each(v, 2, name)
        for v, name in (
            (output_size, "output_size"),
            (kernel_size, "kernel_size"),
            (dilation, "dilation"),
            (padding, "padding"),
            (stride, "stride"),
        )
    ]
    return without_batch(col2im(x, *sizes), added)


@composite(tensor=False)
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """out[t, n, o] = b[o] + sum over k, c of input[t - pad + k, n, c] w[k, c, o]: conv1d with time first.

    input (T, N, C), weight (kernel, C, O), bias (O,) -> (T + 2 pad - kernel + 1, N, O). RuntimeError for shapes that do
    not match.

    >>> from rushlight.nn import functional as F
    >>> F.conv_tbc(rushlight.ones(5, 1, 2), rushlight.ones(3, 2, 4), rushlight.zeros(4)).shape
    torch.Size([3, 1, 4])
    """
    x, w = input._array.shape, weight._array.shape
    if len(x) != 3:
        raise runtime_error("Input must have 3 dims: time, batch, in_channel", shape=x)
    if len(w) != 3:
        raise runtime_error("Weight tensor must have 3 dims: kernel_width, in_channels, out_channels.", shape=w)
    if bias._array.ndim != 1:
        raise runtime_error("Bias must be 1-D", shape=tuple(bias.shape))
    if x[2] != w[1]:
        raise runtime_error("Input dim 2 (input channels) is not == dim 1 in the weight tensor", input=x, weight=w)
    if w[2] != bias._array.shape[0]:
        raise runtime_error("Bias size must equal dim 2 in the weight tensor (output channels).", weight=w)
    return permute(conv1d(permute(input, (1, 2, 0)), permute(weight, (2, 1, 0)), bias, padding=pad), (2, 0, 1))
