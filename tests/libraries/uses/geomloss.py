import torch
from geomloss import SamplesLoss

x, y = torch.rand(40, 2, requires_grad=True), torch.rand(50, 2) + 0.5
for name in ("sinkhorn", "gaussian", "laplacian", "energy"):
    loss = SamplesLoss(name, p=2, blur=0.1, backend="tensorized")
    value = loss(x, y)
    (g,) = torch.autograd.grad(value, x)
    print(name, value.item(), g.norm().item(), g[0].tolist())
a = torch.rand(40)
a = a / a.sum()
b = torch.full((50,), 1 / 50)
f, g = SamplesLoss("sinkhorn", blur=0.2, reach=1.0, potentials=True, debias=False, backend="tensorized")(a, x, b, y)
print(f.sum().item(), g.sum().item())
points = x.detach().clone().requires_grad_()
optimizer = torch.optim.SGD([points], 5.0)
for _ in range(5):
    optimizer.zero_grad()
    value = SamplesLoss("sinkhorn", blur=0.05, scaling=0.8, backend="tensorized")(points, y)
    value.backward()
    optimizer.step()
    print(value.item())
