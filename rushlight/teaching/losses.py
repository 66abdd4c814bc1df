"""Checks of a loss's arguments: their shapes, and the op that made its input."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

import numpy as np

from rushlight.base.errors import here
from rushlight.core.node import Node
from rushlight.core.tensor import Tensor
from rushlight.teaching.check import Check

# ops that do not change values: an earlier op computed the values
SAME_VALUES = {
    "view_as_shape", "view", "reshape", "squeeze", "unsqueeze", "flatten", "transpose", "permute",
    "contiguous", "clone", "to", "getitem",
}  # fmt: skip
REGRESSION = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
# ops between a loss and the difference of prediction and target
REDUCING = {"mean", "sum", "pow", "square", "abs", "mul", "div", "neg", "sqrt"}


def op_name(node: Node | None) -> str:
    op = getattr(node, "op", None)
    return "" if op is None else op.name


def maker(tensor: Tensor) -> Node | None:
    """The node of the op that computed the tensor's values; views are passed over."""
    node = tensor._node
    while node is not None and op_name(node) in SAME_VALUES and node.edges:
        node = node.edges[0]
    return node


def crossed(a: tuple, b: tuple) -> bool:
    """Whether two shapes with equal numbers of elements broadcast to a larger shape: (N,) and (N, 1)."""
    return a != b and prod(a) == prod(b) > 1 and prod(np.broadcast_shapes(a, b)) > prod(a)


class BroadcastLoss(Check):
    name = "loss-that-broadcasts"
    title = "the loss compares every prediction with every target"
    why = (
        "Shapes (N,) and (N, 1) broadcast to (N, N): the loss is a mean over all pairs, and its minimum predicts "
        "the mean target for every sample."
    )
    fix = "give both the same shape: pred.squeeze(1), or target.unsqueeze(1)."
    wrong = "loss = F.mse_loss(model(x), y)               # (N, 1) and (N,)"
    right = "loss = F.mse_loss(model(x).squeeze(1), y)    # (N,) and (N,)"
    limit = "both shapes hold the same number of elements, and broadcast to more."
    static = True

    def on_loss(self, name: str, input: Tensor, target: Tensor) -> None:
        if name in REGRESSION:
            self.compare(input._array.shape, target._array.shape)

    def compare(self, a: tuple, b: tuple, place: str = "") -> None:
        try:
            if not crossed(a, b):
                return
        except ValueError:  # the loss raises an error
            return
        whole = tuple(np.broadcast_shapes(a, b))
        self.hint(f"prediction {a} and target {b} broadcast to {whole}.", place)

    def on_backward(self, roots: Iterable[Node], nodes: list[Node]) -> None:
        """Find the difference in a loss that the program computes itself: mean((pred - y) ** 2)."""
        for node in roots:
            for _ in range(6):
                if op_name(node) == "sub":
                    self.difference(node)
                edges = [edge for edge in node.edges if edge is not None]
                if op_name(node) not in REDUCING or len(set(edges)) != 1:
                    break
                node = edges[0]

    def difference(self, node: Node) -> None:
        edges = [edge for edge in node.edges if edge is not None]
        shape = node.shape or ()
        if len(edges) != 1 or len(shape) != 2 or shape[0] != shape[1] or shape[0] < 2:
            return
        one, n = edges[0].shape, shape[0]
        if one in ((n,), (n, 1)):
            self.compare(one, (n, 1) if one == (n,) else (n,), node.made_at)


class Activated(Check):
    """The base of checks of the op before a loss."""

    op = ""
    losses: tuple[str, ...] = ()
    static = True

    def on_loss(self, name: str, input: Tensor, target: Tensor) -> None:
        node = maker(input)
        if name in self.losses and node is not None and op_name(node) == self.op:
            made_at = "" if node.made_at == here() else f", made at {node.made_at}"
            self.hint(f"{name} was given the result of {self.op}{made_at}.")


class SoftmaxBeforeCrossEntropy(Activated):
    name = "softmax-before-cross-entropy"
    title = "softmax before cross_entropy"
    why = (
        "cross_entropy applies log_softmax itself. A second softmax bounds the logits to [0, 1]: with 10 classes "
        "the loss cannot fall below 1.46, and gradients are small."
    )
    fix = "pass the logits: remove the softmax; apply it only to show probabilities."
    wrong = "loss = F.cross_entropy(model(x).softmax(1), y)"
    right = "loss = F.cross_entropy(model(x), y)"
    limit = "the op before the loss is softmax; views between them are passed over."
    op, losses = "softmax", ("cross_entropy",)


