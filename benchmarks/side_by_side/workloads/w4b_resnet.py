"""W4b: a small residual network on 3x32x32, batch 32: conv3x3 (32, 64 channels), batch norm, SGD momentum."""

from common import Work, classes, fill, tensors


def resnet(torch):
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self, i, o, stride=1):
            super().__init__()
            self.conv1 = nn.Conv2d(i, o, 3, stride=stride, padding=1, bias=False)
            self.bn1 = nn.BatchNorm2d(o)
            self.conv2 = nn.Conv2d(o, o, 3, padding=1, bias=False)
            self.bn2 = nn.BatchNorm2d(o)
            self.skip = nn.Conv2d(i, o, 1, stride=stride, bias=False) if (i != o or stride != 1) else None

        def forward(self, x):
            h = F.relu(self.bn1(self.conv1(x)))
            h = self.bn2(self.conv2(h))
            return F.relu(h + (x if self.skip is None else self.skip(x)))

    class ResNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Conv2d(3, 32, 3, padding=1, bias=False)
            self.bn = nn.BatchNorm2d(32)
            self.b1, self.b2, self.b3 = Block(32, 32), Block(32, 64, 2), Block(64, 64)
            self.fc = nn.Linear(64, 10)

        def forward(self, x):
            x = F.relu(self.bn(self.stem(x)))
            x = self.b3(self.b2(self.b1(x)))
            return self.fc(x.mean(dim=(2, 3)))

    return ResNet()


def build(torch):
    F = torch.nn.functional
    model = fill(torch, resnet(torch))
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    def forward(x, y):
        return F.cross_entropy(model(x), y)

    def step(forward, x, y):
        opt.zero_grad()
        loss = forward(x, y)
        loss.backward()
        opt.step()
        return loss

    return Work(forward, step, tensors(torch, classes(32, (3, 32, 32))))
