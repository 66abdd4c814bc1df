"""Samples for ops of layers and losses: images sampled at points, random windows, alignments. See by_hand.py."""

from __future__ import annotations

import numpy as np

from rushlight.kernels.int8 import Int8Weight
from tests.table.samples.by_hand import Data, Sample, exactly, positions, x

# Points in parts of an image 4 wide and 3 high, or 4, 3 and 2 deep: away from where a tap ends, and from the edges.
INSIDE = exactly([[[[-0.41, 0.22], [0.33, -0.3]], [[0.61, 0.35], [-0.13, -0.24]]]])
OUTSIDE = exactly([[[[-1.61, 0.22], [0.33, 1.42]], [[2.9, -2.7], [-0.13, -0.24]]]])
IN_SPACE = exactly([[[[[-0.41, 0.22, -0.13], [0.63, -0.3, 1.31]]]]])
NOTHING = [((1, 0, 3, 4), (1, 2, 2, 2)), ((2, 1, 3, 4), (2, 0, 3, 2)), ((0, 1, 3, 4), (0, 2, 2, 2))]  # image, points
BILINEAR, NEAREST, BICUBIC = range(3)
ZEROS, BORDER, REFLECTION = range(3)

POINTS = exactly([[[-0.41, 0.22], [0.33, -1.42], [1.61, 2.35]]])
PLACES = exactly([[[0.8, 1.3], [-0.4, 2.2], [3.1, 5.2]]])  # in elements
SIZE = (4, 3)
AT = positions([[[0, 5, 5], [11, 2, 5]]])  # (N, K, P): places in a flat image of 12, one three times

LOG_PROBABILITIES = Data(4, 2, 4, dtype="float64")  # (T, N, C): ctc takes float32 and float64 alone
SINGLE = Data(4, 2, 4, dtype="float32")
NLL, ALPHA = Data(2, dtype="float64"), Data(4, 2, 5, dtype="float64")  # what it made of them
WHOLE = Int8Weight(np.array([[100, -3, 7], [-128, 127, 0]], np.int8), np.array([0.01, 0.02]))
LABELS, IN_A_ROW = positions([[1, 2], [3, 3]]), positions([1, 2, 3])

