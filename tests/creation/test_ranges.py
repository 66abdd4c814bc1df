"""Ranges: to the last bit, tensors as steps, `out`."""

from __future__ import annotations

import pytest

import rushlight
from tests.support.programs import Programs, outcome

program = Programs()


@program.found_in("suites")
def steps_of_ranges_may_be_tensors(torch):
    return [torch.linspace(-0.5, 0.5, torch.tensor(5)), torch.logspace(0, 1, torch.tensor(3))]


@program.found_in("torch tests")
def out_gives_ranges_their_shape_and_all_their_dtype(torch):
    def within(make, *numbers):
        x = torch.zeros(2, 3)
        return [list(make(*numbers, out=x.narrow(1, 1, 2)).shape), x]

    return [
        within(torch.arange, 0, 4),
        within(torch.linspace, 0, 3, 4),
        within(torch.logspace, 0, 1, 4),
        torch.linspace(0, 1, 3, out=torch.zeros(3, dtype=torch.int64)),
        torch.ones(2, out=torch.zeros(5)),
        torch.eye(2, out=torch.zeros(2, 2, dtype=torch.uint8)),
        torch.zeros(2, out=torch.ones(2, dtype=torch.int8)),
        torch.full((2,), 1.5, out=torch.zeros(2, dtype=torch.int64)),
        torch.full((2,), True, out=torch.zeros(2)),
    ] + [
        outcome(make, dtype=dtype, out=torch.ones(3))
        for make, dtype in (
            (lambda **how: torch.arange(3, **how), torch.int64),
            (lambda **how: torch.zeros(3, **how), torch.float16),
            (lambda **how: torch.linspace(0, 1, 3, **how), torch.float64),
            (lambda **how: torch.eye(3, **how), torch.float64),
        )
    ]


@pytest.mark.origin("tutorials")
@pytest.mark.parametrize("n", [7, 28, 64, 1000])
def test_evenly_spaced_to_the_last_bit(oracle, n):
    for of in (
        lambda t: t.linspace(-1, 1, n),
        lambda t: t.linspace(-3.3, 7.1, n, dtype=t.float64),
        lambda t: t.linspace(0.1, 2, n, dtype=t.float16),
    ):
        assert of(rushlight).tolist() == oracle(of).tolist()


test_program = program.test()
