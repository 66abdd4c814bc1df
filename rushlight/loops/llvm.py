"""Functions as LLVM IR, built by Python values whose operators emit instructions, compiled by llvmlite alone.

    f = Function(Module(host()), "scale", "x y n")
    f.loop(0, f.args["n"], 1, lambda i: f.store(f.load(f.args["x"], i, FLOAT) * 2.0, f.args["y"], i))

`Value` is a number, or a vector of numbers, in a function that is being built. A formula that runs on Values (the
scalars world of loops/scalar_math.py) emits its own machine code: no text, no parser, no type inference. Compiling a
loop takes 20 to 60 ms; Numba takes 400 to 1,600 ms for the same loop, and 900 ms for its import.

Sizes and places are Python ints, where they are known, or Values of int64. Pointers are Values of `BYTES`; their
places count elements of the type that is loaded or stored."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir

FLOAT, DOUBLE, BOOL = ir.FloatType(), ir.DoubleType(), ir.IntType(1)
BYTE, INT16, INT32, INT64 = (ir.IntType(n) for n in (8, 16, 32, 64))
BYTES = BYTE.as_pointer()
TYPES = {"float32": FLOAT, "float64": DOUBLE, "int64": INT64, "int32": INT32, "int8": BYTE, "uint8": BYTE, "bool": BOOL}
ITEM_BYTES = {FLOAT: 4, DOUBLE: 8, INT64: 8, INT32: 4, INT16: 2, BYTE: 1, BOOL: 1}
Number = Any  # an int, or a Value of int64


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
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        return llvm.Target.from_triple(self.triple).create_target_machine(
            cpu=self.cpu, features=self.features, opt=2, reloc="pic"
        )


@cache
def host() -> Target:
    """This machine's processor."""
    known = llvm.get_host_cpu_features()
    lanes = 16 if known.get("avx512f") else 8 if known.get("avx") else 4
    wide, arm = lanes == 16, "aarch64" in llvm.get_default_triple() or "arm64" in llvm.get_default_triple()
    return Target(
        llvm.get_default_triple(),
        llvm.get_host_cpu_name(),
        known.flatten(),
        lanes,
        32 if wide or arm else 16,
        bool(known.get("fma")) or arm,
    )


WASM = Target("wasm32-unknown-unknown", "generic", "+simd128,+bulk-memory", 4, 16, False)

# -- values whose operators emit instructions ----------------------------------------------------------------------


def lanes(kind: ir.Type) -> int:
    """The length of a vector type; 0 for a single number."""
    return kind.count if isinstance(kind, ir.VectorType) else 0


def element(kind: ir.Type) -> ir.Type:
    return kind.element if isinstance(kind, ir.VectorType) else kind


def like(kind: ir.Type, of: ir.Type) -> ir.Type:
    """The type `of`, with as many lanes as `kind`."""
    return ir.VectorType(of, lanes(kind)) if lanes(kind) else of


def constant(kind: ir.Type, number: Any) -> ir.Constant:
    """A number, or a vector of equal numbers."""
    of = element(kind)
    number = float(number) if of in (FLOAT, DOUBLE) else int(number)
    if of == FLOAT:
        number = float(np.float32(number))
    one = ir.Constant(of, number)
    return ir.Constant(kind, [one] * lanes(kind)) if lanes(kind) else one


