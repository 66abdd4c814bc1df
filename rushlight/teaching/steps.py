"""Checks of changes to gradients between backward() and step()."""

from __future__ import annotations

from collections.abc import Iterable
from math import isinf
from typing import Any

from rushlight.core.node import Node
from rushlight.core.tensor import Tensor
from rushlight.teaching.check import Check
from rushlight.teaching.notes import Notes, gradient, nonzero, parameters_of
from rushlight.teaching.parameters import leaves


class Clipped:
    """A parameter: `used`: an optimizer has used its gradient since the last backward; `calls`: clippings in a row
    without a gradient that a step will use.
    """

    used = True
    calls = 0


class ClipTooLate(Check):
    name = "gradients-clipped-too-late"
    title = "gradients are clipped after step(), or before backward()"
    why = "step() has used the gradient already, or it does not exist yet: nothing is clipped."
    fix = "call clip_grad_norm_() between backward() and step()."
    wrong = "loss.backward(); optimizer.step(); clip_grad_norm_(model.parameters(), 1.0)"
    right = "loss.backward(); clip_grad_norm_(model.parameters(), 1.0); optimizer.step()"
    limit = (
        "in 5 calls in a row of clip_grad_norm_ or clip_grad_value_ with a finite limit, the gradients of all "
        "parameters were None, or an optimizer had used them."
    )
    CALLS = 5

    def prepare(self) -> None:
        self.notes = Notes(Clipped)
        self.steps = 0

    def on_backward(self, roots: Iterable[Node], nodes: list[Node]) -> None:
        for p in leaves(nodes):
            self.notes.of(p).used = False

    def on_step_end(self, optimizer: Any) -> None:
        self.steps += 1
        for p in parameters_of(optimizer):
            self.notes.of(p).used = True

    def on_clip(self, parameters: list[Tensor], limit: float) -> None:
        if not parameters or not self.steps or isinf(limit):
            return
        note = self.notes.of(parameters[0])
        useless = all(self.notes.of(p).used or p._grad is None for p in parameters)
        note.calls = note.calls + 1 if useless else 0
        if note.calls == self.CALLS:
            self.hint(f"in {self.CALLS} calls in a row, there was no gradient that a step will use.")


class Dropped:
    """Note of an optimizer. `steps`: the number of steps in a row before which most gradients were cleared."""

    steps = 0


class StepOutsideLoop(Check):
    name = "gradients-cleared-without-a-step"
    title = "most gradients are cleared before any step uses them"
    why = "Only the last batch before each step() counts: the others are computed for nothing."
    fix = "call optimizer.step() after each backward(), inside the loop over the batches."
    wrong = "for x, y in loader: optimizer.zero_grad(); loss(x, y).backward()\noptimizer.step()"
    right = "for x, y in loader: optimizer.zero_grad(); loss(x, y).backward(); optimizer.step()"
    limit = (
        "before each of 4 steps in a row, backward() of one statement gave all parameters of the optimizer, and "
        "nothing else, a gradient 4 times or more, and each time but the last it was cleared."
    )
    PASSES, STEPS = 4, 4

    def prepare(self) -> None:
        self.notes = Notes(Dropped)
        self.passes: list[tuple] = []  # since the last step: (statement, leaves, whether they were cleared)

    def on_backward(self, roots: Iterable[Node], nodes: list[Node]) -> None:
        root, found = next(iter(roots)), [*leaves(nodes)]
        cleared = not any(nonzero(gradient(p)) for p in found)
        if len(self.passes) < 10 * self.PASSES:
            self.passes.append((root.where, {id(p) for p in found}, cleared))

    def on_step_end(self, optimizer: Any) -> None:
        self.passes = []  # the gradients of a closure that the step has called

    def on_step_start(self, optimizer: Any) -> None:
        passes, self.passes, note = self.passes, [], self.notes.of(optimizer)
        owned = {id(p) for p in parameters_of(optimizer) if p.requires_grad}
        same = len({where for where, _, _ in passes}) == 1
        lost = all(cleared and reached == owned for _, reached, cleared in passes)
        note.steps = note.steps + 1 if len(passes) >= self.PASSES and same and lost else 0
        if note.steps == self.STEPS:
            self.hint(
                f"before each of {self.STEPS} steps in a row, backward() ran {self.PASSES} times or more, and only "
                "the last gradient was kept."
            )


CHECKS = (ClipTooLate, StepOutsideLoop)
