"""The version: the only place that states it."""

__version__ = "0.2.0"
torch_version = "2.13.0+rushlight"  # for programs that ask which torch this is
vision_version = "0.28.0+rushlight"  # of the torchvision that goes with it
cuda = hip = xpu = git_version = None  # what torch was built with: nothing but the CPU
debug = False
