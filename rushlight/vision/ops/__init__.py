"""Boxes and blocks of vision models, with torchvision.ops's names."""
from __future__ import annotations

from rushlight.vision.ops.boxes import (
    batched_nms,
    box_area,
    box_convert,
    box_iou,
    clip_boxes_to_image,
    generalized_box_iou,
    masks_to_boxes,
    nms,
    remove_small_boxes,
)
from rushlight.vision.ops.losses import sigmoid_focal_loss
from rushlight.vision.ops.misc import (
    MLP,
    Conv2dNormActivation,
    FrozenBatchNorm2d,
    Permute,
    SqueezeExcitation,
    StochasticDepth,
    stochastic_depth,
)

__all__ = ["MLP", "Conv2dNormActivation", "FrozenBatchNorm2d", "Permute", "SqueezeExcitation", "StochasticDepth",
           "batched_nms", "box_area", "box_convert", "box_iou", "clip_boxes_to_image", "generalized_box_iou",
           "masks_to_boxes", "nms", "remove_small_boxes", "sigmoid_focal_loss", "stochastic_depth"]
