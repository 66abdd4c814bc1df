"""Reductions, scans, sorts and norms past the sizes from which other ways are taken: shapes, dtypes and values as
NumPy's in float64, whatever the layout, with loops and without."""

from __future__ import annotations

from itertools import combinations
from math import inf, prod

import numpy as np
import pytest

import rushlight as rl
from rushlight.fast.policy import small_arrays as spent
from rushlight.nn import functional as F

# either side of 4096 and of 65,536 numbers (summation.BLAS_ELEMENTS, fast.index.REDUCTION_ELEMENTS), rows of up to 1024
# (summation.EINSUM_ELEMENTS), columns, channels
SHAPES = [
    (4095,),
    (4096,),
    (70_000,),
    (70, 100),
    (3, 1500),
    (1500, 3),
    (1, 5000),
    (5000, 1),
    (300, 257),
    (9, 40, 30),
    (4, 8, 24, 24),
]
FEW = [(4096,), (70_000,), (70, 100), (1500, 3)]
# what each step may be off by, and the result once more
DTYPES = {rl.float32: (1e-6, 0), rl.float64: (1e-14, 0), rl.float16: (1e-6, 1e-3), rl.bfloat16: (1e-6, 8e-3)}
FLOATS = (rl.float32, rl.float64, rl.float16, rl.bfloat16)
REAL = (*FLOATS, rl.int64)
LAYOUTS = {
    "as it is": lambda x: x,
    "every second": lambda x: rl.stack([x, -x if x.dtype is not rl.bool else x], -1).flatten(-2)[..., ::2],
    "turned": lambda x: x.movedim(0, -1).contiguous().movedim(-1, 0),
    "repeated": lambda x: x[:1].expand(x.shape),
    "channels last": lambda x: x.contiguous(memory_format=rl.channels_last) if x.ndim == 4 else x[..., ::2],
}
PLAIN = {"as it is": LAYOUTS["as it is"]}


def numbers(shape, dtype):
    a = np.random.default_rng(prod(shape)).standard_normal(shape)
    return rl.from_numpy((a * 9).astype(np.int64) if dtype is rl.int64 else a > -1 if dtype is rl.bool else a).to(dtype)


def values(x):
    """What a result holds, as NumPy's: bfloat16 by way of float64."""
    return x.double().numpy() if x.dtype in FLOATS else x.numpy()


def agree(made, expected, dtype, steps, about):
    """Shape, dtype, what is stored beside what is said, values."""
    step, once = DTYPES.get(dtype, (0, 0))
    tolerance = once + step * steps
    for r, e in zip(
        made if isinstance(made, tuple) else [made], expected if isinstance(expected, tuple) else [expected]
    ):
        e = np.asarray(e)
        assert tuple(r.shape) == values(r).shape == e.shape, about
        kind = dtype if e.dtype.kind == "f" else {"b": rl.bool, "i": rl.int64}[e.dtype.kind]
        assert r.dtype is kind, about
        if kind in FLOATS:
            np.testing.assert_allclose(values(r), e, rtol=tolerance, atol=tolerance, err_msg=str(about))
        else:
            np.testing.assert_array_equal(r.numpy(), e, str(about))


def some_dims(ndim):
    """None, each dimension from either end, and each choice of several."""
    return [
        None,
        *range(-ndim, ndim),
        *[dims for k in range(2, ndim + 1) for dims in combinations(range(ndim), k)],
        *[(1, 0)] * (ndim > 1),
    ]


def cases(dtypes, shapes=SHAPES, layouts=LAYOUTS):
    """Tensors and what they are: float32 in each layout, other dtypes as they lie and in few shapes."""
    for shape in shapes:
        for dtype in dtypes if shape in FEW else dtypes[:1]:
            for name, laid in layouts.items() if dtype is rl.float32 else PLAIN.items():
                yield laid(numbers(shape, dtype)), (shape, dtype, name)


