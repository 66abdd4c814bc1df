"""Wide networks learn like a kernel: `python examples/tangent_kernel.py`.

The neural tangent kernel K(a, b) = <df(a)/dp, df(b)/dp> (Jacot et al. 2018) says which points a step of gradient
descent moves together. The wider a network, the less K changes while it learns, and then what it will have learnt is
known before: descent in a linear model with the kernel K. Jacobians of all points come from vmap(jacrev(f)). With
`import torch` in place of `import rushlight as torch` this runs on PyTorch."""

from __future__ import annotations

import argparse
import math
import sys

import rushlight as torch
from rushlight.func import grad_and_value, jacrev, vmap

Parameters = dict[str, torch.Tensor]


def start(width: int) -> Parameters:
    """1 -> width -> width -> 1, all parameters standard normal: `network` has the scales, so that widths compare."""
    sizes = [2, width, width, 1]
    return {f"w{i}": torch.randn(m, n, dtype=torch.float64) for i, (m, n) in enumerate(zip(sizes, sizes[1:]))}


def network(p: Parameters, x: torch.Tensor) -> torch.Tensor:
    """A point on the circle, as an angle () -> a number ()."""
    h = torch.stack([x.cos(), x.sin()])
    h = torch.tanh(h @ p["w0"])
    h = torch.tanh(h @ p["w1"] / math.sqrt(h.shape[-1]))
    return (h @ p["w2"] / math.sqrt(h.shape[-1]))[0]


def jacobians(p: Parameters, x: torch.Tensor) -> torch.Tensor:
    """df(x_i)/dp for each point, all parameters in one row: (points, parameters)."""
    found = vmap(jacrev(network), (None, 0))(p, x)
    return torch.cat([found[name].flatten(1) for name in p], 1)


def kernel(p: Parameters, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return jacobians(p, a) @ jacobians(p, b).T


def predicted(
    p: Parameters, x: torch.Tensor, y: torch.Tensor, new: torch.Tensor, steps: int, rate: float
) -> torch.Tensor:
    """f(new) after as many steps of descent, if K stayed what it is: each step takes rate K of the errors away."""
    f = vmap(network, (None, 0))
    K, errors = kernel(p, x, x), y - f(p, x)
    pushed = torch.zeros_like(errors)  # how hard each point has pulled so far
    for _ in range(steps):
        pushed = pushed + rate * errors
        errors = errors - rate * (K @ errors)
    return f(p, new) + kernel(p, new, x) @ pushed


def trained(p: Parameters, x: torch.Tensor, y: torch.Tensor, steps: int, rate: float) -> tuple[Parameters, float]:
    """Gradient descent on half the squared error, and the error that is left."""

    def loss(p: Parameters) -> torch.Tensor:
        return ((vmap(network, (None, 0))(p, x) - y) ** 2).sum() / 2

    left = 0.0
    for _ in range(steps):
        slope, value = grad_and_value(loss)(p)
        p = {name: p[name] - rate * slope[name] for name in p}
        left = float(value)
    return p, left


def compared(width: int, seed: int, x: torch.Tensor, y: torch.Tensor, new: torch.Tensor, steps: int) -> list[float]:
    """The loss that is left, how much the kernel has changed, and how far the network is from what it foretold."""
    torch.manual_seed(seed)
    p = start(width)
    before = kernel(p, x, x)
    rate = 1.0 / float(torch.linalg.eigvalsh(before)[-1])
    q, left = trained(p, x, y, steps, rate)
    moved = float((kernel(q, x, x) - before).norm() / before.norm())
    apart = vmap(network, (None, 0))(q, new) - predicted(p, x, y, new, steps, rate)
    return [left, moved, float((apart**2).mean().sqrt())]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--widths", type=int, nargs="+", default=[8, 64, 256])
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--networks", type=int, default=5, help="of each width, from which the mean is shown")
    args = parser.parse_args()
    x = torch.tensor([-2.4, -1.5, -0.4, 0.6, 1.7, 2.7], dtype=torch.float64)
    y = x.sin()
    new = torch.linspace(-3, 3, 25, dtype=torch.float64)
    print("width   loss left   kernel moved by   network and what the kernel foretold apart by (rms)")
    for width in args.widths:
        figures = torch.tensor([compared(width, seed, x, y, new, args.steps) for seed in range(args.networks)]).mean(0)
        left, moved, apart = figures.tolist()
        print(f"{width:5d}   {left:.1e}     {100 * moved:5.1f}%            {apart:.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
