"""Functions as LLVM IR, built by Python values whose operators emit instructions, compiled by llvmlite alone.

    f = Function(Module(host()), "scale", "x y n", "n")
    f.loop(0, f.args["n"], 1, lambda i: f.store(f.load(f.args["x"], i, FLOAT) * 2.0, f.args["y"], i))

`Value` is a number, or a vector of numbers, in a function that is being built. A formula that runs on Values (the
scalars world of loops/scalar_math.py) emits its own machine code: no parser, no type inference. The IR is written as
text here, since llvmlite's builder is several times slower.

Sizes and places are Python ints, where they are known, Symbols, or Values of int64. Pointers are Values of `POINTER`;
their places count elements of the type that is loaded or stored."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import numpy as np


class Type(NamedTuple):
    """A type of single numbers: LLVM's name, bytes in memory, the name in intrinsics, whether it has no negative
    numbers."""

    name: str
    bytes: int
    letters: str
    unsigned: bool = False


FLOAT, DOUBLE, BOOL = Type("float", 4, "f32"), Type("double", 8, "f64"), Type("i1", 1, "i1")
BYTE, INT16, INT32, INT64 = (Type(f"i{8 * n}", n, f"i{8 * n}") for n in (1, 2, 4, 8))
UINT8, UINT16, UINT32, UINT64 = (Type(f"i{8 * n}", n, f"i{8 * n}", True) for n in (1, 2, 4, 8))
POINTER = Type("ptr", 8, "p0")
REALS = (FLOAT, DOUBLE)
TYPES = {"float32": FLOAT, "float64": DOUBLE, "int64": INT64, "int32": INT32, "int8": BYTE, "uint8": BYTE, "bool": BOOL}
Number = Any  # an int, a Symbol, or a Value of int64


class Symbol:
    """A size that is known in each call, but not when the function is built."""

    def emitted(self, f: Function) -> Value:
        """The size as an int64 of a function. The instructions stand at the function's entry."""
        raise NotImplementedError

    def divisible(self, other: int) -> bool:
        """Whether a number divides the size in each call."""
        raise NotImplementedError


def binding() -> Any:
    """llvmlite's functions of LLVM, imported when the first function is compiled."""
    import llvmlite.binding

    return llvmlite.binding


class Target(NamedTuple):
    """A processor: LLVM's names; the float32 numbers of a vector register; the number of vector registers; whether
    a fused multiply-add is one instruction."""

    triple: str
    cpu: str
    features: str
    lanes: int
    registers: int
    fma: bool

    def machine(self) -> Any:
        """LLVM's description of the processor."""
        llvm = binding()
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        return llvm.Target.from_triple(self.triple).create_target_machine(
            cpu=self.cpu, features=self.features, opt=2, reloc="pic"
        )


@cache
def host() -> Target:
    """This machine's processor."""
    llvm = binding()
    known, triple = llvm.get_host_cpu_features(), llvm.get_default_triple()
    lanes = 16 if known.get("avx512f") else 8 if known.get("avx") else 4
    arm = "aarch64" in triple or "arm64" in triple
    registers = 32 if lanes == 16 or arm else 16
    return Target(triple, llvm.get_host_cpu_name(), known.flatten(), lanes, registers, bool(known.get("fma")) or arm)


def machine() -> tuple[int, int]:
    """(float32 numbers in a vector register, number of registers) of this machine's processor."""
    return host().lanes, host().registers


WASM = Target("wasm32-unknown-unknown", "generic", "+simd128,+bulk-memory", 4, 16, False)

# -- values whose operators emit instructions ----------------------------------------------------------------------


def spelled(kind: Type, lanes: int) -> str:
    """LLVM's name of a number type, or of a vector of `lanes` numbers."""
    return f"<{lanes} x {kind.name}>" if lanes else kind.name


def literal(kind: Type, number: Any, lanes: int = 0) -> str:
    """A number, or a vector of equal numbers."""
    if kind in REALS:
        value = float(np.float32(number)) if kind == FLOAT else float(number)
        one = f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
    else:
        one = str(int(number)) if kind != BOOL else ("true" if number else "false")
    return f"splat ({kind.name} {one})" if lanes else one


