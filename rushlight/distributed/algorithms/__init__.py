"""torch.distributed.algorithms."""

from rushlight.distributed.algorithms import ddp_comm_hooks, join

__all__ = ["ddp_comm_hooks", "join"]
