"""Counts the places in the package that recognise an op by its name as text: such a fact belongs to the op's entry.

    python tools/house_names.py             the number of places in each file, and their sum
    python tools/house_names.py --list      file:line: name of each place

A place is a text that equals a name of the table and

- is compared with the name of an op: `step.op == "mul"`, `op.name in ("mul", "div")`,
- or is a key of a table in which an op's name is looked up: `COSTS = {"mul": 1}`, `COSTS[step.op]`,
- or is an argument of a decorator: `@rule("mul")`.

The name of an op is what stands in `OP_NAMES`: `x.op`, `x.name`, `f.__name__`, or a variable `op` or `name`.

What gives meaning to the names in rules is no fact of an op: the line above such a table begins with `WORLD`. A table
of which not one text in `MOST_OTHERS` is the name of an op is about other things. Tables that are made of other tables
are not followed: torch's lists of functions, most of which are no ops, in amp/autocast_policy.py."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Container, Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).resolve().parent.parent / "rushlight"
OP_NAMES = {"op", "name", "called", "__name__"}
METHODS = {"startswith", "endswith", "get"}
COLLECTIONS = {"dict.fromkeys", "frozenset", "set", "tuple", "list"}
WORLD = "# A world:"
MOST_OTHERS = 10
LOOKED_AT = ast.ImportFrom, ast.FunctionDef, ast.Compare, ast.Subscript, ast.Call


class Place(NamedTuple):
    file: str
    line: int
    name: str


def table_names() -> frozenset[str]:
    """The names of all entries of the table."""
    sys.path.insert(0, str(PACKAGE.parent))
    from rushlight.base.lazy import complete
    from rushlight.core.table import TABLE

    complete()
    return frozenset(TABLE)


def places(names: Container[str], root: Path = PACKAGE) -> list[Place]:
    """All places below `root` that recognise one of `names`, sorted by file and line."""
    sources = {path.relative_to(root).as_posix(): path.read_text() for path in sorted(root.rglob("*.py"))}
    trees = {file: ast.parse(source) for file, source in sources.items()}
    tables = {
        (file, table): texts
        for file, tree in trees.items()
        for table, texts in tables_in(tree, sources[file].splitlines()).items()
        if MOST_OTHERS * sum(text.value in names for text in texts) >= len(texts)
    }
    found = set()
    for file, tree in trees.items():
        nodes = [node for node in ast.walk(tree) if isinstance(node, LOOKED_AT)]
        imported = {
            alias.asname or alias.name: file_of(node.module or "", trees)
            for node in nodes
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        for node in nodes:
            if isinstance(node, ast.FunctionDef):
                found.update(
                    Place(file, text.lineno, text.value)
                    for decorator in node.decorator_list
                    if isinstance(decorator, ast.Call)
                    for argument in decorator.args
                    for text in texts_in(argument)
                    if text.value in names
                )
            for side in compared(node):
                if isinstance(side, ast.Name):
                    home = imported.get(side.id, file)
                    texts = tables.get((home, side.id), [])
                else:
                    home, texts = file, list(texts_in(side))
                found.update(Place(home, text.lineno, text.value) for text in texts if text.value in names)
    return sorted(found)


def file_of(module: str, files: Container[str]) -> str:
    """The file of a module of the package."""
    path = module.partition(".")[2].replace(".", "/")
    return f"{path}.py" if f"{path}.py" in files else f"{path}/__init__.py"


def tables_in(tree: ast.Module, lines: list[str]) -> dict[str, list[ast.Constant]]:
    """For each name that a module assigns, the texts that can be looked up in it, except those of worlds."""
    found: dict[str, list[ast.Constant]] = {}
    for node in tree.body:
        world = lines[node.lineno - 2].startswith(WORLD)
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None and not world:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    found[target.id] = list(texts_in(node.value))
    return found


def compared(node: ast.AST) -> Iterator[ast.expr]:
    """The texts with which this node compares the name of an op, or looks it up."""
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        if any(map(is_op_name, sides)):
            yield from (side for side in sides if not is_op_name(side))
    elif isinstance(node, ast.Subscript) and is_op_name(node.slice):
        yield node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
        if is_op_name(node.func.value):
            yield from node.args
        elif node.args and is_op_name(node.args[0]):
            yield node.func.value


def is_op_name(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Attribute) and node.attr in OP_NAMES or isinstance(node, ast.Name) and node.id in OP_NAMES
    )


def texts_in(node: ast.expr) -> Iterator[ast.Constant]:
    """The texts of a constant, a collection, the keys of a dict, and of sums and calls of such."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node
    elif isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        for item in node.elts:
            yield from texts_in(item)
    elif isinstance(node, ast.Dict):
        for item in node.keys:
            if item is not None:
                yield from texts_in(item)
    elif isinstance(node, ast.BinOp):
        yield from texts_in(node.left)
        yield from texts_in(node.right)
    elif isinstance(node, ast.Call) and ast.unparse(node.func) in COLLECTIONS:
        for item in node.args:
            yield from texts_in(item)


def main() -> None:
    found = places(table_names())
    if "--list" in sys.argv:
        print("\n".join(f"{p.file}:{p.line}: {p.name}" for p in found))
        return
    for file, number in sorted(Counter(p.file for p in found).items()):
        print(f"{number:5} {file}")
    print(f"{len(found):5} in all, {sum(not p.file.startswith('ops/') for p in found)} of them outside ops/")


if __name__ == "__main__":
    main()
