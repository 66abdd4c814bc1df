"""Pooling as modules."""

from __future__ import annotations

from typing import Any

from rushlight.base.errors import value_error
from rushlight.core.tensor import Tensor
from rushlight.nn import functional as F
from rushlight.nn.functional.size_arguments import each
from rushlight.nn.layer_settings import Layer


class _MaxPoolNd(
    Layer,
    function=F.max_pool2d,
    settings="kernel_size stride padding dilation return_indices ceil_mode",
    shows="kernel_size stride padding dilation ceil_mode",
    unless={"stride": "kernel_size"},
):
    """Maxima over windows; settings as `nn.functional.max_pool2d`."""


class MaxPool1d(_MaxPoolNd, function=F.max_pool1d):
    """out[n, c, p] = max over k of x[n, c, p stride - padding + k dilation]: maxima over windows of (N, C, L) or (C,
    L).

    >>> rushlight.nn.MaxPool1d(2)(rushlight.tensor([[1., 5., 2., 3.]]))
    tensor([[5., 3.]])
    """


class MaxPool2d(_MaxPoolNd, function=F.max_pool2d):
    """out[n, c, p] = max over k of x[n, c, p stride - padding + k dilation]: maxima over windows of (N, C, H, W).

    (C, H, W) is one sample. `stride`: default the kernel's size; `return_indices`: (maxima, their indices), for
    `MaxUnpool2d`.

    >>> rushlight.nn.MaxPool2d(2)(rushlight.tensor([[[1., 5., 2., 3.], [0., 4., 8., 6.]]]))
    tensor([[[5., 8.]]])
    """


class MaxPool3d(_MaxPoolNd, function=F.max_pool3d):
    """out[n, c, p] = max over k of x[n, c, p stride - padding + k dilation]: maxima over windows of (N, C, D, H, W).

    >>> rushlight.nn.MaxPool3d(2)(rushlight.arange(8.).reshape(1, 2, 2, 2))
    tensor([[[[7.]]]])
    """


class _MaxUnpoolNd(Layer, shows="kernel_size stride padding"):
    """The base of MaxUnpool: the inverse of `MaxPool(return_indices=True)`."""

    _n = 2

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0):
        kernel = each(kernel_size, self._n)
        super().__init__(
            kernel_size=kernel,
            stride=kernel if stride is None else each(stride, self._n),
            padding=each(padding, self._n),
        )

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        return type(self)._function(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool1d(_MaxUnpoolNd, function=F.max_unpool1d):
    """out[n, c, indices[n, c, p]] = x[n, c, p], 0 elsewhere: maxima go back where `MaxPool1d` found them.

    >>> maxima, indices = rushlight.nn.MaxPool1d(2, return_indices=True)(rushlight.tensor([[1., 5., 3., 2.]]))
    >>> rushlight.nn.MaxUnpool1d(2)(maxima, indices)
    tensor([[0., 5., 3., 0.]])
    """

    _n = 1


class MaxUnpool2d(_MaxUnpoolNd, function=F.max_unpool2d):
    """out[n, c, indices[n, c, p]] = x[n, c, p], 0 elsewhere: maxima go back where `MaxPool2d` found them.

    >>> maxima, indices = rushlight.nn.MaxPool2d(2, return_indices=True)(rushlight.tensor([[[1., 5.], [3., 2.]]]))
    >>> rushlight.nn.MaxUnpool2d(2)(maxima, indices)
    tensor([[[0., 5.],
             [0., 0.]]])
    """

    _n = 2


class MaxUnpool3d(_MaxUnpoolNd, function=F.max_unpool3d):
    """out[n, c, indices[n, c, p]] = x[n, c, p], 0 elsewhere: maxima go back where `MaxPool3d` found them.

    >>> maxima, indices = rushlight.nn.MaxPool3d(2, return_indices=True)(rushlight.arange(8.).reshape(1, 2, 2, 2))
    >>> rushlight.nn.MaxUnpool3d(2)(maxima, indices).flatten()
    tensor([0., 0., 0., 0., 0., 0., 0., 7.])
    """

    _n = 3


class _AvgPoolNd(Layer, function=F.avg_pool2d, shows="kernel_size stride padding", unless={"stride": "kernel_size"}):
    """Means over windows; settings as `nn.functional.avg_pool2d`."""


class AvgPool1d(_AvgPoolNd, function=F.avg_pool1d):
    """out[n, c, p] = mean over k of x[n, c, p stride - padding + k]: means over windows of (N, C, L) or (C, L).

    >>> rushlight.nn.AvgPool1d(2)(rushlight.tensor([[1., 5., 2., 3.]]))
    tensor([[3.0000, 2.5000]])
    """

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True,
    ):  # fmt: skip
        kernel = each(kernel_size, 1)
        super().__init__(
            kernel_size=kernel, stride=kernel if stride is None else each(stride, 1), padding=each(padding, 1),
            ceil_mode=ceil_mode, count_include_pad=count_include_pad,
        )  # fmt: skip


