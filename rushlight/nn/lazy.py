"""Modules whose input size is taken from the first input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.base.errors import not_implemented_error, runtime_error
from rushlight.core.tensor import Tensor
from rushlight.nn.conv import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d, _ConvNd, check
from rushlight.nn.hooks import CALLED
from rushlight.nn.layer_settings import header, parameters_of, written
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
from rushlight.ops.grad_mode import no_grad


class LazyModuleMixin:
    """A mixin for modules whose parameters get their shapes at the first call, or from a loaded state dict.

    A subclass defines `initialize_parameters(*args)`, which gets the arguments of the first call and materializes the
    parameters. Then the module's class becomes `cls_to_become`. Until then, parameters are UninitializedParameters,
    which have no elements. Create optimizers and copy states only after the first call."""

    cls_to_become: type | None = None
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    register_forward_pre_hook: Callable  # of Module

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._initialize_hook = self.register_forward_pre_hook(infer_parameters, with_kwargs=True)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Materialize the parameters for these arguments of forward. Every lazy class defines this method."""
        raise not_implemented_error(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or buffer has no shape yet."""
        return any(is_lazy(t) for t in (*self._parameters.values(), *self._buffers.values()))


def infer_parameters(module: Any, args: tuple, kwargs: dict) -> None:
    """A hook before the first forward: give the parameters shapes and make the module an ordinary one."""
    module.initialize_parameters(*args, **kwargs)
    if module.has_uninitialized_params():
        raise runtime_error(
            f"module {module._get_name()} has not been fully initialized: initialize_parameters must materialize "
            "every parameter and buffer"
        )
    module._initialize_hook.remove()
    del module._initialize_hook
    if not any([getattr(module, kind) for kind in CALLED]):
        del module._hooked  # without hooks, a call goes directly to forward
    if module.cls_to_become is not None:
        module.__class__ = module.cls_to_become


class _LazyLayer(LazyModuleMixin):
    """A lazy layer: class LazyConv2d(_LazyConv, Conv2d, becomes=Conv2d). Its first setting, the size, is 0 until the
    first call sets it; the constructor takes the other settings."""

    _size_name: str
    _settings_of: type | None = None  # class whose constructor has the settings; default: `becomes`
    weight: Any
    bias: Any

    def __init_subclass__(cls, becomes: type | None = None, **more: Any):
        super().__init_subclass__(**more)
        if becomes is not None:
            cls.cls_to_become = becomes
            cls.__init__ = without_size(cls, cls._settings_of or becomes)  # type: ignore[method-assign]

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(0, *args, **kwargs)
        for tensors, kind in ((self._parameters, UninitializedParameter), (self._buffers, UninitializedBuffer)):
            for name, t in tensors.items():
                if t is not None and t.ndim:  # not the count of batches, which has no dimensions
                    tensors[name] = kind(dtype=t.dtype, device=t.device)

    def reset_parameters(self) -> None:
        """Set the initial values of the parameters, once their shapes are known."""
        if not self.has_uninitialized_params() and getattr(self, self._size_name) != 0:
            super().reset_parameters()  # type: ignore[misc]  # of the other base class


CONSTRUCTOR = """\
def __methods__(__class__):
    def __init__(self{header}):
        super().__init__({settings})

    return (__init__,)
"""


def without_size(cls: type, home: Any) -> Callable:
    """The constructor of a lazy layer. It takes the parameters of the constructor of `home`, without the first."""
    constructor = home.__init__
    (_, _, *names), defaults = parameters_of(constructor)
    alone = constructor.__kwdefaults__ or {}  # keyword only
    passed = ", ".join([*names, *(f"{name}={name}" for name in alone)])
    parameters = header([*names, *(["*"] if alone else []), *alone], defaults | alone)
    (init,) = written(cls, CONSTRUCTOR.format(header=parameters, settings=passed), globals())
    init.__annotations__ = {name: constructor.__annotations__[name] for name in [*names, *alone]}
    return init


# -- linear ----------------------------------------------------------------------------------------


class LazyLinear(_LazyLayer, Linear, becomes=Linear):
    """A Linear whose `in_features` is the size of the last dimension of the first input.

    >>> m = rushlight.nn.LazyLinear(3)
    >>> m(rushlight.ones(4, 2)).shape
    torch.Size([4, 3])
    >>> m
    Linear(in_features=2, out_features=3, bias=True)
    """

    _size_name = "in_features"

    def initialize_parameters(self, input: Tensor) -> None:
        """Weight (out_features, last dimension of the input) and bias, with initial values."""
        size = input._array.shape[-1]
        if self.has_uninitialized_params():
            with no_grad():
                self.in_features = size
                self.weight.materialize((self.out_features, size))
                if self.bias is not None:
                    self.bias.materialize((self.out_features,))
                self.reset_parameters()
        self.in_features = self.in_features or size


# -- convolution -----------------------------------------------------------------------------------


class _LazyConv(_LazyLayer, _ConvNd):
    """The base of the lazy convolutions: `in_channels` is the number of channels of the first input."""

    _size_name = "in_channels"

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Weight and bias for the channels of the input. RuntimeError or ValueError for an unsuitable input."""
        if self.has_uninitialized_params():
            channels = self._channels(input)
            check(channels, self.out_channels, self.groups, self.padding_mode)
            self.in_channels = channels
            first, second = (channels, self.out_channels) if self.transposed else (self.out_channels, channels)
            self.weight.materialize((first, second // self.groups, *self.kernel_size))
            if self.bias is not None:
                self.bias.materialize((self.out_channels,))
            self.reset_parameters()
        self.in_channels = self.in_channels or self._channels(input)

    def _channels(self, input: Tensor) -> int:
        n, ndim = self._n, input._array.ndim
        if ndim not in (n + 1, n + 2):
            raise runtime_error(
                f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {type(self).__name__}, but got "
                f"input of size: {input.shape}"
            )
        return input._array.shape[-n - 1]


class LazyConv1d(_LazyConv, Conv1d, becomes=Conv1d):
    """A Conv1d whose `in_channels` comes from the first input.

    >>> m = rushlight.nn.LazyConv1d(4, kernel_size=3)
    >>> m(rushlight.ones(1, 2, 5)).shape, m.in_channels
    (torch.Size([1, 4, 3]), 2)
    """


class LazyConv2d(_LazyConv, Conv2d, becomes=Conv2d):
    """A Conv2d whose `in_channels` comes from the first input.

    >>> m = rushlight.nn.LazyConv2d(4, kernel_size=3)
    >>> m(rushlight.ones(1, 2, 5, 5)).shape
    torch.Size([1, 4, 3, 3])
    >>> m.in_channels
    2
    """


class LazyConv3d(_LazyConv, Conv3d, becomes=Conv3d):
    """A Conv3d whose `in_channels` comes from the first input.

    >>> m = rushlight.nn.LazyConv3d(4, kernel_size=3)
    >>> m(rushlight.ones(1, 2, 5, 5, 5)).shape, m.in_channels
    (torch.Size([1, 4, 3, 3, 3]), 2)
    """


class LazyConvTranspose1d(_LazyConv, ConvTranspose1d, becomes=ConvTranspose1d):
    """A ConvTranspose1d whose `in_channels` comes from the first input.

    >>> m = rushlight.nn.LazyConvTranspose1d(4, kernel_size=3)
    >>> m(rushlight.ones(1, 2, 5)).shape, m.in_channels
    (torch.Size([1, 4, 7]), 2)
    """


class LazyConvTranspose2d(_LazyConv, ConvTranspose2d, becomes=ConvTranspose2d):
    """A ConvTranspose2d whose `in_channels` comes from the first input.

    >>> m = rushlight.nn.LazyConvTranspose2d(4, kernel_size=3)
    >>> m(rushlight.ones(1, 2, 5, 5)).shape, m.in_channels
    (torch.Size([1, 4, 7, 7]), 2)
    """


class LazyConvTranspose3d(_LazyConv, ConvTranspose3d, becomes=ConvTranspose3d):
    """A ConvTranspose3d whose `in_channels` comes from the first input.

    >>> m = rushlight.nn.LazyConvTranspose3d(4, kernel_size=3)
    >>> m(rushlight.ones(1, 2, 5, 5, 5)).shape, m.in_channels
    (torch.Size([1, 4, 7, 7, 7]), 2)
    """


# -- normalization ---------------------------------------------------------------------------------


class _LazyNorm(_LazyLayer, _NormBase):
    """The base of the lazy norms: `num_features` is the size of dimension 1 of the first input."""

    _size_name, _settings_of = "num_features", _NormBase

    def initialize_parameters(self, input: Tensor) -> None:
        """Weight, bias and statistics for the channels of the input."""
        if self.has_uninitialized_params():
            self.num_features = input._array.shape[1]
            for t in (self.weight, self.bias, self.running_mean, self.running_var):
                if t is not None:
                    t.materialize((self.num_features,))
            self.reset_parameters()


class LazyBatchNorm1d(_LazyNorm, BatchNorm1d, becomes=BatchNorm1d):
    """A BatchNorm1d whose `num_features` comes from the first input.

    >>> m = rushlight.nn.LazyBatchNorm1d()
    >>> m(rushlight.ones(4, 3)).shape
    torch.Size([4, 3])
    >>> m
    BatchNorm1d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
    """


class LazyBatchNorm2d(_LazyNorm, BatchNorm2d, becomes=BatchNorm2d):
    """A BatchNorm2d whose `num_features` comes from the first input.

    >>> m = rushlight.nn.LazyBatchNorm2d()
    >>> _ = m(rushlight.ones(2, 3, 4, 4))
    >>> m.num_features
    3
    """


class LazyBatchNorm3d(_LazyNorm, BatchNorm3d, becomes=BatchNorm3d):
    """A BatchNorm3d whose `num_features` comes from the first input.

    >>> m = rushlight.nn.LazyBatchNorm3d()
    >>> _ = m(rushlight.ones(2, 3, 4, 4, 4))
    >>> m.num_features
    3
    """


class LazyInstanceNorm1d(_LazyNorm, InstanceNorm1d, becomes=InstanceNorm1d):
    """An InstanceNorm1d whose `num_features` comes from the first input. Weight, bias and statistics are on by default.

    >>> m = rushlight.nn.LazyInstanceNorm1d()
    >>> _ = m(rushlight.ones(2, 3, 4))
    >>> m.num_features, m.weight.shape
    (3, torch.Size([3]))
    """


class LazyInstanceNorm2d(_LazyNorm, InstanceNorm2d, becomes=InstanceNorm2d):
    """An InstanceNorm2d whose `num_features` comes from the first input. Weight, bias and statistics are on by default.

    >>> m = rushlight.nn.LazyInstanceNorm2d()
    >>> _ = m(rushlight.ones(2, 3, 4, 4))
    >>> m.num_features, m.weight.shape
    (3, torch.Size([3]))
    """


class LazyInstanceNorm3d(_LazyNorm, InstanceNorm3d, becomes=InstanceNorm3d):
    """An InstanceNorm3d whose `num_features` comes from the first input. Weight, bias and statistics are on by default.

    >>> m = rushlight.nn.LazyInstanceNorm3d()
    >>> _ = m(rushlight.ones(2, 3, 4, 4, 4))
    >>> m.num_features, m.weight.shape
    (3, torch.Size([3]))
    """
