"""W1: an expression of 1,000 scalar operations, forward and backward (micrograd style)."""

from common import Work

LEAVES = (0.7, -0.4, 0.3, 0.9)


def expression(a, b, c, d, relu):
    """1,000 operations (125 rounds of 8) on anything that has +, *, and a relu."""
    x, y = a, b
    for _ in range(125):
        u = x * c + b
        v = relu(u) * a
        w = y * d
        x = v + w
        y = (x + c) * b
    return x


def build(torch):
    leaves = [torch.tensor(v, requires_grad=True) for v in LEAVES]

    def forward():
        return expression(*leaves, torch.relu)

    def step(forward):
        for p in leaves:
            p.grad = None
        y = forward()
        y.backward()
        return y + leaves[0].grad

    return Work(forward, step)
