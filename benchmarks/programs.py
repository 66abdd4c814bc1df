"""Training steps of whole programs on rushlight and on torch, in turns; one thread, one process.

    env -u OPENBLAS_CORETYPE OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/programs.py
    python benchmarks/programs.py --only maml --profile 20       # where rushlight's step spends its time

Printed: the milliseconds of a step, the least of many, and torch's time / ours (above 1 rushlight is faster). Both
begin with the same numbers; losses that differ by more than 1 % are reported. Accounts of loops are settled: the
figures are those of a program that has run for a while."""

from __future__ import annotations

import argparse
import cProfile
import pstats
from collections.abc import Callable
from math import inf
from time import process_time
from typing import Any

import numpy as np

Step = Callable[[], Any]


class Numbers:
    """The same random tensors for each library."""

    def __init__(self, lib: Any):
        self.lib, self.rng = lib, np.random.default_rng(0)

    def normal(self, *shape: int, scale: float = 1.0, leaf: bool = False) -> Any:
        array = (scale * self.rng.standard_normal(shape)).astype(np.float32)
        return self.lib.tensor(array, requires_grad=leaf)

    def below(self, n: int, *shape: int) -> Any:
        return self.lib.tensor(self.rng.integers(0, n, shape))

    def fill(self, module: Any) -> Any:
        """The module with these numbers in its parameters, as small as 1 / sqrt(columns)."""
        with self.lib.no_grad():
            for p in module.parameters():
                columns = p.shape[-1] if len(p.shape) < 4 else int(np.prod(p.shape[1:]))
                p.copy_(self.normal(*p.shape, scale=columns**-0.5))
        return module


def trained(optimizer: Any, loss_of: Step) -> Step:
    """The step that lowers the loss."""

    def step() -> Any:
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        optimizer.step()
        return loss

    return step


def dlrm(lib: Any) -> Step:
    """Recommendation: 26 tables of 1,000 rows, bags of 3, 13 numbers, dot products of all pairs."""
    n, F, nn = Numbers(lib), lib.nn.functional, lib.nn
    batch, tables, width = 128, 26, 16
    weights = [n.normal(1000, width, scale=0.1, leaf=True) for _ in range(tables)]
    bottom = n.fill(nn.Sequential(nn.Linear(13, 64), nn.ReLU(), nn.Linear(64, width), nn.ReLU()))
    pairs = (tables + 1) * tables // 2
    top = n.fill(nn.Sequential(nn.Linear(width + pairs, 64), nn.ReLU(), nn.Linear(64, 1)))
    dense, target = n.normal(batch, 13), n.below(2, batch, 1).float()
    rows = [n.below(1000, 3 * batch) for _ in range(tables)]
    begins = lib.arange(0, 3 * batch, 3)
    at = lib.tril_indices(tables + 1, tables + 1, -1)

    def loss() -> Any:
        x = bottom(dense)
        bags = [F.embedding_bag(i, w, begins, mode="sum") for i, w in zip(rows, weights)]
        features = lib.stack([x, *bags], 1)
        dots = lib.bmm(features, features.transpose(1, 2))[:, at[0], at[1]]
        return F.binary_cross_entropy_with_logits(top(lib.cat([x, dots], 1)), target)

    return trained(lib.optim.SGD([*weights, *bottom.parameters(), *top.parameters()], lr=0.01), loss)


def nerf(lib: Any) -> Step:
    """A radiance field: 64 rays of 32 points, positions as sines and cosines, colours along rays."""
    n, nn = Numbers(lib), lib.nn
    rays, points, octaves, width = 64, 32, 6, 64
    field = n.fill(
        nn.Sequential(
            *[nn.Linear(3 + 6 * octaves, width), nn.ReLU()],
            *[nn.Linear(width, width), nn.ReLU()],
            *[nn.Linear(width, width), nn.ReLU()],
            nn.Linear(width, 4),
        )
    )
    origins, directions, target = n.normal(rays, 1, 3), n.normal(rays, 1, 3), n.normal(rays, 3)
    depth = lib.linspace(0.5, 2.5, points)

    def loss() -> Any:
        where = (origins + directions * depth[None, :, None]).reshape(-1, 3)
        waves = [f(where * 2.0**k) for k in range(octaves) for f in (lib.sin, lib.cos)]
        made = field(lib.cat([where, *waves], -1)).reshape(rays, points, 4)
        colour, density = lib.sigmoid(made[..., :3]), lib.relu(made[..., 3])
        gaps = lib.cat([depth[1:] - depth[:-1], lib.tensor([1e3])])
        alpha = 1 - lib.exp(-density * gaps)
        clear = lib.cumprod(lib.cat([lib.ones(rays, 1), 1 - alpha + 1e-10], -1), -1)[:, :-1]
        return (((alpha * clear)[..., None] * colour).sum(1) - target).square().mean()

    return trained(lib.optim.Adam(field.parameters(), lr=1e-3), loss)


