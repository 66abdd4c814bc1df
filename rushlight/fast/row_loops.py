"""Compiled loops over the rows of large float32 matrices: each row stays in the cache while it is
read several times.

Read by fast/softmax_norm.py when a large tensor asks first. `exp`, `log`, `plus`, `largest`, `f32`
are what loops find as globals (`scope` in loops/cache.py). Sums are of float32 in as many parts as
a vector register holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight.loops.cache import loop

if TYPE_CHECKING:  # what loops find as globals: `scope` in loops/cache.py
    from rushlight.loops.loop_names import (
        exp,
        f32,
        f64,
        inf,
        largest,
        log,
        plus,
        restrict,
        smallest,
        sqrt,
        sqrt64,
        wide,
    )


@loop
def softmax(x, out):
    restrict()
    wide()
    n = x.shape[1]
    for i in range(x.shape[0]):
        top = f32(-inf)
        for j in range(n):
            top = largest(top, x[i, j])
        total = f32(0)
        for j in range(n):
            e = exp(x[i, j] - top)
            out[i, j] = e
            total = plus(total, e)
        for j in range(n):
            out[i, j] = out[i, j] / total


@loop
def softmax_x(g, y, out):
    """out = y (g - sum(g y))."""
    restrict()
    wide()
    n = y.shape[1]
    for i in range(y.shape[0]):
        along = f32(0)
        for j in range(n):
            along = plus(along, g[i, j] * y[i, j])
        for j in range(n):
            out[i, j] = y[i, j] * (g[i, j] - along)


@loop
def log_softmax(x, out):
    restrict()
    wide()
    n = x.shape[1]
    for i in range(x.shape[0]):
        top = f32(-inf)
        for j in range(n):
            top = largest(top, x[i, j])
        total = f32(0)
        for j in range(n):
            total = plus(total, exp(x[i, j] - top))
        share = log(total)
        for j in range(n):
            out[i, j] = (x[i, j] - top) - share


@loop
def log_softmax_x(g, y, out):
    """out = g - exp(y) sum(g)."""
    restrict()
    wide()
    n = y.shape[1]
    for i in range(y.shape[0]):
        total = f32(0)
        for j in range(n):
            total = plus(total, g[i, j])
        for j in range(n):
            out[i, j] = g[i, j] - exp(y[i, j]) * total


@loop
def layer_norm(x, weight, bias, eps, out, mu, var):
    restrict()
    wide()
    n = x.shape[1]
    count, least = f32(n), f32(eps)
    for i in range(x.shape[0]):
        total = f32(0)
        for j in range(n):
            total = plus(total, x[i, j])
        mean = total / count
        squares = f32(0)
        for j in range(n):
            d = x[i, j] - mean
            squares = plus(squares, d * d)
        mu[i] = mean
        var[i] = squares / count
        scale = f32(1) / sqrt(squares / count + least)
        for j in range(n):
            out[i, j] = (x[i, j] - mean) * scale * weight[j] + bias[j]


@loop
def layer_norm_back(g, x, weight, mu, var, eps, out, sums):
    """out = (h - mean(h) - d mean(h d) / (var + eps)) / sqrt(var + eps), h = g weight, d = x - mu;
    sums: over the rows of g d / sqrt(var + eps), the weight's gradient, and of g, the bias's.
    """
    restrict()
    wide()
    n = x.shape[1]
    count, least = f32(n), f32(eps)
    for j in range(n):
        sums[0, j] = f32(0)
        sums[1, j] = f32(0)
    for i in range(x.shape[0]):
        scale = f32(1) / sqrt(var[i] + least)
        mean = mu[i]
        total = f32(0)
        along = f32(0)
        for j in range(n):
            h = g[i, j] * weight[j]
            total = plus(total, h)
            along = plus(along, h * (x[i, j] - mean))
        total = total / count
        along = along / count * scale * scale
        for j in range(n):
            d = x[i, j] - mean
            out[i, j] = scale * (g[i, j] * weight[j] - total - d * along)
            sums[0, j] = sums[0, j] + g[i, j] * d * scale
            sums[1, j] = sums[1, j] + g[i, j]


@loop
def layer_norm_weight(g, x, mu, var, eps, out):
    """out[j] = sum over the rows of g d / sqrt(var + eps)."""
    restrict()
    wide()
    least = f32(eps)
    for j in range(out.shape[0]):
        out[j] = f32(0)
    for i in range(x.shape[0]):
        scale = f32(1) / sqrt(var[i] + least)
        mean = mu[i]
        for j in range(out.shape[0]):
            out[j] = out[j] + g[i, j] * (x[i, j] - mean) * scale


@loop
def logsumexp(x, out):
    restrict()
    wide()
    n = x.shape[1]
    for i in range(x.shape[0]):
        top = f32(-inf)
        for j in range(n):
            top = largest(top, x[i, j])
        if top - top != f32(0):  # an infinity or nan may not be subtracted
            top = f32(0)
        total = f32(0)
        for j in range(n):
            total = plus(total, exp(x[i, j] - top))
        out[i] = log(total) + top


@loop
def logsumexp_x(g, x, y, out):
    """out = g exp(x - y), g and y one number for each row."""
    restrict()
    wide()
    for i in range(x.shape[0]):
        slope = g[i]
        whole = y[i]
        for j in range(x.shape[1]):
            out[i, j] = slope * exp(x[i, j] - whole)


# -- along columns, in float64


@loop
def column_sums(x, out):
    restrict()
    wide()
    for j in range(out.shape[0]):
        out[j] = f64(0)
    for i in range(x.shape[0]):
        for j in range(out.shape[0]):
            out[j] += f64(x[i, j])


@loop
def column_squares(x, mean, out):
    """out[j] = sum of (x - mean)^2."""
    restrict()
    wide()
    for j in range(out.shape[0]):
        out[j] = f64(0)
    for i in range(x.shape[0]):
        for j in range(out.shape[0]):
            d = x[i, j] - mean[j]
            out[j] += f64(d * d)


@loop
def column_var_x(g, x, mean, factor, out):
    """out = g (x - mean) factor."""
    restrict()
    wide()
    share = f32(factor)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = g[j] * (x[i, j] - mean[j]) * share


@loop
def row_vars(x, left, out):
    """out[i] = sum of (x - mean)^2 / left."""
    restrict()
    wide()
    for i in range(x.shape[0]):
        whole = f64(0)
        for start in range(0, x.shape[1], 4096):
            row = x[i, start : start + 4096]
            total = f32(0)
            for j in range(row.shape[0]):
                total = plus(total, row[j])
            whole += f64(total)
        mean = f32(whole / x.shape[1])
        whole = f64(0)
        for start in range(0, x.shape[1], 4096):
            row = x[i, start : start + 4096]
            total = f32(0)
            for j in range(row.shape[0]):
                d = row[j] - mean
                total = plus(total, d * d)
            whole += f64(total)
        out[i] = f32(whole / left)


@loop
def row_var_x(g, x, factor, out):
    """out = g (x - mean) factor."""
    restrict()
    wide()
    for i in range(x.shape[0]):
        whole = f64(0)
        for start in range(0, x.shape[1], 4096):
            row = x[i, start : start + 4096]
            total = f32(0)
            for j in range(row.shape[0]):
                total = plus(total, row[j])
            whole += f64(total)
        mean = f32(whole / x.shape[1])
        slope = g[i] * f32(factor)
        for j in range(x.shape[1]):
            out[i, j] = slope * (x[i, j] - mean)


# -- one number from each row; blocks of 4096 are added up in float32, blocks in float64


@loop
def sums(x, out):
    restrict()
    wide()
    for i in range(x.shape[0]):
        whole = f64(0)
        for start in range(0, x.shape[1], 4096):
            row = x[i, start : start + 4096]
            total = f32(0)
            for j in range(row.shape[0]):
                total = plus(total, row[j])
            whole += f64(total)
        out[i] = f32(whole)


@loop
def products(x, out):
    """Four numbers side by side, a million in 0.7 ms: one after the other, each waits for the one
    before, 1.4 ms."""
    restrict()
    wide()
    n = x.shape[1]
    for i in range(x.shape[0]):
        a = f32(1)
        b = f32(1)
        c = f32(1)
        d = f32(1)
        for j in range(0, n - 3, 4):
            a = a * x[i, j]
            b = b * x[i, j + 1]
            c = c * x[i, j + 2]
            d = d * x[i, j + 3]
        for j in range(n // 4 * 4, n):
            a = a * x[i, j]
        out[i] = a * b * (c * d)


@loop
def norms(x, out):
    """out[i] = sqrt(sum of x^2)."""
    restrict()
    wide()
    for i in range(x.shape[0]):
        whole = f64(0)
        for start in range(0, x.shape[1], 4096):
            row = x[i, start : start + 4096]
            total = f32(0)
            for j in range(row.shape[0]):
                total = plus(total, row[j] * row[j])
            whole += f64(total)
        out[i] = f32(sqrt64(whole))


@loop
def largest_of(x, out):
    restrict()
    wide()
    for i in range(x.shape[0]):
        top = f32(-inf)
        for j in range(x.shape[1]):
            top = largest(top, x[i, j])
        out[i] = top


@loop
def smallest_of(x, out):
    restrict()
    wide()
    for i in range(x.shape[0]):
        least = f32(inf)
        for j in range(x.shape[1]):
            least = smallest(least, x[i, j])
        out[i] = least


@loop
def running_sums(x, out, total):
    """Along the middle dimension of three, in float64, as NumPy does; total has a number for each
    of the last."""
    restrict()
    for i in range(x.shape[0]):
        for k in range(total.shape[0]):
            total[k] = f64(0)
        for j in range(x.shape[1]):
            for k in range(total.shape[0]):
                total[k] += f64(x[i, j, k])
                out[i, j, k] = f32(total[k])


@loop
def running_products(x, out, total):
    """As `running_sums`."""
    restrict()
    for i in range(x.shape[0]):
        for k in range(total.shape[0]):
            total[k] = f64(1)
        for j in range(x.shape[1]):
            for k in range(total.shape[0]):
                total[k] *= f64(x[i, j, k])
                out[i, j, k] = f32(total[k])


@loop
def running_products_of_rows(x, out):
    restrict()
    for i in range(x.shape[0]):
        total = f64(1)
        for j in range(x.shape[1]):
            total *= f64(x[i, j])
            out[i, j] = f32(total)


@loop
def running_sums_of_rows(x, out):
    restrict()
    for i in range(x.shape[0]):
        total = f64(0)
        for j in range(x.shape[1]):
            total += f64(x[i, j])
            out[i, j] = f32(total)
