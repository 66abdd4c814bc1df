"""Statements and expressions of TorchScript as closures over Python's values.

Each kind of node that TorchScript writes has an entry in `STATEMENTS` or `EXPRESSIONS`; `Refused` for any other. A
closure of a statement returns None, or a tuple with the value that the function returns."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import Any

from rushlight.archives.aten import table
from rushlight.archives.budget import RUNNING, LimitExceeded
from rushlight.core.tensor import Tensor

from .language import ANY, PLAIN, PRIM, short, whole
from .objects import attribute, create, entered, left, method, set_attribute
from .syntax import dotted, where
from .types import fits
from .values import Env, Function, Parameter, Run, ScriptClass

MAX_NESTING = 100  # expressions and statements inside each other
CONSTANTS = {"inf": math.inf, "nan": math.nan, "True": True, "False": False, "None": None}
LITERALS = (ast.Constant, ast.Tuple, ast.List, ast.Dict, ast.UnaryOp, ast.USub, ast.Load)  # parts of a constant
ROOTS = ("torch", "ops", "CONSTANTS", "__torch__")  # the first parts of the names of operators, constants and classes
# functions of the language that return an argument: name -> its place
PASSING = {"annotate": 1, "unchecked_cast": 1, "unwrap_optional": 0, "ignore": 0}
CASTS: dict[str, Callable[[Any], Any]] = {"bool": bool, "int": int, "float": float, "str": str, "complex": complex}
SIMPLE = frozenset((*CASTS, *PASSING, "range", "print", "uninitialized"))


class Refused(Exception):
    """Code that is not TorchScript."""


class Scope:
    """What the code of a file refers to: `find` gives the classes and functions of the archive, `constant` its
    constants. `file`: the file's name, for messages."""

    def __init__(self, file: str, find: Callable[[str], Any], constant: Callable[[str], Any]):
        self.file, self.find, self.constant, self.depth = file, find, constant, 0

    def refused(self, node: ast.AST, what: str) -> Refused:
        return Refused(f"{where(node, self.file)}: {what}")

    def statement(self, node: ast.stmt) -> Run:
        """The closure of a statement."""
        return self._closure(STATEMENTS, node)

    def expression(self, node: ast.expr) -> Run:
        """The closure of an expression."""
        return self._closure(EXPRESSIONS, node)

    def _closure(self, table: dict[type, Callable[[Scope, Any], Run]], node: ast.AST) -> Run:
        make = table.get(type(node))
        if make is None:
            raise self.refused(node, f"{type(node).__name__} is not part of TorchScript")
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise self.refused(node, "the code is nested too deeply")
        try:
            return make(self, node)
        finally:
            self.depth -= 1

    def name(self, name: str, node: ast.AST) -> str:
        """A name of a value, which may not be one of Python's own, such as __class__."""
        if name.startswith("__"):
            raise self.refused(node, f"the name {name} is not allowed")
        return name


def literal(scope: Scope, node: ast.expr) -> Any:
    """The value of numbers, texts, and tuples, lists and dicts of them. Refused for anything that computes."""
    for part in ast.walk(node):
        known = isinstance(part, ast.Name) and part.id in CONSTANTS
        if not known and not isinstance(part, LITERALS):
            raise scope.refused(node, f"a {type(part).__name__} stands in the place of a constant")
    try:
        return scope.expression(node)({})
    except (TypeError, LimitExceeded) as error:
        raise scope.refused(node, str(error)) from None


def function(scope: Scope, node: ast.FunctionDef, name: str) -> Function:
    """A function or method."""
    given = node.args
    if given.vararg or given.kwarg or given.kwonlyargs or given.posonlyargs or node.decorator_list:
        raise scope.refused(node, "functions have plain parameters")
    missing = len(given.args) - len(given.defaults)
    defaults = [None] * missing + [scope.expression(d) for d in given.defaults]
    parameters = [Parameter(scope.name(a.arg, node), d) for a, d in zip(given.args, defaults)]
    return Function(name, parameters, block(scope, node.body))


def block(scope: Scope, nodes: list[ast.stmt]) -> Run:
    """Statements one after the other."""
    statements = [scope.statement(node) for node in nodes if not isinstance(node, ast.Pass)]

    def run(env: Env) -> tuple | None:
        for statement in statements:
            out = statement(env)
            if out is not None:
                return out
        return None

    return run


# -- statements --------------------------------------------------------------------------------------


def target(scope: Scope, node: ast.expr) -> Callable[[Env, Any], None]:
    """What puts a value into a name, an attribute, or several of them."""
    if isinstance(node, ast.Name):
        name = scope.name(node.id, node)
        return lambda env, value: env.__setitem__(name, value)
    if isinstance(node, ast.Attribute):
        home, last = scope.expression(node.value), scope.name(node.attr, node)
        return lambda env, value: set_attribute(home(env), last, value)
    if isinstance(node, (ast.Tuple, ast.List)):
        return several(scope, node)
    raise scope.refused(node, "nothing can be assigned to this")


