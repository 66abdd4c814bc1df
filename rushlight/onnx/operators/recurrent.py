"""LSTM, GRU and RNN. Usual settings run as torch.lstm, torch.gru, torch.rnn_tanh; the others step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import rushlight as torch
from rushlight import Tensor
from rushlight.nn import functional as F

from .quantized import dynamic_quantize_linear
from .shape import reverse_sequence
from .table import MICROSOFT, Fixed, Floats, Ints, operator

Activation = Callable[[Tensor], Tensor]
# a cell: (gates of the input, state) -> new state; the first part of a state is the output
Cell = Callable[[Tensor, tuple[Tensor, ...]], tuple[Tensor, ...]]
# activations with numbers: name -> (default alpha, default beta)
NUMBERS = {
    "LeakyRelu": (0.01, 0.0), "ThresholdedRelu": (1.0, 0.0), "ScaledTanh": (1.0, 1.0), "HardSigmoid": (0.2, 0.5),
    "Elu": (1.0, 0.0), "Affine": (1.0, 0.0),
}  # fmt: skip


def activation(name: str, alpha: float, beta: float) -> Activation:
    """An activation by ONNX's name."""
    match name:
        case "Affine":
            return lambda x: alpha * x + beta
        case "LeakyRelu":
            return lambda x: F.leaky_relu(x, alpha)
        case "ThresholdedRelu":
            return lambda x: F.threshold(x, alpha, 0.0)
        case "ScaledTanh":
            return lambda x: alpha * torch.tanh(beta * x)
        case "HardSigmoid":
            return lambda x: torch.clamp(alpha * x + beta, 0, 1)
        case "Elu":
            return lambda x: F.elu(x, alpha)
    plain: dict[str, Activation] = {
        "Relu": F.relu,
        "Tanh": torch.tanh,
        "Sigmoid": torch.sigmoid,
        "Softsign": F.softsign,
        "Softplus": F.softplus,
    }
    if name not in plain:
        raise NotImplementedError(f"the activation {name!r} is not supported")
    return plain[name]


def activations_of(
    names: Sequence[str], alphas: Floats | None, betas: Floats | None, clip: float | None
) -> list[Activation]:
    """The activations; alphas and betas belong to the activations with numbers, in order."""
    left, right, made = list(alphas or ()), list(betas or ()), []
    for name in names:
        a, b = NUMBERS.get(name, (0.0, 0.0))
        a = left.pop(0) if name in NUMBERS and left else a
        b = right.pop(0) if name in NUMBERS and right else b
        made.append(clipped(activation(name, a, b), clip))
    return made


def clipped(f: Activation, clip: float | None) -> Activation:
    """f of its input within [-clip, clip]."""
    return f if clip is None else lambda x: f(torch.clamp(x, -clip, clip))


