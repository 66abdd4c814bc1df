"""Recurrent layers with int8 weights, forward: in each step the state is quantized, as torch.ao does.

As in recurrent.py, x (rows, gates H) holds the input's part w x + b for all steps, and the rows belong to step 0, then
to step 1, ...; h (N, H) is the state."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy import ndarray

from rushlight.kernels.int8 import Int8Weight, linear_by_tensor
from rushlight.kernels.recurrent import Sizes, first_rows, rows_of, shaped, steps_of

Step = Callable[[ndarray, Sequence[ndarray], Int8Weight, int], tuple[ndarray, ...]]


def sigmoid(x: ndarray) -> ndarray:
    return np.float32(0.5) * (np.tanh(np.float32(0.5) * x) + np.float32(1))


def lstm_step(x: ndarray, states: Sequence[ndarray], weight: Int8Weight, most: int) -> tuple[ndarray, ...]:
    """The gates i, f, g, o; c' = f c + i g, h' = o tanh(c')."""
    h, c = states
    i, f, g, o = np.split(x + linear_by_tensor(h, weight, most), 4, axis=1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def gru_step(x: ndarray, states: Sequence[ndarray], weight: Int8Weight, most: int) -> tuple[ndarray, ...]:
    """The gates r, z, n; h' = (h - n) z + n."""
    (h,) = states
    xr, xz, xn = np.split(x, 3, axis=1)
    hr, hz, hn = np.split(linear_by_tensor(h, weight, most), 3, axis=1)
    n = np.tanh(xn + sigmoid(xr + hr) * hn)
    return ((h - n) * sigmoid(xz + hz) + n,)


def tanh_step(x: ndarray, states: Sequence[ndarray], weight: Int8Weight, most: int) -> tuple[ndarray, ...]:
    return (np.tanh(x + linear_by_tensor(states[0], weight, most)),)


def relu_step(x: ndarray, states: Sequence[ndarray], weight: Int8Weight, most: int) -> tuple[ndarray, ...]:
    return (np.maximum(x + linear_by_tensor(states[0], weight, most), 0),)


def layer(
    step: Step, x: ndarray, starts: Sequence[ndarray], weight: Int8Weight, most: int, sizes: Sizes, reverse: bool
) -> tuple[ndarray, ...]:
    """One direction of a layer: (the outputs in the shape of x, the last value of each state)."""
    steps = steps_of(x, len(starts[0]), sizes, reverse)
    rows, out = rows_of(x), np.empty((x.size // x.shape[-1], starts[0].shape[1]), np.float32)
    states, last = list(starts), [s.copy() for s in starts]
    for a, b in steps.spans:
        now = [np.ascontiguousarray(first_rows(s, start, b - a)) for s, start in zip(states, starts)]
        states = list(step(rows[a:b], now, weight, most))
        out[a:b] = states[0]
        for final, state in zip(last, states):
            final[: b - a] = state
    return shaped(out, x), *last
