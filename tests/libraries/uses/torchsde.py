import torch
import torchsde


class SDE(torch.nn.Module):
    noise_type, sde_type = "diagonal", "ito"

    def __init__(self):
        super().__init__()
        self.theta = torch.nn.Parameter(torch.tensor(0.5))

    def f(self, t, y):
        return -self.theta * y

    def g(self, t, y):
        return 0.1 * y


sde = SDE()
motion = torchsde.BrownianInterval(0.0, 1.0, size=(4, 2), entropy=3, levy_area_approximation="space-time")
y = torchsde.sdeint(sde, torch.ones(4, 2), torch.linspace(0, 1, 3), bm=motion, dt=0.1)
y.sum().backward()
print(y.tolist(), sde.theta.grad.item())
