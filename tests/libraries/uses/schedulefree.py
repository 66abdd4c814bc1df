import torch
from schedulefree import AdamWScheduleFree, SGDScheduleFree
from torch import nn

x = torch.randn(64, 5)
y = x[:, :1] * 2 - x[:, 1:2] ** 2
for Optimizer in (AdamWScheduleFree, SGDScheduleFree):
    model = nn.Sequential(nn.Linear(5, 16, bias=False), nn.BatchNorm1d(16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = Optimizer(model.parameters(), lr=0.02, warmup_steps=3)
    model.train(), optimizer.train()
    for _ in range(6):
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
    saved = optimizer.state_dict()
    optimizer.eval()
    print(nn.functional.mse_loss(model.eval()(x), y).item())
    other = Optimizer(model.parameters(), lr=0.5)
    other.load_state_dict(saved)
    print(other.param_groups[0]["lr"], other.param_groups[0]["k"])
