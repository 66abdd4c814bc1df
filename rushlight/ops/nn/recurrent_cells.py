"""The elementwise part of one step of a recurrent layer: `gates(*sources) -> h, [c,] saved`, composed of ops.

With tensors, `gates` gives the layers' second derivatives (recurrent.py); with symbols, the compiled loops of large
layers (fast/recurrent_loops.py). `saved`: the values that backward needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from rushlight.ops.math.elementwise import add, mul, relu, sigmoid, sub, tanh

STATE = (None, None)  # a source that is neither from x nor from the product


class Cell(NamedTuple):
    """`gates`, and the source of each of its parameters.

    A source is (k, m): the sum of gate k of x and gate m of the product h w, without the term whose index is None.
    STATE: the previous state itself.
    """

    gates: Callable
    sources: tuple[tuple[int | None, int | None], ...]

    @property
    def gate_count(self) -> int:
        """The number of gates of x and of the product."""
        return 1 + max([m for _, m in self.sources if m is not None])

    @property
    def apart(self) -> bool:
        """True if some source is not the sum of a gate of x and a gate of the product: then the product has its own
        bias, and x its own gradient.
        """
        return any([None in source for source in self.sources if source != STATE])


def lstm_gates(i: Any, f: Any, g: Any, o: Any, c: Any) -> tuple:
    i, f, g, o = sigmoid(i), sigmoid(f), tanh(g), sigmoid(o)
    c = add(mul(f, c), mul(i, g))
    return mul(o, tanh(c)), c, (i, f, o, g, c)


def gru_gates(r: Any, z: Any, x_n: Any, h_n: Any, h: Any) -> tuple:
    r, z = sigmoid(r), sigmoid(z)
    n = tanh(add(x_n, mul(r, h_n)))
    return add(n, mul(z, sub(h, n))), (r, z, n, h_n)


def tanh_gate(x: Any) -> tuple:
    h = tanh(x)
    return h, (h,)


def relu_gate(x: Any) -> tuple:
    h = relu(x)
    return h, (h,)


LSTM = Cell(lstm_gates, ((0, 0), (1, 1), (2, 2), (3, 3), STATE))
GRU = Cell(gru_gates, ((0, 0), (1, 1), (2, None), (None, 2), STATE))
TANH, RELU = Cell(tanh_gate, ((0, 0),)), Cell(relu_gate, ((0, 0),))
