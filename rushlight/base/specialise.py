"""Functions made from a template by partial evaluation: the call and the backward of each op are made so.

    def total(op, values):
        grad = {}
        for i, name in enumerate(op.inputs):
            grad[name] = values[i] if op.linear else op.rule(values[i])
        return tuple([grad[name] for name in op.inputs])

`specialise(total, facts={"inputs": ("x", "y"), "linear": False, "rule": sin}, locals={"grad": "grad_{}"})` compiles

    def total(values):
        grad_x = rule(values[0])
        grad_y = rule(values[1])
        return (grad_x, grad_y)

The rules:
* `op.linear` is replaced by its value if `facts` has it; a function or a class becomes a global of its name. Other
  attributes of `op` are read when the function runs. The parameter `op` is a global, too.
* An expression of known values alone is replaced by its value: comparisons, `not`, `and`, `or`, `len`, `enumerate`,
  indices. The branch of an `if` that cannot run is dropped.
* A loop or a comprehension over a known tuple is unrolled; `any` becomes `or`, `all` becomes `and`, `tuple` a tuple.
* `grad[name]` for a known name is the local variable `grad_x`, by the patterns in `locals`; an index that is a tuple of
  names gives a tuple of variables.
* A call of a function in `inlined`, a function of one return statement, is replaced by its expression.

The code keeps the file and the line numbers of the template, so that tracebacks and debuggers show the template.
"""

from __future__ import annotations

import ast
import inspect
import operator
import textwrap
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, TypeVar

from rushlight.base.errors import runtime_error


def specialise(
    function: Callable,
    facts: dict[str, Any],
    *,
    locals: dict[str, str],
    scope: dict[str, Any],
    inlined: Sequence[Callable] = (),
    name: str = "",
) -> Callable:
    """The function with the attributes of `op` in `facts` replaced by their values. `scope`: the globals of the result,
    `op` among them; the functions and classes in `facts` are added."""
    tree = specialised(function, facts, locals=locals, inlined=inlined, name=name)
    scope.update((key, value) for key, value in facts.items() if not is_literal(value))
    exec(compile(ast.Module([tree], []), function.__code__.co_filename, "exec"), scope)
    return scope.pop(tree.name)  # a function in its own globals would be a reference cycle


def specialised(
    function: Callable,
    facts: dict[str, Any],
    *,
    locals: dict[str, str],
    inlined: Sequence[Callable] = (),
    name: str = "",
) -> ast.FunctionDef:
    """The syntax tree of the specialised function."""
    tree = parsed(function)
    helpers = {one.__name__: one for one in inlined}
    folder = Folder(facts, locals, helpers, names_in(function) | facts.keys())
    args = ast.arguments([], tree.args.args[1:], None, [], [], None, [])  # without `op`
    made = ast.FunctionDef(name or tree.name, args, folder.block(tree.body) or [ast.Pass()], [], None)
    if hasattr(tree, "type_params"):  # Python 3.12
        made.type_params = []  # type: ignore[attr-defined]
    return located(made, tree)


def is_literal(value: Any) -> bool:
    """Whether the value can be written in the code: a number, a text, None, or a tuple of such values."""
    if isinstance(value, tuple):
        return all(map(is_literal, value))
    return value is None or isinstance(value, (bool, int, float, str))


@cache
def parsed(function: Callable) -> ast.FunctionDef:
    """The syntax tree of a function, with the line numbers of its file. RuntimeError if the file is missing."""
    try:
        lines, first = inspect.getsourcelines(function)
    except OSError:
        what = f"rushlight needs its source files, but {function.__code__.co_filename} is missing"
        hint = "bundle the .py files: module_collection_mode={'rushlight': 'py'} in PyInstaller"
        raise runtime_error(what, hint) from None
    tree = ast.parse(textwrap.dedent("".join(lines)))
    ast.increment_lineno(tree, first - 1)
    made = tree.body[0]
    assert isinstance(made, ast.FunctionDef)
    for one in made.args.args:
        one.annotation = None
    return made


@cache
def names_in(function: Callable) -> frozenset[str]:
    """All variables that a function names: names of `locals` must differ from them."""
    tree = parsed(function)
    named = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return frozenset(named | {node.arg for node in ast.walk(tree.args) if isinstance(node, ast.arg)})


