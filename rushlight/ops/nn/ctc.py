"""Connectionist temporal classification: the loss of a label sequence, summed over all alignments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight.core.build import build, inner
from rushlight.core.worlds import ARRAYS, shared
from rushlight.kernels import ctc as kernels

if TYPE_CHECKING:  # names in rules, provided by the rule's world (core/worlds.py)
    from rushlight.core.rule_names import reshape, where

ARRAYS.update(ctc=kernels.ctc, ctc_slope=kernels.ctc_slope)

# x (T, N, C) of log-probabilities, targets (N, S), or concatenated in 1-D; lengths: tuples of N ints
# fmt: off
ctc = inner(
    lambda x, targets, /, input_lengths, target_lengths, blank: ctc(x, targets, input_lengths, target_lengths, blank),
    x=lambda gs, x, targets, nll, alpha, input_lengths, target_lengths, blank: scaled_slope(
        gs[0], ctc_slope(x, targets, nll, alpha, input_lengths, target_lengths, blank)
    ),
    outputs="nll alpha", node="CtcLossBackward0")
ctc_slope = inner(
    lambda x, targets, nll, alpha, /, input_lengths, target_lengths, blank: ctc_slope(
        x, targets, nll, alpha, input_lengths, target_lengths, blank
    ),
    x=lambda g: no_second_derivative("ctc_loss"), node="CtcLossBackwardBackward0")
# fmt: on


@shared
def scaled_slope(g, slope):
    """g (N,) times slope (T, N, C), but 0 where g is 0: the slope of samples that are left out is nan."""
    g = reshape(g, (1, -1, 1))
    return where(g == 0, 0, g * slope)


@shared
def no_second_derivative(name):
    raise NotImplementedError(
        f"derivative for {name}_backward is not implemented: {name} can be differentiated once, as in torch"
    )


build(globals())
