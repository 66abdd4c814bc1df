"""torch._utils: several tensors as one, and back; functions by which torch's pickles rebuild tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.base import dtypes
from rushlight.core.tensor import Tensor
from rushlight.ops.shape.view_functions import cat, split
from rushlight.ops.shape.views import reshape
from rushlight.serialization.rebuild import REBUILDERS


def _flatten_dense_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """All elements of the tensors in one dimension, in order.

    >>> rushlight._utils._flatten_dense_tensors([rushlight.ones(2), rushlight.zeros(1, 2)])
    tensor([1., 1., 0., 0.])
    """
    return cat([reshape(t, (-1,)) for t in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The inverse of `_flatten_dense_tensors`: parts of `flat` in the shapes of `tensors`."""
    parts = split(flat, [t._array.size for t in tensors])
    return tuple(reshape(part, t._array.shape) for part, t in zip(parts, tensors, strict=True))


def _element_size(dtype: dtypes.dtype) -> int:
    """Bytes of one element.

    >>> rushlight._utils._element_size(rushlight.float64)
    8
    """
    return dtype.itemsize


def _get_available_device_type() -> None:
    """None: there is only the CPU."""
    return None


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """-1 for the CPU with `allow_cpu`, and for None with `optional`; otherwise ValueError."""
    if device is None and optional or device is not None and allow_cpu:
        return -1
    raise ValueError(f"Expected a torch.device with a specified index or an integer, got {device}")


# pickle.load finds them by name
globals().update({name: function for (home, name), function in REBUILDERS.items() if home == "torch._utils"})

__all__ = ["_flatten_dense_tensors", "_unflatten_dense_tensors"]
