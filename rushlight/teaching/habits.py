"""Checks of habits around the training loop: signs, optimizers, batches, layers in a row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any
from weakref import ref

import numpy as np

from rushlight.core.mode import mode
from rushlight.core.node import Node
from rushlight.core.tensor import Tensor
from rushlight.nn.containers import Sequential
from rushlight.nn.linear import Linear
from rushlight.nn.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.teaching.check import Check
from rushlight.teaching.gradients import SUPERVISED
from rushlight.teaching.labels import CLASS_LOSSES
from rushlight.teaching.losses import Activated, maker, op_name
from rushlight.teaching.notes import Notes, array_of, checksum, listed, parameters_of


class Maximized(Check):
    name = "the-loss-is-maximized"
    title = "training makes the loss larger"
    why = "A step along the gradient of -loss, or with maximize=True, makes the loss grow."
    fix = "remove the minus before backward(), or maximize=True."
    wrong = "(-F.cross_entropy(model(x), y)).backward(); optimizer.step()"
    right = "F.cross_entropy(model(x), y).backward(); optimizer.step()"
    limit = (
        "the program has one optimizer, of parameters of modules; backward() began at the negative of a loss of "
        "nn.functional (or the optimizer has maximize=True) in 20 steps in a row, and the loss is larger than at "
        "first."
    )
    STEPS = 20

    def prepare(self) -> None:
        self.optimizers: Notes[dict] = Notes(dict)
        self.loss: float | None = None
        self.negated = False
        self.losses: list[float] = []

    def on_backward(self, roots: Iterable[Node], nodes: list[Node]) -> None:
        root, value = next(iter(roots)), self.report.root_value
        self.negated = op_name(root) == "neg" and bool(root.edges)
        node = root.edges[0] if self.negated else root
        known = node is not None and node.name() in SUPERVISED and value is not None
        self.loss = abs(float(np.real(value))) if known else None

    def on_step_end(self, optimizer: Any) -> None:
        self.optimizers.of(optimizer)
        flag = bool(optimizer.param_groups[0].get("maximize", False))
        model = all(isinstance(p, Parameter) for p in parameters_of(optimizer))  # otherwise an adversarial attack
        if self.loss is None or flag == self.negated or not model:
            self.losses = []
            return
        self.losses.append(self.loss)
        alone = len([*self.optimizers.items()]) == 1
        if len(self.losses) == self.STEPS and alone and self.losses[-1] > self.losses[0]:
            how = "with maximize=True" if flag else "of -loss"
            self.hint(f"in {self.STEPS} steps {how}, the loss went from {self.losses[0]:.4g} to {self.losses[-1]:.4g}.")


class LinearAfterLinear(Check):
    name = "no-activation-between-layers"
    title = "two Linear layers without an activation between them"
    why = "The product of two matrices is one matrix: together the layers are one Linear layer."
    fix = "put an activation between them: nn.ReLU()."
    wrong = "nn.Sequential(nn.Linear(8, 32), nn.Linear(32, 3))"
    right = "nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))"
    limit = (
        "in a Sequential that is trained, a Linear layer follows another one, or two Linear layers of one module "
        "were called in a row, nothing else read the result of the first, the second result was not added "
        "to another tensor, and the size between them is not a bottleneck (smaller than both other sizes)."
    )
    PASSES = 3

    def prepare(self) -> None:
        self.seen: Notes[dict] = Notes(dict)
        self.found: list[str] = []
        self.passes = 0
        self.models: Notes[dict] = Notes(dict)  # outermost modules

    def on_module(self, module: Any, args: tuple, output: Any, outermost: bool) -> None:
        if not mode().grad:
            return
        if outermost:
            self.models.of(module)
        if not isinstance(module, Sequential) or self.seen.of(module):
            return
        self.seen.of(module)["looked"] = True
        names = list(module._modules)
        for a, b in zip(names, names[1:]):
            one, two = module._modules[a], module._modules[b]
            if type(one) is Linear and type(two) is Linear:
                self.compare("in a Sequential", a, one, b, two)

    def compare(self, where: str, a: str, one: Linear, b: str, two: Linear) -> None:
        between, ends = one.out_features, (one.in_features, two.out_features)
        trained = one.weight.requires_grad and two.weight.requires_grad
        if trained and between >= min(ends) and between > 1:
            self.found.append(f"{where}: '{a}' ({one.extra_repr()}), then '{b}'")

    def on_backward(self, roots: Iterable[Node], nodes: list[Node]) -> None:
        """Layers that forward() calls in a row."""
        if self.passes == self.PASSES:
            return
        self.passes += 1
        readers = Counter(id(edge) for node in nodes for edge in node.edges)
        added = {id(edge) for n in nodes if op_name(n) in ("add", "mul") for edge in n.edges}
        rows = [
            (weight_of(node.edges[0]), weight_of(node))
            for node in nodes
            if id(node) not in added and weight_of(node) and readers[id(node.edges[0])] == 1
        ]
        rows = [row for row in rows if row[0]]
        if rows:
            for model, _ in list(self.models.items()):
                for parent in model.modules():
                    self.in_a_row(parent, rows)

    def in_a_row(self, parent: Module, rows: list[tuple[int, int]]) -> None:
        """Compare the layers of one module whose weights are in a row."""
        if isinstance(parent, Sequential):
            return
        layers = {id(m.weight): (n, m) for n, m in parent._modules.items() if type(m) is Linear}
        for first, second in rows:
            if first in layers and second in layers and first != second:
                self.compare(f"in {type(parent).__name__}", *layers[first], *layers[second])

    def on_step_start(self, optimizer: Any) -> None:
        if self.found:
            self.hint(f"{listed(dict.fromkeys(self.found))}.")
        self.found = []


def weight_of(node: Node | None) -> int:
    """The identity of the weight of a linear function; 0 for other nodes."""
    leaf: Any = node.edges[1] if node is not None and op_name(node) == "linear" else None
    weight = leaf.tensor() if leaf is not None and leaf.leaf else None
    return 0 if weight is None else id(weight)


class NewOptimizer(Check):
    name = "new-optimizer-in-each-step"
    title = "a new optimizer is made for each step"
    why = (
        "Momentum and Adam's averages restart with each optimizer: each step is a first step, whose size does "
        "not depend on the gradient."
    )
    fix = "make the optimizer once, before the loop."
    wrong = "for x, y in loader: optimizer = Adam(model.parameters()); step(x, y)"
    right = "optimizer = Adam(model.parameters())\nfor x, y in loader: step(x, y)"
    limit = "15 steps in a row of one parameter were the first steps of optimizers with a state."
    STEPS = 15

    def prepare(self) -> None:
        self.optimizers: Notes[dict] = Notes(dict)
        self.leaf: Any = None
        self.count = 0

    def on_step_end(self, optimizer: Any) -> None:
        params, known = parameters_of(optimizer), self.optimizers.of(optimizer)
        first = not known
        known["stepped"] = True
        if not first or not optimizer.state or not params:
            self.count = 0
            return
        same = self.leaf is not None and self.leaf() is params[0]
        self.count = self.count + 1 if same else 1
        self.leaf = ref(params[0])
        if self.count == self.STEPS:
            kind = type(optimizer).__name__
            self.hint(f"{self.count} steps in a row were each the first of a new {kind}.")


class NothingReached(Check):
    name = "no-path-to-the-optimizer"
    title = "backward() reaches no parameter of the optimizer"
    why = "step() finds no gradient at all: nothing is trained, and the loss stays as it is."
    fix = (
        "give the optimizer the parameters of the model that computes the loss; look for detach(), item(), "
        "torch.tensor(loss) or numpy() between the model and the loss."
    )
    wrong = "loss = torch.tensor(loss.item(), requires_grad=True); loss.backward()"
    right = "loss.backward()"
    limit = (
        "backward() ran before each of 10 steps in a row, and no parameter of the optimizer has ever had a "
        "gradient, though one requires it."
    )
    STEPS = 10

    def prepare(self) -> None:
        self.passes = 0
        self.counts = Notes(lambda: [0])
        self.reached: Notes[dict] = Notes(dict)

    def on_backward(self, roots: Iterable[Node], nodes: list[Node]) -> None:
        self.passes += 1
        for node in nodes:
            leaf: Any = node.tensor() if node.leaf else None  # type: ignore[attr-defined]
            if leaf is not None:
                self.reached.of(leaf)["reached"] = True

    def on_step_start(self, optimizer: Any) -> None:
        params, count = parameters_of(optimizer), self.counts.of(optimizer)
        cut = not any(p._grad is not None or self.reached.of(p) for p in params)
        cut = cut and self.passes > 0 and any(p.requires_grad for p in params)
        count[0], self.passes = count[0] + 1 if cut else 0, 0
        if count[0] == self.STEPS:
            self.hint(
                f"in {count[0]} steps, none of {len(params)} parameters had a gradient, and backward() ran before each."
            )


class ReluBeforeLoss(Activated):
    name = "relu-before-cross-entropy"
    title = "a ReLU on the scores of a loss"
    why = (
        "Scores of classes may be of any sign. After a ReLU, a class whose score is 0 has no gradient, and no "
        "probability can fall far below the others."
    )
    fix = "remove the last activation: the last layer is Linear."
    wrong = "nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3), nn.ReLU())"
    right = "nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))"
    limit = "the op before cross_entropy or binary_cross_entropy_with_logits is relu."
    op, losses = "relu", ("cross_entropy", "binary_cross_entropy_with_logits")


class OneClass(Check):
    name = "softmax-of-one-score"
    title = "softmax of a single score is always 1"
    why = "Whatever the score is, the probability is 1 and the gradient is 0."
    fix = (
        "for two classes and one score use a sigmoid: binary_cross_entropy_with_logits; or give the last layer a "
        "score for each class."
    )
    wrong = "nn.Linear(8, 1), then F.cross_entropy(scores, y)"
    right = "nn.Linear(8, 1), then F.binary_cross_entropy_with_logits(scores[:, 0], y.float())"
    limit = "cross_entropy is given scores (N, 1), or the op before a loss is softmax over a dimension of size 1."
    static = True

    def on_loss(self, name: str, input: Tensor, target: Tensor) -> None:
        shape, node = tuple(input._array.shape), maker(input)
        if input._node is None:
            return
        if name in CLASS_LOSSES and len(shape) == 2 and shape[1] == 1:
            self.hint(f"{name} was given scores {shape}.")
        elif op_name(node) == "softmax" and node is not None and node.shape:
            dim: int = getattr(node, "_saved_dim")  # noqa: B009  (an attribute of this op's nodes)
            if node.shape[dim] == 1:
                self.hint(f"{name} was given softmax over dimension {dim} of {tuple(node.shape)}.")


class SameBatch(Check):
    name = "same-batch-in-each-step"
    title = "each step gets the first batch"
    why = "next(iter(loader)) restarts the loader: without shuffling the other batches are never seen."
    fix = "loop over the loader: for x, y in loader."
    wrong = "for i in range(1000): x, y = next(iter(loader))"
    right = "for x, y in loader:"
    limit = (
        "15 passes over a DataLoader in a row, with a step after each, gave one batch only, the same numbers each "
        "time, and the loader has more."
    )
    PASSES = 15

    def prepare(self) -> None:
        self.last: Any = None  # a weak reference to the iterator of the last batch
        self.data = self.count = 0

    def on_batch(self, batches: Any, batch: list[Tensor]) -> None:
        again = self.last is not None and self.last() is batches
        self.last = ref(batches)
        data = checksum(array_of(batch[0])) if batch else 0
        loader = getattr(batches, "_loader", None)
        more = loader is None or len(loader) > 1
        self.count = self.count + 1 if not again and data == self.data and more else 0
        self.data = data

    def on_step_end(self, optimizer: Any) -> None:
        if self.count == self.PASSES:
            self.hint(f"{self.count + 1} passes in a row gave the same batch, and only this one.")
            self.count += 1


class LargeDecay(Check):
    name = "weight-decay-too-large"
    title = "weight decay removes the weights"
    why = "Each step multiplies the weights by 1 - lr * weight_decay: they fall to 0."
    fix = "lower weight_decay: lr * weight_decay is 1e-6 to 1e-3 in most trainings."
    wrong = "SGD(model.parameters(), lr=0.1, weight_decay=1.0)"
    right = "SGD(model.parameters(), lr=0.1, weight_decay=1e-4)"
    limit = "lr * weight_decay of SGD or AdamW is 0.05 or more in 10 steps."
    STEPS, LEAST = 10, 0.05

    def prepare(self) -> None:
        self.counts = Notes(lambda: [0])

    def on_step_end(self, optimizer: Any) -> None:
        if type(optimizer).__name__ not in ("SGD", "AdamW"):
            return
        count = self.counts.of(optimizer)
        for group in optimizer.param_groups:
            part = float(group["lr"]) * float(group.get("weight_decay") or 0.0)
            if part >= self.LEAST:
                count[0] += 1
                if count[0] == self.STEPS:
                    self.hint(
                        f"lr={float(group['lr']):g} and weight_decay={group['weight_decay']:g}: each step takes "
                        f"{part:.0%} of the weights away."
                    )
                return


CHECKS = (Maximized, LinearAfterLinear, NewOptimizer, NothingReached, ReluBeforeLoss, OneClass, SameBatch, LargeDecay)
