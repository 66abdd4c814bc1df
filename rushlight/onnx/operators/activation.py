"""Activations with settings, softmax, dropout."""

from __future__ import annotations

from typing import Any

import rushlight as torch
from rushlight import Tensor
from rushlight.nn import functional as F

from .table import Scalar, operator


@operator("LeakyRelu")
def leaky_relu(x: Tensor, *, alpha: float = 0.01) -> Tensor:
    """x, or alpha * x where x < 0."""
    return F.leaky_relu(x, alpha)


@operator("Elu")
def elu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    """x, or alpha * (exp(x) - 1) where x < 0."""
    return F.elu(x, alpha)


@operator("Celu")
def celu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    """x, or alpha * (exp(x / alpha) - 1) where x < 0."""
    return F.celu(x, alpha)


@operator("Selu")
def selu(x: Tensor, *, alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232421875) -> Tensor:
    """gamma * x, or gamma * alpha * (exp(x) - 1) where x < 0."""
    return gamma * F.elu(x, alpha)


@operator("Gelu")
def gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    """x * P(normal < x)."""
    return F.gelu(x, approximate=approximate)


@operator("Swish")
def swish(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    """x * sigmoid(alpha * x)."""
    return x * torch.sigmoid(alpha * x)


@operator("SwiGLU")
def swiglu(gate: Tensor, x: Tensor, *, alpha: float = 1.0) -> Tensor:
    """x * swish(gate)."""
    return gate * torch.sigmoid(alpha * gate) * x


@operator("PRelu", since=7)
def prelu(x: Tensor, slope: Tensor) -> Tensor:
    """x, or slope * x where x < 0."""
    return torch.where(x < 0, x * slope, x)


@operator("PRelu", until=6)
def old_prelu(x: Tensor, slope: Tensor) -> Tensor:
    """x, or slope * x where x < 0, with a slope for each channel."""
    return prelu(x, slope.reshape([-1] + [1] * (x.ndim - 2)) if slope.ndim == 1 else slope)


@operator("HardSigmoid")
def hard_sigmoid(x: Tensor, *, alpha: float = 0.2, beta: float = 0.5) -> Tensor:
    """alpha * x + beta within [0, 1]."""
    return torch.clamp(alpha * x + beta, 0, 1)


@operator("ThresholdedRelu")
def thresholded_relu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    """x, or 0 where x <= alpha."""
    return F.threshold(x, alpha, 0.0)


@operator("Shrink")
def shrink(x: Tensor, *, lambd: float = 0.5, bias: float = 0.0) -> Tensor:
    """x nearer to 0 by bias, or 0 where |x| <= lambd."""
    return torch.where(x < -lambd, x + bias, torch.where(x > lambd, x - bias, torch.zeros_like(x)))


@operator("Softmax", since=13)
def softmax(x: Tensor, *, axis: int = -1) -> Tensor:
    """exp(x), divided by its sum over an axis."""
    return torch.softmax(x, axis)


@operator("LogSoftmax", since=13)
def log_softmax(x: Tensor, *, axis: int = -1) -> Tensor:
    """The logarithm of softmax."""
    return torch.log_softmax(x, axis)


@operator("Hardmax", since=13)
def hardmax(x: Tensor, *, axis: int = -1) -> Tensor:
    """1 at the first largest element of an axis, else 0."""
    return torch.zeros_like(x).scatter(axis, x.argmax(axis, keepdim=True), 1)


@operator("Softmax", until=12)
def old_softmax(x: Tensor, *, axis: int = 1) -> Tensor:
    """Softmax over all dimensions from `axis` on."""
    return torch.softmax(x.flatten(axis % x.ndim), axis % x.ndim).reshape(x.shape)


@operator("LogSoftmax", until=12)
def old_log_softmax(x: Tensor, *, axis: int = 1) -> Tensor:
    """The logarithm of softmax over all dimensions from `axis` on."""
    return torch.log_softmax(x.flatten(axis % x.ndim), axis % x.ndim).reshape(x.shape)


@operator("Hardmax", until=12)
def old_hardmax(x: Tensor, *, axis: int = 1) -> Tensor:
    """1 at the first largest element of all dimensions from `axis` on."""
    return hardmax(x.flatten(axis % x.ndim), axis=axis % x.ndim).reshape(x.shape)


@operator("Dropout", since=12)
def dropout(
    x: Tensor, ratio: Scalar | None = None, training_mode: Scalar | None = None, *, seed: int | None = None
) -> tuple[Tensor, Tensor]:
    """(x, a mask of the elements kept): elements are dropped only where the file sets training_mode."""
    if not training_mode or ratio == 0:
        return x, torch.ones_like(x, dtype=torch.bool)
    share = 0.5 if ratio is None else ratio
    kept = torch.rand(x.shape) >= share
    return x * kept / (1 - share), kept


@operator("Dropout", until=11)
def old_dropout(x: Tensor, *, ratio: float = 0.5, is_test: int = 0) -> tuple[Any, ...]:
    """(x, a mask of ones)."""
    return x, torch.ones_like(x, dtype=torch.bool)
