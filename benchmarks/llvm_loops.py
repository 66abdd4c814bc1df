"""Loops and one whole model as machine code by llvmlite alone, beside Numba's loops and torch, taking turns.

    env -u OPENBLAS_CORETYPE OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 python benchmarks/llvm_loops.py

This is the experiment that a compiler of whole programs starts from. `Value` is a number, or a vector of numbers, in a
function that is being built: its operators emit LLVM instructions. The formulas of rushlight/loops/scalar_math.py run on
such values unchanged, so that running a formula compiles it: no text, no parser, no type inference. Each function is
built for fixed sizes of rows and channels; the number of rows is an argument.

Printed: ms to build and compile, the largest error beside float64, us of a call, and the time of rushlight's eager op
(whose loops Numba compiled before) and of torch's as multiples of it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from statistics import median
from time import perf_counter, sleep
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import patch

import llvmlite.binding as llvm
import numpy as np
import served_models
import torch
from llvmlite import ir

import rushlight
import rushlight.nn.functional as F
from rushlight.loops import scalar_math

LANES = 16  # float32 numbers in a vector of AVX-512; LLVM splits the vectors on other processors
ROUNDS = 9
FLOAT, INT32, INT64 = ir.FloatType(), ir.IntType(32), ir.IntType(64)

# -- values whose operators emit instructions ------------------------------------------------------


def lanes(kind: ir.Type) -> int:
    """The length of a vector type; 0 for a single number."""
    return kind.count if isinstance(kind, ir.VectorType) else 0


def same_lanes(kind: ir.Type, element: ir.Type) -> ir.Type:
    return ir.VectorType(element, lanes(kind)) if lanes(kind) else element


def integer(n: int, kind: ir.Type = INT64) -> ir.Constant:
    return ir.Constant(kind, n)


class Value:
    """A number or a vector of float32 or int32. `b`: the builder of the function. `v`: LLVM's value."""

    __slots__ = ("b", "v")
    __array_ufunc__ = None  # NumPy's scalars leave the operators to Value
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, b: ir.IRBuilder, v: ir.Value):
        self.b, self.v = b, v

    @property
    def is_real(self) -> bool:
        kind = self.v.type
        return (kind.element if lanes(kind) else kind) == FLOAT

    def as_value(self, other: Any) -> ir.Value:
        """`other`, a Python number, or a Value, as LLVM's value of this type."""
        kind = self.v.type
        if isinstance(other, Value):
            return repeated(other).v if lanes(kind) and not lanes(other.v.type) else other.v
        number = float(other) if self.is_real else int(other)
        return ir.Constant(kind, [ir.Constant(kind.element, number)] * lanes(kind) if lanes(kind) else number)

    def emit(self, other: Any, real: str, whole: str, swap: bool = False) -> Value:
        """The instruction `real` of floats, or `whole` of integers; a single number is repeated beside a vector."""
        x, y = self, other
        if isinstance(other, Value) and lanes(other.v.type) and not lanes(self.v.type):
            x = repeated(self)
        pair = x.v, x.as_value(y)
        pair = pair[::-1] if swap else pair
        if self.is_real:
            return Value(self.b, getattr(self.b, real)(*pair, flags=("contract",)))
        return Value(self.b, getattr(self.b, whole)(*pair))

    def compare(self, sign: str, other: Any) -> Value:
        emit = self.b.fcmp_ordered if self.is_real else self.b.icmp_signed
        return Value(self.b, emit(sign, self.v, self.as_value(other)))

    def __add__(self, other: Any) -> Value:
        return self.emit(other, "fadd", "add")

    def __mul__(self, other: Any) -> Value:
        return self.emit(other, "fmul", "mul")

    __radd__, __rmul__ = __add__, __mul__

    def __sub__(self, other: Any) -> Value:
        return self.emit(other, "fsub", "sub")

    def __rsub__(self, other: Any) -> Value:
        return self.emit(other, "fsub", "sub", swap=True)

    def __truediv__(self, other: Any) -> Value:
        return self.emit(other, "fdiv", "sdiv")

    def __rtruediv__(self, other: Any) -> Value:
        return self.emit(other, "fdiv", "sdiv", swap=True)

    def __neg__(self) -> Value:
        return Value(self.b, self.b.fneg(self.v))

    def __lshift__(self, other: Any) -> Value:
        return Value(self.b, self.b.shl(self.v, self.as_value(other)))

    def __rshift__(self, other: Any) -> Value:
        return Value(self.b, self.b.ashr(self.v, self.as_value(other)))

    def __and__(self, other: Any) -> Value:
        return Value(self.b, self.b.and_(self.v, self.as_value(other)))

    def __or__(self, other: Any) -> Value:
        return Value(self.b, self.b.or_(self.v, self.as_value(other)))

    def __lt__(self, other: Any) -> Value:
        return self.compare("<", other)

    def __gt__(self, other: Any) -> Value:
        return self.compare(">", other)

    def __eq__(self, other: object) -> Value:  # type: ignore[override]
        return self.compare("==", other)

    def __abs__(self) -> Value:
        return unbits(bits(self) & 0x7FFFFFFF)


