import torch
from entmax import entmax15, entmax_bisect, sparsemax, sparsemax_loss

x = torch.randn(3, 5, requires_grad=True)
for f in (sparsemax, entmax15, lambda x, dim: entmax_bisect(x, 1.3, dim)):
    y = f(x, dim=-1)
    print(y.tolist(), torch.autograd.grad((y**2).sum(), x)[0].tolist())
print(sparsemax_loss(x, torch.tensor([0, 1, 2])).sum().item())
