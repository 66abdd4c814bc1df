"""torch.distributed.tensor.placement_types: the classes of rushlight.distributed.tensor."""

from __future__ import annotations

from rushlight.distributed.tensor import Partial, Placement, Replicate, Shard, _StridedShard

__all__ = ["Partial", "Placement", "Replicate", "Shard", "_StridedShard"]
