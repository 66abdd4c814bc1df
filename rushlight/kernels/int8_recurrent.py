"""Recurrent layers with int8 weights, forward: in each step the state is quantized, as torch.ao does.

As in recurrent.py, x (rows, gates H) holds the input's part w x + b for all steps, and the rows belong to step 0, then
to step 1, ...; h (N, H) is the state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from numpy import ndarray

from rushlight.kernels.int8 import Int8Weight, linear_by_tensor
from rushlight.kernels.recurrent import Sizes, first_rows, rows_of, shaped, steps_of

Step = Callable[[ndarray, Sequence[ndarray], Int8Weight, int], tuple[ndarray, ...]]


HALF, ONE = np.float32(0.5), np.float32(1)


@cache
def gate_factors(hidden: int) -> tuple[ndarray, ndarray]:
    """(factor, offset) of an LSTM's gates i, f, g, o. factor tanh(factor x) + offset is sigmoid(x), for g tanh(x)."""
    factor = np.repeat(np.array([HALF, HALF, ONE, HALF]), hidden)
    return factor, ONE - factor


def lstm_step(x: ndarray, states: Sequence[ndarray], weight: Int8Weight, most: int) -> tuple[ndarray, ...]:
    """The gates i, f, g, o; c' = f c + i g, h' = o tanh(c'). All gates in one call of tanh."""
    h, c = states
    n = c.shape[1]
    factor, offset = gate_factors(n)
    gates = x + linear_by_tensor(h, weight, most)
    gates *= factor
    np.tanh(gates, out=gates)
    gates *= factor
    gates += offset
    c = gates[:, n : 2 * n] * c
    c += gates[:, :n] * gates[:, 2 * n : 3 * n]
    h = np.tanh(c)
    h *= gates[:, 3 * n :]
    return h, c


def gru_step(x: ndarray, states: Sequence[ndarray], weight: Int8Weight, most: int) -> tuple[ndarray, ...]:
    """The gates r, z, n; h' = (h - n) z + n."""
    (h,) = states
    k = h.shape[1]
    product = linear_by_tensor(h, weight, most)
    gates = x[:, : 2 * k] + product[:, : 2 * k]
    gates *= HALF
    np.tanh(gates, out=gates)
    gates *= HALF
    gates += HALF
    n = gates[:, :k] * product[:, 2 * k :]
    n += x[:, 2 * k :]
    np.tanh(n, out=n)
    made = h - n
    made *= gates[:, k:]
    made += n
    return (made,)


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
