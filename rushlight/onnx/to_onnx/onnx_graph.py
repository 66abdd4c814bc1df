"""The ONNX graph that is being written: its nodes and constants, and arithmetic on its values.

A `Symbol` is a value of the graph. Operators on symbols append nodes, so a rule of the op table, run on symbols, writes
the nodes of its op."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from rushlight.onnx.tensors import code_of
from rushlight.onnx.to_onnx.sizes import Formula, NotExpressed, Numbers, Size, formula

BOOL, INT64, FLOAT32 = np.dtype(bool), np.dtype(np.int64), np.dtype(np.float32)
END = np.iinfo(np.int64).max  # the end of a slice that takes all


WITHOUT_INTEGERS = """
    Acos Acosh Asin Asinh Atan Atanh AveragePool BatchNormalization Ceil Conv ConvTranspose Cos Cosh Det Elu Exp Floor
    GRU Gelu GlobalAveragePool GlobalMaxPool HardSigmoid HardSwish InstanceNormalization LSTM LayerNormalization
    LeakyRelu Log LogSoftmax Mish RNN Reciprocal Round Sigmoid Sin Sinh Softmax Softplus Sqrt Tan Tanh
"""
FLOATS_ONLY = frozenset(WITHOUT_INTEGERS.split())  # operators that take no integers


class Node(NamedTuple):
    """A call of an ONNX operator. An input "" is left out; `attributes` may hold arrays, numbers, text, lists."""

    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]


def arithmetic(operator: str, of_bools: str = "") -> tuple[Callable, Callable]:
    """An operator of two values, and the same with the operands exchanged. `of_bools`: its name for booleans."""

    def forward(x: Any, y: Any) -> Any:
        return x.graph.binary(of_bools or operator, operator, x, y)

    def reflected(x: Any, y: Any) -> Any:
        return x.graph.binary(of_bools or operator, operator, y, x)

    return forward, reflected


def comparison(operator: str) -> Callable:
    """A comparison of two values."""
    return lambda x, y: x.graph.binary(operator, operator, x, y, True)


class Symbol:
    """A value of the ONNX graph. `shape`: integers and Sizes, or None where no rule needs them. `array`: the elements
    of a constant."""

    __slots__ = ("array", "dtype", "graph", "name", "shape")

    def __init__(self, graph: OnnxGraph, name: str, dtype: np.dtype, shape: Sequence | None = None, array: Any = None):
        self.graph, self.name, self.dtype, self.array = graph, name, np.dtype(dtype), array
        self.shape: Any = None if shape is None else tuple(shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def to(self, dtype: Any) -> Symbol:
        """The value converted to a dtype."""
        dtype = np.dtype(dtype)
        if dtype == self.dtype:
            return self
        if self.array is not None and self.array.size <= 16:
            return self.graph.constant(self.array.astype(dtype))
        return self.graph.node("Cast", [self], dtype=dtype, shape=self.shape, to=type_number(dtype))

    def named(self, operator: str, *others: Any, dtype: np.dtype | None = None, **attributes: Any) -> Symbol:
        """An operator whose first input is this value, with a result of the same dtype if none is given."""
        return self.graph.node(operator, [self, *others], dtype=dtype or self.dtype, **attributes)

    __add__, __radd__ = arithmetic("Add", "Or")
    __sub__, __rsub__ = arithmetic("Sub")
    __mul__, __rmul__ = arithmetic("Mul", "And")
    __truediv__: Any = lambda x, y: quotient(x, y)
    __rtruediv__: Any = lambda x, y: quotient(y, x)
    __floordiv__, __rfloordiv__ = arithmetic("Div")  # of integers above 0: ONNX rounds toward 0
    __and__, __rand__ = arithmetic("BitwiseAnd", "And")
    __or__, __ror__ = arithmetic("BitwiseOr", "Or")
    __xor__, __rxor__ = arithmetic("BitwiseXor", "Xor")
    __lt__, __gt__ = comparison("Less"), comparison("Greater")
    __le__, __ge__ = comparison("LessOrEqual"), comparison("GreaterOrEqual")
    __eq__: Any = comparison("Equal")
    __ne__: Any = lambda x, y: ~(x == y)

    def __neg__(self) -> Symbol:
        return 0 - self if self.dtype.kind == "u" else self.named("Neg", shape=self.shape)

    def __abs__(self) -> Symbol:
        return self.named("Abs", shape=self.shape)

    def __invert__(self) -> Symbol:
        return self.named("Not" if self.dtype == BOOL else "BitwiseNot", shape=self.shape)

    def __hash__(self) -> int:
        return id(self)

    def __pow__(self, n: Any) -> Symbol:
        return power(self, n)

    def __rpow__(self, n: Any) -> Symbol:
        return power(self.graph.constant(np.array(n, self.dtype)), self)


def power(x: Symbol, y: Any) -> Symbol:
    """x^y."""
    if x.dtype.kind in "iu" and x.dtype.itemsize < 4:  # which ONNX does not take
        return power(x.to(np.int32), y).to(x.dtype)
    return x.graph.binary("Pow", "Pow", x, y)


def quotient(x: Any, y: Any) -> Symbol:
    """x / y; integers become float32."""
    graph = x.graph if isinstance(x, Symbol) else y.graph
    x, y = graph.met(x, y)
    if x.dtype.kind in "iub":
        x, y = x.to(FLOAT32), y.to(FLOAT32)
    return graph.binary("Div", "Div", x, y)


def type_number(dtype: Any) -> int:
    """ONNX's number of a dtype."""
    try:
        return code_of(np.dtype(dtype))
    except NotImplementedError:
        raise NotExpressed(f"ONNX has no type {np.dtype(dtype).name}") from None


