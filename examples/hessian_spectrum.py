"""The shape of a minimum: `python examples/hessian_spectrum.py`.

A network's loss has as many curvatures as parameters. Lanczos' method finds the largest and smallest from products H v
alone, and each product costs a few gradients: jvp of grad, forward over backward. H itself is never formed (but once,
for a small network, to show that the eigenvalues are right). With `import torch` in place of `import rushlight as
torch` this runs on PyTorch."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable

import rushlight as torch
from rushlight.func import functional_call, grad, hessian, jvp

Product = Callable[[torch.Tensor], torch.Tensor]


def moons(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Two half-moons: points (2n, 2) and their moon (2n,)."""
    t = math.pi * torch.rand(2 * n)
    moon = torch.arange(2 * n) % 2
    upper = torch.stack([t.cos(), t.sin()], 1)
    lower = torch.stack([1 - t.cos(), 0.5 - t.sin()], 1)
    return torch.where(moon[:, None] == 0, upper, lower) + 0.1 * torch.randn(2 * n, 2), moon


def loss_of(model: torch.nn.Module, x: torch.Tensor, y: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    """The loss as a function of all parameters in one vector."""
    shapes = {name: p.shape for name, p in model.named_parameters()}

    def loss(flat: torch.Tensor) -> torch.Tensor:
        parts = flat.split([s.numel() for s in shapes.values()])
        state = {name: part.view(shape) for (name, shape), part in zip(shapes.items(), parts)}
        return torch.nn.functional.cross_entropy(functional_call(model, state, (x,)), y)

    return loss


def flattened(model: torch.nn.Module) -> torch.Tensor:
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


def train(model: torch.nn.Module, x: torch.Tensor, y: torch.Tensor, steps: int) -> float:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(steps):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    return float((model(x).argmax(1) == y).float().mean())


def lanczos(product: Product, n: int, steps: int) -> torch.Tensor:
    """Eigenvalues of a symmetric matrix's projection on v, H v, H^2 v, ...: the outermost are the matrix's own.

    Each new direction is made orthogonal to all before it, twice, since rounding would bring old ones back."""
    q = torch.randn(n, dtype=torch.float64)
    basis = [q / q.norm()]
    diagonal, beside = [], []
    for _ in range(min(steps, n)):
        v = product(basis[-1])
        diagonal.append(v @ basis[-1])
        Q = torch.stack(basis)
        for _ in range(2):
            v = v - Q.T @ (Q @ v)
        length = v.norm()
        if float(length) < 1e-10:  # the whole space is spanned
            break
        beside.append(length)
        basis.append(v / length)
    k = len(diagonal)
    T = torch.diag(torch.stack(diagonal))
    if k > 1:
        off = torch.stack(beside[: k - 1])
        T = T + torch.diag(off, 1) + torch.diag(off, -1)
    return torch.linalg.eigvalsh(T)


def report(width: int, steps: int, dense: bool) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, width), torch.nn.Tanh(), torch.nn.Linear(width, 2)).double()
    x, y = moons(100)
    x = x.double()
    loss = loss_of(model, x, y)
    slope = grad(loss)
    for name in ("at the start", "after training"):
        at = flattened(model)
        found = lanczos(lambda v, at=at: jvp(slope, (at,), (v,))[1], len(at), steps)
        print(
            f"{len(at)} parameters, {name}: loss {float(loss(at)):.4f}, |gradient| {float(slope(at).norm()):.1e}, "
            f"curvature from {float(found[0]):.2e} to {float(found[-1]):.2e}, by {len(found)} products"
        )
        if dense:
            exact = torch.linalg.eigvalsh(hessian(loss)(at))
            print(
                f"    of the Hessian itself: from {float(exact[0]):.2e} to {float(exact[-1]):.2e}; "
                f"{int((exact.abs() < 1e-4 * exact[-1]).sum())} directions are flat"
            )
        if name == "at the start":
            print(f"    training: {100 * train(model, x, y, 300):.1f}% of the points on the right side")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, default=200)
    parser.add_argument("--steps", type=int, default=40, help="of Lanczos' method: products H v")
    args = parser.parse_args()
    torch.manual_seed(0)
    report(6, args.steps, dense=True)
    report(args.width, args.steps, dense=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
