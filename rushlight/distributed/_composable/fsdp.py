"""torch's private home of `fully_shard`, which libraries import."""
from __future__ import annotations

from rushlight.distributed.fsdp import fully_shard

__all__ = ["fully_shard"]