def repeated(x: Value, count: int = LANES) -> Value:
    """A vector of `count` times the number x."""
    empty = ir.Constant(ir.VectorType(x.v.type, count), ir.Undefined)
    first = x.b.insert_element(empty, x.v, integer(0, INT32))
    return Value(x.b, x.b.shuffle_vector(first, empty, ir.Constant(ir.VectorType(INT32, count), [0] * count)))


def picked(x: Value, places: Iterable[int]) -> Value:
    """The numbers of a vector at these places."""
    chosen = [*places]
    return Value(x.b, x.b.shuffle_vector(x.v, x.v, ir.Constant(ir.VectorType(INT32, len(chosen)), chosen)))


def bits(x: Any) -> Any:
    if not isinstance(x, Value):
        return np.float32(x).view(np.int32)
    return Value(x.b, x.b.bitcast(x.v, same_lanes(x.v.type, INT32)))


def unbits(x: Any) -> Any:
    if not isinstance(x, Value):
        return np.int32(x).view(np.float32)
    return Value(x.b, x.b.bitcast(x.v, same_lanes(x.v.type, FLOAT)))


def select(condition: Value, x: Any, y: Any) -> Value:
    b, kind = condition.b, x if isinstance(x, Value) else y
    return Value(b, b.select(condition.v, kind.as_value(x), kind.as_value(y)))


def intrinsic(name: str) -> Callable[..., Value]:
    """LLVM's function of this name, for numbers and vectors of float32."""

    def call(*args: Value) -> Value:
        b, kind = args[0].b, args[0].v.type
        full = f"llvm.{name}.{f'v{lanes(kind)}' if lanes(kind) else ''}f32"
        known = b.module.globals.get(full)
        function = known or ir.Function(b.module, ir.FunctionType(kind, [kind] * len(args)), full)
        return Value(b, b.call(function, [args[0].as_value(a) for a in args]))

    return call


multiply_add, square_root, larger = intrinsic("fma"), intrinsic("sqrt"), intrinsic("maxnum")


class Int32:
    """`k.int` of scalar_math: int32 as a function of constants and values, and as a dtype."""

    dtype = np.dtype(np.int32)

    def __call__(self, x: Any) -> Any:
        return x if isinstance(x, Value) else np.int32(x)


def formulas() -> dict[str, Callable]:
    """exp, tanh, sigmoid and so on of scalar_math, for values."""
    k = SimpleNamespace(real=np.float32, int=Int32(), jit=lambda f: f, scaled=None)
    k.select, k.bits, k.unbits, k.digits, k.bias = select, bits, unbits, 23, 127
    k.magic = np.float32(1.5 * 2.0**23)
    k.ln2_hi, k.ln2_lo = np.float32(0.693359375), np.float32(-2.12194440054690583e-4)
    k.signed = lambda a, x: unbits(bits(a) | (bits(x) & -0x80000000))

    def horner(coefficients: tuple[float, ...], real: type) -> Callable:
        def polynomial(x: Value) -> Any:
            r: Any = real(coefficients[-1])
            for c in coefficients[-2::-1]:
                r = r * x + real(c)
            return r

        return polynomial

    with patch.object(scalar_math, "horner", horner):
        return scalar_math.exponentials(k)


FORMULAS = formulas()

# -- functions, memory and loops -------------------------------------------------------------------


