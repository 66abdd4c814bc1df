"""Rows of tables, index tensors and fixed places in native functions."""

import numpy as np
import pytest

import rushlight
from tests.compile.native.native_case import RNG, assert_same, assert_same_on_cores, normal

pytest.importorskip("llvmlite")
F = rushlight.nn.functional


def whole(below: int, *shape: int) -> np.ndarray:
    return np.asarray(RNG.integers(0, below, shape))


@pytest.mark.faster
@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 7), (3, 1, 5)])
@pytest.mark.parametrize("width", [1, 3, 16, 33])
def test_rows_of_a_table(shape, width):
    table, at = normal(9, width), whole(9, *shape)
    assert_same(lambda t, i: F.embedding(i, t) * 2 + 1, table, at)
    assert_same(lambda t, i: F.embedding(i, t, padding_idx=0), table, at)


@pytest.mark.faster
def test_a_column_of_a_matrix_of_indices():
    table, at = normal(9, 17), whole(9, 3, 4)
    assert_same(lambda t, i: F.embedding(i[:, 1], t) + F.embedding(i[:, 2] * 0, t), table, at)
    assert_same(lambda t, i: F.embedding(i.t()[1:], t), table, at)


@pytest.mark.faster
@pytest.mark.parametrize("dim", [0, 1, 2, -1])
@pytest.mark.parametrize("count", [1, 3, 17, 33])
def test_slices_along_a_dimension(dim, count):
    x, at = normal(3, 7, 17), whole((3, 7, 17)[dim], count)
    assert_same(lambda x, i: x.index_select(dim, i).relu(), x, at)
    assert_same(lambda x, i: x.transpose(0, 2).index_select(2 - dim % 3, i), x, at)


@pytest.mark.faster
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_elements_along_a_dimension(dim):
    shape = [3, 7, 17]
    x, at = normal(*shape), whole(shape[dim], *shape[:dim], 5, *shape[dim + 1 :])
    assert_same(lambda x, i: x.gather(dim, i) * 3, x, at)
    assert_same(lambda x, i: x.transpose(0, 1).gather((1, 0, 2)[dim], i.transpose(0, 1)), x, at)


@pytest.mark.faster
def test_keys_with_index_tensors():
    x, i, j = normal(5, 7, 17), whole(5, 3), whole(7, 2, 3)
    assert_same(lambda x, i: x[i - 5] + 1, x, i)  # counts from the end
    assert_same(lambda x, i, j: x[i, j], x, i, j)
    assert_same(lambda x, j: x[:, j], x, j)
    assert_same(lambda x, i: x[..., i], x, i)


@pytest.mark.faster
@pytest.mark.parametrize(
    ("function", "bad"),
    [
        (lambda x, i: F.embedding(i, x), (-1, 9)),
        (lambda x, i: x.index_select(0, i), (-1, 9)),
        (lambda x, i: x.gather(0, i.reshape(-1, 1).expand(-1, 17)), (-1, 9)),
        (lambda x, i: x[i], (-10, 9)),
        (lambda x, i: F.embedding_bag(i[None], x, mode="sum"), (-1, 9)),
    ],
)
def test_an_index_out_of_range_raises_the_error_of_eager(function, bad):
    x, compiled = rushlight.from_numpy(normal(9, 17)), rushlight.compile(function)
    with rushlight.no_grad():
        good = rushlight.tensor([3, 0, 8])
        want = function(x, good)
        for _ in range(3):
            assert rushlight.allclose(compiled(x, good), want, rtol=1e-6, atol=1e-6)
        ((program,),) = compiled.programs.values()
        assert program.native is not None, program.native_reason
        for index in bad:
            wrong = rushlight.tensor([3, index, 8])
            with pytest.raises(Exception, match="out of|idx") as expected:
                function(x, wrong)
            with pytest.raises(type(expected.value), match="out of|idx") as found:
                compiled(x, wrong)
            assert str(found.value) == str(expected.value)
        assert rushlight.allclose(compiled(x, good), want, rtol=1e-6, atol=1e-6)


@pytest.mark.faster
@pytest.mark.parametrize("shape", [(2, 3, 5, 7), (1, 17, 6, 4)])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.flip(2),
        lambda x: x.flip(-1, 0),
        lambda x: rushlight.roll(x, (1, -2), (2, 3)),
        lambda x: x.repeat(1, 2, 1, 3),
        lambda x: x.repeat(2, 1, 1, 1, 1),
        lambda x: F.pad(x, (1, 2, 3, 0), "reflect"),
        lambda x: F.pad(x, (1, 2, 3, 0), "replicate"),
        lambda x: F.pad(x, (1, 2, 3, 0), "circular"),
        lambda x: x.repeat_interleave(2, 1),
        lambda x: F.interpolate(x, scale_factor=2),
        lambda x: F.interpolate(x, size=(8, 9)),
        lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
        lambda x: F.interpolate(x, size=(8, 3), mode="bilinear", align_corners=True),
        lambda x: F.interpolate(x, size=(8, 9), mode="bicubic"),
    ],
)
def test_fixed_places(function, shape):
    assert_same(lambda x: function(x) + 1, normal(*shape))
    assert_same(lambda x: function(x).relu(), normal(*shape).transpose(0, 2, 3, 1).copy().transpose(0, 3, 1, 2))


@pytest.mark.faster
def test_pixel_shuffle():
    assert_same(lambda x: F.pixel_shuffle(x, 2) + 1, normal(2, 12, 3, 5))


@pytest.mark.faster
def test_rows_on_two_cores(monkeypatch):
    x, at = normal(9, 40), whole(9, 7, 5)
    assert_same_on_cores(monkeypatch, lambda x, i: F.embedding(i, x) + x.index_select(0, i[0])[:, :40], x, at)
    assert_same_on_cores(monkeypatch, lambda x, i: x.gather(0, i.repeat(1, 8)), x, at)


@pytest.mark.faster
def test_a_table_that_changes():
    rushlight.manual_seed(0)
    table, at = rushlight.nn.Embedding(9, 17), rushlight.tensor([[3, 0], [8, 8]])
    with rushlight.no_grad():
        compiled = rushlight.compile(lambda i: table(i) * 2)
        for _ in range(3):
            compiled(at)
        table.weight.mul_(0.5)
        assert rushlight.equal(compiled(at), table(at) * 2)
        table.weight = rushlight.nn.Parameter(rushlight.ones(9, 17))
        assert rushlight.equal(compiled(at), table(at) * 2)


@pytest.mark.faster
@pytest.mark.parametrize("width", [1, 3, 16, 33])
@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_bags(width, mode):
    assert_same(lambda t, i: F.embedding_bag(i, t, mode=mode), normal(9, width), whole(9, 3, 7))
    assert_same(lambda t, i: F.embedding_bag(i.t(), t, mode=mode).relu() + 1, normal(9, width), whole(9, 3, 7))
