"""Functions and all that they use as one text that imports nothing of rushlight.

What a top-level statement of a module needs is found in its syntax tree: names that no function around them binds. A name
that the module imports from another one of ours is looked for there; names that two modules use for different things
are told apart in the text.
"""
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
Key = tuple[str, str]                             # module, name
LIBRARY = ("rushlight.tensor", "rushlight.ops.table", "rushlight.ops.worlds", "rushlight.autograd",
           "rushlight.dtypes")                    # with one of these comes all the rest


class CannotBundle(NotImplementedError):
    """A function uses what a text of its own cannot hold."""


class Source:
    """A module's text, and which of its top-level statements binds each name."""

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
        """Where a node stands in the text; lines are ASCII, or nearly so: offsets are in bytes."""
        def offset(line: int, column: int) -> int:
            return self.starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())
        return offset(node.lineno, node.col_offset), offset(node.end_lineno, node.end_col_offset)

    def exact(self, node: Any) -> tuple[int, int]:
        """`span` of a name; inside an f-string Python 3.11 does not know it."""
        start, end = self.span(node)
        if self.text[start:end].replace("\n", "") != ast.unparse(node) and not isinstance(node, ast.ImportFrom):
            raise CannotBundle(f"{self.module}:{node.lineno} has {ast.unparse(node)} in a text")
        return start, end

    def annotations(self, statement: ast.AST) -> Iterator[tuple[int, int]]:
        """Where types of parameters and results stand; those of a class' fields stay."""
        for node in ast.walk(statement):
            if isinstance(node, ast.arg) and node.annotation is not None:
                yield self.span(node)[0] + len(node.arg), self.span(node)[1]
            elif isinstance(node, ast.FunctionDef) and node.returns is not None:
                start, end = self.span(node.returns)
                yield self.text.rindex(" ->", 0, start), end

    def details(self, statement: ast.AST) -> Iterator[tuple[int, int]]:
        """Where docstrings go on after their first paragraph."""
        for node in ast.walk(statement):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node) is not None:
                start, end = self.span(node.body[0])
                gap = self.text.find("\n\n", start, end)
                if gap >= 0:
                    yield gap, end - len('"""')

    def whole(self, statement: ast.stmt) -> tuple[int, int]:
        """The lines of a statement, from its decorators and the comments above it."""
        first = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", ()))])
        while first > 1 and self.lines[first - 2].startswith("#"):
            first -= 1
        return self.starts[first - 1], self.starts[statement.end_lineno or first]


@cache
def source(module: str) -> Source:
    return Source(module)


