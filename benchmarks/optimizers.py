"""Optimizer steps: rushlight beside torch's foreach and fused kernels, interleaved in one process.

    env -u OPENBLAS_CORETYPE python benchmarks/optimizers.py

torch's time / rushlight's (above 1: rushlight is faster), foreach and, where torch has one, fused; one thread, float32,
time of the processor, on a busy Xeon with two cores, 2026-11-21, torch 2.13:

    parameters           SGD, momentum   Adam          RMSprop, momentum   Rprop
    10 of 16x16          2.6   1.3       4.9   1.6     4.3                 12.8
    100 of 16x16         2.1   0.7       4.6   1.4     3.9
    10 of 316x316        1.8   1.0       5.3   1.1     3.3                 10.6
    100 of 100x100       1.7   0.9       4.5   1.1     3.1                  9.3

By NumPy's calls, as before a loop has been paid for, Adam's were 2.3 and 0.9, 1.7 and 0.6, 1.5 and 0.4, 2.0 and 0.5."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from statistics import median
from time import perf_counter, process_time
from typing import Any

import torch

import rushlight

BLOCKS, SECONDS = 15, 0.02
FUSED = ("SGD", "Adam", "AdamW", "Adagrad")  # those for which torch has a fused kernel on CPU
SETTINGS: dict[str, dict[str, Any]] = {"SGD": {"lr": 1e-3, "momentum": 0.9}, "RMSprop": {"momentum": 0.9}}
SIZES = {
    "10 of 16x16": (10, (16, 16)),
    "100 of 16x16": (100, (16, 16)),
    "10 of 316x316, 1 M in all": (10, (316, 316)),
    "100 of 100x100, 1 M in all": (100, (100, 100)),
}


def stepper(lib: Any, name: str, count: int, shape: tuple[int, int], **how: Any) -> Callable[[], None]:
    """`step` of an optimizer whose parameters have gradients."""
    lib.manual_seed(0)
    params = [lib.randn(*shape).requires_grad_() for _ in range(count)]
    for p in params:
        p.grad = lib.randn(*shape)
    optimizer = getattr(lib.optim, name)(params, **SETTINGS.get(name, {}), **how)
    if lib is rushlight:
        optimizer.loop(params[0]).build()  # as it is once steps have cost enough
    return optimizer.step


def block(work: Callable[[], None], calls: int) -> float:
    """Seconds of a call: of the processor where one thread works, so that others on the machine do not count."""
    clock = process_time if torch.get_num_threads() == 1 else perf_counter
    start = clock()
    for _ in range(calls):
        work()
    return (clock() - start) / calls


def compare(name: str, count: int, shape: tuple[int, int]) -> tuple[float, list[float]]:
    """Microseconds of our step, and how many times as long torch takes: foreach, and fused where there is one."""
    works = [stepper(rushlight, name, count, shape), stepper(torch, name, count, shape, foreach=True)]
    if name in FUSED:
        works.append(stepper(torch, name, count, shape, fused=True))
    for work in works:
        block(work, 3)
    once = min(block(works[0], 3) for _ in range(5))
    calls = max(1, int(SECONDS / once))
    rounds = [[block(work, calls) for work in works] for _ in range(BLOCKS)]
    return min(r[0] for r in rounds) * 1e6, [median(r[k] / r[0] for r in rounds) for k in range(1, len(works))]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="SGD,Adam,AdamW,RMSprop,Adagrad,Adadelta,Adamax,NAdam,RAdam,ASGD,Rprop")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    rushlight.set_num_threads(options.threads)
    for title, (count, shape) in SIZES.items():
        print(f"{title:32}{'us':>10}{'torch foreach':>16}{'torch fused':>14}")
        for name in options.only.split(","):
            us, ratios = compare(name, count, shape)
            print(f"    {name:28}{us:10.1f}" + "".join(f"{r:{w}.2f}" for r, w in zip(ratios, (16, 14))))


if __name__ == "__main__":
    main()
