"""Random numbers: rushlight beside torch, in one process, one thread, 1 M float32 unless said.

    env -u OPENBLAS_CORETYPE python benchmarks/random_numbers.py [--without-llvmlite] [names]

The two take turns; printed are the medians in ms and their ratio. Both draw the same bits. On a shared Xeon of 2.5 GHz,
two cores, torch 2.13 (rushlight / torch, with compiled loops and without):

    rand 0.9, 1.1               uniform_ 0.5, 4.8           randn 0.8, 9.2          normal_ 0.8, 14
    rand float64 0.7, 1.6       randn float64 1.5, 11       randn 1000 3.1, 21      exponential_ 0.6, 5.1
    bernoulli 0.4, 0.8          bernoulli_ 0.3, 0.9         dropout 0.4, 1.0        randint 0.6, 0.8
    randperm 100 k 1.3, 3.4     multinomial 2.0, 2.0        multinomial rows 1.2, 3.9

Poisson numbers take 0.9 times torch's time; without llvmlite they, binomial and gamma ones are made one at a time in
Python and take 35 to 100 times. The other figures with loops are from when Numba compiled the loops; the present loops
take 0.6 to 1.0 times as long."""

from __future__ import annotations

import sys
from collections.abc import Callable
from statistics import median
from time import perf_counter
from types import ModuleType

import torch

import rushlight

N, ROUNDS, WARM = 1_000_000, 15, 6
SLOW = ("poisson",)  # one number at a time in Python


def cases(lib: ModuleType) -> dict[str, Callable]:
    x, p = lib.empty(N), lib.full((N,), 0.3)
    weights, rows = lib.linspace(0.1, 1, 1000), lib.linspace(0.1, 1, 64_000).reshape(64, 1000)
    return {
        "rand": lambda: lib.rand(N),
        "randn": lambda: lib.randn(N),
        "uniform_": lambda: x.uniform_(-1, 2),
        "normal_": lambda: x.normal_(1, 2),
        "rand float64": lambda: lib.rand(N, dtype=lib.float64),
        "randn float64": lambda: lib.randn(N, dtype=lib.float64),
        "randn 1000": lambda: lib.randn(1000),
        "exponential_": lambda: x.exponential_(),
        "bernoulli": lambda: lib.bernoulli(p),
        "bernoulli_": lambda: x.bernoulli_(0.3),
        "dropout": lambda: lib.dropout(p, 0.3, True),
        "randint": lambda: lib.randint(10, (N,)),
        "randperm 100 k": lambda: lib.randperm(100_000),
        "multinomial": lambda: lib.multinomial(weights, 1000, True),
        "multinomial rows": lambda: lib.multinomial(rows, 1),
        "poisson": lambda: lib.poisson(p),
    }


def seconds(work: Callable) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


def main() -> None:
    torch.set_num_threads(1)
    wanted = set(sys.argv[1:])
    if "--without-llvmlite" in wanted:
        sys.modules["llvmlite"] = None  # type: ignore[assignment]
    wanted.discard("--without-llvmlite")
    ours, theirs = cases(rushlight), cases(torch)
    print(f"{'ms':20}{'rushlight':>10}{'torch':>10}{'ratio':>8}")
    for name in ours:
        if wanted and name not in wanted:
            continue
        for _ in range(1 if name in SLOW else 40 if "100 k" in name else WARM):
            ours[name]()
        pairs = [(seconds(ours[name]), seconds(theirs[name])) for _ in range(3 if name in SLOW else ROUNDS)]
        a, b = (median(times) * 1e3 for times in zip(*pairs))
        print(f"{name:20}{a:10.3f}{b:10.3f}{a / b:8.2f}")


if __name__ == "__main__":
    main()