class Function:
    """A function of pointers to float32 and of integers that is being built; `args`: its arguments."""

    def __init__(self, name: str, pointers: int, integers: int = 0):
        self.module, self.pointers, self.integers = ir.Module(name), pointers, integers
        kind = ir.FunctionType(ir.VoidType(), [FLOAT.as_pointer()] * pointers + [INT64] * integers)
        self.function = ir.Function(self.module, kind, name)
        for a in self.function.args[:pointers]:
            a.add_attribute("noalias")
        self.b, self.args = ir.IRBuilder(self.function.append_basic_block()), self.function.args

    def at(self, pointer: ir.Value, place: ir.Value | int) -> ir.Value:
        """The address of a number behind `pointer`."""
        return self.b.gep(pointer, [integer(place) if isinstance(place, int) else place])

    def load(self, pointer: ir.Value, place: Any = 0, count: int = LANES) -> Value:
        """`count` numbers as a vector; one number for 0."""
        address = self.at(pointer, place)
        if count:
            address = self.b.bitcast(address, ir.VectorType(FLOAT, count).as_pointer())
        return Value(self.b, self.b.load(address, align=4))

    def store(self, x: Value, pointer: ir.Value, place: Any = 0) -> None:
        self.b.store(x.v, self.b.bitcast(self.at(pointer, place), x.v.type.as_pointer()), align=4)

    def constant(self, number: float, count: int = LANES) -> Value:
        return Value(self.b, ir.Constant(ir.VectorType(FLOAT, count), [ir.Constant(FLOAT, number)] * count))

    def room(self, count: int) -> ir.Value:
        """Memory on the stack for `count` numbers."""
        with self.b.goto_entry_block():
            memory = self.b.alloca(ir.ArrayType(FLOAT, count))
        memory.align = 64
        return self.b.bitcast(memory, FLOAT.as_pointer())

    def loop(self, stop: Any, step: int, body: Callable, carried: Sequence[Value] = ()) -> list[Value]:
        """for i in range(0, stop, step): carried = body(i, *carried). Returns the last values."""
        b, before = self.b, self.b.block
        head, inside, done = (self.function.append_basic_block() for _ in range(3))
        b.branch(head)
        b.position_at_end(head)
        i, phis = b.phi(INT64), [b.phi(x.v.type) for x in carried]
        i.add_incoming(integer(0), before)
        for phi, x in zip(phis, carried):
            phi.add_incoming(x.v, before)
        b.cbranch(b.icmp_signed("<", i, integer(stop) if isinstance(stop, int) else stop), inside, done)
        b.position_at_end(inside)
        results = body(i, *[Value(b, phi) for phi in phis]) or ()
        i.add_incoming(b.add(i, integer(step)), b.block)
        for phi, x in zip(phis, results):
            phi.add_incoming(x.v, b.block)
        b.branch(head)
        b.position_at_end(done)
        return [Value(b, phi) for phi in phis]

    def compiled(self) -> Callable[..., None]:
        """The function as machine code, called with addresses and integers."""
        self.b.ret_void()
        module = llvm.parse_assembly(str(self.module))
        tuning = llvm.create_pipeline_tuning_options(speed_level=2)
        tuning.loop_vectorization = tuning.slp_vectorization = False  # the values are vectors already
        llvm.create_pass_builder(MACHINE, tuning).getModulePassManager().run(module, PASSES)
        engine = llvm.create_mcjit_compiler(module, MACHINE)
        engine.finalize_object()
        ENGINES.append(engine)
        kinds = [ctypes.c_void_p] * self.pointers + [ctypes.c_int64] * self.integers
        return ctypes.CFUNCTYPE(None, *kinds)(engine.get_function_address(self.function.name))


def machine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    return llvm.Target.from_default_triple().create_target_machine(cpu=llvm.get_host_cpu_name(), features=features)


MACHINE = machine()
PASSES = llvm.create_pass_builder(MACHINE, llvm.create_pipeline_tuning_options())
ENGINES: list[Any] = []  # they own the machine code

# -- loops -----------------------------------------------------------------------------------------


def total(x: Value, combine: Callable[[Value, Value], Value] = Value.__add__) -> Value:
    """The sum of a vector's numbers, by halves."""
    n = lanes(x.v.type)
    while n > 1:
        n //= 2
        x = combine(picked(x, range(n)), picked(x, range(n, 2 * n)))
    return Value(x.b, x.b.extract_element(x.v, integer(0, INT32)))


