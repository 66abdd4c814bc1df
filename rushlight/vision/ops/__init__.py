"""torchvision.ops: boxes, and blocks of vision models."""

# ruff: noqa: F403, F405 - the names stand in __all__ of each part
from __future__ import annotations

from rushlight.vision.ops.boxes import *
from rushlight.vision.ops.deform import DeformConv2d, deform_conv2d
from rushlight.vision.ops.losses import (
    complete_box_iou_loss,
    distance_box_iou_loss,
    generalized_box_iou_loss,
    sigmoid_focal_loss,
)
from rushlight.vision.ops.misc import (
    MLP,
    Conv2dNormActivation,
    FrozenBatchNorm2d,
    Permute,
    SqueezeExcitation,
    StochasticDepth,
    stochastic_depth,
)
from rushlight.vision.ops.roi import RoIAlign, roi_align

__all__ = [
    "MLP", "Conv2dNormActivation", "DeformConv2d", "FrozenBatchNorm2d", "Permute", "RoIAlign", "SqueezeExcitation",
    "StochasticDepth", "batched_nms", "box_area", "box_convert", "box_iou", "clip_boxes_to_image", "complete_box_iou",
    "complete_box_iou_loss", "deform_conv2d", "distance_box_iou", "distance_box_iou_loss", "generalized_box_iou",
    "generalized_box_iou_loss", "masks_to_boxes", "nms", "remove_small_boxes", "roi_align", "sigmoid_focal_loss",
    "stochastic_depth",
]  # fmt: skip
