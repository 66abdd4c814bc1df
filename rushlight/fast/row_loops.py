"""Compiled loops over the rows of large float32 matrices: each row stays in the cache while it is read several times.

Imported by fast/softmax_norm.py with the first large tensor. fast/row_text.py writes the loops of softmax, layer norm
and so on. `exp`, `log`, `plus`, `largest`, `f32` are globals of the loops (`scope` in loops/cache.py). Sums are
accumulated in float32, in one partial sum for each SIMD lane.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight.loops.cache import loop

if TYPE_CHECKING:  # globals of the loops: `scope` in loops/cache.py
    from rushlight.loops.loop_names import f32, f64, plus, restrict, sqrt64, times, wide

# -- channels of batches (N, C, L), from `first` to `end`


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


# -- reductions of rows to one number; blocks of 4096 are summed in float32, the blocks' sums in float64


@loop
def products(x, out):
    """The product of each row, with one partial result for each SIMD lane."""
    restrict()
    wide()
    for i in range(x.shape[0]):
        total = f32(1)
        for j in range(x.shape[1]):
            total = times(total, x[i, j])
        out[i] = total


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
def variances(x, correction, out):
    """out[b, k] = sum over j of (x[b, j, k] - mean)^2 / (n - correction), in float64."""
    restrict()
    n = f64(x.shape[1])
    for b in range(x.shape[0]):
        for k in range(x.shape[2]):
            mean = f64(0)
            for j in range(x.shape[1]):
                mean += f64(x[b, j, k])
            mean /= n
            total = f64(0)
            for j in range(x.shape[1]):
                d = f64(x[b, j, k]) - mean
                total += d * d
            out[b, k] = f32(total / (n - correction))


@loop
def running_sums(x, out, total):
    """Running sums along the middle of three dimensions, in float64, as NumPy does; `total` has a number for each
    element of the last dimension.
    """
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
    """Like `running_sums`, for products."""
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
