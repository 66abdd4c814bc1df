import heavyball
import torch
from torch import nn

heavyball.utils.compile_mode = None
x = torch.randn(64, 6)
y = torch.stack([x[:, 0] * 2, x[:, 1] - x[:, 2]], 1)
for name in ("AdamW", "SGD", "Muon", "ADOPT", "LaProp"):
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 2))
    optimizer = getattr(heavyball, name)(model.parameters(), lr=1e-2, compile_step=False)
    for _ in range(5):
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print(loss.item(), nn.functional.mse_loss(model(x), y).item())
