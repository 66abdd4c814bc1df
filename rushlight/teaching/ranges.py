"""Checks of targets that the predictions cannot reach, and of distributions over the wrong dimension."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

import numpy as np

from rushlight.core.node import Node
from rushlight.core.tensor import Tensor
from rushlight.teaching.check import Check
from rushlight.teaching.losses import REGRESSION, Activated, maker, op_name
from rushlight.teaching.notes import array_of

RANGES = {"relu": (0.0, inf), "sigmoid": (0.0, 1.0), "softmax": (0.0, 1.0), "tanh": (-1.0, 1.0)}


class OutOfReach(Check):
    name = "targets-out-of-reach"
    title = "the last activation cannot reach the targets"
    why = (
        "ReLU gives no negative number, sigmoid and softmax only 0 to 1, tanh only -1 to 1. The loss of a target "
        "outside of this range cannot become 0, and a ReLU may die."
    )
    fix = "remove the activation after the last layer, or scale the targets into its range."
    wrong = "return F.relu(self.last(x))   # targets of both signs"
    right = "return self.last(x)"
    limit = (
        "the op before mse_loss, l1_loss, smooth_l1_loss or huber_loss is relu, sigmoid, softmax or tanh, and a "
        "tenth of the targets lies outside of its range, in each of 10 losses in a row of 4 or more targets."
    )
    LOSSES, PART, SIZE, MARGIN = 10, 0.1, 4, 1e-3

    count = 0

    def on_loss(self, name: str, input: Tensor, target: Tensor) -> None:
        node, values = maker(input), array_of(target)
        if name not in REGRESSION or node is None or values is None or values.size < self.SIZE:
            return
        low, high = RANGES.get(op_name(node), (-inf, inf))
        outside = np.mean((values < low - self.MARGIN) | (values > high + self.MARGIN))
        self.count = self.count + 1 if outside >= self.PART else 0
        if self.count == self.LOSSES:
            self.hint(
                f"{outside:.0%} of the targets are outside of the range of {op_name(node)}; they go from "
                f"{values.min():.4g} to {values.max():.4g}."
            )


class ProbabilitiesForKl(Activated):
    name = "no-log-before-kl-div"
    title = "kl_div without logarithm"
    why = (
        "kl_div(input, target) takes the logarithm of the prediction as input. For probabilities it is not a distance: "
        "it may be negative, and its minimum is not at equal distributions."
    )
    fix = "use log_softmax instead of softmax for the first argument."
    wrong = "loss = F.kl_div(scores.softmax(1), target)"
    right = "loss = F.kl_div(scores.log_softmax(1), target)"
    limit = "the op before the loss is softmax."
    op, losses = "softmax", ("kl_div",)


class OwnSoftmaxOverBatch(Check):
    name = "own-loss-over-the-batch"
    title = "a loss picks classes from a softmax over the batch"
    why = (
        "With dim=0 the probabilities of one class add up to 1 over the samples of the batch: samples compete with "
        "each other, and the loss depends on the batch."
    )
    fix = "normalize over the dimension of the classes: softmax(scores, dim=1)."
    wrong = "loss = -scores.softmax(0)[arange(n), y].log().mean()"
    right = "loss = -scores.softmax(1)[arange(n), y].log().mean()"
    limit = (
        "backward() begins at a mean or sum of one number for each of N samples, picked from softmax or "
        "log_softmax over dimension 0 of (N, C). N = C is not reported."
    )
    BETWEEN = frozenset({"neg", "mean", "sum", "div", "mul", "log", "add", "clamp", "clamp_min"})
    PICK = frozenset({"index", "gather"})

    def on_backward(self, roots: Iterable[Node], nodes: list[Node]) -> None:
        for node in roots:
            picked = 0
            while op_name(node) in self.BETWEEN or op_name(node) in self.PICK or view(node):
                edges = [edge for edge in node.edges if edge is not None]
                if len(edges) != 1:
                    break
                picked = (node.shape or (0,))[0] if op_name(node) in self.PICK else picked
                node = edges[0]
            shape = node.shape or ()
            softmax = op_name(node) in ("softmax", "log_softmax") and len(shape) == 2
            if softmax and picked == shape[0] != shape[1]:
                dim: int = getattr(node, "_saved_dim")  # noqa: B009  (of this op's nodes)
                if dim % 2 == 0:
                    self.hint(f"{op_name(node)} over dimension 0 of {tuple(shape)}.", node.made_at)


def view(node: Node) -> bool:
    return op_name(node) in ("squeeze", "unsqueeze", "view", "reshape")


CHECKS = (OutOfReach, ProbabilitiesForKl, OwnSoftmaxOverBatch)
