"""`import torch` means rushlight: for programs that are run as they are.

    import rushlight.compat
    rushlight.compat.install()
    import torch                                  # from now on rushlight, here and in every library

`rushlight run script.py` does this for a script, a module or a notebook; `rushlight check script.py` says which names
of torch a script uses, and which of them exist here, without running it.
"""
from importlib import import_module
from typing import Any

__all__ = ["install", "installed", "uninstall"]


def __getattr__(name: str) -> Any:
    if name in __all__:                           # the command line needs only the texts of its commands
        return getattr(import_module("rushlight.compat.hook"), name)
    raise AttributeError(f"module 'rushlight.compat' has no attribute '{name}'")
