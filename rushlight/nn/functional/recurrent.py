"""Recurrent networks: layers, both directions, and single steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from rushlight.base.errors import runtime_error
from rushlight.core.tensor import Tensor
from rushlight.core.views import unregistered
from rushlight.nn.functional.dropout import dropout as drop
from rushlight.ops.linalg.matmul import linear
from rushlight.ops.math.elementwise import add
from rushlight.ops.nn.recurrent import gru_layer, lstm_layer, rnn_layer
from rushlight.ops.shape.view_functions import unbind
from rushlight.ops.shape.views import cat, contiguous, stack, transpose
from rushlight.ops.tensor.node_names import called

Sizes = tuple[int, ...] | None


class Weights(NamedTuple):
    """The weights of one direction of a layer: (gates H, in), (gates H, P), twice (gates H,), (P, H)."""

    weight_ih: Tensor
    weight_hh: Tensor
    bias_ih: Tensor | None = None
    bias_hh: Tensor | None = None
    weight_hr: Tensor | None = None


Direction = Callable[[Tensor, Sequence[Tensor], Weights, Sizes, bool, bool], tuple]


def lstm_direction(
    x: Tensor, states: Sequence[Tensor], w: Weights, sizes: Sizes, reverse: bool, first: bool = False
) -> tuple:
    """x (T, N, in), (N, T, in) if the batch is `first`, or rows of packed steps with `sizes`; h, c -> out (T, N, P) or
    rows, h, c."""
    projection = [] if w.weight_hr is None else [w.weight_hr]
    operands = [input_projection(x, w, first), *states, w.weight_hh, *summed_bias(w), *projection]
    return lstm_layer(operands, sizes, reverse)[:3]


def gru_direction(
    x: Tensor, states: Sequence[Tensor], w: Weights, sizes: Sizes, reverse: bool, first: bool = False
) -> tuple:
    """x and h -> out, h."""
    bias = [] if w.bias_hh is None else [w.bias_hh]
    return gru_layer([input_projection(x, w, first, w.bias_ih), *states, w.weight_hh, *bias], sizes, reverse)[:2]


def tanh_direction(
    x: Tensor, states: Sequence[Tensor], w: Weights, sizes: Sizes, reverse: bool, first: bool = False
) -> tuple:
    """x and h -> out, h."""
    return rnn_layer([input_projection(x, w, first), *states, w.weight_hh, *summed_bias(w)], False, sizes, reverse)


def relu_direction(
    x: Tensor, states: Sequence[Tensor], w: Weights, sizes: Sizes, reverse: bool, first: bool = False
) -> tuple:
    """x and h -> out, h."""
    return rnn_layer([input_projection(x, w, first), *states, w.weight_hh, *summed_bias(w)], True, sizes, reverse)


DIRECTIONS: dict[str, Direction] = {
    "LSTM": lstm_direction, "GRU": gru_direction, "RNN_TANH": tanh_direction, "RNN_RELU": relu_direction,
}  # fmt: skip


def input_projection(x: Tensor, w: Weights, first: bool, bias: Tensor | None = None) -> Tensor:
    """The projection of the input for all steps at once: x w^T plus bias, (T, N, gates H) or rows. The product is
    transposed, because a transposed input would need a copy.
    """
    found = linear(x, w.weight_ih, bias)
    return transpose(found, 0, 1) if first else found


def summed_bias(w: Weights) -> list[Tensor]:
    """[b_ih + b_hh], or [] without biases: the layer's backward sums one gradient for both."""
    return [] if w.bias_ih is None or w.bias_hh is None else [add(w.bias_ih, w.bias_hh)]


def layers(
    mode: str, x: Tensor, starts: Sequence[Sequence[Tensor]], weights: Sequence[Weights], sizes: Sizes,
    bidirectional: bool, dropout: float, first: bool = False,
) -> tuple[Tensor, tuple[Tensor, ...]]:  # fmt: skip
    """x (T, N, in), (N, T, in) if the batch is `first`, or rows of packed steps with `sizes`, through all layers: (out
    like x, the states).

    `weights` and `starts`, the initial states, are in the order layer 0 forward, layer 0 backward, layer 1 forward,
    ..."""
    run, directions = DIRECTIONS[mode], 1 + bidirectional
    last: list[tuple] = []
    for i in range(0, len(weights), directions):
        found = [run(x, starts[i + d], weights[i + d], sizes, d == 1, first) for d in range(directions)]
        last += [each[1:] for each in found]
        x = cat([each[0] for each in found], -1) if bidirectional else found[0][0]
        if dropout and i + directions < len(weights):
            # torch draws in the order of steps, but the result of a loop may be in the order of sequences
            x = drop(contiguous(x), dropout)
        x = transpose(x, 0, 1) if first else x
    return x, tuple(
        called(unregistered(each[0].unsqueeze(0)), "StackBackward0") if len(each) == 1 else stack(each)
        for each in zip(*last)
    )  # a copy, because programs call hidden.detach_()