def is_for_types(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.unparse(statement.test)


def bound_by(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement gives a meaning to, in the scope in which it stands."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        yield statement.name
        return
    for node in inside(statement):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from (a.asname or a.name.partition(".")[0] for a in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)) or isinstance(node, ast.ExceptHandler) and node.name:
            yield node.name


def inside(node: ast.AST) -> Iterator[ast.AST]:
    """The node and what is in it, but for the insides of functions and classes."""
    todo = [node]
    for n in todo:
        yield n
        if n is node or not isinstance(n, (ast.FunctionDef, ast.ClassDef, ast.Lambda)):
            todo += ast.iter_child_nodes(n)


def free(node: ast.AST, bound: frozenset[str] = frozenset()) -> Iterator[Any]:
    """The nodes that stand for something outside: names, attributes of names, imports inside functions.

    Annotations are left out: nobody evaluates them.
    """
    if isinstance(node, (ast.FunctionDef, ast.Lambda)):
        a = node.args
        for outer in (*getattr(node, "decorator_list", ()), *a.defaults, *(d for d in a.kw_defaults if d)):
            yield from free(outer, bound)
        every = [*a.posonlyargs, *a.args, *a.kwonlyargs, *(x for x in (a.vararg, a.kwarg) if x)]
        body = node.body if isinstance(node.body, list) else [node.body]
        local = {x.arg for x in every} | {name for s in body for name in bound_by_any(s)}
        local -= {name for s in body for g in ast.walk(s) if isinstance(g, ast.Global) for name in g.names}
        for s in body:
            yield from free(s, bound | local)
    elif isinstance(node, ast.ClassDef):
        for outer in (*node.decorator_list, *node.bases, *node.keywords):
            yield from free(outer, bound)
        own = frozenset(name for s in node.body for name in bound_by(s))
        for s in node.body:
            if isinstance(s, ast.FunctionDef):    # its body does not see the names of the class
                yield from (n for d in s.decorator_list for n in free(d, bound | own))
                s = ast.FunctionDef(**{**dict(ast.iter_fields(s)), "decorator_list": []})
                yield from free(s, bound)
            elif isinstance(s, ast.Assign):       # f = decorated(f): the right one is the module's
                yield from free(s.value, bound | own - set(bound_by(s)))
            else:
                yield from free(s, bound | own)
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


def bound_by_any(statement: ast.stmt) -> Iterator[str]:
    """As `bound_by`, with the variables of comprehensions."""
    yield from bound_by(statement)


class Bundle:
    """`need(module, name)` puts a definition, and first what it uses, into the text; gives its name there.

    `instead`: definitions that others stand in for; `reserved`: names that are taken.
    """

    def __init__(self, instead: Mapping[Key, Key], reserved: Iterable[str] = ()):
        self.instead = instead
        self.imports: dict[str, None] = {}
        self.owner: dict[str, Any] = dict.fromkeys(reserved, "reserved")    # who has a name in the text
        self.names: dict[Key, str] = {}
        self.texts: list[str] = []
        self.written: set[int] = set()            # statements that are in the text
        self.path: list[str] = []                 # the statements that are being written, each for the one before
        self.tree: ast.AST = ast.Pass()           # the one that is being written

    def need(self, module: str, name: str) -> str:
        """The name in the text of what `module` calls `name`."""
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
        """A name that nothing else has."""
        wanted, number = name, 2
        while self.owner.setdefault(wanted, key) != key:
            wanted, number = f"{name}_{number}", number + 1
        return wanted

    def imported(self, module: str, statement: Any, name: str) -> str:
        """What an import gives: a definition in another module of ours, or the same import in the text."""
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
        """The statement's text, after what it uses."""
        if id(statement) in self.written:
            return
        self.written.add(id(statement))
        self.path.append(f"{module}:{statement.lineno}")
        text = self.replaced(module, statement, *source(module).whole(statement))
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)) and self.names[module, statement.name] != statement.name:
            text = re.sub(rf"^(\s*(?:def|class)) {statement.name}\b", rf"\1 {self.names[module, statement.name]}", text,
                          count=1, flags=re.M)
        self.texts.append(text.rstrip("\n"))
        self.path.pop()

    def replaced(self, module: str, tree: ast.AST, start: int, end: int) -> str:
        """A part of a module's text in the names of this one, without the types of parameters, and with the first paragraph
        of docstrings: what runs elsewhere says what it does, and the library why."""
        here, around = source(module), self.tree
        changes = [(*where, "") for where in (*here.annotations(tree), *here.details(tree))]
        self.tree = tree
        for node in free(tree):
            changed = self.meaning(module, node)
            if changed is not None:
                changes.append((*here.exact(node), changed))
        self.tree = around                        # of who asked for this one
        return rewritten(here.text, start, end, changes)

    def meaning(self, module: str, node: Any) -> str | None:
        """What to write in place of a node; None to leave it."""
        if isinstance(node, ast.ImportFrom):
            return self.late_import(module, node)
        name = node.value.id if isinstance(node, ast.Attribute) else node.id
        here = source(module)
        if name not in here.statements:
            if hasattr(builtins, name) or name in ("__name__", "__file__"):
                return None
            return self.element(module, name)
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
        """An import inside a function: of ours, the names are there already."""
        home = absolute(node, module)
        if home.partition(".")[0] != PACKAGE:
            return None
        lines = []
        for alias in node.names:
            name = alias.asname or alias.name
            if (home, alias.name) not in self.instead and is_module(f"{home}.{alias.name}"):
                used = {n.attr for n in ast.walk(self.tree) if isinstance(n, ast.Attribute) and ast.unparse(n.value) == name}
                self.imports["from types import SimpleNamespace"] = None
                parts = ", ".join(f"{attr}={self.outside(f'{home}.{alias.name}', attr)}" for attr in sorted(used))
                lines.append(f"{name} = SimpleNamespace({parts})")
                continue
            given = self.outside(home, alias.name)
            lines.append(f"{name} = {given}" if name != given else f"{name} = globals()[{name!r}]")
        return "; ".join(lines)

    def outside(self, module: str, name: str) -> str:
        """A definition that has another name here than in its module, as the statement that is being written can ask for it:
        a function in it may have a variable of the same name."""
        given = self.need(module, name)
        taken = {getattr(n, "name", getattr(n, "arg", getattr(n, "id", None))) for n in ast.walk(self.tree)
                 if isinstance(n, (ast.FunctionDef, ast.arg)) or isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        return f"globals()[{given!r}]" if given in taken else given

    def element(self, module: str, name: str) -> str | None:
        """A name that loops find as a global."""
        raise CannotBundle(f"{module} uses {name}, which it does not define")


def absolute(node: ast.ImportFrom, module: str) -> str:
    """The module that an import names, of `module` or of its package."""
    if not node.level:
        return node.module or ""
    path = getattr(importlib.import_module(module), "__path__", None)
    parts = module.split(".")
    base = parts[:len(parts) - node.level + (path is not None)]
    return ".".join([*base, *([node.module] if node.module else [])])


def submodule(module: str, statement: ast.stmt, name: str) -> str | None:
    """The module of ours that a name stands for."""
    if not isinstance(statement, ast.ImportFrom):
        return None
    found = getattr(importlib.import_module(module), name, None)
    if isinstance(found, ModuleType) and found.__name__.partition(".")[0] == PACKAGE:
        return found.__name__
    return None


def is_module(path: str) -> bool:
    try:
        return find_spec(path) is not None
    except ModuleNotFoundError:                   # its parent is no package
        return False


def rewritten(text: str, start: int, end: int, changes: list[tuple[int, int, str]]) -> str:
    """A part of a text with other words in some places."""
    for first, last, word in sorted(changes, reverse=True):
        text, end = text[:first] + word + text[last:], end + len(word) - (last - first)
    return text[start:end]
