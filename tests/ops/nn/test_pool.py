"""Pooling: no elements, indices."""

from __future__ import annotations

import pytest

import rushlight
from rushlight.nn import functional as F


@pytest.mark.origin("suites")
def test_pools_of_nothing():
    for n, average, unpool in ((1, F.adaptive_avg_pool1d, F.max_unpool1d), (2, F.adaptive_avg_pool2d, F.max_unpool2d)):
        assert average(rushlight.ones(1, 0, *(4,) * n), 2).shape == (1, 0, *(2,) * n)
        none = rushlight.ones(0, 3, *(4,) * n)
        assert unpool(none, none.long(), 2).shape == (0, 3, *(8,) * n)


@pytest.mark.origin("torch tests")
def test_return_indices_may_be_given_by_position():
    """`max_pool2d_with_indices(x, 2, 2, 0, 1, False, False)` was a TypeError: two values for return_indices."""
    F = rushlight.nn.functional
    for n in (1, 2, 3):
        x = rushlight.rand(1, 1, *[4] * n)
        for return_indices in (False, True):
            values, where = getattr(F, f"max_pool{n}d_with_indices")(x, 2, 2, 0, 1, False, return_indices)
            assert x.flatten()[where].equal(values)
            values, where = getattr(F, f"adaptive_max_pool{n}d_with_indices")(x, 3, return_indices)
            assert x.flatten()[where].equal(values)
