"""A residual convolutional network with batch normalisation on digits, SGD with momentum and a warm-up."""

import gzip
from pathlib import Path

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
path = Path(__file__).resolve().parents[2] / "rushlight" / "data" / "digits.csv.gz"
with gzip.open(path, "rt") as f:
    table = torch.tensor([list(map(float, line.split(","))) for line in f])
images = table[:, :64].reshape(-1, 1, 8, 8) / 16.0
labels = table[:, 64].long()
mean, std = images.mean(), images.std()
images = (images - mean) / std
print(f"mean {mean:.4f} std {std:.4f}", images.shape, labels.bincount())
train, test = TensorDataset(images[:640], labels[:640]), TensorDataset(images[1500:], labels[1500:])


class Block(nn.Module):
    def __init__(self, cin, cout, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, kernel_size=3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.shortcut = nn.Sequential()
        if stride != 1 or cin != cout:
            self.shortcut = nn.Sequential(nn.Conv2d(cin, cout, 1, stride=stride, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)), inplace=True)
        out = self.bn2(self.conv2(out))
        out += self.shortcut(x)
        return F.relu(out)


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(1, 8, 3, padding="same")
        self.layer1 = Block(8, 8)
        self.layer2 = Block(8, 16, stride=2)
        self.depthwise = nn.Conv2d(16, 16, 3, padding=1, groups=16)
        self.fc = nn.Linear(16, 10)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(m, nn.BatchNorm2d):
                nn.init.constant_(m.weight, 1)
                nn.init.constant_(m.bias, 0)

    def forward(self, x):
        x = F.max_pool2d(self.layer1(self.stem(x)), 2)
        x = F.silu(self.depthwise(self.layer2(x)))
        x = F.adaptive_avg_pool2d(x, 1)
        return self.fc(torch.flatten(x, 1))


model = ConvNet()
print(model)
decay = [p for n, p in model.named_parameters() if p.dim() > 1]
rest = [p for n, p in model.named_parameters() if p.dim() <= 1]
groups = [{"params": decay, "weight_decay": 5e-4}, {"params": rest}]
optimizer = torch.optim.SGD(groups, lr=0.05, momentum=0.9, nesterov=True)
steps = 2 * len(DataLoader(train, 64))
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=steps)
for epoch in range(2):
    model.train()
    for i, (x, y) in enumerate(DataLoader(train, batch_size=64, shuffle=True, drop_last=True)):
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()
        if i % 3 == 0:
            print(f"[{epoch + 1}, {i:2d}] loss: {loss.item():.6f} lr: {optimizer.param_groups[0]['lr']:.6f}")
    model.eval()
    with torch.no_grad():
        logits = torch.cat([model(x) for x, _ in DataLoader(test, 100)])
    truth = test.tensors[1]
    top = logits.topk(3, dim=1).indices
    print(f"top-1 {(top[:, 0] == truth).float().mean():.4f} top-3 {(top == truth[:, None]).any(1).float().mean():.4f}")
print(model.layer1.bn1.running_mean, model.layer1.bn1.num_batches_tracked)
print(logits[:2].softmax(-1))
print({k: tuple(v.shape) for k, v in list(model.state_dict().items())[:8]})