def graph_attention(lib: Any) -> Step:
    """Two layers of attention along 8,000 edges of 1,000 nodes, 4 heads of 16."""
    n, F = Numbers(lib), lib.nn.functional
    nodes, edges, heads, width = 1000, 8000, 4, 16
    source, to = n.below(nodes, edges), n.below(nodes, edges)
    x, target = n.normal(nodes, 32), n.below(heads * width, nodes)
    layers = [
        [n.normal(inputs, heads * width, scale=0.1, leaf=True)]
        + [n.normal(heads, width, scale=0.1, leaf=True) for _ in range(2)]
        for inputs in (32, heads * width)
    ]

    def layer(x: Any, weight: Any, left: Any, right: Any) -> Any:
        h = (x @ weight).view(nodes, heads, width)
        score = F.leaky_relu((h * left).sum(-1)[source] + (h * right).sum(-1)[to], 0.2)
        place = to[:, None].expand(edges, heads)
        most = lib.full((nodes, heads), -1e9).scatter_reduce(0, place, score.detach(), "amax")
        e = lib.exp(score - most[to])
        share = e / lib.zeros(nodes, heads).index_add(0, to, e)[to]
        sums = lib.zeros(nodes, heads, width).index_add(0, to, h[source] * share[..., None])
        return sums.reshape(nodes, heads * width)

    def loss() -> Any:
        return F.cross_entropy(layer(F.elu(layer(x, *layers[0])), *layers[1]), target)

    return trained(lib.optim.Adam([p for ps in layers for p in ps], lr=1e-3), loss)


def simclr(lib: Any) -> Step:
    """The contrastive loss of two views of 128 samples of 128 numbers."""
    n, F = Numbers(lib), lib.nn.functional
    batch = 128
    z = n.normal(2 * batch, 128, leaf=True)
    target = lib.cat([lib.arange(batch, 2 * batch), lib.arange(batch)])
    same = lib.eye(2 * batch, dtype=lib.bool)

    def loss() -> Any:
        unit = F.normalize(z, dim=1)
        return F.cross_entropy((unit @ unit.T / 0.5).masked_fill(same, -1e9), target)

    return trained(lib.optim.SGD([z], lr=0.1), loss)


def group_convolution(lib: Any) -> Step:
    """A network equivariant under quarter turns: stacks of rotated kernels, pooled over turns."""
    n, F = Numbers(lib), lib.nn.functional
    lift = n.normal(8, 1, 3, 3, scale=0.3, leaf=True)
    group = n.normal(8, 8, 4, 3, 3, scale=0.1, leaf=True)
    head = n.normal(8, 10, scale=0.3, leaf=True)
    images, target = n.normal(16, 1, 28, 28), n.below(10, 16)

    def loss() -> Any:
        turned = lib.stack([lib.rot90(lift, k, (2, 3)) for k in range(4)], 1)
        x = F.relu(F.conv2d(images, turned.reshape(32, 1, 3, 3), padding=1))
        x = F.max_pool2d(x, 2)
        kernels = lib.stack([lib.rot90(group.roll(k, 2), k, (3, 4)) for k in range(4)], 1).reshape(32, 32, 3, 3)
        x = F.relu(F.conv2d(x, kernels, padding=1))
        pooled = x.view(16, 8, 4, -1).amax(2).mean(-1)
        return F.cross_entropy(pooled @ head, target)

    return trained(lib.optim.Adam([lift, group, head], lr=1e-3), loss)


def maml(lib: Any) -> Step:
    """Sinusoids: 4 tasks of 10 points, two inner steps, gradients through them."""
    n, F = Numbers(lib), lib.nn.functional
    sizes = [(40, 1), (40,), (40, 40), (40,), (1, 40), (1,)]
    params = [n.normal(*s, scale=0.3 if len(s) > 1 else 0.0, leaf=True) for s in sizes]
    tasks = [[n.normal(10, 1) for _ in range(4)] for _ in range(4)]

    def net(x: Any, p: list) -> Any:
        h = F.relu(F.linear(x, p[0], p[1]))
        return F.linear(F.relu(F.linear(h, p[2], p[3])), p[4], p[5])

    def loss() -> Any:
        total = 0.0
        for x, y, later_x, later_y in tasks:
            fast = params
            for _ in range(2):
                inner = F.mse_loss(net(x, fast), y)
                slopes = lib.autograd.grad(inner, fast, create_graph=True)
                fast = [p - 0.01 * g for p, g in zip(fast, slopes)]
            total = total + F.mse_loss(net(later_x, fast), later_y)
        return total

    return trained(lib.optim.Adam(params, lr=1e-3), loss)


PROGRAMS = {f.__name__: f for f in (dlrm, nerf, graph_attention, simclr, group_convolution, maml)}


def measured(steps: list[Step], seconds: float) -> list[float]:
    """The least time of each step, in milliseconds of the processor, taken in turns."""
    for step in steps:
        for _ in range(10):
            step()
    best, spent = [inf] * len(steps), 0.0
    while spent < seconds:
        for k, step in enumerate(steps):
            start = process_time()
            step()
            best[k] = min(best[k], process_time() - start)
            spent += process_time() - start
    return [1e3 * b for b in best]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="programs with this text in their name")
    parser.add_argument("--seconds", type=float, default=4.0, help="of a program")
    parser.add_argument("--profile", type=int, help="list so many functions of rushlight's step")
    chosen = parser.parse_args()
    import torch

    import rushlight
    from rushlight.loops.tiering import at_once

    torch.set_num_threads(1)
    rushlight.set_num_threads(1)
    rushlight.fast.settle()
    at_once.set(True)  # loops with accounts of their own
    for name, make in PROGRAMS.items():
        if chosen.only and chosen.only not in name:
            continue
        ours, theirs = make(rushlight), make(torch)
        losses = ours().item(), theirs().item()
        note = "" if np.isclose(*losses, rtol=0.01) else f"  losses differ: {losses}"
        if chosen.profile:
            for _ in range(20):
                ours()
            profile = cProfile.Profile()
            for _ in range(50):
                profile.runcall(ours)
            pstats.Stats(profile).sort_stats("tottime").print_stats(chosen.profile)
        mine, other = measured([ours, theirs], chosen.seconds)
        print(f"{name:20} {other / mine:5.2f}  ours {mine:7.2f} ms, torch {other:7.2f} ms{note}")


if __name__ == "__main__":
    main()
