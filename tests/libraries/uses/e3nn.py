import torch
from e3nn import o3

x = torch.randn(5, 3)
print(o3.spherical_harmonics([0, 1, 2], x, True).sum(0).tolist())
irreps = o3.Irreps("2x0e + 1x1o")
layer = o3.FullyConnectedTensorProduct(irreps, o3.Irreps.spherical_harmonics(1), irreps)
features = irreps.randn(5, -1)
y = layer(features, o3.spherical_harmonics([0, 1], x, True))
y.square().sum().backward()
print(y.tolist(), o3.wigner_3j(1, 1, 1).tolist(), o3.Linear(irreps, irreps)(features).sum().item())