class Value:
    """A number or a vector of numbers. `f`: the function that is being built. `v`: LLVM's value."""

    __slots__ = ("f", "v")
    __array_ufunc__ = None  # NumPy's scalars leave the operators to Value
    __hash__ = object.__hash__

    def __init__(self, f: Function, v: ir.Value):
        self.f, self.v = f, v

    @property
    def is_real(self) -> bool:
        return element(self.v.type) in (FLOAT, DOUBLE)

    def meets(self, other: Any) -> tuple[ir.Value, ir.Value]:
        """Both operands in one type: a Python number takes the type; a single number is repeated beside a vector."""
        if not isinstance(other, Value):
            return self.v, constant(self.v.type, other)
        x, y = self, other
        if lanes(y.v.type) and not lanes(x.v.type):
            x = repeated(x, lanes(y.v.type))
        elif lanes(x.v.type) and not lanes(y.v.type):
            y = repeated(y, lanes(x.v.type))
        return x.v, y.v

    def emit(self, other: Any, real: str, whole: str, swap: bool = False) -> Value:
        """The instruction `real` of floats, or `whole` of integers."""
        pair = self.meets(other)
        pair = pair[::-1] if swap else pair
        b = self.f.b
        if self.is_real:
            return Value(self.f, getattr(b, real)(*pair, flags=("contract",)))
        return Value(self.f, getattr(b, whole)(*pair))

    def compare(self, sign: str, other: Any) -> Value:
        b, pair = self.f.b, self.meets(other)
        if self.is_real:
            emit = b.fcmp_unordered if sign == "!=" else b.fcmp_ordered
        else:
            emit = b.icmp_signed
        return Value(self.f, emit(sign, *pair))

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
        return Value(self.f, self.f.b.fneg(self.v) if self.is_real else self.f.b.neg(self.v))

    def __invert__(self) -> Value:
        return Value(self.f, self.f.b.not_(self.v))

    def __lshift__(self, other: Any) -> Value:
        return Value(self.f, self.f.b.shl(*self.meets(other)))

    def __rshift__(self, other: Any) -> Value:
        return Value(self.f, self.f.b.ashr(*self.meets(other)))

    def __and__(self, other: Any) -> Value:
        return Value(self.f, self.f.b.and_(*self.meets(other)))

    def __or__(self, other: Any) -> Value:
        return Value(self.f, self.f.b.or_(*self.meets(other)))

    def __xor__(self, other: Any) -> Value:
        return Value(self.f, self.f.b.xor(*self.meets(other)))

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
        if self.is_real:
            return call_intrinsic("fabs", self)
        return select(self < 0, -self, self)


def repeated(x: Value, count: int) -> Value:
    """A vector of `count` times the number x."""
    b, empty = x.f.b, ir.Constant(ir.VectorType(x.v.type, count), ir.Undefined)
    first = b.insert_element(empty, x.v, ir.Constant(INT32, 0))
    return Value(x.f, b.shuffle_vector(first, empty, ir.Constant(ir.VectorType(INT32, count), [0] * count)))


def picked(x: Value, places: Iterable[int]) -> Value:
    """The numbers of a vector at these places."""
    chosen = [*places]
    return Value(x.f, x.f.b.shuffle_vector(x.v, x.v, ir.Constant(ir.VectorType(INT32, len(chosen)), chosen)))


def lane(x: Value, place: int) -> Value:
    """One number of a vector."""
    return Value(x.f, x.f.b.extract_element(x.v, ir.Constant(INT32, place)))


def stacked(numbers: Sequence[Value]) -> Value:
    """A vector of single numbers."""
    f, first = numbers[0].f, numbers[0].v
    vector = ir.Constant(ir.VectorType(first.type, len(numbers)), ir.Undefined)
    for k, x in enumerate(numbers):
        vector = f.b.insert_element(vector, x.v, ir.Constant(INT32, k))
    return Value(f, vector)


def select(condition: Value, x: Any, y: Any) -> Value:
    """x where the condition is true, else y. If neither is a Value, both are NumPy's numbers of one type."""
    if not isinstance(x, Value):
        kind = y.v.type if isinstance(y, Value) else TYPES[x.dtype.name]
        x = Value(condition.f, constant(kind, x))
    first, second = x.meets(y)
    chosen = condition.v
    if lanes(first.type) and not lanes(chosen.type):
        chosen = repeated(condition, lanes(first.type)).v
    if lanes(chosen.type) and not lanes(first.type):
        first, second = (repeated(Value(x.f, v), lanes(chosen.type)).v for v in (first, second))
    return Value(condition.f, x.f.b.select(chosen, first, second))


def converted(x: Value, to: ir.Type, signed: bool = True) -> Value:
    """The numbers in another type: floats are cut towards 0; `signed`: whether bits of x are a signed integer."""
    frm, kind, b = element(x.v.type), like(x.v.type, to), x.f.b
    if frm == to:
        return x
    if to == BOOL:
        return x != 0
    if frm in (FLOAT, DOUBLE) and to in (FLOAT, DOUBLE):
        emit = b.fpext if to == DOUBLE else b.fptrunc
    elif frm in (FLOAT, DOUBLE):
        emit = b.fptosi
    elif to in (FLOAT, DOUBLE):
        emit = b.sitofp if signed and frm != BOOL else b.uitofp
    elif frm.width > to.width:
        emit = b.trunc
    else:
        emit = b.sext if signed and frm != BOOL else b.zext
    return Value(x.f, emit(x.v, kind))


def as_bits(x: Value, to: ir.Type) -> Value:
    """The same bits as numbers of another type of this width."""
    return Value(x.f, x.f.b.bitcast(x.v, like(x.v.type, to)))


