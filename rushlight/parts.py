"""Parts of a module that are modules in torch: `import rushlight.backends.cudnn as cudnn` finds them, under any name."""
from __future__ import annotations

import sys


def importable(home: str, *names: str) -> None:
    """Let Python import `home.name` for names in the module `home`, as it does where torch has a file for each.

    The module gets a path, of no folders: what stands in for torch by other means than `rushlight.compat` asks for it.
    """
    module = sys.modules[home]
    module.__path__ = getattr(module, "__path__", [])
    for name in names:
        sys.modules[f"{home}.{name}"] = getattr(module, name)
