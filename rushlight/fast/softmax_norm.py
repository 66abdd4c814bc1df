"""Softmax, layer norm and batch norm of large float32 tensors, by the loops of fast/row_text.py and fast/row_loops.py:
NumPy would make six to ten passes. A function returns the result, or None if NumPy should do it: for other dtypes and
layouts, other dimensions than the last, and very long rows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from math import prod
from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.base.buffer_pool import memory
from rushlight.core.table import TABLE, Op, parameters
from rushlight.fast.index import REDUCTION_PARALLEL_ELEMENTS, SHORT_ROWS_ELEMENTS, VARIANCE_ELEMENTS
from rushlight.fast.reductions import FLOAT, loops, shared
from rushlight.fast.row_text import loop_of
from rushlight.kernels.layout import channels_last, like_images
from rushlight.kernels.reduce import NOISE
from rushlight.ops.reduce import reduce

SHORT = 16  # the least numbers in a channel of a sample; NumPy handles shorter channels
REMEMBERED = 1 << 18  # elements from which memory is reused
AT_ONCE = 1 << 18  # elements in the rows whose variances are recomputed together
LONG = 1 << 14  # the most elements of a row; in longer rows float32 sums are too inaccurate
Gradients = tuple[ndarray, ndarray, ndarray]  # the gradients of x, weight and bias


def run(op: Any, of: str, kernel: Callable, *args: Any) -> Any:
    """`kernel(*args)` by the loop for the op (`of`: "") or its derivative, if the loop supports these arguments."""
    if of:
        args = in_full(args[0], repeated=True), *args[1:]
    made = FUNCTIONS[op.name, of](*args)
    return kernel(*args) if made is None else made


def in_full(g: Any, repeated: bool = False) -> Any:
    """The gradient, or a list starting with it, copied if broadcasting has repeated its numbers, as after a sum or a
    mean: a step through batch norm of 262,144 took 4.9 ms, now 1.3. `repeated`: also copy a single repeated number;
    loops over elements support it, loops over rows do not.
    """
    if g.__class__ is list:
        return [in_full(g[0], repeated), *g[1:]]
    if g.__class__ is ndarray and not g.flags.forc and 0 in g.strides and (repeated or any(g.strides)):
        return np.ascontiguousarray(g)
    return g


def matrix(a: ndarray, n: int) -> ndarray | None:
    """The array as rows of n numbers, if its memory layout allows it."""
    flags = a.flags
    fits = a.dtype is FLOAT and 0 < n <= LONG and flags.c_contiguous and flags.aligned and loops() is not None
    return a.reshape(-1, n) if fits else None


def room(x: ndarray) -> ndarray:
    """Memory for a result of this shape; a lookup in the pool takes 1 us."""
    return np.empty(x.shape, FLOAT) if x.size < REMEMBERED else memory.take(x.shape, FLOAT)


def along_rows(name: str, of: str) -> Callable:
    """A function of an array, or of a gradient and the forward's results, along a dimension."""

    def along_a_dimension(*given: Any) -> ndarray | None:
        *arrays, dim = given
        x = arrays[-1]
        if dim != -1 and dim != x.ndim - 1:
            return across(name, of, dim, *arrays)
        n = x.shape[-1] if x.ndim else 0
        if len(arrays) == 1 and x.size < REDUCTION_PARALLEL_ELEMENTS:
            lines = matrix(x, n)
            if lines is None:
                return None
            out = room(x)
            loop_of(name, of, "rows")(lines, out.reshape(-1, n))
            return out
        rows = [matrix(a, n) for a in arrays]
        if arrays[0].shape != x.shape or any([a is None for a in rows]):
            return None
        out = room(x)
        shared(loop_of(name, of, "rows"), (*rows, out.reshape(-1, n)), (1,) * len(given), x.size)
        return out

    return along_a_dimension


