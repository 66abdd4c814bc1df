"""W10b: the same Hessian by torch.func: jacfwd(jacrev(f))."""

from common import Work

from workloads.w10_hessian import point, rosenbrock


def build(torch):
    x = torch.tensor(point())
    hessian = torch.func.jacfwd(torch.func.jacrev(rosenbrock))

    def step(forward, x):
        return forward(x)

    return Work(hessian, step, [(x,)], value=lambda h: float(h.abs().sum()) / 1e5)
