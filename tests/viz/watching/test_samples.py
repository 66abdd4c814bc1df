"""Histograms of the live page: the counts are NumPy's, bad values are counted, large arrays are read in part."""

import numpy as np
import pytest

from rushlight.viz.watching.samples import BINS, LEVELS, MAX_PICKED, histogram, picked, places


@pytest.mark.parametrize("seed", range(5))
def test_heights_are_the_counts_in_equal_bins(seed):
    values = np.random.default_rng(seed).standard_normal(1000)
    low, high, heights, mean, size, zeros, bad = histogram(values)
    counts, _ = np.histogram(values, BINS)
    found = (np.frombuffer(heights.encode(), np.uint8) - 48.0) / LEVELS * counts.max()
    assert len(heights) == BINS
    assert np.abs(found - counts).max() <= counts.max() / LEVELS + 1  # a value at the border of a bin may be in either
    assert (found[counts > 1] > 0).all()
    assert [low, high, mean] == pytest.approx([values.min(), values.max(), values.mean()], rel=1e-4)
    assert size == pytest.approx(np.sqrt((values**2).mean()), rel=1e-4)
    assert (zeros, bad) == (0, 0)


def test_zeros_and_bad_values_are_counted():
    *_, zeros, bad = histogram(np.array([0.0, 0.0, 1.0, 2.0, np.nan, np.inf, -np.inf, 5.0]))
    assert zeros == pytest.approx(0.4)
    assert bad == pytest.approx(0.375)


@pytest.mark.parametrize("values", [[np.nan, np.inf], [3.0], [2.0, 2.0], [1e308, -1e308], [5e-324, 0.0]])
def test_odd_values(values):
    found = histogram(np.array(values))
    assert len(found[2]) == BINS
    assert max(found[2]) in "0o"


def test_no_values():
    assert histogram(np.array([])) is None


@pytest.mark.parametrize("make", [lambda a: a, lambda a: a.T, lambda a: a[::2], lambda a: a.astype(np.float32)])
def test_elements_of_a_large_array(make):
    array = make(np.arange(300 * 200.0).reshape(300, 200))
    found = picked(array)
    assert found.shape == (MAX_PICKED,)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, array.reshape(-1)[places(array.size)])
    assert len({*(found % 200)}) > 90  # not of a few columns
    array[:] = 0
    assert found.any()  # a copy


def test_small_and_complex_arrays():
    np.testing.assert_array_equal(picked(np.arange(6).reshape(2, 3)), np.arange(6))
    np.testing.assert_array_equal(picked(np.array([3 + 4j])), [5])