class AvgPool2d(_AvgPoolNd, function=F.avg_pool2d):
    """out[n, c, p] = mean over k of x[n, c, p stride - padding + k]: means over windows of (N, C, H, W) or (C, H, W).

    >>> rushlight.nn.AvgPool2d(2)(rushlight.tensor([[[1., 5., 2., 3.], [0., 4., 8., 6.]]]))
    tensor([[[2.5000, 4.7500]]])
    """


class AvgPool3d(_AvgPoolNd, function=F.avg_pool3d):
    """out[n, c, p] = mean over k of x[n, c, p stride - padding + k]: means over windows of (N, C, D, H, W).

    >>> rushlight.nn.AvgPool3d(2)(rushlight.arange(8.).reshape(1, 2, 2, 2))
    tensor([[[[3.5000]]]])
    """


class _AdaptiveAvgPoolNd(Layer, function=F.adaptive_avg_pool2d):
    """Means of `output_size` nearly equal parts of each dimension; None keeps the input's size."""


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd, function=F.adaptive_avg_pool1d):
    """out[n, c, p] = mean of x[n, c, floor(p L / out):ceil((p + 1) L / out)], of (N, C, L) or (C, L).

    >>> rushlight.nn.AdaptiveAvgPool1d(2)(rushlight.tensor([[1., 2., 3.]]))  # of 1 and 2, of 2 and 3
    tensor([[1.5000, 2.5000]])
    """


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd, function=F.adaptive_avg_pool2d):
    """out[n, c, p] = mean of x[n, c, floor(p size / out):ceil((p + 1) size / out)], in H and W of (N, C, H, W) or (C,
    H, W).

    `output_size`: a number for both dimensions, or a pair. None keeps the input's size.

    >>> rushlight.nn.AdaptiveAvgPool2d((1, None))(rushlight.arange(6.).reshape(1, 2, 3))
    tensor([[[1.5000, 2.5000, 3.5000]]])
    """


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd, function=F.adaptive_avg_pool3d):
    """out[n, c, p] = mean of x[n, c, floor(p size / out):ceil((p + 1) size / out)], in D, H and W of (N, C, D, H, W).

    >>> rushlight.nn.AdaptiveAvgPool3d(1)(rushlight.arange(8.).reshape(1, 2, 2, 2))
    tensor([[[[3.5000]]]])
    """


class _AdaptiveMaxPoolNd(Layer, function=F.adaptive_max_pool2d, shows="output_size"):
    """Maxima of `output_size` nearly equal parts of each dimension; None keeps the input's size."""


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd, function=F.adaptive_max_pool1d):
    """out[n, c, p] = max of x[n, c, floor(p L / out):ceil((p + 1) L / out)], of (N, C, L) or (C, L).

    >>> rushlight.nn.AdaptiveMaxPool1d(2)(rushlight.tensor([[1., 2., 3.]]))
    tensor([[2., 3.]])
    """


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd, function=F.adaptive_max_pool2d):
    """out[n, c, p] = max of x[n, c, floor(p size / out):ceil((p + 1) size / out)], in H and W of (N, C, H, W) or (C, H,
    W).

    `output_size`: a number for both dimensions, or a pair. None keeps the input's size.

    >>> rushlight.nn.AdaptiveMaxPool2d((1, None))(rushlight.arange(6.).reshape(1, 2, 3))
    tensor([[[3., 4., 5.]]])
    """


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd, function=F.adaptive_max_pool3d):
    """out[n, c, p] = max of x[n, c, floor(p size / out):ceil((p + 1) size / out)], in D, H and W of (N, C, D, H, W).

    >>> rushlight.nn.AdaptiveMaxPool3d(1)(rushlight.arange(8.).reshape(1, 2, 2, 2))
    tensor([[[[7.]]]])
    """


