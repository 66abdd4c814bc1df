import torch
from pytorch_metric_learning import distances, losses, miners

x = torch.randn(16, 8, requires_grad=True)
labels = torch.arange(16) % 4
miner = miners.MultiSimilarityMiner()
for loss in (losses.TripletMarginLoss(), losses.NTXentLoss(), losses.ArcFaceLoss(4, 8)):
    value = loss(x, labels, miner(x, labels))
    print(value.item(), torch.autograd.grad(value, x)[0].abs().sum().item())
print(distances.CosineSimilarity()(x, x).sum().item())