class Value:
    """A number or a vector of `lanes` numbers. `f`: the function that is being built. `v`: LLVM's name of the value.
    `kind`: the type of its numbers."""

    __slots__ = ("f", "kind", "lanes", "v")
    __array_ufunc__ = None  # NumPy's scalars leave the operators to Value
    __hash__ = object.__hash__

    def __init__(self, f: Function, v: str, kind: Type, lanes: int = 0):
        self.f, self.v, self.kind, self.lanes = f, v, kind, lanes

    @property
    def type(self) -> str:
        """LLVM's name of the type."""
        return spelled(self.kind, self.lanes)

    def meets(self, other: Any) -> tuple[Value, Value]:
        """Both operands in one type: a Python number takes the type; a single number is repeated beside a vector."""
        if isinstance(other, Symbol):
            return self.meets(self.f.whole(other))
        if not isinstance(other, Value):
            return self, Value(self.f, literal(self.kind, other, self.lanes), self.kind, self.lanes)
        if other.lanes == self.lanes:
            return self, other
        return (repeated(self, other.lanes), other) if other.lanes else (self, repeated(other, self.lanes))

    def emit(self, other: Any, real: str, whole: str, swap: bool = False) -> Value:
        """The instruction `real` of floats, or `whole` of integers."""
        x, y = self.meets(other)
        if swap:
            x, y = y, x
        name = f"{real}{self.f.contract}" if self.kind in REALS else whole
        return self.f.put(f"{name} {x.type} {x.v}, {y.v}", self.kind, x.lanes)

    def compare(self, sign: str, other: Any) -> Value:
        x, y = self.meets(other)
        orders = UNSIGNED_ORDER if self.kind.unsigned else WHOLE_ORDER
        name = f"fcmp {REAL_ORDER[sign]}" if self.kind in REALS else f"icmp {orders[sign]}"
        return self.f.put(f"{name} {x.type} {x.v}, {y.v}", BOOL, x.lanes)

    def __add__(self, other: Any) -> Value:
        return self if type(other) is int and other == 0 else self.emit(other, "fadd", "add")

    def __mul__(self, other: Any) -> Value:
        return self if type(other) is int and other == 1 else self.emit(other, "fmul", "mul")

    __radd__, __rmul__ = __add__, __mul__

    def __sub__(self, other: Any) -> Value:
        return self.emit(other, "fsub", "sub")

    def __rsub__(self, other: Any) -> Value:
        return self.emit(other, "fsub", "sub", swap=True)

    def __truediv__(self, other: Any) -> Value:
        return self.emit(other, "fdiv", "sdiv")

    def __rtruediv__(self, other: Any) -> Value:
        return self.emit(other, "fdiv", "sdiv", swap=True)

    def __floordiv__(self, other: Any) -> Value:
        """Of integers that are not negative."""
        return self.emit(other, "", "udiv")

    def __mod__(self, other: Any) -> Value:
        """Of integers that are not negative."""
        return self.emit(other, "", "urem")

    def __neg__(self) -> Value:
        if self.kind in REALS:
            return self.f.put(f"fneg {self.type} {self.v}", self.kind, self.lanes)
        return self.emit(0, "", "sub", swap=True)

    def __invert__(self) -> Value:
        return self.emit(-1 if self.kind != BOOL else True, "", "xor")

    def __lshift__(self, other: Any) -> Value:
        return self.emit(other, "", "shl")

    def __rshift__(self, other: Any) -> Value:
        return self.emit(other, "", "lshr" if self.kind.unsigned else "ashr")

    def __and__(self, other: Any) -> Value:
        return self.emit(other, "", "and")

    def __or__(self, other: Any) -> Value:
        return self.emit(other, "", "or")

    def __xor__(self, other: Any) -> Value:
        return self.emit(other, "", "xor")

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __lt__(self, other: Any) -> Value:
        return self.compare("<", other)

    def __gt__(self, other: Any) -> Value:
        return self.compare(">", other)

    def __le__(self, other: Any) -> Value:
        return self.compare("<=", other)

    def __ge__(self, other: Any) -> Value:
        return self.compare(">=", other)

    def __eq__(self, other: object) -> Value:  # type: ignore[override]
        return self.compare("==", other)

    def __ne__(self, other: object) -> Value:  # type: ignore[override]
        return self.compare("!=", other)

    def __abs__(self) -> Value:
        return call_intrinsic("fabs", self) if self.kind in REALS else select(self < 0, -self, self)


