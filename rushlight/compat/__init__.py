"""`import torch` means rushlight: for programs that are run as they are.

>>> rushlight.compat.install()
>>> import torch
>>> torch.ones(2) + 1
tensor([2., 2.])

`rushlight run script.py` does this for a script, a module or a notebook; `rushlight check script.py` says which names
of torch a script uses, and which of them exist here, without running it.
"""
from rushlight.compat.hook import install, installed, uninstall

__all__ = ["install", "installed", "uninstall"]
