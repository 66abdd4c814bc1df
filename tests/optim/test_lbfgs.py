"""L-BFGS: the line search ends with the evaluations."""

from __future__ import annotations

import numpy as np
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


def searched(t):
    """torch's private line search, which optimizers of one's own call."""
    from importlib import import_module

    lbfgs = import_module("torch.optim.lbfgs" if t.__name__ == "torch" else "rushlight.optim.lbfgs")

    def objective(x, length, d):
        y = (x + length * d).detach().requires_grad_()
        loss = ((y - 1) ** 4).sum() + (y * y).sum()
        loss.backward()
        return float(loss.detach()), y.grad

    x = t.tensor([3.0, -2.0], dtype=t.float64)
    loss, g = objective(x, 0.0, t.zeros(2, dtype=t.float64))
    f, slope, length, calls = lbfgs._strong_wolfe(objective, x, 1.0, -g, loss, g, -g.dot(g))
    at = [t.tensor(v, dtype=t.float64) for v in (0.0, 1.0, -1.0, 1.0, 0.8, 0.5)]
    least = lbfgs._cubic_interpolate(*at), lbfgs._cubic_interpolate(*at, bounds=(0.1, 0.4))
    return [float(f), float(length), calls, *slope.tolist(), *map(float, least)]


def test_the_private_line_search(oracle):
    np.testing.assert_allclose(searched(rushlight), oracle(searched), rtol=1e-9)