def lower(a, axis, keepdims):
    """The lower one of two in the middle."""
    middle = np.take(np.sort(a, axis), (a.shape[axis] - 1) // 2, axis)
    return np.expand_dims(middle, axis) if keepdims else middle


def norm(p):
    """Of float16, 70,000 that are not zero are more than there is a number for."""

    def of(a, axis, keepdims):
        if abs(p) == inf or p == 0:
            pick = np.max if p > 0 else np.min if p else np.count_nonzero
            return np.asarray(pick(np.abs(a), axis=axis, keepdims=keepdims), float)
        return np.sum(np.abs(a) ** p, axis=axis, keepdims=keepdims) ** (1 / p)

    return (lambda x, dim, keepdim: rl.linalg.vector_norm(x, p, dim, keepdim), of, FLOATS if p else FLOATS[:2])


def of_numpy(function):
    return lambda a, axis, keepdims: function(a, axis=axis, keepdims=keepdims)


def variance(a, axis, keepdims):
    """Of one number there is none."""
    d = a - a.mean(axis, keepdims=True)
    total = (d * d).sum(axis, keepdims=keepdims)
    left = a.size // total.size - 1
    return total / left if left else np.full_like(total, np.nan)


def deviation(a, axis, keepdims):
    return np.sqrt(variance(a, axis, keepdims))


# name: (op, NumPy's, dtypes): over None, a dimension, or several
SEVERAL = {
    "sum": (lambda x, dim, keepdim: x.sum(dim, keepdim), of_numpy(np.sum), (*REAL, rl.bool)),
    "nansum": (lambda x, dim, keepdim: x.nansum(dim, keepdim), of_numpy(np.nansum), REAL),
    "mean": (lambda x, dim, keepdim: x.mean(dim, keepdim), of_numpy(np.mean), FLOATS),
    "nanmean": (lambda x, dim, keepdim: x.nanmean(dim, keepdim), of_numpy(np.nanmean), FLOATS),
    "amax": (lambda x, dim, keepdim: x.amax(() if dim is None else dim, keepdim), of_numpy(np.max), REAL),
    "amin": (lambda x, dim, keepdim: x.amin(() if dim is None else dim, keepdim), of_numpy(np.min), REAL),
    "all": (lambda x, dim, keepdim: x.all(dim, keepdim), of_numpy(np.all), (rl.float32, rl.int64, rl.bool)),
    "any": (lambda x, dim, keepdim: x.any(dim, keepdim), of_numpy(np.any), (rl.float32, rl.int64, rl.bool)),
    "var": (lambda x, dim, keepdim: x.var(dim, keepdim=keepdim), variance, FLOATS),
    "std": (lambda x, dim, keepdim: x.std(dim, keepdim=keepdim), deviation, FLOATS),
    "var_mean": (
        lambda x, dim, keepdim: rl.var_mean(x, dim, keepdim=keepdim),
        lambda a, axis, keepdims: (variance(a, axis, keepdims), a.mean(axis, keepdims=keepdims)),
        FLOATS,
    ),
    "logsumexp": (
        lambda x, dim, keepdim: x.logsumexp(tuple(range(x.ndim)) if dim is None else dim, keepdim),
        lambda a, axis, keepdims: np.log(np.sum(np.exp(a), axis=axis, keepdims=keepdims)),
        FLOATS,
    ),
    **{f"norm of {p}": norm(p) for p in (0, 1, 2, 3, inf, -inf)},
}
# over all or one dimension
ONE = {
    "prod": (
        lambda x, dim, keepdim: x.prod() if dim is None else x.prod(dim, keepdim),
        of_numpy(np.prod),
        (rl.float32, rl.float64, rl.bool),
    ),
    "argmax": (lambda x, dim, keepdim: x.argmax(dim, keepdim), of_numpy(np.argmax), REAL),
    "argmin": (lambda x, dim, keepdim: x.argmin(dim, keepdim), of_numpy(np.argmin), REAL),
}
EACH = {
    "max": (lambda x, dim, keepdim: x.max(dim, keepdim).values, of_numpy(np.max), (*REAL, rl.bool)),
    "min": (lambda x, dim, keepdim: x.min(dim, keepdim).values, of_numpy(np.min), (*REAL, rl.bool)),
    "aminmax": (
        lambda x, dim, keepdim: rl.aminmax(x, dim=dim, keepdim=keepdim),
        lambda a, axis, keepdims: (a.min(axis, keepdims=keepdims), a.max(axis, keepdims=keepdims)),
        REAL,
    ),
    "median": (lambda x, dim, keepdim: x.median(dim, keepdim).values, lower, REAL),
    "nanmedian": (lambda x, dim, keepdim: x.nanmedian(dim, keepdim).values, lower, REAL),
    "quantile": (
        lambda x, dim, keepdim: x.quantile(0.3, dim, keepdim),
        lambda a, axis, keepdims: np.quantile(a, 0.3, axis, keepdims=keepdims),
        (rl.float32, rl.float64),
    ),
    "kthvalue": (lambda x, dim, keepdim: x.kthvalue(1, dim, keepdim).values, of_numpy(np.min), REAL),
}
REDUCTIONS = {**SEVERAL, **ONE, **EACH}


@pytest.mark.exhaustive(every=4)
@pytest.mark.parametrize("loops", [True, False], ids=["loops", "NumPy"])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name, loops, monkeypatch):
    monkeypatch.setattr(spent, "left", 0 if loops else inf)
    op, of, dtypes = REDUCTIONS[name]
    for x, case in cases(dtypes) if loops else cases([rl.float32], layouts=PLAIN):
        x = 1 + x / 4096 if name == "prod" and x.dtype in FLOATS else x  # no product overflows
        a = values(x)
        for dim in some_dims(x.ndim):
            if dim is None and name in EACH or isinstance(dim, tuple) and name not in SEVERAL:
                continue
            for keepdim in (False, True):
                if dim is None and keepdim and name == "prod":
                    continue
                expected = of(a, dim, keepdim)
                n = a.size // max(1, np.asarray(expected[0] if isinstance(expected, tuple) else expected).size)
                steps = max(4, n / 8 if name == "prod" else n**0.5 / 2)
                agree(op(x, dim, keepdim), expected, x.dtype, steps, (name, *case, dim, keepdim))


