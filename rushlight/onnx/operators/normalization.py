"""Normalizations."""

from __future__ import annotations

import rushlight as torch
from rushlight import Tensor
from rushlight.nn import functional as F

from .table import Fixed, Ints, operator


@operator("BatchNormalization", since=7)
def batch_norm(
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    mean: Fixed,
    var: Fixed,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
    spatial: int = 1,
) -> Tensor | tuple[Tensor, Tensor, Tensor]:
    """x normalized with running statistics, or with the batch's own in training_mode, which returns new statistics."""
    if not training_mode and (mean.requires_grad or var.requires_grad):  # computed in the model
        shape = [1, -1] + [1] * (x.ndim - 2)
        rstd = torch.rsqrt(var.reshape(shape) + epsilon)
        return (x - mean.reshape(shape)) * (rstd * scale.reshape(shape)) + bias.reshape(shape)
    if not training_mode:
        mean, var, scale, bias = (v.to(x.dtype) for v in (mean, var, scale, bias))
        return F.batch_norm(x, mean, var, scale, bias, False, 0.0, epsilon)
    dims = [0, *range(2, x.ndim)]
    new_mean = mean * momentum + x.mean(dims).to(mean.dtype) * (1 - momentum)
    new_var = var * momentum + x.var(dims, unbiased=False).to(var.dtype) * (1 - momentum)
    y = F.batch_norm(x, None, None, scale.to(x.dtype), bias.to(x.dtype), True, 0.0, epsilon)
    return y, new_mean, new_var


@operator("BatchNormalization", until=6)
def old_batch_norm(
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    mean: Fixed,
    var: Fixed,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    is_test: int = 0,
    spatial: int = 1,
) -> Tensor:
    """x normalized with running statistics."""
    return F.batch_norm(x, mean, var, scale, bias, False, 0.0, epsilon)


@operator("InstanceNormalization")
def instance_norm(x: Tensor, scale: Tensor, bias: Tensor, *, epsilon: float = 1e-5) -> Tensor:
    """Each channel of each sample, normalized."""
    return F.instance_norm(x, None, None, scale, bias, True, 0.0, epsilon)


@operator("LayerNormalization")
def layer_norm(
    x: Tensor,
    scale: Tensor,
    bias: Tensor | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
    n_outputs: int,
) -> Tensor | tuple[Tensor, Tensor, Tensor]:
    """x normalized over the dimensions from `axis` on; the other outputs are mean and 1 / standard deviation."""
    dims = list(range(axis % x.ndim, x.ndim))
    sizes = tuple(x.shape[dims[0] :])
    if n_outputs == 1 and tuple(scale.shape) == sizes and (bias is None or tuple(bias.shape) == sizes):
        return F.layer_norm(x, sizes, scale, bias, epsilon)
    wide = x.to(torch.float32) if stash_type == 1 else x
    mean = wide.mean(dims, keepdim=True)
    rstd = torch.rsqrt(wide.var(dims, unbiased=False, keepdim=True) + epsilon)
    y = ((wide - mean) * rstd).to(x.dtype) * scale
    return (y if bias is None else y + bias), mean, rstd


@operator("RMSNormalization")
def rms_norm(x: Tensor, scale: Tensor, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1) -> Tensor:
    """x / sqrt(mean(x ** 2)) over the dimensions from `axis` on."""
    dims = list(range(axis % x.ndim, x.ndim))
    wide = x.to(torch.float32) if stash_type == 1 else x
    return (wide * torch.rsqrt((wide * wide).mean(dims, keepdim=True) + epsilon)).to(x.dtype) * scale


@operator("GroupNormalization", since=21)
def group_norm(
    x: Tensor, scale: Tensor, bias: Tensor, *, num_groups: int, epsilon: float = 1e-5, stash_type: int = 1
) -> Tensor:
    """Each group of channels of each sample, normalized."""
    return F.group_norm(x, num_groups, scale, bias, epsilon)


@operator("GroupNormalization", until=20)
def old_group_norm(x: Tensor, scale: Tensor, bias: Tensor, *, num_groups: int, epsilon: float = 1e-5) -> Tensor:
    """Each group of channels of each sample, normalized; scale and bias have an element for each group."""
    each = x.shape[1] // num_groups
    return F.group_norm(x, num_groups, scale.repeat_interleave(each), bias.repeat_interleave(each), epsilon)


@operator("LRN")
def local_response_norm(x: Tensor, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> Tensor:
    """x / (bias + alpha * mean of squares of the channels around) ** beta."""
    before = (size - 1) // 2
    squares = F.pad((x * x).movedim(1, -1), (before, size - 1 - before))
    total = squares.unfold(-1, size, 1).sum(-1).movedim(-1, 1)
    return x / (bias + alpha / size * total) ** beta


@operator("LpNormalization")
def lp_norm(x: Tensor, *, axis: int = -1, p: int = 2) -> Tensor:
    """x / its p-norm along an axis; 0 where the norm is 0."""
    norm = torch.linalg.vector_norm(x, p, axis, keepdim=True)
    return torch.where(norm == 0, torch.zeros_like(x), x / norm)


@operator("MeanVarianceNormalization")
def mean_variance_norm(x: Tensor, *, axes: Ints | None = None) -> Tensor:
    """(x - mean) / standard deviation over the axes."""
    dims = axes or [0, 2, 3]
    return (x - x.mean(dims, keepdim=True)) / (x.std(dims, unbiased=False, keepdim=True) + 1e-9)
