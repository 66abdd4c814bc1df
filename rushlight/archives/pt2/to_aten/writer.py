"""Writes calls of ATen's operators as nodes of a graph in JSON.

Each call also runs, by `aten/table.py`, on the values of the example: the shapes of the results come from there, and so
does the check that the written program computes what the model computes."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

from rushlight.archives.aten import table
from rushlight.archives.pt2.schema import CPU, NUMBERS, STRIDED, written_number
from rushlight.base.dtypes import dtype as dtype_class
from rushlight.core.tensor import Tensor

from .schemas import SCHEMAS


class NotExpressed(Exception):
    """ATen has no operators that express a step."""


class Symbol(NamedTuple):
    """A value of the graph: its name, and its tensor in the example's run."""

    name: str
    tensor: Tensor

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape in the example's run."""
        return tuple(self.tensor.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)


class Writer:
    """The nodes of a graph, and the types of its values. `constants`: tensors that the graph takes as inputs."""

    def __init__(self) -> None:
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

    def value(self, stem: str, tensor: Tensor) -> Symbol:
        """A new value."""
        name = self.unique(stem)
        self.types[name] = meta(tensor)
        return Symbol(name, tensor)

    def constant(self, array: np.ndarray) -> Symbol:
        """A tensor that is known: a number as a call of `full`, larger ones as an input of the graph."""
        tensor = table.found("tensor")(np.array(array))
        if not array.ndim and array.dtype.kind in "biuf":
            return self.call("full.default", [], array.item(), dtype=tensor.dtype)
        made = self.value("c_lifted_tensor", tensor)
        self.constants[made.name] = made
        return made

    def call(self, target: str, *args: Any, **named: Any) -> Any:
        """The result of an operator, or a list of its results."""
        names, by_name = SCHEMAS[target]
        if len(args) > len(names) or not {*named} <= {*by_name}:
            raise NotExpressed(f"aten.{target} has other arguments")
        name = target.partition(".")[0]
        found = table.found(name)(*map(example, args), **{key: example(value) for key, value in named.items()})
        made: Any
        if isinstance(found, (list, tuple)):
            made = [self.value(name, tensor) for tensor in found]
            several = isinstance(found, list)
            outs = [{"as_tensors": [{"name": s.name} for s in made]}] if several else [tensor_argument(s) for s in made]
        else:
            made = self.value(name, found)
            outs = [tensor_argument(made)]
        inputs = [{"name": n, "arg": argument(a), "kind": 1} for n, a in zip(names, args)]
        inputs += [{"name": n, "arg": argument(a), "kind": 2} for n, a in named.items()]
        self.nodes.append({
            "target": f"torch.ops.aten.{target}", "inputs": inputs, "outputs": outs, "metadata": {},
            "is_hop_single_tensor_return": None, "name": made.name if isinstance(made, Symbol) else self.unique(name),
        })  # fmt: skip
        return made


def example(value: Any) -> Any:
    """An argument with tensors in place of symbols."""
    if isinstance(value, Symbol):
        return value.tensor
    return [example(part) for part in value] if isinstance(value, (list, tuple)) else value


def tensor_argument(symbol: Symbol) -> dict[str, Any]:
    return {"as_tensor": {"name": symbol.name}}


def argument(value: Any) -> dict[str, Any]:
    """An argument as JSON."""
    if isinstance(value, Symbol):
        return tensor_argument(value)
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
