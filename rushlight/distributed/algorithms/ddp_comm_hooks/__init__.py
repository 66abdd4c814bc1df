"""torch.distributed.algorithms.ddp_comm_hooks: ways for DistributedDataParallel to sum a bucket of gradients."""

from rushlight.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook, quantization_hooks

quantization = quantization_hooks  # torch's name

__all__ = ["default_hooks", "powerSGD_hook", "quantization_hooks"]
