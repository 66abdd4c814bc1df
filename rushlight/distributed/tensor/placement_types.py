"""torch.distributed.tensor.placement_types: see the package."""

from __future__ import annotations

from rushlight.distributed.tensor import Partial, Placement, Replicate, Shard, _StridedShard

__all__ = ["Partial", "Placement", "Replicate", "Shard", "_StridedShard"]
