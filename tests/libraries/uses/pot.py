import ot
import torch

x, y = torch.randn(20, 2, dtype=torch.float64, requires_grad=True), torch.randn(25, 2, dtype=torch.float64) + 1
a, b = ot.unif(20, type_as=x), ot.unif(25, type_as=x)
cost = ot.dist(x, y)
plans = {
    "emd": ot.emd2(a, b, cost),
    "sinkhorn": ot.sinkhorn2(a, b, cost, 0.5),
    "log": ot.sinkhorn2(a, b, cost / cost.max(), 0.05, method="sinkhorn_log"),
    "unbalanced": ot.unbalanced.sinkhorn_unbalanced2(a, b, cost, 0.5, 1.0),
    "sliced": ot.sliced_wasserstein_distance(x, y, n_projections=20, seed=0),
    "gromov": ot.gromov_wasserstein2(ot.dist(x, x), ot.dist(y, y), a, b),
    "bures": ot.gaussian.empirical_bures_wasserstein_distance(x, y),
    "empirical": ot.bregman.empirical_sinkhorn_divergence(x, y, 1.0),
}
for name, value in plans.items():
    (g,) = torch.autograd.grad(value, x, retain_graph=True)
    print(name, value.item(), g.norm().item(), g[0].tolist())
print(ot.wasserstein_1d(x[:, 0], y[:20, 0], p=2).item(), ot.partial.partial_wasserstein(a, b, cost, m=0.5).sum().item())
model = ot.da.SinkhornTransport(reg_e=1.0).fit(Xs=x.detach(), Xt=y)
print(model.transform(Xs=x.detach()).sum().item())
print(ot.lp.free_support_barycenter([x.detach(), y], [a, b], x.detach()[:5]).tolist())
