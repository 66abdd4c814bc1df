"""Transposed convolutions in native functions."""

import pytest

import rushlight
from rushlight.compile.native.transposed import taps_of
from tests.compile.native.native_case import assert_same, assert_same_on_cores, normal

pytest.importorskip("llvmlite")
nn, F = rushlight.nn, rushlight.nn.functional


@pytest.mark.faster
@pytest.mark.parametrize(
    ("channels", "filters", "kernel", "how"),
    [
        (3, 17, 2, {"stride": 2}),
        (17, 3, 3, {"stride": 2, "padding": 1, "output_padding": 1}),
        (5, 33, 4, {"stride": 2, "padding": 1}),
        (5, 7, 3, {}),
        (5, 7, 3, {"padding": 2, "bias": False}),
        (4, 16, 3, {"stride": 3, "dilation": 2, "padding": 1}),
        (4, 5, 2, {"stride": 3}),  # phases without elements of the kernel
        (4, 5, 1, {"stride": 2, "output_padding": 1}),
        (8, 16, 3, {"stride": 2, "groups": 2}),
        (3, 4, (1, 4), {"stride": (2, 3), "padding": (0, 2)}),
        (3, 4, 3, {"stride": 2, "padding": 3}),  # x is cropped
    ],
)
@pytest.mark.parametrize("batch", [1, 3])
def test_images(channels, filters, kernel, how, batch):
    rushlight.manual_seed(0)
    layer = nn.ConvTranspose2d(channels, filters, kernel, **how)
    x = normal(batch, channels, 5, 7)
    assert_same(lambda x: layer(x).relu() + 1, x, tolerance=2e-6)
    if batch == 3:
        assert_same(
            lambda x: layer((x * 2).exp()), x.transpose(0, 2, 3, 1).copy().transpose(0, 3, 1, 2), tolerance=2e-6
        )


@pytest.mark.faster
@pytest.mark.parametrize(
    ("kernel", "how"), [(2, {"stride": 2}), (5, {"stride": 3, "padding": 1}), (3, {"dilation": 3})]
)
def test_rows(kernel, how):
    rushlight.manual_seed(0)
    layer = nn.ConvTranspose1d(5, 17, kernel, **how)
    assert_same(lambda x: layer(x.relu()), normal(2, 5, 9), tolerance=2e-6)


@pytest.mark.faster
def test_between_convolutions():
    rushlight.manual_seed(0)
    first, second, third = (
        nn.Conv2d(3, 16, 3, padding=1),
        nn.ConvTranspose2d(16, 8, 4, 2, 1),
        nn.Conv2d(11, 5, 3, padding=1),
    )

    def function(x, fine):
        return third(rushlight.cat([fine, second(first(x).relu()).relu()], 1))

    for batch in (1, 2):
        assert_same(function, normal(batch, 3, 4, 6), normal(batch, 3, 8, 12), tolerance=2e-6)


@pytest.mark.faster
def test_images_on_two_cores(monkeypatch):
    rushlight.manual_seed(0)
    layer = nn.ConvTranspose2d(5, 17, 3, 2, 1)
    assert_same_on_cores(monkeypatch, lambda x: layer(x.relu()).relu(), normal(3, 5, 6, 7), tolerance=2e-6)


@pytest.mark.faster
def test_taps_have_each_element_of_the_kernel_once():
    for stride in (1, 2, 3):
        for dilation in (1, 2, 3):
            for padding in (0, 1, 4):
                found = taps_of(12, 4, stride, padding, dilation)
                assert sorted(k for t in found for k in t.kernel) == [0, 1, 2, 3]
                assert sorted(t.first + j * stride for t in found for j in range(t.count)) == [*range(12)]
