"""Checks of predictions read from a model's scores, and of losses that are sums."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any

import numpy as np

from rushlight.base.errors import here
from rushlight.core.node import Node
from rushlight.core.tensor import Tensor
from rushlight.teaching.check import Check
from rushlight.teaching.labels import CLASS_LOSSES
from rushlight.teaching.losses import op_name


class ChoiceOverBatch(Check):
    name = "argmax-over-the-batch"
    title = "argmax over the samples, not over the classes"
    why = (
        "Scores are (samples, classes). argmax over dimension 0 gives the best sample of each class, and without a "
        "dimension one place in all scores: neither is a prediction."
    )
    fix = "choose along the classes: scores.argmax(dim=1)."
    wrong = "predicted = model(x).argmax(dim=0)"
    right = "predicted = model(x).argmax(dim=1)"
    limit = (
        "argmax, or max with a dimension, is given scores of a shape (N, C) that a model has just returned, over "
        "dimension 0 or (argmax) without one; a loss of classes was given C scores before. N = 1 and N = C are not "
        "reported."
    )

    def prepare(self) -> None:
        self.classes: set[int] = set()
        self.shape: tuple = ()  # the array of the last model output

    def on_module(self, module: Any, args: tuple, output: Any, outermost: bool) -> None:
        if outermost and isinstance(output, Tensor):
            self.shape = tuple(output._array.shape)

    def on_loss(self, name: str, input: Tensor, target: Tensor) -> None:
        if name in CLASS_LOSSES and input._array.ndim == 2 and input._node is not None:
            self.classes.add(input._array.shape[1])

    def on_choice(self, name: str, scores: Tensor, dim: Any) -> None:
        shape = tuple(scores._array.shape)
        if len(shape) != 2 or shape != self.shape or shape[1] not in self.classes:
            return
        if shape[0] in (1, shape[1]) or dim not in (None, 0, -2):
            return
        where = "without a dimension" if dim is None else f"over dimension {dim}"
        self.hint(f"{name} {where} of scores {shape}: {shape[0]} samples, {shape[1]} classes.")


class SummedLoss(Check):
    name = "summed-loss-diverges"
    title = "the loss is a sum over the batch, and training diverges"
    why = (
        "The gradient of a sum is the gradient of the mean times the number of samples: a learning rate for means is "
        "then far too large, and changes with the size of the batch."
    )
    fix = "use the mean (reduction='mean'), or divide the learning rate by the number of samples."
    wrong = "loss = F.mse_loss(model(x), y, reduction='sum')   # lr=0.1"
    right = "loss = F.mse_loss(model(x), y)                    # lr=0.1"
    limit = (
        "backward() begins at a loss of nn.functional with reduction='sum', or at the sum of squares or sizes, of "
        "16 or more samples, and within 60 of them, with steps between, the loss of a sample is 10 times the first "
        "sample's loss, or not finite."
    )
    SAMPLES, LOSSES, FACTOR = 16, 60, 10.0

    def prepare(self) -> None:
        self.summed = 0  # the number of samples in the last loss with reduction='sum'
        self.first: float | None = None
        self.count = self.steps = 0

    def on_reduction(self, name: str, reduction: str, input: Tensor) -> None:
        shape = input._array.shape
        self.summed = shape[0] if reduction == "sum" and shape else 0

    def on_step_end(self, optimizer: Any) -> None:
        self.steps += 1

    def samples(self, root: Node) -> int:
        """The number of samples that the loss adds up; 0 if the loss is not a sum."""
        summed, self.summed = self.summed, 0
        if summed:
            return summed
        inside = root.edges[0] if op_name(root) == "sum" and len(root.edges) == 1 else None
        if op_name(inside) not in ("pow", "square", "abs"):
            return 0
        shape = getattr(inside, "shape", None) or ()
        return prod(shape) if root.shape == () else 0

    def on_backward(self, roots: Iterable[Node], nodes: list[Node]) -> None:
        value, root = self.report.root_value, next(iter(roots))
        n = self.samples(root)
        if value is None or n < self.SAMPLES or self.count == self.LOSSES:
            return
        loss = float(np.real(value)) / n
        self.count += 1
        if self.first is None:
            self.first = loss
        elif self.steps and not abs(loss) < self.FACTOR * abs(self.first):
            self.count = self.LOSSES
            self.hint(
                f"the sum over {n} samples was {self.first * n:.3g} first, and {loss * n:.3g} after {self.steps} "
                "steps.",
                here(),
            )


class CrossedComparison(Check):
    name = "comparison-that-broadcasts"
    title = "every prediction is compared with every target"
    why = (
        "Shapes (N, 1) and (N,) broadcast to (N, N): the accuracy is a mean over all pairs, and does not measure "
        "the model."
    )
    fix = "give both the same shape: predicted.squeeze(1) == y."
    wrong = "accuracy = ((model(x) > 0) == y).float().mean()             # (N, 1) and (N,)"
    right = "accuracy = ((model(x).squeeze(1) > 0) == y).float().mean()"
    limit = (
        "`==` compares (N, 1), the shape that a model has just returned, with (N,), twice in a row; the numbers "
        "differ, and the tensors share no memory: `labels == labels[:, None]` is not reported."
    )
    TIMES = 2

    def prepare(self) -> None:
        self.shape: tuple = ()  # the array of the last model output
        self.count = 0

    def on_module(self, module: Any, args: tuple, output: Any, outermost: bool) -> None:
        if outermost:
            self.shape = tuple(output._array.shape) if isinstance(output, Tensor) else ()

    def on_comparison(self, one: Tensor, two: Tensor) -> None:
        a, b = sorted((one._array, two._array), key=lambda array: array.ndim)
        n = a.shape[0] if a.ndim == 1 else 1
        if n == 1 or b.shape != (n, 1) or b.shape != self.shape:
            return
        other = not np.may_share_memory(a, b) and (a != b[:, 0]).any()
        self.count = self.count + 1 if other else 0
        if self.count == self.TIMES:
            self.hint(f"{b.shape} and {a.shape} broadcast to {(n, n)}.")


CHECKS = (ChoiceOverBatch, SummedLoss, CrossedComparison)
