"""Elements by place: flat positions, sampling at points, distances: large ones, whose ways are not those of small
ones."""

import numpy as np
import pytest

import rushlight
import rushlight.nn.functional as F
from rushlight.base.dependencies import has_llvmlite
from rushlight.fast import grid_loops, scatter_loops
from rushlight.kernels import grid_sample, index, layout, scatter, sorting, ufunc_at

rng = np.random.default_rng(0)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_positions_are_those_of_take_along_axis(dim, dtype):
    x = rng.standard_normal((5, 6, 7))
    at = rng.integers(0, x.shape[dim], (4, 3, 2)).astype(dtype)
    part = tuple(slice(None) if d == dim else slice(n) for d, n in enumerate(at.shape))
    assert (x.reshape(-1)[ufunc_at.places(x.shape, at, dim)] == np.take_along_axis(x[part], at, dim)).all()
    assert ufunc_at.places(x.shape, at, dim).dtype == np.int64


def test_large_positions_do_not_overflow():
    at = np.full((1, 1), 3, np.int32)
    assert ufunc_at.places((4, 1 << 30), at, 0).tolist() == [[3 << 30]]


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("reduce", ["sum", "mean", "prod", "amax", "amin"])
def test_reduced_places_of_transposed_tensors(reduce, keep, oracle):
    numbers, at, source = rng.standard_normal((6, 3)), rng.integers(0, 3, (6, 4)), rng.standard_normal((6, 4))

    def ask(lib):
        x, i, s = (lib.tensor(a).T for a in (numbers, at, source))
        return x.scatter_reduce(0, i % 3, s, reduce, include_self=keep).numpy()

    np.testing.assert_allclose(ask(rushlight), oracle(ask), rtol=1e-12)


def test_gradient_of_two_indices_adds_up():
    x = rushlight.zeros(3, 4, 5, requires_grad=True)
    x[rushlight.tensor([0, -1, 2]), rushlight.tensor([[1], [-3]])].sum().backward()
    expected = np.zeros((3, 4, 5))
    expected[0, 1], expected[2, 1] = 2, 4
    assert (x.grad.numpy() == expected).all()


def test_bags_and_the_first_of_their_largest(oracle):
    numbers, rows = rng.integers(0, 3, (5, 4)).astype(np.float64), rng.integers(0, 5, 9)

    def ask(lib):
        table = lib.tensor(numbers, requires_grad=True)
        made = lib.nn.functional.embedding_bag(lib.tensor(rows), table, lib.tensor([0, 0, 4, 9]), mode="max")
        made.backward(lib.arange(16.0, dtype=lib.float64).reshape(4, 4))
        return np.stack([*made.detach().numpy(), *table.grad.numpy()])

    np.testing.assert_allclose(ask(rushlight), oracle(ask))


@pytest.mark.skipif(not has_llvmlite(), reason="no loops without llvmlite")
@pytest.mark.parametrize("size", [(2, 3, 50, 4, 20), (1, 16, 64, 4, 100), (3, 1, 7, 8, 33), (2, 5, 9, 1, 4)])
def test_samples_by_a_loop_have_the_same_bits(size, monkeypatch):
    n, c, s, k, p = size
    x, g, weight = (rng.standard_normal(shape).astype(np.float32) for shape in ((n, c, s), (n, c, p), (n, k, p)))
    at = rng.integers(0, s, (n, k, p))

    def made():
        return [
            m.tobytes()
            for m in (
                grid_sample.sampled(x, weight, at),
                grid_sample.sampled_back(g, weight, at, s),
                grid_sample.sampled_slope(g, x, at),
            )
        ]

    for text in (grid_loops.SAMPLED, grid_loops.SAMPLED_BACK, grid_loops.SAMPLED_SLOPE):
        grid_loops.loop_of(text).function or grid_loops.loop_of(text).build()
    found = made()
    monkeypatch.setattr(grid_loops, "by_loop", lambda *given: None)
    assert found == made()


def test_near_points_keep_their_distance():
    """300 x 250 points of 4 numbers around 1000, 1e-3 apart: products of matrices would lose all of it."""
    x = rushlight.tensor(1000 + 1e-3 * rng.standard_normal((300, 4))).float()
    y = rushlight.tensor(1000 + 1e-3 * rng.standard_normal((250, 4))).float()
    assert rushlight.allclose(rushlight.cdist(x, y), rushlight.cdist(x.double(), y.double()).float(), rtol=1e-5)


