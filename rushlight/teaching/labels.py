"""Checks of the targets: their order, and whether they vary."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.core.tensor import Tensor
from rushlight.teaching.check import Check
from rushlight.teaching.losses import op_name
from rushlight.teaching.notes import array_of

CLASS_LOSSES = ("cross_entropy", "nll_loss")


class Sorted:
    """A run of batches whose labels do not fall: `pure`: classes that filled a whole batch."""

    def __init__(self) -> None:
        self.last = -np.inf
        self.batches = self.samples = 0
        self.pure: set[int] = set()


class SortedLabels(Check):
    name = "data-not-shuffled"
    title = "the data come sorted by class"
    why = (
        "Each batch has one class: the model learns to predict the present class, and forgets the "
        "others."
    )
    fix = "shuffle: DataLoader(data, shuffle=True), or an order from torch.randperm."
    wrong = "loader = DataLoader(data, batch_size=32)                 # sorted by class"
    right = "loader = DataLoader(data, batch_size=32, shuffle=True)"
    limit = (
        "the labels of 6 batches in a row come in ascending order, and 3 classes fill whole "
        "batches (of two classes: 10 batches). A loader without shuffling is no finding by itself."
    )
    BATCHES, CLASSES, BATCHES_OF_TWO, SIZE = 6, 3, 10, 4

    def __init__(self, report: Any):
        super().__init__(report)
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
                f"the labels of {run.batches} batches in a row came in ascending order; whole "
                f"batches had only class {classes}."
            )


class ConstantLabels(Check):
    name = "labels-do-not-vary"
    title = "all labels are equal"
    why = "The model learns to give one answer: the loss falls to 0, and says nothing."
    fix = "print labels of the data set: was a wrong column or file read?"
    wrong = "data = TensorDataset(x, torch.zeros(1000, dtype=torch.long))"
    right = "data = TensorDataset(x, labels)"
    limit = (
        "200 or more targets in 8 batches of a DataLoader have one value; or 200 or more classes "
        "in 20 losses of one model, whose last layer is Linear."
    )
    BATCHES, LOSSES, SAMPLES = 8, 20, 200

    def __init__(self, report: Any):
        super().__init__(report)
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
        if not any(
            np.may_share_memory(labels, t._array) for t in self.batch if array_of(t) is not None
        ):
            return
        first = labels.flat[0]
        self.value = first if self.value is None else self.value
        self.varies = bool((labels != self.value).any())
        self.batches, self.samples = self.batches + 1, self.samples + labels.size
        if not self.varies and self.batches == self.BATCHES and self.samples >= self.SAMPLES:
            self.hint(f"{self.samples} targets in {self.batches} batches are {self.value}.")

    def of_one_model(self, input: Tensor, labels: np.ndarray) -> bool:
        """Whether a hint was given: all classes that a Linear layer was compared with are equal."""
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


CHECKS = (SortedLabels, ConstantLabels)
