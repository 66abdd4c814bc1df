"""Writes the list of torch's and torchvision's classes, rushlight/compat/torch_classes.txt.gz.

    python tools/torch_classes.py FOLDER

Needs an installed torch; FOLDER contains torchvision's source (`unzip torchvision-*.whl`). torch's modules are
imported, torchvision's are parsed: torchvision needs another build of torch to be imported. rushlight/compat/absent.py
reads the list and explains its format."""

from __future__ import annotations

import ast
import contextlib
import enum
import gzip
import importlib
import io
import pkgutil
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LIST = Path(__file__).parent.parent / "rushlight" / "compat" / "torch_classes.txt.gz"
SKIPPED = (  # tests, scripts that run when they are imported, other people's code
    "torch.testing._internal",
    "torch.utils.benchmark.examples",
    "torch.utils.collect_env",
    "torch.utils.hipify",
    "torch.utils.tensorboard",
    "torch.distributed.run",
    "torch.distributed.launch",
    "torch.contrib",
    "torch._dynamo.repro.after",
    "torch._vendor",
)
Table = dict[str, dict[str, str]]  # module -> name -> how the class is written down


def imported() -> None:
    """Import all of torch's modules that can be imported here."""
    import torch

    quiet = io.StringIO()
    for found in pkgutil.walk_packages(torch.__path__, "torch.", onerror=lambda name: None):
        if found.name.startswith(SKIPPED) or "__main__" in found.name:
            continue
        with contextlib.suppress(BaseException), contextlib.redirect_stdout(quiet):
            importlib.import_module(found.name)


def of_torch() -> Table:
    imported()
    modules = {
        name: module
        for name, module in sorted(sys.modules.items())
        if name.partition(".")[0] == "torch" and module and not name.startswith(SKIPPED)
    }
    table: Table = {}
    for name, module in modules.items():
        classes = {
            key: value
            for key, value in list(vars(module).items())
            if isinstance(value, type) and str(value.__module__).partition(".")[0] == "torch"
        }
        table[name] = {key: described(name, key, c, modules) for key, c in sorted(classes.items())}
    return table


def described(module: str, name: str, cls: type, modules: dict[str, Any]) -> str:
    """`=module.name` for a class that is defined elsewhere, else what kind of class it is."""
    home, elsewhere = modules.get(cls.__module__), (cls.__module__, cls.__name__) != (module, name)
    if elsewhere and home is not None and vars(home).get(cls.__name__) is cls:
        return f"={cls.__module__}.{cls.__name__}"
    return kind(cls)


def kind(cls: type) -> str:
    """`!ValueError` for an exception, `{A,B}` for an enumeration, `:M` for a module, else ``."""
    if issubclass(cls, BaseException):
        return "!" + next(c.__name__ for c in cls.__mro__ if c.__module__ == "builtins")
    members = getattr(cls, "__members__", None)
    if isinstance(members, dict) or issubclass(cls, enum.Enum):
        return "{" + ",".join(members) + "}"
    import torch

    return ":M" if issubclass(cls, torch.nn.Module) else ""


# -- torchvision -----------------------------------------------------------------------------------


def of_torchvision(folder: Path) -> Table:
    """The classes that torchvision's files define or import from each other."""
    trees = {
        module_name(path, folder): (ast.parse(path.read_text()), path.name == "__init__.py")
        for path in sorted((folder / "torchvision").rglob("*.py"))
    }
    table: Table = {name: dict(defined(tree)) for name, (tree, _) in trees.items()}
    for _ in range(4):  # an import of an import, four times over
        for name, (tree, package) in trees.items():
            for key, home, original in imports(tree, name, package):
                if original == "*":
                    for one, what in list(table.get(home, {}).items()):
                        if not one.startswith("_"):
                            table[name].setdefault(one, what if what[:1] == "=" else f"={home}.{one}")
                elif original in table.get(home, {}):
                    what = table[home][original]
                    table[name].setdefault(key, what if what[:1] == "=" else f"={home}.{original}")
    return table


def module_name(path: Path, folder: Path) -> str:
    return ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")


def defined(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            bases = [ast.unparse(base).rpartition(".")[2] for base in node.bases]
            if set(bases) & {"Enum", "StrEnum"}:
                members = [
                    t.id for s in node.body if isinstance(s, ast.Assign) for t in s.targets if isinstance(t, ast.Name)
                ]
                yield node.name, "{" + ",".join(members) + "}"
            elif "WeightsEnum" in bases:  # the members are there after a download
                yield node.name, ""
            else:
                yield node.name, ":M" if "Module" in bases else ""


def imports(tree: ast.Module, module: str, package: bool) -> Iterator[tuple[str, str, str]]:
    """(name here, module, name there) of each `from module import name` within torchvision."""
    for node in tree.body:
        if not isinstance(node, ast.ImportFrom):
            continue
        parts = module.split(".")
        base = parts[: len(parts) - node.level + package] if node.level else []
        home = ".".join([*base, *([node.module] if node.module else [])])
        if home.partition(".")[0] == "torchvision":
            for alias in node.names:
                yield alias.asname or alias.name, home, alias.name


def main() -> None:
    warnings.simplefilter("ignore")
    table = of_torch() | of_torchvision(Path(sys.argv[1]))
    lines = [
        " ".join([module, *(f"{name}{what}" for name, what in sorted(classes.items()))])
        for module, classes in sorted(table.items())
    ]
    text = "\n".join(lines) + "\n"
    LIST.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    print(f"{len(lines)} modules, {sum(map(len, table.values()))} names, {LIST.stat().st_size} bytes")


if __name__ == "__main__":
    main()
