"""Find the syntax tree of a user's function in its file, and compile functions from changed trees.

A file may have changed since it was imported, and several functions may begin on one line; so a tree is accepted only
if it compiles to the same instructions as the function."""

from __future__ import annotations
import __future__

import ast
import linecache
from collections.abc import Iterable, Iterator
from operator import attrgetter
from threading import Lock
from types import CellType, CodeType, FunctionType
from typing import Any, NamedTuple

from rushlight.base.errors import line_of

FUTURE = 0
for feature in __future__.all_feature_names:
    FUTURE |= getattr(__future__, feature).compiler_flag
NOT_PLAIN = 0x20 | 0x80 | 0x200  # code flags of generators and coroutines
PARSING = Lock()  # up to CPython 3.12 the parser's recursion depth is counted over all threads
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Place(NamedTuple):
    """The place of an instruction in its file. Columns are -1 if unknown (before Python 3.11)."""

    line: int
    end: int
    column: int
    last: int

    def inside(self, node: Any) -> bool:
        """Whether the syntax node contains this place."""
        if self.column < 0:
            return bool(node.lineno <= self.line <= node.end_lineno)
        return bool(
            (node.lineno, node.col_offset) <= (self.line, self.column)
            and (self.end, self.last) <= (node.end_lineno, node.end_col_offset)
        )

    def holds(self, node: Any) -> bool:
        """Whether the statement at this place contains the syntax node."""
        return bool(
            (self.line, self.column) <= (node.lineno, node.col_offset)
            and (node.end_lineno, node.end_col_offset) <= (self.end, self.last)
        )

    def calls(self, node: ast.Call) -> bool:
        """Whether the call `node` is at this place: no other call ends there. Without columns: whether it may be."""
        return self.inside(node) if self.column < 0 else (self.end, self.last) == (node.end_lineno, node.end_col_offset)


def place_of(code: CodeType, lasti: int) -> Place:
    """The place of the instruction at byte `lasti` of `code`."""
    if hasattr(code, "co_positions"):
        for i, found in enumerate(code.co_positions()):
            if i == lasti // 2 and None not in found:
                line, end, column, last = found
                return Place(line, end, column, last)
    line = line_of(code, lasti)
    return Place(line, line, -1, -1)


def tree_of(code: CodeType) -> ast.FunctionDef | None:
    """The definition that the code was compiled from; None if it is not found."""
    if code.co_flags & NOT_PLAIN:
        return None
    try:
        with PARSING:
            tree = ast.parse("".join(linecache.getlines(code.co_filename)))
    except (SyntaxError, ValueError):
        return None
    imports = list(imported(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        elif isinstance(node, ast.Lambda):
            first = node.lineno
        else:
            continue
        if first == code.co_firstlineno and same(compiled(bare(node), code.co_freevars, code, imports), code):
            return definition(node) if isinstance(node, ast.Lambda) else node
    return None


def bare(node: Any) -> Any:
    """The node without decorators, annotations and values of defaults, which belong to the function object."""
    a = node.args
    given = [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))]
    for arg in given:
        arg.annotation = None
    a.defaults = [ast.copy_location(ast.Constant(None), d) for d in a.defaults]
    a.kw_defaults = [d and ast.copy_location(ast.Constant(None), d) for d in a.kw_defaults]
    if isinstance(node, ast.FunctionDef):
        node.decorator_list, node.returns = [], None
    return node


def definition(node: ast.Lambda) -> ast.FunctionDef:
    """A lambda as a definition."""
    returns = ast.copy_location(ast.Return(node.body), node.body)
    made = ast.FunctionDef("function", node.args, [returns], [], None)
    return ast.fix_missing_locations(ast.copy_location(made, node))