def call_intrinsic(name: str, *args: Value) -> Value:
    """LLVM's function of this name, for numbers and vectors of the type of the first argument."""
    f, kind = args[0].f, args[0].v.type
    letters = {FLOAT: "f32", DOUBLE: "f64"}.get(element(kind)) or f"i{element(kind).width}"
    full = f"llvm.{name}.{f'v{lanes(kind)}' if lanes(kind) else ''}{letters}"
    function = f.module.declared(full, kind, [kind] * len(args))
    given = [args[0].v, *(args[0].meets(a)[1] for a in args[1:])]
    return Value(f, f.b.call(function, given))


def multiply_add(x: Value, y: Value, z: Value) -> Value:
    """x y + z, in one instruction where the processor has it."""
    if not x.f.module.target.fma:
        return x * y + z
    return call_intrinsic("fma", x, y, z)


def total(x: Value, combine: Callable[[Value, Value], Value] = Value.__add__) -> Value:
    """The sum of a vector's numbers, by halves. The number of lanes is a power of two."""
    n = lanes(x.v.type)
    while n > 1:
        n //= 2
        x = combine(picked(x, range(n)), picked(x, range(n, 2 * n)))
    return Value(x.f, x.f.b.extract_element(x.v, ir.Constant(INT32, 0))) if lanes(x.v.type) else x


# -- modules and functions -----------------------------------------------------------------------------------------


class Module:
    """Functions that are compiled together."""

    def __init__(self, target: Target, name: str = "loops"):
        self.target, self.ir = target, ir.Module(name)
        self.ir.triple = target.triple

    def declared(self, name: str, result: ir.Type, arguments: list[ir.Type]) -> ir.Function:
        """A function from elsewhere: of LLVM, or of the C library."""
        known = self.ir.globals.get(name)
        return known or ir.Function(self.ir, ir.FunctionType(result, arguments), name)

    def optimized(self) -> tuple[Any, Any]:
        """(LLVM's module after its passes, the machine)."""
        machine = self.target.machine()
        module = llvm.parse_assembly(str(self.ir))
        tuning = llvm.create_pipeline_tuning_options(speed_level=2)
        tuning.loop_vectorization = tuning.slp_vectorization = tuning.loop_unrolling = False  # done by hand
        passes = llvm.create_pass_builder(machine, tuning)
        passes.getModulePassManager().run(module, passes)
        return module, machine

    def compiled(self) -> Any:
        """LLVM's engine, which owns the machine code: `engine.get_function_address(name)`."""
        module, machine = self.optimized()
        engine = llvm.create_mcjit_compiler(module, machine)
        engine.finalize_object()
        return engine

    def object_code(self) -> bytes:
        """The machine code as an object file, for a linker."""
        module, machine = self.optimized()
        return machine.emit_object(module)


