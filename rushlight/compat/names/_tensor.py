"""torch._tensor: where torch defines the class of tensors, and pickles of tensors with attributes name a function."""

from rushlight.core.tensor import Tensor
from rushlight.serialization.rebuild import rebuild_from_type_v2 as _rebuild_from_type_v2

__all__ = ["Tensor", "_rebuild_from_type_v2"]
