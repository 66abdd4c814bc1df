"""Divide a function at its graph breaks: statements with a graph break stay Python, the others become compiled pieces.

    def step(x, y):                     def step(x, y):
        optimizer.zero_grad()               loss = piece_1(x, y)  # three statements, compiled
        loss = criterion(model(x), y)  ->   losses.append(loss.item())
        loss.backward()                     piece_2()
        losses.append(loss.item())
        optimizer.step()

The traced run reports the positions of graph breaks in the file. All statements keep the order and the variables of the
user's function.
"""

from __future__ import annotations

import ast
import builtins
import copy
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from rushlight.base.tracebacks import ours
from rushlight.compile.capture.syntax import COMPREHENSIONS, Place, function_of, needs, place_of, read, tree_of, written
from rushlight.compile.guards.guard_set import owned

# (code, instruction) of each frame at a graph break, innermost first
Stop = tuple[tuple[CodeType, int], ...]
# Syntax that is not compiled.
PYTHON_SYNTAX = (
    ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal, ast.Lambda, ast.FunctionDef,
    ast.ClassDef, ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Delete, ast.Import, ast.ImportFrom, ast.Try,
    ast.NamedExpr, ast.Match, *(getattr(ast, name) for name in ("TryStar", "TypeAlias") if hasattr(ast, name)),
)  # fmt: skip
LEAVING = ast.Break, ast.Continue
# Names that are not compiled: they read the frame, or have side effects.
PYTHON_NAMES = {
    "super", "locals", "globals", "vars", "eval", "exec", "print", "input", "open", "next", "iter", "id", "breakpoint",
}  # fmt: skip
BUILTINS = {*dir(builtins)}  # a piece that calls only builtins is not worth a program
LIST_METHODS = {"append", "extend", "insert", "appendleft", "popleft"}  # methods that change a list
# methods that change a tensor's state, which no program supports
STATE_METHODS = {"requires_grad_", "retain_grad", "register_hook", "register_post_accumulate_grad_hook"}
OF_TENSORS = {"grad", "data", "requires_grad"}  # attributes that a program may assign
MAX_DEPTH = 8  # maximum depth of pieces inside pieces
NUMBERS = {"item", "tolist", "numpy"}  # methods that return Python numbers or arrays


def home(function: Any) -> tuple[FunctionType, Any] | None:
    """(the Python function that runs when `function` is called, the object that it is a method of); None if unknown."""
    if isinstance(function, FunctionType):
        return function, None
    if isinstance(function, MethodType) and isinstance(function.__func__, FunctionType):
        return function.__func__, function.__self__
    nn = sys.modules.get("rushlight.nn.hooks")
    if nn is not None and isinstance(function, nn.Hooked):
        plain = type(function).__call__ is nn.Hooked.__call__ and not function._hooked and not nn.EVERYWHERE
        return home(function.forward) if plain else None
    call = next((vars(c)["__call__"] for c in type(function).__mro__ if "__call__" in vars(c)), None)
    return (call, function) if isinstance(call, FunctionType) else None


def wrapped(function: FunctionType) -> FunctionType | None:
    """The user's function inside a wrapper of the library: a `no_grad()` decorator, an optimizer's `step` with
    hooks."""
    inner = function.__dict__.get("__wrapped__")
    return inner if isinstance(inner, FunctionType) and ours(function.__code__.co_filename) and owned(inner) else None


def around(function: FunctionType, inner: Any, other: Any) -> FunctionType:
    """A copy of `function` that calls `other` in place of `inner`."""
    cells = [CellType(other) if cell.cell_contents is inner else cell for cell in function.__closure__ or ()]
    return FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, tuple(cells))


def tree_of_function(function: FunctionType) -> ast.FunctionDef | None:
    """The syntax tree of a function, which may itself be a piece."""
    piece = function.__dict__.get("piece")
    return tree_of(function.__code__) if piece is None else piece.tree


