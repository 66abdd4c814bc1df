import torch
from hypll import nn as hnn
from hypll.manifolds.poincare_ball import Curvature, PoincareBall
from hypll.optim import RiemannianAdam
from hypll.tensors import TangentTensor
from torch import nn

manifold = PoincareBall(c=Curvature(0.5, requires_grad=True))
net = nn.Sequential(
    hnn.HConvolution2d(2, 3, 3, manifold=manifold),
    hnn.HReLU(manifold),
    hnn.HMaxPool2d(2, manifold=manifold),
    hnn.HFlatten(start_dim=1, end_dim=-1),
    hnn.HLinear(12, 4, manifold=manifold),
)
optimizer = RiemannianAdam(net.parameters(), lr=0.01)
x, label = torch.randn(6, 2, 6, 6), torch.randint(0, 4, (6,))
for _ in range(4):
    tangent = TangentTensor(data=x, man_dim=1, manifold=manifold)
    out = net(manifold.expmap(tangent))
    loss = nn.functional.cross_entropy(out.tensor, label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item(), manifold.c().item())
print(out.tensor.tolist())
