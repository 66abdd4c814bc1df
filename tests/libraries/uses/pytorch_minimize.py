import torch
from torchmin import Minimizer, least_squares, minimize, minimize_constr


def rosen(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


start = torch.tensor([1.3, 0.7, 0.8, 1.9, 1.2], dtype=torch.float64)
for method in ("bfgs", "l-bfgs", "cg", "newton-cg", "newton-exact", "trust-ncg", "trust-exact"):
    result = minimize(rosen, start, method=method, max_iter=8)
    print(method.split("-")[0], result.fun.item(), result.x.tolist(), result.nit)
t = torch.linspace(0, 2, 20, dtype=torch.float64)
y = 2.5 * torch.exp(-1.3 * t) + 0.5
fit = least_squares(lambda p: p[0] * torch.exp(-p[1] * t) + p[2] - y, torch.ones(3, dtype=torch.float64))
print(fit.x.tolist(), fit.cost.item())
bounded = minimize_constr(rosen, start, max_iter=10, bounds=([0.0] * 5, [0.9] * 5))
print(bounded.fun.item())
model = torch.nn.Linear(3, 1)
x = torch.randn(20, 3)
optimizer = Minimizer(model.parameters(), method="bfgs", max_iter=3)


def closure():
    optimizer.zero_grad()
    return (model(x).squeeze(1) - x.sum(1)).pow(2).mean()


print(optimizer.step(closure).item(), model.weight.tolist())
