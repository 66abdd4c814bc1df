"""Descriptions of the ops of this folder, for their docstrings. Loaded when a docstring is read."""

from __future__ import annotations

from rushlight.ops.doc_text import Text

TEXTS = {
    "mse_loss": Text("The squared difference.", data=("[1., 2., 3.]", "[1., 1., 1.]")),
    "huber_loss": Text(
        "Half the squared difference up to `delta`, a straight line beyond.", data=("[1., 1.5, 3.]", "[1., 1., 1.]")
    ),
    "smooth_l1_loss": Text(
        "The absolute difference, rounded off below `beta`.", data=("[1., 1.5, 3.]", "[1., 1., 1.]")
    ),
    "binary_cross_entropy": Text(
        "Minus the logarithm of the probability of `target`, 0 or 1, where `input` is the probability of 1; logarithms "
        "below -100 count as -100.",
        data=("[0.25, 0.5, 0.75]", "[0., 1., 1.]"),
    ),
    "convolution": Text(
        "The sum of products of each filter with each window of the input, as in torch's conv1d, conv2d and conv3d.",
        formula="out[n, o, p] = sum over c, k of input[n, c, p stride - padding + k dilation] weight[o, c, k] + "
        "bias[o]",
    ),
}
