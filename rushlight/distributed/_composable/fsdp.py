"""torch's private home of `fully_shard`, which libraries import."""

from __future__ import annotations

from rushlight.distributed.fsdp import FSDPModule, fully_shard

__all__ = ["FSDPModule", "fully_shard"]
