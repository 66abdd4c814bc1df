"""Loops written in a subset of Python, as LLVM IR.

    def kernel(x, out):
        for i in range(x.shape[0]):
            out[i] = exp(x[i]) + f32(1)

The subset: numbers, arrays, tuples; assignments, `for ... in range(...)`, `while`, `if`, `break`, `continue`,
`return`; functions of the same text, which are inlined; the names in loops/loop_names.py. Types are those of Numba: an
operation of two integers is of int64, one of float32 and an integer or Python's float is of float64, and a variable has
one type, which all its assignments share. The types of variables are found by writing the function again until no
assignment changes them.

Values, and the instructions that their operators emit: loops/llvm.py."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rushlight.loops.llvm import (
    BOOL,
    BYTE,
    DOUBLE,
    FLOAT,
    INT16,
    INT32,
    INT64,
    POINTER,
    REALS,
    UINT16,
    UINT32,
    UINT64,
    UINT8,
    Function,
    Module,
    Type,
    Value,
    converted,
    literal,
    select,
    spelled,
)

KINDS = {
    "f4": FLOAT, "f8": DOUBLE, "b1": BOOL, "i1": BYTE, "i2": INT16, "i4": INT32, "i8": INT64,
    "u1": UINT8, "u2": UINT16, "u4": UINT32, "u8": UINT64,
}  # fmt: skip
MAX_ROUNDS = 10  # of writing a function until the types of its variables are known

# A type of an argument: "f4", "i8"... of a number; (name, dimensions, whether in C order) of an array; the types of a
# tuple's elements after "tuple".
Kind = Any
BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
    ast.BitXor: operator.xor, ast.LShift: operator.lshift, ast.RShift: operator.rshift, ast.Pow: operator.pow,
}  # fmt: skip
COMPARE: dict[type, str] = {
    ast.Lt: "<", ast.Gt: ">", ast.LtE: "<=", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
PYTHON = {"<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge, "==": operator.eq, "!=": operator.ne}


class NotALoop(Exception):
    """Raised for a text outside of the subset, with its line."""


@dataclass(eq=False)
class Array:
    """An array: the address of its first element; the type of its elements; its sizes; its steps in bytes, or None for
    C order."""

    pointer: Value
    kind: Type
    sizes: tuple[Value, ...]
    steps: tuple[Value, ...] | None = None


@dataclass
class Pack:
    """A variable that is a tuple or an array: the kind, and the names of the variables of its numbers."""

    kind: Kind
    names: list[str]


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
        entry = ["entry:", *self.head, "br label %start", "start:"]
        head = f"define {result} @{self.name}({given}) {' '.join(self.attributes)} {{"
        return "\n".join([head, *entry, *self.lines, "}"])


def flat_arguments(kinds: Sequence[Kind], name: str = "x") -> list[tuple[str, Type]]:
    """(name, type) of the numbers that pass arguments of these kinds: an array is its address, its sizes, and its steps
    if it is not in C order."""
    found: list[tuple[str, Type]] = []
    for i, kind in enumerate(kinds):
        if isinstance(kind, str):
            found.append((f"{name}{i}", KINDS[kind]))
        elif kind[0] == "tuple":
            found += flat_arguments(kind[1:], f"{name}{i}_")
        else:
            found.append((f"{name}{i}", POINTER))
            found += [(f"{name}{i}_n{d}", INT64) for d in range(kind[1])]
            found += [(f"{name}{i}_s{d}", INT64) for d in range(0 if kind[2] else kind[1])]
    return found


def gathered(kinds: Sequence[Kind], numbers: Any) -> list[Any]:
    """The arguments as values: numbers, Arrays and tuples. `numbers`: an iterator over the numbers that pass them."""
    found: list[Any] = []
    for kind in kinds:
        if isinstance(kind, str):
            found.append(next(numbers))
        elif kind[0] == "tuple":
            found.append(tuple(gathered(kind[1:], numbers)))
        else:
            pointer = next(numbers)
            sizes = tuple([next(numbers) for _ in range(kind[1])])
            steps = None if kind[2] else tuple([next(numbers) for _ in range(kind[1])])
            found.append(Array(pointer, KINDS[kind[0]], sizes, steps))
    return found


def flattened(value: Any) -> list[Any]:
    """The numbers that pass an argument."""
    if isinstance(value, tuple):
        return [n for v in value for n in flattened(v)]
    return [value.pointer, *value.sizes, *(value.steps or ())] if isinstance(value, Array) else [value]


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
    types: dict[Any, tuple[Type, int]] = {}
    for _ in range(MAX_ROUNDS):
        f = LoopFunction(module, symbol, flat_arguments(kinds), not exact)
        writer = Writer(f, functions, names, types, callee)
        writer.whole("kernel", gathered(kinds, iter(f.args.values())))
        if not writer.changed:
            return f
        f.args.clear()  # its arguments refer to the function: a reference cycle
    raise NotALoop(f"the types of the variables of {symbol} do not settle")


class Writer:
    """Writes one function. `types`: (frame, variable) -> (type, lanes), from the round before; `changed`: whether this
    round has changed one."""

    def __init__(self, f: LoopFunction, functions: Mapping[str, ast.FunctionDef], names: Mapping, types: dict, callee: Any):
        self.f, self.functions, self.names, self.types, self.callee = f, functions, names, types, callee
        self.changed = False
        self.slots: dict[Any, Value] = {}  # (frame, variable) -> its address
        self.rooms: list[Value] = []  # slots with the addresses of allocated memory
        # of the function that is being inlined
        self.frame: tuple = ()
        self.bound: dict[str, Any] = {}  # arguments, arrays, tuples
        self.ends: list[tuple[str, str]] = []  # labels of `continue` and `break`
        self.exit = ""
        self.node: Any = None

    # -- functions --

    def whole(self, name: str, args: list[Any]) -> None:
        """The function itself."""
        try:
            result = self.inlined(name, args)
        except NotALoop as error:
            line = getattr(self.node, "lineno", 0)
            raise NotALoop(f"{error} (line {line} of {self.f.name})") from None
        for slot in self.rooms:
            address = self.f.put(f"load ptr, ptr {slot.v}", POINTER)
            self.f.foreign("free", None, [address])
        if result is None:
            return self.f.end()
        self.f.result = result.kind
        self.f.lines.append(f"ret {result.type} {result.v}")

    def inlined(self, name: str, args: list[Any]) -> Any:
        """The result of a function of the text, whose statements are written here."""
        function = self.functions[name]
        saved = self.frame, self.bound, self.ends, self.exit
        self.frame = (*self.frame, name, *((self.node.lineno, self.node.col_offset) if self.node is not None else ()))
        self.bound, self.ends, self.exit = {}, [], self.f.label()
        parameters = [a.arg for a in function.args.args]
        if len(parameters) != len(args):
            raise NotALoop(f"{name} takes {len(parameters)} arguments, not {len(args)}")
        changing = assigned_in(function)
        for parameter, value in zip(parameters, args):
            if parameter in changing:
                self.assign(parameter, value)
            else:
                self.bound[parameter] = value
        self.statements(function.body)
        self.f.jump(self.exit)
        self.f.begin(self.exit)
        result = self.read("return")
        self.frame, self.bound, self.ends, self.exit = saved
        return result

    # -- statements --

    def statements(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            self.node = statement
            getattr(self, f"do_{type(statement).__name__}", self.refuse)(statement)

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
        old = self.value(s.target)
        self.put(s.target, self.binary(type(s.op), old, self.value(s.value)))

    def put(self, target: ast.expr, value: Any) -> None:
        """Assign to a name, an element or several targets."""
        if isinstance(target, ast.Name):
            self.assign(target.id, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            if len(value) != len(target.elts):
                raise NotALoop(f"{len(value)} values for {len(target.elts)} names")
            for one, v in zip(target.elts, value):
                self.put(one, v)
        elif isinstance(target, ast.Subscript):
            array = self.value(target.value)
            place = self.address(array, self.indices(target.slice))
            self.f.store(self.of_kind(value, array.kind), place, 0)
        else:
            self.refuse(target)

    def do_If(self, s: ast.If) -> None:
        condition = self.value(s.test)
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
        head, inside, done = self.f.label(), self.f.label(), self.f.label()
        self.f.jump(head)
        self.f.begin(head)
        self.f.branch(self.truth(self.value(s.test)), inside, done)
        self.f.begin(inside)
        self.ends.append((head, done))
        self.statements(s.body)
        self.ends.pop()
        self.f.jump(head)
        self.f.begin(done)

    def do_For(self, s: ast.For) -> None:
        if not (isinstance(s.iter, ast.Call) and isinstance(s.iter.func, ast.Name) and s.iter.func.id == "range"):
            self.refuse(s.iter)
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

    def do_Return(self, s: ast.Return) -> None:
        if s.value is not None:
            self.assign("return", self.value(s.value))
        self.leave(self.exit)

    def leave(self, label: str) -> None:
        """Continue at another label; what follows in this block is never reached."""
        self.f.jump(label)
        self.f.begin(self.f.label())

    # -- variables --

    def slot(self, kind: Type, lanes: int) -> Value:
        """Memory of a variable; LLVM keeps it in a register."""
        with self.f.at_entry():
            return self.f.put(f"alloca {spelled(kind, lanes)}", POINTER)

    def save(self, x: Value, slot: Value) -> None:
        self.f.lines.append(f"store {x.type} {x.v}, ptr {slot.v}")

    def load(self, slot: Value, kind: Type, lanes: int) -> Value:
        return self.f.put(f"load {spelled(kind, lanes)}, ptr {slot.v}", kind, lanes)

    def assign(self, name: str, value: Any) -> None:
        if isinstance(value, (tuple, Array)):
            flat, kind = flattened(value), kind_in(value)
            known = self.bound.get(name)
            if isinstance(known, Pack) and known.kind != kind and not isinstance(value, tuple):
                raise NotALoop(f"{name} is an array of two kinds")
            names = [f"{name}.{k}" for k in range(len(flat))]
            for one, v in zip(names, flat):
                self.assign(one, v)
            self.bound[name] = Pack(kind, names)
            return
        if callable(value) or isinstance(value, str):
            self.bound[name] = value
            return
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
        self.bound.pop(name, None)

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
        if name in self.functions or self.callee is not None and name.startswith("loop_"):
            return name
        return self.names.get(name)

    # -- expressions --

    def value(self, e: ast.expr) -> Any:
        return getattr(self, f"of_{type(e).__name__}", self.refuse)(e)

    def of_Constant(self, e: ast.Constant) -> Any:
        return e.value

    def of_Name(self, e: ast.Name) -> Any:
        found = self.read(e.id)
        if found is None:
            raise NotALoop(f"{e.id} is not known")
        return found

    def of_Tuple(self, e: ast.Tuple) -> Any:
        return tuple([self.value(x) for x in e.elts])

    def of_Attribute(self, e: ast.Attribute) -> Any:
        x = self.value(e.value)
        if isinstance(x, Array) and e.attr == "shape":
            return x.sizes
        if isinstance(x, Array) and e.attr == "size":
            return self.product(x.sizes)
        return self.refuse(e)

    def product(self, sizes: Sequence[Value]) -> Value:
        total = self.f.whole(1)
        for n in sizes:
            total = total * n
        return total

    def of_UnaryOp(self, e: ast.UnaryOp) -> Any:
        x = self.value(e.operand)
        if isinstance(e.op, ast.Not):
            return ~self.truth(x) if isinstance(x, Value) else not x
        if not isinstance(x, Value):
            return -x if isinstance(e.op, ast.USub) else ~x if isinstance(e.op, ast.Invert) else x
        wide = x if x.kind in REALS else self.of_kind(x, UINT64 if x.kind.unsigned else INT64)
        return -wide if isinstance(e.op, ast.USub) else ~x if x.kind == BOOL else ~wide

    def of_BinOp(self, e: ast.BinOp) -> Any:
        return self.binary(type(e.op), self.value(e.left), self.value(e.right))

    def binary(self, op: type, a: Any, b: Any) -> Any:
        """An operation on two numbers, in the type of both."""
        if not isinstance(a, Value) and not isinstance(b, Value):
            return BINARY[op](a, b)
        kind = common(a, b)
        if kind == BOOL and op not in (ast.BitAnd, ast.BitOr, ast.BitXor):
            kind = INT64
        if op is ast.Div and kind not in REALS:
            kind = DOUBLE
        x, y = self.of_kind(a, kind), self.of_kind(b, kind)
        if op in (ast.FloorDiv, ast.Mod):
            return self.divided(op, x, y)
        return BINARY[op](x, y)

    def divided(self, op: type, x: Value, y: Value) -> Value:
        """The quotient rounded down, or the rest with the sign of y."""
        f = self.f
        if x.kind in REALS:
            rest = f.put(f"frem {x.type} {x.v}, {y.v}", x.kind)
            rest = select((rest != 0.0) & ((rest < 0.0) != (y < 0.0)), rest + y, rest)
            if op is ast.Mod:
                return rest
            from rushlight.loops.llvm import call_intrinsic

            return call_intrinsic("floor", (x - rest) / y + 0.5)
        if x.kind.unsigned:
            return x // y if op is ast.FloorDiv else x % y
        quotient = f.put(f"sdiv i64 {x.v}, {y.v}", INT64)
        rest = f.put(f"srem i64 {x.v}, {y.v}", INT64)
        apart = (rest != 0) & ((rest ^ y) < 0)
        if op is ast.Mod:
            return select(apart, rest + y, rest)
        return quotient - converted(apart, INT64)

    def of_Compare(self, e: ast.Compare) -> Any:
        left, found = self.value(e.left), None
        for op, right in zip(e.ops, e.comparators):
            y = self.value(right)
            one = self.compared(COMPARE[type(op)], left, y)
            found = one if found is None else self.both(found, one)
            left = y
        return found

    def compared(self, sign: str, a: Any, b: Any) -> Any:
        if not isinstance(a, Value) and not isinstance(b, Value):
            return PYTHON[sign](a, b)
        kind = common(a, b)
        kind = INT64 if kind == BOOL else kind
        return self.of_kind(a, kind).compare(sign, self.of_kind(b, kind))

    def both(self, a: Any, b: Any) -> Any:
        if not isinstance(a, Value):
            return b if a else False
        return a & self.of_kind(b, BOOL)

    def of_BoolOp(self, e: ast.BoolOp) -> Any:
        """`a and b`: b is computed only if a is true."""
        first = self.value(e.values[0])
        all_of = isinstance(e.op, ast.And)
        if len(e.values) == 1:
            return first
        rest = ast.copy_location(ast.BoolOp(e.op, e.values[1:]), e.values[1])
        if not isinstance(first, Value):
            return self.value(rest) if bool(first) == all_of else first
        name = f"{type(e.op).__name__}{e.values[1].lineno}:{e.values[1].col_offset}"
        more, done = self.f.label(), self.f.label()
        self.assign(name, self.truth(first))
        self.f.branch(self.truth(first), *((more, done) if all_of else (done, more)))
        self.f.begin(more)
        value = self.value(rest)
        self.assign(name, self.truth(value) if isinstance(value, Value) else bool(value))
        self.f.jump(done)
        self.f.begin(done)
        return self.read(name)

    def of_IfExp(self, e: ast.IfExp) -> Any:
        condition = self.value(e.test)
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
        return found if result else None

    # -- elements of arrays --

    def of_Subscript(self, e: ast.Subscript) -> Any:
        x, places = self.value(e.value), self.indices(e.slice)
        if isinstance(x, tuple):
            [k] = places
            if isinstance(k, Value):
                raise NotALoop(f"the place in a tuple is a variable: {ast.unparse(e)}")
            return x[k]
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
            else self.value(part)
            for part in parts
        ]

    def view(self, x: Array, places: list[Any]) -> Array:
        """Part of an array: slices without a step; the other dimensions in front are fixed."""
        starts, sizes = [], []
        for place, n in zip(places, x.sizes):
            if not isinstance(place, slice):
                starts.append(place)
                continue
            if place.step is not None:
                raise NotALoop("a slice with a step")
            low, high = (
                self.f.whole(default) if given is None else self.clamped(given, n)
                for given, default in ((place.start, 0), (place.stop, n))
            )
            starts.append(low)
            sizes.append(select(high > low, high - low, self.f.whole(0)))
        kept = [k for k, p in enumerate(places) if isinstance(p, slice)]
        ordered = kept == [*range(len(places) - len(kept), len(places))] and len(kept) < 2
        starts += [0] * (len(x.sizes) - len(places))
        pointer = self.address(x, starts)
        left = [*kept, *range(len(places), len(x.sizes))]
        every = (*sizes, *x.sizes[len(places) :])
        if x.steps is None and ordered:
            return Array(pointer, x.kind, every)
        steps = self.steps(x)
        return Array(pointer, x.kind, every, tuple([steps[d] for d in left]))

    def steps(self, x: Array) -> tuple[Value, ...]:
        """The steps of an array in bytes."""
        if x.steps is not None:
            return x.steps
        found = [self.f.whole(x.kind.bytes)]
        for n in reversed(x.sizes[1:]):
            found.insert(0, found[0] * n)
        return tuple(found)

    def clamped(self, i: Any, n: Value) -> Value:
        """The end of a slice within 0 to n; a negative one counts from the end."""
        i = self.of_kind(i, INT64)
        i = select(i < 0, i + n, i)
        i = select(i < 0, self.f.whole(0), i)
        return select(i < n, i, n)

    def place(self, i: Any, n: Value) -> Value:
        """A place in a dimension of size n: negative ones count from the end, except of unsigned integers."""
        if not isinstance(i, Value):
            return self.f.whole(i) if i >= 0 else n + i
        if i.kind.unsigned or i.kind == BOOL:
            return converted(i, INT64)
        i = converted(i, INT64)
        return select(i < 0, i + n, i)

    def address(self, x: Array, places: Sequence[Any]) -> Value:
        """The address of an element."""
        f = self.f
        if len(places) != len(x.sizes):
            raise NotALoop(f"{len(places)} places in an array of {len(x.sizes)} dimensions")
        found = [self.place(i, n) for i, n in zip(places, x.sizes)]
        if x.steps is None:
            if not found:
                return x.pointer
            total = found[0]
            for i, n in zip(found[1:], x.sizes[1:]):
                total = f.put(f"mul nsw i64 {total.v}, {n.v}", INT64)
                total = f.put(f"add nsw i64 {total.v}, {i.v}", INT64)
            return self.element(x.pointer, total, x.kind)
        pointer = x.pointer
        for i, step in zip(found, x.steps):
            by = f.put(f"mul nsw i64 {i.v}, {step.v}", INT64)
            pointer = f.put(f"getelementptr inbounds i8, ptr {pointer.v}, i64 {by.v}", POINTER)
        return pointer

    def element(self, pointer: Value, i: Any, kind: Type) -> Value:
        """The address of the i-th number from an address on."""
        stored = "i8" if kind == BOOL else kind.name
        return self.f.put(
            f"getelementptr inbounds {stored}, ptr {pointer.v}, i64 {self.of_kind(i, INT64).v}", POINTER
        )

    # -- numbers --

    def number(self, n: Any) -> Value:
        """A Python number as a value."""
        kind = kind_of(n)
        return Value(self.f, literal(kind, n), kind)

    def of_kind(self, x: Any, kind: Type) -> Value:
        """A number in another type."""
        if not isinstance(x, Value):
            if kind in REALS or not isinstance(x, float):
                return Value(self.f, literal(kind, x), kind)
            x = self.number(x)
        if x.lanes:
            return x
        if kind == BOOL and x.kind != BOOL:
            return x != 0
        return converted(x, kind)

    def truth(self, x: Any) -> Value:
        return self.of_kind(x, BOOL)


def bounds(*given: Any) -> tuple[Any, Any, Any]:
    """start, stop and step of a range."""
    return (0, given[0], 1) if len(given) == 1 else (*given, 1)[:3]  # type: ignore[return-value]


def assigned_in(function: ast.FunctionDef) -> set[str]:
    """The names that a function assigns to."""
    return {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def kind_of(n: Any) -> Type:
    """The type of a Python number."""
    if isinstance(n, bool):
        return BOOL
    if isinstance(n, int):
        return INT64
    if isinstance(n, float):
        return DOUBLE
    raise NotALoop(f"{n!r} is not a number")


def kind_in(value: Any) -> Kind:
    """The kind of an argument, as in a signature."""
    if isinstance(value, tuple):
        return ("tuple", *map(kind_in, value))
    if isinstance(value, Array):
        return NAMES[value.kind], len(value.sizes), value.steps is None
    return NAMES[value.kind if isinstance(value, Value) else kind_of(value)]


NAMES = {kind: name for name, kind in KINDS.items()}


def common(a: Any, b: Any) -> Type:
    """The type of an operation on two numbers, as Numba chooses it."""
    kinds = [x.kind if isinstance(x, Value) else kind_of(x) for x in (a, b)]
    if kinds == [BOOL, BOOL]:
        return BOOL
    if DOUBLE in kinds or FLOAT in kinds and kinds != [FLOAT, FLOAT]:
        return DOUBLE
    if FLOAT in kinds:
        return FLOAT
    plain = [k.unsigned or not isinstance(x, Value) and x >= 0 for k, x in zip(kinds, (a, b))]
    return UINT64 if any(k.unsigned for k in kinds) and all(plain) else INT64


def unified(a: Type, b: Type) -> Type:
    """The type of a variable to which numbers of two types are assigned."""
    if a == b:
        return a
    if a in REALS or b in REALS:
        return DOUBLE if DOUBLE in (a, b) or not {a, b} <= {FLOAT, BOOL, BYTE, UINT8, INT16, UINT16} else FLOAT
    if a == BOOL or b == BOOL:
        return b if a == BOOL else a
    return max(a, b, key=lambda kind: kind.bytes) if a.unsigned == b.unsigned else INT64
