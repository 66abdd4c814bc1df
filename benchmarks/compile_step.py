"""Whole steps: torch eager, rushlight eager and rushlight.compile, in one process, taking turns.

    env -u OPENBLAS_CORETYPE OMP_NUM_THREADS=1 python benchmarks/compile_step.py [--size 1000000] [--source]

Printed are the medians of all blocks in milliseconds, the median over blocks of torch's time by the program's, and what
it took until the program was there (two watched steps, fusing, LLVM or its disk cache)."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from importlib import import_module
from statistics import median
from time import perf_counter
from types import ModuleType

os.environ.setdefault("OPENBLAS_NUM_THREADS", os.environ.get("OMP_NUM_THREADS", "1"))

import numpy as np
import torch

import rushlight

BLOCKS, SECONDS = 15, 0.05


def chain(lib: ModuleType, size: int) -> Callable:
    """x sigmoid(1.702 x) + tanh(x) exp(-x^2), forward and backward."""
    x = lib.tensor(np.random.default_rng(7).standard_normal(size, dtype=np.float32), requires_grad=True)

    def step():
        x.grad = None
        y = (x * lib.sigmoid(1.702 * x) + lib.tanh(x) * lib.exp(-x * x)).sum()
        y.backward()
        return y

    return step


def mlp(lib: ModuleType, size: int) -> Callable:
    """784-128-64-10, batch 64, cross entropy, Adam."""
    nn, functional = lib.nn, import_module(f"{lib.__name__}.nn.functional")
    model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
    rng = np.random.default_rng(0)
    with lib.no_grad():
        for p in model.parameters():
            p.copy_(lib.tensor(rng.normal(0, 0.05, tuple(p.shape)).astype(np.float32)))
    optimizer = import_module(f"{lib.__name__}.optim").Adam(model.parameters())
    x = lib.tensor(rng.standard_normal((64, 784), dtype=np.float32))
    y = lib.tensor(rng.integers(0, 10, 64))

    def step():
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def rows(lib: ModuleType, size: int) -> Callable:
    """Layer norm, softmax and a variance over 1024 columns, forward and backward."""
    rng = np.random.default_rng(8)
    x = lib.tensor(rng.standard_normal((size // 1024, 1024), dtype=np.float32), requires_grad=True)
    w = lib.tensor(rng.standard_normal(1024, dtype=np.float32), requires_grad=True)

    def step():
        x.grad = w.grad = None
        d = x - x.mean(-1, keepdim=True)
        normal = d / ((d * d).mean(-1, keepdim=True) + 1e-5).sqrt() * w
        y = (lib.softmax(normal, -1) * x).sum() + x.var(0).sum()
        y.backward()
        return y

    return step


def timed(step: Callable, calls: int) -> float:
    """Milliseconds of one call, from a block of several."""
    start = perf_counter()
    for _ in range(calls):
        step()
    return (perf_counter() - start) / calls * 1e3


def compiled(step: Callable) -> tuple[Callable, float, list[float]]:
    """The compiled step, the seconds until its program ran first, and the losses so far."""
    start, losses = perf_counter(), []
    fast = rushlight.compile(step, fullgraph=True)
    while not rushlight.compiler.programs(fast):
        losses.append(float(fast()))
    losses.append(float(fast()))
    return fast, perf_counter() - start, losses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=1_000_000, help="elements of the elementwise and row-wise steps")
    parser.add_argument("--source", action="store_true", help="print the programs")
    options = parser.parse_args()
    torch.set_num_threads(int(os.environ["OPENBLAS_NUM_THREADS"]))
    print(f"{'':14s}{'torch':>9s}{'eager':>9s}{'compiled':>9s}   torch / compiled   ready after")
    for make in (chain, mlp, rows):
        program, ready, losses = compiled(make(rushlight, options.size))
        steps = [make(torch, options.size), make(rushlight, options.size), program]
        for other in steps[:2]:
            np.testing.assert_allclose([float(other().detach()) for _ in losses], losses, rtol=1e-4)
        calls = [max(1, int(SECONDS * 1e3 / timed(step, 1))) for step in steps]
        blocks = [[timed(step, n) for step, n in zip(steps, calls)] for _ in range(BLOCKS)]
        times = [median(column) for column in zip(*blocks)]
        ratio = median(block[0] / block[2] for block in blocks)
        print(f"{make.__name__:14s}" + "".join(f"{t:9.3f}" for t in times) + f"{ratio:12.1f}{ready:18.2f} s")
        if options.source:
            print(rushlight.compiler.source(program))


if __name__ == "__main__":
    main()
