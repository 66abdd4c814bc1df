import torch
from torchquad import VEGAS, Boole, GaussLegendre, MonteCarlo, Simpson, Trapezoid, set_up_backend

set_up_backend("torch", data_type="float64", torch_enable_cuda=False)
width = torch.tensor(1.5, requires_grad=True)
domain = [[0.0, 1.0], [-1.0, 2.0]]


def f(x):
    return torch.exp(-width * x[:, 0] ** 2) * torch.cos(x[:, 1])


for rule in (Trapezoid, Simpson, Boole, GaussLegendre):
    value = rule().integrate(f, dim=2, N=625, integration_domain=domain, backend="torch")
    print(value.item(), torch.autograd.grad(value, width)[0].item())
value = MonteCarlo().integrate(f, dim=2, N=500, integration_domain=domain, seed=3, backend="torch")
print(value.item(), torch.autograd.grad(value, width)[0].item())
print(VEGAS().integrate(f, dim=2, N=2000, integration_domain=domain, seed=3).item())
limits = torch.tensor(domain, requires_grad=True)
value = Simpson().integrate(f, dim=2, N=121, integration_domain=limits)
value.backward()
print(limits.grad.tolist())
