"""Classes of torch and torchvision that rushlight lacks: placeholders for `isinstance`, annotations and bases, made
from a list when a name is missing.

The list, `torch_classes.txt.gz`, is written by `tools/torch_classes.py`. A line is a module and its classes. After its
name, a class may have a description: `=module.Name` for a class of another module, `:M` for an `nn.Module`,
`!ValueError` for an exception of this kind, `{A,B}` for an enumeration."""

from __future__ import annotations

import enum
import importlib
import sys
from collections.abc import Callable
from contextvars import ContextVar
from functools import cache
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from rushlight.base import missing_names
from rushlight.base.errors import not_implemented_error
from rushlight.base.missing_names import instead

# True while `attribute` looks for a name
searching: ContextVar[bool] = ContextVar("searching", default=False)
importing: set[str] = set()  # modules that `find` is importing: the import calls `find` again
# Packages that some builds of torch lack. Their modules do not become attributes: libraries test for them by `hasattr`.
OPTIONAL = {"torch.distributed.rpc"}
LIST = Path(__file__).with_name("torch_classes.txt.gz")


@cache
def known() -> dict[str, dict[str, str]]:
    """{module: {name of a class: its description}}."""
    import gzip  # loaded when a name is first missing

    lines = gzip.decompress(LIST.read_bytes()).decode().splitlines()
    return {line.partition(" ")[0]: dict(map(entry, line.split(" ")[1:])) for line in lines}


def entry(word: str) -> tuple[str, str]:
    """('Name', '=module.Name') of 'Name=module.Name'."""
    end = next((i for i, c in enumerate(word) if c in "=:!{"), len(word))
    return word[:end], word[end:]


def has_module(path: str) -> bool:
    """Whether torch or torchvision has a module of this name."""
    return path in known()


def find(module: str, name: str) -> Any:
    """The class or module `module.name` of torch: rushlight's own, also under another name, or a placeholder. None if
    torch has no such name."""
    path = f"{module}.{name}"
    if has_module(path) and path not in importing and module not in OPTIONAL:
        importing.add(path)
        try:
            return importlib.import_module(path)
        finally:
            importing.discard(path)
    what = known().get(module, {}).get(name)
    if what is None:
        return None
    home = what[1:] if what[:1] == "=" else f"{module}.{name}"
    return ours(home) or placeholder(home)


@cache
def names_of() -> dict[str, list[str]]:
    """{module.Name where a class is defined: all its names in torch, shortest first}."""
    found: dict[str, list[str]] = {}
    for module, classes in known().items():
        for name, what in classes.items():
            home = what[1:] if what[:1] == "=" else f"{module}.{name}"
            found.setdefault(home, []).append(f"{module}.{name}")
    return {home: sorted(names, key=len) for home, names in found.items()}


def ours(home: str) -> Any:
    """rushlight's class of that name, or of another name of the same class; None if there is none."""
    for path in names_of()[home]:
        module, _, name = path.rpartition(".")
        found = attribute(module, name)
        if isinstance(found, type):
            return found
    return None


def attribute(module: str, name: str) -> Any:
    """An attribute of rushlight's module for torch's `module`, loaded if it is lazy. None if the module or the name is
    missing."""
    token = searching.set(True)  # the module's __getattr__ would call `in_module`
    try:
        return getattr(importlib.import_module(ours_of(module)), name, None)
    except ImportError:
        return None
    finally:
        searching.reset(token)


def ours_of(module: str) -> str:
    """rushlight's name of torch's module."""
    top, dot, rest = module.partition(".")
    return ("rushlight.vision" if top == "torchvision" else "rushlight") + dot + rest


def torchs_of(home: str) -> str:
    """torch's name of rushlight's module."""
    if home == "rushlight.vision" or home.startswith("rushlight.vision."):
        return home.replace("rushlight.vision", "torchvision", 1)
    return home.replace("rushlight", "torch", 1)


@cache
def placeholder(home: str) -> type:
    """The placeholder of torch's class `home`. It is made once."""
    module, _, name = home.rpartition(".")
    what = known().get(module, {}).get(name, "")
    if what[:1] == "{":
        members = [member for member in what[1:-1].split(",") if member]
        return enum.Enum(name, members, module=module)  # type: ignore[return-value]
    if what[:1] == "!":
        bases: tuple[type, ...] = (getattr(importlib.import_module("builtins"), what[1:]),)
        body: dict[str, Any] = {}
    else:
        bases = (importlib.import_module("rushlight.nn").Module,) if what == ":M" else ()
        body = {"__new__": refused, "__class_getitem__": classmethod(lambda cls, of: cls)}
    return type(name, bases, {**body, "__module__": module, "__doc__": f"{home}, without a body."})


def refused(cls: type, *args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError: the class exists for isinstance, annotations and bases only."""
    home = next(c for c in cls.__mro__ if vars(c).get("__new__") is not None)  # cls may derive from it
    path = f"{home.__module__}.{home.__name__}"
    raise not_implemented_error(f"{path} is not supported by rushlight", instead(path, home.__module__, ()))


class AbsentModule(ModuleType):
    """A module of torch that rushlight lacks: it has torch's classes."""

    def __getattr__(self, name: str) -> Any:
        found = None if name.startswith("__") else find(self.__name__, name)
        if found is None:
            from rushlight.compat.missing import no_name

            raise no_name(self, self.__name__, name)
        return found

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *known()[self.__name__]})


class Loader:
    """The loader of an `AbsentModule`."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return AbsentModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        module.__path__ = []


def in_module(home: str, name: str) -> Any:
    """`find`, given the name of rushlight's module, in all modules of torch that it stands for."""
    if searching.get():
        return None
    if (found := find(torchs_of(home), name)) is not None:
        return found
    for path, classes in known().items():
        if name in classes and here(path) is sys.modules[home]:
            return find(path, name)
    return None


def here(path: str) -> Any:
    """rushlight's module that stands for torch's module `path`, if it has been imported."""
    found: Any = sys.modules.get(ours_of(path))
    if found is None and "." in path:
        parent, _, name = path.rpartition(".")
        found = getattr(here(parent), "__dict__", {}).get(name)
    return found


# the modules of rushlight that `completed` has seen
seen: set[str] = set()


def completed(module: ModuleType) -> None:
    """Give a module of rushlight, and the modules in it, a `__getattr__` that also finds the classes that only torch's
    module has."""
    if hasattr(type(module), "__getattr__") or module.__name__ in seen:
        return
    seen.add(module.__name__)
    own = vars(module).get("__getattr__")
    module.__dict__["__getattr__"] = lambda name: missed(module, own, name)
    for part in [*vars(module).values()]:
        if isinstance(part, ModuleType) and part.__name__.startswith("rushlight."):
            completed(part)


def missed(module: ModuleType, own: Callable[[str], Any] | None, name: str) -> Any:
    """The attribute from the module's own `__getattr__`, or a placeholder of a missing class."""
    found = missing_names.give_up(module.__name__, name) if own is None else own(name)
    if isinstance(found, ModuleType):
        completed(found)
    return found


def forget() -> None:
    """Delete the modules that rushlight lacks from their parent modules."""
    for path, module in [*sys.modules.items()]:
        if isinstance(module, AbsentModule):
            parent, _, name = path.rpartition(".")
            if vars(sys.modules.get(parent, module)).get(name) is module:
                delattr(sys.modules[parent], name)
