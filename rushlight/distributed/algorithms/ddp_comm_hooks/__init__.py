"""torch.distributed.algorithms.ddp_comm_hooks: how DistributedDataParallel sums a bucket."""

from rushlight.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

__all__ = ["default_hooks", "powerSGD_hook"]
