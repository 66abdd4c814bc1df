"""W3: MNIST-sized MLP 784-128-64-10, batch 64, cross entropy, Adam."""

from common import Work, classes, fill, tensors


def build(torch, sizes=(784, 128, 64, 10), batch=64):
    nn, F = torch.nn, torch.nn.functional
    layers = []
    for i, o in zip(sizes, sizes[1:]):
        layers += [nn.Linear(i, o), nn.ReLU()]
    model = fill(torch, nn.Sequential(*layers[:-1]))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)

    def forward(x, y):
        return F.cross_entropy(model(x), y)

    def step(forward, x, y):
        opt.zero_grad()
        loss = forward(x, y)
        loss.backward()
        opt.step()
        return loss

    return Work(forward, step, tensors(torch, classes(batch, (sizes[0],))))
