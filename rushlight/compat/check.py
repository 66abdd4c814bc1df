"""`rushlight check`: each name of torch in a program is present, only raises, or is missing. The program is not run."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from dis import get_instructions
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from rushlight.base.missing_names import nearest
from rushlight.base.public_function import private
from rushlight.compat.hook import OURS, exists
from rushlight.compat.run import NotAProgram, cells, check_readable, without_magic

PRESENT, RAISES, MISSING = "ok", "raises", "missing"
# the methods of a class that a call or a `with` statement uses
ENTRANCES = ("__new__", "__init__", "__enter__")


class Use(NamedTuple):
    """A use of a name of torch, 'torch.nn.Linear': places in the program, the kind (PRESENT, RAISES or MISSING), and
    for a missing name the nearest existing one."""

    name: str
    places: list[str]
    kind: str
    like: str | None


def check(path: str) -> list[Use]:
    """The names of torch and torchvision that a script or notebook uses, in order.

    Methods of tensors are not checked."""
    check_readable(path)
    places: dict[str, list[str]] = {}
    known: dict[str, str] = {}  # name in the program -> name of torch: F -> torch.nn.functional
    for where, source in parts(path):
        try:
            tree = ast.parse(source, path)
        except SyntaxError as error:
            raise NotAProgram(f"{path}:{error.lineno}: {error.msg}") from None
        for name, line in uses(tree, known):
            places.setdefault(name, []).append(f"{where}{line}")
    return [Use(name, lines, *look_up(name)) for name, lines in sorted(places.items())]


def parts(path: str) -> Iterator[tuple[str, str]]:
    """(prefix for line numbers, source) of the script, or of each cell of the notebook."""
    if path.endswith(".ipynb"):
        yield from ((f"cell {n} line ", without_magic(source)) for n, source in enumerate(cells(path), 1))
    else:
        yield "line ", Path(path).read_text(encoding="utf-8", errors="replace")


def uses(tree: ast.AST, known: dict[str, str]) -> Iterator[tuple[str, int]]:
    """(dotted name, line) of each use of torch: imports, and the longest attribute chains from there."""
    inner: set[int] = set()  # ids of the nodes inside longer chains of attributes
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from imported(node, known)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and is_torch(node.module or ""):
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                known[alias.asname or alias.name] = full
                yield (node.module or "") if alias.name == "*" else full, node.lineno
    for name in rebound(tree):  # `for data in loader` after `from torch.utils import data`
        known.pop(name, None)
    for node in ast.walk(tree):  # breadth first: the longest chain comes first
        if isinstance(node, ast.Attribute) and id(node) not in inner:
            chain = chain_of(node, inner)
            if chain and chain[0] in known:
                yield ".".join([known[chain[0]], *chain[1:]]), node.lineno


def rebound(tree: ast.AST) -> set[str]:
    """The names that the program itself assigns, except `torch`: their meaning may change, so they are not checked."""
    stored = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return (stored | {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}) - set(OURS)


def imported(node: ast.Import, known: dict[str, str]) -> Iterator[tuple[str, int]]:
    for alias in node.names:
        if is_torch(alias.name):
            top = alias.name.partition(".")[0]
            known[alias.asname or top] = alias.name if alias.asname else top
            yield alias.name, node.lineno


def is_torch(module: str) -> bool:
    return module.partition(".")[0] in OURS


def chain_of(node: ast.Attribute, inner: set[int]) -> list[str]:
    """['torch', 'nn', 'Linear'] for torch.nn.Linear; [] if the chain does not begin with a name."""
    names: list[str] = []
    at: ast.expr = node
    while isinstance(at, ast.Attribute):
        names.append(at.attr)
        at = at.value
        inner.add(id(at))
    return [at.id, *reversed(names)] if isinstance(at, ast.Name) else []


def only_raises(value: Any) -> bool:
    """Whether calling a function, or making an object of a class, can only raise an error: its code has no instruction
    that returns.

    >>> from rushlight.compat.check import only_raises
    >>> only_raises(rushlight.jit.save), only_raises(rushlight.save)
    (True, False)
    """
    if isinstance(value, type):
        own = (vars(value).get(name) for name in ENTRANCES)
        return any(isinstance(f, FunctionType) and only_raises(f) for f in own)
    value = private(value)
    if not isinstance(value, FunctionType):
        return False
    return not any(one.opname.startswith("RETURN") for one in get_instructions(value))


def look_up(name: str) -> tuple[str, str | None]:
    """(the kind of a dotted name, the nearest existing name if it is missing)."""
    module, rest = home_of(*name.split("."))
    for i, part in enumerate(rest):
        if not has(module, part):
            like = nearest(part, dir(module)) if i == len(rest) - 1 or isinstance(module, ModuleType) else None
            return MISSING, like and ".".join([*name.split(".")[: -len(rest) + i or None], like])
        module = getattr(module, part)
        if not isinstance(module, (ModuleType, type)):
            break  # an attribute of a value that is known only at run time
    return RAISES if only_raises(module) else PRESENT, None


def has(where: Any, name: str) -> bool:
    """Whether `where` has the name. True if loading it fails because an optional package is not installed."""
    try:
        getattr(where, name)
    except ImportError as error:
        return (error.name or "").partition(".")[0] != "rushlight"
    except AttributeError:
        return False
    return True


def home_of(top: str, *parts: str) -> tuple[ModuleType, list[str]]:
    """(the innermost module of a path, the rest of the path)."""
    path, rest = OURS[top], list(parts)
    while rest and exists(f"{path}.{rest[0]}"):
        path = f"{path}.{rest.pop(0)}"
    return importlib.import_module(path), rest
