"""Boxes (N, 4), from corner (x1, y1) to corner (x2, y2): areas, overlaps, non-maximum suppression."""

from __future__ import annotations

import math

import numpy as np
from numpy import ndarray

from rushlight.base.dtypes import float32
from rushlight.base.errors import value_error
from rushlight.core.tensor import Tensor, from_array
from rushlight.creation.factories import zeros
from rushlight.ops.grad_mode import no_grad
from rushlight.ops.math.elementwise import maximum, minimum
from rushlight.ops.shape.view_functions import stack


def box_area(boxes: Tensor) -> Tensor:
    """(x2 - x1) (y2 - y1) of each box (N, 4) -> (N,).

    >>> rushlight.vision.ops.box_area(rushlight.tensor([[0., 0., 2., 3.]]))
    tensor([6.])
    """
    return (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])


def shared(boxes1: Tensor, boxes2: Tensor) -> tuple[Tensor, Tensor]:
    """The areas of the intersections and of the unions of N and M boxes: two tensors (N, M)."""
    boxes1, boxes2 = (b if b.is_floating_point() else b.float() for b in (boxes1, boxes2))
    low = maximum(boxes1[..., None, :2], boxes2[..., None, :, :2])
    high = minimum(boxes1[..., None, 2:], boxes2[..., None, :, 2:])
    size = (high - low).clamp(min=0)
    inside = size[..., 0] * size[..., 1]
    return inside, box_area(boxes1)[..., None] + box_area(boxes2)[..., None, :] - inside


def size_around(boxes1: Tensor, boxes2: Tensor) -> Tensor:
    """(N, M, 2): width and height of the smallest box around two boxes."""
    low = minimum(boxes1[..., None, :2], boxes2[..., None, :, :2])
    high = maximum(boxes1[..., None, 2:], boxes2[..., None, :, 2:])
    return (high - low).clamp(min=0)


def box_iou(boxes1: Tensor, boxes2: Tensor) -> Tensor:
    """iou = area of the intersection / area of the union: (N, M), for N and M boxes.

    >>> a, b = rushlight.tensor([[0., 0., 2., 2.]]), rushlight.tensor([[1., 0., 3., 2.], [5., 5., 6., 6.]])
    >>> rushlight.vision.ops.box_iou(a, b)  # 2 / (4 + 4 - 2), 0
    tensor([[0.3333, 0.0000]])
    """
    inside, together = shared(boxes1, boxes2)
    return inside / together


def generalized_box_iou(boxes1: Tensor, boxes2: Tensor) -> Tensor:
    """iou - (area of C - area of both) / area of C: (N, M), C the smallest box around both. H. Rezatofighi et al.,
    2019.

    >>> box = rushlight.tensor([[0., 0., 2., 2.]])
    >>> rushlight.vision.ops.generalized_box_iou(box, box + 2)  # 0 - (16 - 8) / 16
    tensor([[-0.5000]])
    """
    inside, together = shared(boxes1, boxes2)
    size = size_around(boxes1, boxes2)
    around = size[..., 0] * size[..., 1]
    return inside / together - (around - together) / around


def distance_box_iou(boxes1: Tensor, boxes2: Tensor, eps: float = 1e-7) -> Tensor:
    """iou - d^2 / c^2: (N, M), d the distance of the middles, c the diagonal of the box around both. Z. Zheng et al.,
    2020.

    >>> box = rushlight.tensor([[0., 0., 2., 2.]])
    >>> rushlight.vision.ops.distance_box_iou(box, box + 2)  # 0 - 8 / 32
    tensor([[-0.2500]])
    """
    diagonal = (size_around(boxes1, boxes2) ** 2).sum(-1) + eps
    first, second = ((b[..., :2] + b[..., 2:]) / 2 for b in (boxes1, boxes2))
    return box_iou(boxes1, boxes2) - ((first[..., None, :] - second[..., None, :, :]) ** 2).sum(-1) / diagonal


def complete_box_iou(boxes1: Tensor, boxes2: Tensor, eps: float = 1e-7) -> Tensor:
    """(N, M): `distance_box_iou` minus a term for different aspect ratios (Zheng et al. 2020).

    >>> box = rushlight.tensor([[0., 0., 2., 2.]])
    >>> rushlight.vision.ops.complete_box_iou(box, box)
    tensor([[1.]])
    """
    first, second = (((b[..., 2] - b[..., 0]) / (b[..., 3] - b[..., 1])).atan() for b in (boxes1, boxes2))
    unlike = (4 / math.pi**2) * (first[..., None] - second[..., None, :]) ** 2
    with no_grad():
        weight = unlike / (1 - box_iou(boxes1, boxes2) + unlike + eps)
    return distance_box_iou(boxes1, boxes2, eps) - weight * unlike


