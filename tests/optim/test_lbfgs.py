"""L-BFGS: the line search ends with the evaluations."""

from __future__ import annotations

import pytest

import rushlight


@pytest.mark.origin("tutorials")
@pytest.mark.parametrize("most", [1, 2, 3, 5, 20])
def test_line_searches_end_with_the_evaluations(oracle, most):
    def minimized(t):
        p, seen = t.tensor([-1.5, 2.0], dtype=t.float64, requires_grad=True), []
        optimizer = t.optim.LBFGS([p], max_iter=most, line_search_fn="strong_wolfe", history_size=5)

        def closure():
            optimizer.zero_grad()
            loss = (1 - p[0]) ** 2 + 100 * (p[1] - p[0] ** 2) ** 2
            loss.backward()
            seen.append(loss.item())
            return loss

        for _ in range(3):
            optimizer.step(closure)
        return seen

    assert minimized(rushlight) == pytest.approx(oracle(minimized), rel=1e-6)