class Function:
    """A function that is being built. `arguments`: names; those in `integers` are int64, the others pointers."""

    def __init__(self, module: Module, name: str, arguments: str, integers: str = "", private: bool = False):
        self.module = module
        names, whole = arguments.split(), integers.split()
        kind = ir.FunctionType(ir.VoidType(), [INT64 if n in whole else BYTES for n in names])
        self.function = ir.Function(module.ir, kind, name)
        if private:
            self.function.linkage = "internal"
            self.function.attributes.add("noinline")
        self.entry = self.function.append_basic_block()
        self.b = ir.IRBuilder(self.entry)
        self.args = {n: Value(self, a) for n, a in zip(names, self.function.args)}

    # -- numbers and memory --

    def whole(self, n: Number) -> Value:
        """A place or a size as a Value of int64."""
        return n if isinstance(n, Value) else Value(self, ir.Constant(INT64, n))

    def number(self, kind: ir.Type, number: Any, count: int = 0) -> Value:
        """A constant; a vector of equal numbers if `count`."""
        return Value(self, constant(ir.VectorType(kind, count) if count else kind, number))

    def at(self, pointer: Value, place: Number, kind: ir.Type) -> Value:
        """The address of an element."""
        if type(place) is int and place == 0:
            return pointer
        return Value(self, self.b.gep(pointer.v, [(self.whole(place) * ITEM_BYTES[kind]).v]))

    def load(self, pointer: Value, place: Number, kind: ir.Type, count: int = 0, valid: int | None = None) -> Value:
        """An element, or `count` elements as a vector, of which the first `valid` are read and the others are 0."""
        stored = BYTE if kind == BOOL else kind
        address, whole = self.at(pointer, place, stored), like_count(stored, count)
        typed = self.b.bitcast(address.v, whole.as_pointer())
        if valid is None or valid >= max(count, 1):
            found = self.b.load(typed, align=ITEM_BYTES[stored])
        else:
            found = self.masked("load", whole, [typed], valid, ir.Constant(whole, None))
        made = Value(self, found)
        return made != 0 if kind == BOOL else made

    def store(self, x: Value, pointer: Value, place: Number, valid: int | None = None) -> None:
        """Write an element, or a vector, or only its first `valid` numbers."""
        if element(x.v.type) == BOOL:
            x = converted(x, BYTE)
        kind = element(x.v.type)
        typed = self.b.bitcast(self.at(pointer, place, kind).v, x.v.type.as_pointer())
        if valid is None or valid >= max(lanes(x.v.type), 1):
            self.b.store(x.v, typed, align=ITEM_BYTES[kind])
        else:
            self.masked("store", x.v.type, [x.v, typed], valid)

    def masked(self, what: str, kind: ir.Type, given: list[ir.Value], valid: int, *more: ir.Value) -> ir.Value:
        """LLVM's load or store of the first `valid` elements of a vector."""
        of, count = element(kind), lanes(kind)
        letters = {FLOAT: "f32", DOUBLE: "f64"}.get(of) or f"i{of.width}"
        mask = ir.Constant(ir.VectorType(BOOL, count), [ir.Constant(BOOL, int(k < valid)) for k in range(count)])
        args = [*given, ir.Constant(INT32, ITEM_BYTES[of]), mask, *more]
        result = kind if what == "load" else ir.VoidType()
        name = f"llvm.masked.{what}.v{count}{letters}.p0"
        return self.b.call(self.module.declared(name, result, [a.type for a in args]), args)

    def room(self, count: int, kind: ir.Type) -> Value:
        """Memory on the stack for `count` elements, at a multiple of 64 bytes."""
        with self.b.goto_block(self.entry):
            self.b.position_at_start(self.entry)
            memory = self.b.alloca(ir.ArrayType(kind, count))
            memory.align = 64
            return Value(self, self.b.bitcast(memory, BYTES))

    # -- control --

    def loop(
        self, start: Number, stop: Number, step: int, body: Callable, carried: Sequence[Value] = ()
    ) -> list[Value]:
        """for i in range(start, stop, step): carried = body(i, *carried). Returns the last values.

        A loop of at most one round, known in advance, is written without a loop."""
        if isinstance(start, int) and isinstance(stop, int) and stop - start <= step:
            return [*(body(start, *carried) or ())] if stop > start else [*carried]
        b, before = self.b, self.b.block
        head, inside, done = (self.function.append_basic_block() for _ in range(3))
        b.branch(head)
        b.position_at_end(head)
        i, phis = b.phi(INT64), [b.phi(x.v.type) for x in carried]
        i.add_incoming(self.whole(start).v, before)
        for phi, x in zip(phis, carried):
            phi.add_incoming(x.v, before)
        b.cbranch(b.icmp_signed("<", i, self.whole(stop).v), inside, done)
        b.position_at_end(inside)
        results = body(Value(self, i), *[Value(self, phi) for phi in phis]) or ()
        i.add_incoming(b.add(i, ir.Constant(INT64, step)), b.block)
        for phi, x in zip(phis, results):
            phi.add_incoming(x.v, b.block)
        b.branch(head)
        b.position_at_end(done)
        return [Value(self, phi) for phi in phis]

    def when(self, condition: Value, body: Callable[[], None]) -> None:
        """body(), if the condition is true."""
        inside, done = (self.function.append_basic_block() for _ in range(2))
        self.b.cbranch(condition.v, inside, done)
        self.b.position_at_end(inside)
        body()
        self.b.branch(done)
        self.b.position_at_end(done)

    def call(self, other: Function, *args: Value) -> None:
        self.b.call(other.function, [a.v for a in args])

    def end(self) -> None:
        self.b.ret_void()


def like_count(kind: ir.Type, count: int) -> ir.Type:
    return ir.VectorType(kind, count) if count else kind


def smaller(x: Value, y: Any) -> Value:
    """The smaller of two whole numbers."""
    return select(x < y, x, y)


def callable_of(engine: Any, name: str, pointers: int, integers: int = 0) -> Callable[..., None]:
    """A function of the engine for Python: `pointers` addresses, then `integers` numbers. Releases the interpreter's
    lock."""
    kinds = [ctypes.c_void_p] * pointers + [ctypes.c_int64] * integers
    function = ctypes.CFUNCTYPE(None, *kinds)(engine.get_function_address(name))
    function.engine = engine  # type: ignore[attr-defined]  # owns the machine code
    return function
