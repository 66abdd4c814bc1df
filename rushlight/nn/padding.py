"""Padding as modules. `padding`: one number, or (before, after) of the last dimension, then of the dimension before it,
..."""

from __future__ import annotations

from typing import Any

from rushlight.base.errors import value_error
from rushlight.core.tensor import Tensor
from rushlight.nn import functional as F
from rushlight.nn.functional.size_arguments import each
from rushlight.nn.module import Module


class _PadNd(Module):
    """Padding of the last n dimensions, in one mode."""

    _n, _mode = 1, "constant"

    def __init__(self, padding: Any):
        super().__init__()
        self.padding = each(padding, 2 * self._n, "padding")

    def forward(self, input: Tensor) -> Tensor:
        if self._mode == "circular" and input._array.ndim not in (self._n + 1, self._n + 2):
            raise value_error(f"expected {self._n + 1}D or {self._n + 2}D input (got {input._array.ndim}D input)")
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPadNd(_PadNd):
    """Padding with a number."""

    def __init__(self, padding: Any, value: float):
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ZeroPadNd(_ConstantPadNd):
    """Padding with 0."""

    def __init__(self, padding: Any):
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ConstantPad1d(_ConstantPadNd):
    """out[..., i] = x[..., i - before], `value` outside: the last dimension padded with a number.

    >>> rushlight.nn.ConstantPad1d((1, 2), 9.)(rushlight.tensor([[1., 2.]]))
    tensor([[9., 1., 2., 9., 9.]])
    """


class ConstantPad2d(_ConstantPadNd):
    """out[..., i, j] = x[..., i - top, j - left], `value` outside; padding (left, right, top, bottom), or one for all.

    >>> rushlight.nn.ConstantPad2d((0, 1, 1, 0), 9.)(rushlight.tensor([[[1., 2.]]]))
    tensor([[[9., 9., 9.],
             [1., 2., 9.]]])
    """

    _n = 2


class ConstantPad3d(_ConstantPadNd):
    """out[..., i, j, k] = x[..., i - front, j - top, k - left], `value` outside; (left, right, top, bottom, front,
    back).

    >>> rushlight.nn.ConstantPad3d((0, 1, 0, 0, 0, 0), 9.)(rushlight.zeros(1, 1, 1, 2))
    tensor([[[[0., 0., 9.]]]])
    """

    _n = 3


class ZeroPad1d(_ZeroPadNd):
    """out[..., i] = x[..., i - before], 0 outside.

    >>> rushlight.nn.ZeroPad1d((1, 2))(rushlight.tensor([[1., 2.]]))
    tensor([[0., 1., 2., 0., 0.]])
    """


class ZeroPad2d(_ZeroPadNd):
    """out[..., i, j] = x[..., i - top, j - left], 0 outside; padding (left, right, top, bottom), or one for all.

    >>> rushlight.nn.ZeroPad2d(1)(rushlight.tensor([[[1., 2.]]]))
    tensor([[[0., 0., 0., 0.],
             [0., 1., 2., 0.],
             [0., 0., 0., 0.]]])
    """

    _n = 2


class ZeroPad3d(_ZeroPadNd):
    """out[..., i, j, k] = x[..., i - front, j - top, k - left], 0 outside; (left, right, top, bottom, front, back).

    >>> rushlight.nn.ZeroPad3d(1)(rushlight.ones(1, 2, 3, 4)).shape
    torch.Size([1, 4, 5, 6])
    """

    _n = 3


class _ReflectionPadNd(_PadNd):
    """The base of the layers with reflection padding, for isinstance."""


class ReflectionPad1d(_ReflectionPadNd):
    """out[..., i] = x[..., |i - before|], mirrored at the last element too; amounts must be less than the size.

    >>> rushlight.nn.ReflectionPad1d(2)(rushlight.tensor([[1., 2., 3.]]))
    tensor([[3., 2., 1., 2., 3., 2., 1.]])
    """

    _mode = "reflect"


