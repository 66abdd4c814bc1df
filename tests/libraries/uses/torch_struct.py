import torch
from torch_struct import DependencyCRF, LinearChainCRF, NonProjectiveDependencyCRF, SemiMarkovCRF, TreeCRF

potentials = {
    LinearChainCRF: torch.randn(2, 5, 3, 3),
    SemiMarkovCRF: torch.randn(2, 5, 3, 2, 2),
    DependencyCRF: torch.randn(2, 4, 4),
    NonProjectiveDependencyCRF: torch.randn(2, 4, 4),
    TreeCRF: torch.randn(2, 5, 5, 3),
}
for Family, scores in potentials.items():
    scores.requires_grad_()
    d = Family(scores)
    print(Family.__name__, d.partition.tolist(), d.marginals.pow(2).sum().item())
    (g,) = torch.autograd.grad(d.partition.sum(), scores)
    print(g.norm().item())
    if Family is not NonProjectiveDependencyCRF:
        print(d.max.tolist(), d.argmax.nonzero().sum().item(), d.entropy.tolist(), d.topk(2).shape)
        print(d.log_prob(d.argmax).tolist())
chain = LinearChainCRF(potentials[LinearChainCRF], lengths=torch.tensor([6, 4]))
print(chain.partition.tolist(), chain.sample((2,)).sum().item())
