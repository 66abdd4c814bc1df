"""Recurrent layers: one direction of one layer, forward from the first step to the last, and backward through time.

The caller computes the input's part for all steps at once: x (rows, gates H) holds w x + b. The rows belong to step 0,
then to step 1, ...: T times N rows, or for sequences of different lengths `sizes` = (N, n1, n2, ...), never growing,
longest sequence first. An array (T, N, gates H) is treated as rows. h (N, H) is the state; `reverse` runs from the last
step to the first.

The loop over steps does only the work that depends on the previous step: forward, a product and several elementwise
calls with `out=`; backward, a product and fewer calls, since all slopes are computed before the loop. Gates are stored
as (gates, rows, H), so that one gate's part of a step is contiguous. sigmoid(x) is computed as (tanh(x / 2) + 1) / 2,
since tanh has SIMD loops: 9 us for 32 x 512 floats; exp alone takes 14.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.base.faster import site
from rushlight.kernels.im2col import wide_dtype
from rushlight.kernels.summation import added

Arrays = Sequence[ndarray]
Sizes = tuple[int, ...] | None


class Steps:
    """The slices of rows of each step, in the order in which steps are computed."""

    def __init__(self, rows: int, batch: int, sizes: Sizes, reverse: bool):
        self.sizes = (batch,) * (rows // max(batch, 1)) if sizes is None else sizes
        ends = list(accumulate(self.sizes))
        falling = sizes is None or list(sizes) == sorted(sizes, reverse=True)
        if not falling or (ends[-1] if ends else 0) != rows or (self.sizes or (batch,))[0] != batch:
            raise ValueError(f"a state of {batch} rows and steps of {self.sizes} rows do not fit {rows} rows of input")
        spans = list(zip([0, *ends], ends))
        self.batch, self.reverse, self.even = batch, reverse, not ends or self.sizes[-1] == batch
        self.spans = spans[::-1] if reverse else spans

    def before(self, start: ndarray, states: ndarray) -> ndarray:
        """For each row, the state before its step: start (N, H), states (rows, H) -> (rows, H)."""
        n = self.batch
        if self.even:
            return np.concatenate([states[n:], start] if self.reverse else [start, states[: len(states) - n]])
        place = np.full((len(self.sizes) + 2, n), -1)  # [step + 1, sequence] -> row
        for i, (a, b) in enumerate(self.spans[::-1] if self.reverse else self.spans):
            place[i + 1, : b - a] = np.arange(a, b)
        here, near = place[1:-1], place[2:] if self.reverse else place[:-2]
        row = np.where(near < 0, np.arange(n), near + n)[here >= 0]
        return np.concatenate([start, states])[row]

    def last(self, states: ndarray, start: ndarray) -> ndarray:
        """The state after each sequence's last step: (N, H)."""
        if not self.spans:
            return start.copy()
        final = np.empty((self.batch, states.shape[1]), states.dtype)
        for a, b in self.spans if not self.even else self.spans[-1:]:
            final[: b - a] = states[a:b]
        return final


known_steps = lru_cache(maxsize=256)(Steps)


