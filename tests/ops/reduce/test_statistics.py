"""Deviations and histograms at the ends of a dtype's range, and of nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rushlight
from tests.support.programs import Programs, outcome

SPREADS = [
    [1e28, 2e28, -3e28, 1e28],
    [1e30] * 4,
    [1e19, 2e19, 3e19, -1e19],
    [1e-30, 2e-30, 3e-30, -1e-30],
    [1e-22, 3e-22, 1e-23, 0.0],
    [1e7, 1e7 + 1, 1e7 + 2, 1e7 + 4],
    [16777216.0, 16777218.0, 16777220.0, 16777222.0],
    [-1e5, -1e5 + 1, -1e5, -1e5],
    [1e28, 1.0, 1e-28, 0.0],
    [0.1] * 4,
]


@pytest.mark.origin("fuzzing")
@pytest.mark.parametrize("given", [lambda x: x, lambda x: x.T.contiguous().T, lambda x: x.repeat(40, 8)])
def test_deviations_at_the_ends_of_single_precision(given):
    """As in double precision: squares that overflow, or are too small, or of numbers that differ in their last
    digits."""
    x = rushlight.tensor(SPREADS, requires_grad=True)
    made, expected = given(x).std(1), given(x.double()).std(1)
    assert rushlight.allclose(made, expected.float(), rtol=1e-6, atol=1e-38)
    assert rushlight.allclose(given(x.T).std(0), given(x.T.double()).std(0).float(), rtol=1e-6, atol=1e-38)
    assert [row.std().item() for row in given(x)] == pytest.approx(made.tolist(), rel=1e-6)
    assert made[-1] == made[1] == 0
    for y, row in zip(given(x)[3:].var(1), given(x)[3:].double().var(1), strict=True):
        assert math.isclose(y, row, rel_tol=1e-6, abs_tol=1e-40) or row > 1e38
    got, wanted = (rushlight.autograd.grad(y[:5].sum(), x)[0] for y in (made, expected))
    assert rushlight.allclose(got, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.origin("fuzzing")
def test_deviations_of_infinities(torch):
    x = [[math.inf] * 4, [-math.inf] * 4, [0.0] * 4, [2.0] * 4, [math.nan, 1.0, 2.0, 3.0]]
    for dtype in ("float32", "float64"):
        ours, theirs = (
            [
                lib.tensor(x, dtype=getattr(lib, dtype)).std(1).tolist(),
                lib.tensor(x, dtype=getattr(lib, dtype)).var(1).tolist(),
            ]
            for lib in (rushlight, torch)
        )
        assert np.array_equal(ours, theirs, equal_nan=True)


program = Programs()


@program.found_in("torch tests")
def histograms_of_nothing_and_of_half_precision(torch):
    x, histogram = torch.tensor([1.0, 2.0, 1.0]), torch.histogram
    none = (torch.histogramdd(torch.zeros(3, 0), []), torch.histogramdd(torch.zeros(3, 0), [], density=True))
    return [
        *torch.histc(x.bfloat16(), 4, 0, 3).tolist(),
        *[n.hist for n in none],
        *[list(n.bin_edges) for n in none],
        outcome(histogram, x, 1, weight=x.double()),
        outcome(histogram, x, x[:0]),
        outcome(histogram, x, x[:1]),
    ]


test_program = program.test()
