import torch
import xitorch
from xitorch.integrate import quad, solve_ivp
from xitorch.interpolate import Interp1D
from xitorch.linalg import lsymeig, solve
from xitorch.optimize import minimize, rootfinder

double = {"dtype": torch.float64}
a = torch.tensor([[1.1, 0.4], [0.3, 0.8]], requires_grad=True, **double)


def f(y, a):
    return torch.tanh(a @ y + 0.1) + y / 2.0


y = rootfinder(f, torch.zeros((2, 1), **double), params=(a,))
(g,) = torch.autograd.grad((y**2).sum(), a, create_graph=True)
print(y.tolist(), g.tolist(), torch.autograd.grad(g.sum(), a)[0].tolist())

m = torch.randn(5, 5, requires_grad=True, **double)
operator = xitorch.LinearOperator.m(m @ m.T + torch.eye(5, **double), is_hermitian=True)
values, _ = lsymeig(operator, neig=2)
values.sum().backward()
print(values.tolist(), m.grad.norm().item())
x = solve(operator, torch.ones(5, 1, **double))
print(x.flatten().tolist())

b = torch.tensor(0.7, requires_grad=True, **double)
area = quad(lambda t, b: torch.exp(-b * t * t), torch.zeros((), **double), torch.tensor(2.0, **double), params=(b,))
print(area.item(), torch.autograd.grad(area, b)[0].item())
ts = torch.linspace(0, 1, 5, **double)
path = solve_ivp(lambda t, y, b: -b * y, ts, torch.ones(1, **double), params=(b,))
print(path.flatten().tolist(), torch.autograd.grad(path.sum(), b)[0].item())
low = minimize(
    lambda z, b: ((z - b) ** 2).sum() + (z**4).sum(),
    torch.ones(2, **double),
    params=(b,),
    method="gd",
    step=1e-1,
    maxiter=300,
)
print(low.tolist())
print(Interp1D(ts, ts.sin() * b, method="cspline")(torch.tensor([0.1, 0.6], **double)).tolist())
