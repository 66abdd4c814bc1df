"""Ops on matrices against torch's in the same process, in turns: forward alone, and backward.

    env -u OPENBLAS_CORETYPE OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 python benchmarks/ops.py [part of a name [10x10
    ...]]

Prints a table in Markdown: microseconds of the processor, the least of many calls in turns, and torch's divided by ours
(above 1: ours is faster); float32, x, y and w > 0 of one shape, m a mask as good as random, i indices. A call counts
with entering and leaving `no_grad`; backward with the leaves' gradients.

One thread of a Cascade Lake Xeon at 2.5 GHz (AVX-512) on which three others worked, 22 November 2026, 10:35, torch 2.13
(so it is the ratios that say something):

| op | 128x400 | torch / ours | backward | torch / ours | 1000x1000 | torch / ours | backward | torch / ours |
|---|--:|--:|--:|--:|--:|--:|--:|--:|
| where(m, x, y) | 207 | 1.66 | 299 | 2.30 | 2829 | 1.91 | 4514 | 2.35 |
| where(x > 0, x, 0.) | 258 | 1.69 | 195 | 2.17 | 2093 | 3.02 | 2619 | 2.06 |
| x.masked_fill(m, 0.) | 194 | 1.97 | 165 | 2.73 | 1729 | 3.51 | 1914 | 3.30 |
| x.masked_select(m) | 241 | 2.26 | 235 | 2.21 | 2495 | 4.14 | 5048 | 1.28 |
| x.nonzero() | 393 | 0.91 |  |  | 13625 | 0.47 |  |  |
| x.clamp(-1, 1) | 109 | 0.59 | 215 | 2.34 | 1113 | 0.91 | 3636 | 1.79 |
| x.clamp(min=0) | 105 | 0.61 | 174 | 2.79 | 1083 | 0.86 | 3061 | 2.14 |
| x.maximum(y) | 94 | 1.19 | 659 | 1.95 | 1526 | 0.85 | 14754 | 1.47 |
| x.sign() | 93 | 0.50 | 76 | 1.72 | 1933 | 0.51 | 720 | 1.24 |
| x.lerp(y, .3) | 121 | 0.56 | 119 | 1.40 | 2246 | 0.54 | 2343 | 0.92 |
| x.nan_to_num() | 99 | 0.67 | 123 | 3.90 | 1583 | 0.66 | 1853 | 3.84 |
| x % 1.5 | 429 | 0.61 | 140 | 1.55 | 6727 | 0.57 | 226 | 5.67 |
| remainder(x, w) | 562 | 0.51 | 624 | 1.10 | 1823 | 2.28 | 9609 | 0.92 |
| fmod(x, w) | 772 | 0.36 | 405 | 1.31 | 1993 | 2.08 | 4665 | 1.07 |
| div(x, w, rounding_mode='floor') | 578 | 0.68 | 243 | 1.37 | 10039 | 0.75 | 1804 | 0.84 |
| x ** 4 | 265 | 1.27 | 324 | 1.22 | 3532 | 1.44 | 4623 | 0.75 |
| logaddexp(x, y) | 415 | 0.65 | 486 | 1.47 | 7159 | 0.46 | 11475 | 0.81 |
| x.tril() | 82 | 0.57 | 94 | 1.18 | 1579 | 1.06 | 1582 | 1.14 |
| x.roll(1, 1) | 54 | 1.10 | 63 | 1.71 | 1157 | 1.07 | 1305 | 1.13 |
| w.prod() | 77 | 0.62 | 112 | 2.53 | 735 | 0.89 | 1603 | 2.55 |
| w.prod(1) | 135 | 0.44 | 186 | 1.95 | 1560 | 0.49 | 3057 | 2.52 |
| x.sum(1) | 75 | 0.59 | 68 | 1.52 | 694 | 0.74 | 686 | 1.28 |
| x.mean(1) | 113 | 0.64 | 93 | 2.24 | 707 | 0.75 | 664 | 1.72 |
| x.std(1) | 171 | 3.21 | 186 | 1.85 | 874 | 9.08 | 1140 | 2.39 |
| x.cumsum(1) | 306 | 0.49 | 422 | 0.81 | 1812 | 0.97 | 5184 | 0.79 |
| x.cumprod(1) | 298 | 0.48 | 545 | 1.14 | 1841 | 0.95 | 6478 | 1.29 |
| x.nansum() | 102 | 0.82 | 207 | 2.04 | 585 | 1.20 | 1538 | 2.67 |
| x.argmax(1) | 22 | 5.73 |  |  | 566 | 3.92 |  |  |
| x.median(1)[0] | 992 | 1.18 | 332 | 1.22 | 8019 | 2.15 | 2243 | 0.51 |
| x.sort()[0] | 2923 | 0.97 | 602 | 0.73 | 66283 | 1.07 | 10510 | 0.40 |
| x.topk(5)[0] | 833 | 0.57 | 310 | 1.04 | 6291 | 0.54 | 1734 | 0.56 |
| x.topk(5, 0)[0] | 867 | 0.87 | 261 | 1.04 | 7460 | 0.59 | 1636 | 0.60 |
| x.topk(1)[0] | 89 | 1.89 | 141 | 0.96 | 728 | 3.50 | 1622 | 0.57 |
| x.gather(1, i) | 270 | 0.62 | 385 | 0.79 | 5454 | 0.50 | 8850 | 0.38 |
| zeros_like(x).scatter(1, i, x) | 590 | 0.43 | 492 | 0.81 | 11429 | 0.40 | 7392 | 0.57 |
| zeros_like(x).scatter_add(1, i, x) | 522 | 0.55 | 482 | 0.84 | 9508 | 0.49 | 7129 | 0.50 |
| x[:, i[0]] | 272 | 1.66 | 562 | 1.11 | 6974 | 1.19 | 5319 | 1.61 |
| x.index_select(1, i[0]) | 274 | 0.57 | 487 | 0.76 | 2637 | 0.58 | 4555 | 0.66 |
| zeros_like(x).index_put((i[:, 0] % len(x),), x, accumulate=True) | 219 | 0.97 | 108 | 1.78 | 2536 | 1.08 | 1000 | 1.34 |
| nn.functional.one_hot(i[:, 0]) | 102 | 0.66 |  |  | 1172 | 1.22 |  |  |
| i.unique() | 509 | 4.04 |  |  | 8325 | 7.98 |  |  |
| einsum('ij,kj->ik', x[:100], y[:100]) | 326 | 0.95 | 439 | 1.36 | 621 | 1.10 | 2085 | 1.15 |
| arange(x.numel()) | 58 | 0.95 |  |  | 1083 | 1.16 |  |  |
| linspace(0, 1, x.numel()) | 206 | 0.47 |  |  | 6389 | 0.43 |  |  |
| randn(x.shape) | 4183 | 0.16 |  |  | 16999 | 0.66 |  |  |
| randperm(x.numel()) | 5461 | 0.26 |  |  | 37892 | 2.02 |  |  |
| nn.functional.leaky_relu(x) | 96 | 0.64 | 187 | 0.75 | 2042 | 0.47 | 4638 | 0.30 |
| nn.functional.relu6(x) | 81 | 0.81 | 153 | 0.77 | 930 | 1.05 | 1562 | 0.86 |
| nn.functional.smooth_l1_loss(x, y) | 260 | 0.71 | 335 | 0.82 | 1827 | 0.91 | 6846 | 0.51 |
| nn.functional.huber_loss(x, y) | 276 | 0.67 | 320 | 0.85 | 1731 | 1.03 | 5462 | 0.66 |
| nn.functional.gumbel_softmax(x) | 6531 | 0.29 | 296 | 1.25 | 47510 | 0.68 | 3553 | 0.69 |

After 12 calls of each: loops that are compiled once they have paid are those of the cache folder, or not there yet
(leaky_relu, lerp, x % 1.5, cumsum and remainders of 51,200, randn). Where theirs had paid, 2 million numbers gave x %
1.5 2.95, fmod(x, w) 2.35, remainder(x, w) 2.6, smooth_l1_loss 0.96.

That morning's changes, torch / ours before and after, of 128x400, 1000x1000: fmod 0.41, 0.36 to 0.36, 2.1 (by the
loop); remainder 0.55, 0.45 to 0.51, 2.3; nansum 0.37, 0.28 to 0.82, 1.2; unique 0.49, 0.37 to 4.0, 8.0; arange 0.49,
0.29 to 0.95, 1.16; linspace 0.26, 0.08 to 0.47, 0.43; leaky_relu 0.42, 0.27 to 0.64, 0.47; smooth_l1_loss 0.45, 0.21 to
0.71, 0.91; tril 0.45, 1.0 to 0.57, 1.06; prod(1) 0.44, 0.38 to 0.44, 0.49. Sums along rows by BLAS (sum(1) 0.56 to 0.84
of 128x400) were taken back: the last bits of a row's sum then depend on how many rows there are, and layer_norm's with
them. Of 10x10, forward: einsum 0.66 to 0.97, where 0.55 to 0.76, masked_fill 0.57 to 0.74, tril 0.41 to 0.56,
leaky_relu 0.66 to 0.87, randperm 0.21 to 0.33, randn 0.09 to 0.13 (0.2 once its loop has paid). `tensor` of a list of
10,000 numbers: 0.15 to 1.9.

That afternoon's, 13:47, before and after: of 128x400 sum(1) 0.31 to 0.72 and mean(1) 0.39 to 0.82 (by einsum, with the
same bits for a row among any number of rows), softshrink 0.10 to 0.38, prelu 0.22 to 0.35, multinomial 0.26 to 1.15,
gumbel_softmax 0.55 to 0.99, unique_consecutive of 51,200 0.13 to 0.90; of 4x8 one_hot 0.28 to 1.0, randn 0.04 to 0.29,
median(1) 0.24 to 0.34, var(1) 0.22 to 0.34, zero_ 0.38 to 0.53; of images, forward and with backward: conv2d of 1x3x8x8
0.30, 0.71 to 0.55, 1.35, of 2x3x8x8 1.3, 2.0 to 2.3, 3.5, of one tap 0.29, 0.68 to 0.58, 1.2; max_pool2d of 2x3x8x8
0.13, 0.41 to 0.29, 0.61.

And 17:03's (cumprod's row is of then), on a quiet machine, loops loaded and paid: of 128x400 x.half() 0.04 to 0.84,
h.float() 0.09 to 0.79, h + h 0.05 to 0.67, h * 2 0.04 to 0.64, h.sum() 0.08 to 0.32, bfloat16's b + b 0.18 to 0.68,
relu 0.25 to 0.59, cumprod(1) 0.39 to 0.94 once paid, expand with backward 0.13 to 1.0; of 4x8 take_along_dim 0.20 to
0.47, index_add 0.20 to 0.45, index_copy 0.28 to 0.58, gather 0.38 to 0.44, scatter 0.28 to 0.31, std(0) 0.29 to 0.33,
uniform_ 0.11 to 0.15, arange(0, 1, 0.125) 0.17 to 0.89; of 2x3x8x8 adaptive_avg_pool2d(x, 3) 0.13 to 0.39, avg_pool2d
0.25 to 0.32, area interpolation 0.18 to 0.65, BatchNorm2d 0.33 to 0.39.

What falls short: `x ** 4` backward is NumPy's `**`, 100 times as slow for numbers below 0; gather and scatter compute
flat places first; random normals have torch's bits, in NumPy by 70 calls; sines of float64 (0.2) have no vectors in
NumPy; small grid_sample (0.05), pools, topk, std, CTC are many calls."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np
import torch

import rushlight

SHAPES = [tuple(map(int, shape.split("x"))) for shape in sys.argv[2:]] or [(128, 400), (1000, 1000)]
PAID, SECONDS, LEAST, MOST = (12, 0.25, 4, 400)  # calls for loops to be compiled; of each case: seconds, calls
OPS = """
where(m, x, y)
where(x > 0, x, 0.)
x.masked_fill(m, 0.)
x.masked_select(m)
x.nonzero()
x.clamp(-1, 1)
x.clamp(min=0)
x.maximum(y)
x.sign()
x.lerp(y, .3)
x.nan_to_num()
x % 1.5
remainder(x, w)
fmod(x, w)
div(x, w, rounding_mode='floor')
x ** 4
logaddexp(x, y)
x.tril()
x.roll(1, 1)
w.prod()
w.prod(1)
x.sum(1)
x.mean(1)
x.std(1)
x.cumsum(1)
x.cumprod(1)
x.nansum()
x.argmax(1)
x.median(1)[0]
x.sort()[0]
x.topk(5)[0]
x.topk(5, 0)[0]
x.topk(1)[0]
x.gather(1, i)
zeros_like(x).scatter(1, i, x)
zeros_like(x).scatter_add(1, i, x)
x[:, i[0]]
x.index_select(1, i[0])
zeros_like(x).index_put((i[:, 0] % len(x),), x, accumulate=True)
nn.functional.one_hot(i[:, 0])
i.unique()
einsum('ij,kj->ik', x[:100], y[:100])
arange(x.numel())
linspace(0, 1, x.numel())
randn(x.shape)
randperm(x.numel())
nn.functional.leaky_relu(x)
nn.functional.relu6(x)
nn.functional.smooth_l1_loss(x, y)
nn.functional.huber_loss(x, y)
nn.functional.gumbel_softmax(x)
"""


def works(lib: Any, text: str, shape: tuple[int, int]) -> tuple[Callable, Callable | None, Callable]:
    """A forward without a graph, one with it if there is a gradient, and the backward of that."""
    rng = np.random.default_rng(0)
    x, y = (lib.tensor(rng.standard_normal(shape, dtype=np.float32), requires_grad=True) for _ in range(2))
    w = lib.tensor(np.abs(rng.standard_normal(shape, dtype=np.float32)) + 0.5, requires_grad=True)
    names = {
        **vars(lib),
        "zeros_like": lib.zeros_like,
        "x": x,
        "y": y,
        "w": w,
        "m": lib.tensor(rng.random(shape) > 0.5),
        "i": lib.tensor(rng.integers(0, shape[1], shape)),
    }
    if lib is rushlight:  # whose names load when they are asked for
        names |= {
            name: getattr(lib, name)
            for name in (
                "where",
                "remainder",
                "fmod",
                "div",
                "logaddexp",
                "nn",
                "einsum",
                "arange",
                "linspace",
                "randn",
                "randperm",
            )
        }
    run, made = eval(f"lambda: {text}", names), []
    result = run()
    slope = lib.tensor(rng.standard_normal(tuple(result.shape), dtype=np.float32))

    def forward() -> None:
        with lib.no_grad():
            run()

    def graph() -> None:
        x.grad = y.grad = w.grad = None
        made.append(run())

    return forward, graph if result.requires_grad else None, lambda: made.pop().backward(slope)


def timed(work: Callable) -> float:
    start = process_time()
    work()
    return 1e6 * (process_time() - start)


def compare(text: str, shape: tuple[int, int]) -> list[list[float]]:
    """[[forward, backward] of torch, of ours], in us."""
    both = [works(torch, text, shape), works(rushlight, text, shape)]
    best, start = [[np.inf, np.inf], [np.inf, np.inf]], process_time()
    for k in range(PAID + MOST):
        if k == PAID:
            best, start = [[np.inf, np.inf], [np.inf, np.inf]], process_time()
        if k > PAID + LEAST and process_time() - start > SECONDS:
            break
        for found, (forward, graph, backward) in zip(best, both):
            found[0] = min(found[0], timed(forward))
            if graph is not None:
                graph()
                found[1] = min(found[1], timed(backward))
    return best


def main() -> None:
    torch.set_num_threads(1)
    rushlight.set_num_threads(1)
    print(*["| op |", *[f" {a}x{b} | torch / ours | backward | torch / ours |" for a, b in SHAPES]], sep="")
    print("|---|" + "--:|" * 4 * len(SHAPES))
    for text in OPS.strip().splitlines():
        if sys.argv[1:] and sys.argv[1] not in text:
            continue
        print(f"| {text} |", end="", flush=True)
        for shape in SHAPES:
            (f, b), (our_f, our_b) = compare(text, shape)
            back = f"{our_b:.0f} | {b / our_b:.2f}" if our_b < np.inf else " | "
            print(f" {our_f:.0f} | {f / our_f:.2f} | {back} |", end="", flush=True)
        print()


if __name__ == "__main__":
    main()
