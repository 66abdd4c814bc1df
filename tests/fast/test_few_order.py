"""Loops that sort few elements give NumPy's values and places."""

import numpy as np
import pytest

from rushlight.base.dependencies import has_llvmlite
from rushlight.fast import few_order
from rushlight.kernels import reduce, sorting

pytestmark = pytest.mark.skipif(not has_llvmlite(), reason="without llvmlite there are no loops")

FLOATS = np.array(
    [[2, -0.0, 0.0, np.nan, 2, -np.inf], [np.nan, 1, np.inf, np.nan, 1, 0], [3, 3, 3, 3, 3, 3]], np.float32
)
INTEGERS = np.array([[3, 1, 3, 0, 1, -2], [0, 0, 0, 0, 0, 0]], np.int64)


@pytest.mark.faster
@pytest.mark.parametrize("x", [FLOATS, FLOATS.astype(np.float64), INTEGERS])
@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("text", [few_order.ASCENDING, few_order.DESCENDING, few_order.MODE])
def test_values_and_places_are_those_of_numpy(x, dim, text):
    few_order.loop_of(text, x.dtype).build()
    if text is few_order.MODE:
        made = few_order.most_frequent(x, dim)
        expected = sorting.most_frequent.__wrapped__(x, dim)
    else:
        made = few_order.ordered(x, dim, text is few_order.DESCENDING)
        expected = reduce.ordered.__wrapped__(x, dim, text is few_order.DESCENDING)
    for one, other in zip(made, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def test_many_elements_and_other_layouts_are_left_to_numpy():
    few_order.loop_of(few_order.ASCENDING, np.dtype(np.float32)).build()
    assert few_order.ordered(np.zeros((2, 100), np.float32), 1, False) is None
    assert few_order.ordered(np.zeros((100, 20), np.float32), 1, False) is None
    assert few_order.ordered(np.zeros((4, 4), np.float32).T[1:], 1, False) is None
    assert few_order.ordered(np.zeros((4, 4), np.float16), 1, False) is None


def test_a_median_of_few_is_laid_out_in_full_and_takes_the_first_of_equals():
    x = np.array([[1, 1, 1, 1], [4, 2, 2, 3]], np.float32)
    values, index = sorting.median_dim(x, 1)
    assert values.flags.c_contiguous
    assert values.strides == (4,)
    assert index.tolist() == [1, 2]
    values, index = sorting.median_dim(np.array([[1, np.nan], [2, np.nan]], np.float32), 1, True)
    assert index.tolist() == [[1], [1]]
    assert np.isnan(values).all()
