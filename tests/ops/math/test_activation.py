"""Activations at infinities and nan."""

from __future__ import annotations

import math

import pytest

import rushlight

INF, NAN = math.inf, math.nan


@pytest.mark.origin("edge cases")
def test_gradients_of_exponential_units_at_nan():
    for name in ("elu", "selu", "celu"):
        for n in (1, 5000):
            x = rushlight.full((n,), NAN).requires_grad_()
            getattr(rushlight.nn.functional, name)(x).sum().backward()
            assert x.grad.isnan().all()


@pytest.mark.origin("fuzzing")
@pytest.mark.parametrize("after", [rushlight.sqrt, rushlight.log, lambda x: x**0.5])
@pytest.mark.parametrize("n", [3, 5000, 100_000])
def test_relu_keeps_infinite_gradients_back(after, n):
    x = rushlight.full((n,), -1.0)
    x[0], x[1] = 4.0, 0.0
    x.requires_grad_()
    after(rushlight.relu(x)).sum().backward()
    assert x.grad[0] > 0
    assert not x.grad[1:].any()
    x = rushlight.full((n,), float("nan"), requires_grad=True)
    rushlight.relu(x).sum().backward()
    assert (x.grad == 1).all()  # as torch: nan is not kept back