@pytest.mark.parametrize("kernel", [7, (7, 7)])
def test_one_window_that_is_the_plane(kernel):
    x = rushlight.tensor(rng.standard_normal((3, 4, 7, 7)), requires_grad=True)
    made = F.avg_pool2d(x, kernel)
    assert made.shape == (3, 4, 1, 1)
    assert rushlight.allclose(made, x.mean((2, 3), True))
    assert F.avg_pool2d(x, kernel, divisor_override=7).allclose(7 * made)


@pytest.mark.parametrize("last", [1, 2, 3, 4, 5])
def test_few_numbers_in_the_last_dimension_are_copied_place_by_place(last):
    x = rng.standard_normal((8, last, 6, 400))
    y = layout.copied(x.transpose(0, 2, 3, 1))
    assert y.flags.c_contiguous
    assert (y == x.transpose(0, 2, 3, 1)).all()


def test_reshape_stays_a_view_where_there_is_one():
    x = rushlight.zeros(2, 60, 70, 2)
    x[:, :, :, :1].reshape(2, 4200, 1)[0, 0, 0] = 5.0
    x.permute(2, 0, 1, 3).reshape(70, 240)[0, 1] = 7.0  # a copy
    assert x[0, 0, 0].tolist() == [5, 0]
    with pytest.raises(RuntimeError, match="shape '\\[7, 7\\]' is invalid for input of size 16800"):
        x.permute(2, 0, 1, 3).reshape(7, 7)


@pytest.mark.parametrize(
    "pick", [lambda x, i: x.gather(1, i), lambda x, i: x.index_select(1, i), lambda x, i: x.scatter(-2, i, x)]
)
def test_a_number_has_no_second_dimension_to_pick_from(pick):
    with pytest.raises(IndexError, match="Dimension out of range"):
        pick(rushlight.tensor(1.0), rushlight.tensor(0))


def test_einsum_that_changes_nothing_is_a_view():
    x = rushlight.zeros(2, 3)
    y = rushlight.einsum("ij->ij", x)
    y[0, 0] = 1.0
    assert y is not x
    assert x[0, 0] == 1


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64", "bool"])
def test_numbers_close_together_are_counted_as_sorting_finds_them(dtype):
    x = rng.integers(0 if dtype[0] in "ub" else -100, 100, (30, 40)).astype(dtype)
    found, place, counts = sorting.unique(x, None)
    expected = np.unique(x, return_inverse=True, return_counts=True)
    assert sorting.by_counting(x.reshape(-1)) is not None
    assert found.dtype == x.dtype
    for a, b in zip((found, place, counts), expected):
        assert (a == b.reshape(a.shape)).all()
    assert sorting.by_counting(np.array([2**63 - 1, -(2**63)])) is None


def test_the_slope_of_a_spread_of_nothing_is_0():
    x = rushlight.ones(3, 4, requires_grad=True)
    x.std(1).sum().backward()
    assert (x.grad == 0).all()


@pytest.mark.exhaustive(every=4)
@pytest.mark.skipif(not has_llvmlite(), reason="no loops without llvmlite")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("how", ["sum", "mean", "prod", "amax", "amin"])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_numbers_land_in_loops_with_the_same_bits(dim, how, dtype, monkeypatch):
    """Slices, as an index that is expanded names them, and single numbers, nan among them; the last are not reached."""
    x, source = rng.standard_normal((4, 5, 6)).astype(dtype), rng.standard_normal((4, 5, 6)).astype(dtype)
    source[1, 2, 3] = np.nan
    each = rng.integers(0, x.shape[dim], source.shape)
    line = np.broadcast_to(np.moveaxis(each, dim, 0)[:, :1, :1], (x.shape[dim], *np.delete(x.shape, dim)))
    indices = each, np.moveaxis(line, 0, dim), each[:3, :4, :5]

    def made():
        return [
            scatter.reduce_at(x, at, source[tuple(map(slice, at.shape))], dim, how, kept).tobytes()
            for at in indices
            for kept in (True, False)
        ]

    monkeypatch.setattr(scatter_loops, "SCATTER_ELEMENTS", 0)
    found = made()
    monkeypatch.setattr(scatter_loops, "by_loop", lambda *given: False)
    assert found == made()


def test_an_index_that_is_not_there_writes_nothing():
    x, source = np.zeros((3, 4), np.float32), np.ones((2, 4), np.float32)
    for at in (np.broadcast_to(np.array([[0], [3]]), (2, 4)), np.full((2, 4), -1)):
        with pytest.raises(RuntimeError, match="out of bounds"):
            index.scatter_add_into(x, at, source, 0)
    assert not x.any()
