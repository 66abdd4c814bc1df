"""Loops written in a subset of Python, as LLVM IR.

    def kernel(x, out):
        for i in range(x.shape[0]):
            out[i] = exp(x[i]) + f32(1)

The subset: numbers, arrays, tuples; assignments, `for ... in range(...)`, `while`, `if`, `break`, `continue`,
`return`; functions of the same text, which are inlined; constants of the text (`NAME = 0.5`); the names in
loops/scope.py. The types are as in Numba: an operation of two integers is of int64 (uint64 if both are unsigned),
an operation of float32 and an integer or Python's float is of float64, and all assignments to a variable share one
type. `~` of a bool is `not`, as in NumPy. The types of variables are found by writing the function again until no
assignment changes a type.

`raise IndexError("...")`, or another class in ERRORS, ends the whole loop: its caller in Python gets the error, without
the message. Such a loop returns nothing. Python's other errors are not raised: the caller checks places and divisors.

Values, and the instructions that their operators emit: loops/llvm.py."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from rushlight.loops.llvm import BOOL, INT64, POINTER, REALS, UINT64, Function, Module, Type, Value, select  # fmt: skip
from rushlight.loops.loop_arithmetic import Arithmetic
from rushlight.loops.loop_kinds import (
    ERROR,
    ERRORS,
    Array,
    Kind,
    NotALoop,
    Pack,
    alike,
    common,
    flat_arguments,
    flattened,
    gathered,
    kind_in,
    kind_of,
    unified,
)  # fmt: skip

MAX_ROUNDS = 10  # of writing a function until the types of its variables are known

AFFINE: dict[type, str] = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul"}
COMPARE: dict[type, str] = {
    ast.Lt: "<", ast.Gt: ">", ast.LtE: "<=", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
WRONG = (TypeError, ValueError, AttributeError, KeyError, IndexError, ArithmeticError)  # from a text outside the subset


class LoopFunction(Function):
    """A function with numbers as arguments and result. `given`: (name, LLVM's type) of each; `result`: a type or
    None."""

    def __init__(self, module: Module, name: str, given: Sequence[tuple[str, Type]], contract: bool):
        super().__init__(module, name, "")
        self.args = {n: Value(self, f"%{n}", kind) for n, kind in given}
        self.result: Type | None = None
        self.attributes = ["nounwind"]
        self.apart = False  # whether the arrays do not overlap
        self.contract = " contract" if contract else ""

    def text(self) -> str:
        alone = " noalias" * self.apart
        given = ", ".join([f"{a.type}{alone if a.kind == POINTER else ''} {a.v}" for a in self.args.values()])
        result = self.result.name if self.result else "void"
        result = f"zeroext {result}" if self.result == BOOL else result  # C's callers read 8 bits
        entry = ["entry:", *self.head, "br label %start", "start:"]
        head = f"define {result} @{self.name}({given}) {' '.join(self.attributes)} {{"
        return "\n".join([head, *entry, *self.lines, "}"])


def write(
    module: Module,
    symbol: str,
    text: str,
    kinds: Sequence[Kind],
    names: Mapping[str, Any],
    exact: bool = False,
    callee: Callable[[str, tuple], tuple[str, Type | None]] | None = None,
) -> LoopFunction:
    """Add the function `kernel` of the text to the module, under the name `symbol`, for arguments of these kinds.

    `names`: the names that the text may use. `callee(name, kinds)`: the symbol and the result's type of a loop that the
    text calls. Raises NotALoop."""
    tree = ast.parse(text)
    functions = {f.name: f for f in tree.body if isinstance(f, ast.FunctionDef)}
    facts = {name: (assigned_in(function), returns_always(function)) for name, function in functions.items()}
    if len(functions["kernel"].args.args) != len(kinds):
        raise TypeError(f"this loop takes {len(functions['kernel'].args.args)} arguments, not {len(kinds)}")
    constants = {t.id: s.value for s in tree.body if isinstance(s, ast.Assign) for t in s.targets}  # type: ignore[attr-defined]
    types: dict[Any, tuple[Type, int]] = {}
    for _ in range(MAX_ROUNDS):
        f = LoopFunction(module, symbol, flat_arguments(kinds), not exact)
        writer = Writer(f, functions, facts, constants, names, types, callee)
        writer.whole("kernel", gathered(kinds, iter(f.args.values())))
        if not writer.changed and writer.unknown is None:
            return f
        f.args.clear()  # its arguments refer to the function: a reference cycle
        if not writer.changed:
            raise writer.unknown  # type: ignore[misc]
    raise NotALoop(f"the types of the variables of {symbol} do not settle")


class Writer(Arithmetic):
    """Writes one function. `types`: (frame, variable) -> (type, lanes), from the round before; `changed`: whether this
    round has changed one."""

    def __init__(
        self, f: LoopFunction, functions: Mapping[str, ast.FunctionDef], facts: Mapping[str, tuple[set[str], bool]],
        constants: Mapping[str, ast.expr], names: Mapping, types: dict, callee: Any,
    ):  # fmt: skip
        self.f, self.functions, self.constants, self.names = f, functions, constants, names
        self.facts = facts  # function -> the names that it assigns to, whether it always returns a result or never
        self.types, self.callee = types, callee
        self.changed = False
        self.unknown: NotALoop | None = None  # the first variable that was read before its type was known
        self.slots: dict[Any, Value] = {}  # (frame, variable) -> its address
        self.rooms: list[Value] = []  # slots with the addresses of allocated memory
        self.error: Value | None = None  # the slot with the loop's result if the loop raises errors
        self.last = ""  # the label at the end of the whole function
        # of the function that is being inlined
        self.frame: tuple = ()
        self.bound: dict[str, Any] = {}  # arguments, arrays, tuples
        self.local: set[str] = set()  # the names that the function assigns to
        self.ends: list[tuple[str, str]] = []  # labels of `continue` and `break`
        self.exit = ""
        self.node: Any = None

    f: LoopFunction

    # -- functions --

    def whole(self, name: str, args: list[Any]) -> None:
        """The function itself."""
        try:
            result = self.inlined(name, args)
            if result is not None and self.error:
                raise NotALoop("a loop that raises errors returns nothing")
        except (NotALoop, *WRONG) as error:
            raise self.located(error) from (None if isinstance(error, NotALoop) else error)
        for slot in self.rooms:
            address = self.f.put(f"load ptr, ptr {slot.v}", POINTER)
            self.f.foreign("free", None, [address])
        if self.error:
            result = self.load(self.error, ERROR, 0)
        if result is None:
            return self.f.end()
        self.f.result = result.kind
        self.f.lines.append(f"ret {result.type} {result.v}")

    def located(self, error: Exception) -> NotALoop:
        """The error with the line of its statement."""
        node = self.node or self.functions["kernel"]
        return NotALoop(f"{error} (line {node.lineno} of {self.f.name})")

    def inlined(self, name: str, args: list[Any]) -> Any:
        """The result of a function of the text, whose statements are written here."""
        if name in self.frame:
            raise NotALoop(f"{name} calls itself")
        function = self.functions[name]
        place = (self.node.lineno, self.node.col_offset) if self.node is not None else ()
        saved = self.frame, self.bound, self.local, self.ends, self.exit, self.node
        self.frame = (*self.frame, name, *place)
        self.bound, self.local, self.ends, self.exit = {}, self.facts[name][0], [], self.f.label()
        self.last = self.last or self.exit
        self.arguments(function, args)
        self.statements(function.body)
        self.f.jump(self.exit)
        self.f.begin(self.exit)
        result = self.read("return")
        self.frame, self.bound, self.local, self.ends, self.exit, self.node = saved
        return result

    def arguments(self, function: ast.FunctionDef, args: list[Any]) -> None:
        """The variables for the arguments of a function."""
        parameters = [a.arg for a in function.args.args]
        if len(parameters) != len(args):
            raise NotALoop(f"{function.name} takes {len(parameters)} arguments, not {len(args)}")
        if not self.facts[function.name][1]:
            raise NotALoop(f"{function.name} returns a number in a few cases only")
        for parameter, value in zip(parameters, args):
            if parameter in self.local:
                self.assign(parameter, value)
            else:
                self.bound[parameter] = value

    # -- statements --

    def statements(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            self.node = statement
            before = self.frame, self.bound, self.local, self.ends, self.exit
            try:
                getattr(self, f"do_{type(statement).__name__}", self.refuse)(statement)
            except (NotALoop, *WRONG):
                if self.unknown is None:
                    raise
                self.frame, self.bound, self.local, self.ends, self.exit = before
                self.skip(statement)

    def skip(self, s: Any) -> None:
        """A statement that reads a variable of unknown type: later rounds write it. Only the statements inside are
        written, for the types of their variables."""
        if isinstance(s, ast.For):
            self.put(s.target, self.f.whole(0))
        self.ends.append((self.exit, self.exit))
        self.statements([*getattr(s, "body", ()), *getattr(s, "orelse", ())])
        self.ends.pop()

    def refuse(self, node: ast.AST) -> Any:
        raise NotALoop(f"a loop may not contain {type(node).__name__}: {ast.unparse(node)}")

    def do_Pass(self, s: ast.Pass) -> None:
        pass

    def do_Expr(self, s: ast.Expr) -> None:
        if not isinstance(s.value, ast.Constant):
            self.value(s.value)

    def do_Assign(self, s: ast.Assign) -> None:
        value = self.value(s.value)
        for target in s.targets:
            self.put(target, value)

    def do_AugAssign(self, s: ast.AugAssign) -> None:
        if not isinstance(s.target, ast.Subscript):
            old = self.value(ast.Name(s.target.id, ast.Load()))  # type: ignore[union-attr]
            return self.put(s.target, self.binary(type(s.op), old, self.value(s.value)))
        kind, place = self.target(s.target)
        old = self.f.load(place, 0, kind)
        self.f.store(self.of_kind(self.binary(type(s.op), old, self.value(s.value)), kind), place, 0)

    def put(self, target: ast.expr, value: Any) -> None:
        """Assign to a name, an element or several targets."""
        if isinstance(target, ast.Name):
            self.assign(target.id, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            if not isinstance(value, tuple) or len(value) != len(target.elts):
                given = len(value) if isinstance(value, tuple) else 1
                raise NotALoop(f"{given} values for {len(target.elts)} names")
            for one, v in zip(target.elts, value):
                self.put(one, v)
        elif isinstance(target, ast.Subscript):
            kind, place = self.target(target)
            self.f.store(self.of_kind(value, kind), place, 0)
        else:
            self.refuse(target)

    def target(self, target: ast.Subscript) -> tuple[Type, Value]:
        """The type and the address of an element to which a statement assigns."""
        array = self.value(target.value)
        if not isinstance(array, Array):
            self.refuse(target)
        return array.kind, self.address(array, self.indices(target.slice))

    def condition(self, e: ast.expr) -> Any:
        """A number as a condition."""
        found = self.value(e)
        if not isinstance(found, (Value, bool, int, float)):
            raise NotALoop(f"{ast.unparse(e)} is not a number")
        return found

    def do_If(self, s: ast.If) -> None:
        condition = self.condition(s.test)
        if not isinstance(condition, Value):
            return self.statements(s.body if condition else s.orelse)
        yes, no, done = self.f.label(), self.f.label(), self.f.label()
        self.f.branch(self.truth(condition), yes, no)
        for label, body in ((yes, s.body), (no, s.orelse)):
            self.f.begin(label)
            self.statements(body)
            self.f.jump(done)
        self.f.begin(done)

    def do_While(self, s: ast.While) -> None:
        if s.orelse:
            self.refuse(s)
        head, inside, done = self.f.label(), self.f.label(), self.f.label()
        self.f.jump(head)
        self.f.begin(head)
        self.f.branch(self.truth(self.condition(s.test)), inside, done)
        self.f.begin(inside)
        self.ends.append((head, done))
        self.statements(s.body)
        self.ends.pop()
        self.f.jump(head)
        self.f.begin(done)

    def do_For(self, s: ast.For) -> None:
        if not (isinstance(s.iter, ast.Call) and isinstance(s.iter.func, ast.Name) and s.iter.func.id == "range"):
            self.refuse(s.iter)
        if s.orelse:
            self.refuse(s)
        start, stop, step = bounds(*[self.value(a) for a in s.iter.args])  # type: ignore[attr-defined]
        start, stop, by = (self.of_kind(n, INT64) for n in (start, stop, step))
        head, inside, after, done = (self.f.label() for _ in range(4))
        counter = self.slot(INT64, 0)
        self.save(start, counter)
        self.f.jump(head)
        self.f.begin(head)
        i = self.load(counter, INT64, 0)
        if isinstance(step, Value):
            more = select(by > 0, i < stop, i > stop)
        else:
            more = i < stop if step > 0 else i > stop
        self.f.branch(more, inside, done)
        self.f.begin(inside)
        self.put(s.target, i)
        self.ends.append((after, done))
        self.statements(s.body)
        self.ends.pop()
        self.f.jump(after)
        self.f.begin(after)
        self.save(self.f.put(f"add nsw i64 {self.load(counter, INT64, 0).v}, {by.v}", INT64), counter)
        self.f.jump(head)
        self.f.begin(done)

    def do_Continue(self, s: ast.Continue) -> None:
        self.leave(self.ends[-1][0])

    def do_Break(self, s: ast.Break) -> None:
        self.leave(self.ends[-1][1])

    def do_Raise(self, s: ast.Raise) -> None:
        known = [e.__name__ for e in ERRORS]
        name = s.exc.func if isinstance(s.exc, ast.Call) else s.exc
        if not isinstance(name, ast.Name) or name.id not in known:
            self.refuse(s)
        self.fail(Value(self.f, str(1 + known.index(name.id)), ERROR))  # type: ignore[union-attr]

    def fail(self, code: Value) -> None:
        """End the whole loop with an error."""
        if self.error is None:
            self.error = self.slot(ERROR, 0)
            with self.f.at_entry():
                self.save(Value(self.f, "0", ERROR), self.error)
        self.save(code, self.error)
        self.leave(self.last)

    def do_Return(self, s: ast.Return) -> None:
        if s.value is not None:
            value = self.value(s.value)
            if self.exit == self.last and not isinstance(value, (Value, bool, int, float)):
                raise NotALoop("a loop returns a number or nothing")
            self.assign("return", value)
        self.leave(self.exit)

    def leave(self, label: str) -> None:
        """Continue at another label. The rest of this block is never reached."""
        self.f.jump(label)
        self.f.begin(self.f.label())

    # -- variables --

    def assign(self, name: str, value: Any) -> None:
        if isinstance(value, (tuple, Array)):
            return self.assign_pack(name, value)
        if callable(value) or isinstance(value, (str, SimpleNamespace)):
            if self.bound.get(name, value) != value or (self.frame, name) in self.types:
                raise NotALoop(f"{name} has two meanings")
            self.bound[name] = value
            return
        if name in self.bound:
            raise NotALoop(f"{name} is a number, and an array, a tuple or a function")
        key = self.frame, name
        own, lanes = (value.kind, value.lanes) if isinstance(value, Value) else (kind_of(value), 0)
        known = self.types.get(key)
        if known is None:
            self.types[key] = own, lanes
            self.changed = True
        elif known != (own, lanes):
            if known[1] or lanes:
                raise NotALoop(f"{name} is a register and a number")
            both = unified(known[0], own)
            if both != known[0]:
                self.types[key], self.changed = (both, 0), True
        number, lanes = self.types[key]
        if key not in self.slots:  # of a changed type: this round is written again
            self.slots[key] = self.slot(number, lanes)
        self.save(self.of_kind(value, number), self.slots[key])

    def assign_pack(self, name: str, value: Any) -> None:
        """Assign an array or a tuple: its numbers are variables."""
        flat, kind = flattened(value), kind_in(value)
        known = self.bound.get(name)
        if known is not None and not (isinstance(known, Pack) and alike(known.kind, kind)):
            raise NotALoop(f"{name} has arrays or tuples of two kinds")
        if (self.frame, name) in self.types:
            raise NotALoop(f"{name} is a number, and an array or a tuple")
        names = [f"{name}.{k}" for k in range(len(flat))]
        for one, v in zip(names, flat):
            self.assign(one, v)
        self.bound[name] = Pack(kind, names)

    def read(self, name: str) -> Any:
        """A variable or name; None if it is not known."""
        if name in self.bound:
            found = self.bound[name]
            if isinstance(found, Pack):
                [found] = gathered([found.kind], iter([self.read(one) for one in found.names]))
            return found
        key = self.frame, name
        if key in self.types:
            kind, lanes = self.types[key]
            if key not in self.slots:
                self.slots[key] = self.slot(kind, lanes)
            return self.load(self.slots[key], kind, lanes)
        if name in self.local:
            return None
        if name in self.functions or self.callee is not None and name.startswith("loop_"):
            return name
        return self.value(self.constants[name]) if name in self.constants else self.names.get(name)

    # -- expressions --

    def value(self, e: ast.expr) -> Any:
        return getattr(self, f"of_{type(e).__name__}", self.refuse)(e)

    def of_Constant(self, e: ast.Constant) -> Any:
        return e.value

    def of_Name(self, e: ast.Name) -> Any:
        found = self.read(e.id)
        if found is None:
            error = NotALoop(f"{e.id} is not known")
            if e.id in self.local:
                self.unknown = self.unknown or self.located(error)
            raise error
        return found

    def of_Tuple(self, e: ast.Tuple) -> Any:
        return tuple([self.value(x) for x in e.elts])

    def of_Attribute(self, e: ast.Attribute) -> Any:
        x = self.value(e.value)
        if isinstance(x, Array) and e.attr == "shape":
            return x.sizes
        if isinstance(x, Array) and e.attr == "size":
            return self.product(x.sizes)
        if isinstance(x, SimpleNamespace) and hasattr(x, e.attr):
            return getattr(x, e.attr)
        return self.refuse(e)

    def of_UnaryOp(self, e: ast.UnaryOp) -> Any:
        if isinstance(e.op, ast.Not):
            x = self.condition(e.operand)
            return ~self.truth(x) if isinstance(x, Value) else not x
        x = self.value(e.operand)
        if not isinstance(x, Value):
            return -x if isinstance(e.op, ast.USub) else ~x if isinstance(e.op, ast.Invert) else +x
        if isinstance(e.op, ast.Invert) and x.kind in REALS:
            self.refuse(e)
        wide = x if x.kind in REALS else self.of_kind(x, UINT64 if x.kind.unsigned else INT64)
        if isinstance(e.op, ast.UAdd):
            return wide
        return -wide if isinstance(e.op, ast.USub) else ~x if x.kind == BOOL else ~wide

    def of_BinOp(self, e: ast.BinOp) -> Any:
        return self.binary(type(e.op), self.value(e.left), self.value(e.right))

    def of_Compare(self, e: ast.Compare) -> Any:
        left, found = self.value(e.left), None
        for op, right in zip(e.ops, e.comparators):
            if type(op) not in COMPARE:
                self.refuse(e)
            y = self.value(right)
            one = self.compared(COMPARE[type(op)], left, y)
            found = one if found is None else self.both(found, one)
            left = y
        return found

    def of_BoolOp(self, e: ast.BoolOp) -> Any:
        """`a and b`: b is computed only if a is true. The result is a or b, as Python's."""
        first = self.condition(e.values[0])
        if len(e.values) == 1:
            return first
        all_of = isinstance(e.op, ast.And)
        rest = ast.copy_location(ast.BoolOp(e.op, e.values[1:]), e.values[1])
        if not isinstance(first, Value):
            return self.value(rest) if bool(first) == all_of else first
        name = f"{type(e.op).__name__}{e.values[1].lineno}:{e.values[1].col_offset}"
        more, done = self.f.label(), self.f.label()
        self.assign(name, first)
        self.f.branch(self.truth(first), *((more, done) if all_of else (done, more)))
        self.f.begin(more)
        self.assign(name, self.value(rest))
        self.f.jump(done)
        self.f.begin(done)
        return self.read(name)

    def of_IfExp(self, e: ast.IfExp) -> Any:
        condition = self.condition(e.test)
        if not isinstance(condition, Value):
            return self.value(e.body if condition else e.orelse)
        name = f"either{e.lineno}:{e.col_offset}"
        yes, no, done = self.f.label(), self.f.label(), self.f.label()
        self.f.branch(self.truth(condition), yes, no)
        for label, part in ((yes, e.body), (no, e.orelse)):
            self.f.begin(label)
            self.assign(name, self.value(part))
            self.f.jump(done)
        self.f.begin(done)
        return self.read(name)

    def of_Call(self, e: ast.Call) -> Any:
        if e.keywords:
            self.refuse(e)
        function, args = self.value(e.func), [self.value(a) for a in e.args]
        if isinstance(function, str):
            if function in self.functions:
                self.node = e
                return self.inlined(function, args)
            return self.call_loop(function, args)
        return function(self, *args)

    def call_loop(self, name: str, args: list[Any]) -> Value | None:
        """A call of another loop."""
        kinds = tuple([kind_in(a) for a in args])
        symbol, result = self.callee(name, kinds)
        flat = [n if isinstance(n, Value) else self.number(n) for a in args for n in flattened(a)]
        found = self.f.foreign(symbol, result, flat)
        if result != ERROR:
            return found if result else None
        failed, after = self.f.label(), self.f.label()
        self.f.branch(found == 0, after, failed)
        self.f.begin(failed)
        self.fail(found)
        self.f.jump(after)
        self.f.begin(after)
        return None

    # -- elements of arrays --

    def of_Subscript(self, e: ast.Subscript) -> Any:
        x, places = self.value(e.value), self.indices(e.slice)
        if isinstance(x, tuple):
            [k] = places
            return self.tabled(x, k) if isinstance(k, Value) else x[k]
        if not isinstance(x, Array):
            self.refuse(e)
        if len(places) == len(x.sizes) and not any(isinstance(p, slice) for p in places):
            return self.f.load(self.address(x, places), 0, x.kind)
        return self.view(x, places)

    def indices(self, e: ast.expr) -> list[Any]:
        parts = e.elts if isinstance(e, ast.Tuple) else [e]
        return [
            slice(*[None if p is None else self.value(p) for p in (part.lower, part.upper, part.step)])
            if isinstance(part, ast.Slice)
            else self.index(part)
            for part in parts
        ]

    def index(self, e: ast.expr) -> Any:
        """A place in an array. Its sums and products do not overflow, so LLVM finds those that are never negative."""
        if not (isinstance(e, ast.BinOp) and type(e.op) in AFFINE):
            return self.value(e)
        a, b = self.index(e.left), self.index(e.right)
        if not any([isinstance(n, Value) for n in (a, b)]) or common(a, b) != INT64:
            return self.binary(type(e.op), a, b)
        x, y = self.of_kind(a, INT64), self.of_kind(b, INT64)
        return self.f.put(f"{AFFINE[type(e.op)]} nsw i64 {x.v}, {y.v}", INT64)


def bounds(*given: Any) -> tuple[Any, Any, Any]:
    """start, stop and step of a range."""
    return (0, given[0], 1) if len(given) == 1 else (*given, 1)[:3]


def assigned_in(function: ast.FunctionDef) -> set[str]:
    """The names that a function assigns to."""
    return {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def returns_always(function: ast.FunctionDef) -> bool:
    """Whether each way through a function ends in a result, or none does."""
    returns = [n.value is not None for n in ast.walk(function) if isinstance(n, ast.Return)]
    return not any(returns) or all(returns) and leaves(function.body)


def leaves(body: Sequence[ast.stmt]) -> bool:
    """Whether the statements never continue behind the last one."""
    last = body[-1] if body else None
    if isinstance(last, ast.If):
        return leaves(last.body) and leaves(last.orelse)
    forever = isinstance(last, ast.While) and isinstance(last.test, ast.Constant) and bool(last.test.value)
    return isinstance(last, (ast.Return, ast.Raise)) or forever and not breaks(last.body)  # type: ignore[union-attr]


def breaks(body: Sequence[ast.stmt]) -> bool:
    """Whether the statements of a loop contain its `break`."""
    return any([isinstance(s, ast.Break) or isinstance(s, ast.If) and breaks([*s.body, *s.orelse]) for s in body])