class _LPPoolNd(Layer, function=F.lp_pool2d):
    """(sum over the window of x^p)^(1/p), p = norm_type."""

    def forward(self, input: Tensor) -> Tensor:
        return type(self)._function(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool1d(_LPPoolNd, function=F.lp_pool1d):
    """out = (sum over the window of x^p)^(1/p), p = norm_type: lengths over windows of (N, C, L) or (C, L).

    >>> rushlight.nn.LPPool1d(2, kernel_size=2)(rushlight.tensor([[3., 4., 5., 12.]]))
    tensor([[ 5., 13.]])
    """


class LPPool2d(_LPPoolNd, function=F.lp_pool2d):
    """out = (sum over the window of x^p)^(1/p), p = norm_type: lengths over windows of (N, C, H, W) or (C, H, W).

    >>> rushlight.nn.LPPool2d(2, kernel_size=2)(rushlight.ones(1, 2, 4))
    tensor([[[2., 2.]]])
    """


class LPPool3d(_LPPoolNd, function=F.lp_pool3d):
    """out = (sum over the window of x^p)^(1/p), p = norm_type: lengths over windows of (N, C, D, H, W) or (C, D, H, W).

    >>> rushlight.nn.LPPool3d(2, kernel_size=2)(rushlight.ones(1, 2, 2, 2))
    tensor([[[[2.8284]]]])
    """


class _FractionalMaxPoolNd(Layer, shows=""):
    """Maxima of windows that begin at random steps; an output size, or a ratio of output to input, but not both.

    ValueError without either, with both, and for a ratio outside (0, 1).
    """

    _n: int
    _random_samples: Tensor | None

    def __init__(
        self, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ):  # fmt: skip
        super().__init__()
        if output_size is None and output_ratio is None:
            raise value_error(f"{type(self).__name__} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise value_error("only one of output_size and output_ratio may be specified")
        self.kernel_size, self.return_indices = several(kernel_size, self._n), return_indices
        self.output_size = None if output_size is None else several(output_size, self._n)
        self.output_ratio = None if output_ratio is None else several(output_ratio, self._n)
        if self.output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise value_error(f"output_ratio must be between 0 and 1 (got {output_ratio})")
        self.register_buffer("_random_samples", _random_samples)


def several(value: Any, n: int) -> tuple:
    """One value for each of n dimensions."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * n


class FractionalMaxPool2d(_FractionalMaxPoolNd, function=F.fractional_max_pool2d):
    """out[n, c, p] = max over k of x[n, c, start(p) + k], with random starts, evenly spaced on average.

    Input (N, C, H, W) or (C, H, W). `output_size`, or `output_ratio` times the input's size; ValueError for both or
    neither. B. Graham, *Fractional max-pooling*, 2014.

    >>> rushlight.nn.FractionalMaxPool2d(3, output_ratio=0.5)(rushlight.ones(1, 1, 9, 7)).shape
    torch.Size([1, 1, 4, 3])
    """

    _n = 2


class FractionalMaxPool3d(_FractionalMaxPoolNd, function=F.fractional_max_pool3d):
    """out[n, c, p] = max over k of x[n, c, start(p) + k], with random starts, evenly spaced on average; (N, C, D, H,
    W).

    >>> rushlight.nn.FractionalMaxPool3d(3, output_size=2)(rushlight.ones(1, 1, 9, 9, 9)).shape
    torch.Size([1, 1, 2, 2, 2])
    """

    _n = 3