def steps_of(x: ndarray, batch: int, sizes: Sizes, reverse: bool) -> Steps:
    """The steps of x (..., gates H)."""
    return known_steps(x.size // max(x.shape[-1], 1), batch, sizes, reverse)


def first_rows(state: ndarray, start: ndarray, n: int) -> ndarray:
    """n rows of a state; sequences that begin at this step take their rows from the start."""
    return state[:n] if len(state) >= n else np.concatenate([state, start[len(state) : n]])


def rows_of(x: ndarray) -> ndarray:
    """(..., H) -> (rows, H), even if H is 0."""
    return x.reshape(prod(x.shape[:-1]), x.shape[-1])


def in_gates(x: ndarray, gates: int) -> ndarray:
    """(..., gates H) -> (gates, rows, H), a view of contiguous x."""
    return x.reshape(prod(x.shape[:-1]), gates, x.shape[-1] // gates).swapaxes(0, 1)


def by_gate(weight: ndarray, order: Sequence[int]) -> ndarray:
    """(gates H, P) -> (gates, P, H), contiguous, to be multiplied from the left by states (n, P)."""
    return np.take(weight.reshape(len(order), len(weight) // len(order), weight.shape[1]).swapaxes(1, 2), order, axis=0)


def widened(arrays: Arrays) -> list[ndarray]:
    """The arrays in float32 at least."""
    return [a.astype(wide_dtype(a.dtype), copy=False) for a in arrays]


def narrowed(arrays: Arrays, like: ndarray) -> list[ndarray]:
    """The arrays in the caller's dtype."""
    return [a.astype(like.dtype, copy=False) for a in arrays]


def shaped(rows: ndarray, like: ndarray) -> ndarray:
    """(rows, H) in the leading shape of the input."""
    return rows.reshape(*like.shape[:-1], rows.shape[-1])


# -- LSTM: i, f, o = sigmoid, g = tanh of x + w h; c' = f c + i g; h' = o tanh(c') -----------------

LSTM_ORDER = (0, 1, 3, 2)  # torch's i, f, g, o as i, f, o, g: the sigmoids side by side
# slices of the saved arrays: all gates; i f o; i f; g c
LSTM_PARTS = (slice(None), slice(4), slice(3), slice(2), slice(3, 5))


def bias_and_projection(more: Sequence[Any]) -> tuple[Any, Any]:
    """The optional tensors after an LSTM's weight, or None."""
    bias, *more = more if more and len(more[0].shape) == 1 else (None, *more)
    return bias, more[0] if more else None


@site
def lstm(tensors: Arrays, sizes: Sizes, reverse: bool) -> tuple[ndarray, ...]:
    """x (rows, 4 H), h (N, P), c (N, H), weight (4 H, P), optional bias (4 H,), and if P differs from H a projection
    (P, H) -> out (rows, P), h, c. Also the values that backward needs (5, rows, H): i, f, o, g, c'.
    """
    x, h0, c0, weight, *more = widened(tensors)
    bias, projection = bias_and_projection(more)
    steps, w, half = steps_of(x, len(h0), sizes, reverse), by_gate(weight, LSTM_ORDER), x.dtype.type(0.5)
    rows = in_gates(x, 4) if bias is None else in_gates(np.add(x, bias), 4)
    saved, out = np.empty((5, *rows.shape[1:]), x.dtype), np.empty((rows.shape[1], h0.shape[1]), x.dtype)
    for to, gate in zip(saved, LSTM_ORDER):
        np.multiply(rows[gate], 1 if gate == 2 else half, out=to)
    w[:3] *= half
    now, product, h = np.empty((5, *c0.shape), x.dtype), np.empty((2, *c0.shape), x.dtype), h0
    now[4], n = c0, -1  # i, f, o, g and c: one call computes i g and f c
    for a, b in steps.spans:
        h = first_rows(h, h0, b - a)
        if b - a != n:  # views are made only when the number of rows changes: 3 us a step
            n = b - a
            t, gates, i_f_o, i_f, g_c = (now[part, :n] for part in LSTM_PARTS)
            p, o, c, one, two = product[:, :n], now[2, :n], now[4, :n], *product[:, :n]
        np.matmul(h, w, out=gates)
        np.add(gates, saved[:4, a:b], out=gates)
        np.tanh(gates, out=gates)
        np.multiply(i_f_o, half, out=i_f_o)
        np.add(i_f_o, half, out=i_f_o)
        np.multiply(i_f, g_c, out=p)
        np.add(one, two, out=c)
        saved[:, a:b] = t
        np.tanh(c, out=one)
        if projection is None:
            h = np.multiply(o, one, out=out[a:b])
        else:
            h = np.matmul(np.multiply(o, one, out=one), projection.T, out=out[a:b])
    return *narrowed([shaped(out, x), steps.last(out, h0), now[4].copy()], tensors[0]), saved


@site
def lstm_back(tensors: Arrays, sizes: Sizes, reverse: bool) -> list[ndarray]:
    """The gradients of the tensors of `lstm`. tensors: the tensors and results of `lstm`, and the gradients of out, h
    and c."""
    x, h0, c0, weight, *more, out, saved, g_out, g_h, g_c = widened(tensors)
    bias, projection = bias_and_projection(more)
    steps, hidden = steps_of(x, len(h0), sizes, reverse), c0.shape[1]
    out, g_out = rows_of(out), rows_of(g_out)
    tanh_c = np.tanh(saved[4])
    slopes, o_slope = lstm_slopes(saved, tanh_c, steps.before(c0, saved[4]))
    grads = np.empty((len(out), 4 * hidden), x.dtype)
    by_gates = in_gates(grads, 4)
    dh, dc, scratch = g_h.copy(), g_c.copy(), np.empty_like(c0)
    totals = out if projection is None else np.empty_like(out)
    for a, b in reversed(steps.spans):
        h, c, t = dh[: b - a], dc[: b - a], scratch[: b - a]
        np.add(h, g_out[a:b], out=h)
        m = h  # the gradient of o tanh(c)
        if projection is not None:
            totals[a:b] = h
            m = h @ projection
        np.multiply(m, o_slope[a:b], out=t)
        np.add(c, t, out=c)
        np.multiply(slopes[:3, a:b], c, out=by_gates[:3, a:b])
        np.multiply(slopes[3, a:b], m, out=by_gates[3, a:b])
        np.multiply(c, saved[1, a:b], out=c)
        np.matmul(grads[a:b], weight, out=h)
    found = [grads.reshape(x.shape), dh, dc, grads.T @ steps.before(h0, out)]
    if bias is not None:
        found.append(added(grads, (0,)))
    if projection is not None:
        found.append(totals.T @ (saved[2] * tanh_c))
    return narrowed(found, tensors[0])


def lstm_slopes(saved: ndarray, tanh_c: ndarray, c: ndarray) -> tuple[ndarray, ndarray]:
    """The derivatives of c' by the inputs of i, f and g, and of h' by the input of o; and of h' by c'."""
    i, f, o, g, _ = saved
    slopes, o_slope = np.empty((4, *c.shape), c.dtype), np.multiply(tanh_c, tanh_c)
    for slope, gate, factor in ((slopes[0], i, g), (slopes[1], f, c), (slopes[3], o, tanh_c)):
        np.multiply(gate, gate, out=slope)
        np.subtract(gate, slope, out=slope)
        slope *= factor
    for slope, factor in ((np.multiply(g, g, out=slopes[2]), i), (o_slope, o)):
        np.subtract(1, slope, out=slope)
        slope *= factor
    return slopes, o_slope


# -- GRU: r, z = sigmoid(x + w h + b); n = tanh(x + r (w h + b)); h' = n + z (h - n) ---------------


@site
def gru(tensors: Arrays, sizes: Sizes, reverse: bool) -> tuple[ndarray, ...]:
    """x (rows, 3 H), h (N, H), weight (3 H, H), optional bias (3 H,) -> out (rows, H), h.

    Also the values that backward needs (4, rows, H): r, z, n, and n's w h + b.
    """
    x, h0, weight, *bias = widened(tensors)
    steps, rows, w = steps_of(x, len(h0), sizes, reverse), in_gates(x, 3), by_gate(weight, (0, 1, 2))
    saved, out = np.empty((4, *rows.shape[1:]), x.dtype), np.empty((rows.shape[1], h0.shape[1]), x.dtype)
    half, scratch, h = x.dtype.type(0.5), np.empty((3, *h0.shape), x.dtype), h0
    b_h = bias[0].reshape(3, 1, len(bias[0]) // 3) if bias else None
    for a, b in steps.spans:
        h, t, n = first_rows(h, h0, b - a), scratch[:, : b - a], saved[2, a:b]
        rz = t[:2]
        np.matmul(h, w, out=t)
        if b_h is not None:
            np.add(t, b_h, out=t)
        saved[3, a:b] = t[2]
        np.add(rz, rows[:2, a:b], out=rz)
        np.multiply(rz, half, out=rz)
        np.tanh(rz, out=rz)
        np.multiply(rz, half, out=rz)
        r, z = np.add(rz, half, out=saved[:2, a:b])
        np.multiply(r, t[2], out=n)
        np.add(n, rows[2, a:b], out=n)
        np.tanh(n, out=n)
        np.subtract(h, n, out=t[0])
        np.multiply(t[0], z, out=t[0])
        h = np.add(t[0], n, out=out[a:b])
    return *narrowed([shaped(out, x), steps.last(out, h0)], tensors[0]), saved


@site
def gru_back(tensors: Arrays, sizes: Sizes, reverse: bool) -> list[ndarray]:
    """The gradients of the tensors of `gru`. tensors: the tensors and results of `gru`, and the gradients of out and
    h."""
    x, h0, weight, *bias, out, saved, g_out, g_h = widened(tensors)
    steps, hidden = steps_of(x, len(h0), sizes, reverse), h0.shape[1]
    out, g_out = rows_of(out), rows_of(g_out)
    before = steps.before(h0, out)
    slopes, n_slope = gru_slopes(saved, before)
    grads = np.empty((len(out), 3 * hidden), x.dtype)  # the gradients of w h + b
    by_gates, totals, dh, scratch = in_gates(grads, 3), np.empty_like(out), g_h.copy(), np.empty_like(h0)
    for a, b in reversed(steps.spans):
        h, t = dh[: b - a], scratch[: b - a]
        total = np.add(h, g_out[a:b], out=totals[a:b])
        np.multiply(slopes[:, a:b], total, out=by_gates[:, a:b])
        np.matmul(grads[a:b], weight, out=h)
        np.multiply(total, saved[1, a:b], out=t)
        np.add(h, t, out=h)
    of_x = grads.copy()
    np.multiply(totals, n_slope, out=of_x[:, 2 * hidden :])
    found = [of_x.reshape(x.shape), dh, grads.T @ before, *([added(grads, (0,))] if bias else [])]
    return narrowed(found, tensors[0])


def gru_slopes(saved: ndarray, h: ndarray) -> tuple[ndarray, ndarray]:
    """The derivatives of h' by the inputs of r and z and by n's w h + b; and by n's x."""
    r, z, n, inner = saved
    n_slope = (1 - z) * (1 - n * n)
    slopes = np.empty_like(saved[:3])
    np.multiply(n_slope, r, out=slopes[2])
    np.multiply(slopes[2], inner * (1 - r), out=slopes[0])
    np.multiply((h - n) * z, 1 - z, out=slopes[1])
    return slopes, n_slope


# -- RNN: h' = tanh or relu of x + w h -------------------------------------------------------------


@site
def rnn(tensors: Arrays, relu: bool, sizes: Sizes, reverse: bool) -> tuple[ndarray, ...]:
    """x (rows, H), h (N, H), weight (H, H), optional bias (H,) -> out (rows, H), h."""
    x, h0, weight, *bias = widened(tensors)
    steps, rows, w = steps_of(x, len(h0), sizes, reverse), rows_of(x), np.ascontiguousarray(weight.T)
    rows = rows + bias[0] if bias else rows
    out, product, h = np.empty_like(rows), np.empty_like(h0), h0
    for a, b in steps.spans:
        t, to = product[: b - a], out[a:b]
        np.matmul(first_rows(h, h0, b - a), w, out=t)
        np.add(rows[a:b], t, out=t)
        h = np.maximum(t, 0, out=to) if relu else np.tanh(t, out=to)
    one, two = narrowed([shaped(out, x), steps.last(out, h0)], tensors[0])
    return one, two


@site
def rnn_back(tensors: Arrays, relu: bool, sizes: Sizes, reverse: bool) -> list[ndarray]:
    """The gradients of the tensors of `rnn`. tensors: the tensors and results of `rnn`, and the gradients of out and
    h."""
    x, h0, weight, *bias, out, g_out, g_h = widened(tensors)
    steps = steps_of(x, len(h0), sizes, reverse)
    out, g_out = rows_of(out), rows_of(g_out)
    slopes = (out > 0).astype(out.dtype) if relu else 1 - out * out
    grads, dh = np.empty_like(out), g_h.copy()
    for a, b in reversed(steps.spans):
        h, g = dh[: b - a], grads[a:b]
        np.add(h, g_out[a:b], out=h)
        np.multiply(h, slopes[a:b], out=g)
        np.matmul(g, weight, out=h)
    found = [grads.reshape(x.shape), dh, grads.T @ steps.before(h0, out), *([added(grads, (0,))] if bias else [])]
    return narrowed(found, tensors[0])
