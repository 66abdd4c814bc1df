"""W7: an elementwise chain on 10 million float32, forward and backward."""

import numpy as np
from common import Work, rng

SIZE = 10_000_000


def data():
    return rng(7).standard_normal(SIZE, dtype=np.float32)


def build(torch):
    x = torch.tensor(data(), requires_grad=True)

    def forward(x):
        return (x * torch.sigmoid(1.702 * x) + torch.tanh(x) * torch.exp(-x * x)).sum()

    def step(forward, x):
        x.grad = None
        y = forward(x)
        y.backward()
        return y

    return Work(forward, step, [(x,)], value=lambda y: float(y) / SIZE)
