"""Operators that choose elements by their values."""

from __future__ import annotations

import numpy as np

import rushlight as torch
from rushlight import Tensor

from .table import Fixed, Scalar, operator


@operator("NonZero")
def nonzero(x: Tensor) -> Tensor:
    """The indices of elements other than 0, a row for each dimension."""
    return x.nonzero().T


@operator("TopK", since=10)
def topk(x: Tensor, k: Scalar, *, axis: int = -1, largest: int = 1, sorted: int = 1) -> tuple[Tensor, Tensor]:
    """(the k largest or smallest elements of an axis, their indices); the first of equal elements comes first."""
    order = torch.argsort(x, axis, descending=bool(largest), stable=True).narrow(axis, 0, int(k))
    return x.gather(axis, order), order


@operator("TopK", until=9)
def old_topk(x: Tensor, *, k: int, axis: int = -1) -> tuple[Tensor, Tensor]:
    """(the k largest elements of an axis, their indices)."""
    return topk(x, k, axis=axis)


def position(x: Tensor, largest: bool, axis: int, keepdims: int, last: int) -> Tensor:
    """The index of the largest or smallest element of an axis: of equal elements the first, or the last."""
    y = x.flip(axis) if last else x
    at = (torch.argmax if largest else torch.argmin)(y, axis, keepdim=bool(keepdims))
    return x.shape[axis] - 1 - at if last else at


@operator("ArgMax")
def argmax(x: Tensor, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Tensor:
    """The index of the largest element of an axis."""
    return position(x, True, axis, keepdims, select_last_index)


@operator("ArgMin")
def argmin(x: Tensor, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Tensor:
    """The index of the smallest element of an axis."""
    return position(x, False, axis, keepdims, select_last_index)


@operator("Unique")
def unique(x: Fixed, *, axis: int | None = None, sorted: int = 1) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(different elements or slices, index of the first of each, for each element the index of its equal, counts)."""
    found, first, back, counts = np.unique(x.detach().numpy(), True, True, True, axis=axis)
    if not sorted:  # in the order of the first
        order = np.argsort(first)
        rank = np.argsort(order)
        found = np.take(found, order, 0 if axis is None else axis)
        first, back, counts = first[order], rank[back], counts[order]
    out = (found, first.astype(np.int64), back.reshape(-1).astype(np.int64), counts.astype(np.int64))
    return tuple(torch.as_tensor(np.ascontiguousarray(a)) for a in out)  # type: ignore[return-value]


@operator("NonMaxSuppression")
def non_max_suppression(
    boxes: Fixed,
    scores: Fixed,
    most: Scalar | None = None,
    overlap: Scalar | None = None,
    least: Scalar | None = None,
    *,
    center_point_box: int = 0,
) -> Tensor:
    """Rows (batch, class, box) of the boxes kept: by falling score, without boxes that overlap a kept one too much."""
    found = [
        (b, c, box)
        for b, corners in enumerate(corners_of(boxes.detach().numpy(), center_point_box))
        for c, points in enumerate(scores.detach().numpy()[b])
        for box in kept_boxes(corners, points, int(most or 0), overlap or 0.0, least)
    ]
    return torch.as_tensor(np.array(found, np.int64).reshape(-1, 3))


def corners_of(boxes: np.ndarray, centered: int) -> np.ndarray:
    """Boxes as (y0, x0, y1, x1) with y0 <= y1 and x0 <= x1."""
    if centered:
        x, y, w, h = np.moveaxis(boxes, -1, 0)
        return np.stack([y - h / 2, x - w / 2, y + h / 2, x + w / 2], -1)
    a, b = boxes[..., :2], boxes[..., 2:]
    return np.concatenate([np.minimum(a, b), np.maximum(a, b)], -1)


def kept_boxes(corners: np.ndarray, points: np.ndarray, most: int, overlap: float, least: float | None) -> list[int]:
    """The indices of the boxes kept, of one class of one image."""
    order = np.argsort(-points, kind="stable")
    order = order if least is None else order[points[order] > least]
    area = (corners[:, 2] - corners[:, 0]) * (corners[:, 3] - corners[:, 1])
    kept: list[int] = []
    while len(order) and len(kept) < most:
        box, order = order[0], order[1:]
        kept.append(int(box))
        low, high = np.maximum(corners[order, :2], corners[box, :2]), np.minimum(corners[order, 2:], corners[box, 2:])
        shared = np.prod(np.clip(high - low, 0, None), -1)
        order = order[shared <= overlap * (area[order] + area[box] - shared)]
    return kept
