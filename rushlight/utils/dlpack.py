"""torch.utils.dlpack: tensors that share memory with other libraries."""

from __future__ import annotations

from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.creation.factories import from_dlpack


def to_dlpack(tensor: Tensor) -> Any:
    """capsule = tensor.__dlpack__(), for the other library's `from_dlpack`; current libraries accept the tensor itself.

    >>> from rushlight.utils.dlpack import from_dlpack, to_dlpack
    >>> from_dlpack(to_dlpack(rushlight.ones(2)))
    tensor([1., 1.])
    """
    return tensor.__dlpack__()


__all__ = ["from_dlpack", "to_dlpack"]
