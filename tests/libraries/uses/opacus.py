import warnings

import torch
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
data = DataLoader(TensorDataset(torch.randn(32, 4), torch.randint(2, (32,))), batch_size=8)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
engine = PrivacyEngine(accountant="rdp")
model, optimizer, data = engine.make_private(
    module=model, optimizer=optimizer, data_loader=data, noise_multiplier=1.0, max_grad_norm=1.0
)
for x, y in data:
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    print(loss.item())
print(engine.get_epsilon(1e-5))
