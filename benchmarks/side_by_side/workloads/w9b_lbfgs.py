"""W9b: a whole logistic-regression fit (100x10, L2 penalty) by L-BFGS with strong-Wolfe line search."""

from common import Work, logistic

ITERATIONS, PENALTY = 20, 0.01


def build(torch):
    F = torch.nn.functional
    x0, y0 = logistic()
    x, y = torch.tensor(x0), torch.tensor(y0)
    w = torch.zeros(11, requires_grad=True)

    def forward(x, y):
        return F.binary_cross_entropy_with_logits(x @ w[:10] + w[10], y) + PENALTY * (w * w).sum()

    def step(forward, x, y):
        with torch.no_grad():
            w.zero_()
        opt = torch.optim.LBFGS([w], max_iter=ITERATIONS, line_search_fn="strong_wolfe")

        def closure():
            opt.zero_grad()
            loss = forward(x, y)
            loss.backward()
            return loss

        opt.step(closure)
        with torch.no_grad():
            return forward(x, y)

    return Work(forward, step, [(x, y)])
