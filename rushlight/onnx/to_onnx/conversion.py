"""Recorded graphs of one model as an ONNX graph.

`graphs`: the model's traces, which differ in the sizes of dynamic dimensions. Their steps must be the same; what
differs in settings and constants becomes arithmetic on sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rushlight.base.errors import place
from rushlight.compile.graph import Call, Graph, Store, Value, is_random
from rushlight.core.table import TABLE
from rushlight.onnx.to_onnx import complex_numbers, indexing, layers, recurrent, reductions, resampling, shapes
from rushlight.onnx.to_onnx.complex_numbers import Pair, pair_of
from rushlight.onnx.to_onnx.dynamic_dims import Dimension
from rushlight.onnx.to_onnx.elementwise import WORLD, written
from rushlight.onnx.to_onnx.example import Example
from rushlight.onnx.to_onnx.onnx_graph import INT64, NotExpressed, OnnxGraph, Symbol
from rushlight.onnx.to_onnx.rules import RULES, Result, Step
from rushlight.onnx.to_onnx.sizes import Ambiguous, Size, merged, together
from rushlight.ops.nn.pool import avg_pool_grad
from rushlight.ops.nn.resize import blend

TABLES = indexing, layers, recurrent, reductions, resampling, shapes  # loaded for their rules
MAX_RUNS = 8  # evenly spaced parts of a constant that depends on a dynamic dimension


class Conversion:
    """Writes the steps of a model's traces into an ONNX graph. `weights`: {id of an array: its name}. `taken`: the
    names of inputs and outputs. `problems`: a text for each step that ONNX cannot express."""

    def __init__(self, graphs: Sequence[Graph], taken: Sequence[str], weights: dict[int, str], opset: int):
        self.graphs, self.weights = graphs, weights
        self.onnx = OnnxGraph(opset)
        self.onnx.taken.update(taken)
        self.of: dict[Value, Any] = {}  # symbols, and pairs of symbols
        self.made_by: dict[str, Step] = {}
        self.problems: list[str] = []
        self.ambiguous: Ambiguous | None = None  # a problem that another trace may solve
        used = {v for step in graphs[0].steps for v in values_of(step.args)} | {*graphs[0].results}
        self.used = used

    def inputs(self, example: Example, dims: Sequence[Dimension], sizes: Sequence[tuple[int, ...]]) -> list[Symbol]:
        """The symbols of the inputs. `sizes`: of the dynamic dimensions, in each trace."""
        if any(a.dtype.kind == "c" for a in example.arrays):
            raise NotExpressed("an input is complex: pass its parts, and make it by torch.complex in the model")
        shapes: list[list[Any]] = [[*a.shape] for a in example.arrays]
        for dim, each in zip(dims, zip(*sizes)):
            for number, axis in dim.places:
                shapes[number][axis] = Size(each)
        symbols = [
            self.onnx.learned(Symbol(self.onnx, name, a.dtype, shape))
            for name, a, shape in zip(example.names, example.arrays, shapes)
        ]
        self.of.update({v: symbols[v.source[1]] for v in self.graphs[0].inputs if v.source[0] == "argument"})
        return symbols

    def write(self) -> None:
        """Write all steps."""
        first = self.graphs[0]
        for graph in self.graphs[1:]:
            if different := difference(first, graph):
                raise NotExpressed(
                    f"the model computes differently for other sizes of its dynamic dimensions: {different}"
                )
        for steps in zip(*[graph.steps for graph in self.graphs]):
            try:
                self.write_step(steps)
            except NotExpressed as error:
                self.ambiguous = error if isinstance(error, Ambiguous) else self.ambiguous
                self.problems.append(described(steps[0], str(error)))
                for v in steps[0].outs:
                    missing = Symbol(self.onnx, "missing", complex_numbers.part_type(v.dtype), v.shape)
                    self.of[v] = Pair(missing, missing) if v.dtype.kind == "c" else missing

    def write_step(self, steps: Sequence[Call | Store]) -> None:
        """Write the nodes of a step, which is given from each trace."""
        first = steps[0]
        if isinstance(first, Store):
            raise NotExpressed("an ONNX file keeps no state, and the step writes to a buffer of the model")
        if is_random(first):
            raise NotExpressed("the step draws random numbers")
        if not first.outs:
            return  # a check
        op = TABLE[first.op]
        try:
            args = self.argument([s.args for s in steps])
        except ValueError as error:
            raise NotExpressed(f"{error}, depending on a dynamic dimension") from None
        results = [self.result([s.outs[k] for s in steps]) for k in range(len(first.outs))]
        step = Step(op, self.onnx, args, tuple(results), self.made_by)
        if any(v.dtype.kind == "c" for v in (*values_of(first.args), *first.outs)):
            made = complex_numbers.written(step)
        elif op in RULES or op.elementwise:
            made = RULES[op](step) if op in RULES else written(step)
        else:
            raise NotExpressed("ONNX has no such operator")
        for v, result, symbol in zip(first.outs, results, made if isinstance(made, list) else [made]):
            if symbol is not None:
                self.of[v] = self.named(symbol, result)
                if isinstance(self.of[v], Symbol):
                    self.made_by[self.of[v].name] = step

    def named(self, symbol: Any, result: Result) -> Any:
        """The symbol of a step's result, with its shape; its sizes become known."""
        if isinstance(symbol, Pair):
            parts = result._replace(dtype=complex_numbers.part_type(result.dtype))
            return Pair(*[self.named(part, parts) for part in symbol])
        symbol = symbol.to(result.dtype)
        if symbol.shape is None or symbol.shape == result.shape:
            symbol.shape = result.shape
        else:
            symbol = Symbol(self.onnx, symbol.name, symbol.dtype, result.shape, symbol.array)
        return self.onnx.learned(symbol)

    def result(self, each: Sequence[Value]) -> Result:
        """A step's result, given from each trace."""
        return Result(each[0].dtype, shape_of(each), each[0] in self.used)

    def argument(self, each: Sequence[Any]) -> Any:
        """An argument, given from each trace: a symbol for a value, otherwise the setting."""
        first = each[0]
        if isinstance(first, Value):
            return self.symbol(each)
        if isinstance(first, (tuple, list)) and any(True for _ in values_of(first)) or each and type(first) is tuple:
            if any(len(a) != len(first) for a in each):
                raise ValueError("the number of its arguments varies")
            return type(first)([self.argument(several) for several in zip(*each)])
        return merged(each)

    # -- values ----------------------------------------------------------------------------------------

    def symbol(self, each: Sequence[Value]) -> Any:
        """The symbol of a value, given from each trace."""
        v = each[0]
        if v in self.of:
            return self.of[v]
        if v.kind == "constant":
            made = self.constant([np.asarray(value._array) for value in each])
        elif v.kind == "input" and v.source[0] == "state":
            made = self.weight(v.source[1]._array)
        else:
            raise NotExpressed("it reads a value that no step has made")
        self.of[v] = made
        return made

    def weight(self, array: np.ndarray) -> Any:
        """A parameter or buffer as an initializer of its name."""
        key = "weight", id(array)
        if key not in self.onnx.same:
            name = self.weights.get(id(array), "tensor")
            made = pair_of(self.onnx, array, name) if array.dtype.kind == "c" else self.onnx.constant(array, name)
            self.onnx.same[key] = made
        return self.onnx.same[key]

    def constant(self, each: Sequence[np.ndarray]) -> Any:
        """A constant of the traces, which may depend on dynamic sizes."""
        first = each[0]
        if all(a.shape == first.shape and a.tobytes() == first.tobytes() for a in each):
            return pair_of(self.onnx, first) if first.dtype.kind == "c" else self.onnx.constant(first)
        shape = tuple(map(together, zip(*[a.shape for a in each]))) if len({a.ndim for a in each}) == 1 else None
        if shape is None:
            raise NotExpressed("a constant has another number of dimensions for other sizes")
        if all(a.size and (a == a.flat[0]).all() for a in each):
            if all(a.flat[0] == first.flat[0] for a in each):
                return self.onnx.filled(shape, first.flat[0], first.dtype)
            number = self.varying([a.flat[0].item() for a in each]).to(first.dtype)
            return self.onnx.expanded(number, shape)
        if first.ndim == 1:
            return self.row(each, shape[0])
        if first.ndim == 2 and all((a == np.eye(*a.shape, dtype=a.dtype)).all() for a in each):
            zeros = self.onnx.filled(shape, 0, first.dtype)
            return zeros.named("EyeLike", shape=shape)
        raise NotExpressed("a constant depends on a dynamic dimension, and is neither equal numbers, a range nor eye()")

    def row(self, each: Sequence[np.ndarray], length: Any) -> Symbol:
        """A constant of one dimension, such as arange() and linspace() make."""
        if all(map(evenly_spaced, each)):
            return self.evenly_spaced(each, length)
        for pattern in (repeated, tiled):
            periods = [pattern(a) for a in each]
            if all(periods):
                return self.periodic(together(periods), length, each[0].dtype, pattern is repeated)
        several = [runs(a) for a in each]
        if each[0].dtype.kind not in "iu" or len({len(found) for found in several}) > 1 or len(several[0]) > MAX_RUNS:
            raise NotExpressed("a constant depends on a dynamic dimension, and is not evenly spaced")
        parts = [self.evenly_spaced(run, together([len(a) for a in run])) for run in zip(*several)]
        made = self.onnx.joined(parts, 0)
        made.shape = (length,)
        return made

    def periodic(self, period: Any, length: Any, dtype: np.dtype, quotient: bool) -> Symbol:
        """0 0 0 1 1 1, or 0 1 2 0 1 2: the quotient or the remainder of places by a period."""
        count, by = self.onnx.counted(length), self.onnx.scalar(period)
        found = count // by if quotient else count.named("Mod", by)
        found.shape = (length,)
        return found.to(dtype)

    def evenly_spaced(self, each: Sequence[np.ndarray], length: Any) -> Symbol:
        """start, start + step, ..."""
        dtype = each[0].dtype
        kind = np.float64 if dtype.kind == "f" else np.int64
        starts, ends = [[a[k].astype(kind).item() for a in each] for k in (0, -1)]
        steps = [(end - start) / (len(a) - 1) if len(a) > 1 else 0 for a, start, end in zip(each, starts, ends)]
        count, first = self.onnx.counted(length), self.varying(starts)
        if dtype.kind != "f":
            found = count * self.varying([int(step) for step in steps]).to(INT64) + first.to(INT64)
        elif len({*steps}) == 1:
            found = count.to(np.float64) * self.varying(steps).to(np.float64) + first.to(np.float64)
        else:  # linspace: the distance of the ends by the number of steps
            gaps = self.varying([end - start for start, end in zip(starts, ends)])
            less = WORLD["maximum"](self.onnx.scalar(length - 1), 1)
            found = count.to(np.float64) * (gaps.to(np.float64) / less.to(np.float64)) + first.to(np.float64)
        found.shape = (length,)
        return found.to(dtype)

    def varying(self, numbers: Sequence[float]) -> Symbol:
        """A number, given from each trace: a constant, or a function of sizes."""
        if len({*numbers}) == 1:
            return self.onnx.constant(np.array(numbers[0]))
        if all(n == int(n) for n in numbers):
            return self.onnx.scalar(together([int(n) for n in numbers]))
        values = np.array(numbers)
        for power in (0.5, -0.5, -1.0, -2.0, 2.0):
            for sizes, (value, dim) in self.onnx.known.items():
                scales = values / np.array(sizes, float) ** power
                if np.allclose(scales, scales[0], 1e-6, 0):
                    size = self.onnx.scalar(value.shape[dim]).to(np.float64)
                    return size**power * float(scales[0])
        raise NotExpressed(f"a number is {', '.join(map(str, numbers))}, depending on a dynamic dimension")


