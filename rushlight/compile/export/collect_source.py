"""Copy definitions, with all definitions that they use, into one text that imports nothing of rushlight.

The names that a top-level statement uses are found in its syntax tree: names that are not bound inside it. A name that
a module imports from another module of rushlight is looked up there. If two modules use one name for different things,
one of them is renamed in the text."""

from __future__ import annotations

import ast
import builtins
import importlib
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

PACKAGE = "rushlight"
Key = tuple[str, str]  # (module, name)
# Importing any of these imports the whole library: a text must not need them.
LIBRARY = (
    "rushlight.core.tensor",
    "rushlight.core.table",
    "rushlight.core.worlds",
    "rushlight.autograd",
    "rushlight.base.dtypes",
)


class CannotBundle(NotImplementedError):
    """A definition uses something that cannot be copied as text."""


class Source:
    """A module's text. `statements`: name -> the top-level statements that bind it."""

    def __init__(self, module: str):
        self.module = module
        found = find_spec(module)
        self.text = Path(found and found.origin or "").read_text()
        self.lines = self.text.splitlines(True)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))
        self.statements: dict[str, list[ast.stmt]] = {}
        for statement in ast.parse(self.text).body:
            if not is_for_types(statement):
                for name in bound_by(statement):
                    self.statements.setdefault(name, []).append(statement)

    def span(self, node: Any) -> tuple[int, int]:
        """(start, end) of a node in the text, in characters. The syntax tree counts columns in bytes."""

        def offset(line: int, column: int) -> int:
            return self.starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

        return offset(node.lineno, node.col_offset), offset(node.end_lineno, node.end_col_offset)

    def exact(self, node: Any) -> tuple[int, int]:
        """`span` of a name. CannotBundle for a name inside an f-string, where Python 3.11 gives wrong columns."""
        start, end = self.span(node)
        if self.text[start:end].replace("\n", "") != ast.unparse(node) and not isinstance(node, ast.ImportFrom):
            raise CannotBundle(f"{self.module}:{node.lineno} has {ast.unparse(node)} in a text")
        return start, end

    def annotations(self, statement: ast.AST) -> Iterator[tuple[int, int]]:
        """The spans of the annotations of parameters and results, to be removed. Annotations of class fields stay."""
        for node in ast.walk(statement):
            if isinstance(node, ast.arg) and node.annotation is not None:
                yield self.span(node)[0] + len(node.arg), self.span(node)[1]
            elif isinstance(node, ast.FunctionDef) and node.returns is not None:
                start, end = self.span(node.returns)
                yield self.text.rindex(" ->", 0, start), end

    def details(self, statement: ast.AST) -> Iterator[tuple[int, int]]:
        """The spans of docstrings after their first paragraph, to be removed."""
        for node in ast.walk(statement):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node) is not None:
                start, end = self.span(node.body[0])
                gap = self.text.find("\n\n", start, end)
                if gap >= 0:
                    yield gap, end - len('"""')

    def whole(self, statement: ast.stmt) -> tuple[int, int]:
        """The span of a statement's lines, with its decorators and the comments above it."""
        first = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", ()))])
        while first > 1 and self.lines[first - 2].startswith("#"):
            first -= 1
        return self.starts[first - 1], self.starts[statement.end_lineno or first]


@cache
def source(module: str) -> Source:
    return Source(module)


