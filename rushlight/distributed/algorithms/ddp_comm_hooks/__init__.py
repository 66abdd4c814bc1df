"""torch.distributed.algorithms.ddp_comm_hooks: how DistributedDataParallel sums a bucket."""

from rushlight.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook, quantization_hooks

quantization = quantization_hooks  # torch's name

__all__ = ["default_hooks", "powerSGD_hook", "quantization_hooks"]
