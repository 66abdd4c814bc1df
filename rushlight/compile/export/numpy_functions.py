"""Layers as short functions of NumPy arrays: the text of an exported page contains the functions that the model needs.

Floats are float32 or float64. Sizes, strides and paddings are tuples with a number for each spatial dimension."""

from __future__ import annotations

import math
from functools import reduce
from itertools import product

import numpy as np


def pow(x, y):
    return np.power(x, y)


def relu(x):
    return np.maximum(x, 0)


def sigmoid(x):
    e = np.exp(-np.abs(x))  # at most 1
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


def silu(x):
    return x * sigmoid(x)


def hardsigmoid(x):
    return np.clip(x / 6 + 0.5, 0, 1).astype(x.dtype)


def hardswish(x):
    return x * hardsigmoid(x)


def erf(x):
    """The error function. In float32 within 1.5e-7 (Abramowitz and Stegun, 7.1.26)."""
    if x.dtype == np.float64:
        return np.vectorize(math.erf, otypes=[np.float64])(x)
    t = 1 / (1 + 0.3275911 * np.abs(x))
    p = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    return np.copysign(1 - p * np.exp(-x * x), x)


def gelu(x):
    return 0.5 * x * (1 + erf(x * math.sqrt(0.5)))


def softmax(x, dim):
    e = np.exp(x - x.max(dim, keepdims=True))
    return e / e.sum(dim, keepdims=True)


def log_softmax(x, dim):
    x = x - x.max(dim, keepdims=True)
    return x - np.log(np.exp(x).sum(dim, keepdims=True))


def logsumexp(x, dim, keepdim=False):
    top = x.max(dim, keepdims=True)
    top = np.where(np.isfinite(top), top, x.dtype.type(0))
    found = np.log(np.exp(x - top).sum(dim, keepdims=True)) + top
    return found if keepdim else found.squeeze(dim)


def linear(x, weight, bias=0):
    return x @ weight.T + bias


def layer_norm(x, weight, bias, dims, eps):
    d = x - x.mean(dims, keepdims=True)
    d /= np.sqrt((d * d).mean(dims, keepdims=True) + eps)
    return d * (1 if weight is None else weight) + (0 if bias is None else bias)


def group_norm(x, weight, bias, groups, eps):
    d = x.reshape(len(x), groups, -1)
    d = d - d.mean(2, keepdims=True)
    d = (d / np.sqrt((d * d).mean(2, keepdims=True) + eps)).reshape(x.shape)
    shape = (-1,) + (1,) * (x.ndim - 2)
    return d * (1 if weight is None else weight.reshape(shape)) + (0 if bias is None else bias.reshape(shape))


def batch_norm(x, weight, bias, mean, var, eps):
    """With given statistics; x (N, C, *size), the others (C,)."""
    scale = (1 if weight is None else weight) / np.sqrt(var + var.dtype.type(eps))
    shift = (0 if bias is None else bias) - mean * scale
    shape = (-1,) + (1,) * (x.ndim - 2)
    return x * scale.reshape(shape) + shift.reshape(shape)


def windows(x, kernel, stride, dilation):
    """A view of x (N, C, *size): the kernel's windows (N, C, *out, *kernel)."""
    axes = tuple(range(2, x.ndim))
    reach = tuple((k - 1) * d + 1 for k, d in zip(kernel, dilation))
    found = np.lib.stride_tricks.sliding_window_view(x, reach, axes)
    steps = (..., *(slice(None, None, s) for s in (*stride, *dilation)))
    return found[steps]


def padded(x, padding, value=0):
    """x (N, C, *size) with a border."""
    return np.pad(x, ((0, 0), (0, 0), *((p, p) for p in padding)), constant_values=value) if any(padding) else x


def convolution(x, weight, bias, stride, padding, dilation, groups):
    """x (N, C, *size), weight (O, C / groups, *kernel) -> (N, O, *out): for each group a product of the weights with
    the windows' columns."""
    n, kernel, dims = len(x), weight.shape[2:], weight.ndim - 2
    found = windows(padded(x, padding), kernel, stride, dilation)
    columns = np.moveaxis(found, range(-dims, 0), range(2, 2 + dims)).reshape(n, groups, weight[0].size, -1)
    y = (weight.reshape(groups, -1, weight[0].size) @ columns).reshape(n, -1, *found.shape[2 : 2 + dims])
    return y if bias is None else y + bias.reshape(-1, *(1,) * dims)


