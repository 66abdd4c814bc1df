"""Gradients of each sample, and private training with them: `python examples/per_sample_gradients.py`.

DP-SGD (Abadi et al. 2016): the gradient of each sample is clipped to a norm, so that no one person moves the model by
more than that, and noise covers what is left. Gradients of samples cost a loop, or one line: vmap(grad(loss)). With
`import torch` in place of `import rushlight as torch` this runs on PyTorch."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import rushlight as torch
from rushlight import nn
from rushlight.func import functional_call, grad_and_value, vmap
from rushlight.nn import functional as F


def two_moons(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Points (n, 2) on two half circles that reach into each other, and which of them each is on."""
    angle, which = torch.rand(n) * torch.pi, torch.randint(0, 2, (n,))
    x = torch.stack([angle.cos(), angle.sin()], 1)
    moved = torch.tensor([1.0, 0.5]) - x
    return torch.where(which.unsqueeze(1) == 1, moved, x) + 0.1 * torch.randn(n, 2), which


class Private:
    """Clipped and noisy gradients of a model: clip is the most one sample counts, noise its multiple of the
    deviation."""

    def __init__(self, model: nn.Module, clip: float, noise: float):
        self.model, self.clip, self.noise = model, clip, noise
        self.of_each = vmap(grad_and_value(self.loss), in_dims=(None, 0, 0))

    def loss(self, parameters: dict, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Of one sample: x (2,), y ()."""
        scores = functional_call(self.model, parameters, (x.unsqueeze(0),))
        return F.cross_entropy(scores, y.unsqueeze(0))

    def backward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[float, float]:
        """Fill .grad; returns the mean loss, and the part of the samples that were clipped."""
        parameters = {name: p.detach() for name, p in self.model.named_parameters()}
        grads, losses = self.of_each(parameters, x, y)  # each (B, *shape of the parameter)
        norms = torch.stack([g.flatten(1).norm(dim=1) for g in grads.values()]).norm(dim=0)  # (B,)
        scale = (self.clip / norms).clamp(max=1.0)
        for name, p in self.model.named_parameters():
            total = torch.einsum("b,b...->...", scale, grads[name])
            p.grad = (total + self.noise * self.clip * torch.randn_like(p)) / len(x)
        return float(losses.mean()), float((scale < 1).float().mean())


def loop(private: Private, x: torch.Tensor, y: torch.Tensor) -> list[dict]:
    """The same gradients without vmap: a backward for each sample."""
    found = []
    for one, label in zip(x, y):
        private.model.zero_grad()
        F.cross_entropy(private.model(one.unsqueeze(0)), label.unsqueeze(0)).backward()
        found.append({name: p.grad.clone() for name, p in private.model.named_parameters()})
    return found


def timed(f: Callable) -> tuple[Any, float]:
    """What f returns, and how many milliseconds it takes at best."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        found = f()
        times.append(1e3 * (time.perf_counter() - start))
    return found, min(times)


def compare(private: Private, x: torch.Tensor, y: torch.Tensor) -> str:
    """Whether both ways agree, and how long each takes."""
    parameters = {name: p.detach() for name, p in private.model.named_parameters()}
    (grads, _), by_vmap = timed(lambda: private.of_each(parameters, x, y))
    each, by_loop = timed(lambda: loop(private, x, y))
    apart = max(float((grads[k] - torch.stack([g[k] for g in each])).abs().max()) for k in grads)
    return (
        f"gradients of {len(x)} samples: {by_vmap:.1f} ms by vmap, {by_loop:.1f} ms by a loop, at most {apart:.1e} "
        "apart"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--clip", type=float, default=1.0, help="the norm to which each sample's gradient is clipped")
    parser.add_argument("--noise", type=float, default=0.5, help="the noise's deviation, in multiples of --clip")
    given = parser.parse_args()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2))
    private = Private(model, given.clip, given.noise)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    print(compare(private, *two_moons(given.batch)))
    for step in range(1, given.steps + 1):
        loss, clipped = private.backward(*two_moons(given.batch))
        optimizer.step()
        if step % 50 == 0 or step == given.steps:
            print(f"step {step}: loss {loss:.3f}, {clipped:.0%} of the gradients clipped")
    x, y = two_moons(1000)
    print(f"{(model(x).argmax(1) == y).float().mean():.1%} of 1000 new points are put on the right moon")
    return 0


if __name__ == "__main__":
    sys.exit(main())