def several(scope: Scope, node: ast.Tuple | ast.List) -> Callable[[Env, Any], None]:
    """What puts the elements of a value into several targets."""
    parts = [target(scope, part) for part in node.elts]

    def put(env: Env, value: Any) -> None:
        if not isinstance(value, (tuple, list)) or len(value) != len(parts):
            raise ValueError(f"{where(node, scope.file)}: {len(parts)} values are needed")
        for part, element in zip(parts, value):
            part(env, element)

    return put


def assign(scope: Scope, node: ast.Assign) -> Run:
    if len(node.targets) != 1:
        raise scope.refused(node, "an assignment has one target")
    put, value = target(scope, node.targets[0]), scope.expression(node.value)

    def run(env: Env) -> None:
        put(env, value(env))

    return run


def annotated(scope: Scope, node: ast.AnnAssign) -> Run:
    if node.value is None:
        return lambda env: None
    return assign(scope, ast.Assign([node.target], node.value, lineno=node.lineno))


def expression_statement(scope: Scope, node: ast.Expr) -> Run:
    value = scope.expression(node.value)

    def run(env: Env) -> None:
        value(env)

    return run


def returned(scope: Scope, node: ast.Return) -> Run:
    if node.value is None:
        return lambda env: (None,)
    value = scope.expression(node.value)
    return lambda env: (value(env),)


def condition(scope: Scope, node: ast.If) -> Run:
    test, yes, no = scope.expression(node.test), block(scope, node.body), block(scope, node.orelse)
    return lambda env: yes(env) if test(env) else no(env)


def while_loop(scope: Scope, node: ast.While) -> Run:
    test, body = scope.expression(node.test), block(scope, node.body)
    if node.orelse:
        raise scope.refused(node, "loops have no else")

    def run(env: Env) -> tuple | None:
        budget = RUNNING.get()
        while test(env):
            budget.step()
            out = body(env)
            if out is not None:
                return out
        return None

    return run


def for_loop(scope: Scope, node: ast.For) -> Run:
    """A loop over range(n), the only one that TorchScript writes, or over a list."""
    put, values, body = target(scope, node.target), scope.expression(node.iter), block(scope, node.body)
    if node.orelse:
        raise scope.refused(node, "loops have no else")

    def run(env: Env) -> tuple | None:
        budget = RUNNING.get()
        for value in values(env):
            budget.step()
            put(env, value)
            out = body(env)
            if out is not None:
                return out
        return None

    return run


def with_block(scope: Scope, node: ast.With) -> Run:
    """`with x:`, which calls the methods __enter__ and __exit__ of an object of the archive."""
    managers = [scope.expression(item.context_expr) for item in node.items]
    names = [None if item.optional_vars is None else target(scope, item.optional_vars) for item in node.items]
    body = block(scope, node.body)

    def run(env: Env) -> tuple | None:
        open_ = []
        for manager, put in zip(managers, names):
            open_.append(manager(env))
            value = entered(open_[-1])
            if put is not None:
                put(env, value)
        try:
            return body(env)
        finally:
            for value in reversed(open_):
                left(value)

    return run


STATEMENTS: dict[type, Callable[[Scope, Any], Run]] = {
    ast.Assign: assign, ast.AnnAssign: annotated, ast.Expr: expression_statement, ast.Return: returned,
    ast.If: condition, ast.While: while_loop, ast.For: for_loop, ast.With: with_block,
    ast.Pass: lambda scope, node: lambda env: None,
}  # fmt: skip


# -- expressions -------------------------------------------------------------------------------------


def name(scope: Scope, node: ast.Name) -> Run:
    if node.id in CONSTANTS:
        value = CONSTANTS[node.id]
        return lambda env: value
    if node.id in ROOTS:
        raise scope.refused(node, f"{node.id} is not a value")
    key, place = scope.name(node.id, node), where(node, scope.file)

    def run(env: Env) -> Any:
        try:
            return env[key]
        except KeyError:
            raise NameError(f"{place}: the name {key} has no value") from None

    return run


def constant(scope: Scope, node: ast.Constant) -> Run:
    value = node.value
    if not isinstance(value, (int, float, str, complex, type(None))):
        raise scope.refused(node, f"constants are not {type(value).__name__}")
    try:
        whole(value)
    except LimitExceeded as error:
        raise scope.refused(node, str(error)) from None
    return lambda env: value


