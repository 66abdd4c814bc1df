"""Losses of object detection."""

from __future__ import annotations

import math

from rushlight.base.errors import value_error
from rushlight.core.tensor import Tensor
from rushlight.nn import functional as F
from rushlight.ops.grad_mode import no_grad
from rushlight.ops.math.elementwise import maximum, minimum, where
from rushlight.vision.ops.boxes import box_area


def sigmoid_focal_loss(
    inputs: Tensor, targets: Tensor, alpha: float = 0.25, gamma: float = 2, reduction: str = "none"
) -> Tensor:
    """(1 - p)^gamma times the binary cross entropy, with p the probability of the true class.

    `alpha` weighs the positive examples, 1 - alpha the negative ones; -1: no weights. T.-Y. Lin et al., *Focal loss for
    dense object detection*, 2017.

    >>> x, y = rushlight.tensor([0.]), rushlight.tensor([1.])
    >>> rushlight.vision.ops.sigmoid_focal_loss(x, y, alpha=-1)  # (1 - 0.5)^2 log 2
    tensor([0.1733])
    """
    p = inputs.sigmoid()
    loss = F.binary_cross_entropy_with_logits(inputs, targets, reduction="none")
    loss = loss * (1 - (p * targets + (1 - p) * (1 - targets))) ** gamma
    if alpha >= 0:
        loss = (alpha * targets + (1 - alpha) * (1 - targets)) * loss
    return reduced(loss, reduction)


def reduced(loss: Tensor, reduction: str) -> Tensor:
    """By `reduction`: the losses themselves, their mean (0 for no losses) or their sum."""
    if reduction not in ("none", "mean", "sum"):
        raise value_error(f"Invalid Value for arg 'reduction': '{reduction}'", "it is 'none', 'mean' or 'sum'")
    return loss if reduction == "none" else loss.mean() if reduction == "mean" and loss.numel() else loss.sum()


def generalized_box_iou_loss(boxes1: Tensor, boxes2: Tensor, reduction: str = "none", eps: float = 1e-7) -> Tensor:
    """1 - iou of each pair, plus the fraction of the smallest box around both that is in neither.

    >>> box = rushlight.tensor([[0., 0., 2., 2.]])
    >>> rushlight.vision.ops.generalized_box_iou_loss(box, box + 2)  # 1 - 0 + (16 - 8) / 16
    tensor([1.5000])
    """
    (iou, together), (w, h) = overlap(boxes1, boxes2, eps), around(boxes1, boxes2)
    return reduced(1 - (iou - (w * h - together) / (w * h + eps)), reduction)


def distance_box_iou_loss(boxes1: Tensor, boxes2: Tensor, reduction: str = "none", eps: float = 1e-7) -> Tensor:
    """1 - iou + d^2 / c^2 for each pair: d is the distance of the centres, c the diagonal of the box around both (Zheng
    et al. 2020).

    >>> box = rushlight.tensor([[0., 0., 2., 2.]])
    >>> rushlight.vision.ops.distance_box_iou_loss(box, box + 2)  # 1 - 0 + 8 / 32
    tensor([1.2500])
    """
    return reduced(apart(boxes1, boxes2, eps)[0], reduction)


def complete_box_iou_loss(boxes1: Tensor, boxes2: Tensor, reduction: str = "none", eps: float = 1e-7) -> Tensor:
    """The distance loss plus a term for different aspect ratios (Zheng et al. 2020).

    >>> box = rushlight.tensor([[0., 0., 2., 2.]])
    >>> rushlight.vision.ops.complete_box_iou_loss(box, box)
    tensor([0.])
    """
    loss, iou = apart(boxes1, boxes2, 1e-7)
    first, second = (((b[..., 2] - b[..., 0]) / (b[..., 3] - b[..., 1])).atan() for b in (boxes2, boxes1))
    unlike = (4 / math.pi**2) * (first - second) ** 2
    with no_grad():
        weight = unlike / (1 - iou + unlike + eps)
    return reduced(loss + weight * unlike, reduction)


def apart(boxes1: Tensor, boxes2: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """The distance loss of each pair, and its iou."""
    (iou, _), (w, h) = overlap(boxes1, boxes2, eps), around(boxes1, boxes2)
    between = [(boxes1[..., i + 2] + boxes1[..., i]) / 2 - (boxes2[..., i] + boxes2[..., i + 2]) / 2 for i in (0, 1)]
    return 1 - iou + (between[0] ** 2 + between[1] ** 2) / (w**2 + h**2 + eps), iou


def overlap(boxes1: Tensor, boxes2: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """The iou of each pair, and the area of both together."""
    low, high = maximum(boxes1[..., :2], boxes2[..., :2]), minimum(boxes1[..., 2:], boxes2[..., 2:])
    w, h = (high - low).unbind(-1)
    inside = where((w > 0) & (h > 0), w * h, 0.0)
    together = box_area(boxes1) + box_area(boxes2) - inside
    return inside / (together + eps), together


def around(boxes1: Tensor, boxes2: Tensor) -> tuple[Tensor, Tensor]:
    """Width and height of the smallest box around each pair."""
    low, high = minimum(boxes1[..., :2], boxes2[..., :2]), maximum(boxes1[..., 2:], boxes2[..., 2:])
    w, h = (high - low).unbind(-1)
    return w, h
