"""A zoo: every common optimizer down the same valley, every common schedule, parameter groups and gradient scaling."""

import warnings

import torch
from torch import nn, optim
from torch.optim import lr_scheduler as S
from torch.optim.swa_utils import SWALR, AveragedModel

warnings.filterwarnings("ignore", category=UserWarning)


def rosenbrock(p):
    x, y = p
    return (1 - x) ** 2 + 20 * (y - x**2) ** 2


zoo = {
    "SGD": lambda p: optim.SGD(p, lr=2e-3),
    "momentum": lambda p: optim.SGD(p, lr=1e-3, momentum=0.9, dampening=0.1),
    "nesterov": lambda p: optim.SGD(p, lr=1e-3, momentum=0.9, nesterov=True, weight_decay=1e-2),
    "maximize": lambda p: optim.SGD(p, lr=1e-5, maximize=True),
    "Adam": lambda p: optim.Adam(p, lr=2e-2),
    "amsgrad": lambda p: optim.Adam(p, lr=2e-2, amsgrad=True, eps=1e-6),
    "AdamW": lambda p: optim.AdamW(p, lr=2e-2, weight_decay=0.1),
    "Adamax": lambda p: optim.Adamax(p, lr=2e-2),
    "NAdam": lambda p: optim.NAdam(p, lr=2e-2),
    "RAdam": lambda p: optim.RAdam(p, lr=2e-2),
    "Adagrad": lambda p: optim.Adagrad(p, lr=1e-1),
    "Adadelta": lambda p: optim.Adadelta(p, lr=1.0),
    "RMSprop": lambda p: optim.RMSprop(p, lr=1e-2, centered=True, momentum=0.5),
    "Rprop": lambda p: optim.Rprop(p, lr=1e-2),
    "ASGD": lambda p: optim.ASGD(p, lr=2e-3),
    "LBFGS": lambda p: optim.LBFGS(p, lr=0.1),
}
for name, make in zoo.items():
    # L-BFGS far from its valley doubles a rounding at every step: in single precision no two libraries agree for long
    dtype = torch.float64 if name == "LBFGS" else torch.float32
    point = torch.tensor([-1.5, 2.0], dtype=dtype, requires_grad=True)
    opt = make([point])

    def closure():
        opt.zero_grad()
        loss = rosenbrock(point)
        loss.backward()
        return loss

    for _ in range(3 if name == "LBFGS" else 40):
        loss = opt.step(closure)
    print(f"{name:9s} {loss.item():12.6f} {point.detach().numpy()}")
print(optim.Adam([point], lr=0.1))

schedules = {
    "StepLR": lambda o: S.StepLR(o, step_size=3, gamma=0.5),
    "MultiStepLR": lambda o: S.MultiStepLR(o, [2, 5, 7], 0.1),
    "ExponentialLR": lambda o: S.ExponentialLR(o, 0.9),
    "CosineAnnealingLR": lambda o: S.CosineAnnealingLR(o, 6, eta_min=0.01),
    "WarmRestarts": lambda o: S.CosineAnnealingWarmRestarts(o, T_0=3, T_mult=2),
    "LinearLR": lambda o: S.LinearLR(o, 0.25, 1, 4),
    "PolynomialLR": lambda o: S.PolynomialLR(o, total_iters=6, power=2),
    "ConstantLR": lambda o: S.ConstantLR(o, 0.5, 4),
    "CyclicLR": lambda o: S.CyclicLR(o, 0.01, 0.1, step_size_up=3, mode="triangular2"),
    "OneCycleLR": lambda o: S.OneCycleLR(o, 0.2, total_steps=10),
    "LambdaLR": lambda o: S.LambdaLR(o, lambda e: 1 / (1 + e)),
    "MultiplicativeLR": lambda o: S.MultiplicativeLR(o, lambda e: 0.8),
    "warm-up": lambda o: S.SequentialLR(o, [S.LinearLR(o, 0.1, 1.0, 3), S.CosineAnnealingLR(o, 6)], milestones=[3]),
    "chained": lambda o: S.ChainedScheduler([S.ConstantLR(o, 0.1, 2), S.ExponentialLR(o, 0.95)]),
}
for name, make in schedules.items():
    opt = optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1, momentum=0.9)
    scheduler, lrs = make(opt), []
    for _ in range(9):
        opt.step()
        lrs.append(f"{scheduler.get_last_lr()[0]:.6f}")
        scheduler.step()
    print(f"{name:17s}", " ".join(lrs))

opt = optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
plateau = S.ReduceLROnPlateau(opt, "min", factor=0.5, patience=1, threshold=1e-2)
for metric in (1.0, 0.9, 0.9, 0.899, 0.95, 0.7, 0.71, 0.72, 0.73):
    plateau.step(metric)
    print(f"{metric} -> {opt.param_groups[0]['lr']:.5f} (bad epochs {plateau.num_bad_epochs})")

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
opt = optim.Adam(
    [{"params": net[0].parameters()}, {"params": net[2].parameters(), "lr": 1e-1, "betas": (0.8, 0.9)}], lr=1e-2
)
averaged, swa = AveragedModel(net), SWALR(opt, swa_lr=0.02, anneal_epochs=3)
x = torch.randn(64, 3)
y = (x**2).sum(1, keepdim=True)
for i in range(12):
    opt.zero_grad()
    loss = nn.functional.huber_loss(net(x), y)
    loss.backward()
    total = nn.utils.clip_grad_norm_(net.parameters(), 2.0, error_if_nonfinite=True)
    nn.utils.clip_grad_value_(net.parameters(), 0.5)
    opt.step()
    if i >= 6:
        averaged.update_parameters(net)
        swa.step()
    print(f"{i:2d} loss {loss.item():.6f} norm {total.item():.6f} lr {[round(g['lr'], 6) for g in opt.param_groups]}")
print(averaged.n_averaged, nn.functional.huber_loss(averaged(x), y).item())
opt.add_param_group({"params": [nn.Parameter(torch.ones(2))], "weight_decay": 0.1})
print(opt)
