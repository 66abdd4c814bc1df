"""torch._utils: many tensors as one, and back; tensors that `pickle` wrote where torch was."""

from __future__ import annotations

from collections.abc import Sequence

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


# pickle.load finds them by name
globals().update(
    {name: function for (home, name), function in REBUILDERS.items() if home == "torch._utils"}
)

__all__ = ["_flatten_dense_tensors", "_unflatten_dense_tensors"]
