"""2-d convolution: direct loops beside columns and BLAS (what is done without Numba), and torch; interleaved in one process.

    env -u OPENBLAS_CORETYPE OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 python benchmarks/convolution.py

Float32, one thread, time of the processor, on a busy Cascade Lake Xeon (load 9 on two cores, OpenBLAS with AVX-512),
2026-11-21, torch 2.13 in its own layout. Each cell: ms of the direct loop, then how many times as long columns and torch
take (above 1: the direct loop is faster). Convolutions of less than 4 M products stay with columns (`LEAST`), as those of
one tap do, which are products of matrices.

    images, channels, size, filters,
    kernel, stride, padding, groups     forward           input gradient    weight gradient
    (32, 3, 32, 32, 3, 1, 1, 1)          1.91  0.8  2.0    2.31  1.1  1.8    1.57  1.2  0.9
    (32, 32, 32, 32, 3, 1, 1, 1)         8.15  1.6  1.5    7.93  1.7  1.3    7.99  1.7  1.0
    (32, 32, 32, 64, 3, 2, 1, 1)         6.06  1.1  0.7    7.68  1.7  1.8    6.98  1.1  0.7
    (32, 64, 16, 64, 3, 1, 1, 1)         8.14  1.1  0.7    8.06  1.2  0.7    7.98  1.3  0.8
    (64, 1, 28, 6, 5, 1, 0, 1)           0.59  1.4  1.2    0.70  2.1  7.0    0.58  1.1  1.2
    (64, 6, 12, 16, 5, 1, 0, 1)          0.65  1.0  0.5    0.79  1.9  0.9    0.65  1.3  1.0
    (8, 4, 16, 8, 3, 1, 1, 1)            0.17  0.5  0.8    0.17  1.0  1.4    0.18  0.5  1.1
    (8, 128, 16, 128, 3, 1, 1, 1)        7.53  1.2  0.7    7.73  1.2  0.7    8.24  1.1  0.7
    (8, 256, 8, 256, 3, 1, 1, 1)         9.21  1.0  0.6   10.08  1.3  0.6   12.24  1.0  0.6
    (8, 512, 4, 512, 3, 1, 1, 1)        12.37  1.6  0.6   15.63  2.2  0.5   37.51  1.2  0.7
    (4, 3, 112, 64, 7, 2, 3, 1)          3.48  1.6  0.8    8.16  1.1  1.7    4.11  1.5  0.8
    (4, 64, 56, 64, 3, 1, 1, 1)         11.80  1.3  0.8   11.38  1.3  0.8   11.70  1.3  0.8
    (16, 64, 16, 64, 3, 1, 1, 64)        0.94  1.3  0.5    0.91  1.3  0.6    0.75  1.9  0.7

A whole step, torch's time / rushlight's, in the same hour: small ResNet (benchmark W4b) 0.87 to 0.93, and 1.00 when the
machine was calmer (0.55 before); LeNet (W4) 0.99 to 1.08, and 1.13 (0.97 before). 604 MF in 8 ms are 75 GF/s; the inner
loop alone reaches 100 there, MKL's products 120. The rest is laying out, putting back, and planes that leave the L1 cache.

Peak memory of 20 steps, MB, less the import: ResNet 147 (torch 212), large MLP 83 (181), GPT 91 (141). torch's holds 80 of
modules that it loads late; the steps alone took 134 (129), 20 (51), 81 (63).
"""
from __future__ import annotations

from collections.abc import Callable
from time import process_time

import numpy as np
import torch

from rushlight.ops.kernels import conv, direct

ROUNDS = 12
# images, channels, size, filters, kernel, stride, padding, groups
SHAPES = [
    (32, 3, 32, 32, 3, 1, 1, 1), (32, 32, 32, 32, 3, 1, 1, 1), (32, 32, 32, 64, 3, 2, 1, 1), (32, 64, 16, 64, 3, 1, 1, 1),
    (64, 1, 28, 6, 5, 1, 0, 1), (64, 6, 12, 16, 5, 1, 0, 1), (8, 4, 16, 8, 3, 1, 1, 1), (8, 128, 16, 128, 3, 1, 1, 1),
    (8, 256, 8, 256, 3, 1, 1, 1), (8, 512, 4, 512, 3, 1, 1, 1), (4, 3, 112, 64, 7, 2, 3, 1), (4, 64, 56, 64, 3, 1, 1, 1),
    (16, 64, 16, 64, 3, 1, 1, 64)]


def fastest(works: list[Callable]) -> list[float]:
    """Milliseconds of processor time, the least of some calls in turns."""
    best = [np.inf] * len(works)
    for _ in range(ROUNDS):
        for i, work in enumerate(works):
            for _ in range(2):
                start = process_time()
                work()
                best[i] = min(best[i], 1e3 * (process_time() - start))
    return best


def compare(images: int, channels: int, size: int, filters: int, kernel: int, stride: int, padding: int,
            groups: int) -> list[list[float]]:
    """[direct, columns, torch] for the forward, the input's gradient and the weight's."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((images, channels, size, size), dtype=np.float32)
    w = rng.standard_normal((filters, channels // groups, kernel, kernel), dtype=np.float32)
    how = (stride, stride), (padding, padding), (1, 1)
    p = conv.plan((size, size), w.shape, *how, groups)
    g = rng.standard_normal((images, filters, *p.out), dtype=np.float32)
    tx, tw, tg = map(torch.from_numpy, (x, w, g))

    def back(*which: bool) -> Callable:
        return lambda: torch.ops.aten.convolution_backward(tg, tx, tw, None, *how, False, [0, 0], groups, which)

    return [fastest([lambda: direct.correlate(x, w, p), lambda: conv.correlate_columns(x, w, p),
                     lambda: torch.nn.functional.conv2d(tx, tw, None, *how, groups)]),
            fastest([lambda: direct.spread(g, w, p), lambda: conv.spread_columns(g, w, p), back(True, False, False)]),
            fastest([lambda: direct.weigh(g, x, p), lambda: conv.weigh_columns(g, x, p), back(False, True, False)])]


def main() -> None:
    torch.set_num_threads(1)
    print(f"{'images, channels, size, filters, kernel, stride, padding, groups':66}"
          f"{'forward':>18}{'input gradient':>18}{'weight gradient':>18}   (direct, of columns, of torch)")
    for shape in SHAPES:
        cells = [f"{ours:8.2f} {columns / ours:4.1f} {theirs / ours:4.1f}" for ours, columns, theirs in compare(*shape)]
        print(f"{shape!s:66}" + "".join(f"{cell:>18}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