REAL_ORDER = {"<": "olt", ">": "ogt", "<=": "ole", ">=": "oge", "==": "oeq", "!=": "une"}
WHOLE_ORDER = {"<": "slt", ">": "sgt", "<=": "sle", ">=": "sge", "==": "eq", "!=": "ne"}
UNSIGNED_ORDER = {"<": "ult", ">": "ugt", "<=": "ule", ">=": "uge", "==": "eq", "!=": "ne"}


def repeated(x: Value, count: int) -> Value:
    """A vector of `count` times the number x."""
    if not x.v.startswith("%"):
        return Value(x.f, f"splat ({x.kind.name} {x.v})", x.kind, count)
    vector = spelled(x.kind, count)
    first = x.f.put(f"insertelement {vector} undef, {x.type} {x.v}, i32 0", x.kind, count)
    return x.f.put(f"shufflevector {vector} {first.v}, {vector} undef, <{count} x i32> zeroinitializer", x.kind, count)


def picked(x: Value, places: Iterable[int]) -> Value:
    """The numbers of a vector at these places."""
    chosen = [*places]
    mask = ", ".join([f"i32 {k}" for k in chosen])
    return x.f.put(f"shufflevector {x.type} {x.v}, {x.type} undef, <{len(chosen)} x i32> <{mask}>", x.kind, len(chosen))


def mixed(x: Value, y: Value, places: Iterable[int]) -> Value:
    """The numbers at these places of x followed by y."""
    chosen = [*places]
    mask = ", ".join([f"i32 {k}" for k in chosen])
    return x.f.put(f"shufflevector {x.type} {x.v}, {y.type} {y.v}, <{len(chosen)} x i32> <{mask}>", x.kind, len(chosen))


def lane(x: Value, place: int) -> Value:
    """One number of a vector."""
    return x.f.put(f"extractelement {x.type} {x.v}, i32 {place}", x.kind)


def stacked(numbers: Sequence[Value]) -> Value:
    """A vector of single numbers."""
    f, kind, n = numbers[0].f, numbers[0].kind, len(numbers)
    vector = Value(f, "undef", kind, n)
    for k, x in enumerate(numbers):
        vector = f.put(f"insertelement {vector.type} {vector.v}, {x.type} {x.v}, i32 {k}", kind, n)
    return vector


def select(condition: Value, x: Any, y: Any) -> Value:
    """x where the condition is true, else y. If neither is a Value, both are NumPy's numbers of one type."""
    if not isinstance(x, Value):
        like = y if isinstance(y, Value) else Value(condition.f, "", TYPES[x.dtype.name])
        x = Value(condition.f, literal(like.kind, x, like.lanes), like.kind, like.lanes)
    x, y = x.meets(y)
    if x.lanes and not condition.lanes:
        condition = repeated(condition, x.lanes)
    if condition.lanes and not x.lanes:
        x, y = repeated(x, condition.lanes), repeated(y, condition.lanes)
    text = f"select {condition.type} {condition.v}, {x.type} {x.v}, {y.type} {y.v}"
    return condition.f.put(text, x.kind, x.lanes)


