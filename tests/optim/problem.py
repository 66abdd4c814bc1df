"""What tests of optimizers share: settings to try, and a problem whose gradient NumPy computes."""

from __future__ import annotations

import numpy as np

import rushlight

CASES = [
    ("SGD", {}),
    ("SGD", {"lr": 0.01, "weight_decay": 0.5}),
    ("SGD", {"momentum": 0.9}),
    ("SGD", {"momentum": 0.9, "dampening": 0.5, "weight_decay": 0.1, "maximize": True}),
    ("SGD", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("Adam", {}),
    ("Adam", {"lr": 0.01, "weight_decay": 0.1, "maximize": True}),
    ("Adam", {"amsgrad": True, "betas": (0.5, 0.6), "eps": 1e-3}),
    ("AdamW", {"lr": 0.1}),
    ("AdamW", {"amsgrad": True, "weight_decay": 0.2}),
    ("Adagrad", {}),
    ("Adagrad", {"lr_decay": 0.5, "weight_decay": 0.1, "initial_accumulator_value": 0.1}),
    ("Adadelta", {}),
    ("Adadelta", {"rho": 0.95, "weight_decay": 0.9, "maximize": True}),
    ("RMSprop", {}),
    ("RMSprop", {"weight_decay": 0.1, "centered": True}),
    ("RMSprop", {"centered": True, "momentum": 0.1, "maximize": True}),
    ("Adamax", {"lr": 0.1}),
    ("Adamax", {"weight_decay": 0.1, "maximize": True}),
    ("NAdam", {}),
    ("NAdam", {"weight_decay": 0.1, "momentum_decay": 6e-3, "decoupled_weight_decay": True}),
    ("RAdam", {"betas": (0.9, 0.6)}),
    ("RAdam", {"lr": 0.01, "weight_decay": 0.1}),
    ("RAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("ASGD", {}),
    ("ASGD", {"t0": 2, "lambd": 0.1, "weight_decay": 0.1}),
    ("Rprop", {}),
    ("Rprop", {"etas": (0.5, 1.5), "step_sizes": (2e-3, 0.02), "maximize": True}),
    ("Adafactor", {"weight_decay": 0.1}),
    ("Adafactor", {"beta2_decay": -1.0, "d": 1.5, "eps": (1e-3, 0.1)}),
    ("LBFGS", {"lr": 0.1}),
    ("LBFGS", {"line_search_fn": "strong_wolfe", "max_iter": 4, "history_size": 2}),
]
IDS = [f"{name}-{'-'.join(settings)}" for name, settings in CASES]
ELEMENTWISE = [(n, s) for n, s in CASES if n not in ("Adafactor", "LBFGS")]
SHAPES = ((4, 3), (5,), ())


class Problem:
    """sum of w (p - 1)^2 with weights w, whose gradient NumPy computes: only the optimizer is tested."""

    def __init__(self, torch, dtype="float64", shapes=SHAPES):
        random = np.random.RandomState(0)
        parts = [(np.array(random.randn(*s)), np.array(random.uniform(0.5, 2, s))) for s in shapes]
        if dtype.startswith("complex"):
            parts = [(p + 1j * p[..., ::-1] if p.ndim else p + 1j, w) for p, w in parts]
        self.torch, self.weights = torch, [w for _, w in parts]
        self.params = [torch.tensor(np.array(p).tolist(), dtype=getattr(torch, dtype)) for p, _ in parts]
        for p in self.params:
            p.requires_grad_()

    def closure(self):
        loss = 0.0
        for p, w in zip(self.params, self.weights):
            q = p.detach()
            error = q - 1
            w = self.torch.tensor(w.tolist(), dtype=self.torch.float64).to(p.dtype)
            p.grad = (2 * w * error).to(p.dtype)
            loss += float((w * abs(error) * abs(error)).sum().real)
        return self.torch.tensor(loss)

    def train(self, name, settings, steps=5):
        optimizer = getattr(self.torch.optim, name)(self.params, **settings)
        advance(self, optimizer, steps)
        return optimizer

    def values(self):
        return [p.detach() for p in self.params]


def advance(problem, optimizer, steps):
    for _ in range(steps):
        if type(optimizer).__name__ == "LBFGS":
            optimizer.step(problem.closure)
        else:
            problem.closure()
            optimizer.step()


def arrays(values):
    return [np.array(v.tolist()) for v in values]


def close(ours, expected, tolerance):
    for a, b in zip(ours, expected, strict=True):
        a = np.array(a.tolist()) if isinstance(a, rushlight.Tensor) else a
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
