"""2-d convolution: direct loops beside columns and BLAS (what is done without Numba), and torch; interleaved in one process.

    env -u OPENBLAS_CORETYPE OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 python benchmarks/convolution.py

RESULTS
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
