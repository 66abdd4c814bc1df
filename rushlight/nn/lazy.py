"""Modules that learn their input's size from the first input that they see."""
from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.autograd.grad_mode import no_grad
from rushlight.nn.conv import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    _ConvNd,
    check,
)
from rushlight.nn.hooks import CALLED
from rushlight.nn.linear import Linear
from rushlight.nn.normalization import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    _NormBase,
)
from rushlight.nn.parameter import UninitializedBuffer, UninitializedParameter, is_lazy
from rushlight.tensor import Tensor, from_array


class LazyModuleMixin:
    """The part of a module whose parameters get their shapes at the first call, or from a state that is loaded.

    A class with it defines `initialize_parameters(*args)`, which is given the arguments of the first call and
    materializes the parameters; the module then becomes one of `cls_to_become`. Until then parameters are
    UninitializedParameters, which have no elements. Make optimizers and copy states once they have.
    """

    cls_to_become: type | None = None
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        hang = self.register_forward_pre_hook  # type: ignore[attr-defined]
        self._initialize_hook = hang(infer_parameters, with_kwargs=True)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Materialize the parameters for these arguments of forward. Every lazy class defines it."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self) -> bool:
        """Whether the shape of a parameter or buffer is still open."""
        return any(is_lazy(t) for t in (*self._parameters.values(), *self._buffers.values()))


def infer_parameters(module: Any, args: tuple, kwargs: dict) -> None:
    """Before the first forward: give the parameters shapes, and make the module an ordinary one."""
    module.initialize_parameters(*args, **kwargs)
    if module.has_uninitialized_params():
        raise RuntimeError(f"module {module._get_name()} has not been fully initialized: initialize_parameters must "
                           "materialize every parameter and buffer")
    module._initialize_hook.remove()
    del module._initialize_hook
    if not any([getattr(module, kind) for kind in CALLED]):
        del module._hooked                        # calls go straight to forward again
    if module.cls_to_become is not None:
        module.__class__ = module.cls_to_become


def waiting(wanted: bool, dtype: Any, device: Any) -> UninitializedParameter | None:
    """A parameter whose shape is open, or None for one that is not wanted."""
    return UninitializedParameter(dtype=dtype, device=device) if wanted else None


# -- linear ------------------------------------------------------------------------------------------------------------

class LazyLinear(LazyModuleMixin, Linear):
    """A Linear whose `in_features` is the last dimension of the first input.

    >>> m = rushlight.nn.LazyLinear(3)
    >>> m(rushlight.ones(4, 2)).shape
    torch.Size([4, 3])
    >>> m
    Linear(in_features=2, out_features=3, bias=True)
    """

    cls_to_become = Linear

    def __init__(self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None):
        super().__init__(0, 0, False, device, dtype)
        self.out_features = out_features
        self.weight = waiting(True, dtype, device)  # type: ignore[assignment]
        self.bias = waiting(bias, dtype, device)

    def reset_parameters(self) -> None:
        """Draw weight and bias, once their shapes are known."""
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Weight (out_features, last dimension of the input) and bias, drawn."""
        size = input.array.shape[-1]
        if self.has_uninitialized_params():
            with no_grad():
                self.in_features = size
                self.weight.materialize((self.out_features, size))  # type: ignore[attr-defined]
                if self.bias is not None:
                    self.bias.materialize((self.out_features,))  # type: ignore[attr-defined]
                self.reset_parameters()
        self.in_features = self.in_features or size


# -- convolution -------------------------------------------------------------------------------------------------------

class _LazyConv(LazyModuleMixin, _ConvNd):
    """What the lazy convolutions share: `in_channels` is the first input's."""

    def _wait(self, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        check(self.groups, out_channels, self.groups, self.padding_mode)
        self.out_channels = out_channels
        self.weight = waiting(True, dtype, device)  # type: ignore[assignment]
        self.bias = waiting(bias, dtype, device)

    def reset_parameters(self) -> None:
        """Draw weight and bias, once their shapes are known."""
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Weight and bias for as many channels as the input has. RuntimeError, ValueError for ones that cannot be."""
        if self.has_uninitialized_params():
            channels = self._channels(input)
            check(channels, self.out_channels, self.groups, self.padding_mode)
            self.in_channels = channels
            first, second = (channels, self.out_channels) if self.transposed else (self.out_channels, channels)
            self.weight.materialize((first, second // self.groups, *self.kernel_size))  # type: ignore[attr-defined]
            if self.bias is not None:
                self.bias.materialize((self.out_channels,))  # type: ignore[attr-defined]
            self.reset_parameters()
        self.in_channels = self.in_channels or self._channels(input)

    def _channels(self, input: Tensor) -> int:
        n, ndim = self.n, input.array.ndim
        if ndim not in (n + 1, n + 2):
            raise RuntimeError(f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {type(self).__name__}, "
                               f"but got input of size: {input.shape}")
        return input.array.shape[-n - 1]


class _LazyPlain(_LazyConv):
    """A lazy convolution's constructor."""

    def __init__(self, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
                 groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device: Any = None,
                 dtype: Any = None):
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device, dtype)
        self._wait(out_channels, bias, device, dtype)


class _LazyTransposed(_LazyConv):
    """A lazy transposed convolution's constructor."""

    def __init__(self, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
                 groups: int = 1, bias: bool = True, dilation: Any = 1, padding_mode: str = "zeros",
                 device: Any = None, dtype: Any = None):
        super().__init__(0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode,
                         device, dtype)
        self._wait(out_channels, bias, device, dtype)


