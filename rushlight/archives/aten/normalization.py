"""Normalization by statistics of the batch, of groups, of the last dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight as torch
from rushlight.core.tensor import Tensor

from .table import operator

F = torch.nn.functional


@operator("batch_norm", "cudnn_batch_norm")
def batch_norm(
    x: Tensor, weight: Any, bias: Any, mean: Any, var: Any, training: bool, momentum: float, eps: float, *cudnn: bool
) -> Tensor:
    return F.batch_norm(x, mean, var, weight, bias, training, momentum, eps)


@operator("_native_batch_norm_legit_no_training")
def frozen_batch_norm(x: Tensor, weight: Any, bias: Any, mean: Any, var: Any, momentum: float, eps: float) -> tuple:
    empty = torch.zeros(0)
    return F.batch_norm(x, mean, var, weight, bias, False, momentum, eps), empty, empty


@operator("_native_batch_norm_legit")
def own_batch_norm(x: Tensor, weight: Any, bias: Any, *rest: Any) -> tuple:
    """(y, mean, 1 / deviation) of the batch. `rest`: the running statistics, which may be left out, then whether the
    statistics are the batch's, momentum, eps."""
    mean, var = rest[:2] if len(rest) > 3 else (None, None)
    training, momentum, eps = rest[-3:]
    y = F.batch_norm(x, mean, var, weight, bias, training, momentum, eps)
    dims = [d for d in range(x.ndim) if d != 1]
    return y, x.mean(dims), torch.rsqrt(x.var(dims, unbiased=False) + eps)


@operator("_native_batch_norm_legit_functional")
def functional_batch_norm(
    x: Tensor, weight: Any, bias: Any, mean: Tensor, var: Tensor, training: bool, momentum: float, eps: float
) -> tuple:
    """As `own_batch_norm`, with the running statistics as results."""
    mean, var = mean.clone(), var.clone()
    return *own_batch_norm(x, weight, bias, mean, var, training, momentum, eps), mean, var


@operator("instance_norm")
def instance_norm(
    x: Tensor, weight: Any, bias: Any, mean: Any, var: Any, own: bool, momentum: float, eps: float, *cudnn: bool
) -> Tensor:
    return F.instance_norm(x, mean, var, weight, bias, own, momentum, eps)


@operator("layer_norm")
def layer_norm(
    x: Tensor, shape: Sequence[int], weight: Any = None, bias: Any = None, eps: float = 1e-5, *c: bool
) -> Tensor:
    return F.layer_norm(x, list(shape), weight, bias, eps)


@operator("native_layer_norm")
def native_layer_norm(x: Tensor, shape: Sequence[int], weight: Any, bias: Any, eps: float) -> tuple[Tensor, ...]:
    dims = tuple(range(-len(shape), 0))
    mean, var = x.mean(dims, keepdim=True), x.var(dims, unbiased=False, keepdim=True)
    return F.layer_norm(x, list(shape), weight, bias, eps), mean, torch.rsqrt(var + eps)


@operator("group_norm")
def group_norm(x: Tensor, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5, *cudnn: bool) -> Tensor:
    return F.group_norm(x, groups, weight, bias, eps)


@operator("native_group_norm")
def native_group_norm(x: Tensor, weight: Any, bias: Any, n: int, c: int, size: int, groups: int, eps: float) -> tuple:
    flat = x.reshape(n, groups, -1)
    mean, var = flat.mean(-1), flat.var(-1, unbiased=False)
    return F.group_norm(x, groups, weight, bias, eps), mean, torch.rsqrt(var + eps)


@operator("rms_norm")
def rms_norm(x: Tensor, shape: Sequence[int], weight: Any = None, eps: float | None = None) -> Tensor:
    return F.rms_norm(x, list(shape), weight, eps)


operator("local_response_norm")(lambda x, size, *rest: F.local_response_norm(x, size, *rest))
