"""Recurrent layers, forward and back: rushlight beside torch, interleaved in one process.

    env -u OPENBLAS_CORETYPE OPENBLAS_NUM_THREADS=1 python benchmarks/recurrent.py

Milliseconds of rushlight's pass, and torch's time / rushlight's (above 1: rushlight is faster); one thread, float32, time of
the processor, on a busy Xeon with two cores, 2026-11-21, torch 2.13:

    steps x sequences x width       LSTM            LSTM, 2 layers, both directions   GRU             RNN
    50x32x128                       19.3  0.84      80.7  0.93                 13.7  1.88      5.6  1.68
    100x16x256                      64.8  0.90       289  1.08                 45.6  1.87     16.4  1.76
    20x64x100                       10.5  0.95      46.7  0.98                  8.5  1.73      3.7  1.42
    30x4x24 (NumPy does it)          1.6  0.60       6.0  0.58                  1.9  3.73      0.9  3.29

torch has one op of oneDNN for an LSTM, and none for the others. The whole step of a character model (../shared/bench, W6),
eager, took 46 ms before there were loops and 22 to 24 ms with them; compiled 14.6 ms, since the table of 65 rows is
multiplied in place of 1600 rows that are looked up in it; torch 20.5 ms.
"""
from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import process_time
from typing import Any

import torch

import rushlight

BLOCKS = 15
LAYERS: list[tuple[str, dict[str, Any]]] = [("LSTM", {}), ("LSTM", {"num_layers": 2, "bidirectional": True}), ("GRU", {}),
                                            ("RNN", {})]
SIZES = [(50, 32, 128), (100, 16, 256), (20, 64, 100), (30, 4, 24)]       # steps, sequences, features and hidden units


def work(lib: Any, name: str, settings: dict[str, Any], size: tuple[int, int, int]) -> Callable[[], None]:
    """Forward and back through a layer."""
    lib.manual_seed(0)
    steps, batch, width = size
    module = getattr(lib.nn, name)(width, width, **settings)
    x = lib.randn(steps, batch, width, requires_grad=True)

    def run() -> None:
        module.zero_grad()
        module(x)[0].sum().backward()
    return run


def block(run: Callable[[], None], calls: int) -> float:
    start = process_time()
    for _ in range(calls):
        run()
    return (process_time() - start) / calls


def compare(name: str, settings: dict[str, Any], size: tuple[int, int, int]) -> tuple[float, float]:
    """Milliseconds of ours, and the median of torch's time / ours."""
    ours, theirs = (work(lib, name, settings, size) for lib in (rushlight, torch))
    for run in (ours, theirs):
        block(run, 2)
    calls = max(1, round(0.03 / block(theirs, 1)))
    pairs = [(block(ours, calls), block(theirs, calls)) for _ in range(BLOCKS)]
    return min(own for own, _ in pairs) * 1e3, median([other / own for own, other in pairs])


def main() -> None:
    torch.set_num_threads(1)
    rushlight.set_num_threads(1)
    for name, settings in LAYERS:
        shown = f"{name}, 2 layers, both directions" if settings else name
        for size in SIZES:
            ms, ratio = compare(name, settings, size)
            print(f"    {shown:32} {'x'.join(map(str, size)):12} {ms:8.2f} ms {ratio:6.2f}", flush=True)


if __name__ == "__main__":
    main()
