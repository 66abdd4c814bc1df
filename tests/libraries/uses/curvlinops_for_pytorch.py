import torch
from curvlinops import EFLinearOperator, GGNLinearOperator, HessianLinearOperator, KFACLinearOperator
from torch import nn

model = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3))
params = list(model.parameters())
loss = nn.CrossEntropyLoss()
data = [(torch.randn(6, 5), torch.randint(0, 3, (6,))) for _ in range(2)]
v = torch.randn(sum(p.numel() for p in params))
for Operator in (HessianLinearOperator, GGNLinearOperator, EFLinearOperator):
    operator = Operator(model, loss, params, data)
    print((operator @ v).tolist())
    dense = operator @ torch.eye(len(v))
    print(dense.trace().item(), (dense - dense.T).abs().max().item() < 1e-5)
kfac = KFACLinearOperator(model, loss, params, data, fisher_type="type-2")
print((kfac @ v).norm().item())
print(kfac.trace().item() if callable(kfac.trace) else float(kfac.trace))
