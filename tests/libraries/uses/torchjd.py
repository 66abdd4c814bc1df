import torch
from torch import nn
from torchjd.aggregation import IMTLG, MGDA, AlignedMTL, PCGrad, UPGrad, UPGradWeighting
from torchjd.autogram import Engine
from torchjd.autojac import backward, jac_to_grad, mtl_backward

x, y1, y2 = torch.randn(16, 10), torch.randn(16, 1), torch.randn(16, 1)
for aggregator in (UPGrad(), MGDA(), PCGrad(), IMTLG(), AlignedMTL()):
    torch.manual_seed(2)
    shared = nn.Sequential(nn.Linear(10, 5), nn.ReLU())
    heads = nn.Linear(5, 1), nn.Linear(5, 1)
    params = [*shared.parameters(), *heads[0].parameters(), *heads[1].parameters()]
    optimizer = torch.optim.SGD(params, 0.1)
    for _ in range(3):
        features = shared(x)
        losses = [nn.functional.mse_loss(head(features), y) for head, y in zip(heads, (y1, y2))]
        optimizer.zero_grad()
        mtl_backward(losses, features=features)
        jac_to_grad(list(shared.parameters()), aggregator)
        optimizer.step()
    print([loss.item() for loss in losses], shared[0].weight.grad.norm().item())

model = nn.Sequential(nn.Linear(10, 5), nn.Tanh(), nn.Linear(5, 1))
losses = (model(x).squeeze(1) - y1.squeeze(1)) ** 2
backward(losses, parallel_chunk_size=4)
jac_to_grad(list(model.parameters()), UPGrad())
print([p.grad.norm().item() for p in model.parameters()])
engine = Engine(model, batch_dim=0)
losses = (model(x).squeeze(1) - y1.squeeze(1)) ** 2
gramian = engine.compute_gramian(losses)
print(gramian.norm().item(), UPGradWeighting()(gramian).tolist())
