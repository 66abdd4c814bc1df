"""torch's private module about parts of distributed tensors, which libraries import."""

from __future__ import annotations

from typing import Any


def compute_local_shape_and_global_offset(global_shape: Any, mesh: Any, placements: Any) -> Any:
    """NotImplementedError: tensors belong to one process."""
    raise NotImplementedError("distributed tensors are not supported")
