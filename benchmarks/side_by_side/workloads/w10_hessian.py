"""W10: the Hessian of a 50-variable Rosenbrock function, reverse over reverse."""

import numpy as np
from common import Work

N = 50


def point():
    return np.linspace(-1.2, 1.2, N).astype(np.float32)


def rosenbrock(x):
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def build(torch):
    x = torch.tensor(point())

    def forward(x):
        return torch.autograd.functional.hessian(rosenbrock, x)

    def step(forward, x):
        return forward(x)

    return Work(forward, step, [(x,)], value=lambda h: float(h.abs().sum()) / 1e5)
