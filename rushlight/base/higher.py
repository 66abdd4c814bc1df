"""Modules of higher layers that lower layers call.

A layer imports only lower layers. If a lower layer needs a higher one (a docstring is written when it is read), it
declares a `Higher` and calls it; `rushlight/__init__.py` names the module. Within a layer, a `Higher` with a module
name defers the import of a file that itself imports this file.
"""

from importlib import import_module
from typing import Any


class Higher:
    """A module that is imported on first use. RuntimeError if no module was named."""

    __slots__ = ("module",)

    def __init__(self, module: str = "") -> None:
        self.module = module

    def __call__(self) -> Any:
        if not self.module:
            raise RuntimeError("this layer runs without the rest of rushlight: import rushlight")
        return import_module(self.module)
