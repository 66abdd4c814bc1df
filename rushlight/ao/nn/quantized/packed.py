"""What quantized modules share: weights for the kernels, and arguments that the kernels accept."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.autograd import Function
from rushlight.base.errors import assertion_error, not_implemented_error, runtime_error
from rushlight.core.mode import mode
from rushlight.core.tensor import Tensor, created, from_array, noticed
from rushlight.kernels.int8 import Int8Weight
from rushlight.nn.module import Module
from rushlight.ops.tensor.quantized_tensor import QINT8, QuantizedTensor


def packed(weight: QuantizedTensor, bias: Tensor | None) -> Int8Weight:
    """torch.ops.quantized.linear_prepack: the weight (out, in) and the bias in the form that kernels read."""
    if not isinstance(weight, QuantizedTensor) or weight.dtype is not QINT8 or weight.dim() != 2:
        raise runtime_error("the weight of a quantized linear map is a matrix of torch.qint8")
    if weight._axis not in (None, 0):
        raise not_implemented_error("scales along the inputs of a weight are not supported", "use ch_axis=0")
    if bias is not None:
        noticed(bias)
    own = None if bias is None else np.array(bias._array, np.float32)
    return Int8Weight(weight._values, weight._scales, weight._zeros, own, weight._axis is not None)


def unpacked(weight: Int8Weight) -> tuple[QuantizedTensor, Tensor | None]:
    """The weight and the bias of `packed`."""
    scales = weight.scales.astype(np.float64)
    zeros = np.zeros(scales.shape, np.int64) if weight.zeros is None else weight.zeros.astype(np.int64)
    bias = None if weight.bias is None else from_array(weight.bias.copy())
    return QuantizedTensor(weight.values(), scales, zeros, 0 if weight.per_output else None, QINT8), bias


def elements(x: Tensor) -> ndarray:
    """The array of an argument in float32, contiguous."""
    noticed(x)
    array = x._array
    if array.__class__ is not ndarray or array.dtype != np.float32:
        hint = "call it on the whole batch, outside vmap" if hasattr(array, "value") else "convert it: x.float()"
        raise runtime_error(f"a quantized module takes float32 on the CPU, not {x.dtype} on {x.device}", hint)
    return np.ascontiguousarray(array)


def by_rows(function: Any, x: ndarray, weight: Int8Weight, *more: Any) -> ndarray:
    """A kernel's function of rows (..., in) -> (..., out). RuntimeError for another number of inputs."""
    n, k = weight.shape
    if x.shape[-1:] != (k,):
        raise runtime_error(
            f"The size of the last dimension of the input, {x.shape[-1:]}, must be in_features, {k}", input=x.shape
        )
    if x.ndim == 2:
        return function(x, weight, *more)
    return function(x.reshape(-1, k), weight, *more).reshape(*x.shape[:-1], n)


class WithoutGradient(Function):
    """A result of a quantized module: its backward raises an error."""

    @staticmethod
    def forward(ctx: Any, array: ndarray, *inputs: Tensor) -> Tensor:
        return from_array(array)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        raise not_implemented_error(
            "quantized modules have no gradients", "train the float model and quantize it then; or x.detach()"
        )


def result(array: ndarray, *inputs: Tensor) -> Tensor:
    """The tensor that a quantized module computes from the inputs."""
    if any([x._node is not None for x in inputs]) and mode().grad:
        return WithoutGradient.apply(array, *inputs)
    return created(from_array(array))


def observed(module: Module, default: Any) -> Any:
    """A new observer of the module's weights."""
    if not hasattr(module, "qconfig"):
        raise assertion_error("Input float module must have qconfig defined")
    known = module.qconfig
    return (default if known is None or known.weight is None else known.weight)()


def quantized_weight(weight: Tensor, observer: Any) -> QuantizedTensor:
    """A weight in torch.qint8, by an observer that has seen nothing yet."""
    if observer.dtype is not QINT8:
        raise not_implemented_error(
            f"weights of {observer.dtype} are not supported in quantized layers", "torch.qint8 is"
        )
    observer(weight)
    return observer.quantized(weight)


def check_type(module: Module, kinds: tuple[type, ...], owner: str) -> None:
    """AssertionError for a module that cannot become the quantized module `owner`."""
    if type(module) not in kinds:
        names = ", ".join(kind.__name__ for kind in kinds)
        raise assertion_error(f"{owner}.from_float only works for {names}, got {type(module).__name__}")
