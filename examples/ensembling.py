"""Many models trained at once, as one: `python examples/ensembling.py`.

vmap maps a model over stacked parameters: the products of all members are one product of stacks. Where the members of
an ensemble disagree, nothing was there to learn from. With `import torch` in place of `import rushlight as torch` this
runs on PyTorch."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

import rushlight as torch
from rushlight import nn
from rushlight.func import functional_call, stack_module_state, vmap


def wave(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Points (n, 1) of a noisy sine, none of them between -1 and 1."""
    x = torch.rand(n, 1) * 3 + 1
    x = torch.where(torch.rand(n, 1) < 0.5, -x, x)
    return x, x.sin() + 0.05 * torch.randn(n, 1)


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))


class Ensemble:
    """Models as one function of stacked parameters, each (number of models, *shape)."""

    def __init__(self, models: list[nn.Module]):
        self.skeleton = models[0]
        self.parameters, self.buffers = stack_module_state(models)
        self.every = vmap(self.one, in_dims=(0, 0, None))

    def one(self, parameters: dict, buffers: dict, x: torch.Tensor) -> torch.Tensor:
        return functional_call(self.skeleton, (parameters, buffers), (x,))

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """(B, 1) -> (number of models, B, 1)."""
        return self.every(self.parameters, self.buffers, x)


def train(ensemble: Ensemble, x: torch.Tensor, y: torch.Tensor, steps: int) -> float:
    """All members at once; returns the mean of their last losses."""
    optimizer = torch.optim.Adam(list(ensemble.parameters.values()), lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        losses = ((ensemble(x) - y) ** 2).mean((1, 2))  # one for each member
        losses.sum().backward()  # no member's loss depends on another's parameters
        optimizer.step()
    return float(losses.mean())


def timed(f: Callable) -> tuple[torch.Tensor, float]:
    """What f returns, and how many milliseconds it takes at best."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        found = f()
        times.append(1e3 * (time.perf_counter() - start))
    return found, min(times)


def compare(models: list[nn.Module], x: torch.Tensor) -> str:
    """Whether the ensemble is its members, and how long each way takes."""
    ensemble = Ensemble(models)
    made, by_vmap = timed(lambda: ensemble(x))
    each, by_loop = timed(lambda: torch.stack([model(x) for model in models]))
    return (
        f"{len(models)} models on {len(x)} points: {by_vmap:.2f} ms by vmap, {by_loop:.2f} ms by a loop, at most "
        f"{float((made - each).abs().max()):.1e} apart"
    )


def report(ensemble: Ensemble) -> None:
    """Mean and deviation of the members, where there were points and where there were none."""
    print("      x    sin x     mean   deviation")
    with torch.no_grad():
        for at in (-4.0, -2.5, -1.0, 0.0, 1.0, 2.5, 4.0, 6.0):
            guesses = ensemble(torch.tensor([[at]])).flatten()
            bar = "#" * min(int(100 * guesses.std()), 60)
            print(f"{at:7.1f} {torch.tensor(at).sin():8.3f} {guesses.mean():8.3f} {guesses.std():8.3f}  {bar}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--models", type=int, default=10)
    parser.add_argument("--steps", type=int, default=400)
    given = parser.parse_args()
    torch.manual_seed(0)
    models = [network() for _ in range(given.models)]
    x, y = wave(128)
    print(compare(models, x))
    ensemble = Ensemble(models)
    print(f"mean loss after {given.steps} steps: {train(ensemble, x, y, given.steps):.4f}")
    report(ensemble)
    return 0


if __name__ == "__main__":
    sys.exit(main())
