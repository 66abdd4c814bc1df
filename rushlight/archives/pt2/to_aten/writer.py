"""Writes calls of ATen's operators as nodes of a graph in JSON.

Each call also runs, by `aten/table.py`, on the values of the example: the shapes of the results come from there, and so
does the check that the written program computes what the model computes. If dimensions are dynamic, there are several
examples, one for each trace of the model: a size that differs between them is a `Size`, and the program computes it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rushlight.archives.aten import table
from rushlight.archives.pt2.schema import CPU, NUMBERS, STRIDED, written_number
from rushlight.base.dtypes import dtype as dtype_class
from rushlight.core.tensor import Tensor
from rushlight.onnx.to_onnx.sizes import NotExpressed, Numbers, Size, Varying, together

from .dynamic_sizes import DynamicSizes, Number, SizeName, expression, in_trace, result_of
from .schemas import SCHEMAS


class Symbol(NamedTuple):
    """A value of the graph: its name, and its tensor in each example's run."""

    name: str
    tensors: tuple[Tensor, ...]

    @property
    def tensor(self) -> Tensor:
        """The tensor in the first example's run."""
        return self.tensors[0]

    @property
    def shape(self) -> tuple[Any, ...]:
        """The shape: integers, and a Size where the examples differ."""
        return tuple(map(together, zip(*[t.shape for t in self.tensors])))

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.tensor.ndim


class Writer:
    """The nodes of a graph, and the types of its values. `constants`: tensors that the graph takes as inputs. `dims`:
    {name of a symbol: the sizes of its dimension in the examples}, `count`: the number of examples."""

    def __init__(self, dims: dict[str, Numbers], count: int) -> None:
        self.sizes, self.count = DynamicSizes(dims), count
        self.dimensions: dict[str, tuple[Symbol, int]] = {}  # name of a symbol -> an input and its dimension
        self.numbers: dict[Any, Number] = {}  # integers that nodes compute
        self.integers: dict[str, Any] = {}  # the types of these integers
        self.nodes: list[dict[str, Any]] = []
        self.types: dict[str, Any] = {}
        self.taken: set[str] = set()
        self.constants: dict[str, Symbol] = {}

    def unique(self, stem: str) -> str:
        """A new name of a value."""
        stem = re.sub(r"\W", "_", stem) or "value"
        name, number = stem, 0
        while name in self.taken:
            number += 1
            name = f"{stem}_{number}"
        self.taken.add(name)
        return name

    def value(self, stem: str, tensors: Sequence[Tensor]) -> Symbol:
        """A new value, given from each example."""
        if len({(t.ndim, t.dtype) for t in tensors}) > 1:
            raise NotExpressed("its result has another number of dimensions for other sizes")
        name = self.unique(stem)
        made = Symbol(name, tuple(tensors))
        self.types[name] = self.meta(made)
        return made

    def fixed(self, stem: str, tensor: Tensor) -> Symbol:
        """A new value that all examples share."""
        return self.value(stem, (tensor,) * self.count)

    def constant(self, array: np.ndarray) -> Symbol:
        """A tensor that is known: a number as a call of `full`, larger ones as an input of the graph."""
        tensor = table.found("tensor")(np.array(array))
        if not array.ndim and array.dtype.kind in "biuf":
            return self.call("full.default", [], array.item(), dtype=tensor.dtype)
        made = self.fixed("c_lifted_tensor", tensor)
        self.constants[made.name] = made
        return made

    def call(self, target: str, *args: Any, **named: Any) -> Any:
        """The result of an operator, or a list of its results."""
        names, by_name = SCHEMAS[target]
        if len(args) > len(names) or not {*named} <= {*by_name}:
            raise NotExpressed(f"aten.{target} has other arguments")
        name = target.partition(".")[0]
        found = [self.run(name, args, named, k) for k in range(self.count)]
        made: Any
        if isinstance(found[0], (list, tuple)):
            if len({len(each) for each in found}) > 1:
                raise NotExpressed("the number of its results depends on a dynamic dimension")
            made = [self.value(name, tensors) for tensors in zip(*found)]
            several = isinstance(found[0], list)
            outs = [{"as_tensors": [{"name": s.name} for s in made]}] if several else [tensor_argument(s) for s in made]
        else:
            made = self.value(name, found)
            outs = [tensor_argument(made)]
        inputs = [{"name": n, "arg": self.argument(a), "kind": 1} for n, a in zip(names, args)]
        inputs += [{"name": n, "arg": self.argument(a), "kind": 2} for n, a in named.items()]
        title = made.name if isinstance(made, Symbol) else self.unique(name)
        self.node(f"torch.ops.aten.{target}", inputs, outs, title)
        return made

    def run(self, name: str, args: tuple, named: dict[str, Any], k: int) -> Any:
        """The result of an operator in example k."""
        return table.found(name)(
            *[example(a, k) for a in args], **{key: example(value, k) for key, value in named.items()}
        )

    def node(self, target: str, inputs: list[Any], outs: list[Any], name: str) -> None:
        """Append a node."""
        self.nodes.append({
            "target": target, "inputs": inputs, "outputs": outs, "metadata": {}, "is_hop_single_tensor_return": None,
            "name": name,
        })  # fmt: skip

    # -- sizes -----------------------------------------------------------------------------------------

    def argument(self, value: Any) -> dict[str, Any]:
        """An argument as JSON; nodes compute the sizes in it."""
        return argument(self.with_names(value))

    def with_names(self, value: Any) -> Any:
        """An argument with names in place of sizes."""
        if isinstance(value, Size):
            return self.sizes.computed(value, self.dimension, self.arithmetic).symbol
        if isinstance(value, Varying):
            raise NotExpressed("a number in its arguments depends on a dynamic dimension")
        return [*map(self.with_names, value)] if type(value) in (list, tuple) else value

    def dimension(self, name: str) -> SizeName:
        """The integer that reads a dynamic dimension."""
        if name not in self.numbers:
            symbol, axis = self.dimensions[name]
            size = symbol.shape[axis]
            inputs = [
                {"name": "self", "arg": tensor_argument(symbol), "kind": 1},
                {"name": "dim", "arg": argument(axis), "kind": 1},
            ]
            self.integer(name, "torch.ops.aten.sym_size.int", inputs, Number(0, size, self.sizes.text(size)))
        return self.numbers[name].symbol  # type: ignore[return-value]

    def arithmetic(self, operator: str, a: Number, b: Number) -> Number:
        """The integer that an operator computes."""
        key = operator, a.symbol, b.symbol
        if key not in self.numbers:
            value, text = result_of(operator, a, b)
            inputs = [{"name": n, "arg": argument(each.symbol), "kind": 1} for n, each in (("a", a), ("b", b))]
            self.integer(key, f"_operator.{operator}", inputs, Number(0, value, text))
        return self.numbers[key]

    def integer(self, key: Any, target: str, inputs: list[Any], made: Number) -> None:
        """A node that computes an integer."""
        name = SizeName(self.unique(target.rpartition(".")[2] if target.startswith("_") else "sym_size"))
        self.integers[name.name] = expression(made.text, in_trace(made.value, 0))
        self.node(target, inputs, [{"as_sym_int": {"as_name": name.name}}], name.name)
        self.numbers[key] = made._replace(symbol=name)

    def meta(self, symbol: Symbol) -> dict[str, Any]:
        """The type of a value as JSON; its elements are in C order."""
        made, shape = meta(symbol.tensor), symbol.shape
        if not any(isinstance(n, Size) for n in shape):
            return made
        kept = [*zip(shape, made["sizes"])]
        sizes = [expression(self.sizes.text(n), in_trace(n, 0)) if isinstance(n, Size) else old for n, old in kept]
        strides = []
        for k, old in enumerate(made["strides"]):
            rest = shape[k + 1 :]
            varies = any(isinstance(n, Size) for n in rest)
            strides.append(expression(self.sizes.product(rest), old["as_int"]) if varies else old)
        return {**made, "sizes": sizes, "strides": strides}


