"""Loops over few elements at the places of an index: what they leave to NumPy, and their errors."""

import numpy as np
import pytest

import rushlight
from rushlight.base.dependencies import has_llvmlite
from rushlight.fast import few_places

pytestmark = pytest.mark.skipif(not has_llvmlite(), reason="without llvmlite there are no loops")


@pytest.fixture
def built():
    for text in (few_places.GATHER, few_places.SCATTER, few_places.ADD):
        few_places.loop_of(text, np.dtype(np.float32)).build()


@pytest.mark.faster
@pytest.mark.parametrize("bad", [3, -1])
@pytest.mark.parametrize("name", ["gather", "scatter_", "scatter_add_"])
def test_a_place_that_is_not_there_leaves_all_as_it_was(built, bad, name):
    x, index = rushlight.arange(6.0).reshape(2, 3), rushlight.tensor([[0, 1, 2], [0, bad, 0]])
    with pytest.raises(RuntimeError, match="out of bounds"):
        getattr(x, name)(1, index, *([] if name == "gather" else [rushlight.ones(2, 3)]))
    assert x.flatten().tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.faster
def test_sums_at_the_same_place_are_added_in_order(built):
    x = np.zeros((2, 2), np.float32)
    index = np.array([[0, 0, 1], [1, 1, 1]])
    values = np.array([[1e8, 1, 2], [1, 1e8, -1e8]], np.float32)
    assert few_places.added(x, index, values, 1)
    expected = np.zeros((2, 2), np.float32)
    np.add.at(expected, (np.arange(2)[:, None], index), values)
    np.testing.assert_array_equal(x, expected)


@pytest.mark.faster
def test_what_is_read_may_be_what_is_written(built):
    x = rushlight.arange(3.0)
    x.scatter_(0, rushlight.tensor([1, 2, 0]), x)
    assert x.tolist() == [2, 0, 1]
    assert few_places.placed(x.numpy(), np.array([0, 1, 2]), x.numpy(), 0) is None
