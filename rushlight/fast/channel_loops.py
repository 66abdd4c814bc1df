"""Compiled loops over the channels of large float32 batches (N, C, L): batch norm and group norm.
As fast/row_loops.py; a part of the work is the channels from `first` to `end`. What is added up
over samples is added in float64. Those named `across` are for matrices (N, C), whose channels lie
side by side, and do all of them: with an index that might be negative there would be no vectors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight.loops.cache import loop

if TYPE_CHECKING:  # what loops find as globals: `scope` in loops/cache.py
    from rushlight.loops.loop_names import (
        empty,
        exp,
        f32,
        f64,
        get,
        inf,
        largest,
        log,
        plus,
        put,
        restrict,
        sqrt,
        wide,
    )


@loop
def batch_norm(x, weight, bias, eps, out, mu, var, first, end):
    restrict()
    samples, n = x.shape[0], x.shape[2]
    for c in range(first, end):
        total = 0.0
        for k in range(samples):
            part = f32(0)
            for j in range(n):
                part = plus(part, x[k, c, j])
            total += part
        mean = f32(total / (samples * n))
        squares = 0.0
        for k in range(samples):
            part = f32(0)
            for j in range(n):
                d = x[k, c, j] - mean
                part = plus(part, d * d)
            squares += part
        mu[c] = mean
        var[c] = f32(squares / (samples * n))
        scale = weight[c] / sqrt(var[c] + f32(eps))
        shift = bias[c]
        for k in range(samples):
            for j in range(n):
                out[k, c, j] = (x[k, c, j] - mean) * scale + shift


@loop
def batch_norm_x(g, x, weight, mu, var, eps, out, slopes, totals, first, end):
    """out = (g - mean(g) - d mean(g d) / (var + eps)) weight / sqrt(var + eps), d = x - mu; the
    gradients of weight and bias come up on the way: slopes = sum(g d) / sqrt(var + eps), totals =
    sum(g)."""
    restrict()
    samples, n = x.shape[0], x.shape[2]
    for c in range(first, end):
        mean = mu[c]
        total = 0.0
        along = 0.0
        for k in range(samples):
            part = f32(0)
            beside = f32(0)
            for j in range(n):
                part = plus(part, g[k, c, j])
                beside = plus(beside, g[k, c, j] * (x[k, c, j] - mean))
            total += part
            along += beside
        spread = var[c] + f32(eps)
        slopes[c] = f32(along) / sqrt(spread)
        totals[c] = f32(total)
        scale = weight[c] / sqrt(spread)
        share = f32(total / (samples * n))
        slope = f32(along / (samples * n)) / spread
        for k in range(samples):
            for j in range(n):
                out[k, c, j] = scale * (g[k, c, j] - share - (x[k, c, j] - mean) * slope)


@loop
def batch_norm_weight(g, x, mu, var, eps, out, first, end):
    """out[c] = sum of g d / sqrt(var + eps)."""
    restrict()
    for c in range(first, end):
        mean = mu[c]
        along = 0.0
        for k in range(x.shape[0]):
            beside = f32(0)
            for j in range(x.shape[2]):
                beside = plus(beside, g[k, c, j] * (x[k, c, j] - mean))
            along += beside
        out[c] = f32(along) / sqrt(var[c] + f32(eps))


@loop
def batch_norm_bias(g, out, first, end):
    """out[c] = sum of g."""
    restrict()
    for c in range(first, end):
        total = 0.0
        for k in range(g.shape[0]):
            part = f32(0)
            for j in range(g.shape[2]):
                part = plus(part, g[k, c, j])
            total += part
        out[c] = f32(total)


@loop
def scaled_channels(x, factor, shift, out, first, end):
    """out = x factor + shift, with a number of each for a channel."""
    restrict()
    for k in range(x.shape[0]):
        for c in range(first, end):
            f = factor[c]
            s = shift[c]
            for j in range(x.shape[2]):
                out[k, c, j] = x[k, c, j] * f + s


@loop
def group_norm(x, weight, bias, groups, eps, out, mu, var, first, end):
    """A part of the work is the groups from `first` to `end`, of all samples' groups."""
    restrict()
    wide()
    n, channels = x.shape[2], x.shape[1] // groups
    for i in range(first, end):
        k, c0 = i // groups, i % groups * channels
        total = 0.0
        for c in range(c0, c0 + channels):
            part = f32(0)
            for j in range(n):
                part = plus(part, x[k, c, j])
            total += part
        mean = f32(total / (channels * n))
        squares = 0.0
        for c in range(c0, c0 + channels):
            part = f32(0)
            for j in range(n):
                d = x[k, c, j] - mean
                part = plus(part, d * d)
            squares += part
        mu[i] = mean
        var[i] = f32(squares / (channels * n))
        rstd = f32(1) / sqrt(var[i] + f32(eps))
        for c in range(c0, c0 + channels):
            scale = weight[c] * rstd
            shift = bias[c]
            for j in range(n):
                out[k, c, j] = (x[k, c, j] - mean) * scale + shift


