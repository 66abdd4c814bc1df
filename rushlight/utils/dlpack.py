"""torch.utils.dlpack: tensors on memory that is shared with other libraries."""
from __future__ import annotations

from typing import Any

from rushlight.creation import from_dlpack
from rushlight.tensor import Tensor


def to_dlpack(tensor: Tensor) -> Any:
    """A capsule for the other library's `from_dlpack`; libraries of today take the tensor itself."""
    return tensor.__dlpack__()


__all__ = ["from_dlpack", "to_dlpack"]