def attributes(scope: Scope, node: ast.Attribute) -> Run:
    """`x.name`: of the archive, of its constants, or of a value."""
    path = dotted(node) or ""
    root, _, rest = path.partition(".")
    if root == "__torch__":
        for part in rest.split("."):
            scope.name(part.removeprefix("___torch_mangle"), node)
        return lambda env: scope.find(path)
    if root == "CONSTANTS":
        return lambda env: scope.constant(rest)
    if root in ("torch", "ops"):
        raise scope.refused(node, f"{path} is not a value")
    home, last = scope.expression(node.value), scope.name(node.attr, node)
    return lambda env: attribute(home(env), last)


def collected(make: Callable[[Any], Any]) -> Callable[[Scope, Any], Run]:
    """A tuple or list of expressions."""

    def closure(scope: Scope, node: Any) -> Run:
        parts = [scope.expression(part) for part in node.elts]
        return lambda env: make([part(env) for part in parts])

    return closure


def dictionary(scope: Scope, node: ast.Dict) -> Run:
    if any(key is None for key in node.keys):
        raise scope.refused(node, "a dict has keys")
    pairs = [(scope.expression(k), scope.expression(v)) for k, v in zip(node.keys, node.values) if k is not None]
    return lambda env: {key(env): value(env) for key, value in pairs}


def subscript(scope: Scope, node: ast.Subscript) -> Run:
    home, key = scope.expression(node.value), scope.expression(node.slice)

    def run(env: Env) -> Any:
        value = home(env)
        if not isinstance(value, (list, tuple, dict, str)):
            raise TypeError(f"{where(node, scope.file)}: a {type(value).__name__} has no elements")
        return value[key(env)]

    return run


def negative(scope: Scope, node: ast.UnaryOp) -> Run:
    if not isinstance(node.op, ast.USub):
        raise scope.refused(node, f"{type(node.op).__name__} is not part of TorchScript")
    value = scope.expression(node.operand)
    return lambda env: -value(env)


def either(scope: Scope, node: ast.IfExp) -> Run:
    test, yes, no = map(scope.expression, (node.test, node.body, node.orelse))
    return lambda env: yes(env) if test(env) else no(env)


# -- calls -------------------------------------------------------------------------------------------


def called(scope: Scope, node: ast.Call) -> Run:
    """A call: of an operator, of the language, of a class or function of the archive, or of a method."""
    path = dotted(node.func)
    root, _, rest = (path or "").partition(".")
    if isinstance(node.func, ast.Attribute) and node.func.attr in ("__new__", "__init__"):
        return made_object(scope, node)
    if path in LANGUAGE:
        return LANGUAGE[path](scope, node)
    if path and path in SIMPLE:
        return of_language(scope, node, str(path))
    if root == "torch" and rest:
        return operation(scope, node, rest, {**PLAIN})
    if root == "ops":
        return of_namespace(scope, node, rest)
    if isinstance(node.func, ast.Attribute) and root not in ("__torch__", "CONSTANTS"):
        return of_method(scope, node)
    return of_value(scope, node)


def arguments(scope: Scope, node: ast.Call) -> tuple[list[Run], dict[str, Run]]:
    """The closures of a call's arguments."""
    if any(keyword.arg is None for keyword in node.keywords):
        raise scope.refused(node, "calls have no ** arguments")
    return [scope.expression(a) for a in node.args], {str(k.arg): scope.expression(k.value) for k in node.keywords}


def operation(scope: Scope, node: ast.Call, last: str, plain: dict[str, Callable[..., Any]]) -> Run:
    """A call of ATen's operator, or of the language's of this name if no argument is a tensor."""
    args, named = arguments(scope, node)
    if not last.isidentifier():
        raise scope.refused(node, f"{last} is not an operator")
    simple, any_ = plain.get(last), ANY.get(last)

    def run(env: Env) -> Any:
        values = [a(env) for a in args]
        if any_ is not None and not (last == "__not__" and isinstance(values[0], Tensor) and values[0].numel() != 1):
            return any_(*values)
        settings = {key: value(env) for key, value in named.items()}
        if simple is not None and not any(map(has_tensor, values)):
            return simple(*values, **settings)
        return table.found(last)(*values, **table.settings(settings))

    return run


def has_tensor(value: Any) -> bool:
    """Whether a value is a tensor, or a list whose first element is one."""
    return isinstance(value, Tensor) or isinstance(value, list) and len(value) > 0 and isinstance(value[0], Tensor)


def of_namespace(scope: Scope, node: ast.Call, path: str) -> Run:
    """`ops.prim.name(...)` and `ops.aten.name(...)`."""
    space, _, last = path.partition(".")
    if space == "aten":
        return operation(scope, node, last, PLAIN)
    if space != "prim" or last not in PRIM:
        text = f"{where(node, scope.file)}: the operator {path.replace('.', '::')} is not supported"
        return refusing(text)
    function, (args, named) = PRIM[last], arguments(scope, node)
    return lambda env: function(*[a(env) for a in args], **{key: value(env) for key, value in named.items()})


