"""W8: layer norm, softmax, log-sum-exp and a column variance on (4096, 1024), forward and backward."""

import numpy as np
from common import Work, rng

ROWS, COLS = 4096, 1024


def data():
    g = rng(8)
    f = np.float32
    return (
        g.standard_normal((ROWS, COLS), dtype=f),
        g.standard_normal((ROWS, COLS), dtype=f),
        1 + 0.1 * g.standard_normal(COLS, dtype=f),
        0.1 * g.standard_normal(COLS, dtype=f),
    )


def build(torch):
    F = torch.nn.functional
    x0, t0, g0, b0 = data()
    x, gamma, beta = (torch.tensor(a, requires_grad=True) for a in (x0, g0, b0))
    t = torch.tensor(t0)

    def forward(x, t, gamma, beta):
        h = F.layer_norm(x, (COLS,), gamma, beta)
        p = F.softmax(h, dim=-1)
        return (p * t).sum() / ROWS + torch.logsumexp(x, dim=1).mean() + x.var(dim=0).mean()

    def step(forward, x, t, gamma, beta):
        x.grad = gamma.grad = beta.grad = None
        y = forward(x, t, gamma, beta)
        y.backward()
        return y

    return Work(forward, step, [(x, t, gamma, beta)])
