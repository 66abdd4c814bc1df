"""Losses."""

from __future__ import annotations

import rushlight as torch
from rushlight import Tensor
from rushlight.nn import functional as F

from .table import Fixed, operator

NO_INDEX = -(2**31)  # an ignore_index that no target has


@operator("NegativeLogLikelihoodLoss")
def nll_loss(
    x: Tensor, target: Fixed, weight: Fixed | None = None, *, ignore_index: int = NO_INDEX, reduction: str = "mean"
) -> Tensor:
    """-x at the target's class, weighted; x has log-probabilities [N, C, ...]."""
    return F.nll_loss(x, target.to(torch.int64), weight, ignore_index=ignore_index, reduction=reduction)


@operator("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy_loss(
    scores: Tensor, target: Fixed, weight: Fixed | None = None, *, ignore_index: int = NO_INDEX, reduction: str = "mean"
) -> tuple[Tensor, Tensor]:
    """(the negative logarithm of softmax at the target's class, log-probabilities)."""
    logs = torch.log_softmax(scores, 1)
    return nll_loss(logs, target, weight, ignore_index=ignore_index, reduction=reduction), logs
