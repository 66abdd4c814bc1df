import torch
from prodigyopt import Prodigy
from torch import nn

x = torch.randn(64, 8)
label = (x[:, 0] * x[:, 1] > 0).long()
model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 2))
optimizer = Prodigy(model.parameters(), lr=1.0, weight_decay=0.01, use_bias_correction=True, safeguard_warmup=True)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
for _ in range(15):
    loss = nn.functional.cross_entropy(model(x), label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    print(loss.item(), optimizer.param_groups[0]["d"], schedule.get_last_lr())
