"""2-d convolution: compiled loops beside columns and BLAS (what is done without llvmlite), and torch, taking turns.

    env -u OPENBLAS_CORETYPE OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 python benchmarks/convolution.py

Float32, one thread, time of the processor, on a busy Cascade Lake Xeon (load 4 to 5 on two cores, OpenBLAS with
AVX-512), 2026-11-21, torch 2.13 in its own layout. Each cell: ms of the compiled loop, then how many times as long
columns and torch take (above 1: the loop is faster). Which way each goes: rushlight/fast/conv/__init__.py and
fast/index.py. Other layers of nets: benchmarks/layers.py.

    images, channels, size, filters,
    kernel, stride, padding, groups     forward           input gradient    weight gradient
    (32, 3, 32, 32, 3, 1, 1, 1)      1.27  1.4  1.1     2.23  1.1  1.9     1.07  1.4  1.3
    (32, 32, 32, 32, 3, 1, 1, 1)     4.72  2.8  1.5     4.58  3.0  1.5     5.43  2.4  1.4
    (32, 32, 32, 64, 3, 2, 1, 1)     3.63  1.9  1.2     3.76  3.4  2.0     3.63  2.1  1.4
    (32, 64, 16, 64, 3, 1, 1, 1)     3.73  2.5  1.6     3.61  2.6  1.7     4.01  2.4  1.6
    (64, 1, 28, 6, 5, 1, 0, 1)       0.35  2.4  2.4     0.60  2.8  8.6     0.45  1.4  1.6
    (64, 6, 12, 16, 5, 1, 0, 1)      0.43  1.5  0.8     0.67  2.4  1.0     0.43  2.1  1.7
    (8, 4, 16, 8, 3, 1, 1, 1)        0.09  0.9  1.6     0.18  0.9  1.3     0.10  0.9  2.0
    (8, 128, 16, 128, 3, 1, 1, 1)    3.99  2.2  1.4     3.95  2.4  1.5     4.65  1.9  1.3
    (8, 256, 8, 256, 3, 1, 1, 1)     6.17  1.5  0.9     5.80  2.1  1.0     8.65  1.4  0.9
    (8, 512, 4, 512, 3, 1, 1, 1)     8.49  2.3  0.9    10.73  3.1  0.7     8.21  4.9  1.9
    (4, 3, 112, 64, 7, 2, 3, 1)      3.46  1.7  0.8     8.07  1.2  1.8     2.83  2.1  1.2
    (4, 64, 56, 64, 3, 1, 1, 1)      6.31  2.5  1.4     6.30  2.6  1.5     6.56  2.4  1.5
    (16, 64, 16, 64, 3, 1, 1, 64)    0.58  2.2  0.9     0.58  2.2  1.1     0.56  2.6  1.2

Winograd's loops do 604 MF of products in 3.7 ms, 268 MF of them in fact, at 122 GF/s; the rest is turning channels
inwards and back. Results of Gaussian numbers are 2e-7 to 4e-7 off the largest, torch's 2e-7 to 4e-7; its weight
gradients 5e-6, ours 4e-7.

Since 2026-11-22 batches of 16 images and more with up to 24 channels, and groups, go by batch_innermost.py. Its time as
a part of what the table's loops take, on that morning, forward, input gradient, weight gradient:

    (64, 1, 28, 6, 5, 1, 0, 1)       0.75  0.96  0.65       (32, 128, 14, 128, 3, 1, 1, 128)  0.63  0.63  0.78
    (64, 6, 12, 16, 5, 1, 0, 1)      0.60  0.61  0.65       (16, 96, 28, 96, 5, 2, 2, 96)     0.46  0.38  0.49
    (64, 10, 12, 20, 5, 1, 0, 1)     0.81  0.65  0.53       (64, 32, 8, 64, 3, 1, 1, 8)       0.51  0.57  0.57
    (128, 8, 14, 16, 3, 2, 1, 1)     0.61  0.40  0.83       (16, 64, 16, 64, 3, 1, 1, 64)     0.75  0.78  0.76

A whole step, torch's time / rushlight's, in the same hour: small ResNet (benchmark W4b) 1.49, compiled 1.53 (0.84 and
about as much before); LeNet (W4) 1.43, compiled 1.66 (1.03 before, 1.13 once freed memory stays).

Peak memory of 20 steps, MB, less the import: ResNet 147 (torch 212), large MLP 83 (181), GPT 91 (141). torch's holds 80
of modules that it loads late; the steps alone took 134 (129), 20 (51), 81 (63)."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

import numpy as np
import torch

from rushlight.fast.conv import conv_input_grad_of_plan, conv_of_plan, conv_weight_grad_of_plan
from rushlight.kernels.conv import conv_im2col, conv_input_grad_im2col, conv_weight_grad_im2col, plan

ROUNDS = 8
# images, channels, size, filters, kernel, stride, padding, groups
SHAPES = [
    (32, 3, 32, 32, 3, 1, 1, 1),
    (32, 32, 32, 32, 3, 1, 1, 1),
    (32, 32, 32, 64, 3, 2, 1, 1),
    (32, 64, 16, 64, 3, 1, 1, 1),
    (64, 1, 28, 6, 5, 1, 0, 1),
    (64, 6, 12, 16, 5, 1, 0, 1),
    (8, 4, 16, 8, 3, 1, 1, 1),
    (8, 128, 16, 128, 3, 1, 1, 1),
    (8, 256, 8, 256, 3, 1, 1, 1),
    (8, 512, 4, 512, 3, 1, 1, 1),
    (4, 3, 112, 64, 7, 2, 3, 1),
    (4, 64, 56, 64, 3, 1, 1, 1),
    (16, 64, 16, 64, 3, 1, 1, 64),
]


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


def compare(
    images: int, channels: int, size: int, filters: int, kernel: int, stride: int, padding: int, groups: int
) -> list[list[float]]:
    """[loops, columns, torch] for the forward, the input's gradient and the weight's."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((images, channels, size, size), dtype=np.float32)
    w = rng.standard_normal((filters, channels // groups, kernel, kernel), dtype=np.float32)
    how = (stride, stride), (padding, padding), (1, 1)
    p, back, weights = [
        plan(op, x.dtype, w.dtype, x.shape, w.shape, *how, groups)
        for op in ("conv", "conv_input_grad", "conv_weight_grad")
    ]
    g = rng.standard_normal((images, filters, *p.out), dtype=np.float32)
    tx, tw, tg = map(torch.from_numpy, (x, w, g))

    def by_torch(*which: bool) -> Callable:
        return lambda: torch.ops.aten.convolution_backward(tg, tx, tw, None, *how, False, [0, 0], groups, which)

    return [
        fastest(
            [
                lambda: conv_of_plan(p, x, w),
                lambda: conv_im2col(p, x, w),
                lambda: torch.nn.functional.conv2d(tx, tw, None, *how, groups),
            ]
        ),
        fastest(
            [
                lambda: conv_input_grad_of_plan(back, g, w),
                lambda: conv_input_grad_im2col(back, g, w),
                by_torch(True, False, False),
            ]
        ),
        fastest(
            [
                lambda: conv_weight_grad_of_plan(weights, g, x),
                lambda: conv_weight_grad_im2col(weights, g, x),
                by_torch(False, True, False),
            ]
        ),
    ]


def main() -> None:
    torch.set_num_threads(1)
    print(
        f"{'images, channels, size, filters, kernel, stride, padding, groups':66}{'forward':>18}{'input gradient':>18}{'weight gradient':>18}   "
        "(loops, of columns, of torch)"
    )
    for shape in SHAPES:
        cells = [f"{ours:8.2f} {columns / ours:4.1f} {theirs / ours:4.1f}" for ours, columns, theirs in compare(*shape)]
        print(f"{shape!s:66}" + "".join(f"{cell:>18}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
