"""Losses. ATen gives reductions as numbers."""

from __future__ import annotations

from typing import Any

import rushlight as torch
from rushlight.core.tensor import Tensor

from .table import operator

F = torch.nn.functional
REDUCTIONS = ("none", "mean", "sum")


@operator("cross_entropy_loss")
def cross_entropy(
    x: Tensor, target: Tensor, weight: Any = None, reduction: int = 1, ignore_index: int = -100, smoothing: float = 0.0
) -> Tensor:
    return F.cross_entropy(
        x, target, weight, ignore_index=ignore_index, reduction=REDUCTIONS[reduction], label_smoothing=smoothing
    )


@operator("nll_loss", "nll_loss_nd", "nll_loss2d")
def nll_loss(x: Tensor, target: Tensor, weight: Any = None, reduction: int = 1, ignore_index: int = -100) -> Tensor:
    return F.nll_loss(x, target, weight, ignore_index=ignore_index, reduction=REDUCTIONS[reduction])


@operator("binary_cross_entropy")
def binary_cross_entropy(x: Tensor, target: Tensor, weight: Any = None, reduction: int = 1) -> Tensor:
    return F.binary_cross_entropy(x, target, weight, reduction=REDUCTIONS[reduction])


@operator("binary_cross_entropy_with_logits")
def with_logits(x: Tensor, target: Tensor, weight: Any = None, pos: Any = None, reduction: int = 1) -> Tensor:
    return F.binary_cross_entropy_with_logits(x, target, weight, reduction=REDUCTIONS[reduction], pos_weight=pos)


operator("mse_loss")(lambda x, y, reduction=1: F.mse_loss(x, y, reduction=REDUCTIONS[reduction]))
operator("l1_loss")(lambda x, y, reduction=1: F.l1_loss(x, y, reduction=REDUCTIONS[reduction]))
operator("smooth_l1_loss")(
    lambda x, y, reduction=1, beta=1.0: F.smooth_l1_loss(x, y, reduction=REDUCTIONS[reduction], beta=beta)
)
operator("huber_loss")(lambda x, y, reduction=1, delta=1.0: F.huber_loss(x, y, REDUCTIONS[reduction], delta))
