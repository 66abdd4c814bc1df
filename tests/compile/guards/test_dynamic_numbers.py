"""Numbers that schedules change, as inputs of a program."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn, optim


@pytest.mark.parametrize("rounds", [200, 100_000])
@pytest.mark.parametrize("optimizer", ["AdamW", "SGD"])
def test_a_number_that_is_rounded_to_the_same_in_the_first_runs(optimizer, rounds):
    """1 - lr * weight_decay, or lr itself, at the begin of a schedule: the program took it for a constant, and decayed
    the weights by the first rate."""

    def trained(compiled):
        torch.manual_seed(0)
        model = nn.Linear(3, 4)
        made = getattr(optim, optimizer)(model.parameters(), 0.01, weight_decay=0.01)
        schedule = optim.lr_scheduler.CosineAnnealingLR(made, rounds)

        def step(x):
            made.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            made.step()
            return loss

        run = torch.compile(step) if compiled else step
        for _ in range(60):
            run(torch.randn(8, 3))
            schedule.step()
        return model.weight.detach().numpy(), len(torch.compiler.programs(run)) if compiled else 0

    eager, _ = trained(False)
    weights, programs = trained(True)
    assert np.abs(weights - eager).max() < 1e-6
    assert 1 <= programs <= 3
