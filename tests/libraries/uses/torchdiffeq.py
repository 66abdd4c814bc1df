import torch
from torchdiffeq import odeint, odeint_adjoint

a = torch.nn.Linear(2, 2)


class Field(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = a

    def forward(self, t, y):
        return torch.tanh(self.layer(y))


field, t = Field(), torch.linspace(0, 1, 5)
print(odeint(field, torch.ones(2), t).tolist())
odeint_adjoint(field, torch.ones(2), t).sum().backward()
print(a.weight.grad.tolist())
