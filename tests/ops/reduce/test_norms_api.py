"""Distances and norms: ties, no elements."""

from __future__ import annotations

import math

import pytest

import rushlight

INF, NAN = math.inf, math.nan


@pytest.mark.origin("edge cases")
@pytest.mark.parametrize("p", [0.0, 1.0, INF])
def test_all_that_tie_for_the_largest_difference(torch, p):
    def run(lib):
        x = lib.tensor([[0.0, 0.0, 1.0], [1.0, 1.0, 0.0], [2.0, 0.0, 2.0]], requires_grad=True)
        y = lib.tensor([[1.0, 1.0, 2.0], [1.0, -1.0, 0.0]], requires_grad=True)
        between = lib.cdist(x, y, p)
        (between * lib.arange(1.0, 7.0).reshape(3, 2)).sum().backward(retain_graph=True)
        pairs = lib.nn.functional.pdist(x, p)
        (pairs * lib.tensor([1.0, 10.0, 100.0])).sum().backward()
        return [between.tolist(), x.grad.tolist(), y.grad.tolist(), pairs.tolist()]

    assert run(rushlight) == run(torch)
    assert rushlight.cdist(rushlight.ones(2, 0), rushlight.ones(3, 0), INF).tolist() == [[0] * 3] * 2


@pytest.mark.origin("fuzzing")
def test_distances_of_no_numbers_and_masks_of_bytes():
    assert rushlight.cdist(rushlight.ones(3, 0), rushlight.ones(2, 0), p=float("inf")).tolist() == [[0.0, 0.0]] * 3
    assert rushlight.where(rushlight.tensor([2, 0], dtype=rushlight.uint8), 1.0, 3.0).tolist() == [1.0, 3.0]
    similar = rushlight.nn.functional.cosine_similarity(rushlight.tensor([[1.0, 1.0]]), rushlight.tensor([[1, 0]]))
    assert abs(similar.item() - 0.5**0.5) < 1e-6
    assert rushlight.lcm(rushlight.tensor([1631506276]), rushlight.tensor([10])).item() > 0