@loop
def group_norm_x(g, x, weight, mu, var, groups, eps, out, slopes, totals, first, end):
    """out = (h - mean(h) - d mean(h d) / (var + eps)) / sqrt(var + eps), h = g weight, d = x - mu;
    for the gradients of weight and bias, of each sample: slopes = sum(g d) / sqrt(var + eps),
    totals = sum(g)."""
    restrict()
    wide()
    n, channels = x.shape[2], x.shape[1] // groups
    for i in range(first, end):
        k, c0, mean = i // groups, i % groups * channels, mu[i]
        rstd = f32(1) / sqrt(var[i] + f32(eps))
        total = 0.0
        along = 0.0
        for c in range(c0, c0 + channels):
            part = f32(0)
            beside = f32(0)
            for j in range(n):
                part = plus(part, g[k, c, j])
                beside = plus(beside, g[k, c, j] * (x[k, c, j] - mean))
            totals[k, c] = part
            slopes[k, c] = beside * rstd
            total += part * weight[c]
            along += beside * weight[c]
        share = f32(total / (channels * n)) * rstd
        slope = f32(along / (channels * n)) * rstd * rstd * rstd
        for c in range(c0, c0 + channels):
            scale = weight[c] * rstd
            for j in range(n):
                out[k, c, j] = g[k, c, j] * scale - share - (x[k, c, j] - mean) * slope


@loop
def batch_norm_across(x, weight, bias, eps, out, mu, var):
    restrict()
    samples, n = x.shape
    total = empty(n, f64)
    scale = empty(n, f32)
    for c in range(n):
        total[c] = 0.0
    for k in range(samples):
        for c in range(n):
            total[c] += x[k, c]
    for c in range(n):
        mu[c] = f32(total[c] / samples)
        total[c] = 0.0
    for k in range(samples):
        for c in range(n):
            d = x[k, c] - mu[c]
            total[c] += d * d
    for c in range(n):
        var[c] = f32(total[c] / samples)
        scale[c] = weight[c] / sqrt(var[c] + f32(eps))
    for k in range(samples):
        for c in range(n):
            out[k, c] = (x[k, c] - mu[c]) * scale[c] + bias[c]


@loop
def batch_norm_x_across(g, x, weight, mu, var, eps, out, slopes, totals):
    """As `batch_norm_x`."""
    restrict()
    samples, n = x.shape
    total, along = empty(n, f64), empty(n, f64)
    scale, share, slope = empty(n, f32), empty(n, f32), empty(n, f32)
    for c in range(n):
        total[c] = 0.0
        along[c] = 0.0
    for k in range(samples):
        for c in range(n):
            total[c] += g[k, c]
            along[c] += g[k, c] * (x[k, c] - mu[c])
    for c in range(n):
        spread = var[c] + f32(eps)
        slopes[c] = f32(along[c]) / sqrt(spread)
        totals[c] = f32(total[c])
        scale[c] = weight[c] / sqrt(spread)
        share[c] = f32(total[c] / samples)
        slope[c] = f32(along[c] / samples) / spread
    for k in range(samples):
        for c in range(n):
            out[k, c] = scale[c] * (g[k, c] - share[c] - (x[k, c] - mu[c]) * slope[c])


# -- along the middle one of three dimensions, of n numbers; arrays are (samples, n across), and 102


@loop
def softmax(x, out, n):
    restrict()
    wide()
    across = x.shape[1] // n
    top, total = empty(1024, f32), empty(1024, f32)
    for i in range(x.shape[0]):
        for start in range(0, across, 1024):
            width, first = min(1024, across - start), i * n * across + start
            for j in range(width):
                top[j] = f32(-inf)
                total[j] = f32(0)
            for at in range(first, first + n * across, across):
                for j in range(width):
                    top[j] = largest(top[j], get(x, at + j))
            for at in range(first, first + n * across, across):
                for j in range(width):
                    e = exp(get(x, at + j) - top[j])
                    put(out, at + j, e)
                    total[j] += e
            for at in range(first, first + n * across, across):
                for j in range(width):
                    put(out, at + j, get(out, at + j) / total[j])


@loop
def softmax_x(g, y, out, n):
    """out = y (g - sum(g y))."""
    restrict()
    wide()
    across = y.shape[1] // n
    along = empty(1024, f32)
    for i in range(y.shape[0]):
        for start in range(0, across, 1024):
            width, first = min(1024, across - start), i * n * across + start
            for j in range(width):
                along[j] = f32(0)
            for at in range(first, first + n * across, across):
                for j in range(width):
                    along[j] += get(g, at + j) * get(y, at + j)
            for at in range(first, first + n * across, across):
                for j in range(width):
                    put(out, at + j, get(y, at + j) * (get(g, at + j) - along[j]))


@loop
def log_softmax(x, out, n):
    restrict()
    wide()
    across = x.shape[1] // n
    top, total = empty(1024, f32), empty(1024, f32)
    for i in range(x.shape[0]):
        for start in range(0, across, 1024):
            width, first = min(1024, across - start), i * n * across + start
            for j in range(width):
                top[j] = f32(-inf)
                total[j] = f32(0)
            for at in range(first, first + n * across, across):
                for j in range(width):
                    top[j] = largest(top[j], get(x, at + j))
            for at in range(first, first + n * across, across):
                for j in range(width):
                    total[j] += exp(get(x, at + j) - top[j])
            for j in range(width):
                total[j] = log(total[j])
            for at in range(first, first + n * across, across):
                for j in range(width):
                    put(out, at + j, (get(x, at + j) - top[j]) - total[j])


@loop
def log_softmax_x(g, y, out, n):
    """out = g - exp(y) sum(g)."""
    restrict()
    wide()
    across = y.shape[1] // n
    total = empty(1024, f32)
    for i in range(y.shape[0]):
        for start in range(0, across, 1024):
            width, first = min(1024, across - start), i * n * across + start
            for j in range(width):
                total[j] = f32(0)
            for at in range(first, first + n * across, across):
                for j in range(width):
                    total[j] += get(g, at + j)
            for at in range(first, first + n * across, across):
                for j in range(width):
                    put(out, at + j, get(g, at + j) - exp(get(y, at + j)) * total[j])
