"""What helps to use tensors: so far, data sets and their loaders."""
from __future__ import annotations

from rushlight.utils import data

__all__ = ["data"]
