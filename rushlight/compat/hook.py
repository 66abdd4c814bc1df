"""The import hook: `torch`, `torch.x.y`, `torchvision`, `torchao` and `functorch` are found here."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import Distribution, DistributionFinder
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import rushlight
from rushlight.base import missing_names, shown_names
from rushlight.base.public_function import PublicFunction
from rushlight.compat import absent, children, torch_function_classes
from rushlight.compat.missing import no_module, no_name
from rushlight.torch_version import TorchVersion
from rushlight.version import torch_version

OURS = {
    "torch": "rushlight", "torchvision": "rushlight.vision", "functorch": "rushlight.functorch",
    "torchao": "rushlight.ao.torchao",
}  # fmt: skip
# the module names that programs see: print(type(x)) shows <class 'torch.Tensor'>
SHOWN = {
    rushlight.Tensor: "torch", rushlight.dtype: "torch", rushlight.device: "torch", rushlight.Size: "torch",
    rushlight.Generator: "torch._C",
}  # fmt: skip
everything = DistributionFinder.Context()  # for all packages
HOMES = {cls: cls.__module__ for cls in SHOWN}


class Torch(ModuleType):
    """The module `torch`: rushlight's names, torch's version, and errors with a hint for missing names."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__config__":
            raise AttributeError(name)
        try:
            found = getattr(rushlight, name)
        except AttributeError:
            raise no_name(self, "torch", name) from None
        if isinstance(found, ModuleType):
            absent.completed(found)
        elif isinstance(found, (PublicFunction, FunctionType, type, rushlight.dtype)):
            vars(self)[name] = found  # the next access takes 0.04 us instead of 0.5
        return found

    def __dir__(self) -> list[str]:
        return sorted({*(name for name in dir(rushlight) if not name.startswith("__")), *vars(self)})


class Same:  # not derived from importlib.abc.Loader, whose import is slow
    """A loader that returns rushlight's module under torch's name: the same module object, so both names share
    state."""

    def __init__(self, home: str, fullname: str):
        self.home, self.fullname = home, fullname

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        if self.home == "rushlight":
            return Torch("torch", rushlight.__doc__)
        parent, _, name = self.home.rpartition(".")
        self.module = importlib.import_module(self.home) if exists(self.home) else getattr(sys.modules[parent], name)
        self.spec = getattr(self.module, "__spec__", None)  # the import system overwrites __spec__
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        if self.home == "rushlight":
            module.__version__, module.__path__ = TorchVersion(torch_version), []  # type: ignore[attr-defined]
            module.__file__ = rushlight.__file__
            module.version = sys.modules["torch.version"] = versions()  # type: ignore[attr-defined]
        else:
            module.__spec__ = self.spec
            absent.completed(module)
            shared_names(self.home, self.fullname, module)


def shared_names(home: str, fullname: str, package: ModuleType) -> None:
    """Register submodules that share their name with a function of the package (nn.parallel.data_parallel) under
    torch's name at once: importing one later would replace the function."""
    for name, part in list(sys.modules.items()):
        parent, _, own = name.rpartition(".")
        if parent == home and part is not None and callable(getattr(package, own, None)):
            sys.modules[f"{fullname}.{own}"] = part
            absent.completed(part)


def versions() -> ModuleType:
    """The module `torch.version`: rushlight's, with torch's version number."""
    made = ModuleType("torch.version")
    made.__dict__.update(
        {
            **vars(importlib.import_module("rushlight.version")),
            "__name__": "torch.version",
            "__version__": torch_version,
        }
    )
    return made


class Package(Distribution):
    """The metadata of the package torch for `importlib.metadata`: libraries read its version."""

    def read_text(self, filename: str) -> str | None:
        return f"Metadata-Version: 2.1\nName: torch\nVersion: {torch_version}\n" if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        return Path(rushlight.__file__).parent / path


class Finder:
    """A meta path finder: torch.x.y is rushlight.x.y."""

    def find_distributions(self, context: DistributionFinder.Context = everything) -> Iterator[Distribution]:
        if context.name == "torch":
            yield Package()

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        if fullname == "mpi4py.MPI":
            return importlib.import_module("rushlight.comm.mpi_later").spec(fullname)
        top = fullname.partition(".")[0]
        if top not in OURS or top == "torchvision" and another_vision():
            return None
        home = home_of(fullname)
        if not (exists(home) or has_part(home)):
            if absent.has_module(fullname):
                return ModuleSpec(fullname, absent.Loader(), is_package=True)  # type: ignore[arg-type]
            raise no_module(fullname)
        return ModuleSpec(fullname, Same(home, fullname), is_package=True)  # type: ignore[arg-type]


def home_of(path: str) -> str:
    """rushlight's name of torch's module."""
    top, dot, rest = path.partition(".")
    return OURS[top] + dot + rest


def exists(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ModuleNotFoundError, ValueError):  # a parent is missing, or is not a package
        return False


def has_part(home: str) -> bool:
    """Whether the name is a module in torch and an attribute of a module here (torch.backends.cudnn)."""
    parent, _, name = home.rpartition(".")
    found = getattr(importlib.import_module(parent), name, None) if exists(parent) else None
    return found is not None and not isinstance(found, type) and not callable(found)


def another_vision() -> bool:
    """Whether a torchvision is installed without a real torch: the user's own replacement."""
    vision, torch = real("torchvision"), real("torch")
    return vision is not None and (torch is None or folder(vision) != folder(torch))


def real(name: str) -> ModuleSpec | None:
    """The spec of an installed package of that name, or None."""
    return PathFinder.find_spec(name)


def folder(spec: ModuleSpec) -> Path:
    return Path(spec.origin or ".").resolve().parent.parent


finder = Finder()


def installed() -> bool:
    """Whether `import torch` means rushlight."""
    return finder in sys.meta_path


def install() -> None:
    """Make `import torch` and `import torchvision` import rushlight in this process, from now on, and in processes that
    it starts.

    If a real torch is installed, too, prints a line to stderr that rushlight runs instead. RuntimeError if the real
    torch has been imported already: tensors of both do not mix."""
    if installed():
        return
    if "torch" in sys.modules:
        raise RuntimeError(
            "torch itself has been imported already, its tensors and rushlight's do not mix; call "
            "rushlight.compat.install() before the first `import torch`"
        )
    if real("torch") is not None and not children.told():
        print("rushlight: using rushlight for `import torch`; the installed torch is ignored", file=sys.stderr)
    sys.meta_path.insert(0, finder)
    children.tell()
    for cls, module in SHOWN.items():
        cls.__module__ = module
    shown_names.show(True)
    missing_names.finders.append(absent.in_module)
    torch_function_classes.listen()
    importlib.import_module("torch")  # libraries such as einops look for torch in sys.modules


def uninstall() -> None:
    """Undo `install`: the names are free for a real torch again."""
    if installed():
        sys.meta_path.remove(finder)
        children.untell()
        torch_function_classes.stop()
        for cls, module in HOMES.items():
            cls.__module__ = module
        shown_names.show(False)
        missing_names.finders.clear()
        absent.forget()
        for name in [name for name in sys.modules if name.partition(".")[0] in OURS]:
            del sys.modules[name]
