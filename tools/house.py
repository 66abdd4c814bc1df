"""Measures of a checkout, in one table: how large the package is, how dense its lines are, and where facts stand that
belong elsewhere.

    python tools/house.py [ROOT]               one column
    python tools/house.py [ROOT] --against OLD   two columns: OLD, then ROOT

ROOT is the folder of a checkout: of this one, if none is given. A checkout from before the folders were layers can be
measured, too. The op names are those of this checkout's table."""

from __future__ import annotations

import argparse
import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import house_names

HERE = Path(__file__).resolve().parent.parent

WIDTH = 120  # columns
FUNCTION_LINES = 40
FUNCTION_BRANCHES = 15
DESCRIBED = "softmax", "layer_norm", "convolution"
# The places that may compare names of ops: entries, kernels, and the page of faster ways. In the old layout, kernels
# were in ops/.
NAMES_ALLOWED = "ops/", "kernels/", "fast/index.py"

# The files that became core/ when the folders became layers.
OLD_CORE = """
    autograd/backward autograd/clock autograd/engine autograd/finite autograd/function
    autograd/grad_mode autograd/node autograd/views copying inspection ops/arguments ops/build
    ops/calls ops/docstring ops/failures ops/families ops/later ops/names ops/results ops/table
    ops/worlds printing tensor
"""
LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
FUNCTIONS = ast.FunctionDef, ast.AsyncFunctionDef
BRANCHING = (ast.If, ast.IfExp, ast.For, ast.While, ast.ExceptHandler, ast.comprehension, ast.Assert, ast.match_case)


class Source:
    """A file of the package: its text, its tokens and its syntax tree."""

    def __init__(self, path: Path, package: Path):
        self.name = path.relative_to(package).as_posix()
        self.text = path.read_text()

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.name)

    @cached_property
    def token_lines(self) -> list[int]:
        """The line of each token. Comments do not count as tokens."""
        return [token.start[0] for token in self.tokens()]

    def tokens(self) -> Iterator[tokenize.TokenInfo]:
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            if token.type not in LAYOUT:
                yield token

    def code_lines(self) -> list[int]:
        """The line of each token, without texts of several lines, as most docstrings are."""
        return [
            token.start[0] for token in self.tokens() if not (token.type == tokenize.STRING and "\n" in token.string)
        ]


def sources(package: Path) -> list[Source]:
    return [Source(path, package) for path in sorted(package.rglob("*.py"))]


def named_functions(node: ast.AST, prefix: str = "") -> Iterator[tuple[ast.AST, str]]:
    """(node, name with the classes and functions around it), for every function below the node."""
    for child in ast.iter_child_nodes(node):
        named = isinstance(child, (*FUNCTIONS, ast.ClassDef))
        if isinstance(child, FUNCTIONS):
            yield child, prefix + child.name
        yield from named_functions(child, f"{prefix}{child.name}." if named else prefix)


def branches(function: ast.AST) -> int:
    """The number of paths through a function: one, plus one for each `if`, loop, handler, `and`, `or`."""
    return 1 + sum(
        len(node.values) - 1 if isinstance(node, ast.BoolOp) else isinstance(node, BRANCHING)
        for node in ast.walk(function)
    )


def late_imports(tree: ast.Module, package: str) -> tuple[int, int]:
    """The number of import statements inside functions: of the package, and of others."""
    found = {
        node
        for function in ast.walk(tree)
        if isinstance(function, FUNCTIONS)
        for node in ast.walk(function)
        if isinstance(node, (ast.Import, ast.ImportFrom))
    }
    own = sum(is_own(node, package) for node in found)
    return own, len(found) - own


def is_own(node: ast.Import | ast.ImportFrom, package: str) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.level > 0 or (node.module or "").split(".")[0] == package
    return any(alias.name.split(".")[0] == package for alias in node.names)


def runs_text(node: ast.AST) -> bool:
    """Whether the node calls exec or eval."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("exec", "eval")


def is_threshold(node: ast.AST) -> bool:
    """Whether the node compares the number of an array's elements with a constant: a number of at least 2, or a name in
    capitals."""
    if not isinstance(node, ast.Compare) or any(isinstance(o, (ast.In, ast.Is)) for o in node.ops):
        return False
    sides = [node.left, *node.comparators]
    sizes = [s for s in sides if isinstance(s, ast.Attribute) and s.attr == "size"]
    return bool(sizes) and any(is_constant(side) for side in sides)


def is_constant(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int) and node.value > 1
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return name.isupper()


def describes(source: Source, op: str) -> bool:
    """Whether the file has a function or an entry of the op's name, or the name as text or in a table. What only offers
    names is none of these: `__all__`, and the package's __init__.py."""
    if op not in source.text or source.name == "__init__.py":
        return False
    nodes = (
        node
        for statement in source.tree.body
        if not (isinstance(statement, ast.Assign) and assigns(statement, "__all__"))
        for node in ast.walk(statement)
    )
    return any(is_description(node, op) for node in nodes)