class Piece(NamedTuple):
    """The data of a piece. `depth`: the number of pieces that contain it. `apart`: code objects of the surrounding
    functions, which the piece must not call.
    """

    tree: ast.FunctionDef
    depth: int
    apart: frozenset[CodeType]


class Pieces:
    """The divided function, with calls of the pieces.

    `stops`: the frames at the graph breaks. `compiled(function)` makes a piece; `parts`: the pieces made so far.
    `places`: further statements that change Python state. `counters`: positions or names of the arguments whose number
    differs in each call. `plain`: divide only if no computation depends on these arguments.
    """

    def __init__(
        self,
        whole: Any,
        stops: Iterable[Stop],
        compiled: Any,
        places: Iterable[Place] = (),
        counters: Iterable[Any] = (),
        plain: bool = True,
    ):
        self.whole, self.compiled = whole, compiled
        self.parts: list[Any] = []
        # called function with graph breaks -> its compiled version
        self.inside: dict[FunctionType, Any] = {}
        self.codes: set[CodeType] = set()  # the code of called functions with graph breaks
        self.function: FunctionType | None = None
        self.entered = 0  # the number of calls of such functions
        found = home(whole)
        if found is None:
            return
        self.original, self.instance = found
        if (inner := wrapped(self.original)) is not None:
            self.parts, self.entered = [compiled(inner)], 1
            self.inside[inner], self.function = self.parts[0], around(self.original, inner, self.parts[0])
            return
        piece = self.original.__dict__.get("piece", Piece(None, 0, frozenset()))  # type: ignore[arg-type]
        self.depth, self.apart = piece.depth, piece.apart | {self.original.__code__}
        tree = tree_of_function(self.original)
        if tree is None or self.depth > MAX_DEPTH:
            return
        own, called = self.places(stops)
        self.changing = [*places]
        first = 0 if self.instance is None else 1
        given = [x.arg for x in (*tree.args.posonlyargs, *tree.args.args)][first:]
        names = [k if isinstance(k, str) else given[k] for k in counters if isinstance(k, str) or k < len(given)]
        if plain and not all(plainly(tree.body, name) for name in names):
            return
        made = Around(tree, self.original, own, called, self.changing, names)
        if made.left and (made.made or made.entered):
            self.entered = made.entered
            self.build(made)

    def places(self, stops: Iterable[Stop]) -> tuple[list[Place], list[Place]]:
        """(places of graph breaks in the function itself, places of its calls of functions with graph breaks)."""
        code = self.original.__code__
        own: list[Place] = []
        called: list[Place] = []
        for stop in stops:
            for i, (c, lasti) in enumerate(stop):
                if c is code:
                    (called if i else own).append(place_of(c, lasti))
                    self.codes.update([stop[i - 1][0]] if i else [])
        return own, called

    def build(self, around: Around) -> None:
        for name, node in around.made.items():
            body = node.body
            lines = f"lines {body[0].lineno} to {body[-1].end_lineno}"
            part = function_of(node, self.original, {}, f"{self.original.__qualname__} ({lines})")
            part.__dict__["piece"] = Piece(node, self.depth + 1, self.apart)
            around.made[name] = self.compiled(part)
            self.parts.append(around.made[name])
        self.function = function_of(around._node, self.original, {**around.made, "piece of": self.entering})

    def entering(self, function: Any) -> Any:
        """The function to call in place of `function`: its compiled version if it has graph breaks."""
        found = home(function)
        if found is None or found[0].__code__ not in self.codes and not (self.changing and owned(found[0])):
            return function
        code, instance = found
        if code not in self.inside:
            self.inside[code] = self.compiled(code)
            self.parts.append(self.inside[code])
        made = self.inside[code]
        return made if instance is None else MethodType(made, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        found = home(self.whole)  # a module may have new hooks or another forward
        if found is None or found[0] is not self.original:
            return self.whole(*args, **kwargs)
        assert self.function is not None
        own = () if self.instance is None else (self.instance,)
        return self.function(*own, *args, **kwargs)


class Around:
    """Divides a definition.

    `node`: the definition that calls the pieces. `made`: name -> piece. `entered`: the number of calls of functions
    with graph breaks. `left`: the number of statements that stay Python."""

    def __init__(
        self,
        tree: ast.FunctionDef,
        function: FunctionType,
        own: list[Place],
        called: list[Place],
        moved: list[Place],
        counters: list[str],
    ):
        self.own, self.called, self.moved, self.function = own, called, moved, function
        self.made: dict[str, Any] = {}
        self.entered = self.left = self.loops = 0  # loops: the nesting depth of loops at the current statement
        self.tree = tree
        a = tree.args
        given = [x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg)))]
        shared = {n for s in ast.walk(tree) if isinstance(s, (ast.Global, ast.Nonlocal)) for n in s.names}
        self.variables = (written(*tree.body) | set(given)) - shared
        self.captured = {
            n.id
            for f in ast.walk(tree)
            if isinstance(f, (ast.Lambda, ast.FunctionDef)) and f is not tree
            for n in ast.walk(f)
            if isinstance(n, ast.Name)
        } & self.variables
        self.reads = reads_in(tree.body)
        # variables whose Python number differs in each call
        self.changing = {*counters, *(shared & written(*tree.body))}
        self.attributes: set[str] = set()  # attributes that are assigned
        self.find_changing()
        body, _ = self.divided(copy.deepcopy(tree.body), frozenset(given))
        self._node = ast.copy_location(ast.FunctionDef(tree.name, tree.args, body, [], None), tree)

    # -- variables that change from call to call ---------------------------------------------------

    def find_changing(self) -> None:
        """Find the variables whose Python number differs in each call, and the attributes that are assigned."""
        for n in ast.walk(self.tree):
            if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store):
                self.attributes |= {n.attr} - OF_TENSORS
            elif isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and grows(n):
                grown = n.func.value
                self.attributes |= {grown.attr} if isinstance(grown, ast.Attribute) else set()
            elif isinstance(n, ast.For) and self.broken(n):
                self.changing |= counters_of(n)
        before = -1
        while before != len(self.changing):  # numbers computed from changing numbers change, too
            before = len(self.changing)
            for n in ast.walk(self.tree):
                if isinstance(n, (ast.Assign, ast.AugAssign)):
                    self.changing |= self.changed_by(n)

    def changed_by(self, s: ast.Assign | ast.AugAssign) -> set[str]:
        """The variable to which a statement assigns a changing number."""
        targets = s.targets if isinstance(s, ast.Assign) else [s.target]
        adds = isinstance(s, ast.AugAssign) and isinstance(s.value, ast.Constant)
        if len(targets) > 1 or not isinstance(targets[0], ast.Name):
            return set()
        return {targets[0].id} if adds or self.number(s.value) else set()

    def number(self, e: ast.expr) -> bool:
        """Whether an expression is a Python number that changes."""
        if isinstance(e, ast.Name):
            return e.id in self.changing
        if isinstance(e, ast.Call):
            if isinstance(e.func, ast.Attribute):
                return e.func.attr in NUMBERS
            return (
                isinstance(e.func, ast.Name)
                and e.func.id in BUILTINS
                and (any(p.inside(e) for p in self.own) or any(map(self.number, e.args)))
            )
        if isinstance(e, ast.BinOp):
            return any(map(self.number, (e.left, e.right))) and all(
                isinstance(x, ast.Constant) or self.number(x) for x in (e.left, e.right)
            )
        return isinstance(e, (ast.Compare, ast.BoolOp, ast.UnaryOp)) and any(
            isinstance(x, ast.expr) and self.number(x) for x in ast.walk(e) if x is not e
        )

    # -- statements that a program supports ---------------------------------------------------------

    def broken(self, node: Any) -> bool:
        return any(p.inside(node) for p in (*self.own, *self.called, *self.moved))

    def free(self, s: ast.AST) -> bool:
        """Whether a whole statement or expression can be part of a piece."""
        if self.broken(s) or isinstance(s, LEAVING):
            return False
        nodes = [*ast.walk(s)]
        if not isinstance(s, (ast.For, ast.While)) and any(isinstance(n, LEAVING) for n in nodes):
            return False
        arguments = {id(a) for n in nodes if isinstance(n, ast.Call) for a in n.args}
        if any(isinstance(n, ast.GeneratorExp) and id(n) not in arguments for n in nodes):
            return False
        return not any(map(self.stays_python, nodes))

    def stays_python(self, n: ast.AST) -> bool:
        """Whether a node of a syntax tree cannot be part of a piece in any context."""
        if isinstance(n, ast.Name):
            # an inner function reads a captured variable itself
            captured = isinstance(n.ctx, ast.Store) and n.id in self.captured
            return captured or n.id in PYTHON_NAMES or n.id in self.changing
        if isinstance(n, ast.Attribute):
            return n.attr in self.attributes
        if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store):
            return isinstance(n.slice, ast.Constant) and isinstance(n.slice.value, str)
        if isinstance(n, ast.Call):
            return grows(n, STATE_METHODS | LIST_METHODS) or self.of_python(n.func)
        return isinstance(n, PYTHON_SYNTAX)

    def of_python(self, e: ast.expr) -> bool:
        """Whether `e` names a function of Python's library with side effects: clocks, random numbers, logs, files."""
        path = []
        while isinstance(e, ast.Attribute):
            path.append(e.attr)
            e = e.value
        if not isinstance(e, ast.Name) or e.id in self.variables:
            return False
        found = self.function.__globals__.get(e.id)
        for name in reversed(path):
            found = vars(found).get(name) if isinstance(found, ModuleType) else found
        where: str = getattr(found, "__module__", None) or type(found).__module__
        return where.partition(".")[0] in ("time", "random", "logging", "datetime", "sys", "os", "io", "_io")

    # -- dividing ----------------------------------------------------------------------------------

    def divided(self, body: list[ast.stmt], known: frozenset) -> tuple[list[ast.stmt], frozenset]:
        """(the statements with pieces replaced by calls, the variables that have a value after them).

        `known`: the variables that have a value before them.
        """
        out: list[ast.stmt] = []
        run: list[ast.stmt] = []
        start = known
        for s in body:
            if self.free(s):
                run.append(s)
                known = needs([s], known)[1]
                continue
            lifted: list[ast.stmt] = []
            self.lift(s, lifted)
            run += lifted
            known |= written(*lifted)
            out += self.piece(run, start)
            run = []
            rest, known = self.apart(s, known)
            out.append(rest)
            start = known
        return out + self.piece(run, start), known

    def piece(self, run: list[ast.stmt], known: frozenset) -> list[ast.stmt]:
        """The call of a new piece; or the statements themselves, if a piece does not pay or would change the
        meaning."""
        while run and not works(run[0]):  # `best = 0` needs no program
            return [run[0], *self.piece(run[1:], known | needs(run[:1], known)[1])]
        if not run:
            return []
        wanted, after = needs(run, frozenset())
        changed = written(*run) & self.variables | {n for n in written(*run) if n.startswith("value ")}
        inside = reads_in(run)
        results = sorted(
            n for n in changed if n.startswith("value ") or self.reads[n] > inside[n] or self.loops and n in wanted
        )
        given = sorted(wanted & self.variables | {n for n in results if n not in after})
        if not set(given) <= known:  # a variable that may be unbound cannot be an argument
            return run
        name = f"piece {len(self.made) + 1}"
        first, last = run[0], run[-1]
        returned = ast.copy_location(ast.Return(tuple_of(results, ast.Load())), last)
        node = ast.FunctionDef(
            f"{self.tree.name}_{len(self.made) + 1}",
            ast.arguments([], [ast.arg(n) for n in given], None, [], [], None, []),
            [*run, returned] if results else run,
            [],
            None,
        )
        self.made[name] = ast.fix_missing_locations(ast.copy_location(node, first))
        call = ast.Call(ast.Name(name, ast.Load()), [ast.Name(n, ast.Load()) for n in given], [])
        made: ast.stmt = ast.Assign([tuple_of(results, ast.Store())], call) if results else ast.Expr(call)
        return [ast.fix_missing_locations(ast.copy_location(made, first))]

    def apart(self, s: ast.stmt, known: frozenset) -> tuple[ast.stmt, frozenset]:
        """A statement that stays Python; the statements of its body become pieces."""
        after = needs([s], known)[1]
        self.left += not isinstance(s, ast.Return) or self.broken(s)
        for field in ("test", "iter", "value"):
            if isinstance(getattr(s, field, None), ast.expr):
                self.entering(getattr(s, field))
        if isinstance(s, ast.If):
            s.body, _ = self.divided(s.body, known)
            s.orelse, _ = self.divided(s.orelse, known)
        elif isinstance(s, (ast.For, ast.While)):
            self.loops += 1
            s.body, _ = self.divided(s.body, known | (written(s.target) if isinstance(s, ast.For) else set()))
            s.orelse, _ = self.divided(s.orelse, known)
            self.loops -= 1
        elif isinstance(s, ast.With) and all(self.harmless(item.context_expr) for item in s.items):
            s.body, _ = self.divided(s.body, known | written(*s.items))
        elif isinstance(s, (ast.With, ast.Try)):
            self.entering(s)  # may catch errors: its body stays Python, only the called functions are divided
        return s, after

    def harmless(self, e: ast.expr) -> bool:
        """Whether `e` is a context manager of rushlight: these do not catch errors."""
        e = e.func if isinstance(e, ast.Call) else e
        while isinstance(e, ast.Attribute):
            e = e.value
        found = self.function.__globals__.get(e.id) if isinstance(e, ast.Name) and e.id not in self.variables else None
        return (
            getattr(found, "__name__", "") if isinstance(found, ModuleType) else getattr(found, "__module__", "")
        ).partition(".")[0] == "rushlight"

    def entering(self, e: ast.AST) -> None:
        """Replace calls of functions with graph breaks in `e` by calls of their compiled versions."""
        for n in [n for n in ast.walk(e) if isinstance(n, ast.Call)]:
            if not (known := any(p.calls(n) for p in self.called)) and not any(p.holds(n) for p in self.moved):
                continue
            self.entered += known or not grows(n) and not (isinstance(n.func, ast.Name) and n.func.id in BUILTINS)
            n.func = ast.copy_location(ast.Call(ast.Name("piece of", ast.Load()), [n.func], []), n.func)
            ast.fix_missing_locations(n)

    # -- lifting: computing operands before a graph break ------------------------------------------

    def lift(self, s: ast.stmt, lifted: list[ast.stmt]) -> None:
        """Move the operands of a statement that stays Python into statements before it: `return model(x).item()`."""
        field = "test" if isinstance(s, ast.If) else "value"
        if (
            isinstance(s, ast.AugAssign)
            and not isinstance(s.target, ast.Name)
            or any(n.startswith("value ") for n in written(s))
            and any(p.inside(s) for p in self.moved)
        ):
            # this statement was lifted, and still changes Python state: the function that it calls is divided instead
            return
        if isinstance(s, (ast.If, ast.Return, ast.Assign, ast.AugAssign, ast.Expr)) and getattr(s, field) is not None:
            setattr(s, field, self.lifting(getattr(s, field), lifted)[0])

    def lifting(self, e: ast.expr, lifted: list[ast.stmt]) -> tuple[ast.expr, bool]:
        """(the expression with lifted operands replaced by variables, whether later operands may be lifted, too)."""
        if isinstance(e, (ast.Name, ast.Constant)):
            return e, True
        if self.free(e) and works(e) and not isinstance(e, (*COMPREHENSIONS, ast.Starred)):
            name = f"value {len(self.made) + 1}.{len(lifted) + 1}"
            lifted.append(ast.fix_missing_locations(ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], e), e)))
            return ast.copy_location(ast.Name(name, ast.Load()), e), True
        for place in first_parts(e):
            owner, field, index = place
            old = getattr(owner, field) if index is None else getattr(owner, field)[index]
            new, quiet = self.lifting(old, lifted)
            if index is None:
                setattr(owner, field, new)
            else:
                getattr(owner, field)[index] = new
            if not quiet:
                break
        return e, False


