"""The check of learning rate schedules: does the program step in batches although the schedule counts epochs?"""

from __future__ import annotations

from itertools import count
from typing import Any

from rushlight.base.errors import here
from rushlight.core.tensor import Tensor
from rushlight.optim.lr_scheduler import CosineAnnealingLR, MultiStepLR, PolynomialLR
from rushlight.teaching.check import Check
from rushlight.teaching.notes import Notes


class Rates:
    """The steps of one scheduler. `length`: the setting that gives the schedule's length, and its value; `passes`:
    steps in each pass over a DataLoader; `updates`: steps of the optimizer since the scheduler was made; `tiny`: steps
    at a rate of almost 0."""

    def __init__(self) -> None:
        self.steps = self.updates = self.tiny = 0
        self.passes: dict[int, int] = {}
        self.largest = 0.0
        self.kind = self.place = ""
        self.length: tuple[str, int] | None = None
        self.told = False


def length(scheduler: Any) -> tuple[str, int] | None:
    """The setting that defines the length of the schedule, and its number of steps."""
    if isinstance(scheduler, CosineAnnealingLR):
        return "T_max", scheduler.T_max
    if isinstance(scheduler, PolynomialLR):
        return "total_iters", scheduler.total_iters
    if isinstance(scheduler, MultiStepLR) and len(scheduler.milestones) > 1:
        return "the last milestone", max(scheduler.milestones)
    return None


class StepPerBatch(Check):
    name = "scheduler-steps-once-per-batch"
    title = "the scheduler steps once per batch, but its schedule counts epochs"
    why = (
        "The schedule is over after a few batches, and the rest of the training runs at a learning rate of almost "
        "0, or at a rate that swings up and down."
    )
    fix = (
        "call scheduler.step() once per epoch, after the loop over the batches; or give the schedule's length in "
        "batches: epochs * len(loader)."
    )
    wrong = "for x, y in loader: train(x, y); scheduler.step()      # StepLR(optimizer, 10)"
    right = "for x, y in loader: train(x, y)\nscheduler.step()          # after the batches"
    limit = (
        "the scheduler steps after each step of the optimizer, several times in a pass over a DataLoader, and "
        "either the learning rate was below a millionth of its largest value, but not 0, for a fifth of all steps and "
        "longer than one pass; or, at the end of the program, T_max of CosineAnnealingLR, total_iters of PolynomialLR "
        "or the last milestone of MultiStepLR is the number of passes (3 or more), and not the number of batches."
    )
    TINY, STEPS, PASSES, PART = 1e-6, 40, 3, 5

    def prepare(self) -> None:
        self.notes = Notes(self.noted)
        self.rates: list[Rates] = []  # also for schedulers that are gone
        numbers = count(1)
        self.numbers = Notes(lambda: next(numbers))  # the number of passes over DataLoaders
        self.number = 0  # the steps of the current pass

    def noted(self) -> Rates:
        self.rates.append(Rates())
        return self.rates[-1]

    def on_batch(self, batches: Any, batch: list[Tensor]) -> None:
        self.number = self.numbers.of(batches)

    def on_step_end(self, optimizer: Any) -> None:
        for scheduler, note in self.notes.items():
            if scheduler.optimizer is optimizer:
                note.updates += 1

    def on_schedule(self, scheduler: Any) -> None:
        known = self.notes.of(scheduler)
        if scheduler._step_count < 2 or known.told:  # the first step sets the first rates
            return
        known.steps += 1
        known.passes[self.number] = known.passes.get(self.number, 0) + 1
        rate = max(float(group["lr"]) for group in scheduler.optimizer.param_groups)
        known.largest = max(known.largest, rate)
        known.tiny += 0 < rate < self.TINY * known.largest
        known.kind, known.place = type(scheduler).__name__, here()
        known.length = length(scheduler)
        if known.tiny < self.STEPS or self.PART * known.tiny < known.steps or not self.by_batch(known):
            return
        if known.tiny > max(known.passes.values()):
            known.told = True
            self.hint(
                f"{known.kind} was stepped {known.steps} times in {len(known.passes)} epochs; the learning rate fell "
                f"from {known.largest:.2g} to {rate:.2g}."
            )

    def by_batch(self, known: Rates) -> bool:
        """Whether the scheduler steps with each step of the optimizer, and several times in each pass over a
        DataLoader. The last pass may have ended early."""
        counts = [*known.passes.values()]
        several = 0 not in known.passes and len(counts) > 1 and min(counts[:-1]) > 1
        return several and abs(known.steps - known.updates) <= 1

    def finish(self) -> None:
        for known in self.rates:
            passes = len(known.passes)
            if known.told or known.length is None or passes < self.PASSES:
                continue
            setting, steps = known.length
            if steps == passes and steps not in known.passes.values() and self.by_batch(known):
                self.hint(
                    f"{known.kind} was stepped {known.steps} times in {passes} epochs, and {setting} is {steps}.",
                    known.place,
                )


CHECKS = (StepPerBatch,)
