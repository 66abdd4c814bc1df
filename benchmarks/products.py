"""Products of float32 matrices: rushlight (compiled loops where they are faster) beside OpenBLAS (NumPy) and torch
(MKL).

    env -u OPENBLAS_CORETYPE OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 python benchmarks/products.py

Each cell: 1e9 operations in a second of the processor's time with x y, x y^T (as linear layers have it), and x^T y (as
the gradients of their weights); then how many times as long OpenBLAS and torch take (above 1: rushlight is faster).
Shapes are (..., m, k, n). The rule `suits` in rushlight/fast/matmul.py was read off such a table of the loops alone.

Cascade Lake, AVX-512, one thread, on a busy machine (load 6 on two cores), 2026-11-21, NumPy 2 with OpenBLAS 0.3, torch
2.13:

                          x y                 x y^T               x^T y
    (768, 128, 384)        128  1.21  0.97      127  1.24  0.94      116  1.17  0.90
    (768, 128, 128)        121  1.21  1.01      120  1.23  1.10      109  1.11  0.99
    (768, 128, 512)        124  1.07  1.00      118  1.06  0.89      105  0.96  0.82
    (768, 512, 128)        128  1.19  1.08      128  1.18  1.20      100  0.98  0.85
    (128, 768, 512)        122  1.19  1.07      105  1.19  0.90      116  1.19  1.08
    (384, 768, 128)        123  1.15  0.88      129  1.26  1.19      103  1.07  0.83
    (64, 784, 128)         110  1.16  0.81      107  1.51  2.05       96  1.05  0.88
    (128, 64, 784)         108  1.03  0.81      112  1.27  0.99      111  1.06  0.83
    (32, 128, 512)         101  1.18  0.80       85  1.60  0.89       99  1.17  0.77
    (64, 256, 128)          97  1.03  0.90       94  1.34  1.87       89  0.98  0.84
    (1600, 128, 512)       117  1.02  0.94      112  1.05  0.91      104  1.01  0.87
    (512, 512, 512)        118  1.05  0.95      117  1.05  0.97      109  1.03  0.95
    (1024, 784, 1024)      112  1.06  0.96      114  1.02  0.97      111  0.98  0.94
    (1024, 1024, 1024)     121  1.08  0.98      127  1.08  1.00      111  1.01  0.92
    (768, 128, 65)          92  1.04  0.94       90  1.03  1.04       79  0.89  0.81
    (1024, 1024, 10)        41  1.41  0.89       42  1.40  1.04       25  0.97  0.84
    (16, 128, 64, 128)     107  1.30  0.87      105  1.46  1.49       99  1.27  0.84
    (32, 64, 32, 64)       107  0.97  1.19       85  1.56  1.99      106  0.94  1.21
    (48, 32, 32, 32)        83  0.91  1.07       62  1.86  2.33       86  0.90  1.15
    (4, 256, 256, 256)     119  1.08  1.02      120  1.21  1.03      113  1.07  1.00

Few rows, few numbers to add up, few columns, and operands that are not in any cache (100 MB of them in turns), the same
day on a busier machine (load 8):

    (4, 128, 512)           58  0.97  1.17       36  3.64  1.01       37  0.97  0.73
    (8, 128, 384)           53  0.58  0.64       34  2.13  0.82       51  0.59  0.61
    (16, 512, 128)          71  1.22  0.66       63  1.96  3.62       51  0.87  0.47
    (4, 1024, 1024)         32  2.55  0.98       39  4.57  1.68       31  2.44  0.97
    (10, 1024, 1024)        50  2.31  1.28       47  2.99  1.64       51  2.47  1.25
    (19, 1024, 1024)        51  1.78  1.09       70  2.78  1.97       57  1.77  1.15
    (1024, 10, 1024)        65  1.94  1.14       60  1.82  0.97       62  1.85  0.97
    (1024, 1024, 10)        39  1.36  0.86       43  1.42  1.09       44  2.06  2.09
  cold
    (8, 128, 384)           20  0.81  0.93       18  1.53  0.88       19  0.83  0.91
    (10, 1024, 1024)        30  2.12  1.63       30  2.19  1.74       29  2.01  1.52
    (64, 128, 512)          74  1.22  0.76       73  1.27  0.91       69  1.17  0.73
    (64, 1024, 1024)        64  1.08  1.32       79  1.40  1.25       62  1.05  1.30
    (512, 1600, 128)       115  1.23  1.05      111  1.31  1.11       95  1.33  1.45
    (512, 768, 128)        107  1.26  1.02      105  1.26  1.04       94  1.38  1.56

Rows that meet a transpose, the weights (4 MB) in L3, 2026-11-22, us before and after x is turned instead:

    rows                       12           16           20           24           32
    (rows, 128, 384)     23   19     28   19     34   28     32   27     38   27
    (rows, 128, 512)     30   25     37   25     45   37     42   37     50   37
    (rows, 512, 128)     31   30     39   29     47   40     41   40     48   39
    (rows, 1024, 1024)  456  439    583  423    813  578    708  610    796  588

Of 9 rows (128, 512) took 24 instead of 31, but (512, 128) 30 instead of 24. 48 and 64 rows gained nothing: what is not
laid out in panels is lost to lines of the result that are written by halves.

Cold or not makes no difference at 1024 x 1024 x 1024 (104 and 107; torch 113 and 112), a third at 64 rows. There the
order in which a transpose is laid out decides: along its rows 72 us for 128 rows of 1024 numbers, where squares beside
each other, from rows 4096 bytes apart, took 140; in L2 both took 50. Prefetches for dot products of few rows lost 2 to
10 %, one line or eight ahead, to L1, L2 or L3. Operands that begin with a line of the cache: 2 to 5 %. Masked loads
throughout, for the sake of one loop, took 1.5 times as long: each needs a unit that multiplies.

On a less busy one (load 4) 1024 x 1024 x 1024: 130 127 116 (MKL 131 130 125, OpenBLAS 113 115 109); (1024, 128, 512):
131 130 124 (MKL 140 140 136). A tile alone makes 143 with 128 numbers to add up, 149 with 512. What is short of that: y
laid out (3 % at 1024 rows), the result fetched from L3 and written back (8 %; prefetching its lines gives 2 % of it
back, and costs as much where they are near), x^T turned (3 to 9 %).

How y is laid out decides: a panel of 64 columns after the other took 74 ns for 64 numbers from rows 4096 bytes apart,
whole rows take 28; transposed squares beside each other 28 instead of 52 one below the other. With a block of panels
laid out, rows of x can be the outer loop: they stay in L1, and lines of the result are written from left to right. Few
rows meet y so seldom that a quarter of the block is better (92 for 80 at 32 rows).

What lost: prefetches between the additions (LLVM then spills the sums: half the speed); loops unrolled four times
(same); y read where it is for more than 48 rows (0.9; below that 1.2, and 0.9 when the core's other thread is busy); x
packed six rows by six (0.9 for x^T y); 8 rows by 3 registers (the same), 12 by 2 (0.9); huge pages for the block (the
same). With registers of AVX2 the same loops make 64 where OpenBLAS makes 71, so they are for AVX-512 only. Two threads:
as OpenBLAS's.

A whole step beside that with the loops of the morning, in turns on a busy machine: W5 (GPT) 0.94, compiled 0.92; W3
(MLP) 0.98, compiled 0.95; W3b (large MLP) 0.97, compiled 0.97."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import thread_time

import numpy as np
import torch

from rushlight.fast import policy
from rushlight.kernels import matmul

ROUNDS, BLOCK = 10, 0.004  # seconds
SHAPES = [
    (768, 128, 384),
    (768, 128, 128),
    (768, 128, 512),
    (768, 512, 128),
    (128, 768, 512),
    (384, 768, 128),
    (64, 784, 128),
    (128, 64, 784),
    (32, 128, 512),
    (64, 256, 128),
    (1600, 128, 512),
    (512, 512, 512),
    (1024, 784, 1024),
    (1024, 1024, 1024),
    (768, 128, 65),
    (1024, 1024, 10),
]
FEW = [
    (4, 128, 512),
    (8, 128, 384),
    (16, 512, 128),
    (4, 1024, 1024),
    (10, 1024, 1024),
    (19, 1024, 1024),
    (1024, 10, 1024),
]
COLD = [
    (8, 128, 384),
    (10, 1024, 1024),
    (64, 128, 512),
    (64, 1024, 1024),
    (512, 1600, 128),
    (512, 768, 128),
    (1024, 1024, 1024),
]
BEYOND = 100_000_000  # bytes: more than caches hold
STACKS = [(16, 128, 64, 128), (32, 64, 32, 64), (48, 32, 32, 32), (4, 256, 256, 256)]


def fastest(works: list[Callable]) -> list[float]:
    """Seconds of processor time, the least of blocks of calls in turns."""
    best = [np.inf] * len(works)
    for _ in range(ROUNDS):
        for i, work in enumerate(works):
            start = thread_time()
            work()
            count = max(1, int(BLOCK / max(thread_time() - start, 1e-7)))
            start = thread_time()
            for _ in range(count):
                work()
            best[i] = min(best[i], (thread_time() - start) / count)
    return best


def operands(shape: tuple[int, ...], turned: str) -> tuple[np.ndarray, np.ndarray]:
    """x and y, one of them a transpose."""
    *many, m, k, n = shape
    x, y = (
        np.random.rand(*many, *(sizes[::-1] if turned == name else sizes)).astype(np.float32)
        for name, sizes in (("x", (m, k)), ("y", (k, n)))
    )
    return x.swapaxes(-1, -2) if turned == "x" else x, y.swapaxes(-1, -2) if turned == "y" else y


def show(shape: tuple[int, ...], nbytes: int = 0) -> None:
    """One line: all three layouts of (..., m, k) times (..., k, n), of so many operands in turns that they fill
    nbytes."""
    cells = []
    for turned in ("", "y", "x"):
        given = [operands(shape, turned)]
        given += [operands(shape, turned) for _ in range(nbytes // sum(a.nbytes for a in given[0]))]
        tensors = [(torch.from_numpy(x), torch.from_numpy(y)) for x, y in given]
        own, blas, other = fastest(
            [partial(in_turns, *work) for work in ((matmul.mm, given), (np.matmul, given), (torch.matmul, tensors))]
        )
        cells.append(
            f"{2e-9 * given[0][0].size * shape[-1] * len(given) / own:5.0f} {blas / own:5.2f} {other / own:5.2f}"
        )
    print(f"    {shape!s:20}", "    ".join(cells), flush=True)


def in_turns(product: Callable, given: list) -> None:
    for x, y in given:
        product(x, y)


def main() -> None:
    torch.set_num_threads(1)
    policy.products.left = 0  # loops from the first product on
    for shape in FEW + SHAPES + STACKS:
        show(shape)
    print("cold")
    for shape in COLD:
        show(shape, BEYOND)


if __name__ == "__main__":
    main()
