"""Products of float32 matrices: rushlight (compiled loops where they are faster) beside OpenBLAS (NumPy) and torch (MKL).

    env -u OPENBLAS_CORETYPE OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 python benchmarks/products.py

Each cell: 1e9 operations in a second of the processor's time with x y, x y^T (as linear layers have it), and x^T y (as the
gradients of their weights); then how many times as long OpenBLAS and torch take (above 1: rushlight is faster).

Cascade Lake, AVX-512, one thread, on a busy machine (load 5.6 on two cores), 2026-11-21, NumPy 2 with OpenBLAS 0.3,
torch 2.13:

                          x y                 x y^T               x^T y
    (768, 128, 384)        117  1.19  0.92      118  1.25  0.94      112  1.30  0.87
    (768, 128, 128)        119  1.22  0.87      118  1.27  1.08      105  1.08  0.80
    (768, 128, 512)        118  1.19  0.87      115  1.14  0.87      108  1.05  0.86
    (768, 512, 128)        120  1.08  1.07      118  1.15  1.14      100  1.05  1.00
    (128, 768, 512)        107  1.07  1.01      114  1.28  0.99      108  1.01  0.95
    (384, 768, 128)        118  1.18  0.84      117  1.23  1.14      111  1.13  1.00
    (64, 784, 128)         102  1.13  0.75      107  1.47  2.04      100  1.07  0.79
    (128, 64, 784)         113  1.14  0.91      109  1.31  0.98      111  1.16  0.83
    (32, 128, 512)          76  0.90  0.60       82  1.58  0.86       75  0.92  0.60
    (64, 256, 128)          87  0.93  0.68       87  1.25  1.73       83  0.91  0.77
    (1600, 128, 512)       107  1.09  0.87      107  1.08  0.86       99  1.03  0.83
    (512, 512, 512)        113  1.05  0.98      117  1.11  0.96      112  1.09  0.97
    (1024, 784, 1024)      108  0.99  0.93      106  0.98  0.90      102  0.99  0.92
    (1024, 1024, 1024)     111  1.00  0.91      115  1.05  0.96      106  1.01  0.89
    (768, 128, 65)          83  0.98  0.83       84  1.02  0.97       85  1.01  0.86

What lost: prefetching the lines of the result (121 for 128), or those of y; y read where it is (0.7 to 0.9); 8 rows by 3
registers (the same), 12 by 2 (0.9); x packed six rows by six (0.9 for x^T y); panels of 256 columns laid out at once (1.09
for 1024 x 1024 x 1024, where pages of memory are what is short, 0.95 to 0.98 elsewhere). With registers of AVX2 the same
loops make 64 where OpenBLAS makes 71, so they are for AVX-512 only. Two threads: as OpenBLAS's.

A whole step, torch's time / rushlight's without and with the loops, in turns: W5 (GPT) 0.92 0.99, compiled 1.04 1.14;
W3 (MLP) 1.22 1.32, compiled 2.60 3.19; W6 (LSTM) 0.89 0.97, compiled 1.33 1.38; W3b (large MLP) 0.91 0.91, compiled
0.99 1.01: its products of 1024 x 1024 are 97 of its 109 ms, and MKL makes them at 122.
"""
from __future__ import annotations

from collections.abc import Callable
from time import thread_time

import numpy as np
import torch

from rushlight.ops.kernels import matmul

ROUNDS, BLOCK = 10, 0.004                         # seconds
SHAPES = [(768, 128, 384), (768, 128, 128), (768, 128, 512), (768, 512, 128), (128, 768, 512), (384, 768, 128),
          (64, 784, 128), (128, 64, 784), (32, 128, 512), (64, 256, 128), (1600, 128, 512), (512, 512, 512),
          (1024, 784, 1024), (1024, 1024, 1024), (768, 128, 65)]


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


def main() -> None:
    torch.set_num_threads(1)
    matmul.spent.left = 0                         # loops from the first product on
    for m, k, n in SHAPES:
        cells = []
        for turned in ("", "y", "x"):
            x, y = np.random.rand(m, k).astype(np.float32), np.random.rand(k, n).astype(np.float32)
            x, y = np.asfortranarray(x) if turned == "x" else x, np.asfortranarray(y) if turned == "y" else y
            tx, ty = torch.from_numpy(x), torch.from_numpy(y)
            own, blas, other = fastest([lambda: matmul.mm(x, y), lambda: np.dot(x, y), lambda: torch.mm(tx, ty)])  # noqa: B023
            cells.append(f"{2e-9 * m * k * n / own:5.0f} {blas / own:5.2f} {other / own:5.2f}")
        print(f"    {(m, k, n)!s:20}", "    ".join(cells), flush=True)


if __name__ == "__main__":
    main()
