"""LSTM, GRU and RNN as ONNX's own operators.

A step of this library gets the product of the input with its weights. ONNX's operator takes the input and the
weights, so the product is found and undone. ONNX has the gates in another order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rushlight.onnx.to_onnx.onnx_graph import NotExpressed, Symbol
from rushlight.onnx.to_onnx.rules import Step, expresses, unused
from rushlight.ops.linalg.matmul import linear
from rushlight.ops.math.elementwise import add
from rushlight.ops.nn import recurrent
from rushlight.ops.shape.views import contiguous, transpose


class Cell(NamedTuple):
    """An ONNX operator: its gates' places in this library's order, its number of states, and attributes."""

    operator: str
    order: tuple[int, ...]
    states: int
    attributes: dict[str, Any]


LSTM = Cell("LSTM", (0, 3, 1, 2), 2, {})  # i f g o -> i o f c
GRU = Cell("GRU", (1, 0, 2), 1, {"linear_before_reset": 1})  # r z n -> z r h
RNN = Cell("RNN", (0,), 1, {})


@expresses(recurrent.lstm_layer)
def write_lstm(step: Step) -> list:
    tensors, sizes, reverse = step.args
    unused(step, 3)
    if len(tensors) > 5 or len(tensors) == 5 and tensors[4].ndim == 2:
        raise NotExpressed("ONNX's LSTM has no projection (proj_size)")
    return [*layer(step, LSTM, tensors, sizes, reverse), None]


@expresses(recurrent.gru_layer)
def write_gru(step: Step) -> list:
    tensors, sizes, reverse = step.args
    unused(step, 2)
    return [*layer(step, GRU, tensors, sizes, reverse), None]


@expresses(recurrent.rnn_layer)
def write_rnn(step: Step) -> list:
    tensors, relu, sizes, reverse = step.args
    cell = RNN._replace(attributes={"activations": ["Relu" if relu else "Tanh"]})
    return layer(step, cell, tensors, sizes, reverse)


def layer(step: Step, cell: Cell, tensors: Sequence[Symbol], sizes: Any, reverse: bool) -> list[Symbol]:
    """The outputs (T, N, H) and the last states (N, H) of one direction."""
    if sizes is not None:
        raise NotExpressed("its sequences have different lengths (a PackedSequence)")
    graph, x, states = step.graph, tensors[0], tensors[1 : 1 + cell.states]
    recurrent_weight, *bias = tensors[1 + cell.states :]
    alone = x.ndim == 2  # a single step
    if alone and x.shape[0] != states[0].shape[0]:
        raise NotExpressed("its steps are rows of one matrix")
    x, weight, input_bias = input_of(step, x, len(cell.order), states[0].shape[-1])
    if alone:
        x = graph.unsqueezed(x, [0])
    hidden = states[0].shape[-1]
    shapes = [(x.shape[0], 1, *states[0].shape), *[(1, *s.shape) for s in states]]
    inputs = [
        x, gates(weight, cell.order), gates(recurrent_weight, cell.order),
        biases(step, cell, input_bias, bias[0] if bias else None, hidden), None,
        *[graph.unsqueezed(s, [0]) for s in states],
    ]  # fmt: skip
    out, *last = graph.nodes_of(
        cell.operator, inputs, [(x.dtype, shape) for shape in shapes], hidden_size=hidden,
        direction="reverse" if reverse else "forward", **cell.attributes,
    )  # fmt: skip
    return [graph.squeezed(out, [0, 1] if alone else [1]), *[graph.squeezed(state, [0]) for state in last]]


def input_of(step: Step, x: Symbol, gates: int, hidden: int) -> tuple[Symbol, Symbol, Symbol | None]:
    """(input, weight, bias) of the product x; x itself with the identity as its weight, if no product is found."""
    made, turned = step.made_by.get(x.name), False
    while made is not None and made.runs(transpose, contiguous):
        if made.runs(transpose):
            if {d % made.args[0].ndim for d in made.args[1:]} != {0, 1}:
                break
            turned = not turned
        made = step.made_by.get(made.args[0].name)
    if made is None or not made.runs(linear) or made.args[0].ndim != x.ndim:
        return x, step.graph.constant(np.eye(gates * hidden, dtype=x.dtype)), None
    source, weight, bias = made.args
    if turned:
        source = step.graph.transposed(source, [1, 0, *range(2, source.ndim)])
    return source, weight, bias


def biases(step: Step, cell: Cell, first: Symbol | None, second: Symbol | None, hidden: int) -> Symbol | None:
    """ONNX's bias: the bias of the input's product, then the bias of the state's, as one row. None if both are
    missing."""
    if first is None and second is None:
        return None
    made = None if second is None else step.made_by.get(second.name)
    if first is None and made is not None and made.runs(add) and all(a.ndim == 1 for a in made.args):
        first, second = made.args  # this library adds the two biases once
    zeros = np.zeros(len(cell.order) * hidden, (first or second).dtype)  # type: ignore[union-attr]
    parts = [step.graph.constant(zeros) if b is None else b for b in (first, second)]
    return joined([gates(part, cell.order) for part in parts], 1)


def gates(weight: Symbol, order: Sequence[int]) -> Symbol:
    """A weight (gates H, ...) with its gates in ONNX's order, as (1, gates H, ...)."""
    graph, count = weight.graph, len(order)
    if weight.array is not None:
        parts = np.split(weight.array, count)
        name = weight.name if weight.array.size > 64 else ""
        key = "gates", weight.name
        if key not in graph.same:
            graph.same[key] = graph.constant(np.concatenate([parts[k] for k in order])[None], name and f"{name}_gates")
        return graph.same[key]
    if count > 1:
        found = graph.nodes_of("Split", [weight], [(weight.dtype, None)] * count, axis=0, num_outputs=count)
        shape = weight.shape
        weight = graph.joined([found[k] for k in order], 0)
        weight.shape = shape
    return graph.unsqueezed(weight, [0])


def joined(parts: Sequence[Symbol], dim: int) -> Symbol:
    """Values side by side; constants as one constant."""
    if all(part.array is not None for part in parts):
        return parts[0].graph.constant(np.concatenate([part.array for part in parts], dim))
    return parts[0].graph.joined(parts, dim)
