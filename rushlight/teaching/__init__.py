"""`teach()`: warnings about silent mistakes of training programs, while the program runs."""

from __future__ import annotations

import atexit
from typing import Any

from rushlight.teaching import (
    axes,
    gradients,
    graphs,
    habits,
    labels,
    losses,
    modes,
    parameters,
    predictions,
    ranges,
    schedules,
    steps,
    structure,
)
from rushlight.teaching.check import Check
from rushlight.teaching.events import Events
from rushlight.teaching.hints import Hint, Report

SUBJECTS: tuple[Any, ...] = (
    parameters, losses, modes, labels, gradients, schedules, graphs, structure, predictions, habits, ranges, axes,
    steps,
)  # fmt: skip
CHECKS: tuple[type[Check], ...] = tuple(check for subject in SUBJECTS for check in subject.CHECKS)
RUNNING: list[Teaching] = []  # at most one element


class Teaching:
    """The checks of one `teach()`, and their `hints`. A context manager."""

    def __init__(self, quiet: bool = False, strict: bool = False):
        self.report = Report(quiet)
        self.events = Events([check(self.report) for check in CHECKS], self.report, strict)

    @property
    def hints(self) -> list[Hint]:
        return self.report.hints

    def start(self) -> None:
        RUNNING.append(self)
        self.events.start()
        atexit.register(self.stop)

    def stop(self) -> None:
        """Switch the checks off and print a summary on stderr. A second call does nothing."""
        if self not in RUNNING:
            return
        RUNNING.remove(self)
        self.events.stop()
        atexit.unregister(self.stop)
        self.events.send("finish")
        self.report.say(self.report.summary())

    def __enter__(self) -> Teaching:
        return self

    def __exit__(self, *error: Any) -> None:
        self.stop()


def teach(on: bool = True, *, quiet: bool = False) -> Teaching | None:
    """Watch the program for silent mistakes: gradients that are not cleared, softmax before cross_entropy, a model that
    is evaluated in training mode, ...

    Each is printed once on stderr with the line, the numbers and a hint; a summary follows at the end. The numbers of
    the program stay the same to the bit. `teach(False)` switches it off, and so does `.stop()` of the result, or the
    end of a `with` block. `quiet`: print nothing; read `.hints`. Functions compiled by rushlight.compile are checked
    only while they are traced, for shapes and for the op before a loss.

    >>> F, target = rushlight.nn.functional, rushlight.tensor([0])
    >>> with rushlight.teach(quiet=True) as teaching:
    ...     scores = rushlight.ones(1, 2, requires_grad=True)
    ...     loss = F.cross_entropy(scores.softmax(1), target)
    >>> [hint.title for hint in teaching.hints]
    ['softmax before cross_entropy']
    """
    for running in list(RUNNING):
        running.stop()
    if not on:
        return None
    teaching = Teaching(quiet)
    teaching.start()
    return teaching


__all__ = ["CHECKS", "Check", "Hint", "Teaching", "teach"]