class LazyConv1d(_LazyPlain, Conv1d):
    """A Conv1d whose `in_channels` is the first input's.

    >>> m = rushlight.nn.LazyConv1d(4, kernel_size=3)
    >>> m(rushlight.ones(1, 2, 5)).shape, m.in_channels
    (torch.Size([1, 4, 3]), 2)
    """

    cls_to_become = Conv1d


class LazyConv2d(_LazyPlain, Conv2d):
    """A Conv2d whose `in_channels` is the first input's.

    >>> m = rushlight.nn.LazyConv2d(4, kernel_size=3)
    >>> m(rushlight.ones(1, 2, 5, 5)).shape
    torch.Size([1, 4, 3, 3])
    >>> m.in_channels
    2
    """

    cls_to_become = Conv2d


class LazyConv3d(_LazyPlain, Conv3d):
    """A Conv3d whose `in_channels` is the first input's.

    >>> m = rushlight.nn.LazyConv3d(4, kernel_size=3)
    >>> m(rushlight.ones(1, 2, 5, 5, 5)).shape, m.in_channels
    (torch.Size([1, 4, 3, 3, 3]), 2)
    """

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyTransposed, ConvTranspose1d):
    """A ConvTranspose1d whose `in_channels` is the first input's.

    >>> m = rushlight.nn.LazyConvTranspose1d(4, kernel_size=3)
    >>> m(rushlight.ones(1, 2, 5)).shape, m.in_channels
    (torch.Size([1, 4, 7]), 2)
    """

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyTransposed, ConvTranspose2d):
    """A ConvTranspose2d whose `in_channels` is the first input's.

    >>> m = rushlight.nn.LazyConvTranspose2d(4, kernel_size=3)
    >>> m(rushlight.ones(1, 2, 5, 5)).shape, m.in_channels
    (torch.Size([1, 4, 7, 7]), 2)
    """

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyTransposed, ConvTranspose3d):
    """A ConvTranspose3d whose `in_channels` is the first input's.

    >>> m = rushlight.nn.LazyConvTranspose3d(4, kernel_size=3)
    >>> m(rushlight.ones(1, 2, 5, 5, 5)).shape, m.in_channels
    (torch.Size([1, 4, 7, 7, 7]), 2)
    """

    cls_to_become = ConvTranspose3d


# -- normalization -----------------------------------------------------------------------------------------------------

class _LazyNorm(LazyModuleMixin, _NormBase):
    """What the lazy norms share: `num_features` is the first input's, of its dimension 1."""

    def __init__(self, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
                 track_running_stats: bool = True, device: Any = None, dtype: Any = None, *, bias: bool = True):
        super().__init__(0, eps, momentum, False, False, device, dtype)
        self.affine, self.track_running_stats = affine, track_running_stats
        self.weight, self.bias = waiting(affine, dtype, device), waiting(affine and bias, dtype, device)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(dtype=dtype, device=device)
            self.running_var = UninitializedBuffer(dtype=dtype, device=device)
            self.num_batches_tracked = from_array(np.zeros((), np.int64))

    def reset_parameters(self) -> None:
        """Weight 1, bias 0, statistics forgotten, once their shapes are known."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Everything as long as the input has channels."""
        if self.has_uninitialized_params():
            self.num_features = input.array.shape[1]
            for t in (self.weight, self.bias, self.running_mean, self.running_var):
                if t is not None:
                    t.materialize((self.num_features,))  # type: ignore[attr-defined]
            self.reset_parameters()


class LazyBatchNorm1d(_LazyNorm, BatchNorm1d):
    """A BatchNorm1d whose `num_features` is the first input's.

    >>> m = rushlight.nn.LazyBatchNorm1d()
    >>> m(rushlight.ones(4, 3)).shape
    torch.Size([4, 3])
    >>> m
    BatchNorm1d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
    """

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNorm, BatchNorm2d):
    """A BatchNorm2d whose `num_features` is the first input's.

    >>> m = rushlight.nn.LazyBatchNorm2d()
    >>> _ = m(rushlight.ones(2, 3, 4, 4))
    >>> m.num_features
    3
    """

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNorm, BatchNorm3d):
    """A BatchNorm3d whose `num_features` is the first input's.

    >>> m = rushlight.nn.LazyBatchNorm3d()
    >>> _ = m(rushlight.ones(2, 3, 4, 4, 4))
    >>> m.num_features
    3
    """

    cls_to_become = BatchNorm3d


class LazyInstanceNorm1d(_LazyNorm, InstanceNorm1d):
    """An InstanceNorm1d whose `num_features` is the first input's, with weight, bias and running statistics unless told.

    >>> m = rushlight.nn.LazyInstanceNorm1d()
    >>> _ = m(rushlight.ones(2, 3, 4))
    >>> m.num_features, m.weight.shape
    (3, torch.Size([3]))
    """

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyNorm, InstanceNorm2d):
    """An InstanceNorm2d whose `num_features` is the first input's, with weight, bias and running statistics unless told.

    >>> m = rushlight.nn.LazyInstanceNorm2d()
    >>> _ = m(rushlight.ones(2, 3, 4, 4))
    >>> m.num_features, m.weight.shape
    (3, torch.Size([3]))
    """

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyNorm, InstanceNorm3d):
    """An InstanceNorm3d whose `num_features` is the first input's, with weight, bias and running statistics unless told.

    >>> m = rushlight.nn.LazyInstanceNorm3d()
    >>> _ = m(rushlight.ones(2, 3, 4, 4, 4))
    >>> m.num_features, m.weight.shape
    (3, torch.Size([3]))
    """

    cls_to_become = InstanceNorm3d
