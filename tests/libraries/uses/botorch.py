import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.models import SingleTaskGP

x = torch.rand(10, 2, dtype=torch.float64)
y = (x.sum(1, keepdim=True) * 3).sin()
model = SingleTaskGP(x, y)
acquisition = LogExpectedImprovement(model, y.max())
point = torch.full((1, 2), 0.5, dtype=torch.float64, requires_grad=True)
value = acquisition(point)
value.backward()
print(value.item(), point.grad.tolist(), model.posterior(point).mean.item())
