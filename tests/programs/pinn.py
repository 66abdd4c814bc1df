"""A physics-informed network: Burgers' equation and an unknown constant, second derivatives, Adam and then L-BFGS."""

import math

import torch
import torch.nn as nn

torch.manual_seed(1234)
torch.set_default_dtype(torch.float64)


class PINN(nn.Module):
    def __init__(self, width=16, depth=3):
        super().__init__()
        layers = [nn.Linear(2, width), nn.Tanh()]
        for _ in range(depth - 1):
            layers += [nn.Linear(width, width), nn.Tanh()]
        self.net = nn.Sequential(*layers, nn.Linear(width, 1))
        self.log_nu = nn.Parameter(torch.tensor(math.log(0.1)))

    def forward(self, x, t):
        return self.net(torch.cat([x, t], dim=1))


def residual(model, x, t):
    u = model(x, t)
    ones = torch.ones_like(u)
    u_t = torch.autograd.grad(u, t, grad_outputs=ones, create_graph=True)[0]
    u_x = torch.autograd.grad(u, x, grad_outputs=ones, create_graph=True)[0]
    u_xx = torch.autograd.grad(u_x, x, grad_outputs=torch.ones_like(u_x), create_graph=True)[0]
    return u_t + u * u_x - torch.exp(model.log_nu) * u_xx


n = 64
x_f = (torch.rand(n, 1) * 2 - 1).requires_grad_()
t_f = torch.rand(n, 1, requires_grad=True)
x_0 = torch.linspace(-1, 1, 20).unsqueeze(1)
t_0 = torch.zeros_like(x_0)
u_0 = -torch.sin(math.pi * x_0)
t_b = torch.linspace(0, 1, 10).view(-1, 1)
x_b = torch.ones_like(t_b)
model = PINN()
print(model, x_f.dtype, sep="\n")
mse = nn.MSELoss()


def loss_terms():
    f = residual(model, x_f, t_f)
    pde = torch.mean(f**2)
    initial = mse(model(x_0, t_0), u_0)
    boundary = model(x_b, t_b).pow(2).mean() + model(-x_b, t_b).pow(2).mean()
    return pde, initial, boundary


optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for it in range(60):
    optimizer.zero_grad()
    pde, initial, boundary = loss_terms()
    loss = pde + initial + boundary
    loss.backward()
    optimizer.step()
    if it % 10 == 0:
        print(
            f"It: {it}, Loss: {loss.item():.5e}, PDE: {pde.item():.5e}, IC: {initial.item():.5e}, nu: "
            f"{model.log_nu.exp().item():.6f}"
        )
lbfgs = torch.optim.LBFGS(model.parameters(), lr=0.8, max_iter=8, history_size=10, line_search_fn="strong_wolfe")
calls = 0


def closure():
    global calls
    calls += 1
    lbfgs.zero_grad()
    loss = sum(loss_terms())
    loss.backward()
    return loss


for epoch in range(2):
    print(f"L-BFGS {epoch}: {lbfgs.step(closure).item():.6e} after {calls} calls")
x = torch.linspace(-1, 1, 5).unsqueeze(1)
print(model(x, torch.full_like(x, 0.5)).detach().squeeze())
u = torch.tensor([0.3], requires_grad=True)
hess = torch.autograd.functional.hessian(lambda p: torch.sin(p).prod() * p.sum() ** 3, torch.tensor([0.3, 0.7]))
print(hess)
d = u.sin()
for order in range(1, 5):
    (d,) = torch.autograd.grad(d, u, create_graph=True)
    print(order, d)
