"""Under which names classes stand in torch: in the files that torch.save writes, and in programs written for torch, where
classes say of themselves what torch's say (`type(m).__module__.startswith("torch.nn")` is a question of many).

A class is shown in a module that has its file and its names, so that inspect.getsource and typing.get_type_hints work on it;
in a few cases (nn.LazyLinear, nn.MultiheadAttention) that is not the one that files name.
"""
from __future__ import annotations

import sys
from collections.abc import Iterable
from types import ModuleType

IN_FILES: dict[type, tuple[str, str]] = {}        # class: module and name in torch's files
HOMES: dict[type, str] = {}                       # class: its module here, whatever it says of itself
PLACES: dict[str, tuple[ModuleType, list[type]]] = {}                # module of torch's: ours, and the classes shown in it
shown = False


def place(name: str, module: ModuleType, classes: Iterable[type]) -> None:
    """Let these classes be shown in the module `name` of torch's, which is `module` here."""
    PLACES[name] = module, list(classes)
    for cls in PLACES[name][1]:
        HOMES[cls] = cls.__module__
        IN_FILES.setdefault(cls, (name, cls.__qualname__))
    if shown:
        put(name)


def put(name: str) -> None:
    sys.modules[name], classes = PLACES[name]
    for cls in classes:
        cls.__module__ = name


def show(as_torchs: bool) -> None:
    """Let all classes, also those that are placed later, say that they are torch's, or rushlight's again."""
    global shown
    shown = as_torchs
    for name in PLACES if shown else ():
        put(name)
    if not shown:
        for cls, home in HOMES.items():
            cls.__module__ = home


def home(cls: type) -> str:
    """The module where a class stands: of one of rushlight's always rushlight's."""
    return HOMES.get(cls, cls.__module__)
