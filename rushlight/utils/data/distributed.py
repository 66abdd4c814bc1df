"""torch.utils.data.distributed: the sampler of one of several processes."""

from rushlight.utils.data.sampler import DistributedSampler as DistributedSampler

__all__ = ["DistributedSampler"]