def is_for_types(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.unparse(statement.test)


def bound_by(statement: ast.stmt | ast.expr) -> Iterator[str]:
    """The names that a statement binds in its scope, and the variables of its comprehensions."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        yield statement.name
        return
    for node in inside(statement):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from (a.asname or a.name.partition(".")[0] for a in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.ExceptHandler)) and node.name:
            yield node.name


def inside(node: ast.AST) -> Iterator[ast.AST]:
    """The node and its descendants, without the bodies of functions and classes."""
    todo = [node]
    for n in todo:
        yield n
        if n is node or not isinstance(n, (ast.FunctionDef, ast.ClassDef, ast.Lambda)):
            todo += ast.iter_child_nodes(n)


def free(node: ast.AST, bound: frozenset[str] = frozenset()) -> Iterator[Any]:
    """The nodes that refer to something outside: names, attributes of names, imports inside functions.

    Annotations are left out, since they are not evaluated.
    """
    if isinstance(node, (ast.FunctionDef, ast.Lambda)):
        yield from free_in_function(node, bound)
    elif isinstance(node, ast.ClassDef):
        yield from free_in_class(node, bound)
    elif isinstance(node, ast.AnnAssign):
        yield from (n for part in (node.target, node.value) if part is not None for n in free(part, bound))
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        if node.value.id not in bound:
            yield node
    elif isinstance(node, ast.Name):
        if node.id not in bound:
            yield node
    elif isinstance(node, ast.ImportFrom):
        yield node
    else:
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            bound = bound | {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
        for child in ast.iter_child_nodes(node):
            yield from free(child, bound)


def free_in_function(node: ast.FunctionDef | ast.Lambda, bound: frozenset[str]) -> Iterator[Any]:
    """`free` for the decorators and defaults, and for the body, where the parameters are bound."""
    a = node.args
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    for outer in (*decorators, *a.defaults, *(d for d in a.kw_defaults if d)):
        yield from free(outer, bound)
    every = [*a.posonlyargs, *a.args, *a.kwonlyargs, *(x for x in (a.vararg, a.kwarg) if x)]
    body = node.body if isinstance(node.body, list) else [node.body]
    local = {x.arg for x in every} | {name for s in body for name in bound_by(s)}
    local -= {name for s in body for g in ast.walk(s) if isinstance(g, ast.Global) for name in g.names}
    for s in body:
        yield from free(s, bound | local)


def free_in_class(node: ast.ClassDef, bound: frozenset[str]) -> Iterator[Any]:
    """`free` for the decorators and bases, and for the body, which binds the class's own names."""
    for outer in (*node.decorator_list, *node.bases, *node.keywords):
        yield from free(outer, bound)
    own = frozenset(name for s in node.body for name in bound_by(s))
    for s in node.body:
        if isinstance(s, ast.FunctionDef):
            # the body of a method does not see the names of the class
            yield from (n for d in s.decorator_list for n in free(d, bound | own))
            s = ast.FunctionDef(**{**dict(ast.iter_fields(s)), "decorator_list": []})
            yield from free(s, bound)
        elif isinstance(s, ast.Assign):  # f = decorated(f): the f on the right may be the module's
            yield from free(s.value, bound | own - set(bound_by(s)))
        else:
            yield from free(s, bound | own)


class Bundle:
    """`need(module, name)` writes a definition into the text, after the definitions that it uses; returns the new name.

    `instead`: (module, name) -> the definition that replaces it. `reserved`: names that are taken."""

    def __init__(self, instead: Mapping[Key, Key], reserved: Iterable[str] = ()):
        self.instead = instead
        self.imports: dict[str, None] = {}
        # name in the text -> the key that owns it
        self.owner: dict[str, Any] = dict.fromkeys(reserved, "reserved")
        self.names: dict[Key, str] = {}
        self.texts: list[str] = []
        self.written: set[int] = set()  # ids of the statements in the text
        self.path: list[str] = []  # the statements being written, each needed by the one before
        self.tree: ast.AST = ast.Pass()  # the statement being written

    def need(self, module: str, name: str) -> str:
        """The name in the text for the object that is `name` in `module`."""
        key = module, name
        if key in self.names:
            return self.names[key]
        if key in self.instead:
            return self.need(*self.instead[key])
        if module.startswith(LIBRARY):
            raise CannotBundle(f"{' needs '.join([*self.path, f'{module}.{name}'])}")
        statements = source(module).statements.get(name)
        if statements is None:
            raise CannotBundle(f"{module} does not define {name}")
        first = statements[0]
        if isinstance(first, (ast.Import, ast.ImportFrom)):
            self.names[key] = self.imported(module, first, name)
        else:
            for bound in bound_by(first):
                if (module, bound) not in self.names:
                    self.names[module, bound] = self.claim(bound, (module, bound))
            for statement in statements:
                self.write(module, statement)
        return self.names[key]

    def claim(self, name: str, key: Any) -> str:
        """A free name in the text for `key`: `name`, or `name` with a number."""
        wanted, number = name, 2
        while self.owner.setdefault(wanted, key) != key:
            wanted, number = f"{name}_{number}", number + 1
        return wanted

    def imported(self, module: str, statement: Any, name: str) -> str:
        """The name of an imported object: copies a definition of rushlight, repeats an import of another library."""
        alias = next(a for a in statement.names if name in (a.asname, a.name, a.name.partition(".")[0]))
        if isinstance(statement, ast.Import):
            line = f"import {alias.name}" + (f" as {alias.asname}" if alias.asname else "")
            if alias.name.partition(".")[0] == PACKAGE:
                raise CannotBundle(f"{module} imports {alias.name}")
        else:
            home = absolute(statement, module)
            if home.partition(".")[0] == PACKAGE:
                return self.need(home, alias.name)
            line = f"from {home} import {alias.name}" + (f" as {alias.asname}" if alias.asname else "")
        given = self.claim(name, line)
        if given != name:
            line = f"{line.partition(' as ')[0]} as {given}"
        self.imports[line] = None
        return given

    def write(self, module: str, statement: ast.stmt) -> None:
        """Write a statement, after the definitions that it uses."""
        if id(statement) in self.written:
            return
        self.written.add(id(statement))
        self.path.append(f"{module}:{statement.lineno}")
        text = self.replaced(module, statement, *source(module).whole(statement))
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            old, new = statement.name, self.names[module, statement.name]
            if new != old:
                text = re.sub(rf"^(\s*(?:def|class)) {old}\b", rf"\1 {new}", text, count=1, flags=re.M)
        self.texts.append(text.rstrip("\n"))
        self.path.pop()

    def replaced(self, module: str, tree: ast.AST, start: int, end: int) -> str:
        """A part of a module's text with names replaced by their names in this text.

        Annotations of parameters are removed, and docstrings are cut to their first paragraph."""
        here, around = source(module), self.tree
        changes = [(*where, "") for where in (*here.annotations(tree), *here.details(tree))]
        self.tree = tree
        for node in free(tree):
            changed = self.meaning(module, node)
            if changed is not None:
                changes.append((*here.exact(node), changed))
        self.tree = around  # the statement that needs this one
        return rewritten(here.text, start, end, changes)

    def meaning(self, module: str, node: Any) -> str | None:
        """The text to write in place of a node; None to leave the node as it is."""
        if isinstance(node, ast.ImportFrom):
            return self.late_import(module, node)
        named: Any = node.value if isinstance(node, ast.Attribute) else node
        name, here = named.id, source(module)
        if name not in here.statements:
            if hasattr(builtins, name) or name in ("__name__", "__file__"):
                return None
            raise CannotBundle(f"{module} uses {name}, which it does not define")
        part = submodule(module, here.statements[name][0], name)
        if part is not None:
            if not isinstance(node, ast.Attribute):
                raise CannotBundle(f"{module} hands on the module {part}")
            return self.outside(part, node.attr)
        if self.need(module, name) == name:
            return None
        given = self.outside(module, name)
        return f"{given}.{node.attr}" if isinstance(node, ast.Attribute) else given

    def late_import(self, module: str, node: ast.ImportFrom) -> str | None:
        """The text in place of an import inside a function: copies definitions of rushlight; None for other imports."""
        home = absolute(node, module)
        if home.partition(".")[0] != PACKAGE:
            return None
        lines = []
        for alias in node.names:
            name = alias.asname or alias.name
            if (home, alias.name) not in self.instead and is_module(f"{home}.{alias.name}"):
                used = {
                    n.attr for n in ast.walk(self.tree) if isinstance(n, ast.Attribute) and ast.unparse(n.value) == name
                }
                self.imports["from types import SimpleNamespace"] = None
                parts = ", ".join(f"{attr}={self.outside(f'{home}.{alias.name}', attr)}" for attr in sorted(used))
                lines.append(f"{name} = SimpleNamespace({parts})")
                continue
            given = self.outside(home, alias.name)
            lines.append(f"{name} = {given}" if name != given else f"{name} = globals()[{name!r}]")
        return "; ".join(lines)

    def outside(self, module: str, name: str) -> str:
        """The expression for a definition inside the statement being written.

        Uses `globals()[name]` if a function in the statement has a local variable of that name."""
        given = self.need(module, name)
        taken = {
            getattr(n, "name", getattr(n, "arg", getattr(n, "id", None)))
            for n in ast.walk(self.tree)
            if isinstance(n, (ast.FunctionDef, ast.arg)) or isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        return f"globals()[{given!r}]" if given in taken else given


def absolute(node: ast.ImportFrom, module: str) -> str:
    """The absolute name of the module that an import in `module` names."""
    if not node.level:
        return node.module or ""
    path = getattr(importlib.import_module(module), "__path__", None)
    parts = module.split(".")
    base = parts[: len(parts) - node.level + (path is not None)]
    return ".".join([*base, *([node.module] if node.module else [])])


def submodule(module: str, statement: ast.stmt, name: str) -> str | None:
    """The name of the rushlight module that an imported name refers to, or None."""
    if not isinstance(statement, ast.ImportFrom):
        return None
    found = getattr(importlib.import_module(module), name, None)
    if isinstance(found, ModuleType) and found.__name__.partition(".")[0] == PACKAGE:
        return found.__name__
    return None


def is_module(path: str) -> bool:
    try:
        return find_spec(path) is not None
    except ModuleNotFoundError:  # its parent is not a package
        return False


def rewritten(text: str, start: int, end: int, changes: list[tuple[int, int, str]]) -> str:
    """`text[start:end]` with the spans (first, last) replaced by the given words."""
    for first, last, word in sorted(changes, reverse=True):
        text, end = text[:first] + word + text[last:], end + len(word) - (last - first)
    return text[start:end]