class Known:
    """An expression whose value is known."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def node(self, at: ast.AST) -> ast.expr:
        if isinstance(self.value, tuple):
            return located(ast.Tuple([Known(item).node(at) for item in self.value], ast.Load()), at)
        return located(ast.Constant(self.value), at)


COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
COMPUTED: dict[str, Callable] = {"len": len, "enumerate": lambda x: tuple(enumerate(x)), "tuple": tuple}
# functions of a comprehension -> how its elements are joined; None: as a tuple
COMBINED: dict[str, Any] = {f.__name__: op for f, op in ((any, ast.Or), (all, ast.And), (tuple, None))}
Value = Known | ast.expr


N = TypeVar("N", bound=ast.AST)


def located(made: N, at: Any) -> N:
    """The new node, at the place of another node in the file."""
    made.lineno, made.end_lineno = at.lineno, at.end_lineno  # type: ignore[attr-defined]
    made.col_offset, made.end_col_offset = at.col_offset, at.end_col_offset  # type: ignore[attr-defined]
    return made


def node_of(value: Value, at: ast.AST) -> ast.expr:
    return value.node(at) if isinstance(value, Known) else value


class Folder:
    """Builds the statements and expressions of a specialised function. Methods `Name`, `Call`, ... are named after the
    class of the syntax node."""

    def __init__(self, facts: dict[str, Any], locals: dict[str, str], inlined: dict, taken: frozenset[str]):
        self.facts, self.locals, self.inlined, self.taken = facts, locals, inlined, taken
        self.known: dict[str, Value] = {}  # loop variables and parameters of inlined functions

    # -- statements

    def block(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        return [made for statement in body for made in self.statement(statement)]

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        if isinstance(node, ast.If):
            test = self.expression(node.test)
            if isinstance(test, Known):
                return self.block(node.body if test.value else node.orelse)
            made: ast.stmt = ast.If(test, self.block(node.body) or [ast.Pass()], self.block(node.orelse))
        elif isinstance(node, ast.For) and isinstance(items := self.expression(node.iter), Known):
            return [made for item in items.value for made in self.bound(node.target, item, self.block, node.body)]
        elif isinstance(node, ast.Expr):
            value = self.expression(node.value)
            if isinstance(value, Known):  # the docstring
                return []
            made = ast.Expr(value)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id in self.locals:
            return []
        else:
            made = self.copy(node)
        return [made if hasattr(made, "lineno") else located(made, node)]

    def bound(self, target: ast.expr, item: Any, run: Callable, *args: Any) -> Any:
        """`run(*args)` while the loop variables of `target` have the values of `item`."""
        if isinstance(target, ast.Name):
            pairs = [(target.id, item)]
        else:
            pairs = [(one.id, value) for one, value in zip(target.elts, item)]  # type: ignore[attr-defined]
        before = self.known
        self.known = before | {name: Known(value) for name, value in pairs}
        made = run(*args)
        self.known = before
        return made

    # -- expressions

    def expression(self, node: ast.expr) -> Value:
        special = getattr(self, type(node).__name__, None)
        made = self.copy(node) if special is None else special(node)
        return made if isinstance(made, Known) or hasattr(made, "lineno") else located(made, node)

    def node(self, node: ast.expr) -> ast.expr:
        return node_of(self.expression(node), node)

    def nodes(self, values: Sequence[Value], at: ast.AST) -> list[ast.expr]:
        return [value.node(at) if isinstance(value, Known) else value for value in values]

    def copy(self, node: Any) -> Any:
        """The node with its parts specialised."""
        made = type(node)()
        for field in node._fields:
            value = getattr(node, field)
            if isinstance(value, list):
                if value and isinstance(value[0], ast.stmt):
                    value = self.block(value)
                else:
                    value = [self.part(one) for one in value]
            else:
                value = self.part(value)
            setattr(made, field, value)
        return located(made, node) if hasattr(node, "lineno") else made

    def part(self, value: Any) -> Any:
        if isinstance(value, ast.expr):
            return self.node(value)
        return self.copy(value) if isinstance(value, (ast.ExceptHandler, ast.keyword, ast.comprehension)) else value

    def Constant(self, node: ast.Constant) -> Value:
        return Known(node.value)

    def Name(self, node: ast.Name) -> Value:
        return self.known.get(node.id, node)

    def Attribute(self, node: ast.Attribute) -> Value:
        if isinstance(node.value, ast.Name) and node.value.id == "op" and node.attr in self.facts:
            value = self.facts[node.attr]
            return Known(value) if is_literal(value) else ast.Name(node.attr, ast.Load())
        return ast.Attribute(self.node(node.value), node.attr, node.ctx)

    def Tuple(self, node: ast.Tuple) -> Value:
        items = self.items(node.elts)
        if isinstance(node.ctx, ast.Load) and all(isinstance(one, Known) for one in items):
            return Known(tuple([one.value for one in items]))  # type: ignore[union-attr]
        return ast.Tuple(self.nodes(items, node), node.ctx)

    def items(self, nodes: Sequence[ast.expr]) -> list[Value]:
        """The elements of a tuple or the arguments of a call; `*(a, b)` is two of them."""
        found: list[Value] = []
        for one in nodes:
            if isinstance(one, ast.Starred):
                value = self.expression(one.value)
                if isinstance(value, Known):
                    found += map(Known, value.value)
                elif isinstance(value, (ast.Tuple, ast.List)):
                    found += value.elts
                else:
                    found.append(located(ast.Starred(value, ast.Load()), one))
            else:
                found.append(self.expression(one))
        return found

    def Subscript(self, node: ast.Subscript) -> Value:
        index = self.slice(node.slice)
        if isinstance(index, Known) and isinstance(node.value, ast.Name) and node.value.id in self.locals:
            pattern, names = self.locals[node.value.id], index.value
            if isinstance(names, tuple):
                return ast.Tuple(
                    [located(ast.Name(self.local(pattern, name), node.ctx), node) for name in names], node.ctx
                )
            return ast.Name(self.local(pattern, names), node.ctx)
        value = self.expression(node.value)
        if isinstance(index, Known):
            if isinstance(value, Known):
                return Known(value.value[index.value])
            if isinstance(value, ast.Tuple) and isinstance(index.value, int):
                item = value.elts[index.value]
                return Known(item.value) if isinstance(item, ast.Constant) else item
            if not isinstance(index.value, slice):
                return ast.Subscript(node_of(value, node), index.node(node), node.ctx)
        return ast.Subscript(node_of(value, node), self.node(node.slice), node.ctx)

    def slice(self, node: ast.expr) -> Value | None:
        """The index; None for a slice whose value is not known."""
        if not isinstance(node, ast.Slice):
            return self.expression(node)
        parts = [Known(None) if one is None else self.expression(one) for one in (node.lower, node.upper, node.step)]
        values = [one.value for one in parts if isinstance(one, Known)]
        return Known(slice(*values)) if len(values) == 3 else None

    def local(self, pattern: str, name: str) -> str:
        made = pattern.format(name)
        return f"{made}_" if made in self.taken else made

    def Compare(self, node: ast.Compare) -> Value:
        left, right = self.expression(node.left), self.expression(node.comparators[0])
        if len(node.ops) == 1 and isinstance(left, Known) and isinstance(right, Known):
            return Known(COMPARE[type(node.ops[0])](left.value, right.value))
        others = map(self.node, node.comparators[1:])
        return ast.Compare(node_of(left, node), node.ops, [node_of(right, node), *others])

    def BoolOp(self, node: ast.BoolOp) -> Value:
        return self.joined(node.op, map(self.expression, node.values), node)

    def joined(self, op: ast.boolop, values: Iterable[Value], at: ast.AST) -> Value:
        """`a or b or ...`: known values that change nothing are dropped; the first that decides is the last part."""
        decides = isinstance(op, ast.Or)
        left: list[ast.expr] = []
        for value in values:
            if not isinstance(value, Known):
                same = isinstance(value, ast.BoolOp) and type(value.op) is type(op)
                left += value.values if same else [value]  # type: ignore[attr-defined]
            elif bool(value.value) == decides:
                if not left:
                    return value
                left.append(value.node(at))
                break
        if not left:
            return Known(not decides)
        return left[0] if len(left) == 1 else ast.BoolOp(op, left)

    def UnaryOp(self, node: ast.UnaryOp) -> Value:
        value = self.expression(node.operand)
        if isinstance(value, Known):
            return Known(not value.value if isinstance(node.op, ast.Not) else -value.value)
        return ast.UnaryOp(node.op, value)

    def IfExp(self, node: ast.IfExp) -> Value:
        test = self.expression(node.test)
        if isinstance(test, Known):
            return self.expression(node.body if test.value else node.orelse)
        return ast.IfExp(test, self.node(node.body), self.node(node.orelse))

    def unrolled(self, node: ast.expr) -> list[Value] | None:
        """The elements of a comprehension over a known tuple; None for another expression."""
        if not isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            return None
        loop = node.generators[0]
        items = self.expression(loop.iter)
        if not isinstance(items, Known):
            return None
        found: list[Value] = []
        for item in items.value:
            self.bound(loop.target, item, self.element, node.elt, loop.ifs, found)
        return found

    def element(self, node: ast.expr, conditions: Sequence[ast.expr], found: list[Value]) -> None:
        if all(self.expression(one).value for one in conditions):  # type: ignore[union-attr]
            found.append(self.expression(node))

    def ListComp(self, node: ast.ListComp) -> Value:
        items = self.unrolled(node)
        return self.copy(node) if items is None else ast.List(self.nodes(items, node), ast.Load())

    def Call(self, node: ast.Call) -> Value:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in COMBINED and (items := self.unrolled(node.args[0])) is not None:
            op = COMBINED[name]
            return ast.Tuple(self.nodes(items, node), ast.Load()) if op is None else self.joined(op(), items, node)
        args = self.items(node.args)
        if name in self.inlined:
            return self.inline(self.inlined[name], args)
        if name in COMPUTED and isinstance(args[0], Known):
            return Known(COMPUTED[name](args[0].value))
        return ast.Call(self.node(node.func), self.nodes(args, node), [self.copy(one) for one in node.keywords])

    def inline(self, function: Callable, args: Sequence[Value]) -> Value:
        """The expression that the function returns, with its parameters replaced."""
        tree = parsed(function)
        before = self.known
        self.known = before | {one.arg: value for one, value in zip(tree.args.args, args)}  # `op` stays `op`
        made = self.expression(tree.body[-1].value)  # type: ignore[attr-defined]
        self.known = before
        return made