class LogSoftmaxTwice(Activated):
    name = "log-softmax-twice"
    title = "log_softmax before cross_entropy"
    why = (
        "cross_entropy applies log_softmax itself. A second one changes no number, but costs time, and the model's "
        "output no longer matches its name."
    )
    fix = "pass the logits to cross_entropy, or log_softmax to nll_loss."
    wrong = "loss = F.cross_entropy(model(x).log_softmax(1), y)"
    right = "loss = F.nll_loss(model(x).log_softmax(1), y)"
    limit = "the op before the loss is log_softmax."
    op, losses = "log_softmax", ("cross_entropy",)


class NoLogBeforeNll(Activated):
    name = "no-log-before-nll-loss"
    title = "nll_loss without logarithm"
    why = (
        "nll_loss(x, y) is the mean of -x[i, y[i]] and takes log-probabilities. For probabilities the loss is "
        "negative, and its gradient does not grow for confident errors."
    )
    fix = "use log_softmax instead of softmax, or cross_entropy on the logits."
    wrong = "loss = F.nll_loss(model(x).softmax(1), y)"
    right = "loss = F.nll_loss(model(x).log_softmax(1), y)"
    limit = "the op before the loss is softmax."
    op, losses = "softmax", ("nll_loss",)


class SoftmaxOverBatch(Check):
    name = "softmax-over-the-batch"
    title = "log_softmax over the batch, not over the classes"
    why = (
        "nll_loss takes one distribution over the classes for each sample. With dim=0 the probabilities of one "
        "class add up to 1 over the samples of the batch: samples compete with each other, and the loss depends on "
        "the batch."
    )
    fix = "normalize over the dimension of the classes: log_softmax(scores, dim=1)."
    wrong = "loss = F.nll_loss(model(x).log_softmax(dim=0), y)"
    right = "loss = F.nll_loss(model(x).log_softmax(dim=1), y)"
    limit = (
        "the op before nll_loss is log_softmax, or log of softmax, over another dimension than the classes. As "
        "many samples as classes (each sample is its own class) are not reported."
    )
    static = True

    def on_loss(self, name: str, input: Tensor, target: Tensor) -> None:
        node, shape = input._node, input._array.shape
        if op_name(node) == "log" and node is not None and node.edges:
            node = node.edges[0]
        if name != "nll_loss" or op_name(node) not in ("softmax", "log_softmax"):
            return
        dim: int = getattr(node, "_saved_dim")  # noqa: B009  (an attribute of this op's nodes)
        dim, classes = dim % len(shape), min(1, len(shape) - 1)
        if dim != classes and shape[dim] != shape[classes]:
            self.hint(
                f"nll_loss was given {op_name(node)} over dimension {dim} of {shape}; the classes are dimension "
                f"{classes}."
            )


class SigmoidBeforeLogits(Activated):
    name = "sigmoid-before-bce-with-logits"
    title = "sigmoid before binary_cross_entropy_with_logits"
    why = (
        "The loss applies sigmoid itself. After two of them a prediction lies in [0.5, 0.73]: the loss of a "
        "negative sample cannot fall below 0.69."
    )
    fix = "pass the logits: remove the sigmoid, or use binary_cross_entropy."
    wrong = "loss = F.binary_cross_entropy_with_logits(model(x).sigmoid(), y)"
    right = "loss = F.binary_cross_entropy_with_logits(model(x), y)"
    limit = "the op before the loss is sigmoid."
    op, losses = "sigmoid", ("binary_cross_entropy_with_logits",)


class NanLoss(Check):
    name = "loss-is-nan"
    title = "the loss is nan"
    why = "Every gradient becomes nan, then every parameter: no later step can repair the model."
    fix = (
        "check this statement for 0 / 0, log or sqrt at 0, or overflow of exp; lower the learning rate if "
        "parameters grew; clip gradients."
    )
    wrong = "loss = -(p * p.log()).sum()           # nan where p is 0"
    right = "loss = -torch.special.entr(p).sum()   # also: p.clamp(min=1e-12).log()"
    limit = "backward() begins at a value that is nan; the first nan is reported."

    def prepare(self) -> None:
        self.count, self.done = 0, False

    def on_backward(self, roots: Iterable[Node], nodes: list[Node]) -> None:
        self.count += 1
        value = self.report.root_array
        if self.done or value is None or value.dtype.kind not in "fc" or not np.isnan(value).any():
            return
        self.done = True
        from rushlight.autograd.nan_check import beginning

        root = next(iter(roots))
        self.hint(f"in backward() number {self.count}; nan began {beginning(root)}.", root.made_at)


CHECKS = (
    BroadcastLoss, SoftmaxBeforeCrossEntropy, LogSoftmaxTwice, NoLogBeforeNll, SoftmaxOverBatch, SigmoidBeforeLogits,
    NanLoss,
)  # fmt: skip