def first_parts(e: ast.expr) -> Iterator[tuple[Any, str, int | None]]:
    """The operands of an expression that are always evaluated, in order: (owner, field, index in a list or None)."""
    if isinstance(e, ast.Call):
        if isinstance(e.func, ast.Attribute):  # a method: its object comes first
            yield e.func, "value", None
        yield from ((e, "args", i) for i, a in enumerate(e.args) if not isinstance(a, ast.Starred))
        yield from ((k, "value", None) for k in e.keywords)
    elif isinstance(e, (ast.Attribute, ast.Subscript)):
        yield e, "value", None
    elif isinstance(e, ast.BinOp):
        yield from ((e, "left", None), (e, "right", None))
    elif isinstance(e, ast.UnaryOp):
        yield e, "operand", None
    elif isinstance(e, ast.Compare):
        yield from ((e, "left", None), (e, "comparators", 0))
    elif isinstance(e, ast.BoolOp):
        yield e, "values", 0
    elif isinstance(e, ast.IfExp):
        yield e, "test", None
    elif isinstance(e, (ast.Tuple, ast.List)):
        yield from ((e, "elts", i) for i in range(len(e.elts)))


def counters_of(loop: ast.For) -> set[str]:
    """The variable that counts the passes of a loop over `range` or `enumerate`."""
    called = loop.iter.func if isinstance(loop.iter, ast.Call) else None
    first = loop.target
    if isinstance(first, ast.Tuple) and first.elts:
        first = first.elts[0]
    counts = isinstance(called, ast.Name) and called.id in ("enumerate", "range")
    return {first.id} if counts and isinstance(first, ast.Name) else set()


