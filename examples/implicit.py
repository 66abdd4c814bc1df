"""A layer as deep as it needs to be: `python examples/implicit.py`.

A deep equilibrium layer (Bai et al. 2019) gives the z at which z = tanh(W z + U x + b). How z was found does not matter
for its derivative: with J = d tanh(W z + ...)/dz at the solution, dz = (I - J)^-1 d(tanh(W z + ...)), so backward
solves (I - J') a = g by the same iteration, with products J' a that vjp makes. A custom Function says so; no step of
the search is kept. The gradient is compared with that of the unrolled search. With `import torch` in place of `import
rushlight as torch` this runs on PyTorch."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable

import rushlight as torch
from rushlight.func import vjp


def step(z: torch.Tensor, x: torch.Tensor, W: torch.Tensor, U: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """(B, width), (B, 2) -> (B, width)."""
    return torch.tanh(z @ W + x @ U + b)


def solved(f: Callable, z: torch.Tensor, tolerance: float = 1e-10) -> tuple[torch.Tensor, int]:
    """z = f(z) by iteration, and in how many steps."""
    for n in range(1, 500):
        new = f(z)
        if float((new - z).abs().max()) < tolerance:
            return new, n
        z = new
    raise RuntimeError("no equilibrium within 500 steps: W is too large")


class Equilibrium(torch.autograd.Function):
    """x, W, U, b -> the z at which step(z, x, W, U, b) = z."""

    @staticmethod
    def forward(ctx, x, W, U, b):
        z, ctx.steps = solved(lambda z: step(z, x, W, U, b), torch.zeros(len(x), len(W), dtype=x.dtype))
        ctx.save_for_backward(z, x, W, U, b)
        return z

    @staticmethod
    def backward(ctx, g):
        z, *others = [t.detach() for t in ctx.saved_tensors]
        _, by_z = vjp(lambda z: step(z, *others), z)
        a, _ = solved(lambda a: g + by_z(a)[0], g)  # a = g + J' a
        _, by_others = vjp(lambda *others: step(z, *others), *others)
        return by_others(a)


class Net(torch.nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.W = torch.nn.Parameter(torch.randn(width, width) * 0.5 / math.sqrt(width))
        self.U = torch.nn.Parameter(torch.randn(2, width))
        self.b = torch.nn.Parameter(torch.zeros(width))
        self.out = torch.nn.Linear(width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(Equilibrium.apply(x, self.contraction(), self.U, self.b))[:, 0]

    def contraction(self) -> torch.Tensor:
        """W, no longer than 0.9 in any direction: then there is an equilibrium, and one only."""
        return self.W * (0.9 / torch.linalg.matrix_norm(self.W).clamp(min=0.9))


def compare(width: int) -> str:
    """The gradient by W against that through 200 unrolled steps."""
    net = Net(width).double()
    x = torch.randn(5, 2, dtype=torch.float64)
    W = net.contraction().detach().requires_grad_()
    (implicit,) = torch.autograd.grad(Equilibrium.apply(x, W, net.U, net.b).sum(), W)
    z = torch.zeros(5, width, dtype=torch.float64)
    for _ in range(200):
        z = step(z, x, W, net.U, net.b)
    (unrolled,) = torch.autograd.grad(z.sum(), W)
    return f"gradient: {float((implicit - unrolled).abs().max()):.1e} from that of 200 unrolled steps"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--width", type=int, default=16)
    args = parser.parse_args()
    torch.manual_seed(0)
    print(compare(args.width))
    x = 2 * torch.rand(200, 2, dtype=torch.float64) - 1
    y = (x[:, 0] * x[:, 1] > 0).double()  # which of the four quarters: not linear
    net = Net(args.width).double()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
    for n in range(1, args.steps + 1):
        optimizer.zero_grad()
        guess = net(x)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(guess, y)
        loss.backward()
        optimizer.step()
        if n == 1 or n % max(args.steps // 4, 1) == 0:
            right = float(((guess > 0) == (y > 0)).double().mean())
            z = torch.zeros(len(x), args.width, dtype=x.dtype)
            _, depth = solved(lambda z: step(z, x, net.contraction(), net.U, net.b), z)
            print(
                f"step {n}: loss {float(loss.detach()):.3f}, {100 * right:.1f}% right, {depth} steps to the equilibrium"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
