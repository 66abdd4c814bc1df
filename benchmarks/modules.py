"""Calls of modules and of functions of nn on little data, against torch's in the same process, in turns.

    env -u OPENBLAS_CORETYPE OPENBLAS_NUM_THREADS=1 python benchmarks/modules.py

Prints a table in Markdown: microseconds of a call without gradients, of one with its backward, and torch's divided by
ours. Time of the processor, one thread, the least of several blocks in turns: what others do on the machine counts
little.

Intel Xeon at 2.5 GHz (Cascade Lake, AVX-512), a busy machine, 21 November 2026, torch 2.13, NumPy 2.4, Numba 0.68:

| us | torch | rushlight | ratio | with backward | rushlight | ratio |
|---|--:|--:|--:|--:|--:|--:|
| Linear, 1x16 | 13.8 | 7.9 | 1.75 | 133 | 80 | 1.67 |
| Linear, 12x64x128 -> 512 | 969.7 | 1261.4 | 0.77 | 3580 | 4463 | 0.80 |
| LayerNorm, 1x16 | 11.6 | 35.6 | 0.32 | 91 | 195 | 0.47 |
| LayerNorm, 64x128 | 22.1 | 40.2 | 0.55 | 130 | 253 | 0.51 |
| LayerNorm, 768x128 | 121.8 | 103.3 | 1.18 | 393 | 506 | 0.78 |
| Embedding, 4 of 65x16 | 11.9 | 14.3 | 0.83 | 85 | 80 | 1.06 |
| Dropout in eval, 1x16 | 5.8 | 1.3 | 4.39 | 44 | 17 | 2.63 |
| gelu, 1x16 | 17.1 | 26.7 | 0.64 | 125 | 105 | 1.19 |
| gelu, 64x512 | 36.4 | 52.7 | 0.69 | 245 | 151 | 1.62 |
| gelu, 768x512 | 248.7 | 519.7 | 0.48 | 1146 | 1111 | 1.03 |
| softmax, 1x16 | 2.9 | 12.6 | 0.23 | 54 | 59 | 0.93 |
| softmax, 768x128 | 112.5 | 119.7 | 0.94 | 275 | 259 | 1.06 |
| cross_entropy, 4x10 | 7.8 | 32.6 | 0.24 | 72 | 109 | 0.66 |
| cross_entropy, 768x65 | 92.6 | 145.1 | 0.64 | 324 | 350 | 0.93 |
| attention, 1x4x8x32 | 25.1 | 75.6 | 0.33 | 190 | 295 | 0.64 |
| attention, 1x4x64x32 | 68.5 | 120.3 | 0.57 | 373 | 406 | 0.92 |
| attention, 12x4x64x32 | 719.6 | 716.7 | 1.00 | 3009 | 2275 | 1.32 |
| attention, 1x4x512x32 | 2060.8 | 1742.8 | 1.18 | 6859 | 4774 | 1.44 |
| MultiheadAttention, 1x4x16, 2 heads | 184.3 | 283.4 | 0.65 | 884 | 1026 | 0.86 |

What is small costs what NumPy's calls cost: 8 of them in softmax, 13 in layer norm, 20 in cross_entropy, 1 us each
here."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import rushlight


def data(lib: Any, *shape: int, seed: int = 0) -> Any:
    return lib.tensor(np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32))


def attention(lib: Any, batch: int, length: int, causal: bool) -> tuple[Callable, list]:
    q, k, v = (data(lib, batch, 4, length, 32, seed=i) for i in range(3))
    return lambda q, k, v: lib.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal), [q, k, v]


def cases(lib: Any) -> dict[str, tuple[Callable, list]]:
    """What is called, and the arguments that ask for a gradient."""
    nn, F = lib.nn, lib.nn.functional
    heads = nn.MultiheadAttention(16, 2, batch_first=True)
    table, classes = nn.Embedding(65, 16), lib.tensor([1, 2, 3, 4])
    places, many = lib.tensor([[1, 5, 2, 64]]), lib.tensor(np.arange(768) % 65)
    return {
        "Linear, 1x16": (nn.Linear(16, 16), [data(lib, 1, 16)]),
        "Linear, 12x64x128 -> 512": (nn.Linear(128, 512), [data(lib, 12, 64, 128)]),
        "LayerNorm, 1x16": (nn.LayerNorm(16), [data(lib, 1, 16)]),
        "LayerNorm, 64x128": (nn.LayerNorm(128), [data(lib, 64, 128)]),
        "LayerNorm, 768x128": (nn.LayerNorm(128), [data(lib, 768, 128)]),
        "Embedding, 4 of 65x16": (lambda: table(places), []),
        "Dropout in eval, 1x16": (nn.Dropout(0.1).eval(), [data(lib, 1, 16)]),
        "gelu, 1x16": (F.gelu, [data(lib, 1, 16)]),
        "gelu, 64x512": (F.gelu, [data(lib, 64, 512)]),
        "gelu, 768x512": (F.gelu, [data(lib, 768, 512)]),
        "softmax, 1x16": (lambda x: lib.softmax(x, -1), [data(lib, 1, 16)]),
        "softmax, 768x128": (lambda x: lib.softmax(x, -1), [data(lib, 768, 128)]),
        "cross_entropy, 4x10": (lambda x: F.cross_entropy(x, classes), [data(lib, 4, 10)]),
        "cross_entropy, 768x65": (lambda x: F.cross_entropy(x, many), [data(lib, 768, 65)]),
        "attention, 1x4x8x32": attention(lib, 1, 8, True),
        "attention, 1x4x64x32": attention(lib, 1, 64, True),
        "attention, 12x4x64x32": attention(lib, 12, 64, True),
        "attention, 1x4x512x32": attention(lib, 1, 512, True),
        "MultiheadAttention, 1x4x16, 2 heads": (lambda x: heads(x, x, x, need_weights=False)[0], [data(lib, 1, 4, 16)]),
    }


def runs(lib: Any, function: Callable, given: list) -> list[Callable[[], Any]]:
    """A call without gradients, and one with its backward."""
    leaves = [x.clone().requires_grad_() for x in given]
    slope = lib.ones(tuple(function(*given).shape))

    def both() -> None:
        function(*leaves).backward(slope)
        for x in leaves:
            x.grad = None

    def alone() -> None:
        with lib.no_grad():
            for _ in range(10):
                function(*given)

    return [alone, both]


def least(functions: list[Callable], seconds: float) -> list[float]:
    """For each the least processor time of a call over blocks in turns."""
    found = [float("inf")] * len(functions)
    counts = []
    for f in functions:
        for _ in range(5):
            f()
        start = time.process_time()
        f()
        counts.append(max(1, int(0.004 / max(time.process_time() - start, 1e-6))))
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for i, (f, n) in enumerate(zip(functions, counts)):
            start = time.process_time()
            for _ in range(n):
                f()
            found[i] = min(found[i], (time.process_time() - start) / n)
    return found


def main() -> None:
    import torch

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="for each line")
    seconds = parser.parse_args().seconds
    for lib in (torch, rushlight):
        lib.set_num_threads(1)
    print("| us | torch | rushlight | ratio | with backward | rushlight | ratio |\n|---|--:|--:|--:|--:|--:|--:|")
    theirs, ours = cases(torch), cases(rushlight)
    for name in ours:
        (a, both_a), (b, both_b) = runs(torch, *theirs[name]), runs(rushlight, *ours[name])
        alone_a, alone_b, with_a, with_b = (s * 1e6 for s in least([a, b, both_a, both_b], seconds))
        print(
            f"| {name} | {alone_a / 10:.1f} | {alone_b / 10:.1f} | {alone_a / alone_b:.2f} | {with_a:.0f} | "
            f"{with_b:.0f} | {with_a / with_b:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
