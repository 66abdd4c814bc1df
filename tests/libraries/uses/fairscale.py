import torch
from fairscale.nn import checkpoint_wrapper

model = checkpoint_wrapper(torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1)))
x = torch.randn(3, 4, requires_grad=True)
model(x).sum().backward()
print(x.grad.tolist())