def swish_chain() -> Callable:
    """y = x sigmoid(x w + c), for n numbers, a multiple of LANES."""
    f = Function("swish_chain", 4, 1)
    x, w, c, y, n = f.args

    def step(i: ir.Value) -> None:
        a = f.load(x, i)
        f.store(a * FORMULAS["sigmoid"](a * f.load(w, i) + f.load(c, i)), y, i)

    f.loop(n, LANES, step)
    return f.compiled()


def softmax(columns: int) -> Callable:
    """Softmax of rows of up to 128 numbers, which stay in registers between the three passes."""
    f = Function("softmax", 2, 1)
    x, y, rows = f.args

    def row(r: ir.Value) -> None:
        start = f.b.mul(r, integer(columns))
        xs, ys = f.at(x, start), f.at(y, start)
        places = range(0, columns, LANES)
        parts = [f.load(xs, k) for k in places]
        top = parts[0]
        for part in parts[1:]:
            top = larger(top, part)
        top = total(top, larger)
        powers = [FORMULAS["exp"](part - top) for part in parts]
        inverse = 1.0 / total(sum(powers[1:], start=powers[0]))
        for k, power in zip(places, powers):
            f.store(power * inverse, ys, k)

    f.loop(rows, 1, row)
    return f.compiled()


def layer_norm(columns: int, eps: float = 1e-5) -> Callable:
    """Layer norm of rows of up to 128 numbers, which stay in registers; the variance from the deviations."""
    f = Function("layer_norm", 4, 1)
    x, weight, bias, y, rows = f.args

    def row(r: ir.Value) -> None:
        start = f.b.mul(r, integer(columns))
        xs, ys = f.at(x, start), f.at(y, start)
        places = range(0, columns, LANES)
        parts = [f.load(xs, k) for k in places]
        mean = total(sum(parts[1:], start=parts[0])) * (1 / columns)
        parts = [part - mean for part in parts]
        squares = [part * part for part in parts]
        inverse = 1.0 / square_root(total(sum(squares[1:], start=squares[0])) * (1 / columns) + eps)
        for k, part in zip(places, parts):
            f.store(part * inverse * f.load(weight, k) + f.load(bias, k), ys, k)

    f.loop(rows, 1, row)
    return f.compiled()


