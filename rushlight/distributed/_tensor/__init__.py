"""torch.distributed._tensor: the older name of torch.distributed.tensor."""

from rushlight.distributed.tensor import *  # noqa: F403
from rushlight.distributed.tensor import experimental as experimental
