"""torch.functional: torch's functions that are defined in its file functional.py."""

from __future__ import annotations

import sys
from typing import Any

NAMES = """
    atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod cdist chain_matmul
    einsum istft lu meshgrid norm pca_lowrank split stft svd_lowrank tensordot unique unique_consecutive
    unravel_index
"""


def __getattr__(name: str) -> Any:
    if name == "Tensor":
        return sys.modules["rushlight"].Tensor
    if name not in NAMES.split():
        raise AttributeError(f"module 'torch.functional' has no attribute '{name}'; hint: torch.nn.functional.{name}?")
    return getattr(sys.modules["rushlight"], name)