def imported(node: ast.AST) -> Iterator[ast.stmt]:
    """The import statements of a file: Python compiles a call `module.f()` differently if `module` is imported
    there."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            yield child
        elif not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield from imported(child)


def compiled(node: Any, free: Iterable[str], like: CodeType, imports: Iterable[ast.stmt] = ()) -> CodeType:
    """The code of a definition in which the names in `free` are variables of an enclosing function."""
    body = node if isinstance(node, ast.stmt) else ast.copy_location(ast.Expr(node), node)
    args = ast.arguments([], [ast.arg(name) for name in free], None, [], [], None, [])
    around = ast.copy_location(ast.FunctionDef("around", args, [body], [], None), node)
    module = ast.fix_missing_locations(ast.Module([*imports, around], []))
    with PARSING:
        made = compile(module, like.co_filename, "exec", like.co_flags & FUTURE, True)
    return inner(inner(made))


def inner(code: CodeType) -> CodeType:
    return next(c for c in code.co_consts if isinstance(c, CodeType))


FACTS = attrgetter(
    "co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_argcount", "co_kwonlyargcount",
    "co_posonlyargcount",
)  # fmt: skip


def same(a: CodeType, b: CodeType) -> bool:
    """Whether two code objects have the same instructions, names and constants."""
    return (
        FACTS(a) == FACTS(b)
        and len(a.co_consts) == len(b.co_consts)
        and all(
            same(x, y) if isinstance(x, CodeType) and isinstance(y, CodeType) else own(x) == own(y)
            for x, y in zip(a.co_consts, b.co_consts)
        )
    )


def own(constant: Any) -> str:
    """A constant as text, to compare type and value; a qualified name is given without the enclosing functions."""
    return repr(constant).rpartition("<locals>.")[2] if isinstance(constant, str) else repr(constant)


def function_of(node: ast.FunctionDef, like: FunctionType, extra: dict[str, Any], name: str = "") -> FunctionType:
    """A function of this definition, with the globals and the closure of `like`, and `extra` variables in its
    closure."""
    free = like.__code__.co_freevars
    code = compiled(node, [*free, *extra], like.__code__)
    cells = {**dict(zip(free, like.__closure__ or ())), **{k: CellType(v) for k, v in extra.items()}}
    closure = tuple([cells[k] for k in code.co_freevars])
    made = FunctionType(code, like.__globals__, like.__name__, None if name else like.__defaults__, closure)
    made.__kwdefaults__ = None if name else like.__kwdefaults__
    made.__qualname__ = name or like.__qualname__
    return made


# -- which variables a statement reads and writes --------------------------------------------------


def names(node: Any, skip: frozenset = frozenset()) -> Iterator[tuple[str, bool]]:
    """(name, whether it is written) for each use of a variable in a tree, without variables of comprehensions."""
    if isinstance(node, ast.Name):
        if node.id not in skip:
            yield node.id, not isinstance(node.ctx, ast.Load)
            if isinstance(node.ctx, ast.Del):
                yield node.id, False
        return
    if isinstance(node, COMPREHENSIONS):
        yield from names(node.generators[0].iter, skip)
        skip |= {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
    elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        yield node.target.id, False
    elif isinstance(node, (ast.ExceptHandler, ast.FunctionDef, ast.ClassDef)) and node.name:
        yield node.name, True
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from ((a.asname or a.name.partition(".")[0], True) for a in node.names)
    elif isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name:
        yield node.name, True
    elif isinstance(node, ast.MatchMapping) and node.rest:
        yield node.rest, True
    for child in ast.iter_child_nodes(node):
        yield from names(child, skip)


def read(*nodes: Any) -> set[str]:
    return {name for node in nodes if node is not None for name, written in names(node) if not written}


def written(*nodes: Any) -> set[str]:
    return {name for node in nodes if node is not None for name, writes in names(node) if writes}


def deleted(*nodes: Any) -> set[str]:
    return {n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Del)}


def needs(body: list[ast.stmt], known: frozenset) -> tuple[set[str], frozenset]:
    """(variables that the statements read before writing them, variables that certainly have a value after them).

    `known`: the variables that certainly have a value before them.
    """
    wanted: set[str] = set()
    heads: list[ast.expr | ast.withitem]
    branches: list[tuple[list[ast.stmt], frozenset[str]]]
    for s in body:
        if isinstance(s, (ast.If, ast.While)):
            heads, branches = [s.test], [(s.body, frozenset()), (s.orelse, frozenset())]
        elif isinstance(s, ast.For):
            heads, branches = [s.iter], [(s.body, frozenset(written(s.target))), (s.orelse, frozenset())]
        elif isinstance(s, ast.With):
            own = frozenset(written(*s.items))
            heads, branches = [*s.items], [(s.body, own)]
        else:  # a `try` or `match` may write nothing
            wanted |= read(s) - known
            known |= frozenset() if hasattr(s, "body") or hasattr(s, "cases") else written(s)
            known -= deleted(s)
            continue
        wanted |= read(*heads) - known
        ends = []
        for part, own in branches:
            inside, end = needs(part, known | own)
            wanted |= inside
            ends.append(end)
        if isinstance(s, ast.If):
            known = ends[0] & ends[1]
        elif isinstance(s, ast.With):
            known = ends[0]
        else:  # a loop may run zero times; it may delete variables
            known -= deleted(s)
    return wanted, known
