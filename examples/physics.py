"""A network that solves a differential equation: `python examples/physics.py`.

A physics-informed network (Raissi et al. 2019) for heat in a rod, u_t = 0.1 u_xx, whose ends are kept at 0: it is told
the heat at the start and the equation, nothing else. u_t and u_xx are derivatives by the inputs, at all points at once:
jvp with the same direction for each point, and jvp of jvp. Exact: u = sin(pi x) exp(-0.1 pi^2 t) + ... With `import
torch` in place of `import rushlight as torch` this runs on PyTorch."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable

import rushlight as torch
from rushlight.func import jvp

HEAT = 0.1


def exact(x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    """Two waves, of which the shorter dies out sooner."""

    def wave(k: int) -> torch.Tensor:
        return torch.sin(k * math.pi * x) * torch.exp(-HEAT * (k * math.pi) ** 2 * t)

    return wave(1) - 0.5 * wave(3)


class Rod(torch.nn.Module):
    """u(x, t), made so that the ends and the start are right whatever the network says."""

    def __init__(self, width: int):
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.Linear(2, width),
            torch.nn.Tanh(),
            torch.nn.Linear(width, width),
            torch.nn.Tanh(),
            torch.nn.Linear(width, 1),
        )

    def forward(self, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        """(B,), (B,) -> (B,)."""
        free = self.net(torch.stack([2 * x - 1, 2 * t - 1], 1))[:, 0]
        return exact(x, torch.zeros_like(t)) + x * (1 - x) * t * free


def derivative(f: Callable, points: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(f, f') at each point, for an f that works on every point by itself."""
    return jvp(f, (points,), (torch.ones_like(points),))


def residual(u: Callable, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    """u_t - HEAT u_xx: how far the equation is from being true, at each point."""
    _, u_t = derivative(lambda t: u(x, t), t)
    _, u_xx = derivative(lambda x: derivative(lambda x: u(x, t), x)[1], x)
    return u_t - HEAT * u_xx


def error(u: Callable) -> float:
    """The largest difference from the exact heat, on a grid."""
    grid = torch.linspace(0, 1, 41)
    x, t = (part.reshape(-1) for part in torch.meshgrid(grid, grid, indexing="ij"))
    with torch.no_grad():
        return float((u(x, t) - exact(x, t)).abs().max())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=25, help="of L-BFGS, each of up to 20 evaluations")
    parser.add_argument("--points", type=int, default=300)
    parser.add_argument("--width", type=int, default=24)
    args = parser.parse_args()
    torch.manual_seed(0)
    u = Rod(args.width)
    x, t = torch.rand(args.points), torch.rand(args.points)
    optimizer = torch.optim.LBFGS(u.parameters(), history_size=50, line_search_fn="strong_wolfe")

    def evaluate() -> torch.Tensor:
        optimizer.zero_grad()
        loss = (residual(u, x, t) ** 2).mean()
        loss.backward()
        return loss

    print(f"start: error {error(u):.4f}")
    for step in range(1, args.steps + 1):
        loss = float(optimizer.step(evaluate).detach())
        if step % max(args.steps // 5, 1) == 0:
            print(f"step {step}: residual {loss**0.5:.5f}, error {error(u):.5f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