def along(function):
    return lambda a, dim: function(a, axis=dim)


def softmax(a, dim):
    e = np.exp(a - a.max(dim, keepdims=True))
    return e / e.sum(dim, keepdims=True)


def extremes(ufunc):
    """The extreme so far and the last place where it stood."""

    def of(a, dim):
        top = ufunc.accumulate(a, dim)
        places = np.arange(a.shape[dim]).reshape([-1 if d == dim % a.ndim else 1 for d in range(a.ndim)])
        return top, np.maximum.accumulate(np.where(a == top, places, 0), dim)

    return of


def ordered(a, dim, descending=False):
    """Values in order and their places, equal ones as they stand."""
    if a.dtype == bool:
        a = a.astype(int)
    places = np.argsort(-a if descending else a, dim, kind="stable")
    return np.take_along_axis(a, places, dim), places


def best(k, largest):
    def op(x, dim):
        made = x.topk(min(k, x.shape[dim]), dim, largest)
        assert made.values.equal(x.gather(dim, made.indices))
        return made.values

    return (op, lambda a, dim: np.take(ordered(a, dim, largest)[0], range(min(k, a.shape[dim])), dim), REAL)


def unit(a, dim):
    return a / np.maximum(np.sqrt((a * a).sum(dim, keepdims=True)), 1e-12)