def is_description(node: ast.AST, op: str) -> bool:
    if isinstance(node, FUNCTIONS):
        return node.name == op or any(  # `@rule(softmax)`: a row in the table of rules
            any(names(argument, op) for argument in decorator.args)
            for decorator in node.decorator_list
            if isinstance(decorator, ast.Call)
        )
    if isinstance(node, ast.Assign):
        return assigns(node, op)
    if isinstance(node, ast.Dict):  # a row in a table: {softmax: ...}, {reduce.softmax: ...}
        return any(names(key, op) for key in node.keys if key is not None)
    return isinstance(node, ast.Constant) and node.value == op


def assigns(node: ast.Assign, name: str) -> bool:
    return any(isinstance(target, ast.Name) and target.id == name for target in node.targets)


def names(node: ast.expr, op: str) -> bool:
    """Whether an expression is the op, under its own name."""
    return isinstance(node, (ast.Name, ast.Attribute)) and op == getattr(node, "id", getattr(node, "attr", ""))


def core_files(files: list[Source]) -> list[Source]:
    new = [file for file in files if file.name.startswith("core/")]
    return new or [file for file in files if file.name.removesuffix(".py") in OLD_CORE.split()]


def measures(root: Path) -> dict[str, str]:
    """{measure: its value} for the checkout in that folder."""
    package = root / "rushlight"
    files = sources(package)
    core = core_files(files)
    code = [file.code_lines() for file in files]
    tokens, code_lines = sum(map(len, code)), sum(len(set(lines)) for lines in code)
    functions = [node for file in files for node, _ in named_functions(file.tree)]
    own, others = (sum(counts) for counts in zip(*(late_imports(file.tree, "rushlight") for file in files)))
    nodes = [(file.name, node) for file in files for node in ast.walk(file.tree)]
    core_names = {file.name for file in core}
    places = house_names.places(house_names.table_names(), package)
    values = {
        "files in the root": len(list(package.glob("*.py"))),
        "folders": len({path.parent for path in package.rglob("*.py")} - {package}),
        "files": len(files),
        "lines": sum(file.text.count("\n") for file in files),
        "code lines": code_lines,
        "tokens": tokens,
        "tokens per code line": f"{tokens / code_lines:.2f}",
        f"lines over {WIDTH} columns": sum(len(line) > WIDTH for file in files for line in file.text.split("\n")),
        "`type: ignore`": sum(file.text.count("type: ignore") for file in files),
        "late imports of the package": own,
        "late imports of others": others,
        "exec, eval outside base/text.py": sum(runs_text(node) for name, node in nodes if name != "base/text.py"),
        "comparisons with op names": sum(not p.file.startswith(NAMES_ALLOWED) for p in places),
        f"functions over {FUNCTION_LINES} lines": sum(
            node.end_lineno - node.lineno + 1 > FUNCTION_LINES for node in functions
        ),
        f"functions over {FUNCTION_BRANCHES} branches": sum(branches(node) > FUNCTION_BRANCHES for node in functions),
        **{f"files that describe {op}": sum(describes(file, op) for file in files) for op in DESCRIBED},
        "core: files": len(core),
        "core: lines": sum(file.text.count("\n") for file in core),
        "core: `llvmlite`": sum(len(re.findall("llvmlite", f.text, re.IGNORECASE)) for f in core),
        "core: thresholds": sum(is_threshold(node) for name, node in nodes if name in core_names),
        "core: `itemsize`": sum(file.text.count("itemsize") for file in core),
    }
    return {what: str(value) for what, value in values.items()}


def table(columns: dict[str, dict[str, str]]) -> str:
    """The measures as rows of a Markdown table, a column for each checkout."""
    first = next(iter(columns.values()))
    rows = [["", *columns]]
    rows += [[what, *(column[what] for column in columns.values())] for what in first]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    rows.insert(1, ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])])
    return "\n".join(
        "| " + " | ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:]))]) + " |"
        for row in rows
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures of a checkout.")
    parser.add_argument("root", nargs="?", type=Path, default=HERE, help="its folder")
    parser.add_argument("--against", type=Path, help="the folder of an older checkout")
    given = parser.parse_args()
    roots = {"now": given.root}
    if given.against is not None:
        roots = {"before": given.against, **roots}
    print(table({title: measures(root) for title, root in roots.items()}))


if __name__ == "__main__":
    main()