def nms(boxes: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """The indices of the boxes, best first, that overlap no better box by more than the threshold.

    >>> boxes = rushlight.tensor([[0., 0., 2., 2.], [0., 0., 2., 2.1], [5., 5., 6., 6.]])
    >>> rushlight.vision.ops.nms(boxes, rushlight.tensor([0.5, 0.9, 0.1]), 0.5)
    tensor([1, 2])
    """
    array = boxes._array.astype(np.float64)
    order = np.argsort(-scores._array, kind="stable")
    area = (array[:, 2] - array[:, 0]) * (array[:, 3] - array[:, 1])
    kept = []
    while order.size:
        best, order = order[0], order[1:]
        kept.append(best)
        low, high = np.maximum(array[best, :2], array[order, :2]), np.minimum(array[best, 2:], array[order, 2:])
        inside = np.prod(np.maximum(high - low, 0), -1)
        with np.errstate(invalid="ignore"):  # boxes without area: 0 / 0 means no overlap
            overlaps: ndarray = inside / (area[best] + area[order] - inside) > iou_threshold
        order = order[~overlaps]
    return from_array(np.array(kept, np.int64))


def batched_nms(boxes: Tensor, scores: Tensor, idxs: Tensor, iou_threshold: float) -> Tensor:
    """`nms` among the boxes of each class: boxes of different `idxs` do not remove each other.

    >>> boxes, scores = rushlight.tensor([[0., 0., 2., 2.], [0., 0., 2., 2.]]), rushlight.tensor([0.5, 0.9])
    >>> rushlight.vision.ops.batched_nms(boxes, scores, rushlight.tensor([0, 1]),
    ...     0.5)  # of two classes: both stay
    tensor([1, 0])
    """
    if boxes.numel() == 0:
        return from_array(np.empty(0, np.int64))
    apart = idxs.to(boxes.dtype) * (boxes.max() + 1)  # shifts the boxes of each class to another region
    return nms(boxes + apart[:, None], scores, iou_threshold)


def box_convert(boxes: Tensor, in_fmt: str, out_fmt: str) -> Tensor:
    """Boxes in another form: 'xyxy' (two corners), 'xywh' (corner and size) or 'cxcywh' (middle and size).

    >>> rushlight.vision.ops.box_convert(rushlight.tensor([[1., 1., 3., 5.]]), "xyxy", "xywh")
    tensor([[1., 1., 2., 4.]])
    """
    for form in (in_fmt, out_fmt):
        if form not in ("xyxy", "xywh", "cxcywh"):
            raise value_error("Unsupported Bounding Box Conversions for given in_fmt and out_fmt", given=form)
    if in_fmt == out_fmt:
        return boxes.clone()
    a, b, c, d = boxes.unbind(-1)
    if in_fmt == "xywh":
        c, d = a + c, b + d
    elif in_fmt == "cxcywh":
        a, b, c, d = a - 0.5 * c, b - 0.5 * d, a + 0.5 * c, b + 0.5 * d
    if out_fmt == "xywh":
        c, d = c - a, d - b
    elif out_fmt == "cxcywh":
        a, b, c, d = (a + c) / 2, (b + d) / 2, c - a, d - b
    return stack((a, b, c, d), -1)


def clip_boxes_to_image(boxes: Tensor, size: tuple[int, int]) -> Tensor:
    """The boxes within an image of (height, width).

    >>> rushlight.vision.ops.clip_boxes_to_image(rushlight.tensor([[-1., 2., 9., 3.]]), (4, 6))
    tensor([[0., 2., 6., 3.]])
    """
    h, w = size
    x, y = boxes[..., 0::2].clamp(0, w), boxes[..., 1::2].clamp(0, h)
    return stack((x, y), -1).reshape(boxes.shape)


def remove_small_boxes(boxes: Tensor, min_size: float) -> Tensor:
    """The indices of the boxes whose width and height are at least `min_size`.

    >>> rushlight.vision.ops.remove_small_boxes(rushlight.tensor([[0., 0., 2., 2.], [0., 0., 2., 0.1]]), 1.0)
    tensor([0])
    """
    a = boxes._array
    return from_array(np.flatnonzero((a[:, 2] - a[:, 0] >= min_size) & (a[:, 3] - a[:, 1] >= min_size)))


def masks_to_boxes(masks: Tensor) -> Tensor:
    """The smallest box (N, 4) around the nonzero elements of each mask (N, H, W).

    >>> rushlight.vision.ops.masks_to_boxes(rushlight.tensor([[[0, 0, 0], [0, 1, 1]]]))
    tensor([[1., 1., 2., 1.]])
    """
    if masks.numel() == 0:
        return zeros((0, 4), dtype=float32)
    found = []
    for mask in masks._array:
        y, x = np.nonzero(mask)
        found.append((x.min(), y.min(), x.max(), y.max()))
    return from_array(np.array(found, np.float32))


__all__ = [
    "batched_nms", "box_area", "box_convert", "box_iou", "clip_boxes_to_image", "complete_box_iou", "distance_box_iou",
    "generalized_box_iou", "masks_to_boxes", "nms", "remove_small_boxes",
]  # fmt: skip
