"""Losses of each element; nn.functional reduces them. `nll_loss` and `nll_loss_grad` look up classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight.core.build import build, elementwise, inner
from rushlight.core.table import FLOATING, entry
from rushlight.core.worlds import adopt
from rushlight.kernels import loss as kernels

if TYPE_CHECKING:  # names in rules, provided by the rule's world (core/worlds.py)
    from rushlight.core.rule_names import clamp_both, exp, log, log1p, maximum, minimum, not_differentiable, sigmoid

adopt(kernels)

# Elementwise losses of an input and a target.
loss = entry(elementwise, FLOATING, method=False, function=False, names={"y": "target"})

# fmt: off
mse_loss = loss(lambda x, y, /: (x - y) * (x - y), x=lambda g, x, y: 2 * (g * (x - y)),
    y=lambda g, x, y: 2 * (g * (y - x)), takes="f")
huber_loss = loss(
    lambda x, y, /, delta=1.0: (abs(x - y) - 0.5 * minimum(abs(x - y), delta)) * minimum(abs(x - y), delta),
    x=lambda g, x, y, delta: g * clamp_both(x - y, -delta, delta),
    y=lambda g, x, y, delta: g * clamp_both(y - x, -delta, delta), takes="f")
smooth_l1_loss = loss(lambda x, y, /, beta=1.0: huber_loss(x, y, beta) / beta,
    x=lambda g, x, y, beta: g * clamp_both((x - y) / beta, -1, 1),
    y=lambda g, x, y, beta: g * clamp_both((y - x) / beta, -1, 1), takes="f")
binary_cross_entropy = loss(lambda x, y, /: -(y * maximum(log(x), -100) + (1 - y) * maximum(log1p(-x), -100)),
    x=lambda g, x, y: g * (x - y) / maximum((1 - x) * x, 1e-12),
    y=lambda g, x: g * (maximum(log1p(-x), -100) - maximum(log(x), -100)), fused=False, takes="f")
binary_cross_entropy_with_logits = loss(
    lambda x, y, /: (1 - y) * maximum(x, 0) - y * minimum(x, 0) + log1p(exp(-abs(x))),
    x=lambda g, x, y: g * (sigmoid(x) - y), y=lambda g, x: -g * x, takes="fc")

# x (N, C, *d): log-probabilities; target (N, *d): class indices; weight (C,) or None
nll_loss = inner(
    lambda x, target, weight, /, ignore_index=-100, reduction="mean": nll_loss(
        x, target, weight, ignore_index, reduction
    ),
    x=lambda g, target, weight, x_shape, ignore_index, reduction: nll_loss_grad(
        g, target, weight, x_shape, ignore_index, reduction
    ),
    weight=lambda g: not_differentiable("nll_loss_forward", "weight"), sizes="all", takes="f")
nll_loss_grad = inner(
    lambda x, target, weight, /, size, ignore_index, reduction: nll_loss_grad(
        x, target, weight, size, ignore_index, reduction
    ),
    x=lambda g, target, weight, ignore_index, reduction: nll_loss(g, target, weight, ignore_index, reduction),
    weight=lambda g: not_differentiable("nll_loss_forward", "weight"), node="NllLossBackward1")
# fmt: on

build(globals())