class OnnxGraph:
    """Nodes and initializers. `opset`: the version of ONNX's operators."""

    def __init__(self, opset: int):
        self.opset = opset
        self.nodes: list[Node] = []
        self.initializers: dict[str, np.ndarray] = {}
        self.same: dict[Any, Any] = {}  # nodes and small constants that exist already
        self.known: dict[Numbers, tuple[Symbol, int]] = {}  # sizes of values: (value, dimension)
        self.taken: set[str] = set()
        self.missing: dict[str, str] = {}  # values that no node makes -> the reason

    # -- names, constants ------------------------------------------------------------------------------

    def fresh(self, hint: str) -> str:
        """A name that no other value has."""
        name, number = hint, 1
        while name in self.taken or not name:
            name, number = f"{hint}_{number}", number + 1
        self.taken.add(name)
        return name

    def symbol(self, name: str, dtype: Any, shape: Sequence | None) -> Symbol:
        """A value that no node makes: an input of the model."""
        return self.learned(Symbol(self, self.fresh(name), dtype, shape))

    def unwritten(self, dtype: Any, shape: Sequence, reason: str) -> Symbol:
        """A value that no node makes, because another operator does the whole. `reason`: the error if it is read."""
        name = self.fresh("unwritten")
        self.missing[name] = reason
        return Symbol(self, name, dtype, shape)

    def constant(self, array: Any, name: str = "") -> Symbol:
        """An initializer. Equal small arrays without a name are one initializer."""
        array = np.asarray(array)
        type_number(array.dtype)
        key = None if name or array.size > 64 else (array.tobytes(), array.dtype.str, array.shape)
        if key in self.same:
            return self.same[key]
        made = Symbol(self, self.fresh(name or "constant"), array.dtype, array.shape, array)
        self.initializers[made.name] = array
        if key is not None:
            self.same[key] = made
        return made

    def like(self, number: Any, other: Symbol) -> Symbol:
        """A number as a constant of another value's dtype; a fraction beside integers is float32."""
        fits = other.dtype.kind in "fVc" or isinstance(number, (bool, int)) and other.dtype != BOOL
        dtype = other.dtype if fits or isinstance(number, bool) else INT64 if isinstance(number, int) else FLOAT32
        return self.constant(np.array(number).astype(dtype))

    # -- nodes -----------------------------------------------------------------------------------------

    def node(
        self,
        operator: str,
        inputs: Iterable[Symbol | None],
        *,
        dtype: Any,
        shape: Sequence | None = None,
        **settings: Any,
    ) -> Symbol:
        """The result of an operator with one result."""
        return self.nodes_of(operator, inputs, [(dtype, shape)], **settings)[0]

    def nodes_of(
        self, operator: str, inputs: Iterable[Symbol | None], results: Sequence[tuple], **settings: Any
    ) -> list[Symbol]:
        """The results of an operator. `results`: (dtype, shape) of each. An equal node is not written twice."""
        inputs = [*inputs]
        if operator in FLOATS_ONLY and inputs[0] is not None and inputs[0].dtype.kind in "iub":
            raise NotExpressed(f"ONNX's {operator} takes no {inputs[0].dtype.name}")
        names = ["" if i is None else i.name for i in inputs]
        while names and not names[-1]:
            names.pop()
        settings = {key: value for key, value in settings.items() if value is not None}
        key = (operator, *names, len(results), repr(settings))
        if key in self.same:
            return self.same[key]
        made = [Symbol(self, self.fresh(operator.lower()), *result) for result in results]
        self.nodes.append(Node(operator, tuple(names), tuple([s.name for s in made]), settings))
        self.same[key] = made
        return made

    def binary(self, of_bools: str, operator: str, x: Any, y: Any, gives_bool: bool = False) -> Symbol:
        """An operator of two values that are broadcast; numbers and values of other dtypes are converted."""
        x, y = self.met(x, y)
        if x.dtype == BOOL and not gives_bool and operator == of_bools:
            x, y = x.to(INT64), y.to(INT64)
        if x.dtype == BOOL and gives_bool and operator != "Equal":
            x, y = x.to(np.int32), y.to(np.int32)
        return self.node(of_bools if x.dtype == BOOL else operator, [x, y], dtype=BOOL if gives_bool else x.dtype)

    def met(self, x: Any, y: Any) -> tuple[Symbol, Symbol]:
        """Both operands as values of one dtype."""
        if not isinstance(x, Symbol):
            x = self.like(x, y)
        if not isinstance(y, Symbol):
            y = self.like(y, x)
        if x.dtype != y.dtype:
            wide = np.promote_types(x.dtype, y.dtype)
            if wide == np.float64 and np.float64 not in (x.dtype, y.dtype):  # int64 beside float32, as in torch
                wide = x.dtype if x.dtype.kind == "f" else y.dtype
            x, y = x.to(wide), y.to(wide)
        return x, y

    # -- integers --------------------------------------------------------------------------------------

    def learned(self, value: Symbol) -> Symbol:
        """The value; its dynamic sizes become known to `number`."""
        for dim, size in enumerate(value.shape or ()):
            if isinstance(size, Size):
                self.known.setdefault(size.values, (value, dim))
        return value

    def number(self, n: int | Size) -> Symbol:
        """An integer as an int64 array of one element: a constant, or arithmetic on sizes of other values."""
        if not isinstance(n, Size):
            return self.constant(np.array([n], np.int64))
        key = "size", n.values
        if key not in self.same:
            found = formula(n.values, self.known)
            if found is None:
                raise NotExpressed(f"a size is {', '.join(map(str, n.values))} {self.where_sizes_are()}")
            self.same[key] = self.computed(found)
        return self.same[key]

    def where_sizes_are(self) -> str:
        """The sizes of the dynamic dimensions in the traces, for messages."""
        inputs = {out for node in self.nodes for out in node.outputs}
        shown = [
            f"dimension {dim} of {value.name} is {', '.join(map(str, numbers))}"
            for numbers, (value, dim) in self.known.items()
            if value.name not in inputs
        ]
        return f"where {' and '.join(shown)}" if shown else "in traces of equal sizes"

    def computed(self, found: Formula) -> Symbol:
        """The nodes of a formula."""
        parts = []
        for numbers in found.sizes:
            value, dim = self.known[numbers]
            parts.append(self.node("Shape", [value], dtype=INT64, shape=(1,), start=dim, end=dim + 1))
        total = parts[0]
        for part in parts[1:]:
            total = total * part
        total = total * found.factor if found.factor != 1 else total
        total = total + found.rest if found.rest else total
        total = total // found.divisor if found.divisor != 1 else total
        total.shape = (1,)
        return total

    def scalar(self, n: int | Size) -> Symbol:
        """An integer as an int64 array without dimensions."""
        if not isinstance(n, Size):
            return self.constant(np.array(n, np.int64))
        return self.node("Squeeze", [self.number(n)], dtype=INT64, shape=())

    def integers(self, numbers: Iterable[int | Size]) -> Symbol:
        """Integers as an int64 array of one dimension."""
        numbers = list(numbers)
        if not any(isinstance(n, Size) for n in numbers):
            return self.constant(np.array(numbers, np.int64))
        return self.node("Concat", map(self.number, numbers), dtype=INT64, shape=(len(numbers),), axis=0)

    def counted(self, n: int | Size) -> Symbol:
        """0, 1, ... n - 1 as int64."""
        if not isinstance(n, Size):
            return self.constant(np.arange(n))
        return self.node("Range", [self.scalar(0), self.scalar(n), self.scalar(1)], dtype=INT64, shape=(n,))

    def filled(self, shape: Sequence[int | Size], number: Any, dtype: Any) -> Symbol:
        """An array of equal numbers."""
        value = np.array([number], dtype)
        return self.node("ConstantOfShape", [self.integers(shape)], dtype=dtype, shape=shape, value=value)

    # -- shapes ----------------------------------------------------------------------------------------

    def reshaped(self, x: Symbol, shape: Sequence[int | Size]) -> Symbol:
        """The elements of x in another shape. A single unknown size needs no arithmetic: -1."""
        shape = tuple(shape)
        if x.shape == shape:
            return x
        wanted, zero = self.integers(shape), 1 if 0 in shape else None
        if 0 not in shape:
            wanted = self.integers(short_shape(x.shape, shape))
        return self.node("Reshape", [x, wanted], dtype=x.dtype, shape=shape, allowzero=zero)

    def transposed(self, x: Symbol, order: Sequence[int]) -> Symbol:
        """x with its dimensions in another order."""
        if [*order] == [*range(x.ndim)]:
            return x
        return self.node("Transpose", [x], dtype=x.dtype, shape=[x.shape[d] for d in order], perm=[*order])

    def expanded(self, x: Symbol, shape: Sequence[int | Size]) -> Symbol:
        """x broadcast to a shape."""
        if x.shape == tuple(shape):
            return x
        return self.node("Expand", [x, self.integers(shape)], dtype=x.dtype, shape=shape)

    def unsqueezed(self, x: Symbol, dims: Sequence[int]) -> Symbol:
        """x with new dimensions of size 1 at these places of the result."""
        shape: Any = None
        if x.shape is not None:
            rest = iter(x.shape)
            shape = [1 if d in dims else next(rest) for d in range(x.ndim + len(dims))]
        return self.node("Unsqueeze", [x, self.integers(dims)], dtype=x.dtype, shape=shape) if len(dims) else x

    def squeezed(self, x: Symbol, dims: Sequence[int]) -> Symbol:
        """x without these dimensions, whose sizes are 1."""
        shape = None if x.shape is None else [n for d, n in enumerate(x.shape) if d not in dims]
        return self.node("Squeeze", [x, self.integers(dims)], dtype=x.dtype, shape=shape) if len(dims) else x

    def sliced(self, x: Symbol, dim: int, start: int | Size, stop: int | Size, step: int | Size = 1) -> Symbol:
        """x[start:stop:step] along a dimension; its sizes are not computed."""
        ends = [self.number(start), self.number(stop), self.number(dim), self.number(step)]
        return self.node("Slice", [x, *ends], dtype=x.dtype)

    def joined(self, values: Sequence[Symbol], dim: int) -> Symbol:
        """Values side by side along a dimension."""
        return values[0] if len(values) == 1 else self.node("Concat", values, dtype=values[0].dtype, axis=dim)

    def alone(self, wanted: Iterable[str]) -> None:
        """Remove nodes and initializers on which no wanted value depends."""
        needed, kept = {*wanted}, []
        for node in reversed(self.nodes):
            if needed.intersection(node.outputs):
                kept.append(node)
                needed.update(node.inputs)
        for name in self.missing.keys() & needed:
            raise NotExpressed(self.missing[name])
        self.nodes = kept[::-1]
        self.initializers = {name: a for name, a in self.initializers.items() if name in needed}


def short_shape(given: tuple | None, shape: tuple) -> list[int | Size]:
    """A shape as ONNX's Reshape takes it: 0 for a dynamic size of the same dimension of the input, -1 for the last
    other dynamic size."""
    short: list[int | Size] = [*shape]
    if given is not None and (sum(isinstance(n, Size) for n in shape) > 1 or -1 in shape):
        short = [0 if isinstance(n, Size) and given[k : k + 1] == (n,) else n for k, n in enumerate(shape)]
    left = [k for k, n in enumerate(short) if isinstance(n, Size)]
    if len(left) == 1 and -1 not in short:
        short[left[0]] = -1
    return short
