"""Concatenations and paddings in native functions."""

import pytest

import rushlight
from tests.compile.native.native_case import assert_same, assert_same_on_cores, normal

pytest.importorskip("llvmlite")
F = rushlight.nn.functional


@pytest.mark.faster
@pytest.mark.parametrize("dim", [0, 1, 2, -1])
@pytest.mark.parametrize("sizes", [(1, 3), (7, 17), (33, 16)])
def test_cat(dim, sizes):
    shapes = [[3, 7, 17] for _ in sizes]
    for shape, n in zip(shapes, sizes):
        shape[dim] = n
    x, y = (normal(*shape) for shape in shapes)
    assert_same(lambda x, y: rushlight.cat([x, y], dim), x, y)
    assert_same(lambda x, y: rushlight.cat([x.exp(), y, y * 2], dim).relu() + 1, x, y)  # a part of its own step
    assert_same(lambda x, y: rushlight.cat([x.exp(), y * 2], dim).transpose(0, 1) * 3, x, y)
    assert_same(lambda x, y: rushlight.cat([x.transpose(0, 1).contiguous().transpose(0, 1), y], dim), x, y)


@pytest.mark.faster
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_stack(dim):
    x, y = normal(3, 17), normal(3, 17)
    assert_same(lambda x, y: rushlight.stack([x, y], dim) * 2, x, y)
    assert_same(lambda x, y: rushlight.stack([x + 1, y, (x * y).tanh()], dim), x, y)


@pytest.mark.faster
def test_a_part_that_is_read_again():
    def function(x, y):
        part = (x + y).relu()
        joined = rushlight.cat([part, part, x * 2], 1)
        return joined.exp() + (part * part).repeat(1, 3)

    assert_same(function, normal(3, 17), normal(3, 17))
    assert_same(
        lambda x, y: rushlight.cat([p := x + y, rushlight.cat([p * 2, y.exp()], 1)], 1) + 1, *[normal(5, 7)] * 2
    )


@pytest.mark.faster
def test_parts_of_linear_layers():
    rushlight.manual_seed(0)
    first, second = rushlight.nn.Linear(17, 9), rushlight.nn.Linear(17, 9)
    for shape in ((3, 17), (2, 5, 17)):
        for dim in range(len(shape)):
            x = normal(*shape)
            assert_same(lambda x, d=dim: rushlight.cat([first(x).relu(), second(x) * 2], d).exp(), x, tolerance=2e-6)


@pytest.mark.faster
@pytest.mark.parametrize("batch", [1, 3])
def test_images_between_convolutions(batch):
    rushlight.manual_seed(0)
    first, second, third = (rushlight.nn.Conv2d(a, b, 3, padding=1) for a, b in ((3, 16), (16, 7), (26, 5)))

    def function(x):
        fine = first(x).relu()
        coarse = second(fine)
        return third(rushlight.cat([fine, coarse, x], 1)) + F.max_pool2d(fine, 3, 1, 1)[:, :5]

    assert_same(function, normal(batch, 3, 6, 9), tolerance=2e-6)


@pytest.mark.faster
@pytest.mark.parametrize("shape", [(1, 3), (3, 7, 17), (2, 5, 4, 33)])
@pytest.mark.parametrize("amounts", [(2, 0), (0, 3), (1, 2, 3, 0), (-1, 2, 1, -1), (-1, -1)])
def test_pad(shape, amounts):
    x = normal(*shape)
    assert_same(lambda x: F.pad(x, amounts), x)
    assert_same(lambda x: F.pad(x.exp(), amounts, value=1.5).relu() * 2, x)
    assert_same(lambda x: F.pad(x.exp(), amounts).flip(0), x)


@pytest.mark.faster
def test_causal_convolutions():
    rushlight.manual_seed(0)
    first, second = rushlight.nn.Conv1d(3, 17, 3), rushlight.nn.Conv1d(17, 5, 3, dilation=2)

    def function(x):
        found = first(F.pad(x, (2, 0))).relu()
        return second(F.pad(found, (4, 0))) + found[:, :5]

    for batch in (1, 3):
        assert_same(function, normal(batch, 3, 19), tolerance=2e-6)


@pytest.mark.faster
def test_whole_numbers():
    x = normal(3, 7)
    assert_same(lambda x: F.pad(rushlight.cat([(x * 5).long(), (x * 9).long()], 1), (1, 2), value=4).float(), x)
    assert_same(lambda x: F.pad(rushlight.stack([x > 0, x < 1], 1), (1, 2), value=True).float(), x)


@pytest.mark.faster
def test_parts_on_two_cores(monkeypatch):
    rushlight.manual_seed(0)
    layer = rushlight.nn.Conv2d(7, 5, 3, padding=1)

    def function(x, y):
        return layer(F.pad(rushlight.cat([x.exp(), y, (x + 1).relu()], 1), (1, 0, 2, 0)))

    assert_same_on_cores(monkeypatch, function, normal(2, 2, 5, 6), normal(2, 3, 5, 6), tolerance=2e-6)
