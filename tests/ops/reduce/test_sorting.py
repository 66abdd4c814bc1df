"""Order statistics, searches, sets, scans and histograms: what their samples do not show."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rushlight
from rushlight.autograd import grad
from rushlight.fast import reductions
from rushlight.kernels import reduce
from rushlight.kernels.histograms import bins_of

few = st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.0]), min_size=1, max_size=12)
NAN = float("nan")


def tensor(values, **how):
    return rushlight.tensor(values, dtype=rushlight.float64, **how)


# -- order statistics, among equal elements and nans -----------------------------------------------


@given(few)
@settings(max_examples=60, deadline=None)
def test_kthvalue_is_the_kth_of_the_sorted(values):
    for k in range(1, len(values) + 1):
        value, index = rushlight.kthvalue(tensor(values), k)
        assert value.item() == sorted(values)[k - 1] == values[int(index)]


@given(few)
@settings(max_examples=60, deadline=None)
def test_median_and_its_place(values):
    value, index = rushlight.median(tensor(values), 0)
    assert (
        value.item() == sorted(values)[(len(values) - 1) // 2] == values[int(index)] == tensor(values).median().item()
    )
    assert tensor([*values, NAN, NAN]).nanmedian().item() == value.item()
    assert np.isnan(tensor([*values, NAN]).median().item())


@pytest.mark.parametrize("lost", [0, 2, 5, 60])
@pytest.mark.parametrize("dtype", [rushlight.float32, rushlight.bfloat16])
def test_nanmedian_of_rows_that_lack_some_or_all(lost, dtype):
    """By a partition at the places asked for, if they are few; also those of many rows."""
    rng = np.random.default_rng(0)
    x = rng.permutation(120 * 120).reshape(120, 120).astype(np.float32) % 251
    for row, count in zip(x, rng.integers(0, 2 * lost + 1, 120)):
        row[rng.permutation(120)[:count]] = NAN
    expected = [
        sorted(row[~np.isnan(row)])[(np.count_nonzero(~np.isnan(row)) - 1) // 2] if not np.isnan(row).all() else NAN
        for row in x
    ]
    values, index = rushlight.nanmedian(rushlight.tensor(x).to(dtype), 1)
    np.testing.assert_array_equal(values.float().numpy(), expected)
    np.testing.assert_array_equal(x[np.arange(120), index.numpy()], expected)
    values, index = rushlight.nanmedian(rushlight.tensor(x.T).to(dtype), 0, keepdim=True)
    np.testing.assert_array_equal(values.float().numpy()[0], expected)
    whole = np.sort(x[~np.isnan(x)])
    assert rushlight.nanmedian(rushlight.tensor(x).to(dtype)).item() == whole[(whole.size - 1) // 2]


@given(few)
@settings(max_examples=60, deadline=None)
def test_mode_is_the_smallest_of_the_most_frequent(values):
    value, index = rushlight.mode(tensor(values))
    most = max(map(values.count, values))
    assert value.item() == min(v for v in values if values.count(v) == most) == values[int(index)]
    assert int(index) == len(values) - 1 - values[::-1].index(value.item())


@given(few, st.booleans())
@settings(max_examples=60, deadline=None)
def test_topk_begins_the_sorted(values, largest):
    for k in range(len(values) + 1):
        found, index = rushlight.topk(tensor(values), k, largest=largest)
        assert found.tolist() == sorted(values, reverse=largest)[:k] == [values[i] for i in index.tolist()]


def test_topk_of_many_takes_a_partition():
    x = rushlight.tensor(np.random.default_rng(0).permutation(10_000).astype(np.float64)).reshape(10, 1000)
    for largest in (True, False):
        values, index = x.topk(7, 1, largest)
        assert (values == x.sort(1, largest)[0][:, :7]).all()
        assert (x.gather(1, index) == values).all()
    values, _ = rushlight.tensor([*range(100), NAN]).topk(2)
    assert np.isnan(values[0].item())
    assert values[1].item() == 99


def test_the_median_of_all_shares_its_gradient_among_equals():
    x = tensor([1.0, 2.0, 2.0, 5.0], requires_grad=True)
    x.median().backward()
    assert x.grad.tolist() == [0, 0.5, 0.5, 0]
    y = tensor([1.0, NAN, NAN], requires_grad=True)
    y.median().backward()
    assert y.grad.tolist() == [0, 0.5, 0.5]


def test_bfloat16_is_ordered_too():
    x = rushlight.tensor([3.0, 1.0, 2.0], dtype=rushlight.bfloat16)
    assert x.median().item() == 2
    assert x.kthvalue(3).values.item() == 3
    assert rushlight.searchsorted(x.sort()[0], rushlight.tensor([2.5], dtype=rushlight.bfloat16)).tolist() == [2]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.kthvalue(1, 0),
        lambda x: x.median(0),
        lambda x: x.mode(0),
        lambda x: x.max(0),
        lambda x: x.argmin(0),
        lambda x: x.amax(0),
        lambda x: x.aminmax(dim=0),
    ],
)
def test_nothing_has_no_extreme(call):
    with pytest.raises(IndexError, match="Expected reduction dim 0 to have non-zero size"):
        call(rushlight.ones(0, 3))


@pytest.mark.parametrize(
    "name", ["sort", "topk", "kthvalue", "median", "mode", "max", "amax", "cummax", "cummin", "msort"]
)
def test_complex_numbers_have_no_order(name):
    x = rushlight.ones(3, dtype=rushlight.complex64)
    args = {"topk": (1,), "kthvalue": (1,), "max": (0,), "cummax": (0,), "cummin": (0,)}.get(name, ())
    with pytest.raises((RuntimeError, NotImplementedError), match="complex|Complex"):
        getattr(x, name)(*args)


@pytest.mark.exhaustive(every=4)
@pytest.mark.parametrize(("shape", "dim"), [((7,), 0), ((20, 30), 1), ((20, 30), 0), ((3, 50, 4), 1)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_extremes_so_far_by_a_loop_are_numpys(shape, dim, dtype, name):
    pytest.importorskip("llvmlite")
    x = np.random.default_rng(0).integers(-5, 5, shape).astype(dtype)
    x.flat[[4, 6]] = np.nan
    ufunc = getattr(np, name)
    wanted = reduce.furthest(ufunc, x, dim)  # nothing has paid for the loop yet
    reductions.extremes_loop(ufunc, dim == len(shape) - 1, x.dtype).build()
    for made, want in zip(reduce.furthest(ufunc, x, dim), wanted):
        assert made.dtype == want.dtype
        np.testing.assert_array_equal(made, want)


# -- searches and sets -----------------------------------------------------------------------------


@given(few, few, st.booleans())
@settings(max_examples=60, deadline=None)
def test_where_values_belong(rows, values, right):
    ordered = tensor(sorted(rows))
    found = rushlight.searchsorted(ordered, tensor(values), right=right).tolist()
    below = (lambda a, b: a <= b) if right else (lambda a, b: a < b)
    assert found == [sum(below(a, v) for a in rows) for v in values]
    assert rushlight.bucketize(tensor(values), ordered, right=right).tolist() == found
    order = tensor(rows).argsort(stable=True)
    assert rushlight.searchsorted(tensor(rows), tensor(values), right=right, sorter=order).tolist() == found


@pytest.mark.parametrize(
    ("how", "what"),
    [
        ({"side": "top"}, "side can only be 'left' or 'right'"),
        ({"side": "left", "right": True}, "side and right can't be set to opposites"),
        ({"sorter": rushlight.tensor([0.0, 1.0])}, "sorter must be a tensor of long dtype"),
        ({"sorter": rushlight.tensor([0, 7])}, "sorter index out of range"),
        ({"sorter": rushlight.tensor([0])}, "boundary and sorter must have the same size"),
        ({"out": rushlight.zeros(1, dtype=rushlight.int32)}, "output tensor's dtype is wrong"),
    ],
)
def test_searches_that_make_no_sense(how, what):
    with pytest.raises(RuntimeError, match=what):
        rushlight.searchsorted(tensor([1.0, 2.0]), tensor([1.5]), **how)


@given(st.lists(st.lists(st.integers(0, 2), min_size=2, max_size=2), min_size=1, max_size=8))
@settings(max_examples=60, deadline=None)
def test_unique_rows(rows):
    found, inverse, counts = rushlight.unique(rushlight.tensor(rows), return_inverse=True, return_counts=True, dim=0)
    assert found.tolist() == [list(r) for r in sorted(set(map(tuple, rows)))]
    assert found[inverse].tolist() == rows
    assert counts.tolist() == [rows.count(r) for r in found.tolist()]


@given(few)
@settings(max_examples=60, deadline=None)
def test_runs(values):
    found, inverse, counts = rushlight.unique_consecutive(tensor(values), return_inverse=True, return_counts=True)
    assert found[inverse].tolist() == values
    assert found.repeat_interleave(counts).tolist() == values
    assert (found[1:] != found[:-1]).all()


# -- scans, quantiles, counts ----------------------------------------------------------------------


def test_logcumsumexp_neither_overflows_nor_vanishes():
    x = tensor([-1000.0, 1000.0, 999.0, -np.inf, 1000.0], requires_grad=True)
    out = x.logcumsumexp(0)
    with np.errstate(under="ignore", divide="ignore"):
        expected = 1000 + np.log(np.cumsum(np.exp(x.detach().numpy() - 1000)))
    assert np.allclose(out.detach().numpy()[1:], expected[1:])
    assert out[0].item() == -1000
    (g,) = grad(out.sum(), x)
    assert np.isfinite(g.numpy()).all()
    assert g.sum().item() == pytest.approx(5)  # each output shares 1 among those before it


def test_the_gradient_of_logcumsumexp_is_linear_in_what_arrives():
    """At 0 too, where a formula by log(g) would lose the second derivative."""
    x = tensor([0.3, -1.0, 2.0], requires_grad=True)
    v = rushlight.zeros(3, dtype=rushlight.float64, requires_grad=True)
    (first,) = grad(x.logcumsumexp(0), x, v, create_graph=True)
    jacobian = np.array([grad(first, v, w, retain_graph=True)[0].tolist() for w in rushlight.eye(3, dtype=v.dtype)]).T
    weights = np.tril(np.exp(x.detach().numpy()))
    assert np.allclose(jacobian, weights / weights.sum(1, keepdims=True))


@given(few, st.floats(0, 1))
@settings(max_examples=60, deadline=None)
def test_quantiles_are_numpys(values, q):
    for how in ("linear", "lower", "higher", "midpoint"):
        expected = np.quantile(values, q, method=how)
        assert rushlight.quantile(tensor(values), q, interpolation=how).item() == pytest.approx(expected, abs=1e-9)
    assert rushlight.nanquantile(tensor([*values, NAN]), q).item() == pytest.approx(np.quantile(values, q), abs=1e-9)
    assert np.isnan(rushlight.quantile(tensor([*values, NAN]), q).item())


def test_histograms_leave_out_what_lies_outside():
    x = tensor([-1.0, 0.0, 0.5, 1.0, 2.0, 3.0])
    hist, edges = rushlight.histogram(x, 2, range=(0.0, 2.0))
    assert hist.tolist() == [2, 2]  # the last bin has its end too
    assert edges.tolist() == [0, 1, 2]
    hist, _ = rushlight.histogram(x, tensor([0.0, 1.0, 2.0]), weight=x, density=True)
    assert hist.tolist() == pytest.approx([0.5 / 3.5, 3 / 3.5])
    assert rushlight.histc(x, 2, 0, 2).tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="is not finite"):
        rushlight.histogram(tensor([1.0, NAN]), 2)


def test_counts_of_integers():
    assert rushlight.bincount(rushlight.tensor([1, 1, 4]), minlength=3).tolist() == [0, 2, 0, 0, 1]
    for wrong, what in (([-1], "non-negative"), ([[1]], "1-d")):
        with pytest.raises(RuntimeError, match=what):
            rushlight.bincount(rushlight.tensor(wrong))


# -- differences, areas, slopes --------------------------------------------------------------------


@given(st.integers(3, 8), st.sampled_from([1, 2]))
@settings(max_examples=30, deadline=None)
def test_slopes_of_a_parabola_are_exact(n, order):
    """Inside always; at the ends with edge_order=2."""
    at = np.sort(np.random.default_rng(n).random(n)) * 3 + np.arange(n)
    found = rushlight.gradient(tensor(2 * at * at - at), spacing=(tensor(at),), edge_order=order)[0].numpy()
    part = slice(None) if order == 2 else slice(1, -1)
    assert np.allclose(found[part], (4 * at - 1)[part])


def test_the_area_is_the_last_of_the_areas_so_far():
    y, x = tensor(np.random.default_rng(0).random((3, 5))), tensor([0.0, 1.0, 1.5, 4.0, 4.0])
    assert np.allclose(rushlight.trapezoid(y, x).numpy(), np.trapezoid(y.numpy(), x.numpy()))
    assert np.allclose(rushlight.cumulative_trapezoid(y, x).numpy()[:, -1], rushlight.trapezoid(y, x).numpy())
    with pytest.raises(TypeError, match="x or dx"):
        rushlight.trapezoid(y, x, dx=2)


def test_runs_alone_are_those_with_their_lengths():
    for x in (
        rushlight.tensor([1, 1, 2, 2, 1]),
        rushlight.tensor([[0.0, float("nan")], [float("nan"), 0.0]]),
        rushlight.tensor([]),
        rushlight.tensor(3),
        rushlight.randint(0, 2, (4, 6)).T,
    ):
        alone, (found, lengths) = x.unique_consecutive(), x.unique_consecutive(return_counts=True)
        np.testing.assert_array_equal(alone.numpy(), found.numpy())
        assert int(lengths.sum()) == x.numel()


@pytest.mark.parametrize("largest", [True, False])
def test_a_few_of_many_are_told_from_what_was_taken(largest):
    inf, nan = float("inf"), float("nan")
    for least, rest in ((-inf, inf), (inf, -inf), (nan, 1.0), (0.0, 0.0)):
        x = rushlight.full((2, 40), least)
        x[0, 7] = rest
        values, index = x.topk(3, largest=largest)
        wanted = x.sort(descending=largest).values[:, :3]
        assert np.array_equal(values.numpy(), wanted.numpy(), equal_nan=True)
        assert all(len(set(row)) == 3 for row in index.tolist())
        assert np.array_equal(x.gather(1, index).numpy(), values.numpy(), equal_nan=True)


def test_the_labels_of_few_classes_take_no_room_for_all():
    x, y = rushlight.zeros(64, 2048), rushlight.full((64, 2048), -1)
    y[:, 0] = 5
    tracemalloc.start()
    try:
        loss = rushlight.nn.functional.multilabel_margin_loss(x, y)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert loss.item() == pytest.approx(2047 / 2048)
    assert most < 100 << 20  # differences of all labels from all classes would be 1 GB


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 3, 100, 4096, 100_000])
def test_bins_that_are_computed_are_those_that_are_searched_for(n, dtype):
    """Numbers on the edges and next to them, in bins of one width and nearly so, many of them empty."""
    rng = np.random.default_rng(n)
    for low, high in ((0, 1), (-3.3, 1e5), (1e6, 1e6 + 1), (-1e-20, 1e-20)):
        even = np.linspace(low, high, n + 1)
        shaken = np.sort(even + rng.uniform(-0.2, 0.2, n + 1) * (high - low) / n)
        for edges in (even.astype(dtype), shaken.astype(dtype), (even**3).astype(dtype)):
            on = rng.choice(edges, 3000)
            x = np.concatenate(
                (
                    rng.uniform(low, high, 3000).astype(dtype),
                    on,
                    np.nextafter(on, dtype(np.inf)),
                    np.nextafter(on, dtype(-np.inf)),
                    [NAN, np.inf, -np.inf],
                )
            ).astype(dtype)
            inside = (x >= edges[0]) & (x <= edges[-1])
            np.testing.assert_array_equal(
                bins_of(x, edges)[inside], np.minimum(np.searchsorted(edges, x[inside], "right") - 1, n - 1)
            )


@pytest.mark.parametrize("descending", [False, True])
def test_sorted_values_lie_as_what_is_sorted(torch, descending):
    def lie(lib):
        x = lib.arange(120.0).reshape(4, 5, 6)
        return [(t.stride(), t.tolist()) for y in (x.permute(2, 0, 1), x[:, ::2], x.mT) for t in y.sort(1, descending)]

    assert lie(rushlight) == lie(torch)


@pytest.mark.parametrize(
    "function",
    [
        lambda t, x: x.unique(),
        lambda t, x: x.unique(return_counts=True)[0],
        lambda t, x: x[None].unique(dim=1),
        lambda t, x: x.unique_consecutive(),
        lambda t, x: t.histogram(x, 3).hist,
        lambda t, x: t.histogram(x, 3).bin_edges,
        lambda t, x: t.histogram(t.arange(3.0), 3, weight=x).hist,
        lambda t, x: t.histogramdd(x[:, None], [3]).hist,
        lambda t, x: t.bincount(t.tensor([0, 1, 1]), x),
    ],
)
def test_what_has_no_derivative_says_so(torch, function):
    def refuse(lib):
        x = lib.tensor([3.0, 1.0, 3.0])
        for ask in (
            lambda: function(lib, x.clone().requires_grad_()).sum().backward(),
            lambda: lib.func.grad(lambda y: function(lib, y).sum())(x),
            lambda: lib.func.jvp(lambda y: function(lib, y).sum(), (x,), (x,)),
        ):
            with pytest.raises(RuntimeError, match="derivative for|forward AD"):
                ask()

    refuse(torch)
    refuse(rushlight)


@pytest.mark.origin("fuzzing")
def test_bfloat16_in_order_with_nan_last():
    x = rushlight.tensor([3, float("nan"), 1, 2, float("nan"), -1])
    half = x.bfloat16()
    assert half.sort()[1].tolist() == half.argsort(stable=True).tolist() == x.sort()[1].tolist() == [5, 2, 3, 0, 1, 4]
    assert half.sort(descending=True)[1].tolist() == [1, 4, 0, 3, 2, 5]
    assert half.topk(2, largest=False)[0].tolist() == [-1.0, 1.0]
    assert half.kthvalue(3)[0].item() == half.nanmedian(0)[0].item() + 1 == 2.0
    assert half.unique()[:4].tolist() == [-1.0, 1.0, 2.0, 3.0]
