"""The gate between two steps of a training: it holds the program while the page has paused."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from threading import Condition, Event
from typing import Any

SECONDS = 0.2  # of one wait: on Windows, Ctrl-C is noticed at its end


class Gate:
    """`paused`: whether the program stops at the gate. `held`: whether the program waits there now. `steps`: the number
    of steps that may pass nevertheless."""

    def __init__(self) -> None:
        self.condition = Condition()
        self.paused = self.held = self.open = False
        self.steps = 0
        self.jobs: deque[Callable[[], Any]] = deque()

    def pause(self) -> None:
        """Stop the program at the end of its step."""
        self.change(True, 0)

    def go(self) -> None:
        """Let the program run."""
        self.change(False, 0)

    def step(self) -> None:
        """Let one step pass; the program then stops again."""
        self.change(True, self.steps + 1)

    def close(self) -> None:
        """Hold nothing from now on."""
        with self.condition:
            self.open = True
            self.condition.notify_all()

    def change(self, paused: bool, steps: int) -> None:
        with self.condition:
            self.paused, self.steps = paused, steps
            self.condition.notify_all()

    def between_steps(self, job: Callable[[], Any], seconds: float) -> Any:
        """The result of `job()`, which the thread of the training runs between two steps. TimeoutError if the training
        makes no step for `seconds`. For other threads."""
        done, result = Event(), []

        def run() -> None:
            try:
                result.append(job())
            except Exception as error:
                result.append(error)
            done.set()

        with self.condition:
            self.jobs.append(run)
            self.condition.notify_all()
        if not done.wait(seconds):
            with suppress(ValueError):  # it has just begun
                self.jobs.remove(run)
            raise TimeoutError("the training has made no step")
        if isinstance(result[0], Exception):
            raise result[0]
        return result[0]

    def enter(self) -> None:
        """Called by the training between two steps: run the jobs; wait while the gate is closed. Ctrl-C interrupts the
        wait."""
        while True:
            while self.jobs:
                self.jobs.popleft()()
            if not self.paused or self.open:  # read without the lock: this runs at every step
                return
            with self.condition:
                if self.steps:
                    self.steps -= 1
                    return
                self.held = True
                try:
                    if self.paused and not self.open and not self.jobs:
                        self.condition.wait(SECONDS)
                finally:
                    self.held = False