def example(value: Any, k: int) -> Any:
    """An argument in example k: tensors in place of symbols, integers in place of sizes."""
    if isinstance(value, Symbol):
        return value.tensors[k]
    if isinstance(value, Varying):
        return value.values[k]
    return [example(part, k) for part in value] if isinstance(value, (list, tuple)) else in_trace(value, k)


def tensor_argument(symbol: Symbol) -> dict[str, Any]:
    return {"as_tensor": {"name": symbol.name}}


def argument(value: Any) -> dict[str, Any]:
    """An argument as JSON."""
    if isinstance(value, Symbol):
        return tensor_argument(value)
    if isinstance(value, SizeName):
        return {"as_sym_int": {"as_name": value.name}}
    if value is None:
        return {"as_none": True}
    if isinstance(value, dtype_class):
        return {"as_scalar_type": NUMBERS[value]}
    if isinstance(value, (bool, np.bool_)):
        return {"as_bool": bool(value)}
    if isinstance(value, (int, np.integer)):
        return {"as_int": int(value)}
    if isinstance(value, (float, np.floating)):
        return {"as_float": written_number(float(value))}
    if isinstance(value, str):
        return {"as_string": value}
    if isinstance(value, (list, tuple)):
        return list_argument([*value])
    raise NotExpressed(f"ATen takes no {type(value).__name__} as an argument")


def list_argument(values: list[Any]) -> dict[str, Any]:
    """A list as JSON: of tensors, of tensors and None, of integers, or of floats."""
    if any(isinstance(v, SizeName) for v in values):
        return {"as_sym_ints": [{"as_name": v.name} if isinstance(v, SizeName) else argument(v) for v in values]}
    if any(isinstance(v, Symbol) for v in values):
        if any(v is None for v in values):
            return {"as_optional_tensors": [argument(v) for v in values]}
        return {"as_tensors": [{"name": v.name} for v in values]}
    if all(isinstance(v, (bool, np.bool_)) for v in values) and values:
        return {"as_bools": [bool(v) for v in values]}
    if all(isinstance(v, (int, np.integer)) for v in values):
        return {"as_ints": [int(v) for v in values]}
    return {"as_floats": [written_number(float(v)) for v in values]}


def meta(tensor: Tensor, requires_grad: bool | None = None) -> dict[str, Any]:
    """The type of a tensor as JSON; its elements are in C order."""
    shape, strides, step = [int(n) for n in tensor.shape], [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return {
        "dtype": NUMBERS[tensor.dtype], "sizes": [{"as_int": n} for n in shape],
        "requires_grad": bool(tensor.requires_grad if requires_grad is None else requires_grad), "device": CPU,
        "strides": [{"as_int": n} for n in reversed(strides)], "storage_offset": {"as_int": 0}, "layout": STRIDED,
    }  # fmt: skip
