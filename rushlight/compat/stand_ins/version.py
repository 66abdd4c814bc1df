"""torch.version: what was built into it. Nothing but the CPU."""
from rushlight.version import torch_version as __version__

cuda = hip = xpu = git_version = None
debug = False
