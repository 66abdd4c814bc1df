"""Checks of the targets: their order, and whether they vary."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from rushlight.core.node import Node
from rushlight.core.tensor import Tensor
from rushlight.teaching.check import Check
from rushlight.teaching.losses import op_name
from rushlight.teaching.notes import array_of

CLASS_LOSSES = ("cross_entropy", "nll_loss")


class Sorted:
    """A run of batches with ascending labels. `pure`: classes that filled a whole batch."""

    def __init__(self) -> None:
        self.last = -np.inf
        self.batches = self.samples = 0
        self.pure: set[int] = set()


class SortedLabels(Check):
    name = "data-not-shuffled"
    title = "the data come sorted by class"
    why = "Each batch has one class: the model learns to predict the present class, and forgets the others."
    fix = "shuffle: DataLoader(data, shuffle=True), or an order from torch.randperm."
    wrong = "loader = DataLoader(data, batch_size=32)                 # sorted by class"
    right = "loader = DataLoader(data, batch_size=32, shuffle=True)"
    limit = (
        "the labels of 6 batches in a row come in ascending order, and 3 classes fill whole batches (of two "
        "classes: 10 batches). A loader without shuffling is not reported by itself."
    )
    BATCHES, CLASSES, BATCHES_OF_TWO, SIZE = 6, 3, 10, 4

    def prepare(self) -> None:
        self.runs: dict[tuple, Sorted] = {}

    def on_loss(self, name: str, input: Tensor, target: Tensor) -> None:
        labels = array_of(target)
        if labels is None or name not in CLASS_LOSSES or input._node is None:
            return
        if labels.dtype.kind not in "iu" or labels.ndim != 1 or len(labels) < self.SIZE:
            return
        key = (name, input._array.shape[1:])
        run = self.runs.setdefault(key, Sorted())
        if (np.diff(labels) < 0).any() or labels[0] < run.last:
            run = self.runs[key] = Sorted()
            return
        run.last, run.batches = labels[-1], run.batches + 1
        if labels[0] == labels[-1]:
            run.pure.add(int(labels[0]))
        few = len(run.pure) < self.CLASSES
        needed = self.BATCHES_OF_TWO if few else self.BATCHES
        if len(run.pure) >= 2 and run.batches >= needed:
            classes = ", ".join(map(str, sorted(run.pure)))
            self.hint(
                f"the labels of {run.batches} batches in a row came in ascending order; whole batches had only class "
                f"{classes}."
            )


class ConstantLabels(Check):
    name = "labels-do-not-vary"
    title = "all labels are equal"
    why = "The model learns to give one answer: the loss falls to 0, and is meaningless."
    fix = "print labels of the data set: was a wrong column or file read?"
    wrong = "data = TensorDataset(x, torch.zeros(1000, dtype=torch.long))"
    right = "data = TensorDataset(x, labels)"
    limit = (
        "200 or more targets in 8 batches of a DataLoader have one value; or 200 or more classes in 20 losses of "
        "one model, whose last layer is Linear."
    )
    BATCHES, LOSSES, SAMPLES = 8, 20, 200

    def prepare(self) -> None:
        self.batch: list[Tensor] = []
        self.value: Any = None
        self.batches = self.samples = 0
        self.varies = False
        self.models: dict[tuple, list] = {}  # shape of the weight -> value, losses, samples

    def on_batch(self, batches: Any, batch: list[Tensor]) -> None:
        self.batch = batch

    def on_loss(self, name: str, input: Tensor, target: Tensor) -> None:
        labels = array_of(target)
        if labels is None or not labels.size or input._node is None:
            return
        if name in CLASS_LOSSES and labels.dtype.kind in "iu" and self.of_one_model(input, labels):
            return
        if self.varies:
            return
        if not any(np.may_share_memory(labels, t._array) for t in self.batch if array_of(t) is not None):
            return
        first = labels.flat[0]
        self.value = first if self.value is None else self.value
        self.varies = bool((labels != self.value).any())
        self.batches, self.samples = self.batches + 1, self.samples + labels.size
        if not self.varies and self.batches == self.BATCHES and self.samples >= self.SAMPLES:
            self.hint(f"{self.samples} targets in {self.batches} batches are {self.value}.")

    def of_one_model(self, input: Tensor, labels: np.ndarray) -> bool:
        """Give a hint if all classes that a Linear layer was compared with are equal. Returns whether it was given."""
        node = input._node
        if node is None or op_name(node) != "linear" or input._array.ndim != 2:
            return False
        note = self.models.setdefault(input._array.shape[1:], [labels.flat[0], 0, 0])
        note[0] = note[0] if (labels == note[0]).all() else None
        note[1], note[2] = note[1] + 1, note[2] + labels.size
        if note[0] is None or note[1] != self.LOSSES or note[2] < self.SAMPLES:
            return False
        self.varies = True
        self.hint(f"{note[2]} targets of {note[1]} losses are {note[0]}.")
        return True


class TargetIsInput(Check):
    name = "target-equals-input"
    title = "the targets are the tokens that the model reads"
    why = "The model may copy: the loss falls to 0, and the model has not learned to predict the next token."
    fix = "shift the targets by one: x = tokens[:, :-1], y = tokens[:, 1:]."
    wrong = "x, y = tokens[i : i + t], tokens[i : i + t]"
    right = "x, y = tokens[i : i + t], tokens[i + 1 : i + t + 1]"
    limit = (
        "the targets of cross_entropy or nll_loss are the numbers that an embedding was given, in 10 losses in a "
        "row of the first 100, and the graph leads from the scores to the embedding without a layer that has fewer "
        "positions. An autoencoder, and a model with another embedding of the same number of tokens, are not reported."
    )
    LOSSES, FIRST, SIZE = 10, 100, 16

    count = looked = 0

    def on_loss(self, name: str, input: Tensor, target: Tensor) -> None:
        labels = array_of(target)
        if self.looked == self.FIRST or name not in CLASS_LOSSES or labels is None:
            return
        if input._node is None or labels.dtype.kind not in "iu" or labels.size < self.SIZE:
            return
        self.looked += 1
        read = [*embedded(input._node, labels.size)]
        copied = bool(read) and all((tokens == labels.ravel()).all() for tokens in read)
        self.count = self.count + 1 if copied else 0
        if self.count == self.LOSSES:
            self.hint(
                f"in {self.LOSSES} losses in a row, all of {labels.size} targets were the tokens of the input, at the "
                "same places."
            )


def embedded(node: Node, positions: int) -> Iterator[np.ndarray]:
    """The tokens, in one row, of the embeddings with this number of positions that the node reads through nodes with
    all positions."""
    todo, seen = [node], set()
    while todo:
        node = todo.pop()
        if id(node) in seen or not keeps(node.shape, positions):
            continue
        seen.add(id(node))
        saved = node.saved if op_name(node) == "embedding" else None
        tokens = array_of(saved[0]) if saved else None
        if tokens is not None and tokens.size == positions:
            yield tokens.ravel()
        todo += [edge for edge in node.edges if edge is not None and not edge.leaf]


def keeps(shape: Any, positions: int) -> bool:
    """Whether the sizes besides one dimension (features) multiply to a multiple of `positions`."""
    if shape is None:  # a function of several results
        return True
    return any(prod(shape) // n % positions == 0 for n in shape[1:] if n)


class ConstantInputs(Check):
    name = "inputs-do-not-vary"
    title = "all inputs are equal"
    why = "The model sees no difference between samples: it can only learn the mean of the targets."
    fix = "print inputs of the data set: do x // 255, a cast or an index remove what differs?"
    wrong = "x = (pictures // 255).float()      # of uint8: 0 or 1"
    right = "x = pictures.float() / 255"
    limit = (
        "a model's only argument has 8 or more samples, all equal, and the targets of the loss after it differ; "
        "in 10 losses in a row."
    )
    LOSSES, SAMPLES = 10, 8

    def prepare(self) -> None:
        self.equal = self.count = 0  # `equal`: the number of samples of the last input, if they are equal

    def on_module(self, module: Any, args: tuple, output: Any, outermost: bool) -> None:
        if outermost:
            one = args[0] if len(args) == 1 and isinstance(args[0], Tensor) else None
            array = array_of(one)
            same = array is not None and array.ndim > 1 and array.size > 0 and same_rows(array)
            self.equal = len(array) if array is not None and same else 0

    def on_loss(self, name: str, input: Tensor, target: Tensor) -> None:
        labels = array_of(target)
        if input._node is None or labels is None:
            return
        alike = self.SAMPLES <= self.equal == len(np.atleast_1d(labels)) and not same_rows(labels)
        self.count = self.count + 1 if alike else 0
        if self.count == self.LOSSES:
            self.hint(f"in {self.count} losses in a row, all {self.equal} samples were equal.")


def same_rows(array: np.ndarray) -> bool:
    return bool((array[0] == array[-1]).all() and (array == array[:1]).all())


CHECKS = (SortedLabels, ConstantLabels, TargetIsInput, ConstantInputs)
