"""Means of buckets whose elements are sent as bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.base.futures import Future
from rushlight.comm.groups import member
from rushlight.comm.sparse_reduce import gathered
from rushlight.core.tensor import from_array

SMALLEST_SCALE = float(np.finfo(np.float32).eps)


def scales_of(rows: np.ndarray) -> np.ndarray:
    """(rows, 2): the scale and the zero point that map the range of each row to 0 to 255."""
    low = np.minimum(rows.min(1), 0)
    high = np.maximum(rows.max(1), 0)
    scale = np.maximum((high - low) / np.float32(255), np.float32(SMALLEST_SCALE))
    zero = np.clip(-np.rint(low / scale), 0, 255)
    return np.stack([scale, zero], 1).astype(np.float32)


def mean_of_bytes(group: Any, rows: np.ndarray) -> np.ndarray:
    """The mean of the rows over the ranks. Each rank rounds its rows to 256 values."""
    scales = scales_of(rows)
    scale, zero = scales[:, :1], scales[:, 1:]
    small = np.clip(np.rint(rows / scale) + zero, 0, 255).astype(np.uint8)
    every, their_scales = gathered(small, group), gathered(scales, group)
    total = np.zeros(rows.shape, np.float32)
    for one, (scale, zero) in zip(every, np.moveaxis(their_scales, 2, 1)[..., None]):
        total += scale * (one.astype(np.float32) - zero)
    return total / np.float32(group.size())


def done(mean: np.ndarray) -> Future:
    """The completed future of a mean."""
    future: Future = Future()
    future.set_result(from_array(mean))
    return future


def quantization_pertensor_hook(process_group: Any, bucket: Any) -> Future:
    """The mean of the bucket, sent as bytes with one scale."""
    flat = bucket.buffer()._array.astype(np.float32)
    return done(mean_of_bytes(member(process_group), flat[None])[0])


def quantization_perchannel_hook(process_group: Any, bucket: Any, bucket_size: int = 512) -> Future:
    """The mean of the bucket, sent as bytes with a scale for each `bucket_size` elements."""
    flat = bucket.buffer()._array.astype(np.float32)
    rows = np.zeros((-(-len(flat) // bucket_size), bucket_size), np.float32)
    rows.reshape(-1)[: len(flat)] = flat
    return done(mean_of_bytes(member(process_group), rows).reshape(-1)[: len(flat)])
