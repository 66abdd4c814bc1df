"""Recurrent layers: one op for each direction of a layer. Backward through time is an op, too, and its derivative is
composed of ops.

Each op takes the tensors as a list, because a single pass back through time computes all gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rushlight.core.backward import grad
from rushlight.core.build import build, inner
from rushlight.core.tensor import Tensor, from_array
from rushlight.core.worlds import ARRAYS, TENSORS, shared
from rushlight.kernels import recurrent as kernels
from rushlight.kernels.recurrent import bias_and_projection, steps_of
from rushlight.ops.grad_mode import enable_grad
from rushlight.ops.linalg.matmul import linear
from rushlight.ops.math.elementwise import add
from rushlight.ops.nn.recurrent_cells import gru_gates, lstm_gates, relu_gate, tanh_gate
from rushlight.ops.shape.view_functions import chunk
from rushlight.ops.shape.views import cat, clone, narrow, reshape

if TYPE_CHECKING:  # names in rules, provided by the rule's world (core/worlds.py)
    from rushlight.core.rule_names import gru, gru_twice, lstm, lstm_twice, rnn, rnn_twice

for name in ("lstm", "lstm_back", "gru", "gru_back", "rnn", "rnn_back"):
    ARRAYS[name] = getattr(kernels, name)


def sizes_of_layer(states: int, saved: bool) -> Callable:
    """The `sizes` function of a recurrent layer with `states` states: the outputs of all steps, the last states, and,
    if `saved`, the array saved for backward (without elements).
    """

    def sizes(tensors: Sequence[Any], *how: Any) -> list[tuple]:
        x, *given = tensors[: 1 + states]
        out = [((*x.shape[:-1], given[0].shape[-1]), x.dtype), *[(h.shape, x.dtype) for h in given]]
        return [*out, ((0,), x.dtype)] if saved else out

    return sizes


# tensors: x h c weight [bias] [projection] -> out h c, and the array saved for backward
# fmt: off
lstm_layer = inner(lambda tensors, /, sizes, reverse: lstm(tensors, sizes, reverse),
    tensors=lambda gs, tensors, out, saved, sizes, reverse: lstm_back(
        joined(tensors, out, saved, gs[0], gs[1], gs[2]), sizes, reverse
    ),
    outputs="out h c saved", fixed=3, node="MkldnnRnnLayerBackward0", sizes=sizes_of_layer(2, True))
lstm_back = inner(lambda tensors, /, sizes, reverse: lstm_back(tensors, sizes, reverse),
    tensors=lambda gs, tensors, sizes, reverse: lstm_twice(gs, tensors, sizes, reverse), list=True)
# tensors: x h weight [bias] -> out h, and the array saved for backward
# users may write to `out`, as in torch
gru_layer = inner(lambda tensors, /, sizes, reverse: gru(tensors, sizes, reverse),
    tensors=lambda gs, tensors, out, saved, sizes, reverse: gru_back(
        joined(tensors, out, saved, gs[0], gs[1]), sizes, reverse
    ),
    outputs="out h saved", fixed=2, node="StackBackward0", apart="out", sizes=sizes_of_layer(1, True))
gru_back = inner(lambda tensors, /, sizes, reverse: gru_back(tensors, sizes, reverse),
    tensors=lambda gs, tensors, sizes, reverse: gru_twice(gs, tensors, sizes, reverse), list=True)
# tensors: x h weight [bias] -> out h
rnn_layer = inner(lambda tensors, /, relu, sizes, reverse: rnn(tensors, relu, sizes, reverse),
    tensors=lambda gs, tensors, out, relu, sizes, reverse: rnn_back(
        joined(tensors, out, gs[0], gs[1]), relu, sizes, reverse
    ),
    outputs="out h", node="StackBackward0", apart="out", sizes=sizes_of_layer(1, False))
rnn_back = inner(lambda tensors, /, relu, sizes, reverse: rnn_back(tensors, relu, sizes, reverse),
    tensors=lambda gs, tensors, relu, sizes, reverse: rnn_twice(gs, tensors, relu, sizes, reverse), list=True)
# fmt: on


@shared
def joined(tensors, *more):
    return [*tensors, *more]


# -- the layers composed of ops: their definition, and their second derivatives --------

Cell = Callable[..., tuple[Tensor, ...]]


def lstm_cell(x: Tensor, h: Tensor, c: Tensor, weight: Tensor, *more: Tensor) -> tuple[Tensor, Tensor]:
    """x (n, 4 H) and the previous state -> h, c; more: a bias, a projection."""
    bias, projection = bias_and_projection(more)
    i, f, g, o = chunk(add(x, linear(h, weight, bias)), 4, 1)
    h, c, _ = lstm_gates(i, f, g, o, c)
    return (h if projection is None else linear(h, projection, None)), c


def gru_cell(x: Tensor, h: Tensor, weight: Tensor, bias: Tensor | None = None) -> tuple[Tensor]:
    """x (n, 3 H) and the previous state -> h."""
    (x_r, x_z, x_n), (h_r, h_z, h_n) = chunk(x, 3, 1), chunk(linear(h, weight, bias), 3, 1)
    return gru_gates(add(x_r, h_r), add(x_z, h_z), x_n, h_n, h)[:1]


def rnn_tanh_cell(x: Tensor, h: Tensor, weight: Tensor, bias: Tensor | None = None) -> tuple[Tensor]:
    return tanh_gate(add(x, linear(h, weight, bias)))[:1]


def rnn_relu_cell(x: Tensor, h: Tensor, weight: Tensor, bias: Tensor | None = None) -> tuple[Tensor]:
    return relu_gate(add(x, linear(h, weight, bias)))[:1]


def unrolled(
    cell: Cell, states: int, tensors: Sequence[Tensor], sizes: tuple | None, reverse: bool
) -> tuple[Tensor, ...]:
    """The outputs and last states of a cell that runs over the rows of x. tensors: x, the states, the weights."""
    x, state, weights = tensors[0], tensors[1 : 1 + states], tensors[1 + states :]
    rows, batch = reshape(x, (-1, x._array.shape[-1])), state[0]._array.shape[0]
    outs, now = [], list(state)
    for a, b in steps_of(x._array, batch, sizes, reverse).spans:
        new = cell(narrow(rows, 0, a, b - a), *[narrow(s, 0, 0, b - a) for s in now], *weights)
        outs.append(new[0])
        now = [s if b - a == batch else cat([s, narrow(old, 0, b - a, batch - b + a)]) for s, old in zip(new, now)]
    out = cat(outs[::-1] if reverse else outs)
    return (reshape(out, (*x._array.shape[:-1], out._array.shape[-1])), *now)


def derivative(
    cell: Cell,
    states: int,
    gs: Sequence,
    tensors: Sequence[Tensor],
    sizes: tuple | None,
    reverse: bool,
    create_graph: bool,
) -> list[Tensor | None]:
    """The derivative of a `_back` op: gradients of its inputs (inputs, saved outputs, gradients of out and states) from
    the gradients of its results.

    The layer is computed again by ops, and differentiated twice. Saved outputs depend on the inputs: no gradient."""
    inputs, gradients = tensors[: len(gs)], tensors[-1 - states :]
    with enable_grad():
        x, g = [copy(t) for t in inputs], [copy(t) for t in gradients]
        first = grad(unrolled(cell, states, x, sizes, reverse), x, g, create_graph=True)
        found = grad(first, [*x, *g], gs, create_graph=create_graph, allow_unused=True)
    between = len(tensors) - len(inputs) - len(gradients)
    return [*found[: len(x)], *(None,) * between, *found[len(x) :]]


def copy(t: Tensor) -> Tensor:
    """The tensor with a new node, so that the gradient stops here even if the tensor has a graph."""
    t = clone(t)
    return t if t._node is not None else t.requires_grad_()


def twice(name: str, cell: Callable[..., Cell], states: int) -> None:
    """Make `derivative` available to rules, in both worlds: name(gs, tensors, *settings of the cell, sizes,
    reverse).
    """

    def tensors(gs: Sequence, given: Sequence[Tensor], *settings: Any, create_graph: bool = True) -> list:
        *own, sizes, reverse = settings
        return derivative(cell(*own), states, gs, given, sizes, reverse, create_graph)

    def arrays(gs: Sequence, given: Sequence, *settings: Any) -> list:
        found = tensors([*map(from_array, gs)], [*map(from_array, given)], *settings, create_graph=False)
        return [None if t is None else t._array for t in found]

    TENSORS[name], ARRAYS[name] = tensors, arrays


twice("lstm_twice", lambda: lstm_cell, 2)
twice("gru_twice", lambda: gru_cell, 1)
twice("rnn_twice", lambda relu: rnn_relu_cell if relu else rnn_tanh_cell, 1)

build(globals())
