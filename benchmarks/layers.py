"""Layers of convolutional nets against torch's in the same process, in turns: forward alone, and backward.

    env -u OPENBLAS_CORETYPE OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 python benchmarks/layers.py [name]

Prints a table in Markdown: milliseconds of the processor, the least of several calls in turns, and torch's divided by
ours (above 1: ours is faster). The input is a leaf, whose gradient is copied, as it is not in the middle of a net.

One thread of a Cascade Lake Xeon at 2.5 GHz (AVX-512) that others used, too, 21 November 2026, torch 2.13:

| layer, input | forward | torch / ours | backward | torch / ours |
|---|--:|--:|--:|--:|
| Conv2d(1, 6, 5), 64x1x28x28 | 0.61 | 1.93 | 1.34 | 4.68 |
| Conv2d(6, 16, 5), 64x6x12x12 | 0.65 | 0.80 | 1.36 | 1.28 |
| Conv2d(1, 32, 3), 64x1x28x28 | 1.59 | 1.56 | 3.61 | 2.22 |
| Conv2d(32, 64, 3), 64x32x26x26 | 10.35 | 1.52 | 22.78 | 1.39 |
| Conv2d(3, 32, 3, padding=1), 32x3x32x32 | 1.60 | 1.22 | 4.11 | 1.62 |
| Conv2d(32, 32, 3, padding=1), 32x32x32x32 | 5.00 | 1.56 | 10.80 | 1.41 |
| Conv2d(64, 64, 3, padding=1), 32x64x16x16 | 3.83 | 1.59 | 8.39 | 1.50 |
| Conv2d(128, 128, 3, padding=1), 8x128x28x28 | 12.18 | 1.39 | 24.84 | 1.37 |
| Conv2d(256, 256, 3, padding=1), 8x256x14x14 | 15.13 | 1.05 | 33.04 | 1.07 |
| Conv2d(512, 512, 3, padding=1), 8x512x7x7 | 22.07 | 0.77 | 49.63 | 0.90 |
| Conv2d(512, 512, 3, padding=1), 1x512x7x7 | 4.39 | 1.16 | 12.91 | 0.85 |
| Conv2d(32, 64, 3, stride=2, padding=1), 32x32x32x32 | 3.83 | 1.22 | 7.93 | 1.55 |
| Conv2d(128, 256, 3, stride=2, padding=1), 8x128x28x28 | 12.50 | 0.82 | 26.50 | 0.87 |
| Conv2d(3, 16, 3, stride=2, padding=1), 16x3x64x64 | 0.76 | 0.99 | 1.74 | 2.10 |
| Conv2d(64, 256, 1), 8x64x28x28 | 4.19 | 0.98 | 7.10 | 0.83 |
| Conv2d(256, 64, 1), 8x256x28x28 | 3.67 | 0.64 | 7.39 | 1.06 |
| Conv2d(16, 96, 1), 16x16x32x32 | 1.90 | 1.41 | 3.97 | 1.44 |
| Conv2d(512, 512, 1), 8x512x7x7 | 2.77 | 1.01 | 5.47 | 1.15 |
| Conv2d(64, 128, 1, stride=2), 32x64x16x16 | 1.24 | 1.24 | 2.29 | 1.66 |
| Conv2d(3, 64, 7, stride=2, padding=3), 4x3x112x112 | 3.43 | 0.87 | 11.32 | 1.54 |
| Conv2d(3, 64, 7, stride=2, padding=3), 1x3x224x224 | 3.76 | 0.83 | 12.43 | 1.37 |
| Conv2d(3, 96, 4, stride=4), 8x3x64x64 | 0.68 | 1.08 | 2.18 | 1.50 |
| Conv2d(3, 192, 16, stride=16), 4x3x224x224 | 3.29 | 0.99 | 22.42 | 1.33 |
| Conv2d(64, 64, 3, padding=1, groups=64), 16x64x16x16 | 0.87 | 0.90 | 1.47 | 1.09 |
| Conv2d(32, 32, 3, padding=1, groups=32), 16x32x56x56 | 2.93 | 1.52 | 6.60 | 1.35 |
| Conv2d(96, 96, 3, stride=2, padding=1, groups=96), 16x96x32x32 | 2.51 | 1.11 | 5.52 | 0.98 |
| Conv2d(256, 256, 3, padding=1, groups=256), 1x256x14x14 | 0.34 | 1.07 | 0.64 | 1.02 |
| Conv2d(96, 96, 5, padding=2, groups=96), 8x96x28x28 | 1.79 | 1.17 | 3.75 | 6.50 |
| Conv2d(96, 96, 7, padding=3, groups=96), 8x96x16x16 | 1.23 | 0.76 | 2.25 | 8.79 |
| Conv2d(128, 128, 3, padding=1, groups=4), 8x128x28x28 | 5.67 | 1.03 | 12.73 | 0.93 |
| Conv2d(128, 128, 3, padding=1, groups=32), 8x128x28x28 | 1.98 | 1.72 | 4.54 | 3.65 |
| Conv2d(64, 64, 3, padding=2, dilation=2), 8x64x32x32 | 6.52 | 0.94 | 13.57 | 0.96 |
| Conv2d(32, 64, 5, padding=2), 16x32x16x16 | 4.08 | 0.94 | 8.84 | 0.89 |
| ConvTranspose2d(128, 64, 4, stride=2, padding=1), 16x128x8x8 | 3.76 | 1.05 | 7.12 | 0.93 |
| ConvTranspose2d(64, 3, 4, stride=2, padding=1), 16x64x32x32 | 4.47 | 2.04 | 4.53 | 1.15 |
| ConvTranspose2d(100, 256, 4), 16x100x1x1 | 1.30 | 1.29 | 1.90 | 2.17 |
| ConvTranspose2d(64, 32, 2, stride=2), 4x64x32x32 | 2.29 | 1.32 | 3.46 | 1.03 |
| Conv1d(64, 64, 3, padding=1), 16x64x256 | 1.43 | 1.22 | 2.68 | 1.37 |
| Conv1d(100, 100, 5), 32x100x40 | 1.94 | 1.04 | 5.63 | 0.73 |
| Conv1d(1, 32, 80, stride=4), 8x1x8000 | 1.41 | 1.19 | 3.94 | 4.92 |
| Conv1d(32, 32, 3, padding=4, dilation=4), 8x32x1000 | 0.98 | 1.19 | 1.77 | 1.38 |
| Conv1d(256, 256, 4, padding=3, groups=256), 4x256x256 | 0.70 | 1.24 | 1.65 | 1.86 |
| Conv3d(3, 16, 3, padding=1), 2x3x8x32x32 | 1.05 | 1.00 | 2.51 | 1.37 |
| Conv3d(16, 32, 3, padding=1), 2x16x8x16x16 | 1.45 | 1.00 | 3.34 | 0.78 |
| Conv2d(64, 64, 3, padding=1), 1x64x56x56 | 2.12 | 1.29 | 4.48 | 1.21 |
| Conv2d(256, 256, 3, padding=1), 1x256x14x14 | 3.19 | 0.87 | 7.16 | 0.85 |
| Conv2d(256, 64, 1), 1x256x56x56 | 1.83 | 0.71 | 2.91 | 1.54 |
| Conv2d(1, 6, 5), 1x1x28x28 | 0.24 | 0.99 | 0.37 | 1.39 |
| Conv2d(16, 32, 3, padding=1), 1x16x14x14 | 0.20 | 0.78 | 0.46 | 0.70 |
| MaxPool2d(2), 64x6x24x24 | 0.34 | 5.09 | 0.63 | 0.60 |
| MaxPool2d(2), 32x64x32x32 | 1.60 | 9.67 | 2.28 | 1.10 |
| MaxPool2d(3, 2, 1), 4x64x56x56 | 2.74 | 3.10 | 0.89 | 1.26 |
| MaxPool1d(2), 16x64x256 | 0.30 | 0.91 | 0.32 | 1.74 |
| MaxPool2d(3, 1, 1), 8x32x28x28 | 1.52 | 5.27 | 0.46 | 1.41 |
| AvgPool2d(2), 32x64x32x32 | 4.73 | 1.57 | 3.19 | 2.72 |
| AvgPool2d(3, 1, 1), 8x64x28x28 | 2.91 | 2.41 | 2.42 | 3.23 |
| AvgPool1d(2), 16x64x256 | 0.39 | 3.72 | 0.35 | 4.10 |
| AdaptiveAvgPool2d(1), 32x256x7x7 | 0.18 | 1.10 | 0.26 | 1.94 |
| AdaptiveAvgPool2d(7), 8x64x20x20 | 2.00 | 0.71 | 1.37 | 1.06 |
| AdaptiveAvgPool2d(4), 32x64x8x8 | 0.41 | 3.93 | 0.33 | 5.24 |
| AdaptiveMaxPool2d(1), 32x256x7x7 | 0.99 | 1.44 | 0.29 | 1.51 |
| AdaptiveMaxPool1d(1), 32x100x36 | 0.42 | 1.27 | 0.13 | 1.39 |
| BatchNorm2d(32), 32x32x32x32 | 1.35 | 2.79 | 1.42 | 1.07 |
| BatchNorm2d(256), 8x256x14x14 | 0.48 | 3.12 | 0.59 | 0.99 |
| BatchNorm2d(64), 4x64x56x56 | 0.92 | 3.02 | 1.03 | 1.06 |
| BatchNorm2d(32).eval(), 32x32x32x32 | 0.75 | 1.04 | 1.61 | 0.95 |
| BatchNorm2d(64).eval(), 1x64x56x56 | 0.18 | 0.85 | 0.31 | 0.85 |
| BatchNorm2d(16), 64x16x8x8 | 0.23 | 1.38 | 0.19 | 0.92 |
| BatchNorm1d(256), 128x256 | 0.19 | 0.61 | 0.14 | 1.04 |
| BatchNorm1d(64), 16x64x256 | 0.36 | 2.87 | 0.43 | 1.11 |
| GroupNorm(8, 64), 16x64x16x16 | 0.24 | 1.05 | 0.36 | 1.10 |
| InstanceNorm2d(64), 8x64x32x32 | 0.49 | 3.79 | 0.69 | 1.00 |
| Upsample(scale_factor=2), 8x64x16x16 | 0.80 | 2.33 | 1.01 | 1.15 |
| Upsample(scale_factor=2, mode='bilinear'), 8x64x16x16 | 0.72 | 3.16 | 0.66 | 7.49 |
| Upsample(scale_factor=2, mode='bicubic'), 2x3x64x64 | 0.33 | 5.43 | 0.25 | 14.18 |
| Upsample(scale_factor=2, mode='linear'), 16x64x128 | 0.35 | 1.47 | 0.37 | 4.91 |
| Upsample(size=(20, 20)), 8x64x16x16 | 0.33 | 2.06 | 0.35 | 2.01 |
| ReflectionPad2d(1), 16x64x28x28 | 1.65 | 0.55 | 1.44 | 1.78 |
| PixelShuffle(2), 8x64x32x32 | 0.65 | 2.09 | 1.20 | 1.29 |
| PixelUnshuffle(2), 8x16x64x64 | 0.60 | 2.31 | 1.13 | 1.25 |
| PReLU(64), 8x64x28x28 | 0.50 | 0.91 | 5.85 | 0.56 |
| LogSoftmax(1), 8x21x64x64 | 1.15 | 1.10 | 0.89 | 1.33 |

Rows from MaxPool2d on were measured in the evening, with loops in the cache folder and paid for (PReLU's takes 400
calls).

What falls short: padding by reflection copies twice; windows of uneven sizes are slices of NumPy; small layers of one
image are calls of Python (0.1 ms) around 0.05 ms of work; products of 64 rows and less."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np
import torch

import rushlight

CALLS, SECONDS, PAID = (60, 1.2, 12)  # of each work: at most so many, so long; and so many for loops to be compiled
LAYERS = [
    ("Conv2d(1, 6, 5)", (64, 1, 28, 28)),
    ("Conv2d(6, 16, 5)", (64, 6, 12, 12)),
    ("Conv2d(1, 32, 3)", (64, 1, 28, 28)),
    ("Conv2d(32, 64, 3)", (64, 32, 26, 26)),
    ("Conv2d(3, 32, 3, padding=1)", (32, 3, 32, 32)),
    ("Conv2d(32, 32, 3, padding=1)", (32, 32, 32, 32)),
    ("Conv2d(64, 64, 3, padding=1)", (32, 64, 16, 16)),
    ("Conv2d(128, 128, 3, padding=1)", (8, 128, 28, 28)),
    ("Conv2d(256, 256, 3, padding=1)", (8, 256, 14, 14)),
    ("Conv2d(512, 512, 3, padding=1)", (8, 512, 7, 7)),
    ("Conv2d(512, 512, 3, padding=1)", (1, 512, 7, 7)),
    ("Conv2d(32, 64, 3, stride=2, padding=1)", (32, 32, 32, 32)),
    ("Conv2d(128, 256, 3, stride=2, padding=1)", (8, 128, 28, 28)),
    ("Conv2d(3, 16, 3, stride=2, padding=1)", (16, 3, 64, 64)),
    ("Conv2d(64, 256, 1)", (8, 64, 28, 28)),
    ("Conv2d(256, 64, 1)", (8, 256, 28, 28)),
    ("Conv2d(16, 96, 1)", (16, 16, 32, 32)),
    ("Conv2d(512, 512, 1)", (8, 512, 7, 7)),
    ("Conv2d(64, 128, 1, stride=2)", (32, 64, 16, 16)),
    ("Conv2d(3, 64, 7, stride=2, padding=3)", (4, 3, 112, 112)),
    ("Conv2d(3, 64, 7, stride=2, padding=3)", (1, 3, 224, 224)),
    ("Conv2d(3, 96, 4, stride=4)", (8, 3, 64, 64)),
    ("Conv2d(3, 192, 16, stride=16)", (4, 3, 224, 224)),
    ("Conv2d(64, 64, 3, padding=1, groups=64)", (16, 64, 16, 16)),
    ("Conv2d(32, 32, 3, padding=1, groups=32)", (16, 32, 56, 56)),
    ("Conv2d(96, 96, 3, stride=2, padding=1, groups=96)", (16, 96, 32, 32)),
    ("Conv2d(256, 256, 3, padding=1, groups=256)", (1, 256, 14, 14)),
    ("Conv2d(96, 96, 5, padding=2, groups=96)", (8, 96, 28, 28)),
    ("Conv2d(96, 96, 7, padding=3, groups=96)", (8, 96, 16, 16)),
    ("Conv2d(128, 128, 3, padding=1, groups=4)", (8, 128, 28, 28)),
    ("Conv2d(128, 128, 3, padding=1, groups=32)", (8, 128, 28, 28)),
    ("Conv2d(64, 64, 3, padding=2, dilation=2)", (8, 64, 32, 32)),
    ("Conv2d(32, 64, 5, padding=2)", (16, 32, 16, 16)),
    ("ConvTranspose2d(128, 64, 4, stride=2, padding=1)", (16, 128, 8, 8)),
    ("ConvTranspose2d(64, 3, 4, stride=2, padding=1)", (16, 64, 32, 32)),
    ("ConvTranspose2d(100, 256, 4)", (16, 100, 1, 1)),
    ("ConvTranspose2d(64, 32, 2, stride=2)", (4, 64, 32, 32)),
    ("Conv1d(64, 64, 3, padding=1)", (16, 64, 256)),
    ("Conv1d(100, 100, 5)", (32, 100, 40)),
    ("Conv1d(1, 32, 80, stride=4)", (8, 1, 8000)),
    ("Conv1d(32, 32, 3, padding=4, dilation=4)", (8, 32, 1000)),
    ("Conv1d(256, 256, 4, padding=3, groups=256)", (4, 256, 256)),
    ("Conv3d(3, 16, 3, padding=1)", (2, 3, 8, 32, 32)),
    ("Conv3d(16, 32, 3, padding=1)", (2, 16, 8, 16, 16)),
    ("Conv2d(64, 64, 3, padding=1)", (1, 64, 56, 56)),
    ("Conv2d(256, 256, 3, padding=1)", (1, 256, 14, 14)),
    ("Conv2d(256, 64, 1)", (1, 256, 56, 56)),
    ("Conv2d(1, 6, 5)", (1, 1, 28, 28)),
    ("Conv2d(16, 32, 3, padding=1)", (1, 16, 14, 14)),
    ("MaxPool2d(2)", (64, 6, 24, 24)),
    ("MaxPool2d(2)", (32, 64, 32, 32)),
    ("MaxPool2d(3, 2, 1)", (4, 64, 56, 56)),
    ("MaxPool1d(2)", (16, 64, 256)),
    ("MaxPool2d(3, 1, 1)", (8, 32, 28, 28)),
    ("AvgPool2d(2)", (32, 64, 32, 32)),
    ("AvgPool2d(3, 1, 1)", (8, 64, 28, 28)),
    ("AvgPool1d(2)", (16, 64, 256)),
    ("AdaptiveAvgPool2d(1)", (32, 256, 7, 7)),
    ("AdaptiveAvgPool2d(7)", (8, 64, 20, 20)),
    ("AdaptiveAvgPool2d(4)", (32, 64, 8, 8)),
    ("AdaptiveMaxPool2d(1)", (32, 256, 7, 7)),
    ("AdaptiveMaxPool1d(1)", (32, 100, 36)),
    ("BatchNorm2d(32)", (32, 32, 32, 32)),
    ("BatchNorm2d(256)", (8, 256, 14, 14)),
    ("BatchNorm2d(64)", (4, 64, 56, 56)),
    ("BatchNorm2d(32).eval()", (32, 32, 32, 32)),
    ("BatchNorm2d(64).eval()", (1, 64, 56, 56)),
    ("BatchNorm2d(16)", (64, 16, 8, 8)),
    ("BatchNorm1d(256)", (128, 256)),
    ("BatchNorm1d(64)", (16, 64, 256)),
    ("GroupNorm(8, 64)", (16, 64, 16, 16)),
    ("InstanceNorm2d(64)", (8, 64, 32, 32)),
    ("Upsample(scale_factor=2)", (8, 64, 16, 16)),
    ("Upsample(scale_factor=2, mode='bilinear')", (8, 64, 16, 16)),
    ("Upsample(scale_factor=2, mode='bicubic')", (2, 3, 64, 64)),
    ("Upsample(scale_factor=2, mode='linear')", (16, 64, 128)),
    ("Upsample(size=(20, 20))", (8, 64, 16, 16)),
    ("ReflectionPad2d(1)", (16, 64, 28, 28)),
    ("PixelShuffle(2)", (8, 64, 32, 32)),
    ("PixelUnshuffle(2)", (8, 16, 64, 64)),
    ("PReLU(64)", (8, 64, 28, 28)),
    ("LogSoftmax(1)", (8, 21, 64, 64)),
]


def works(lib: Any, layer: str, shape: tuple[int, ...]) -> tuple[Callable, Callable, Callable]:
    """A forward without a graph, one with it, and the backward of that."""
    module = eval(f"lib.nn.{layer}", {"lib": lib})
    rng = np.random.default_rng(0)
    x = lib.tensor(rng.standard_normal(shape, dtype=np.float32), requires_grad=True)
    g = lib.tensor(rng.standard_normal(tuple(module(x).shape), dtype=np.float32))
    made = []

    def forward() -> None:
        with lib.no_grad():
            module(x)

    def graph() -> None:
        for leaf in (x, *module.parameters()):
            leaf.grad = None
        made.append(module(x))

    return forward, graph, lambda: made.pop().backward(g)


def timed(work: Callable) -> float:
    start = process_time()
    work()
    return 1e3 * (process_time() - start)


def compare(layer: str, shape: tuple[int, ...]) -> list[list[float]]:
    """[[forward, backward] of torch, of ours], in ms."""
    both = [works(torch, layer, shape), works(rushlight, layer, shape)]
    for _ in range(PAID):
        for work in (*both[0], *both[1]):
            work()
    once = timed(both[0][0]) + timed(both[1][0])
    best = [[np.inf, np.inf], [np.inf, np.inf]]
    for _ in range(int(min(CALLS, max(5, SECONDS * 1e3 / (6 * max(once, 0.02)))))):
        for found, (forward, graph, backward) in zip(best, both):
            found[0] = min(found[0], timed(forward))
            graph()
            found[1] = min(found[1], timed(backward))
    return best


def main() -> None:
    torch.set_num_threads(1)
    rushlight.set_num_threads(1)
    chosen = [case for case in LAYERS if not sys.argv[1:] or sys.argv[1] in case[0]]
    print("| layer, input | forward | torch / ours | backward | torch / ours |\n|---|--:|--:|--:|--:|")
    for layer, shape in chosen:
        (f, b), (our_f, our_b) = compare(layer, shape)
        size = "x".join(map(str, shape))
        print(f"| {layer}, {size} | {our_f:.2f} | {f / our_f:.2f} | {our_b:.2f} | {b / our_b:.2f} |", flush=True)


if __name__ == "__main__":
    main()