def converted(x: Value, to: Type, signed: bool = True) -> Value:
    """The numbers in another type: floats are cut towards 0; `signed`: whether bits of x are a signed integer."""
    frm, signed = x.kind, signed and x.kind != BOOL and not x.kind.unsigned
    if frm.name == to.name:
        return x if frm == to else Value(x.f, x.v, to, x.lanes)
    if to == BOOL:
        return x != 0
    if frm in REALS:
        name = ("fptoui" if to.unsigned else "fptosi") if to not in REALS else "fpext" if to == DOUBLE else "fptrunc"
    elif to in REALS:
        name = "sitofp" if signed else "uitofp"
    elif frm != BOOL and frm.bytes > to.bytes:
        name = "trunc"
    else:
        name = "sext" if signed else "zext"
    return x.f.put(f"{name} {x.type} {x.v} to {spelled(to, x.lanes)}", to, x.lanes)


def as_bits(x: Value, to: Type) -> Value:
    """The same bits as numbers of another type of this width."""
    return x.f.put(f"bitcast {x.type} {x.v} to {spelled(to, x.lanes)}", to, x.lanes)


def call_intrinsic(name: str, *args: Value) -> Value:
    """LLVM's function of this name, for numbers and vectors of the type of the first argument."""
    first = args[0]
    given = [first, *(first.meets(a)[1] for a in args[1:])]
    letters = f"v{first.lanes}{first.kind.letters}" if first.lanes else first.kind.letters
    return first.f.foreign(f"llvm.{name}.{letters}", first.kind, given, first.lanes)


def multiply_add(x: Value, y: Value, z: Value) -> Value:
    """x y + z, in one instruction where the processor has it."""
    if not x.f.module.target.fma:
        return x * y + z
    return call_intrinsic("fma", x, y, z)


def total(x: Value, combine: Callable[[Value, Value], Value] = Value.__add__) -> Value:
    """The sum of a vector's numbers, by halves. The number of lanes is a power of two."""
    n = x.lanes
    while n > 1:
        n //= 2
        x = combine(picked(x, range(n)), picked(x, range(n, 2 * n)))
    return lane(x, 0) if x.lanes else x


# -- modules and functions -----------------------------------------------------------------------------------------


class Module:
    """Functions that are compiled together. `globals`: lines of global variables."""

    def __init__(self, target: Target):
        self.target, self.functions = target, {}  # type: ignore[var-annotated]
        self.globals: list[str] = []
        self.declared: dict[str, str] = {}

    def text(self) -> str:
        """The module in LLVM's language."""
        functions = [f.text() for f in self.functions.values()]
        return "\n".join(
            [f'target triple = "{self.target.triple}"', *self.globals, *self.declared.values(), *functions]
        )

    def parsed(self) -> tuple[Any, Any]:
        """(LLVM's module, the machine). LLVM's optimization passes do not run: the instructions are written as they
        should be. The passes doubled the time to compile, and no served model became faster."""
        return binding().parse_assembly(self.text()), self.target.machine()

    def compiled(self) -> Any:
        """LLVM's engine, which owns the machine code: `engine.get_function_address(name)`."""
        engine = binding().create_mcjit_compiler(*self.parsed())
        self.let_go()
        engine.finalize_object()
        return engine

    def optimized(self) -> bytes:
        """The machine code as an object file for this process, after LLVM's optimization passes."""
        module, machine = self.improved()
        return machine.emit_object(module)

    def improved(self) -> tuple[Any, Any]:
        """`parsed` after LLVM's optimization passes: loops are vectorized, and variables live in registers."""
        llvm = binding()
        module, machine = self.parsed()
        self.let_go()
        options = llvm.create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization = options.slp_vectorization = True
        builder = llvm.create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)
        return module, machine

    def let_go(self) -> None:
        """Drop the functions, which are reference cycles with the module and with their arguments."""
        for f in self.functions.values():
            f.args.clear()
        self.functions.clear()

    def object_code(self) -> bytes:
        """The machine code as an object file, for a linker."""
        module, machine = self.parsed()
        module.data_layout = str(machine.target_data)  # of another processor, pointers may be shorter
        return machine.emit_object(module)


def engine_of(code: bytes) -> Any:
    """LLVM's engine for an object file of this processor."""
    llvm = binding()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), host().machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine


