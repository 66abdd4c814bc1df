"""Pooling over windows and its derivatives, in any number of spatial dimensions.

Maxima are returned with their indices, flat over the spatial input like torch's `return_indices`. Their derivative
scatters the gradient to these indices (`scatter_spatial`), and the second derivative gathers it again
(`gather_spatial`). Averages are linear and go dimension by dimension; their gradient is the same sums transposed.

Arrays are NumPy's, x (N, C, *size); kernel, stride, padding, dilation are tuples with a number for each spatial
dimension. float16 and bfloat16 are added up in float32."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, reduce
from itertools import product
from math import prod

import numpy as np
from numpy import ndarray

from rushlight.base.faster import site
from rushlight.base.intp import as_intp
from rushlight.kernels.im2col import (
    Ints,
    Pairs,
    Tap,
    adaptive_windows,
    check_indices,
    check_windows,
    reach,
    taps,
    valid_windows,
    wide_dtype,
    window_counts,
)
from rushlight.kernels.layout import like_images, plain

# Bytes of planes whose maxima are found together: planes and results fit the L2 cache.
BLOCK_BYTES = 1 << 18


def max_pool(
    x: ndarray, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool
) -> tuple[ndarray, ndarray]:
    """out[n, c, p] = max over k of x[n, c, p stride - padding + k dilation], and its flat index in x[n, c].

    x (N, C, *size), real, not bool -> values and int64 indices (N, C, *out). Among equal elements the first counts,
    among NaN the last, as in torch; padding never counts. RuntimeError, in torch's words, if no window fits or the
    padding is more than half the kernel; NotImplementedError for bool and complex.

        >>> values, indices = max_pool(np.arange(16.0).reshape(1, 1, 4, 4), (2, 2), (2, 2), (0, 0), (1, 1), False)
        >>> values[0, 0].tolist(), indices[0, 0].tolist()
        ([[5.0, 7.0], [13.0, 15.0]], [[5, 7], [13, 15]])
    """
    op = f"max_pool{len(kernel)}d"
    out = pooled_size(op, x.shape[1:], kernel, stride, padding, dilation, ceil_mode)
    size = x.shape[2:]
    check_reached(op, size, kernel, stride, padding, dilation, out)
    planes = x.reshape(-1, *size).astype(wide_dtype(x.dtype), copy=False)
    values, indices = best_of_windows(planes, kernel, stride, padding, dilation, out)
    shape = (*x.shape[:2], *out)
    return like_images(values.reshape(shape).astype(x.dtype, copy=False), x), like_images(indices.reshape(shape), x)


@site
def max_values(x: ndarray, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool) -> ndarray:
    """`max_pool` without the indices."""
    return max_pool(x, kernel, stride, padding, dilation, ceil_mode)[0]


@site
def best_of_windows(
    x: ndarray, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, out: Ints
) -> tuple[ndarray, ndarray]:
    """Maxima and indices of x (P, *size)."""
    if prod(out) >= prod(kernel):
        return best_of_taps(x, kernel, stride, padding, dilation, out)
    windows = map(valid_windows, x.shape[1:], kernel, stride, padding, dilation, out)
    return best_of_each(x, tuple(windows))


@site
def best_of_parts(x: ndarray, out: Ints) -> tuple[ndarray, ndarray]:
    """Maxima and indices of `out` nearly equal parts of x (P, *size)."""
    return best_of_each(x, tuple(map(adaptive_windows, x.shape[1:], out)))


@site
def best_of_taps(
    x: ndarray, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, out: Ints
) -> tuple[ndarray, ndarray]:
    """Maxima and indices of x (P, *size), one tap at a time over all windows; twice as fast as torch's loop."""
    size = x.shape[1:]
    met = taps(size, kernel, stride, padding, dilation, out)
    first, offsets, base = places(size, kernel, stride, padding, dilation, out)
    values, indices = np.empty((len(x), *out), x.dtype), np.empty((len(x), *out), np.int64)
    step = max(1, BLOCK_BYTES // (x.itemsize * max(1, prod(size))))
    for start in range(0, len(x), step):
        block = slice(start, start + step)
        code = climb(x[block], values[block], first, met)
        np.take(offsets, code, out=indices[block], mode="clip")
        indices[block] += base
    return values, indices


def climb(x: ndarray, best: ndarray, first: ndarray, met: tuple[Tap, ...]) -> ndarray:
    """Fill `best` (P, *out) with the maxima of x (P, *size). Returns the tap of each maximum."""
    code = np.repeat(first[None], len(x), 0)
    best.fill(-np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min)
    for t, tap in enumerate(met):
        value, target, winner = np.ascontiguousarray(x[tap.input]), best[tap.out], code[tap.out]
        above = (value > target).astype(code.dtype)
        above *= code.dtype.type(t)
        # taps come in order, so the last tap that wins is the largest
        np.maximum(winner, above, out=winner)
        np.maximum(target, value, out=target)
    if x.dtype.kind == "f" and np.isnan(best).any():
        for t, tap in enumerate(met):
            winner = code[tap.out]
            np.maximum(winner, np.isnan(x[tap.input]) * code.dtype.type(t), out=winner)
    return code


@lru_cache(maxsize=16)
def places(
    size: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, out: Ints
) -> tuple[ndarray, ndarray, ndarray]:
    """The number of each window's first tap outside of the padding (*out), the flat offsets of the taps from the
    window's origin (T,), and the flat offsets of the origins (*out).
    """
    met = taps(size, kernel, stride, padding, dilation, out)
    first = np.zeros(out, np.min_scalar_type(len(met)))
    for t in range(len(met) - 1, -1, -1):
        first[met[t].out] = t
    pitch = [prod(size[i + 1 :]) for i in range(len(size))]
    at = [tap.column[1 : len(size) + 1] for tap in met]
    offsets = np.array([sum(k * d * q for k, d, q in zip(ks, dilation, pitch)) for ks in at], np.int64)
    origins = [(np.arange(o) * s - p) * q for o, s, p, q in zip(out, stride, padding, pitch)]
    base: ndarray = reduce(np.add, np.ix_(*origins))
    return first, offsets, base


def best_of_each(x: ndarray, windows: tuple[list[slice], ...]) -> tuple[ndarray, ndarray]:
    """Maxima and indices of x (P, *size), one window at a time; `windows` has the slices of each dimension."""
    out = tuple(map(len, windows))
    values, indices = np.empty((len(x), *out), x.dtype), np.empty((len(x), *out), np.int64)
    flat = np.arange(prod(x.shape[1:])).reshape(x.shape[1:])
    for at, window in zip(np.ndindex(out), product(*windows)):
        positions = flat[window].ravel()
        place, part = (..., *at), (slice(None), *window)
        values[place], best = best_of_rows(x[part].reshape(len(x), len(positions)))
        indices[place] = positions.take(best)
    return values, indices


def best_of_rows(x: ndarray) -> tuple[ndarray, ndarray]:
    """The maximum of each row and its index: the first of equal elements, the last NaN if there is one."""
    best = x.argmax(1)
    values = np.take_along_axis(x, best[:, None], 1)[:, 0]
    if x.dtype.kind == "f" and np.isnan(values).any():
        best = np.where(np.isnan(values), x.shape[1] - 1 - np.isnan(x[:, ::-1]).argmax(1), best)
    return values, best


def adaptive_max_pool(x: ndarray, output_size: Ints) -> tuple[ndarray, ndarray]:
    """The maximum of each of `output_size` nearly equal parts; part p goes from floor(p in / out) to ceil((p + 1) in /
    out).

    x (N, C, *size), real, not bool -> values and int64 indices, flat over the spatial input, (N, C, *output_size). Ties
    and NaN as in `max_pool`. RuntimeError for a negative output size or an empty spatial input.

        >>> adaptive_max_pool(np.arange(5.0).reshape(1, 1, 5), (2,))[1].tolist()
        [[[2, 4]]]
    """
    op, size = f"adaptive_max_pool{len(output_size)}d", x.shape[2:]
    check_adaptive(op, x.shape, output_size)
    kernel = even_parts(size, output_size)
    if kernel is not None and x.shape[1]:
        first, at = max_pool(x if x.ndim == 4 else plain(x), kernel, kernel, (0,) * len(size), (1,) * len(size), False)
        return flat_like(first, x), flat_like(at, x)
    planes = x.reshape(-1, *size).astype(wide_dtype(x.dtype), copy=False)
    values, indices = best_of_parts(planes, output_size)
    shape = (*x.shape[:2], *output_size)
    return flat_like(values.reshape(shape).astype(x.dtype, copy=False), x), flat_like(indices.reshape(shape), x)


@lru_cache(maxsize=256)
def even_parts(size: Ints, out: Ints) -> Ints | None:
    """The size of `out` equal parts; None if the parts are not equal."""
    if not prod(out) or any([s % o for s, o in zip(size, out)]):
        return None
    return tuple([s // o for s, o in zip(size, out)])


def flat_like(r: ndarray, x: ndarray) -> ndarray:
    """r in x's memory order; a line counts as an image of one row. Volumes stay in C order, as in torch's averaging."""
    if x.ndim == 3 and not x.flags.c_contiguous:
        return like_images(r[:, :, None], x[:, :, None])[:, :, 0]
    return like_images(r, x) if x.ndim == 4 else r


def scatter_spatial(g: ndarray, indices: ndarray, size: Ints) -> ndarray:
    """out[n, c, i] = sum of g[n, c, p] over all p with indices[n, c, p] = i, i flat over `size`.

    g and int64 indices (N, C, *out) -> (N, C, *size), zero where no index points. It is the derivative of `max_pool`
    and of `gather_spatial`; its own derivative is `gather_spatial`. IndexError for an index outside.

        >>> scatter_spatial(np.ones((1, 1, 2)), np.array([[[3, 3]]]), (4,)).tolist()
        [[[0.0, 0.0, 0.0, 2.0]]]
    """
    total = scattered(*[a if a.flags.carray else a.copy() for a in (g, indices)], size)
    return like_images(total, indices)  # not a view: the gradient of a leaf would be copied


def added_at(g: ndarray, indices: ndarray, size: Ints) -> ndarray:
    """`scatter_spatial` by np.add.at."""
    check_indices("scatter_spatial", indices, size)
    total = np.zeros(g.shape[0] * g.shape[1] * prod(size), wide_dtype(g.dtype))
    np.add.at(total, flat_indices(indices, size).reshape(-1), g.reshape(-1).astype(total.dtype, copy=False))
    return total.astype(g.dtype, copy=False).reshape(*g.shape[:2], *size)


@site
def scattered(g: ndarray, indices: ndarray, size: Ints) -> ndarray:
    return added_at(g, indices, size)


def gather_spatial(x: ndarray, indices: ndarray) -> ndarray:
    """out[n, c, p] = x[n, c, indices[n, c, p]], x flat over its spatial dimensions.

    x (N, C, *size), int64 indices (N, C, *out) -> (N, C, *out). `scatter_spatial` is its derivative. IndexError for an
    index outside.

        >>> gather_spatial(np.array([[[5.0, 6.0, 7.0]]]), np.array([[[2, 0, 2]]])).tolist()
        [[[7.0, 5.0, 7.0]]]
    """
    check_indices("gather_spatial", indices, x.shape[2:])
    return x.reshape(-1).take(as_intp(flat_indices(indices, x.shape[2:]))).reshape(indices.shape)


def flat_indices(indices: ndarray, size: Ints) -> ndarray:
    """Indices within each plane -> indices into all planes (N C, *size), as a matrix (N C, P)."""
    planes = indices.shape[0] * indices.shape[1]
    flat = indices.reshape(planes, prod(indices.shape[2:]))
    return flat + np.arange(planes).reshape(planes, 1) * prod(size)


def avg_pool(
    x: ndarray,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> ndarray:
    """out[n, c, p] = 1 / d sum over k of x[n, c, p stride - padding + k]; padding counts as 0.

    d is `divisor_override`, or the number of elements in the window. Padding counts if `count_include_pad`; elements
    that `ceil_mode` adds beyond the padding never count. x (N, C, *size), float or integer (truncated) -> (N, C, *out).
    It is linear, so its derivative is its transpose, `avg_pool_grad`. RuntimeError, in torch's words, if no window
    fits, the padding is more than half the kernel, or the divisor is 0; NotImplementedError for bool and complex.

        >>> avg_pool(np.ones((1, 1, 3)), (2,), (2,), (1,), False, True, None).tolist()
        [[[0.5, 1.0]]]
    """
    op = f"avg_pool{len(kernel)}d"
    ones = (1,) * len(kernel)
    out = pooled_size(op, x.shape[1:], kernel, stride, padding, ones, ceil_mode)
    size = x.shape[2:]
    if kernel == size and not any(padding) and divisor_override is None and x.dtype.kind not in "iu":
        return whole_planes(x)
    divisor = window_sizes(size, kernel, stride, padding, out, count_include_pad, divisor_override)
    sums = window_sums(x, out, tap_pairs, size, kernel, stride, padding, out)
    return flat_like(divided(sums, divisor, x.dtype), x)


def avg_pool_grad(
    g: ndarray,
    size: Ints,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> ndarray:
    """`avg_pool` transposed: out[n, c, p stride - padding + k] += g[n, c, p] / d.

    g (N, C, *out) -> (N, C, *size). `avg_pool` is its derivative. RuntimeError as for `avg_pool`, and if g does not
    have the shape of its result.

        >>> avg_pool_grad(np.ones((1, 1, 2)), (4,), (2,), (2,), (0,), False, True, None).tolist()
        [[[0.5, 0.5, 0.5, 0.5]]]
    """
    op = f"avg_pool{len(kernel)}d"
    out = pooled_size(op, (g.shape[1], *size), kernel, stride, padding, (1,) * len(kernel), ceil_mode)
    check_shape(op, g, out)
    divisor = window_sizes(size, kernel, stride, padding, out, count_include_pad, divisor_override)
    shares = divided(g, divisor, wide_dtype(g.dtype))
    if kernel == size and prod(out) == 1 and not any(padding):
        whole = spread_evenly(shares, size, g.dtype)
        return like_images(whole, g) if g.ndim == 4 else whole
    spread = window_spread(shares, size, tap_pairs, size, kernel, stride, padding, out)
    return like_images(spread.astype(g.dtype, copy=False), g) if g.ndim == 4 else spread.astype(g.dtype, copy=False)


def adaptive_avg_pool(x: ndarray, output_size: Ints) -> ndarray:
    """The mean of each of `output_size` nearly equal parts; part p goes from floor(p in / out) to ceil((p + 1) in /
    out).

    x (N, C, *size), float -> (N, C, *output_size). It is linear, so its derivative is its transpose,
    `adaptive_avg_pool_grad`. RuntimeError for a negative output size or an empty spatial input; NotImplementedError
    unless x is float.

        >>> adaptive_avg_pool(np.arange(5.0).reshape(1, 1, 5), (2,)).tolist()
        [[[1.0, 3.0]]]
    """
    op, size = f"adaptive_avg_pool{len(output_size)}d", x.shape[2:]
    check_adaptive(op, x.shape, output_size)
    if prod(output_size) == 1:
        return whole_planes(x)
    sums = window_sums(x, output_size, adaptive_pairs, size, output_size)
    return flat_like(divided(sums, adaptive_sizes(size, output_size), x.dtype), x)


def adaptive_avg_pool_grad(g: ndarray, size: Ints) -> ndarray:
    """`adaptive_avg_pool` transposed: each gradient is divided evenly over its window, g (N, C, *out) -> (N, C, *size).

    >>> adaptive_avg_pool_grad(np.ones((1, 1, 1)), (4,)).tolist()
    [[[0.25, 0.25, 0.25, 0.25]]]
    """
    out = g.shape[2:]
    check_adaptive(f"adaptive_avg_pool{len(out)}d", (*g.shape[:2], *size), out)
    shares = divided(g, adaptive_sizes(size, out), wide_dtype(g.dtype))
    if prod(out) == 1:
        return spread_evenly(shares, size, g.dtype)
    return window_spread(shares, size, adaptive_pairs, size, out).astype(g.dtype, copy=False)


def spread_evenly(shares: ndarray, size: Ints, dtype: np.dtype) -> ndarray:
    """The gradient of one window that covers the whole input: g (N, C, 1, ...) -> (N, C, *size)."""
    whole = np.empty((*shares.shape[:2], *size), dtype)
    whole[...] = shares
    return whole


def whole_planes(x: ndarray) -> ndarray:
    """The mean of each plane of x (N, C, *size), (N, C, 1, ...)."""
    r = means_of_rows(x.reshape(-1, prod(x.shape[2:])))
    return r.astype(x.dtype, copy=False).reshape(*x.shape[:2], *(1,) * (x.ndim - 2))


@site
def means_of_rows(x: ndarray) -> ndarray:
    return x.mean(-1, dtype=wide_dtype(x.dtype))


@site
def window_sums(x: ndarray, out: Ints, pairs: Callable, *dims: Ints) -> ndarray:
    """The sum of x (N, C, *size) over each window (N, C, *out)."""
    return summed(x, out, pairs, *dims)


def summed(x: ndarray, out: Ints, pairs: Callable, *dims: Ints) -> ndarray:
    """`window_sums`, one dimension at a time (`passes`)."""
    x = x.astype(np.int64 if x.dtype.kind in "iu" else wide_dtype(x.dtype), copy=False)
    for axis, length in enumerate(out, 2):
        total = np.zeros((*x.shape[:axis], length, *x.shape[axis + 1 :]), x.dtype)
        for windows, elements, whole in passes(pairs, axis, *[dim[axis - 2] for dim in dims])[0]:
            target, part = total[windows], x[elements]
            if whole:
                part = part.sum(axis, keepdims=True)
            np.add(target, part, out=target)
        x = total
    return x


@site
def window_spread(g: ndarray, size: Ints, pairs: Callable, *dims: Ints) -> ndarray:
    """`window_sums` transposed: (N, C, *out) -> (N, C, *size)."""
    for axis in range(len(size) + 1, 1, -1):
        shape = (*g.shape[:axis], size[axis - 2], *g.shape[axis + 1 :])
        parts, apart = passes(pairs, axis, *[dim[axis - 2] for dim in dims])
        total = np.empty(shape, g.dtype) if apart else np.zeros(shape, g.dtype)
        for windows, elements, _ in parts:
            target = total[elements]
            if apart:
                target[...] = g[windows]
            else:
                np.add(target, g[windows], out=target)
        g = total
    return g


@lru_cache(maxsize=256)
def passes(pairs: Callable, axis: int, size: int, *how: int) -> tuple[list[tuple[tuple, tuple, bool]], bool]:
    """(subscripts of the windows, subscripts of the input, one window?) for each addition along one axis; and whether
    each element is in exactly one window. `pairs(size, *how)` gives pairs of slices; how[-1] is the number of windows.
    Cached: computing it took 9 of 26 us for 2 x 3 images of 8 x 8.
    """
    dim, head = pairs(size, *how), (slice(None),) * axis
    many = [(len(range(how[-1])[windows]), range(size)[elements]) for windows, elements in dim]
    parts = [
        ((*head, windows), (*head, elements), n != len(inside)) for (windows, elements), (n, inside) in zip(dim, many)
    ]
    return parts, sorted([i for _, inside in many for i in inside]) == list(range(size))


def divided(x: ndarray, divisor: ndarray | int, dtype: np.dtype) -> ndarray:
    """x / divisor as dtype; integers are truncated towards 0, as in C."""
    if x.dtype.kind in "iu":
        return ((x - np.fmod(x, divisor)) // divisor).astype(dtype, copy=False)
    x = x.astype(wide_dtype(x.dtype), copy=False)  # half precision may overflow before the division
    made = np.divide(x, np.asarray(divisor, x.dtype))
    return made if made.dtype is dtype else made.astype(dtype, copy=False)


def tap_pairs(size: int, kernel: int, stride: int, padding: int, out: int) -> Pairs:
    return [(windows, elements) for _, windows, elements in reach(size, kernel, stride, padding, 1, out)]


def adaptive_pairs(size: int, out: int) -> Pairs:
    """A pair for each window; if windows are small and regular, a pair for each element of a window."""
    if out and size % out == 0 and size // out < out:
        return tap_pairs(size, size // out, size // out, 0, out)
    return [(slice(p, p + 1), window) for p, window in enumerate(adaptive_windows(size, out))]


@lru_cache(maxsize=256)
def adaptive_sizes(size: Ints, out: Ints) -> ndarray:
    return outer([[w.stop - w.start for w in adaptive_windows(s, o)] for s, o in zip(size, out)])


@lru_cache(maxsize=256)
def window_sizes(
    size: Ints, kernel: Ints, stride: Ints, padding: Ints, out: Ints, include_pad: bool, override: int | None
) -> ndarray | int:
    """The divisor of each window's sum."""
    if override is not None:
        if override == 0:
            raise RuntimeError("divisor must be not zero: avg_pool takes another divisor_override, or None")
        return override
    if not any(padding) and all((o - 1) * s + k <= n for o, s, k, n in zip(out, stride, kernel, size)):
        return prod(kernel)
    return outer(
        [
            [counted(n, k, start, p, include_pad) for start in range(-p, o * s - p, s)]
            for n, k, s, p, o in zip(size, kernel, stride, padding, out)
        ]
    )


def counted(size: int, kernel: int, start: int, padding: int, include_pad: bool) -> int:
    end = min(start + kernel, size + padding)
    return end - start if include_pad else min(end, size) - max(start, 0)


def outer(lengths: list[list[int]]) -> ndarray:
    """All products of one number from each list: (len, len, ...); read-only."""
    table = np.asarray(prod(np.ix_(*lengths)), np.int64)
    table.flags.writeable = False
    return table


@lru_cache(maxsize=256)
def pooled_size(op: str, shape: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil: bool) -> Ints:
    """The spatial size of a pooled (C, *size); RuntimeError, in torch's words, if the size is impossible."""
    check_windows(op, kernel, stride, padding, dilation)
    size = shape[1:]
    if len(size) != len(kernel) or not prod(shape):
        n = len(kernel)
        what = f"Expected {n + 1}D or {n + 2}D (batch mode) tensor with optional 0 dim batch size for input"
        if n == 3:
            what = "Expected input's non-batch dimensions to have positive length"
        raise RuntimeError(f"{op}: {what}, but got an input of (channels, *size) = {list(shape)}")
    for k, p, d in zip(kernel, padding, dilation):
        if p > ((k - 1) * d + 1) // 2:
            raise RuntimeError(
                f"pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and "
                f"dilation={d}. {op}: pad the input itself with F.pad"
            )
    out = window_counts(size, kernel, stride, padding, dilation, ceil)
    if min(out) < 1:
        if op == "max_pool1d":
            raise RuntimeError(
                f"max_pool1d() Invalid computed output size: {out[0]}; hint: pad the input or take a smaller kernel "
                f"than {kernel} with dilation {dilation}"
            )
        given, made = ("x".join(map(str, (shape[0], *dims))) for dims in (size, out))
        raise RuntimeError(
            f"Given input size: ({given}). Calculated output size: ({made}). Output size is too small. {op}: pad the "
            f"input or take a smaller kernel than {kernel} with dilation {dilation}"
        )
    return out


@lru_cache(maxsize=256)
def check_reached(op: str, size: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, out: Ints) -> None:
    """RuntimeError if a window contains no input element: a dilated window may step over the whole input."""
    for dims in zip(size, kernel, stride, padding, dilation, out):
        if any(window.start >= window.stop for window in valid_windows(*dims)):
            raise RuntimeError(
                f"{op}: a window of kernel {kernel} and dilation {dilation} covers only padding {padding}, for "
                f"input size {size}; use less padding or dilation"
            )


@lru_cache(maxsize=256)
def check_adaptive(op: str, shape: Ints, output_size: Ints) -> None:
    if len(shape) != len(output_size) + 2:
        raise RuntimeError(
            f"{op}: output_size {tuple(output_size)} has {len(output_size)} numbers for the {len(shape) - 2} spatial "
            f"dimensions of an input {list(shape)}"
        )
    if min(output_size) < 0:
        raise RuntimeError(
            f"{op}: elements of output_size must be greater than or equal to 0 but received {tuple(output_size)}"
        )
    if not prod(shape[2:]):  # torch accepts an image without channels, but not a batch of them
        raise RuntimeError(
            f"{op}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
            f"{list(shape)}; drop the empty input"
        )


def check_shape(op: str, g: ndarray, out: Ints) -> None:
    if g.shape[2:] != out:
        raise RuntimeError(
            f"{op}: the gradient has shape {list(g.shape)}, but this input size, kernel, stride and padding give "
            f"{[*g.shape[:2], *out]}"
        )