def across(name: str, of: str, dim: int, *arrays: ndarray) -> ndarray | None:
    """The op along an inner dimension; SIMD vectors run over the dimensions after it."""
    shape = arrays[-1].shape
    fits = all([a.dtype is FLOAT and a.shape == shape and a.flags.carray for a in arrays]) and loops() is not None
    if (
        not fits
        or not shape
        or prod(shape[dim % len(shape) + 1 :]) < SHORT
        and arrays[-1].size > SHORT_ROWS_ELEMENTS
        or not 0 < shape[dim] <= LONG
    ):
        return None
    out, samples = room(arrays[-1]), prod(shape[: dim % len(shape)])
    given = [a.reshape(samples, -1) for a in (*arrays, out)]
    how = (*[1] * len(given), 0)
    shared(loop_of(name, of, "across"), (*given, shape[dim]), how, out.size)
    return out


def laid_out(g: ndarray) -> ndarray:
    """A small gradient, copied if broadcasting has repeated it, as after a mean."""
    return np.ascontiguousarray(g).reshape(g.shape)


def logsumexp(x: ndarray, dims: tuple[int, ...] | None, keepdim: bool) -> ndarray | None:
    rows = matrix(x, x.shape[-1]) if x.ndim and dims in ((x.ndim - 1,), (-1,)) else None
    if rows is None:
        return None
    out = np.empty(x.shape[:-1], FLOAT)
    shared(loop_of("logsumexp", "", "rows"), (rows, out.reshape(-1)), (1, 1), x.size)
    return out[..., None] if keepdim else out


def logsumexp_x(g: ndarray, x: ndarray, y: ndarray) -> ndarray | None:
    rows, gs, ys = matrix(x, x.shape[-1] if x.ndim else 0), matrix(laid_out(g), 1), matrix(y, 1)
    if rows is None or gs is None or ys is None or not g.shape == y.shape == (*x.shape[:-1], 1):
        return None
    out = room(x)
    shared(
        loop_of("logsumexp", "x", "rows"),
        (gs.reshape(-1), rows, ys.reshape(-1), out.reshape(rows.shape)),
        (1, 1, 1, 1),
        x.size,
    )
    return out


def columns(x: ndarray, axes: tuple[int, ...] | None, correction: float) -> ndarray | None:
    """The array as rows to be summed over the leading `axes`, if there are more than `correction` rows."""
    k = 0 if axes is None else len(axes)
    rows = matrix(x, prod(x.shape[k:])) if axes is not None and 0 < k < x.ndim and sorted(axes) == [*range(k)] else None
    return rows if rows is not None and len(rows) > correction else None


def trailing(x: ndarray, axes: tuple[int, ...] | None, correction: float) -> ndarray | None:
    """The array as rows to be summed over the last `axes`, if these have more than `correction` numbers."""
    k = x.ndim if axes is None else len(axes)
    n = prod(x.shape[x.ndim - k :])
    fits = x.dtype is FLOAT and x.flags.carray and n >= SHORT and n > correction and loops() is not None
    last = axes is None or sorted([d % x.ndim for d in axes]) == [*range(x.ndim - k, x.ndim)]
    return x.reshape(-1, n) if fits and last else None


def var_of_few(x: ndarray, axes: tuple[int, ...] | None, correction: float) -> ndarray | None:
    """`var` of small arrays over adjacent dimensions, in double precision: one loop along the middle of three
    dimensions.
    """
    first, end = (0, x.ndim) if axes is None else (min(axes) % x.ndim, max(axes) % x.ndim + 1)
    n = prod(x.shape[first:end])
    if axes is not None and end - first != len(axes) or n <= correction or loops() is None:
        return None
    shape = (*x.shape[:first], *(1,) * (end - first), *x.shape[end:])
    out, before = np.empty(shape, FLOAT), prod(x.shape[:first])
    loops().variances(x.reshape(before, n, -1), float(correction), out.reshape(before, -1))
    return out