class Function:
    """A function that is being built. `arguments`: names; those in `integers` are int64, the others pointers.

    `lines`: the instructions; `head`: instructions at the entry, before them. `block`: the label of the block that is
    being written."""

    def __init__(self, module: Module, name: str, arguments: str, integers: str = "", private: bool = False):
        self.module, self.name, self.private = module, name, private
        module.functions[name] = self
        names, whole = arguments.split(), integers.split()
        kinds = [INT64 if n in whole else POINTER for n in names]
        self.args = {n: Value(self, f"%{n}", kind) for n, kind in zip(names, kinds)}
        self.contract = " contract"  # a product and a sum may be rounded once
        self.head: list[str] = []
        self.symbols: dict[Symbol, Value] = {}
        self.lines: list[str] = []
        self.count, self.block = 0, "start"

    def text(self) -> str:
        kind = "define internal" if self.private else "define"
        given = ", ".join([f"{a.type} {a.v}" for a in self.args.values()])
        attributes = " noinline nounwind" if self.private else " nounwind"
        entry = ["entry:", *self.head, "br label %start", "start:"]
        return "\n".join([f"{kind} void @{self.name}({given}){attributes} {{", *entry, *self.lines, "}"])

    def put(self, text: str, kind: Type, lanes: int = 0) -> Value:
        """An instruction with a result."""
        self.count += 1
        self.lines.append(f"%v{self.count} = {text}")
        return Value(self, f"%v{self.count}", kind, lanes)

    @contextmanager
    def at_entry(self) -> Iterator[None]:
        """Inside, instructions are written at the entry of the function."""
        self.lines, self.head = self.head, self.lines
        try:
            yield
        finally:
            self.lines, self.head = self.head, self.lines

    def foreign(self, name: str, kind: Type | None, args: Sequence[Value], lanes: int = 0) -> Value:
        """A call of a function from elsewhere: of LLVM, or of the C library. `kind`: of the result; None for none."""
        result = spelled(kind, lanes) if kind else "void"
        self.module.declared.setdefault(name, f"declare {result} @{name}({', '.join([a.type for a in args])})")
        text = f"call {result} @{name}({', '.join([f'{a.type} {a.v}' for a in args])})"
        if kind:
            return self.put(text, kind, lanes)
        self.lines.append(text)
        return args[0] if args else self.whole(0)

    # -- numbers and memory --

    def whole(self, n: Number) -> Value:
        """A place or a size as a Value of int64."""
        if isinstance(n, Value):
            return n
        if isinstance(n, Symbol):
            if n not in self.symbols:
                with self.at_entry():
                    self.symbols[n] = n.emitted(self)
            return self.symbols[n]
        return Value(self, str(n), INT64)

    def number(self, kind: Type, number: Any, count: int = 0) -> Value:
        """A constant; a vector of equal numbers if `count`."""
        return Value(self, literal(kind, number, count), kind, count)

    def at(self, pointer: Value, place: Number, kind: Type) -> Value:
        """The address of an element."""
        if type(place) is int and place == 0:
            return pointer
        stored = "i8" if kind == BOOL else kind.name
        return self.put(f"getelementptr {stored}, ptr {pointer.v}, i64 {self.whole(place).v}", POINTER)

    def load(self, pointer: Value, place: Number, kind: Type, count: int = 0, valid: int | None = None) -> Value:
        """An element, or `count` elements as a vector, of which the first `valid` are read and the others are 0."""
        stored = BYTE if kind == BOOL else kind
        address, whole = self.at(pointer, place, stored), spelled(stored, count)
        if valid is None or valid >= max(count, 1):
            made = self.put(f"load {whole}, ptr {address.v}, align {stored.bytes}", stored, count)
        else:
            name = f"llvm.masked.load.v{count}{stored.letters}.p0"
            zero = Value(self, "zeroinitializer", stored, count)
            made = self.foreign(name, stored, [address, *self.mask(stored, valid, count), zero], count)
        return made != 0 if kind == BOOL else made

    def store(self, x: Value, pointer: Value, place: Number, valid: int | None = None) -> None:
        """Write an element, or a vector, or only its first `valid` numbers."""
        if x.kind == BOOL:
            x = converted(x, BYTE)
        address = self.at(pointer, place, x.kind)
        if valid is None or valid >= max(x.lanes, 1):
            self.lines.append(f"store {x.type} {x.v}, ptr {address.v}, align {x.kind.bytes}")
        else:
            name = f"llvm.masked.store.v{x.lanes}{x.kind.letters}.p0"
            self.foreign(name, None, [x, address, *self.mask(x.kind, valid, x.lanes)])

    def mask(self, kind: Type, valid: int, count: int) -> list[Value]:
        """The alignment, and true for the first `valid` lanes."""
        lanes = ", ".join([f"i1 {'true' if k < valid else 'false'}" for k in range(count)])
        return [Value(self, str(kind.bytes), INT32), Value(self, f"<{lanes}>", BOOL, count)]

    def room(self, count: int, kind: Type) -> Value:
        """Memory on the stack for `count` elements, at a multiple of 64 bytes."""
        with self.at_entry():
            return self.put(f"alloca [{count} x {kind.name}], align 64", POINTER)

    # -- control --

    def label(self) -> str:
        self.count += 1
        return f"block{self.count}"

    def begin(self, label: str) -> None:
        """The block with this label begins."""
        self.lines.append(f"{label}:")
        self.block = label

    def jump(self, label: str) -> None:
        self.lines.append(f"br label %{label}")

    def branch(self, condition: Value, yes: str, no: str) -> None:
        self.lines.append(f"br i1 {condition.v}, label %{yes}, label %{no}")

    def loop(
        self, start: Number, stop: Number, step: int, body: Callable, carried: Sequence[Value] = ()
    ) -> list[Value]:
        """for i in range(start, stop, step): carried = body(i, *carried). Returns the last values.

        A loop of at most one round, known in advance, is written without a loop."""
        if isinstance(start, int) and isinstance(stop, int) and stop - start <= step:
            return [*(body(start, *carried) or ())] if stop > start else [*carried]
        head, inside, done = self.label(), self.label(), self.label()
        before = self.block
        self.jump(head)
        self.begin(head)
        first = [self.whole(start), *carried]
        phis = [self.put("phi", x.kind, x.lanes) for x in first]  # completed below
        places = range(len(self.lines) - len(phis), len(self.lines))
        i = phis[0]
        self.branch(i < self.whole(stop), inside, done)
        self.begin(inside)
        results = [*(body(*phis) or ())]
        last = [i + step, *results]
        for place, phi, x, y in zip(places, phis, first, last):
            self.lines[place] = f"{phi.v} = phi {phi.type} [ {x.v}, %{before} ], [ {y.v}, %{self.block} ]"
        self.jump(head)
        self.begin(done)
        return phis[1:]

    def when(self, condition: Value, body: Callable[[], Any]) -> None:
        """body(), if the condition is true."""
        inside, done = self.label(), self.label()
        self.branch(condition, inside, done)
        self.begin(inside)
        body()
        self.jump(done)
        self.begin(done)

    def pause(self) -> None:
        """Tell the processor that a loop waits for another thread."""
        if "x86" in self.module.target.triple:
            self.foreign("llvm.x86.sse2.pause", None, [])

    def call(self, other: str, *args: Value) -> None:
        """A call of a function of this module."""
        self.lines.append(f"call void @{other}({', '.join([f'{a.type} {a.v}' for a in args])})")

    def end(self) -> None:
        self.lines.append("ret void")


def smaller(x: Value, y: Any) -> Value:
    """The smaller of two whole numbers."""
    return select(x < y, x, y)


def callable_of(engine: Any, name: str, pointers: int, integers: int = 0) -> Callable[..., None]:
    """A function of the engine for Python: `pointers` addresses, then `integers` numbers. Releases the interpreter's
    lock."""
    import ctypes  # some builds of Python lack it

    kinds = [ctypes.c_void_p] * pointers + [ctypes.c_int64] * integers
    function = ctypes.CFUNCTYPE(None, *kinds)(engine.get_function_address(name))
    function.engine = engine  # type: ignore[attr-defined]  # owns the machine code
    return function