def evenly_spaced(a: np.ndarray) -> bool:
    """Whether all elements of a row have the same distance from the next one."""
    if len(a) < 3:
        return True
    wide = a.astype(np.float64)
    line = wide[0] + (wide[-1] - wide[0]) / (len(a) - 1) * np.arange(len(a))
    return bool(np.allclose(wide, line, 1e-6 * (a.dtype.kind == "f"), 1e-6 * np.abs(wide).max()))


def repeated(a: np.ndarray) -> int:
    """n for a row such as 0 0 0 1 1 1 (n = 3); 0 for other rows."""
    n = int(np.searchsorted(a, 1)) if len(a) and a.dtype.kind in "iu" else 0
    return n if n and (a == np.arange(len(a)) // n).all() else 0


def tiled(a: np.ndarray) -> int:
    """n for a row such as 0 1 2 0 1 2 (n = 3); 0 for other rows."""
    n = int(a.max(initial=-1)) + 1 if a.dtype.kind in "iu" else 0
    return n if n and (a == np.arange(len(a)) % n).all() else 0


def runs(a: np.ndarray) -> list[np.ndarray]:
    """A row, cut where the distance of neighbours changes: 2 1 0 1 2 3 as 2 1 0 and 1 2 3."""
    cuts, start = [], 0
    steps = np.diff(a)
    for k in range(1, len(steps)):
        if k > start and steps[k] != steps[start]:
            cuts.append(k + 1)
            start = k + 1
    return np.split(a, cuts)


def shape_of(each: Sequence[Value]) -> tuple:
    """The shape of a value, given from each trace."""
    if len({len(v.shape) for v in each}) > 1:
        raise NotExpressed("a result has another number of dimensions for other sizes")
    return tuple(map(together, zip(*[v.shape for v in each])))


def values_of(args: Any) -> Any:
    """The values among arguments, also inside lists and tuples."""
    for a in args:
        if isinstance(a, Value):
            yield a
        elif isinstance(a, (list, tuple)):
            yield from values_of(a)


def resized_alike(graph: Graph) -> int:
    """Write all resizings of a trace as one step for each dimension; the number of these steps. A resizing to the same
    size is left out, so this number may differ between traces."""
    graph.steps = [part for step in graph.steps for part in resizings(step)]
    return sum(step.runs(blend) for step in graph.steps)


def resizings(step: Any) -> list[Any]:
    """A step that repeats all elements of an image equally often, as the resizings of each dimension that other sizes
    would need; any other step as it is."""
    if not step.runs(avg_pool_grad) or step.args[2] != step.args[3] or any(step.args[4]) or step.args[7] != 1:
        return [step]
    x, size, made = step.args[0], step.args[1], []
    dims = [d for d in reversed(range(2, len(x.shape))) if x.shape[d] != size[d - 2]]  # the last dimension first
    for dim in dims:
        out = size[dim - 2]
        shape = (*x.shape[:dim], out, *x.shape[dim + 1 :])
        y = step.outs[0] if dim == dims[-1] else Value(np.broadcast_to(np.zeros((), x.dtype), shape))
        how = ("nearest", x.shape[dim], out, x.shape[dim] / out, 0.0)
        made.append(Call(blend.op.name, (x, dim, how, False), (y,), step.line))
        x = y
    return made


def difference(first: Graph, other: Graph) -> str:
    """The first step that differs between two traces; "" if there is none."""
    for a, b in zip(first.steps, other.steps):
        if a.op != b.op or len(a.outs) != len(b.outs):
            return f"{described(a)}, or {b.op}"
    if len(first.steps) != len(other.steps):
        return f"it has {len(first.steps)} or {len(other.steps)} steps"
    return ""


def described(step: Any, reason: str = "") -> str:
    """`sort of float32[2, 3] -> float32[2, 3], at file.py:3: y = x.sort(): the reason`"""
    given = ", ".join([f"{v.dtype.name}{list(v.shape)}" for v in values_of(step.args)])
    made = ", ".join([f"{v.dtype.name}{list(v.shape)}" for v in step.outs])
    where = f"\n    at {place(*step.line)}" if step.line else ""
    arrow = f" -> {made}" if made else ""
    return f"{step.op} of {given}{arrow}{f': {reason}' if reason else ''}{where}"
