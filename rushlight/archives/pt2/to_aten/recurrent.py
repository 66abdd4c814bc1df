"""LSTM, GRU and RNN as ATen's layers.

A step of this library gets the product of the input with its weights. ATen's layer takes the input and the weights, so
the product is found and undone; if there is none, the weight is the identity."""

from __future__ import annotations

from typing import Any

from rushlight.ops.linalg.matmul import linear
from rushlight.ops.math.elementwise import add
from rushlight.ops.nn import recurrent
from rushlight.ops.shape.views import contiguous, transpose

from .rules import Step, expresses
from .writer import NotExpressed, Symbol


@expresses(recurrent.lstm_layer)
def write_lstm(step: Step) -> list:
    tensors, sizes, reverse = step.args
    step.unused(3)
    if len(tensors) > 5 or len(tensors) == 5 and tensors[4].ndim == 2:
        raise NotExpressed("its output is projected (proj_size)")
    return [*layer(step, "lstm.input", 2, tensors, sizes, reverse), None]


@expresses(recurrent.gru_layer)
def write_gru(step: Step) -> list:
    tensors, sizes, reverse = step.args
    step.unused(2)
    return [*layer(step, "gru.input", 1, tensors, sizes, reverse), None]


@expresses(recurrent.rnn_layer)
def write_rnn(step: Step) -> list:
    tensors, relu, sizes, reverse = step.args
    return layer(step, "rnn_relu.input" if relu else "rnn_tanh.input", 1, tensors, sizes, reverse)


def layer(step: Step, target: str, states: int, tensors: Any, sizes: Any, reverse: bool) -> list[Symbol]:
    """The outputs (T, N, H) and the last states (N, H) of one direction."""
    if sizes is not None:
        raise NotExpressed("its sequences have different lengths (a PackedSequence)")
    x, first, (weight, *bias) = tensors[0], tensors[1 : 1 + states], tensors[1 + states :]
    alone = x.ndim == 2  # a single step
    if alone and x.shape[0] != first[0].shape[0]:
        raise NotExpressed("its steps are rows of one matrix")
    x, input_weight, input_bias = input_of(step, x)
    biases = both(step, input_bias, bias[0] if bias else None, weight)
    x = step.call("unsqueeze.default", x, 0) if alone else x
    x = step.call("flip.default", x, [0]) if reverse else x
    first = [step.call("unsqueeze.default", s, 0) for s in first]
    given = first if states == 2 else first[0]
    out, *last = step.call(target, x, given, [input_weight, weight, *biases], bool(biases), 1, 0.0, False, False, False)
    out = step.call("flip.default", out, [0]) if reverse else out
    out = step.call("select.int", out, 0, 0) if alone else out
    return [out, *[step.call("select.int", s, 0, 0) for s in last]]


def input_of(step: Step, x: Symbol) -> tuple[Symbol, Symbol, Symbol | None]:
    """(input, weight, bias) of the product x; x itself with the identity as its weight, if no product is found."""
    made, turned = step.made_by.get(x.name), False
    while made is not None and made.runs(transpose, contiguous):
        if made.runs(transpose):
            if {d % made.args[0].ndim for d in made.args[1:]} != {0, 1}:
                break
            turned = not turned
        made = step.made_by.get(made.args[0].name)
    if made is None or not made.runs(linear) or made.args[0].ndim != x.ndim:
        return x, step.call("eye.default", x.shape[-1], dtype=x.tensor.dtype), None
    source, weight, bias = made.args
    return step.call("transpose.int", source, 0, 1) if turned else source, weight, bias


def both(step: Step, first: Symbol | None, second: Symbol | None, weight: Symbol) -> list[Symbol]:
    """The biases of the input's product and of the state's; none if both are missing."""
    if first is None and second is None:
        return []
    made = None if second is None else step.made_by.get(second.name)
    if first is None and made is not None and made.runs(add) and all(a.ndim == 1 for a in made.args):
        return [*made.args]  # this library adds the two biases once
    zeros = step.call("zeros.default", [weight.shape[0]], dtype=weight.tensor.dtype)
    return [zeros if first is None else first, zeros if second is None else second]
