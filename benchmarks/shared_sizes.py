"""Machine code for any batch size beside machine code for one batch size: the ratio of the times of a call, in turns.

    python benchmarks/shared_sizes.py
    python benchmarks/shared_sizes.py lenet bert --batch 8

The compiled model of the first column has seen other batch sizes before, so that its programs share their code."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from served_models import MODELS

import rushlight

OTHERS = (3, 4)  # batch sizes whose programs make the shared code
ROUNDS, ROUND_SECONDS = 7, 0.1


def compiled(model: Any) -> Any:
    return rushlight.compile(lambda *args: model(*args))


def seconds(call: Callable[[], Any], calls: int) -> float:
    began = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - began) / calls


def measure(name: str, batch: int) -> str:
    """A row of the table."""
    model = MODELS[name].make(rushlight.nn).eval()
    drawn = lambda n: [rushlight.from_numpy(a) for a in MODELS[name].draw(np.random.default_rng(0), n)]
    shared, own, given = compiled(model), compiled(model), drawn(batch)
    for n in (*OTHERS, 2 * batch):
        for _ in range(2):
            shared(*drawn(n))
    for _ in range(4):
        shared(*given), own(*given)
    calls = max(1, int(ROUND_SECONDS / seconds(lambda: own(*given), 3)))
    rounds = [[seconds(lambda f=f: f(*given), calls) for f in (shared, own)] for _ in range(ROUNDS)]
    times = [1e3 * min(column) for column in zip(*rounds)]
    ratio = statistics.median([a / b for a, b in rounds])
    return f"| {name} | {batch} | {times[0]:.3f} | {times[1]:.3f} | {ratio:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--batch", type=int, nargs="+", default=[2, 8, 64])
    arguments = parser.parse_args()
    print("| model | batch | any size, ms | one size, ms | ratio |\n|---|--:|--:|--:|--:|")
    with rushlight.no_grad():
        for name in arguments.models or MODELS:
            for batch in arguments.batch:
                print(measure(name, batch), flush=True)


if __name__ == "__main__":
    main()
