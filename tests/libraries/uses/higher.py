import higher
import torch
from torch import nn

model = nn.Sequential(nn.Linear(1, 16), nn.ReLU(), nn.Linear(16, 1))
outer = torch.optim.Adam(model.parameters(), 1e-2)
for _ in range(4):
    amplitude = torch.rand(1) * 4 + 1
    x = torch.rand(20, 1) * 6 - 3
    y = amplitude * x.sin()
    inner = torch.optim.Adam(model.parameters(), 0.02)
    outer.zero_grad()
    with higher.innerloop_ctx(model, inner, copy_initial_weights=False) as (fmodel, diffopt):
        for _ in range(3):
            diffopt.step(nn.functional.mse_loss(fmodel(x[:10]), y[:10]))
        loss = nn.functional.mse_loss(fmodel(x[10:]), y[10:])
        loss.backward()
    outer.step()
    print(loss.item(), model[0].weight.grad.norm().item(), model[2].bias.grad.item())

rate = torch.tensor(0.1, requires_grad=True)
sgd = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
with higher.innerloop_ctx(model, sgd, override={"lr": [rate]}) as (fmodel, diffopt):
    for _ in range(2):
        diffopt.step(fmodel(x).pow(2).mean())
    print(torch.autograd.grad(fmodel(x).pow(2).mean(), rate)[0].item())
