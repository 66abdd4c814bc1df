"""The cost of one call: rushlight beside torch, in one process, one thread, on 3x4 float32 and small images.

    env -u OPENBLAS_CORETYPE python benchmarks/overhead.py

The two engines take turns in short blocks, so that a busy machine slows both; printed are each one's best block, and
the median over blocks of the ratio torch / rushlight (above 1: rushlight is cheaper)."""

from __future__ import annotations

import gc
from collections.abc import Callable
from importlib import import_module
from statistics import median
from time import perf_counter
from types import ModuleType

import torch

import rushlight

BLOCKS, CALLS, CHAIN = 60, 1000, 100


def cases(lib: ModuleType) -> dict[str, tuple[Callable, int]]:
    """name -> (work, how many of what is counted it does)."""
    a = lib.linspace(0.5, 1, 12).reshape(3, 4).requires_grad_()
    b = lib.linspace(0.1, 1, 12).reshape(3, 4).requires_grad_()
    y = a
    for _ in range(CHAIN):
        y = y * b
    out = y.sum()
    w, x = lib.ones(10, 4, requires_grad=True), lib.ones(3, 4)
    nn, F = import_module(f"{lib.__name__}.nn"), import_module(f"{lib.__name__}.nn.functional")
    image, filters = lib.rand(2, 3, 8, 8, requires_grad=True), lib.rand(4, 3, 3, 3, requires_grad=True)
    norm, rows = nn.BatchNorm2d(3), nn.LayerNorm(4)

    def step() -> None:
        F.linear(x, w).relu().sum().backward()

    return {
        "mul with grad": (lambda: a * b, 1),
        "add with grad": (lambda: a + b, 1),
        "tanh with grad": (lambda: a.tanh(), 1),
        "sum with grad": (lambda: a.sum(), 1),
        "mul by a number": (lambda: a * 2.5, 1),
        "transpose": (lambda: a.transpose(0, 1), 1),
        "index a row": (lambda: a[1], 1),
        "reshape": (lambda: a.reshape(4, 3), 1),
        "matmul": (lambda: x @ a.T, 1),
        "backward, a node of mul": (lambda: out.backward(retain_graph=True), CHAIN),
        "linear, relu, sum, backward": (step, 1),
        "conv2d of 2x3x8x8": (lambda: F.conv2d(image, filters, padding=1), 1),
        "conv2d, sum, backward": (lambda: F.conv2d(image, filters, padding=1).sum().backward(), 1),
        "max_pool2d": (lambda: F.max_pool2d(image, 2), 1),
        "avg_pool2d": (lambda: F.avg_pool2d(image, 2), 1),
        "max_pool2d, sum, backward": (lambda: F.max_pool2d(image, 2).sum().backward(), 1),
        "BatchNorm2d": (lambda: norm(image), 1),
        "LayerNorm": (lambda: rows(a), 1),
        "zero_": (lambda: x.zero_(), 1),
        "randn": (lambda: lib.randn(4, 8), 1),
    }


def block(work: Callable, calls: int) -> float:
    start = perf_counter()
    for _ in range(calls):
        work()
    return (perf_counter() - start) / calls


def main() -> None:
    torch.set_num_threads(1)
    rushlight.set_num_threads(1)
    ours, theirs = cases(rushlight), cases(torch)
    print(f"{'us':32}{'rushlight':>10}{'torch':>10}{'torch / rushlight':>20}")
    for name, (work, count) in ours.items():
        other, _ = theirs[name]
        calls = max(CALLS // count, 20)
        gc.collect()
        pairs = [(block(work, calls), block(other, calls)) for _ in range(BLOCKS)]
        best = [min(p[i] for p in pairs) / count * 1e6 for i in (0, 1)]
        print(f"{name:32}{best[0]:>10.2f}{best[1]:>10.2f}{median(t / r for r, t in pairs):>20.2f}")


if __name__ == "__main__":
    main()
