"""Make `import torch` import rushlight, to run programs unchanged.

    import rushlight.compat
    rushlight.compat.install()
    import torch                                  # from now on rushlight, here and in every library

`rushlight run script.py` does this for a script, a module or a notebook. `rushlight check script.py` lists the names of
torch in a script, and whether rushlight has them, without running the script."""

from importlib import import_module
from typing import Any

__all__ = ["install", "installed", "uninstall"]


def __getattr__(name: str) -> Any:
    if name in __all__:  # loaded on demand: the command line needs only the help texts
        return getattr(import_module("rushlight.compat.hook"), name)
    raise AttributeError(f"module 'rushlight.compat' has no attribute '{name}'")
