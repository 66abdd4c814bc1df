"""Attributes of a module that are submodules in torch, so that `import rushlight.backends.cudnn as cudnn` works."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from rushlight.base.missing_names import missing


class Module(ModuleType):
    """A module for sys.modules with the attributes of an object, because libraries such as hypothesis expect modules
    there.
    """

    def __init__(self, name: str, thing: Any) -> None:
        super().__init__(name, thing.__doc__)
        self.__dict__["_thing"] = thing

    def __getattr__(self, name: str) -> Any:
        try:
            return getattr(self._thing, name)
        except AttributeError:
            if name.startswith("__"):
                raise
            return missing(self.__name__, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._thing, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._thing, name)

    def __dir__(self) -> list[str]:
        return dir(self._thing)


def importable(home: str, *names: str) -> None:
    """Make `import home.name` work for each attribute `name` of the module `home`.

    The module gets an empty `__path__`, which import hooks other than `rushlight.compat` require.
    """
    module = sys.modules[home]
    module.__path__ = getattr(module, "__path__", [])
    for name in names:
        thing = getattr(module, name)
        full = f"{home}.{name}"
        found = thing if isinstance(thing, ModuleType) else Module(full, thing)
        sys.modules[full] = found
        setattr(module, name, found)