def refusing(text: str) -> Run:
    """What raises NotImplementedError, if it runs at all: models have code for cases that may never occur."""

    def run(env: Env) -> None:
        raise NotImplementedError(text)

    return run


def of_language(scope: Scope, node: ast.Call, path: str) -> Run:
    """`annotate(T, x)`, `int(x)`, `range(n)` and so on."""
    if path == "uninitialized":
        return lambda env: None
    if path == "print" and not node.keywords:
        args = [scope.expression(a) for a in node.args]
        return lambda env: print(*[a(env) for a in args])
    place = PASSING.get(path, 0)
    if len(node.args) <= place or node.keywords:
        raise scope.refused(node, f"{path}() has other arguments")
    value = scope.expression(node.args[place])
    if path == "annotate" and dotted(node.args[0]) == "number":
        return lambda env: item(value(env))
    if path == "range":
        bounds = [scope.expression(a) for a in node.args]
        return lambda env: range(*[int(b(env)) for b in bounds])
    cast = CASTS.get(path)
    return value if cast is None else lambda env: cast(value(env))


def item(value: Any) -> Any:
    """The number of a tensor."""
    return value.item() if isinstance(value, Tensor) else value


def is_instance(scope: Scope, node: ast.Call) -> Run:
    value, kind = scope.expression(node.args[0]), node.args[1]
    return lambda env: fits(value(env), kind)


def attribute_by_text(scope: Scope, node: ast.Call) -> Run:
    """`getattr(self, "0")`, for names that identifiers cannot have."""
    last = node.args[1] if len(node.args) == 2 else None
    if not isinstance(last, ast.Constant) or not isinstance(last.value, str):
        raise scope.refused(node, "getattr() has another argument than a text")
    home, text = scope.expression(node.args[0]), scope.name(last.value, node)
    return lambda env: attribute(home(env), text)


def forked(scope: Scope, node: ast.Call) -> Run:
    """`fork(f, x)` and `wait(y)`: the function runs at once."""
    function, *args = [scope.expression(a) for a in node.args]
    return lambda env: called_value(function(env), [a(env) for a in args], {})


LANGUAGE: dict[str | None, Callable[[Scope, ast.Call], Run]] = {
    "isinstance": is_instance, "getattr": attribute_by_text, "fork": forked,
}  # fmt: skip


def made_object(scope: Scope, node: ast.Call) -> Run:
    """`C.__new__(C)` makes an object, `(x).__init__(...)` calls its method."""
    func: Any = node.func
    args, named = arguments(scope, node)
    if func.attr == "__new__":
        path = dotted(func.value) or ""
        if not path.startswith("__torch__."):
            raise scope.refused(node, f"{path}.__new__ is not allowed")
        return lambda env: create(scope.find(path))
    home = scope.expression(func.value)

    def run(env: Env) -> Any:
        value = home(env)
        return method(value, "__init__").call([value, *[a(env) for a in args]], values_of(named, env))

    return run


def of_method(scope: Scope, node: ast.Call) -> Run:
    """`(x).name(...)`: a method of a module or an object of the archive."""
    func: Any = node.func
    home, last, (args, named) = scope.expression(func.value), func.attr, arguments(scope, node)
    scope.name(last, node)

    def run(env: Env) -> Any:
        value = home(env)
        return method(value, last).call([value, *[a(env) for a in args]], values_of(named, env))

    return run


def of_value(scope: Scope, node: ast.Call) -> Run:
    """A call of a function of the archive, or of its named tuple."""
    func, (args, named) = scope.expression(node.func), arguments(scope, node)
    return lambda env: called_value(func(env), [a(env) for a in args], values_of(named, env))


def called_value(function: Any, args: list[Any], named: dict[str, Any]) -> Any:
    if isinstance(function, ScriptClass):
        return create(function, args, named)
    if isinstance(function, Function):
        return function.call(args, named)
    raise TypeError(f"a {type(function).__name__} cannot be called")


def values_of(named: dict[str, Run], env: Env) -> dict[str, Any]:
    return {key: value(env) for key, value in named.items()}


EXPRESSIONS: dict[type, Callable[[Scope, Any], Run]] = {
    ast.Name: name, ast.Constant: constant, ast.Attribute: attributes, ast.Call: called, ast.Tuple: collected(tuple),
    ast.List: collected(short), ast.Dict: dictionary, ast.Subscript: subscript, ast.UnaryOp: negative,
    ast.IfExp: either,
}  # fmt: skip
