"""The version; no other file defines it."""

__version__ = "0.1.0"
torch_version = "2.13.0+rushlight"  # for programs that test torch's version
vision_version = "0.28.0+rushlight"  # the torchvision version that belongs to it
cuda = hip = xpu = git_version = None  # torch's build options: CPU only
debug = False
