"""W2: moons classifier, MLP 2-16-16-1, batch 100, hinge loss, SGD."""

from common import Work, fill, moons, tensors


def build(torch, hidden=16, n=100):
    nn = torch.nn
    model = fill(
        torch,
        nn.Sequential(nn.Linear(2, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1)),
    )
    opt = torch.optim.SGD(model.parameters(), lr=0.05)

    def forward(x, y):
        return torch.relu(1 - y * model(x)).mean()

    def step(forward, x, y):
        opt.zero_grad()
        loss = forward(x, y)
        loss.backward()
        opt.step()
        return loss

    return Work(forward, step, tensors(torch, [moons(n)]))
