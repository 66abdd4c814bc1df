import torch
import torchcde
from torch import nn

t = torch.linspace(0, 1, 12)
x = torch.stack([t.expand(4, 12), torch.randn(4, 12).cumsum(1)], -1)
x[0, 3, 1] = float("nan")
y = torch.tensor([0.0, 1.0, 0.0, 1.0])


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 6), nn.Tanh())

    def forward(self, t, z):
        return self.net(z).view(*z.shape[:-1], 3, 2)


field, start, read = Field(), nn.Linear(2, 3), nn.Linear(3, 1)
params = [p for m in (field, start, read) for p in m.parameters()]
optimizer = torch.optim.Adam(params, 1e-2)
coeffs = torchcde.hermite_cubic_coefficients_with_backward_differences(x)
path = torchcde.CubicSpline(coeffs)
for adjoint in (False, True, False):
    z0 = start(path.evaluate(path.interval[0]))
    z = torchcde.cdeint(
        X=path, func=field, z0=z0, t=path.interval, adjoint=adjoint, method="rk4", options={"step_size": 1.0}
    )
    loss = nn.functional.binary_cross_entropy_with_logits(read(z[:, -1]).squeeze(-1), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item(), [p.grad.norm().item() for p in field.parameters()])
natural = torchcde.CubicSpline(torchcde.natural_cubic_coeffs(x))
print(natural.evaluate(2.3).tolist(), natural.derivative(2.3).tolist())
linear = torchcde.LinearInterpolation(torchcde.linear_interpolation_coeffs(x, rectilinear=0))
print(linear.evaluate(4.5).tolist())