def var(x: ndarray, axes: tuple[int, ...] | None, correction: float) -> ndarray | None:
    if 0 < x.size <= VARIANCE_ELEMENTS and x.dtype is FLOAT and x.flags.carray and axes != ():
        return var_of_few(x, axes, correction)
    rows, along = columns(x, axes, correction), trailing(x, axes, correction)
    if along is not None:
        out = np.empty(len(along), FLOAT)
        shared(loop_of("var_core", "", "blocks"), (along, float(correction), out), (1, 0, 1), x.size)
        more_exact(out, along, correction)
        return out.reshape([1 if axes is None or d in axes or d - x.ndim in axes else n for d, n in enumerate(x.shape)])
    if rows is None:
        return None
    kept = (1,) * len(axes) + x.shape[len(axes) :]  # type: ignore[arg-type]
    out, loop = np.empty(rows.shape[1], FLOAT), loop_of("var_core", "", "columns")
    by_channels(loop, x.size, len(out), rows, float(correction), out)
    more_exact(out, rows.T, correction)
    return out.reshape(kept)


def more_exact(out: ndarray, x: ndarray, correction: float) -> None:
    """Recompute variances of rows in double precision if rounding errors of the mean may dominate them."""
    n = x.shape[1]
    again = np.flatnonzero(out <= x[:, 0] * x[:, 0] * (NOISE[4] * np.float32(n / (n - correction)))) if n > 1 else ()
    step = max(1, AT_ONCE // n)
    for k in range(0, len(again), step):
        wide = x[again[k : k + step]].astype(np.float64)
        wide -= wide.mean(1, keepdims=True)
        out[again[k : k + step]] = np.square(wide).sum(1) / (n - correction)


def var_x(g: ndarray, x: ndarray, axes: tuple[int, ...] | None, correction: float) -> ndarray | None:
    rows, along = columns(x, axes, correction), trailing(x, axes, correction)
    n = len(along) if along is not None else 0 if rows is None else rows.shape[1]
    if g.size != n or g.dtype is not FLOAT:
        return None
    slopes, out = laid_out(g).reshape(-1), room(x)
    if along is not None:
        given = slopes, along, float(correction), out.reshape(along.shape)
        shared(loop_of("var_core", "x", "blocks"), given, (1, 1, 0, 1), x.size)
    else:
        loop, to = loop_of("var_core", "x", "columns"), out.reshape(-1, n)
        by_channels(loop, x.size, n, slopes, rows, float(correction), to)
    return out


def factors(a: ndarray | None, n: int, without: float) -> ndarray | None:
    """Weight or bias as n numbers, read-only; n times `without` if there is none."""
    if a is None:
        return repeated(n, without)
    if a.ndim == 1 and a.dtype is FLOAT and a.flags.c_contiguous:
        return a
    return np.ascontiguousarray(a).reshape(-1) if a.dtype is FLOAT else None


@lru_cache(maxsize=64)
def repeated(n: int, value: float) -> ndarray:
    return np.full(n, value, FLOAT)


def width(x: ndarray, dims: tuple[int, ...]) -> int:
    """The number of elements in the last dimensions."""
    return x.shape[-1] if len(dims) == 1 else prod(x.shape[-len(dims) :])


def layer_norm(x: ndarray, weight: ndarray | None, bias: ndarray | None, dims: tuple[int, ...], eps: float) -> Any:
    n = width(x, dims)
    rows, w, b = matrix(x, n), factors(weight, n, 1), factors(bias, n, 0)
    if rows is None or w is None or b is None:
        return None
    kept = (*x.shape[: -len(dims)], *(1,) * len(dims))
    out, mu, var = room(x), np.empty(kept, FLOAT), np.empty(kept, FLOAT)
    shared(
        loop_of("layer_norm", "", "rows"),
        (rows, w, b, eps, out.reshape(-1, n), mu.reshape(-1), var.reshape(-1)),
        (1, 0, 0, 0, 1, 1, 1),
        x.size,
    )
    return out, mu, var


def layer_norm_grads(
    gs: list, x: ndarray, weight: ndarray | None, mu: ndarray, var: ndarray, dims: tuple[int, ...], eps: float
) -> Gradients | None:
    """The gradients of x, weight and bias."""
    n = width(x, dims)
    g, rows, w = matrix(gs[0], n), matrix(x, n), factors(weight, n, 1)
    if g is None or rows is None or w is None or have_gradients(gs[1:]):
        return None
    out, (of_w, of_b) = room(x), np.empty((2, n), FLOAT)
    shared(
        loop_of("layer_norm", "x weight bias", "rows"),
        (g, rows, w, mu.reshape(-1), var.reshape(-1), eps, out.reshape(-1, n), of_w, of_b),
        (1, 1, 0, 1, 1, 0, 1, 2, 2),
        x.size,
    )
    shape = of_weight(gs)
    return out, of_w.reshape(shape), of_b.reshape(shape)


def have_gradients(moments: list[ndarray]) -> bool:
    """True if gradients also arrive at the mean or the variance: then the rule is used."""
    return any([np.count_nonzero(g) for g in moments])


def of_weight(gs: list) -> tuple[int, ...]:
    """The broadcast shape of weight and bias: 1 in the dimensions that the mean keeps."""
    return tuple([size if kept == 1 else 1 for size, kept in zip(gs[0].shape, gs[1].shape)])


def layer_norm_weight(gs: list, x: ndarray, mu: ndarray, var: ndarray, eps: float) -> ndarray | None:
    shape = of_weight(gs)
    n = x.size // mu.size
    g, rows = matrix(gs[0], n), matrix(x, n)
    if g is None or rows is None or prod(shape) != n:
        return None
    out = np.empty(n, FLOAT)
    shared(
        loop_of("layer_norm", "weight", "rows"),
        (g, rows, mu.reshape(-1), var.reshape(-1), eps, out),
        (1, 1, 1, 1, 0, 2),
        x.size,
    )
    return out.reshape(shape)


def batch(a: ndarray) -> ndarray | None:
    """The array as (N, C, L), copied if it is channels-last; None for other layouts, and if L is too short for a loop."""
    if channels_last(a):
        a = a.copy()
    if a.ndim < 3 or a.dtype is not FLOAT or not (a.flags.c_contiguous and a.flags.aligned) or loops() is None:
        return None
    n = prod(a.shape[2:])
    return a.reshape(*a.shape[:2], n) if SHORT <= n <= LONG else None


def samples(a: ndarray) -> ndarray | None:
    """Like `batch`, but matrices (N, C) are returned unchanged."""
    return matrix(a, a.shape[1]) if a.ndim == 2 else batch(a)


def by_channels(loop: Callable, size: int, channels: int, *arguments: Any) -> None:
    """Calls the loop; large work is divided between the cores by channels."""
    if size < REDUCTION_PARALLEL_ELEMENTS:
        return loop(*arguments, 0, channels)
    from rushlight.loops.parallel import cores, pool

    parts = min(cores(), channels)
    bounds = [channels * k // parts for k in range(parts + 1)]
    pool.run(loop, [(*arguments, *bounds[k : k + 2]) for k in range(parts)])


def shared_size(x: ndarray) -> int:
    """The number of elements for dividing channels between cores: 0 for a matrix, which stays on one core."""
    return x.size if x.ndim > 2 else 0


def batch_norm(x: ndarray, weight: ndarray | None, bias: ndarray | None, dims: tuple[int, ...], eps: float) -> Any:
    given = samples(x)
    w, b = factors(weight, x.shape[1], 1), factors(bias, x.shape[1], 0)
    if given is None or w is None or b is None:
        return None
    kept = (1, x.shape[1], *(1,) * (x.ndim - 2))
    out, mu, var = room(x), np.empty(kept, FLOAT), np.empty(kept, FLOAT)
    arguments = given, w, b, eps, out.reshape(given.shape), mu.reshape(-1), var.reshape(-1)
    loop = loop_of("batch_norm", "", "columns" if x.ndim == 2 else "channels")
    by_channels(loop, shared_size(x), x.shape[1], *arguments)
    return like_images(out, x, asks=channels_last), mu, var


def batch_norm_grads(
    gs: list, x: ndarray, weight: ndarray | None, mu: ndarray, var: ndarray, dims: tuple[int, ...], eps: float
) -> Gradients | None:
    """The gradients of x, weight and bias."""
    g, given, w = samples(gs[0]), samples(x), factors(weight, x.shape[1], 1)
    if g is None or given is None or w is None or have_gradients(gs[1:]):
        return None
    out, sums = room(x), np.empty((2, x.shape[1]), FLOAT)
    moments = mu.reshape(-1), var.reshape(-1)
    arguments = g, given, w, *moments, eps, out.reshape(given.shape), *sums
    loop = loop_of("batch_norm", "x weight bias", "columns" if x.ndim == 2 else "channels")
    by_channels(loop, shared_size(x), x.shape[1], *arguments)
    return out, sums[0], sums[1]


def batch_norm_weight(
    gs: list, x: ndarray, mu: ndarray, var: ndarray, dims: tuple[int, ...], eps: float
) -> ndarray | None:
    return frozen_batch_norm_weight(gs[0], x, mu.reshape(-1), var.reshape(-1), eps)


def batch_norm_bias(gs: list, dims: tuple[int, ...]) -> ndarray | None:
    return channel_sums(gs[0])


def channel_sums(g: ndarray) -> ndarray | None:
    """The sum of each channel's numbers."""
    g = batch(g)  # type: ignore[assignment]
    if g is None:
        return None
    out = np.empty(g.shape[1], FLOAT)
    by_channels(loop_of("batch_norm", "bias", "channels"), g.size, g.shape[1], g, out)
    return out


def group_norm(x: ndarray, weight: ndarray | None, bias: ndarray | None, groups: int, eps: float) -> Any:
    given = batch(x)
    w, b = factors(weight, x.shape[1], 1), factors(bias, x.shape[1], 0)
    if given is None or w is None or b is None:
        return None
    out, mu, var = room(x), np.empty((len(x), groups, 1), FLOAT), np.empty((len(x), groups, 1), FLOAT)
    arguments = given, w, b, eps, out.reshape(given.shape), mu.reshape(-1), var.reshape(-1)
    by_channels(loop_of("group_norm", "", "groups"), x.size, mu.size, *arguments, groups)
    return like_images(out, x), mu, var


def group_norm_grads(
    gs: list, x: ndarray, weight: ndarray | None, mu: ndarray, var: ndarray, groups: int, eps: float
) -> Gradients | None:
    """The gradients of x, weight and bias; the gradients of weight and bias are sums over the samples."""
    g, given, w = batch(gs[0]), batch(x), factors(weight, x.shape[1], 1)
    if g is None or given is None or w is None or have_gradients(gs[1:]):
        return None
    out, sums = room(x), np.empty((2, *given.shape[:2]), FLOAT)
    moments = mu.reshape(-1), var.reshape(-1)
    arguments = g, given, w, *moments, eps, out.reshape(given.shape), *sums, groups
    loop = loop_of("group_norm", "x weight bias", "groups")
    by_channels(loop, x.size, mu.size, *arguments)
    of_weight, of_bias = sums.sum(1, np.float64).astype(FLOAT)
    return out, of_weight, of_bias


def batch_dots(g: ndarray, x: ndarray, mu: ndarray, dims: tuple[int, ...]) -> ndarray | None:
    a, b, n = batch(g), batch(x), g.ndim
    if a is None or b is None or g.shape != x.shape or mu.dtype is not FLOAT or dims != (0, *range(2, n)):
        return None
    out = np.empty((1, x.shape[1], *(1,) * (n - 2)), FLOAT)
    loop = loop_of("batch_dots", "", "channels")
    by_channels(loop, x.size, x.shape[1], a, b, mu.reshape(-1), out.reshape(-1))
    return out


def frozen_batch_norm(
    x: ndarray, weight: ndarray | None, bias: ndarray | None, mu: ndarray, var: ndarray, eps: float
) -> ndarray | None:
    scale, b = frozen_scale(weight, var, eps), factors(bias, len(var), 0)
    return None if scale is None or b is None or mu.dtype is not FLOAT else by_a_number_each(x, scale, b - mu * scale)


def frozen_batch_norm_x(g: ndarray, weight: ndarray | None, var: ndarray, eps: float) -> ndarray | None:
    scale = frozen_scale(weight, var, eps)
    return None if scale is None else by_a_number_each(g, scale, repeated(len(var), 0.0))


def frozen_batch_norm_weight(g: ndarray, x: ndarray, mu: ndarray, var: ndarray, eps: float) -> ndarray | None:
    a, b = batch(g), batch(x)
    if a is None or b is None or mu.dtype is not FLOAT or var.dtype is not FLOAT:
        return None
    out = np.empty(len(var), FLOAT)
    loop = loop_of("batch_norm", "weight", "channels")
    by_channels(loop, g.size, len(var), a, b, mu, var, eps, out)
    return out


def frozen_scale(weight: ndarray | None, var: ndarray, eps: float) -> ndarray | None:
    """weight / sqrt(var + eps)."""
    w = factors(weight, len(var), 1)
    return w / np.sqrt(var + FLOAT.type(eps)) if w is not None and var.dtype is FLOAT else None


def by_a_number_each(x: ndarray, factor: ndarray, shift: ndarray) -> ndarray | None:
    """x factor + shift, of each channel's numbers."""
    given = batch(x)
    if given is None:
        return None
    out = room(x)
    given = given, factor, shift, out.reshape(given.shape)  # type: ignore[assignment]
    by_channels(loops().scaled_channels, x.size, x.shape[1], *given)
    return like_images(out, x, asks=channels_last)


# (op, "" for its forward or the input of a derivative) -> the function, called with the arguments of the kernel or the
# rule
FUNCTIONS: dict[tuple[str, str], Callable] = {
    **{
        (function.op.name, of): along_rows(function.op.name, of)
        for function in (reduce.softmax, reduce.log_softmax)
        for of in ("", "x")
    },
    ("logsumexp", ""): logsumexp,
    ("logsumexp", "x"): logsumexp_x,
    ("var_core", ""): var,
    ("var_core", "x"): var_x,
    ("layer_norm", ""): layer_norm,
    ("layer_norm", "x weight bias"): layer_norm_grads,
    ("layer_norm", "weight"): layer_norm_weight,
    ("batch_norm", ""): batch_norm,
    ("batch_norm", "x weight bias"): batch_norm_grads,
    ("batch_norm", "weight"): batch_norm_weight,
    ("batch_norm", "bias"): batch_norm_bias,
    ("group_norm", ""): group_norm,
    ("group_norm", "x weight bias"): group_norm_grads,
    ("batch_dots", ""): batch_dots,
    ("frozen_batch_norm", ""): frozen_batch_norm,
    ("frozen_batch_norm", "x"): frozen_batch_norm_x,
    ("frozen_batch_norm", "weight"): frozen_batch_norm_weight,
    ("frozen_batch_norm", "bias"): channel_sums,
}


def examples() -> dict[tuple[str, str], Callable[[], tuple]]:
    """Example arguments for each of FUNCTIONS, for the forward or for the rule of a derivative. Two rows, two channels."""

    def numbers(*shape: int) -> ndarray:
        return (np.cos(np.arange(prod(shape)) * 1.7) + 0.1).astype(FLOAT).reshape(shape)

    x, y, row, channel = numbers(2, 8), numbers(3, 2, 16), numbers(8), numbers(2)
    given: dict[str, tuple] = {
        "logsumexp": (x, (1,), True),
        "var_core": (x, (0,), 1),
        "layer_norm": (x, row, row, (1,), 1e-5),
        "batch_norm": (y, channel, channel, (0, 2), 1e-5),
        "group_norm": (y, channel, channel, 1, 1e-5),
        "batch_dots": (y[::-1].copy(), y, numbers(1, 2, 1), (0, 2)),
        "frozen_batch_norm": (y, channel, channel, channel, channel * channel, 1e-5),
    }
    return {(name, of): partial(example, TABLE[name], of, given.get(name, (x, 1))) for name, of in FUNCTIONS}


def example(op: Op, of: str, given: tuple) -> tuple:
    """Arguments of the op's rule, made from the forward's arguments."""
    if not of:
        return given
    made = op.kernel(*given)
    outputs = made if isinstance(made, tuple) else (made,)
    known = dict(zip((*op.inputs, *op.settings), given))
    known |= zip(op.options.get("outputs", "out").split(), outputs)
    known["g"] = np.cos(outputs[0])
    known["gs"] = [known["g"], *(0 * a for a in outputs[1:])]
    return tuple([known[name] for name in parameters(op.rules[of.split()[0]])])
