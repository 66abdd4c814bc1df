import torch
from came_pytorch import CAME
from torch import nn

model = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(256, 10))
optimizer = CAME(model.parameters(), lr=2e-3, weight_decay=1e-2)
x, label = torch.randn(16, 1, 8, 8), torch.randint(0, 10, (16,))
for _ in range(8):
    loss = nn.functional.cross_entropy(model(x), label, label_smoothing=0.1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
state = optimizer.state[model[3].weight]
print(state["exp_avg_sq_row"].sum().item(), state["exp_avg_res_col"].sum().item(), state["step"])
print(model[0].weight.flatten()[:6].tolist())
