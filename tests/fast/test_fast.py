"""Ways that are taken for what is large, or many: they give what the ordinary way gives, beside the threshold and
across."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest

import rushlight
from rushlight.base.faster import site
from rushlight.core.mode import Watcher, within
from rushlight.fast import index
from rushlight.kernels import solving
from rushlight.kernels.elementwise import where
from rushlight.loops import budget
from rushlight.random import stream


@pytest.mark.parametrize("batch", [(63,), (64,), (8, 8), (1, 70)])
@pytest.mark.parametrize(("n", "k"), [(16, 3), (16, 16), (3, 1), (1, 1), (1, 4)])
@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
@pytest.mark.parametrize("unitriangular", [False, True])
def test_triangles_side_by_side(batch, n, k, dtype, unitriangular):
    rng = np.random.default_rng(0)
    a = (rng.standard_normal((*batch, n, n)) / n + 2 * np.eye(n)).astype(dtype)
    b = rng.standard_normal((*batch, n, k)).astype(dtype)
    kept = a.copy(), b.copy()
    for upper in (False, True):
        x = solving.triangular(a, b, upper, unitriangular)
        one = np.stack(
            [
                solving.triangular(p, q, upper, unitriangular)  # alone: by LAPACK
                for p, q in zip(a.reshape(-1, n, n), b.reshape(-1, n, k))
            ]
        ).reshape(b.shape)
        assert x.dtype == dtype
        assert x.flags.c_contiguous
        np.testing.assert_allclose(x, one, rtol=1e-4, atol=1e-5)
        spread = solving.triangular(a[..., :1, :, :], b, upper, unitriangular)
        np.testing.assert_allclose(spread.reshape(-1, n, k)[0], one.reshape(-1, n, k)[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(a, kept[0])
    np.testing.assert_array_equal(b, kept[1])


def test_a_zero_on_a_diagonal_spoils_its_own_triangle():
    a = np.broadcast_to(np.float32([[2, 0], [1, 0]]), (9, 2, 2)).copy()
    a[1:, 1, 1] = 1
    x = solving.triangular(a, np.ones((9, 2, 1), np.float32))
    assert np.isinf(x[0, 1, 0])
    np.testing.assert_array_equal(x[1:, :, 0], np.full((8, 2), 0.5, np.float32))


@pytest.mark.parametrize("batch", [(), (1,), (5,), (2, 3)])
@pytest.mark.parametrize("singular", [0, 1, 6])
def test_gradients_of_determinants_of_which_some_are_0(batch, singular):
    """The gradient is the matrix of cofactors, of each matrix for itself."""
    a = np.random.default_rng(1).standard_normal((*batch, 3, 3))
    a.reshape(-1, 3, 3)[:singular, 2] = a.reshape(-1, 3, 3)[:singular, 1]
    x = rushlight.tensor(a, requires_grad=True)
    rushlight.linalg.det(x).sum().backward()
    for m, g in zip(a.reshape(-1, 3, 3), x.grad.numpy().reshape(-1, 3, 3)):
        minors = [
            [(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(m, i, 0), j, 1)) for j in range(3)] for i in range(3)
        ]
        np.testing.assert_allclose(g, minors, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("spec", ["ij,ij->", "ij,ji->", "i,i->", "ij,ij,ij->", "ijk,kij->"])
def test_products_of_all_are_those_of_vectors(spec, oracle):
    """Nothing is left: einsum and tensordot take BLAS's product of vectors, whose derivatives are products with a
    number."""
    names = spec[:-2].split(",")
    size = {"i": 3, "j": 3, "k": 3}
    arrays = [np.random.default_rng(i).standard_normal([size[c] for c in name]) for i, name in enumerate(names)]

    def gradients(torch):
        ts = [torch.tensor(a, requires_grad=True) for a in arrays]
        y = torch.einsum(spec, *ts)
        first = torch.autograd.grad(y * y, ts, create_graph=True)
        second = torch.autograd.grad(sum((g * g).sum() for g in first), ts)
        return [y.detach(), *[g.detach() for g in (*first, *second)]]

    for made, wanted in zip(gradients(rushlight), oracle(gradients)):
        assert made.shape == wanted.shape
        np.testing.assert_allclose(made.numpy(), wanted, rtol=1e-10)


@pytest.mark.parametrize(
    ("a", "b", "dims"),
    [((2, 3), (2, 3), 2), ((4,), (4,), 1), ((2, 3), (3, 2), ([0, 1], [1, 0])), ((2, 1), (2, 3), 2), ((), (), 0)],
)
def test_tensordot_of_all_dimensions(a, b, dims, oracle):
    x, y = np.arange(np.prod(a, dtype=int)).reshape(a) + 0.5, np.arange(np.prod(b, dtype=int)).reshape(b) - 1.5

    def gradients(torch):
        p, q = torch.tensor(x, requires_grad=True), torch.tensor(y, requires_grad=True)
        r = torch.tensordot(p, q, dims)
        return [r.detach(), *torch.autograd.grad(r, (p, q)), torch.tensordot(p.long(), q.long(), dims)]

    for made, wanted in zip(gradients(rushlight), oracle(gradients)):
        assert made.shape == wanted.shape
        np.testing.assert_allclose(made.numpy(), wanted)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int64"])
def test_written_in_place_as_made(dtype):
    """`clamp_` and `fill_diagonal_` write at once where nothing is recorded; views see it, and it is counted."""
    x = rushlight.arange(-4, 8).reshape(4, 3).to(getattr(rushlight, dtype))
    for low, high in ((-1, 2), (None, 2), (0, None), (3, 1)):
        whole = x.clone()
        part = whole.t()[1:]
        assert part.clamp_(low, high) is part
        assert part._version == 1
        assert rushlight.equal(whole[:, 1:], x.clamp(low, high)[:, 1:])
        assert rushlight.equal(whole[:, 0], x[:, 0])
    for wrap in (False, True):
        base = rushlight.cat([x, x])
        whole = base.clone()
        assert whole.fill_diagonal_(7, wrap) is whole
        assert whole._version == 1
        steps = [i * 4 for i in range(6)] if wrap else [0, 4, 8]
        wanted = base.reshape(-1).clone()
        wanted[steps] = 7
        assert rushlight.equal(whole.reshape(-1), wanted)


def test_writing_in_place_is_recorded_where_it_counts():
    x = rushlight.tensor([[1.0, 5.0], [-2.0, 0.5]], requires_grad=True)
    y = x * 1
    y.clamp_(-1, 2)
    y.fill_diagonal_(3.0)
    y.sum().backward()
    assert x.grad.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    with pytest.raises(RuntimeError, match="leaf"):
        x.clamp_(0, 1)
    with pytest.raises(RuntimeError, match="more than one element"):
        rushlight.zeros(3, 1).expand(3, 3).clamp_(0, 1)


@pytest.mark.parametrize("shape", [(4, 16, 63), (4, 16, 64), (2, 300, 20), (1, 4096, 1), (5000, 1, 1), (1, 1, 5000)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["sum", "mean"])
def test_sums_along_the_middle_of_three(shape, dtype, name):
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    t = rushlight.tensor(x)
    for dim in (1, -2, (1,)):
        for keepdim in (False, True):
            made = getattr(t, name)(dim, keepdim)
            wanted = getattr(np, name)(x.astype(np.float64), 1, keepdims=keepdim)
            assert made.shape == wanted.shape
            assert made.numpy().dtype == dtype
            assert made.is_contiguous()
            np.testing.assert_allclose(made.numpy(), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("n", [1, 7, 8, 9, 127, 128, 1024, 1025])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_of_rows_are_the_same_among_any_number_of_rows(n, dtype):
    x = np.random.default_rng(n).standard_normal((600, n)).astype(dtype)
    whole = rushlight.tensor(x[:60]).sum(-1).numpy()  # below 65,536 numbers, from which there are loops
    np.testing.assert_allclose(whole, x[:60].astype(np.longdouble).sum(1).astype(dtype), rtol=1e-4, atol=1e-4)
    for rows in (1, 2, 7, 30):
        np.testing.assert_array_equal(rushlight.tensor(x[:rows]).sum(-1).numpy(), whole[:rows])
    np.testing.assert_array_equal(rushlight.tensor(x[0]).sum(-1).numpy(), whole[0])
    stacked = rushlight.tensor(x[:60].reshape(3, 20, n))
    np.testing.assert_array_equal(stacked.sum((2,), True).numpy(), whole.reshape(3, 20, 1))


@pytest.mark.parametrize("shape", [(), (0,), (8,), (9, 0), (0, 9), (1, 8), (3, 4, 16), (2, 4, 4, 4)])
@pytest.mark.parametrize("keepdim", [False, True])
def test_shapes_of_sums_along_the_last_dimension(shape, keepdim, oracle):
    def sums(torch):
        x = torch.ones(shape)
        last = len(shape) - 1 if shape else 0
        return [f(dim, keepdim) for dim in (-1, last) for f in (x.sum, x.double().mean, x.long().sum)]

    for made, wanted in zip(sums(rushlight), oracle(sums)):
        assert made.shape == wanted.shape
        assert made.numpy().dtype == wanted.dtype
        np.testing.assert_array_equal(made.numpy(), wanted)


@pytest.mark.parametrize("shape", [(256, 16), (255, 16), (300, 17), (2048, 2), (2, 999, 3), (4096, 1), (600, 7)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.uint8])
@pytest.mark.parametrize("name", ["amax", "amin", "prod"])
def test_many_short_rows_are_reduced_column_by_column(shape, dtype, name):
    rng = np.random.default_rng(0)
    x = (rng.random(shape) * 3).astype(dtype)
    if x.dtype.kind == "f":
        x.flat[[0, 5]] = np.nan
    ufunc = {"amax": np.maximum, "amin": np.minimum, "prod": np.multiply}[name]
    turned = np.swapaxes(x, 0, -1).copy().swapaxes(0, -1)  # of other steps in memory
    for a in (x, turned):
        t = rushlight.tensor(x) if a is x else rushlight.from_numpy(a)
        for dim in (-1, len(shape) - 1):
            for keepdim in (False, True):
                made = getattr(t, name)(dim, keepdim)
                kind = np.int64 if name == "prod" and x.dtype.kind in "iu" else dtype
                wanted = ufunc.reduce(x, -1, kind, None, keepdim)
                assert made.numpy().dtype == kind
                assert made.is_contiguous()
                np.testing.assert_array_equal(made.numpy(), wanted)
    t = rushlight.tensor((rng.random((2048, 2)) + 0.5), requires_grad=True)
    getattr(t, name)(-1).sum().backward()
    g = {
        "amax": t.detach() == t.detach().amax(-1, True),
        "amin": t.detach() == t.detach().amin(-1, True),
        "prod": t.detach().flip(1),
    }[name]
    np.testing.assert_allclose(t.grad.numpy(), g.double().numpy())


NUMBERS = [
    0,
    1,
    -1,
    0.5,
    np.nan,
    np.inf,
    True,
    1j,
    np.float16(2.5),
    np.float32(-0.0),
    np.float32(3.5),
    np.float64(1e300),
    np.int32(5),
    np.int64(7),
    np.True_,
    np.complex64(1 + 2j),
    np.array(2.0, np.float32),
]


@pytest.mark.parametrize("x", NUMBERS, ids=repr)
def test_where_of_numbers_is_numpys(x):
    for condition in (np.True_, np.False_):
        for y in NUMBERS:
            made, wanted = np.asarray(where(condition, x, y)), np.where(condition, x, y)
            assert made.dtype == wanted.dtype
            assert made.tobytes() == wanted.tobytes()


def test_gradients_of_scalars_stay_numbers():
    x = rushlight.tensor(0.5, requires_grad=True)
    for y in (x.relu(), x.clamp(0, 1), x.clamp(min=0), rushlight.maximum(x, x * 2)):
        assert not isinstance(y._node.arrays(np.float32(1))[0], np.ndarray)  # a 0-d array takes twice as long


def test_few_random_numbers_are_those_of_many():
    """A draw of few takes its numbers from a block that was worked on as a whole, wherever it begins."""
    few, many = (rushlight.Generator().manual_seed(3) for _ in range(2))
    for i in range(400):
        n, what = i % 7 + i % 3, ("uniform24", "uniform53")[i % 2]
        words = many.words(n * (i % 2 + 1))
        at_once = stream.units53(stream.paired(words[0::2], words[1::2])) if i % 2 else stream.units24(words)
        made = getattr(few, what)(n)
        assert made.dtype == at_once.dtype
        np.testing.assert_array_equal(made, at_once)


def test_settings_left_out_are_the_defaults():
    """Where the call has fewer arguments, in the middle of what may be left out too, and by name."""
    x = rushlight.tensor([[3.0, 1.0, 2.0], [4.0, 6.0, 5.0]])
    for left, whole in (((), (0, -1)), ((0,), (0, -1)), ((-1,), (1, -1))):
        assert x.flatten(*left).tolist() == x.flatten(*whole).tolist()
    assert x.sort().values.tolist() == x.sort(-1, False).values.tolist() == x.sort(descending=False).values.tolist()
    assert rushlight.tril(x).tolist() == rushlight.tril(x, 0).tolist() == rushlight.tril(x, diagonal=0).tolist()
    assert rushlight.diagonal(x, 1).tolist() == rushlight.diagonal(x, 1, 0, 1).tolist()
    assert [t.tolist() for t in x.unbind()] == x.tolist()
    y = x[None, :, None]
    assert y.squeeze().shape == y.squeeze((0, 2)).shape == y.squeeze(dim=(0, -2)).shape == (2, 3)
    assert y.squeeze(0).shape == y.squeeze(dim=0).shape == (2, 1, 3)
    assert y.squeeze(1).shape == y.shape
    with pytest.raises(TypeError, match="missing required argument"):
        x.transpose(0)
    with pytest.raises(IndexError, match="range"):
        y.squeeze(4)


def test_rows_are_views_of_the_tensor():
    """Noted together, they follow what is written into it, and it what is written into them; lost ones are
    forgotten."""
    for shape, dim in (((40,), 0), ((40, 2), 0), ((2, 40, 3), 1), ((2, 3, 40), -1)):
        x = rushlight.zeros(shape)
        leaf = rushlight.ones(shape, requires_grad=True)
        rows = x.unbind(dim)
        assert [r.shape for r in rows] == [x.select(dim, 0).shape] * 40
        x.add_(leaf)
        assert rows[7].requires_grad
        assert rows[7]._base is x
        assert rows[39].sum() == rows[39].numel()
        rows = x.unbind(dim)
        for _ in range(20):
            kept = x.unbind(dim)
        assert len(x._views) < 40 * 12
        kept[3].mul_(2)
        x.sum().backward()
        wanted = rushlight.ones(shape)
        wanted.select(dim, 3).mul_(2)
        assert rushlight.equal(leaf.grad, wanted)


@pytest.mark.parametrize("align", [False, True])
def test_a_grid_that_is_remembered(align):
    theta = rushlight.tensor([[[1.0, 0.5, 0.0], [0.0, 2.0, 0.1]]], requires_grad=True)
    first = rushlight.nn.functional.affine_grid(theta, (1, 1, 3, 2), align_corners=align)
    kept = first.detach().clone()
    with rushlight.no_grad():
        first.zero_()  # what users write to is their own
    again = rushlight.nn.functional.affine_grid(theta, (1, 1, 3, 2), align_corners=align)
    assert rushlight.equal(again, kept)
    again.sum().backward()
    np.testing.assert_allclose(theta.grad.numpy(), [[[0, 0, 6], [0, 0, 6]]], atol=1e-6)
    double = rushlight.nn.functional.affine_grid(theta.detach().double(), (1, 1, 3, 2), align_corners=align)
    assert double.dtype is rushlight.float64
    np.testing.assert_allclose(double.numpy(), kept.numpy(), rtol=1e-6)


DTYPES = ["bool", "uint8", "int8", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_beside_tensors_are_promoted_by_the_rule(dtype):
    """Who watches is shown the long way, so that what it gives can be told from the quick one."""
    x = rushlight.tensor([1, 0, 1]).to(getattr(rushlight, dtype))
    mask = rushlight.tensor([True, False, True])
    for number in (0, 1, -1, 300, 0.0, -0.0, 0.5, 1 / 3, 1e6, float("nan"), float("inf"), True, 1j):
        for t in (x, x[0]):
            for call, *args in (
                (rushlight.where, mask, t, number),
                (rushlight.where, mask, number, t),
                (rushlight.lerp, t, t + 1, number),
            ):
                quick = outcome_of(call, args)
                with within(watch=Watcher()):
                    assert outcome_of(call, args) == quick, (number, t)


def outcome_of(call, args):
    try:
        t = call(*args)
    except (RuntimeError, TypeError, OverflowError) as error:
        return str(error).split("\n")[0]
    return t.dtype, t.shape, t._array.tobytes()


def test_a_number_of_where_is_no_memory_of_the_result():
    mask = rushlight.tensor(True)
    for _ in range(2):
        y = rushlight.where(mask, 2.0, rushlight.tensor(1.0))
        y.add_(1)
        assert y.item() == 3


@pytest.mark.parametrize("shape", [(1,), (4, 1), (1, 5), (3, 4), (2, 1, 3)])
def test_what_is_sorted_lies_as_torchs_does(shape):
    x = rushlight.tensor(np.random.default_rng(0).standard_normal(shape).astype(np.float32))
    for dim in range(x.ndim):
        for descending in (False, True):
            for t in x.sort(dim, descending):
                assert t.stride() == x.stride()
            values, index = x.sort(dim, descending)
            assert rushlight.equal(x.gather(dim, index), values)


def test_off_stops_the_ways_of_kernels(monkeypatch):
    """A kernel's way (fast/index.py:SITES) is left alone after off(), though it ran before."""
    fake = types.ModuleType("rushlight.fast.fake")
    fake.double = lambda x: "way"
    monkeypatch.setitem(sys.modules, fake.__name__, fake)
    monkeypatch.setitem(index.SITES, "fake.double", index.Way(fake.__name__))

    def double(x):
        return "reference"

    double.__module__ = "rushlight.kernels.fake"
    kernel = site(double)
    monkeypatch.setattr(budget, "allowed", True)
    assert kernel(np.zeros(3)) == "way"
    monkeypatch.setattr(budget, "allowed", False)
    assert kernel(np.zeros(3)) == "reference"