def reads_in(body: list[ast.stmt]) -> Counter[str]:
    """The number of reads of each variable in the statements; `x += 1` reads x."""
    found: Counter[str] = Counter()
    for n in [n for s in body for n in ast.walk(s)]:
        if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Store):
            found[n.id] += 1
        elif isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name):
            found[n.target.id] += 1
    return found


def plainly(body: list[ast.stmt], name: str) -> bool:
    """Whether the variable is used only in conditions, prints and plain assignments: no op depends on it."""
    for s in body:
        inside = [t for field in ("body", "orelse", "finalbody") for t in getattr(s, field, ())]
        if isinstance(s, (ast.If, ast.While)) or not inside and name not in read(s):
            fine = True
        elif inside:
            fine = name not in read(*(child for child in ast.iter_child_nodes(s) if child not in inside))
        else:
            call = s.value if isinstance(s, ast.Expr) else None
            fine = not works(s) or (
                isinstance(call, ast.Call)
                and (grows(call) or isinstance(call.func, ast.Name) and call.func.id in BUILTINS)
            )
        if not fine or not plainly(inside, name):
            return False
    return True


def tuple_of(variables: list[str], ctx: Any) -> ast.expr:
    """An expression for one variable, or a tuple of several."""
    found: list[ast.expr] = [ast.Name(n, ctx) for n in variables]
    return found[0] if len(found) == 1 else ast.Tuple(found, ctx)


def grows(call: ast.Call, methods: set[str] = LIST_METHODS) -> bool:
    """Whether the call calls one of these methods."""
    return isinstance(call.func, ast.Attribute) and call.func.attr in methods


def works(node: ast.AST) -> bool:
    """Whether the statement or expression may run ops."""
    return any(
        isinstance(n, (ast.BinOp, ast.AugAssign))
        or isinstance(n, ast.Call)
        and not (isinstance(n.func, ast.Name) and n.func.id in BUILTINS)
        for n in ast.walk(node)
    )
