"""Checks of numbers in training: dead units, gradients by layer, the size of updates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import mean, median, pvariance
from typing import Any

import numpy as np

from rushlight.base.errors import here
from rushlight.core.node import Node
from rushlight.core.tensor import Tensor
from rushlight.teaching.check import Check
from rushlight.teaching.losses import op_name
from rushlight.teaching.notes import Notes, array_of, gradient, name_in, parameters_of, rms


class Alive:
    """Units of a ReLU that were positive since the window began; `steps`, `samples` in it."""

    def __init__(self) -> None:
        self.units: Any = None
        self.steps = self.samples = 0


class DeadRelu(Check):
    name = "dead-relus"
    title = "most units of a ReLU are never active"
    why = (
        "A unit that is 0 for every sample has gradient 0: its weights never change again. Usual causes: a learning "
        "rate that is too high, or a large negative bias."
    )
    fix = "lower the learning rate, scale the inputs, or use LeakyReLU or GELU."
    wrong = "nn.Sequential(nn.Linear(8, 64), nn.ReLU())   # with lr=10"
    right = "nn.Sequential(nn.Linear(8, 64), nn.ReLU())   # with lr=0.01"
    limit = (
        "at least 90 % of 8 or more units were 0 for every sample of 50 steps, and of 500 samples; or all units "
        "for every sample of 10 steps, and of 100 samples."
    )
    STEPS, SAMPLES, UNITS, PART = 50, 500, 8, 0.9
    STEPS_OF_ALL, SAMPLES_OF_ALL = 10, 100

    def prepare(self) -> None:
        self.windows: dict[tuple, Alive] = {}

    def on_backward(self, roots: Iterable[Node], nodes: list[Node]) -> None:
        seen: dict[tuple, int] = {}
        for node in nodes:
            if op_name(node) != "relu" or not node.saved:
                continue
            out = node.saved[0]
            if isinstance(out, np.ndarray) and out.ndim in (2, 3, 4) and node.where:
                key = (*node.where, out.shape[1:])
                seen[key] = seen.get(key, 0) + 1
                self.look(node, (*key, seen[key]), out)

    def look(self, node: Node, key: tuple, out: np.ndarray) -> None:
        unit_axis = 1 if out.ndim == 4 else out.ndim - 1
        largest = out.max(axis=tuple(i for i in range(out.ndim) if i != unit_axis), initial=0)
        active = ~(largest <= 0)  # a unit of nan is not dead: loss-is-nan reports nan
        window = self.windows.setdefault(key, Alive())
        window.units = active if window.units is None else window.units | active
        window.steps, window.samples = window.steps + 1, window.samples + len(out)
        dead, units = int((~window.units).sum()), len(window.units)
        long = window.steps >= self.STEPS and window.samples >= self.SAMPLES
        some = window.steps >= self.STEPS_OF_ALL and window.samples >= self.SAMPLES_OF_ALL
        if not long and not (some and dead == units):
            return
        if units >= self.UNITS and dead >= self.PART * units:
            self.hint(
                f"{dead} of {units} units were 0 for all {window.samples} samples of {window.steps} steps.",
                node.made_at,
            )
        self.windows[key] = Alive()


def matrices(optimizer: Any) -> Iterator[tuple[Tensor, np.ndarray, np.ndarray]]:
    """(parameter, array, gradient) of the weight matrices, in the optimizer's order. A matrix whose gradient is mostly
    0 is left out: the table of an embedding."""
    for p in parameters_of(optimizer):
        w, g = array_of(p), gradient(p)
        if w is None or g is None or w.ndim < 2 or w.dtype.kind != "f":
            continue
        if 2 * np.count_nonzero(g) > g.size:
            yield p, w, g


class GradientSizes(Check):
    """The base of the checks of gradients by layer."""

    STEPS = 20

    def prepare(self) -> None:
        self.counts = Notes(lambda: [0])
        self.roots: Notes[dict] = Notes(dict)

    def on_module(self, module: Any, args: tuple, output: Any, outermost: bool) -> None:
        if outermost:
            self.roots.of(module)

    def called(self, p: Tensor) -> str:
        return name_in([root for root, _ in self.roots.items()], p)

    def on_step_start(self, optimizer: Any) -> None:
        sizes = [(p, rms(w), rms(g)) for p, w, g in matrices(optimizer)]
        sizes = [size for size in sizes if np.isfinite(size[2])]
        count = self.counts.of(optimizer)
        seen = self.seen(sizes) if sizes else ""
        count[0] = count[0] + 1 if seen else 0
        if count[0] == self.STEPS:
            self.hint(seen)

    def seen(self, sizes: list[tuple[Tensor, float, float]]) -> str:
        """The problem with these (parameter, rms of the weights, rms of the gradient); "" if there is none."""
        raise NotImplementedError


class VanishingGradient(GradientSizes):
    name = "vanishing-gradients"
    title = "gradients vanish on the way to the first layers"
    why = "The first layers hardly change: their gradient is a product of many factors below 1."
    fix = (
        "use ReLU or GELU instead of sigmoid or tanh, kaiming_normal_ or xavier_normal_ for the weights, "
        "normalization layers, or residual connections."
    )
    wrong = "layers = [nn.Linear(32, 32), nn.Sigmoid()] * 12"
    right = "layers = [nn.Linear(32, 32), nn.BatchNorm1d(32), nn.ReLU()] * 12"
    limit = (
        "a model has at least 4 weight matrices, and the gradient of the first is a million times smaller than the "
        "gradient of the last (root mean square), for 20 steps."
    )
    RATIO, LAYERS = 1e-6, 4

    def seen(self, sizes: list[tuple[Tensor, float, float]]) -> str:
        (first, _, small), (_, _, large) = sizes[0], sizes[-1]
        if len(sizes) < self.LAYERS or not small < self.RATIO * large:
            return ""
        return (
            f"the gradient of {self.called(first)} has a root mean square of {small:.1e}, the last layer's {large:.1e}."
        )


class ExplodingGradient(GradientSizes):
    name = "exploding-gradients"
    title = "gradients explode"
    why = "One step moves the parameters so far that the loss jumps, and may become nan."
    fix = (
        "lower the learning rate, clip by nn.utils.clip_grad_norm_, scale inputs and targets, or initialize with "
        "kaiming_normal_ or xavier_normal_."
    )
    wrong = "loss.backward(); optimizer.step()"
    right = "loss.backward(); clip_grad_norm_(model.parameters(), 1.0); optimizer.step()"
    limit = (
        "the gradient of a weight matrix is more than a million times as large as the weights (root mean square), "
        "in 3 steps in a row, at the optimizer's step (after clipping)."
    )
    STEPS, RATIO = 3, 1e6

    def seen(self, sizes: list[tuple[Tensor, float, float]]) -> str:
        p, w, g = max(sizes, key=lambda size: size[2] / (size[1] or 1.0))
        if g <= self.RATIO * (w or 1.0):
            return ""
        return f"the gradient of {self.called(p)} has a root mean square of {g:.1e}, its weights {w:.1e}."


SUPERVISED = {
    "NllLossBackward0", "CrossEntropyLossBackward0", "MseLossBackward0", "SmoothL1LossBackward0",
    "HuberLossBackward0", "BinaryCrossEntropyBackward0", "BinaryCrossEntropyWithLogitsBackward0",
}  # fmt: skip


class Training:
    """The first steps of an optimizer: losses, ratios of update to weights, learning rates."""

    def __init__(self) -> None:
        self.losses: list[float] = []
        self.ratios: list[float] = []
        self.rates: list[float] = []
        self.before: list[tuple[Tensor, np.ndarray]] = []
        self.largest, self.place = 0.0, ""


class UpdateRatio(Check):
    name = "update-ratio"
    title = "updates are too large or too small for the weights"
    why = (
        "A step that changes weights by about a thousandth of their size trains well. Far larger steps destroy the "
        "learned weights, far smaller ones learn nothing."
    )
    fix = "change the learning rate by this factor."
    wrong = "optimizer = Adam(model.parameters(), lr=10)"
    right = "optimizer = Adam(model.parameters(), lr=1e-3)"
    limit = (
        "the program has one optimizer, whose rate does not change, and a loss of nn.functional; in its first 100 "
        "steps the median of the ratio is 30 times above or below 1e-3, and the mean of the last 50 losses is not "
        "below the first loss (too large), or within 1 % of the mean of the 50 before (too small). In 100 steps, or "
        "30 at the end of the program, a ratio that stays below 1e-5 is too small if the second half of the losses is "
        "not below the first half by more than twice the standard error of their difference."
    )
    STEPS, EVERY, TARGET, FACTOR = 100, 5, 1e-3, 30.0
    LEAST, TINY = 30, 1e-5  # for a short program, at its end: the least number of steps, and the ratio

    def prepare(self) -> None:
        self.notes = Notes(self.noted)
        self.optimizers: list[Training] = []  # also for optimizers that are gone
        self.loss: float | None = None

    def noted(self) -> Training:
        self.optimizers.append(Training())
        return self.optimizers[-1]

    def on_backward(self, roots: Iterable[Node], nodes: list[Node]) -> None:
        value, names = self.report.root_value, [root.name() for root in roots]
        supervised = len(names) == 1 and names[0] in SUPERVISED and value is not None
        self.loss = float(np.real(value)) if supervised else None

    def on_step_start(self, optimizer: Any) -> None:
        note = self.notes.of(optimizer)
        if len(note.losses) < self.STEPS:
            note.losses.append(np.nan if self.loss is None else self.loss)
            note.rates.append(float(optimizer.param_groups[0].get("lr") or 0.0))
            if len(note.losses) % self.EVERY == 0:
                note.before = [(p, w.copy()) for p, w, _ in matrices(optimizer)]

    def on_step_end(self, optimizer: Any) -> None:
        note = self.notes.of(optimizer)
        ratios = [rms(p._array - w) / rms(w) for p, w in note.before if rms(w)]
        note.before = []
        if ratios:
            note.ratios.append(median(ratios))
            note.largest = max([note.largest, *ratios])
            note.place = here()
            if len(note.losses) == self.STEPS:
                self.look(note)

    def look(self, note: Training) -> None:
        half = len(note.losses) // 2
        first, second = mean(note.losses[:half]), mean(note.losses[half:])
        ratio = median(note.ratios)
        if len([*self.notes.items()]) > 1 or not np.isfinite(first) or len(set(note.rates)) > 1:
            return
        large = ratio > self.FACTOR * self.TARGET and second >= note.losses[0]
        small = 0 < ratio < self.TARGET / self.FACTOR and 0.99 * first < second < 1.01 * first
        noise = 2 * (pvariance(note.losses) / half * 2) ** 0.5
        small = small or (0 < note.largest < self.TINY and second > first - noise)
        if large or small:
            self.hint(
                f"a step changes the weights by {ratio:.1e} of their size (good: about 1e-03); the loss was "
                f"{note.losses[0]:.4g} in the first step and {second:.4g} on average in steps {half + 1} to "
                f"{len(note.losses)}; lr={note.rates[0]:g}.",
                note.place,
            )

    def finish(self) -> None:
        for note in self.optimizers:
            short = len(self.optimizers) == 1 and self.LEAST <= len(note.losses) < self.STEPS
            if short and note.ratios and note.largest < self.TINY:
                self.look(note)


CHECKS = (DeadRelu, VanishingGradient, ExplodingGradient, UpdateRatio)
