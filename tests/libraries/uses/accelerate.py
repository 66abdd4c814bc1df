import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset

accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
data = DataLoader(TensorDataset(torch.randn(12, 3)), batch_size=3, shuffle=True)
model, optimizer, data = accelerator.prepare(model, optimizer, data)
for (x,) in data:
    with accelerator.accumulate(model):
        loss = model(x).square().mean()
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        print(loss.item())