def transposed_convolution(x, weight, size, stride, padding, dilation, groups):
    """x (N, O, *in), weight (O, C / groups, *kernel) -> (N, C, *size): each tap of the kernel adds to its places."""
    n, kernel, given = len(x), weight.shape[2:], x.shape[2:]
    columns = weight.reshape(groups, len(weight) // groups, -1).swapaxes(1, 2)
    made = (columns @ x.reshape(n, groups, len(weight) // groups, -1)).reshape(n, -1, *kernel, *given)
    y = np.zeros((n, made.shape[1], *(s + 2 * p for s, p in zip(size, padding))), x.dtype)
    for tap in product(*map(range, kernel)):
        places = (..., *(slice(k * d, k * d + (m - 1) * s + 1, s) for k, d, m, s in zip(tap, dilation, given, stride)))
        y[places] += made[(slice(None), slice(None)) + tap]
    inside = (..., *(slice(p, p + s) for p, s in zip(padding, size)))
    return y[inside]


def taps(x, kernel, stride, dilation):
    """For each place of the kernel, the elements of x under that place: (N, C, *out)."""
    dims, found = len(kernel), windows(x, kernel, stride, dilation)
    found = np.moveaxis(found, range(-dims, 0), range(dims))  # (*kernel, N, C, *out)
    return [found[tap] for tap in product(*map(range, kernel))]


def max_pool(x, kernel, stride, padding, dilation):
    return reduce(np.maximum, taps(padded(x, padding, -np.inf), kernel, stride, dilation))


def avg_pool(x, kernel, stride, padding):
    return reduce(np.add, taps(padded(x, padding), kernel, stride, (1,) * len(kernel))) / math.prod(kernel)


def mean_of_all(x):
    """The mean of each channel: x (N, C, *size) -> (N, C, 1, ...)."""
    return x.mean(tuple(range(2, x.ndim)), keepdims=True)


def rows(x, index, dim=0):
    """The elements at these places of a dimension."""
    if index.size and not 0 <= index.min() <= index.max() < x.shape[dim]:
        raise IndexError(f"an index is out of range of {x.shape[dim]}")
    return np.take(x, index, dim)


def attention(q, k, v, mask=None, causal=False, scale=1.0):
    """softmax(q k^T scale + mask) v; 0 for a query whose keys are all masked."""
    scores = q @ k.swapaxes(-1, -2) * q.dtype.type(scale)
    if mask is not None:
        scores = scores + mask
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, q.dtype.type(-np.inf))
    top = scores.max(-1, keepdims=True)
    e = np.exp(scores - np.where(top == -np.inf, q.dtype.type(0), top))
    total = e.sum(-1, keepdims=True)
    return e @ v / np.where(total == 0, q.dtype.type(1), total)


def lstm(x, h, c, weight, bias, reverse):
    """x (T, N, 4 H): the input's part of the gates. Returns the outputs (T, N, H), and the last h and c (N, H)."""
    out = np.empty((*x.shape[:2], h.shape[1]), x.dtype)
    for t in range(len(x))[:: -1 if reverse else 1]:
        i, f, g, o = np.split(x[t] + h @ weight.T + bias, 4, 1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = out[t] = sigmoid(o) * np.tanh(c)
    return out, h, c


def gru(x, h, weight, bias, reverse):
    """x (T, N, 3 H): the input's part of the gates. Returns the outputs (T, N, H), and the last h (N, H)."""
    out = np.empty((*x.shape[:2], h.shape[1]), x.dtype)
    for t in range(len(x))[:: -1 if reverse else 1]:
        (r, z, n), (h_r, h_z, h_n) = np.split(x[t], 3, 1), np.split(h @ weight.T + bias, 3, 1)
        n = np.tanh(n + sigmoid(r + h_r) * h_n)
        h = out[t] = n + sigmoid(z + h_z) * (h - n)
    return out, h


def rnn(x, h, weight, bias, activation, reverse):
    """x (T, N, H): the input's part. Returns the outputs (T, N, H), and the last h (N, H)."""
    out = np.empty((*x.shape[:2], h.shape[1]), x.dtype)
    for t in range(len(x))[:: -1 if reverse else 1]:
        h = out[t] = activation(x[t] + h @ weight.T + bias)
    return out, h
