"""torch's module names of classes: in the files that torch.save writes, and in programs written for torch.

Many programs test `type(m).__module__.startswith("torch.nn")`, so under compat the classes carry torch's module names.
The module shown must contain the class's source and globals, for inspect.getsource and typing.get_type_hints. In a few
cases (nn.LazyLinear, nn.MultiheadAttention) it differs from the module named in files."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import ModuleType

IN_FILES: dict[type, tuple[str, str]] = {}  # class -> (module, name) in torch's files
HOMES: dict[type, str] = {}  # class -> the module that defines it (__module__ shows torch's)
# torch's module -> (our module, the classes shown in it)
PLACES: dict[str, tuple[ModuleType, list[type]]] = {}
shown = False


def place(name: str, module: ModuleType, classes: Iterable[type]) -> None:
    """Show these classes, defined in `module` of rushlight, under torch's module `name`."""
    PLACES[name] = module, list(classes)
    for cls in PLACES[name][1]:
        HOMES[cls] = cls.__module__
        IN_FILES.setdefault(cls, (name, cls.__qualname__))
    if shown:
        put(name)


def put(name: str) -> None:
    sys.modules[name], classes = PLACES[name]
    for cls in classes:
        set_module(cls, name)


def set_module(cls: type, name: str) -> None:
    """Set `__module__`. Python 3.13 deletes `__firstlineno__` then, which inspect.getsource needs."""
    line = vars(cls).get("__firstlineno__")
    cls.__module__ = name
    if line is not None:
        cls.__firstlineno__ = line  # type: ignore[attr-defined]


def show(as_torchs: bool) -> None:
    """Set `__module__` of all placed classes, now and later, to torch's names, or back to rushlight's."""
    global shown
    shown = as_torchs
    for name in PLACES if shown else ():
        put(name)
    if not shown:
        for cls, home in HOMES.items():
            set_module(cls, home)


def home(cls: type) -> str:
    """The defining module of a class; for a class of rushlight always rushlight's module."""
    return HOMES.get(cls, cls.__module__)