def run(
    x: Tensor, cell: Cell, state: tuple[Tensor, ...], lengths: Ints | None, backwards: bool
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """(outputs [T, N, H], last state) of a cell over x [T, N, gates]. After its length a sequence's outputs are 0."""
    if backwards:
        x = x.flip(0) if lengths is None else reverse_sequence(x, lengths)
    out = []
    for t, gates in enumerate(x.unbind(0)):
        new = cell(gates, state)
        if lengths is not None:
            inside = torch.tensor([[t < n] for n in lengths])
            out.append(torch.where(inside, new[0], torch.zeros_like(new[0])))
            new = tuple(torch.where(inside, after, before) for after, before in zip(new, state))
        else:
            out.append(new[0])
        state = new
    y = torch.stack(out)
    if backwards:
        y = y.flip(0) if lengths is None else reverse_sequence(y, lengths)
    return y, state


def in_layout(values: Sequence[Tensor | None], layout: int) -> list[Tensor | None]:
    """x and states with the batch as dimension 1: layout 1 has it first."""
    return [v if v is None or not layout else v.transpose(0, 1) for v in values]


def out_layout(y: Tensor, states: Sequence[Tensor], layout: int) -> tuple[Tensor, ...]:
    """y [T, D, N, H] and states [D, N, H], or for layout 1 [N, T, D, H] and [N, D, H]."""
    if not layout:
        return (y, *states)
    return (y.permute(2, 0, 1, 3), *(s.transpose(0, 1) for s in states))


def directions_of(direction: str) -> list[bool]:
    """For each direction, whether it runs backwards."""
    return {"forward": [False], "reverse": [True]}.get(direction, [False, True])


def each_direction(
    x: Tensor, make: Callable[[int], tuple[Tensor, Cell]], first: Sequence[Tensor], lengths: Ints | None, direction: str
) -> tuple[Tensor, list[Tensor]]:
    """(outputs [T, D, N, H], last states [D, N, H]). make(d): x's gates and the cell of a direction."""
    outputs, last = [], []
    for d, backwards in enumerate(directions_of(direction)):
        gates, cell = make(d)
        y, state = run(gates, cell, tuple(s[d] for s in first), lengths, backwards)
        outputs.append(y)
        last.append(state)
    return torch.stack(outputs, 1), [torch.stack(list(parts)) for parts in zip(*last)]


def started(state: Tensor | None, x: Tensor, w: Tensor, r: Tensor) -> Tensor:
    """The first state, 0 by default."""
    return x.new_zeros(w.shape[0], x.shape[1], r.shape[2]) if state is None else state


def sorted_gates(v: Tensor, order: Sequence[int]) -> Tensor:
    """A weight's gates in torch's order."""
    parts = v.chunk(len(order))
    return torch.cat([parts[i] for i in order])


def fused(
    function: Callable[..., Any], x: Tensor, w: Tensor, r: Tensor, b: Tensor | None, order: Sequence[int], first: Any
) -> tuple[Tensor, list[Tensor]]:
    """torch's layer of one or two directions, with weights in torch's order of gates."""
    params = []
    for d in range(w.shape[0]):
        params += [sorted_gates(w[d], order), sorted_gates(r[d], order)]
        if b is not None:
            params += [sorted_gates(half, order) for half in b[d].chunk(2)]
    y, *states = function(x, first, params, b is not None, 1, 0.0, False, w.shape[0] == 2, False)
    return y.reshape(*x.shape[:2], w.shape[0], -1).permute(0, 2, 1, 3), list(states)


@operator("LSTM")
def lstm(
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor | None = None,
    lengths: Ints | None = None,
    h: Tensor | None = None,
    c: Tensor | None = None,
    p: Tensor | None = None,
    *,
    hidden_size: int = 0,
    direction: str = "forward",
    activations: list[str] | None = None,
    activation_alpha: Floats | None = None,
    activation_beta: Floats | None = None,
    clip: float | None = None,
    input_forget: int = 0,
    layout: int = 0,
    output_sequence: int = 0,
) -> tuple[Tensor, ...]:
    """(outputs, last output, last cell) of an LSTM; p has weights from the cell to the gates."""
    x, h, c = in_layout((x, h, c), layout)  # type: ignore[assignment]
    first = [started(h, x, w, r), started(c, x, w, r)]
    names = activations or ["Sigmoid", "Tanh", "Tanh"] * w.shape[0]
    usual = names[:3] == ["Sigmoid", "Tanh", "Tanh"] and names[3:] in ([], names[:3])
    if usual and lengths is None and p is None and clip is None and not input_forget and direction != "reverse":
        return out_layout(*fused(torch.lstm, x, w, r, b, (0, 2, 3, 1), first), layout)
    functions = activations_of(names, activation_alpha, activation_beta, clip)

    def make(d: int) -> tuple[Tensor, Cell]:
        gates = x @ w[d].T if b is None else x @ w[d].T + b[d].chunk(2)[0] + b[d].chunk(2)[1]
        peepholes = None if p is None else p[d]
        return gates, lstm_cell(lambda h: h @ r[d].T, peepholes, functions[3 * d : 3 * d + 3], input_forget)

    return out_layout(*each_direction(x, make, first, lengths, direction), layout)


def lstm_cell(
    product: Callable[[Tensor], Tensor], p: Tensor | None, functions: list[Activation], input_forget: int
) -> Cell:
    """A step of an LSTM. product: the gates of an output; p: weights from the cell to the gates; input_forget: the cell
    forgets 1 - the input gate."""
    f, g, out = functions
    pi, po, pf = (0, 0, 0) if p is None else p.chunk(3)

    def cell(gates: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        h, c = state
        i, o, forget, new = (gates + product(h)).chunk(4, 1)
        i = f(i + pi * c)
        forget = 1 - i if input_forget else f(forget + pf * c)
        c = forget * c + i * g(new)
        return f(o + po * c) * out(c), c

    return cell


def quantized_product(w: Tensor, scale: Tensor, zero: Tensor) -> Callable[[Tensor], Tensor]:
    """x -> x @ ((w - zero) * scale), with x rounded to the 256 steps of its range; w is (inputs, gates) of int8 or
    uint8. Products are whole numbers, which float64 holds exactly."""
    whole = w.to(torch.float64) - zero.to(torch.float64)

    def product(x: Tensor) -> Tensor:
        steps, step, middle = dynamic_quantize_linear(x)
        sums = (steps.to(torch.float64) - middle.to(torch.float64)) @ whole
        return sums.to(x.dtype) * (step * scale)

    return product


@operator("DynamicQuantizeLSTM", domain=MICROSOFT)
def dynamic_quantize_lstm(
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor | None,
    lengths: Ints | None,
    h: Tensor | None,
    c: Tensor | None,
    p: Tensor | None,
    w_scale: Fixed,
    w_zero: Fixed,
    r_scale: Fixed,
    r_zero: Fixed,
    *,
    hidden_size: int = 0,
    direction: str = "forward",
    activations: list[str] | None = None,
    activation_alpha: Floats | None = None,
    activation_beta: Floats | None = None,
    clip: float | None = None,
    input_forget: int = 0,
) -> tuple[Tensor, ...]:
    """LSTM with weights of 8 bits, (directions, inputs, gates); x and the outputs are rounded for each product."""
    first = [started(state, x, w, r.transpose(1, 2)) for state in (h, c)]
    names = activations or ["Sigmoid", "Tanh", "Tanh"] * w.shape[0]
    functions = activations_of(names, activation_alpha, activation_beta, clip)

    def make(d: int) -> tuple[Tensor, Cell]:
        gates = quantized_product(w[d], w_scale[d], w_zero[d])(x)
        gates = gates if b is None else gates + sum(b[d].chunk(2))
        product = quantized_product(r[d], r_scale[d], r_zero[d])
        return gates, lstm_cell(product, None if p is None else p[d], functions[3 * d : 3 * d + 3], input_forget)

    return out_layout(*each_direction(x, make, first, lengths, direction), 0)


@operator("GRU")
def gru(
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor | None = None,
    lengths: Ints | None = None,
    h: Tensor | None = None,
    *,
    hidden_size: int = 0,
    direction: str = "forward",
    activations: list[str] | None = None,
    activation_alpha: Floats | None = None,
    activation_beta: Floats | None = None,
    clip: float | None = None,
    linear_before_reset: int = 0,
    layout: int = 0,
    output_sequence: int = 0,
) -> tuple[Tensor, ...]:
    """(outputs, last output) of a GRU; linear_before_reset=1 is torch's GRU."""
    x, h = in_layout((x, h), layout)  # type: ignore[assignment]
    first = [started(h, x, w, r)]
    names = activations or ["Sigmoid", "Tanh"] * w.shape[0]
    usual = linear_before_reset and names[:2] == ["Sigmoid", "Tanh"] and names[2:] in ([], names[:2])
    if usual and lengths is None and clip is None and direction != "reverse":
        return out_layout(*fused(torch.gru, x, w, r, b, (1, 0, 2), first[0]), layout)
    functions = activations_of(names, activation_alpha, activation_beta, clip)

    def make(d: int) -> tuple[Tensor, Cell]:
        bx, bh = (0, x.new_zeros(3 * r.shape[2])) if b is None else b[d].chunk(2)
        return x @ w[d].T + bx, gru_cell(r[d], bh, functions[2 * d : 2 * d + 2], linear_before_reset)

    return out_layout(*each_direction(x, make, first, lengths, direction), layout)


def gru_cell(r: Tensor, bias: Tensor, functions: list[Activation], linear_before_reset: int) -> Cell:
    """A step of a GRU. The reset gate applies after the product with r, or before it."""
    f, g = functions
    sizes = [2 * r.shape[1], r.shape[1]]
    (rz, rh), (bz, bn) = r.split(sizes), bias.split(sizes)

    def cell(gates: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        (h,) = state
        zr, new = gates.split(sizes, 1)
        z, reset = f(zr + h @ rz.T + bz).chunk(2, 1)
        new = new + (reset * (h @ rh.T + bn) if linear_before_reset else (reset * h) @ rh.T + bn)
        return ((1 - z) * g(new) + z * h,)

    return cell


@operator("RNN")
def rnn(
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor | None = None,
    lengths: Ints | None = None,
    h: Tensor | None = None,
    *,
    hidden_size: int = 0,
    direction: str = "forward",
    activations: list[str] | None = None,
    activation_alpha: Floats | None = None,
    activation_beta: Floats | None = None,
    clip: float | None = None,
    layout: int = 0,
    output_sequence: int = 0,
) -> tuple[Tensor, ...]:
    """(outputs, last output) of a simple recurrent layer."""
    x, h = in_layout((x, h), layout)  # type: ignore[assignment]
    first = [started(h, x, w, r)]
    names = activations or ["Tanh"] * w.shape[0]
    if names == ["Tanh"] * w.shape[0] and lengths is None and clip is None and direction != "reverse":
        return out_layout(*fused(torch.rnn_tanh, x, w, r, b, (0,), first[0]), layout)
    functions = activations_of(names, activation_alpha, activation_beta, clip)

    def make(d: int) -> tuple[Tensor, Cell]:
        bias = 0 if b is None else b[d].chunk(2)[0] + b[d].chunk(2)[1]
        return x @ w[d].T + bias, lambda gates, state: (functions[d](gates + state[0] @ r[d].T),)

    return out_layout(*each_direction(x, make, first, lengths, direction), layout)