class ReflectionPad2d(_ReflectionPadNd):
    """out[..., i, j] = x[..., |i - top|, |j - left|], mirrored at the last elements too; (left, right, top, bottom).

    >>> rushlight.nn.ReflectionPad2d((1, 1, 1, 0))(rushlight.tensor([[[1., 2.], [3., 4.]]]))
    tensor([[[4., 3., 4., 3.],
             [2., 1., 2., 1.],
             [4., 3., 4., 3.]]])
    """

    _n, _mode = 2, "reflect"


class ReflectionPad3d(_ReflectionPadNd):
    """out[..., i, j, k] = x[..., |i - front|, |j - top|, |k - left|], mirrored at the last elements too.

    `padding`: (left, right, top, bottom, front, back), or one number for all.

    >>> rushlight.nn.ReflectionPad3d((1, 1, 0, 0, 0, 0))(rushlight.arange(4.).reshape(1, 1, 2, 2))
    tensor([[[[1., 0., 1., 0.],
              [3., 2., 3., 2.]]]])
    """

    _n, _mode = 3, "reflect"


class _ReplicationPadNd(_PadNd):
    """The base of the layers with replication padding, for isinstance."""


class ReplicationPad1d(_ReplicationPadNd):
    """out[..., i] = x[..., min(max(i - before, 0), size - 1)]: the first and last element repeated.

    >>> rushlight.nn.ReplicationPad1d(2)(rushlight.tensor([[1., 2., 3.]]))
    tensor([[1., 1., 1., 2., 3., 3., 3.]])
    """

    _mode = "replicate"


class ReplicationPad2d(_ReplicationPadNd):
    """out[..., i, j] = x at the nearest place to (i - top, j - left); padding (left, right, top, bottom), or one for
    all.

    >>> rushlight.nn.ReplicationPad2d(1)(rushlight.tensor([[[1., 2.]]]))
    tensor([[[1., 1., 2., 2.],
             [1., 1., 2., 2.],
             [1., 1., 2., 2.]]])
    """

    _n, _mode = 2, "replicate"


class ReplicationPad3d(_ReplicationPadNd):
    """out[..., i, j, k] = x at the nearest place to (i - front, j - top, k - left); (left, right, top, bottom, front,
    back).

    >>> rushlight.nn.ReplicationPad3d((1, 1, 0, 0, 0, 0))(rushlight.arange(4.).reshape(1, 1, 2, 2))
    tensor([[[[0., 0., 1., 1.],
              [2., 2., 3., 3.]]]])
    """

    _n, _mode = 3, "replicate"


class _CircularPadNd(_PadNd):
    """The base of the layers with circular padding, for isinstance."""


class CircularPad1d(_CircularPadNd):
    """out[..., i] = x[..., (i - before) mod size]: continued from the other end.

    >>> rushlight.nn.CircularPad1d(2)(rushlight.tensor([[1., 2., 3.]]))
    tensor([[2., 3., 1., 2., 3., 1., 2.]])
    """

    _mode = "circular"


class CircularPad2d(_CircularPadNd):
    """out[..., i, j] = x[..., (i - top) mod H, (j - left) mod W]; padding (left, right, top, bottom), or one for all.

    >>> rushlight.nn.CircularPad2d((1, 1, 1, 0))(rushlight.tensor([[[1., 2.], [3., 4.]]]))
    tensor([[[4., 3., 4., 3.],
             [2., 1., 2., 1.],
             [4., 3., 4., 3.]]])
    """

    _n, _mode = 2, "circular"


class CircularPad3d(_CircularPadNd):
    """out[..., i, j, k] = x[..., (i - front) mod D, (j - top) mod H, (k - left) mod W].

    `padding`: (left, right, top, bottom, front, back), or one number for all.

    >>> rushlight.nn.CircularPad3d((1, 1, 0, 0, 0, 0))(rushlight.arange(4.).reshape(1, 1, 2, 2))
    tensor([[[[1., 0., 1., 0.],
              [3., 2., 3., 2.]]]])
    """

    _n, _mode = 3, "circular"
