import torch
from backpack import backpack, extend, extensions
from torch import nn

model = extend(
    nn.Sequential(
        nn.Conv2d(1, 3, 3, stride=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(12, 6),
        nn.Sigmoid(),
        nn.Linear(6, 4),
    )
)
lossfunc = extend(nn.CrossEntropyLoss())
x, label = torch.randn(8, 1, 10, 10), torch.randint(0, 4, (8,))
loss = lossfunc(model(x), label)
with backpack(
    extensions.BatchGrad(),
    extensions.BatchL2Grad(),
    extensions.SumGradSquared(),
    extensions.Variance(),
    extensions.DiagGGNExact(),
    extensions.DiagGGNMC(mc_samples=2),
    extensions.KFAC(mc_samples=2),
    extensions.KFLR(),
    extensions.DiagHessian(),
):
    loss.backward()
print(loss.item())
for name, p in model.named_parameters():
    print(name.replace(".", " "), p.grad.norm().item(), p.grad_batch.norm().item(), p.batch_l2.tolist())
    print(
        p.sum_grad_squared.sum().item(), p.variance.sum().item(), p.diag_ggn_exact.sum().item(), p.diag_h.sum().item()
    )
    print(p.diag_ggn_mc.sum().item(), [f.norm().item() for f in p.kfac], [f.norm().item() for f in p.kflr])