def row_times_matrix(f: Function, x: Any, w: Any, bias: Any, y: Any, inner: int, vectors: int, relu: bool) -> None:
    """y = x w + bias for a w of `vectors` LANES columns: the sums of even and odd rows stay in registers."""
    zero = f.constant(0.0)

    def step(k: ir.Value, *sums: Value) -> list[Value]:
        row = f.at(w, f.b.mul(k, integer(vectors * LANES)))
        both = [repeated(f.load(x, place, 0)) for place in (k, f.b.add(k, integer(1)))]
        return [multiply_add(f.load(row, i * LANES), both[i // vectors], s) for i, s in enumerate(sums)]

    start = [f.load(bias, i * LANES) for i in range(vectors)] + [zero] * vectors
    sums = f.loop(inner, 2, step, start)
    for i in range(vectors):
        s = sums[i] + sums[vectors + i]
        f.store(larger(s, zero) if relu else s, y, i * LANES)


def lenet() -> Callable:
    """LeNet for one image of 28 x 28 as one function. Arguments: image, then weights and biases of five layers as
    `packed_lenet` gives them, then memory for 16 results, of which ten count."""
    f = Function("lenet", 12)
    image, w1, b1, w2, b2, w3, b3, w4, b4, w5, b5, y = f.args
    zero, b = f.constant(0.0), f.b
    padded, first, second = f.room(32 * 32 + LANES), f.room(6 * 14 * 14 + 2 * LANES), f.room(5 * 5 * 16)
    third, fourth = f.room(128), f.room(96)

    def copied(r: ir.Value) -> None:
        source, target = f.at(image, b.mul(r, integer(28))), f.at(padded, b.add(b.mul(r, integer(32)), integer(66)))
        for k in (0, 12):
            f.store(f.load(source, k), target, k)

    f.loop(32 * 32, LANES, lambda i: f.store(zero, padded, i))
    f.loop(28, 1, copied)

    def first_layer(r: ir.Value) -> None:
        """Two rows of the convolution, three filters at once, then their maxima: a row after pooling."""
        source = f.at(padded, b.mul(r, integer(64)))

        def filters(o: ir.Value) -> None:
            weights = f.at(w1, b.mul(o, integer(25)))
            start = [repeated(f.load(b1, b.add(o, integer(j)), 0)) for j in range(3)]
            sums = {(j, row, k): start[j] for j in range(3) for row in (0, 1) for k in (0, 12)}
            for line, column in np.ndindex(6, 5):
                pixels = {k: f.load(source, line * 32 + column + k) for k in (0, 12)}
                for j, row, k in sums:
                    if 0 <= line - row < 5:
                        weight = repeated(f.load(weights, j * 25 + (line - row) * 5 + column, 0))
                        sums[j, row, k] = multiply_add(pixels[k], weight, sums[j, row, k])
            for j in range(3):
                target = f.at(first, b.add(b.mul(b.add(o, integer(j)), integer(196)), b.mul(r, integer(14))))
                for k in (0, 12):
                    top = larger(larger(sums[j, 0, k], sums[j, 1, k]), zero)
                    f.store(larger(picked(top, range(0, 16, 2)), picked(top, range(1, 16, 2))), target, k // 2)

        f.loop(6, 3, filters)

    f.loop(14, 1, first_layer)

    def second_layer(r: ir.Value) -> None:
        """Two rows of the convolution, a lane for each of the 16 filters, then their maxima."""

        def step(i: ir.Value, *sums: Value) -> list[Value]:  # i: channel and line of the filter
            channel, line = b.sdiv(i, integer(5)), b.srem(i, integer(5))
            place = b.add(b.mul(channel, integer(196)), b.mul(b.add(b.mul(r, integer(2)), line), integer(14)))
            source, weights, made = f.at(first, place), f.at(w2, b.mul(i, integer(80))), [*sums]
            for column in range(5):
                weight = f.load(weights, column * 16)
                for n, (row, k) in enumerate(np.ndindex(2, 10)):
                    pixel = repeated(f.load(source, row * 14 + k + column, 0))
                    made[n] = multiply_add(pixel, weight, made[n])
            return made

        sums = f.loop(30, 1, step, [f.load(b2)] * 20)
        for k in range(5):
            top = larger(larger(sums[2 * k], sums[2 * k + 1]), larger(sums[10 + 2 * k], sums[11 + 2 * k]))
            f.store(larger(top, zero), second, b.add(b.mul(r, integer(80)), integer(k * 16)))

    f.loop(5, 1, second_layer)
    row_times_matrix(f, second, w3, b3, third, 400, 8, relu=True)
    row_times_matrix(f, third, w4, b4, fourth, 120, 6, relu=True)
    row_times_matrix(f, fourth, w5, b5, y, 84, 1, relu=False)
    return f.compiled()


def packed_lenet(net: torch.nn.Module) -> list[np.ndarray]:
    """The parameters in the order in which `lenet` reads them, columns filled up to whole vectors."""
    w1, b1, w2, b2, w3, b3, w4, b4, w5, b5 = [p.detach().numpy() for p in net.parameters()]
    w3 = w3.reshape(120, 16, 25).transpose(2, 1, 0).reshape(400, 120)
    made = [w1, b1, w2.transpose(1, 2, 3, 0), b2]
    for w, bias in ((w3, b3), (w4.T, b4), (w5.T, b5)):
        missing = -w.shape[1] % LANES
        made += [np.pad(w, ((0, 0), (0, missing))), np.pad(bias, (0, missing))]
    return [np.ascontiguousarray(a) for a in made]


# -- measuring -------------------------------------------------------------------------------------


def seconds(call: Callable[[], Any]) -> float:
    """Seconds of a call, from a block of at least 5 ms."""
    count = 1
    while True:
        start = perf_counter()
        for _ in range(count):
            call()
        spent = perf_counter() - start
        if spent > 0.005:
            return spent / count
        count *= 2


class Case(NamedTuple):
    """A function beside rushlight's and torch's. `out`: the memory of its results, `exact`: the results in float64."""

    name: str
    build: Callable[[], Callable]
    arguments: list[Any]
    out: np.ndarray
    exact: np.ndarray
    ours: Callable[[], Any]
    theirs: Callable[[], Any]


def chain_case(rng: np.random.Generator) -> Case:
    n = 65536
    x, w, c, y = (rng.standard_normal(n).astype(np.float32) for _ in range(4))
    wide = x.astype(float)
    chain = rushlight.compile(lambda x, w, c: x * rushlight.sigmoid(x * w + c))
    ours, theirs = [rushlight.from_numpy(v) for v in (x, w, c)], [torch.from_numpy(v) for v in (x, w, c)]
    return Case(
        "x sigmoid(x w + c)", swish_chain, [x, w, c, y, n], y, wide / (1 + np.exp(-(wide * w + c))),
        lambda: chain(*ours), lambda: theirs[0] * torch.sigmoid(theirs[0] * theirs[1] + theirs[2]),
    )  # fmt: skip


def softmax_case(rng: np.random.Generator, rows: int, columns: int) -> Case:
    x, y = (rng.standard_normal((rows, columns)).astype(np.float32) for _ in range(2))
    ours, theirs = rushlight.from_numpy(x), torch.from_numpy(x)
    return Case(
        f"softmax {rows} x {columns}", lambda: softmax(columns), [x, y, rows], y, torch.softmax(theirs.double(), 1).numpy(),
        lambda: F.softmax(ours, 1), lambda: torch.softmax(theirs, 1),
    )  # fmt: skip


def norm_case(rng: np.random.Generator, rows: int, columns: int) -> Case:
    x, y = (rng.standard_normal((rows, columns)).astype(np.float32) for _ in range(2))
    weight, bias, shape = np.ones(columns, np.float32), np.zeros(columns, np.float32), (columns,)
    ours, theirs = (
        [rushlight.from_numpy(v) for v in (x, weight, bias)],
        [torch.from_numpy(v) for v in (x, weight, bias)],
    )
    norm = torch.nn.functional.layer_norm
    return Case(
        f"layer norm {rows} x {columns}", lambda: layer_norm(columns), [x, weight, bias, y, rows], y,
        norm(theirs[0].double(), shape).numpy(),
        lambda: F.layer_norm(ours[0], shape, *ours[1:]), lambda: norm(theirs[0], shape, *theirs[1:]),
    )  # fmt: skip


def lenet_case(rng: np.random.Generator) -> Case:
    theirs, ours = served_models.lenet(torch.nn).eval(), served_models.lenet(rushlight.nn).eval()
    ours.load_state_dict({k: rushlight.from_numpy(p.numpy()) for k, p in theirs.state_dict().items()})
    image, y = rng.standard_normal((1, 1, 28, 28)).astype(np.float32), np.empty(16, np.float32)
    served, a, b = rushlight.compile(ours), rushlight.from_numpy(image), torch.from_numpy(image)
    exact = np.pad(theirs.double()(b.double()).numpy()[0], (0, 6))
    arguments = [image, *packed_lenet(theirs.float()), y]
    return Case("LeNet, one image", lenet, arguments, y, exact, lambda: served(a), lambda: theirs(b))


def measured(case: Case) -> str:
    """A line of the table: build, check and time a case."""
    start = perf_counter()
    function = case.build()
    spent = perf_counter() - start
    given = [a.ctypes.data if isinstance(a, np.ndarray) else a for a in case.arguments]
    function(*given)
    error = np.max(np.abs(case.out - case.exact)) / np.max(np.abs(case.exact))
    for _ in range(4):  # until rushlight's loops are compiled
        case.ours()
        sleep(1)
    rounds = [[seconds(call) for call in (lambda: function(*given), case.ours, case.theirs)] for _ in range(ROUNDS)]
    own, ours, theirs = min(r[0] for r in rounds) * 1e6, *(median(r[i] / r[0] for r in rounds) for i in (1, 2))
    return f"{case.name:24}{spent * 1e3:6.0f} ms {error:8.0e} {own:8.1f} us {ours:10.1f} {theirs:6.1f}"


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    print(f"{'':24}{'compile':>9} {'error':>8} {'call':>11} {'rushlight':>10} {'torch':>6}")
    cases = [
        lambda: chain_case(rng),
        *(partial(case, rng, *shape) for shape in ((256, 64), (32, 128)) for case in (softmax_case, norm_case)),
        lambda: lenet_case(rng),
    ]
    for case in cases:
        print(measured(case()))


if __name__ == "__main__":
    with torch.no_grad(), rushlight.no_grad():
        main()
