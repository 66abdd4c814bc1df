"""Losses of object detection."""
from __future__ import annotations

from rushlight.errors import explain
from rushlight.nn import functional as F
from rushlight.tensor import Tensor


def sigmoid_focal_loss(inputs: Tensor, targets: Tensor, alpha: float = 0.25, gamma: float = 2, reduction: str = "none"
                       ) -> Tensor:
    """(1 - p)^gamma times the binary cross entropy, p the probability of what is true (Lin et al. 2017).

    `alpha` weighs the positive examples, 1 - alpha the negative ones; -1 weighs none.
    """
    p = inputs.sigmoid()
    loss = F.binary_cross_entropy_with_logits(inputs, targets, reduction="none")
    loss = loss * (1 - (p * targets + (1 - p) * (1 - targets))) ** gamma
    if alpha >= 0:
        loss = (alpha * targets + (1 - alpha) * (1 - targets)) * loss
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(explain(f"Invalid Value for arg 'reduction': '{reduction}'", "it is 'none', 'mean' or 'sum'"))
    return loss if reduction == "none" else loss.mean() if reduction == "mean" else loss.sum()