def per_direction(x: Tensor, states: Sequence[Tensor]) -> list[tuple[Tensor, ...]]:
    """States (layers and directions, N, ...), split by layer and direction."""
    check_dtypes(x, states)
    if states[0]._array.shape[0] == 1:
        return [tuple([s.squeeze(0) for s in states])]
    return list(zip(*[unbind(s) for s in states]))


def check_dtypes(x: Tensor, states: Sequence[Tensor]) -> None:
    """RuntimeError for a state that is not of the input's dtype."""
    for state in states:
        if state._array.dtype != x._array.dtype:
            raise runtime_error(
                f"mat1 and mat2 must have the same dtype, but got {state.dtype.scalar_type} and {x.dtype.scalar_type}",
                f"convert the states to the input's dtype: .to({x.dtype})",
            )


# -- one step --------------------------------------------------------------------------------------


def lstm_cell(
    input: Tensor, hx: Sequence[Tensor], w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """i, f, o = sigmoid(a), g = tanh(a), a = W x + b + U h + b', c' = f c + i g, h' = o tanh(c'); returns h', c'.

    x (N, in), h and c (N, H), weights (4 H, in) and (4 H, H) hold i, f, g, o in this order.

    >>> x, h, c = rushlight.ones(2, 3), rushlight.zeros(2, 4), rushlight.zeros(2, 4)
    >>> h, c = rushlight.lstm_cell(x, (h, c), rushlight.ones(16, 3), rushlight.ones(16, 4))
    >>> h.shape, c.shape
    (torch.Size([2, 4]), torch.Size([2, 4]))
    """
    check_cell(input, hx, w_ih, w_hh, 4)
    return lstm_layer(step_operands(input, hx, w_ih, w_hh, b_ih, b_hh), None, False)[1:3]


def gru_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """r, z = sigmoid(W x + b + U h + b'), n = tanh(W x + b + r (U h + b')), h' = (1 - z) n + z h.

    x (N, in), h (N, H), weights (3 H, in) and (3 H, H) hold r, z, n in this order.

    >>> rushlight.gru_cell(rushlight.ones(2, 3), rushlight.zeros(2, 4), rushlight.ones(12, 3),
    ...     rushlight.ones(12, 4)).shape
    torch.Size([2, 4])
    """
    check_cell(input, (hx,), w_ih, w_hh, 3)
    return gru_layer(step_operands(input, (hx,), w_ih, w_hh, b_ih, b_hh), None, False)[1]


def rnn_tanh_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """h' = tanh(W x + b + U h + b'): x (N, in), h (N, H), weights (H, in) and (H, H), biases (H,).

    >>> one = rushlight.ones(1, 1)
    >>> rushlight.rnn_tanh_cell(one, one, one, one)  # tanh(1 + 1)
    tensor([[0.9640]])
    """
    check_cell(input, (hx,), w_ih, w_hh, 1)
    return rnn_layer(step_operands(input, (hx,), w_ih, w_hh, b_ih, b_hh), False, None, False)[1]


def rnn_relu_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """h' = relu(W x + b + U h + b'): x (N, in), h (N, H), weights (H, in) and (H, H), biases (H,).

    >>> one = rushlight.ones(1, 1)
    >>> rushlight.rnn_relu_cell(one, one, one, one)  # 1 + 1
    tensor([[2.]])
    """
    check_cell(input, (hx,), w_ih, w_hh, 1)
    return rnn_layer(step_operands(input, (hx,), w_ih, w_hh, b_ih, b_hh), True, None, False)[1]


def step_operands(
    x: Tensor, states: Sequence[Tensor], w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None, b_hh: Tensor | None
) -> list[Tensor]:
    """The operands of a layer's op for a single step."""
    return [linear(x, w_ih, b_ih), *states, w_hh, *([] if b_hh is None else [b_hh])]


def check_cell(input: Tensor, states: Sequence[Tensor], w_ih: Tensor, w_hh: Tensor, gates: int) -> None:
    """RuntimeError, in torch's words, for sizes that do not match."""
    check_dtypes(input, states)
    shape, hidden = input._array.shape, w_hh._array.shape[0] // gates
    if shape[-1] != w_ih._array.shape[1]:
        raise runtime_error(
            f"input has inconsistent input_size: got {shape[-1]} expected {w_ih._array.shape[1]}",
            f"make the cell take {shape[-1]} (input_size={shape[-1]})",
            input=shape,
        )
    for i, state in enumerate(states):
        if state._array.ndim < 2 or state._array.shape[0] != shape[0]:
            raise runtime_error(
                f"Input batch size {shape[0]} doesn't match hidden{i} batch size "
                f"{state._array.shape[0] if state._array.ndim else 1}"
            )
        if state._array.shape[1] != hidden:
            raise runtime_error(
                f"hidden{i} has inconsistent hidden_size: got {state._array.shape[1]}, expected {hidden}"
            )
