"""Learning to learn from few points: `python examples/maml.py`.

Model-agnostic meta-learning (Finn et al. 2017): parameters from which one step of gradient descent on ten points of an
unknown sine is enough. The gradient goes through that step: a gradient of a gradient, by func.grad, for all tasks at
once by vmap. With `import torch` in place of `import rushlight as torch` this runs on PyTorch."""

from __future__ import annotations

import argparse
import math
import sys

import rushlight as torch
from rushlight.func import grad, vmap

Parameters = dict[str, torch.Tensor]


def start(width: int) -> Parameters:
    """A network 1 -> width -> width -> 1."""
    sizes = [1, width, width, 1]
    shapes = list(zip(sizes, sizes[1:]))
    return {
        **{f"w{i}": torch.randn(m, n) / math.sqrt(m) for i, (m, n) in enumerate(shapes)},
        **{f"b{i}": torch.zeros(n) for i, (_, n) in enumerate(shapes)},
    }


def network(p: Parameters, x: torch.Tensor) -> torch.Tensor:
    """(B, 1) -> (B, 1)."""
    h = torch.tanh(x @ p["w0"] + p["b0"])
    h = torch.tanh(h @ p["w1"] + p["b1"])
    return h @ p["w2"] + p["b2"]


def loss(p: Parameters, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return ((network(p, x) - y) ** 2).mean()


def adapted(p: Parameters, x: torch.Tensor, y: torch.Tensor, rate: float, steps: int = 1) -> Parameters:
    """The parameters after `steps` of gradient descent on a task's points."""
    for _ in range(steps):
        slope = grad(loss)(p, x, y)
        p = {name: p[name] - rate * slope[name] for name in p}
    return p


def tasks(count: int, points: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Sines of random height and phase: points to learn from, then points to be judged by, (count, 2 * points, 1)
    each."""
    height = 0.5 + 1.5 * torch.rand(count, 1, 1)
    phase = math.pi * torch.rand(count, 1, 1)
    x = 6 * torch.rand(count, 2 * points, 1) - 3
    return x, height * torch.sin(x + phase)


def meta_loss(p: Parameters, x: torch.Tensor, y: torch.Tensor, rate: float) -> torch.Tensor:
    """How wrong the network is on each task after one step, on average over the tasks."""
    half = x.shape[1] // 2

    def after(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return loss(adapted(p, x[:half], y[:half], rate), x[half:], y[half:])

    return vmap(after)(x, y).mean()


def judged(p: Parameters, rate: float, points: int) -> list[float]:
    """The mean loss on new tasks after 0, 1 and 5 steps."""
    x, y = tasks(100, points)

    def after(steps: int) -> float:
        found = vmap(lambda x, y: loss(adapted(p, x[:points], y[:points], rate, steps), x[points:], y[points:]))(x, y)
        return float(found.mean())

    return [after(0), after(1), after(5)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--tasks", type=int, default=16)
    parser.add_argument("--points", type=int, default=10)
    parser.add_argument("--width", type=int, default=40)
    parser.add_argument("--rate", type=float, default=0.05, help="of the step that the network is to learn by")
    args = parser.parse_args()
    torch.manual_seed(0)
    p = start(args.width)
    print("loss on new tasks after 0, 1 and 5 steps on ten points")
    print("  untrained   {:.3f}  {:.3f}  {:.3f}".format(*judged(p, args.rate, args.points)))
    for q in p.values():
        q.requires_grad_()
    optimizer = torch.optim.Adam(list(p.values()), lr=0.003)
    for step in range(args.steps):
        optimizer.zero_grad()
        found = meta_loss(p, *tasks(args.tasks, args.points), args.rate)
        found.backward()
        optimizer.step()
        if (step + 1) % max(args.steps // 3, 1) == 0:
            print(f"  step {step + 1}: loss after one step {float(found.detach()):.3f}")
    p = {name: q.detach() for name, q in p.items()}
    print("  meta-learnt {:.3f}  {:.3f}  {:.3f}".format(*judged(p, args.rate, args.points)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
