"""Checks of confused dimensions: samples taken for time, a view for a permutation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rushlight.core.mode import mode
from rushlight.core.node import Node
from rushlight.core.tensor import Tensor
from rushlight.nn.conv import _ConvNd
from rushlight.nn.multihead import MultiheadAttention
from rushlight.nn.recurrent import RNNBase
from rushlight.teaching.check import Check
from rushlight.teaching.losses import op_name


class BatchAsSequence(Check):
    name = "batch-taken-for-time"
    title = "the samples of a batch are taken for the steps of one sequence"
    why = (
        "Without batch_first=True the first dimension is time: the layer mixes the samples of a batch, and does not "
        "look along the sequence."
    )
    fix = "make the layer with batch_first=True, or give it x.transpose(0, 1)."
    wrong = "out, _ = nn.LSTM(3, 24)(x); scores = fc(out[:, -1])        # x: (samples, steps, 3)"
    right = "out, _ = nn.LSTM(3, 24, batch_first=True)(x); scores = fc(out[:, -1])"
    limit = (
        "a recurrent layer or MultiheadAttention with batch_first=False gets (N, T, C), N not T, T not 1, and the "
        "loss after it has N predictions and N targets, one for each; in 5 calls in a row."
    )
    CALLS = 5

    def prepare(self) -> None:
        self.last: tuple[str, tuple] | None = None  # class of the layer, shape of its input
        self.count = 0

    def on_module(self, module: Any, args: tuple, output: Any, outermost: bool) -> None:
        if isinstance(module, (RNNBase, MultiheadAttention)) and not module.batch_first:
            shape = tuple(args[0].shape) if args and isinstance(args[0], Tensor) else ()
            self.last = (type(module).__name__, shape) if mode().grad else None

    def on_loss(self, name: str, input: Tensor, target: Tensor) -> None:
        if self.last is None or input._node is None:
            return
        (kind, shape), self.last = self.last, None
        ends = {tuple(input._array.shape[:1]), tuple(target._array.shape)}
        samples = len(shape) == 3 and ends == {shape[:1]} and input._array.ndim <= 2
        self.count = self.count + 1 if samples and 1 != shape[1] != shape[0] != 1 else 0
        if self.count == self.CALLS:
            self.hint(
                f"{kind} with batch_first=False was given {shape}: {shape[0]} steps of {shape[1]} samples; the loss "
                f"after it had {shape[0]} samples."
            )


class ViewForPermutation(Check):
    name = "view-for-permute"
    title = "view() is used where permute() is meant"
    why = (
        "view() and reshape() keep the order of the numbers and only regroup them: rows and channels of a "
        "picture are mixed. permute() and transpose() exchange dimensions."
    )
    fix = "exchange the dimensions: x.permute(0, 3, 1, 2), x.transpose(1, 2)."
    wrong = "conv(images.view(-1, 3, 32, 32))         # images: (N, 32, 32, 3)"
    right = "conv(images.permute(0, 3, 1, 2))"
    limit = (
        "a convolution or a recurrent layer gets a view of a tensor that has the same sizes in another order, and "
        "both are contiguous; in 3 calls with grad mode on."
    )
    CALLS = 3

    count = 0

    def on_module(self, module: Any, args: tuple, output: Any, outermost: bool) -> None:
        x = args[0] if args and isinstance(module, (_ConvNd, RNNBase)) else None
        base = x._base if isinstance(x, Tensor) and mode().grad else None
        if x is None or base is None or base.dim() != x.dim() or x.dim() < 3:
            return
        old, new = tuple(base.shape), tuple(x.shape)
        # base may have more samples: x is a view of a slice
        mixed = exchanged(old, new) or exchanged(old[1:], new[1:])
        if mixed and x.is_contiguous() and base.is_contiguous():
            self.count += 1
            if self.count == self.CALLS:
                kind = type(module).__name__
                self.hint(f"{kind} was given a view {new} of {old}.")


def exchanged(old: tuple, new: tuple) -> bool:
    """Whether both shapes have the same sizes in another order, ignoring sizes of 1."""
    one, two = ([n for n in shape if n != 1] for shape in (old, new))
    return one != two and sorted(one) == sorted(two)


class AttentionOverQueries(Check):
    name = "attention-over-queries"
    title = "the softmax of an attention is over the queries, not over the keys"
    why = (
        "The weights of one query do not add up to 1: its result is not a mean of the values, and depends on the other "
        "queries."
    )
    fix = "normalize over the last dimension: scores.softmax(dim=-1)."
    wrong = "weights = (q @ k.transpose(1, 2)).softmax(dim=1); out = weights @ v"
    right = "weights = (q @ k.transpose(1, 2)).softmax(dim=-1); out = weights @ v"
    limit = (
        "the first factor of a matrix product is softmax, or dropout of it, of square matrices of 3 or more rows, "
        "over the dimension before the last; in 3 backward passes."
    )
    PASSES, ROWS = 3, 3

    passes = count = 0

    def on_backward(self, roots: Iterable[Node], nodes: list[Node]) -> None:
        self.passes += 1
        if self.passes > 10 * self.PASSES:
            return
        found = [n for n in nodes if op_name(n) == "mm" and n.edges and self.wrong_axis(n.edges[0])]
        self.count += bool(found)
        if found and self.count == self.PASSES:
            node, shape = found[0], tuple(found[0].edges[0].shape)
            self.hint(f"weights {shape}: softmax over dimension {len(shape) - 2}.", node.made_at)

    def wrong_axis(self, node: Node | None) -> bool:
        if op_name(node) == "mul" and node is not None and None in node.edges:  # dropout
            node = next((edge for edge in node.edges if edge is not None), None)
        shape: tuple[int, ...] = getattr(node, "shape", None) or ()
        if op_name(node) != "softmax" or len(shape) < 2 or shape[-1] != shape[-2]:
            return False
        dim: int = getattr(node, "_saved_dim")  # noqa: B009  (an attribute of this op's nodes)
        return dim % len(shape) == len(shape) - 2 and shape[-1] >= self.ROWS


CHECKS = (BatchAsSequence, ViewForPermutation, AttentionOverQueries)
