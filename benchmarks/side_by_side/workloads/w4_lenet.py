"""W4: LeNet-like CNN on 1x28x28, batch 64, SGD with momentum."""

from common import Work, classes, fill, tensors


def lenet(torch):
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(1, 6, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(256, 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, 10),
    )


def build(torch):
    F = torch.nn.functional
    model = fill(torch, lenet(torch))
    opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def forward(x, y):
        return F.cross_entropy(model(x), y)

    def step(forward, x, y):
        opt.zero_grad()
        loss = forward(x, y)
        loss.backward()
        opt.step()
        return loss

    return Work(forward, step, tensors(torch, classes(64, (1, 28, 28))))