# name: (op, NumPy's, dtypes): as many results as elements, or about as many
SCANS = {
    "cumsum": (lambda x, dim: x.cumsum(dim), along(np.cumsum), REAL),
    "cumprod": (lambda x, dim: x.cumprod(dim), along(np.cumprod), (rl.float32, rl.float64)),
    "cummax": (lambda x, dim: tuple(x.cummax(dim)), extremes(np.maximum), REAL),
    "cummin": (lambda x, dim: tuple(x.cummin(dim)), extremes(np.minimum), REAL),
    "logcumsumexp": (lambda x, dim: x.logcumsumexp(dim), np.logaddexp.accumulate, FLOATS),
    "softmax": (lambda x, dim: x.softmax(dim), softmax, FLOATS),
    "softmin": (lambda x, dim: F.softmin(x, dim), lambda a, dim: softmax(-a, dim), FLOATS),
    "log_softmax": (lambda x, dim: x.log_softmax(dim), lambda a, dim: np.log(softmax(a, dim)), FLOATS),
    "normalize": (lambda x, dim: F.normalize(x, dim=dim), unit, FLOATS),
    "sort": (lambda x, dim: tuple(x.sort(dim=dim, stable=True)), ordered, REAL),
    "descending": (
        lambda x, dim: tuple(x.sort(dim=dim, descending=True, stable=True)),
        lambda a, dim: ordered(a, dim, True),
        REAL,
    ),
    "argsort": (lambda x, dim: x.argsort(dim, stable=True), lambda a, dim: ordered(a, dim)[1], REAL),
    **{f"topk of {k}": best(k, True) for k in (1, 3, 20)},
    **{f"the {k} smallest": best(k, False) for k in (1, 3, 20)},
    "flip": (lambda x, dim: x.flip(dim), np.flip, REAL),
    "roll": (lambda x, dim: x.roll(3, dim), lambda a, dim: np.roll(a, 3, dim), REAL),
    "diff": (lambda x, dim: x.diff(dim=dim), along(np.diff), (rl.float32, rl.float64, rl.int64)),
    "trapezoid": (lambda x, dim: rl.trapezoid(x, dim=dim), along(np.trapezoid), (rl.float32, rl.float64)),
    "gradient": (lambda x, dim: rl.gradient(x, dim=dim)[0], along(np.gradient), (rl.float32, rl.float64)),
    "cat": (lambda x, dim: rl.cat([x, x], dim), lambda a, dim: np.concatenate([a, a], dim), REAL),
    "repeat_interleave": (lambda x, dim: x.repeat_interleave(2, dim), lambda a, dim: np.repeat(a, 2, dim), REAL),
    "index_add": (
        lambda x, dim: x.index_add(dim, rl.arange(x.shape[dim]) // 2, x),
        lambda a, dim: added_at(a, dim),
        (rl.float32, rl.float64, rl.int64),
    ),
}


def added_at(a, dim):
    """a with its own elements added, two to a place."""
    r = np.moveaxis(a.copy(), dim, 0)
    np.add.at(r, np.arange(len(r)) // 2, np.moveaxis(a, dim, 0))
    return np.moveaxis(r, 0, dim)


@pytest.mark.exhaustive(every=4)
@pytest.mark.parametrize("loops", [True, False], ids=["loops", "NumPy"])
@pytest.mark.parametrize("name", SCANS)
def test_scans(name, loops, monkeypatch):
    monkeypatch.setattr(spent, "left", 0 if loops else inf)
    op, of, dtypes = SCANS[name]
    for x, case in cases(dtypes) if loops else cases([rl.float32], layouts=PLAIN):
        x = 1 + x / 128 if name == "cumprod" else x
        a = values(x)
        for dim in range(-1, x.ndim):
            if name in ("trapezoid", "gradient") and a.shape[dim] < 2:
                continue
            agree(op(x, dim), of(a, dim), x.dtype, max(8, a.shape[dim] ** 0.5), (name, *case, dim))


def plain_norm(*dims):
    """Normalized over some dimensions."""

    def of(a):
        mu = a.mean(dims, keepdims=True)
        return (a - mu) / np.sqrt(((a - mu) ** 2).mean(dims, keepdims=True) + 1e-5)

    return of


def in_pairs(x):
    """Two groups of channels; of an odd number, each channel twice."""
    return F.group_norm(x, 2) if x.shape[1] % 2 == 0 else F.group_norm(x.repeat_interleave(2, 1), 2)[:, ::2]


def in_groups(a):
    """`in_pairs` in NumPy."""
    if a.shape[1] % 2:
        return in_groups(np.repeat(a, 2, 1))[:, ::2]
    return plain_norm(2)(a.reshape(a.shape[0], 2, -1)).reshape(a.shape)


def rms(a):
    return a / np.sqrt((a * a).mean(-1, keepdims=True) + 1e-5)


NORMS = {
    "layer": (lambda x: F.layer_norm(x, x.shape[-1:]), plain_norm(-1), 1),
    "layer of all": (lambda x: F.layer_norm(x, x.shape[1:]), lambda a: plain_norm(*range(1, a.ndim))(a), 2),
    "rms": (lambda x: F.rms_norm(x, x.shape[-1:], eps=1e-5), rms, 1),
    "batch": (lambda x: F.batch_norm(x, None, None, training=True), lambda a: plain_norm(0, *range(2, a.ndim))(a), 2),
    "group": (in_pairs, in_groups, 2),
    "instance": (lambda x: F.instance_norm(x), lambda a: plain_norm(*range(2, a.ndim))(a), 3),
}


@pytest.mark.parametrize("loops", [True, False], ids=["loops", "NumPy"])
@pytest.mark.parametrize("name", NORMS)
def test_norms(name, loops, monkeypatch):
    monkeypatch.setattr(spent, "left", 0 if loops else inf)
    op, of, least = NORMS[name]
    for x, case in cases(FLOATS, [shape for shape in SHAPES if len(shape) >= least and shape[0] > 1]):
        if case[-1] != "repeated":  # of equal numbers what is left is rounding errors over the root of eps
            agree(op(x), of(values(x)), x.dtype, 100, (name, *case))


def total(made):
    """One number of a result, each element and each output with a weight of its own."""
    outputs = [r for r in (made if isinstance(made, tuple) else (made,)) if r.is_floating_point()]
    return sum(
        ((rl.arange(r.numel(), dtype=r.dtype) % 7 + i).reshape(r.shape) * r).sum() for i, r in enumerate(outputs)
    )


@pytest.mark.exhaustive(every=4)
@pytest.mark.parametrize(
    "name",
    [
        name
        for name in {**REDUCTIONS, **SCANS, **NORMS}
        if name not in ("all", "any", "argmax", "argmin", "argsort", "norm of 0")
    ],
)
def test_gradients(name, monkeypatch):
    """Those of float32 as those of float64, whose ways are others."""
    monkeypatch.setattr(spent, "left", 0)
    op, least = {**REDUCTIONS, **SCANS, **NORMS}[name][0], NORMS[name][2] if name in NORMS else 1
    for x, case in cases(
        [rl.float32], FEW if name not in NORMS else [(70, 100), (1500, 4), (9, 40, 30), (4, 8, 24, 24)]
    ):
        if case[-1] == "repeated" or x.ndim < least:  # equal ones share, or take all
            continue
        x = 1 + x / 4096 if "prod" in name else x
        settings = (
            [()]
            if name in NORMS
            else [(0,), (-1,)]
            if name in SCANS
            else [
                (dim, keepdim)
                for dim in some_dims(x.ndim)
                for keepdim in (False, True)
                if (dim is not None or name not in EACH and name != "prod")
                and (isinstance(dim, int) or name in SEVERAL)
            ]
        )
        for setting in settings:
            single, double = x.clone().requires_grad_(), x.double().requires_grad_()
            total(op(single, *setting)).backward()
            total(op(double, *setting)).backward()
            assert single.grad.shape == x.shape
            made, expected = single.grad.numpy(), double.grad.numpy()
            near = 1e-4 * max(1, np.abs(expected).max())
            np.testing.assert_allclose(made, expected, 1e-3, near, err_msg=str((name, *case, setting)))


@pytest.mark.parametrize("shape", [(3, 4), (10, 3), (100, 7), (1000, 9), (3, 5000), (5000, 3), (2, 70_000)])
@pytest.mark.parametrize("dtype", [rl.float32, rl.float64])
def test_equal_numbers_have_no_deviation(shape, dtype):
    """Nor a gradient by it: programs divide by `std` where it is not 0."""
    for dim in (0, 1):
        x = numbers(shape, dtype).narrow(dim, 0, 1).expand(shape).clone().requires_grad_()
        for made in (x.std(dim), x.var(dim, correction=0), rl.std_mean(x, dim)[0], x.std((dim,), keepdim=True)):
            assert not made.any(), (dim, made)
        x.std(dim).sum().backward()
        assert not x.grad.any()
    x = numbers(shape, dtype) * 3e-5 + 1  # and nearly equal ones keep theirs
    np.testing.assert_allclose(x.std(0).numpy(), np.std(x.double().numpy(), 0, ddof=1), rtol=1e-2, atol=1e-7)


N = 3000  # more than float16 counts to one by one (2048), or bfloat16 (256)
ZEROS = rl.zeros(N, dtype=rl.int64)
PAIRS = rl.zeros(N, 2, dtype=rl.int64)
MANY = {
    "expand": lambda x: (x.expand(N, 2) * 1).sum(),
    "repeat": lambda x: x.repeat(N, 1).sum(),
    "a bias": lambda x: (rl.ones(N, 2, dtype=x.dtype) + x).sum(),
    "prelu": lambda x: F.prelu(-rl.ones(N, 2, dtype=x.dtype), x).sum(),
    "gather": lambda x: x.reshape(1, 2).gather(0, PAIRS).sum(),
    "scatter_add": lambda x: rl.zeros(2, 2, dtype=x.dtype).scatter_add(0, PAIRS, x.expand(N, 2)) / 64,
    "scatter mean": lambda x: rl.zeros(2, 2, dtype=x.dtype).scatter_reduce(0, PAIRS, x.expand(N, 2), "mean"),
    "index_add": lambda x: rl.zeros(2, 2, dtype=x.dtype).index_add(0, ZEROS, x.expand(N, 2)) / 64,
    "embedding": lambda x: F.embedding(ZEROS, x.reshape(1, 2)).sum(),
    "cross_entropy": lambda x: F.cross_entropy(x.expand(N, 2), ZEROS),
    "its sum": lambda x: F.cross_entropy(x.expand(N, 2), ZEROS, reduction="sum"),
    "weighted": lambda x: F.cross_entropy(x.expand(N, 2), ZEROS, rl.ones(2, dtype=x.dtype)),
    "smoothed": lambda x: F.cross_entropy(x.expand(N, 2), ZEROS, label_smoothing=0.1),
}


@pytest.mark.parametrize("dtype", [rl.float16, rl.bfloat16])
@pytest.mark.parametrize("name", MANY)
def test_half_precision_adds_up_many(name, dtype):
    """Values and gradients: sums of many go by way of float32, as torch's."""
    half, single = (rl.tensor([1.0, 0.5], dtype=t, requires_grad=True) for t in (dtype, rl.float32))
    made, expected = MANY[name](half), MANY[name](single)
    assert made.dtype is dtype
    rtol = 2 * DTYPES[dtype][1]
    np.testing.assert_allclose(values(made.detach()), values(expected.detach()), rtol, 1e-6)
    made.sum().backward()
    expected.sum().backward()
    np.testing.assert_allclose(values(half.grad), values(single.grad), 4 * rtol, 2e-3)


def test_means_of_more_than_float16_holds():
    x = rl.full((70_000, 2), 0.5, dtype=rl.float16)
    x[1::2] = rl.nan
    assert x.nanmean().item() == 0.5
    assert x.nanmean(0).tolist() == [0.5, 0.5]
    y = rl.zeros(70_000, 2, dtype=rl.float16, requires_grad=True)
    F.cross_entropy(y, rl.zeros(70_000, dtype=rl.int64)).backward()
    np.testing.assert_allclose(y.grad[0].tolist(), [-0.5 / 70_000, 0.5 / 70_000], rtol=0.02)