HAND = {
    "grid_sampler": [
        Sample(x(1, 2, 3, 4), INSIDE, mode, padding, padding == BORDER)
        for mode in (BILINEAR, BICUBIC)
        for padding in (ZEROS, BORDER, REFLECTION)
    ]
    + [
        Sample(x(1, 2, 3, 4), OUTSIDE, mode, padding, align)
        for mode in (BILINEAR, BICUBIC, NEAREST)
        for padding in (ZEROS, BORDER, REFLECTION)
        for align in (False, True)
    ]
    + [Sample(x(1, 2, 2, 3, 4), IN_SPACE, mode, ZEROS, False) for mode in (BILINEAR, NEAREST)],
    "grid_sampler_2d": [
        Sample(x(1, 2, 3, 4), OUTSIDE, BILINEAR, REFLECTION, False),
        *[
            Sample(Data(*image, dtype="float64"), Data(*points, dtype="float64"), mode, ZEROS, False)
            for image, points in NOTHING
            for mode in (BILINEAR, NEAREST, BICUBIC)
        ],
    ],
    "grid_sampler_3d": [
        Sample(x(1, 2, 2, 3, 4), IN_SPACE, BILINEAR, padding, align)
        for padding in (ZEROS, BORDER, REFLECTION)
        for align in (False, True)
    ],
    "grid_position": [
        Sample(POINTS, SIZE, padding, align) for padding in ("zeros", "border", "reflection") for align in (False, True)
    ],
    "grid_slope": [Sample(POINTS, SIZE, padding, True) for padding in ("zeros", "border", "reflection")],
    "grid_taps": [
        Sample(PLACES, SIZE, "bilinear", "zeros", False),
        Sample(PLACES, SIZE, "nearest", "border", False),
        Sample(PLACES, SIZE, "bicubic", "reflection", True),
    ],
    "int8_linear": [
        Sample(Data(4, 3, dtype="float32"), WHOLE, 127, smooth=False),
        Sample(Data(2, 4, 3, dtype="float32"), WHOLE, 255, smooth=False),
    ],
    "bilinear": [Sample(x(1, 3, 2), x(1, 4, 3)), Sample(x(2, 2, 3), x(2, 8, 2))],
    "sampled": [Sample(x(1, 2, 12), x(1, 2, 3), AT)],
    "sampled_back": [Sample(x(1, 2, 3), x(1, 2, 3), AT, 12)],
    "sampled_slope": [Sample(x(1, 2, 3), x(1, 2, 12), AT)],
    "sparse_product": [
        Sample(x(4), x(4, 2), positions([2, 0, 2, 1]), positions([3, 1, 3, 0]), 3),
        Sample(x(3), x(2, 1), positions([0, 0, 2]), positions([1, 0, 1]), 3),
    ],
    "sampled_product": [Sample(x(3, 2), x(4, 2), positions([2, 0, 2, 1]), positions([3, 1, 3, 0]))],
    "fractional_max_pool": [
        Sample(x(1, 2, 5, 6), exactly([[[0.2, 0.7], [0.9, 0.4]]]), (2, 2), (3, 4), smooth=False, slopes=True),
        Sample(x(1, 1, 4, 5, 4), exactly([[[0.2, 0.7, 0.5]]]), (2, 1, 2), (2, 3, 2), smooth=False, slopes=True),
    ],
    "conv_tbc": [
        Sample(x(5, 2, 3), x(2, 3, 4), x(4)),
        Sample(x(4, 1, 2), x(3, 2, 1), x(1), 1),
        Sample(x(4, 1, 2), x(1, 2, 3), x(3), pad=2),
    ],
    "native_channel_shuffle": [
        Sample(x(2, 6, 2), 3),
        Sample(x(1, 4, 2, 2), 2),
        Sample(x(2, 4, 3), 1),
        Sample(x(1, 4, 2), 4),
    ],
    "swapaxes": [Sample(x(2, 3, 2), 0, 2), Sample(x(2, 3), -1, 0), Sample(x(2, 3), 1, 1), Sample(x(3), 0, -1)],
    # queries, keys and values, with a mask and without; the way back takes what the op saved: no slope by moving one
    # input
    "attention": [
        Sample([x(2, 3, 2), x(2, 4, 2), x(2, 4, 3)], False, 0.7),
        Sample([x(1, 2, 3, 2)] * 3, True, 1.0),
        Sample([x(3, 2), x(4, 2), x(4, 2), x(3, 4, constant=True)], False, 0.5, smooth=False, slopes=False),
    ],
    "attention_back": [Sample([x(3, 2), x(4, 2), x(4, 2), x(3, 2), x(3), x(3, 2)], False, 0.5, smooth=False)],
    # the slope is that of a log_softmax's input, not of the log-probabilities alone: no finite differences find it
    "ctc": [
        Sample(LOG_PROBABILITIES, LABELS, (4, 4), (2, 2), 0, smooth=False, slopes=True),
        Sample(LOG_PROBABILITIES, IN_A_ROW, (4, 3), (2, 1), 0, smooth=False, slopes=True),
        Sample(SINGLE, LABELS, (4, 3), (2, 0), 0, smooth=False, slopes=True),
    ],
    "ctc_slope": [
        Sample(Data(4, 2, 4, dtype="float64", constant=True), labels, NLL, ALPHA, (4, 3), lengths, 0, smooth=False)
        for labels, lengths in ((LABELS, (2, 2)), (IN_A_ROW, (2, 1)))
    ],
}
HAND["swapdims"] = HAND["swapaxes"]
