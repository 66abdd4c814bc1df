"""What the tests of layers and house need to know of each file of a package, from one parse."""

from __future__ import annotations

import ast
import functools
import gc
from bisect import bisect_left, bisect_right
from pathlib import Path
from typing import NamedTuple

import house  # tools/house.py


class Facts(NamedTuple):
    """`tokens`: of the file; `functions`: {name: (tokens, branches)}; `imports`: the statements that import, and calls
    of `import_module`. Comments are no tokens; a docstring is one."""

    tokens: int
    functions: dict[str, tuple[int, int]]
    imports: list[ast.AST]


@functools.cache
def facts(package: Path) -> dict[str, Facts]:
    """{file: its facts}. Garbage collection is off: it would visit every tree many times, and take 4 s of 9."""
    collects = gc.isenabled()
    gc.disable()
    try:
        return {source.name: facts_of(source) for source in house.sources(package)}
    finally:
        if collects:
            gc.enable()


def facts_of(source: house.Source) -> Facts:
    lines, functions = source.token_lines, {}
    for node, name in house.named_functions(source.tree):
        tokens = bisect_right(lines, node.end_lineno) - bisect_left(lines, node.lineno)
        functions[name] = tokens, house.branches(node)
    return Facts(len(lines), functions, [node for node in ast.walk(source.tree) if imports(node)])


def imports(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return getattr(node.func, "attr", getattr(node.func, "id", "")) == "import_module"
    return isinstance(node, (ast.Import, ast.ImportFrom))
