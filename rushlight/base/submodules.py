"""Attributes of a module that are submodules in torch: makes `import rushlight.backends.cudnn as
cudnn` work."""

from __future__ import annotations

import sys


def importable(home: str, *names: str) -> None:
    """Make `import home.name` work for each attribute `name` of the module `home`.

    The module gets an empty `__path__`, which other import hooks than `rushlight.compat` require.
    """
    module = sys.modules[home]
    module.__path__ = getattr(module, "__path__", [])
    for name in names:
        sys.modules[f"{home}.{name}"] = getattr(module, name)
