"""The page of a training loop: some steps recorded, to slide through weights, gradients and loss."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from rushlight.base.errors import type_error, user_frame, value_error
from rushlight.core.tensor import Tensor
from rushlight.viz.array_preview import describe, exact
from rushlight.viz.node_names import spoken
from rushlight.viz.page import Page, assembled

SCRIPTS = ("numbers.js", "training.js")
MAX_PICTURES = 8000  # most arrays on a page, of about 250 bytes each; above this, every second step is dropped
MAX_PARAMETERS = 100  # most parameters of a model; the page gives the number of parameters left out
MAX_LOSSES = 4000  # most points of the curve; for more steps, every second one is dropped


def steps(model: Any, optimizer: Any = None, *, every: int = 1, loss: str = "loss") -> TrainingPage:
    """Record steps of a training loop, and make a page that slides through them: the loss, and for each parameter its
    values, its gradient and the size of its update.

    With `optimizer`, the steps `every`, 2 `every`, ... are recorded when it steps: the current gradients, and the loss
    from your variable with the name `loss`. Without an optimizer, or for a loss in another place, call
    `page.record(loss)` after `backward()`. The training is unchanged. The page is bounded: for a long training it keeps
    every second step, and lists the steps that it shows.

    >>> import rushlight as torch
    >>> model = torch.nn.Linear(2, 1)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> with torch.viz.steps(model, optimizer) as page:
    ...     for _ in range(3):
    ...         optimizer.zero_grad()
    ...         loss = model(torch.ones(4, 2)).square().mean()
    ...         loss.backward()
    ...         optimizer.step()
    >>> page.html()[:15]
    '<!DOCTYPE html>'
    """
    return TrainingPage(model, optimizer, every, loss)


class TrainingPage:
    """The steps of a training loop that `viz.steps` has recorded. `html()` is the page, `save(path)` writes it.

    >>> model = rushlight.nn.Linear(1, 1)
    >>> with rushlight.viz.steps(model) as page:
    ...     model(rushlight.ones(1, 1)).sum().backward()
    ...     page.record(loss=0.5)
    >>> isinstance(page, rushlight.viz.TrainingPage), page.count
    (True, 1)
    """

    def __init__(self, model: Any, optimizer: Any, every: int, loss: str):
        if not isinstance(every, int) or every < 1:
            raise ValueError(f"viz.steps: every must be a positive int, not {every!r}")
        if not hasattr(model, "named_parameters"):
            raise type_error(
                f"viz.steps: expected a module, got {type(model).__name__}", "give the model, then the optimizer"
            )
        self.model, self.optimizer, self.every, self.loss_name = model, optimizer, every, loss
        parameters = [*model.named_parameters()]
        self.parameters, self.left_out = parameters[:MAX_PARAMETERS], parameters[MAX_PARAMETERS:]
        self.count = 0  # steps so far
        self.records: list[dict[str, Any]] = []
        self.losses: list[tuple[int, float]] = []
        self.losses_every = 1
        self.handles: list[Any] = []
        self.before: list[np.ndarray] | None = None

    def __enter__(self) -> TrainingPage:
        if self.optimizer is not None:
            self.handles = [
                self.optimizer.register_step_pre_hook(self.begin),
                self.optimizer.register_step_post_hook(self.end),
            ]
        return self

    def __exit__(self, *error: object) -> None:
        for handle in self.handles:
            handle.remove()
        self.handles = []

    def begin(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Before the optimizer's step: record the gradients that it will use."""
        self.note(variable(self.loss_name))
        if self.count % self.every == 0:
            self.before = [p._array.copy() for _, p in self.parameters]

    def end(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """After the step: record the change of each parameter."""
        if self.before is not None:
            self.records[-1]["updates"] = [
                ratio(p._array - old, old) for (_, p), old in zip(self.parameters, self.before)
            ]
            self.before = None

    def record(self, loss: Any = None) -> None:
        """Count a step, and record it if its number is a multiple of `every`: for a loop whose optimizer was not given.
        Call it after `backward()` and before `step()`."""
        self.note(loss)

    def note(self, loss: Any) -> None:
        self.count += 1
        value = number(loss)
        if value is not None and self.count % self.losses_every == 0:
            self.losses.append((self.count, value))
            if len(self.losses) > MAX_LOSSES:
                del self.losses[::2]
                self.losses_every *= 2
        if self.count % self.every:
            return
        self.records.append(
            {
                "step": self.count,
                "loss": None if value is None else exact(np.float64(value)),
                "values": [describe(p._array) for _, p in self.parameters],
                "grads": [None if p._grad is None else describe(p._grad._array) for _, p in self.parameters],
                "updates": None,
            }
        )
        if 2 * len(self.records) * max(1, len(self.parameters)) > MAX_PICTURES:
            del self.records[::2]
            self.every *= 2

    def html(self) -> Page:
        """The page as text; a notebook shows it. ValueError if no step was recorded."""
        if not self.records:
            raise value_error(
                f"viz.steps: no step was recorded: {self.count} steps of the optimizer ran in the block, "
                f"every={self.every}",
                "run the loop inside `with viz.steps(model, optimizer) as page:`",
            )
        title = f"Training, step by step: {type(self.model).__name__}"
        return assembled("training.html", title, SCRIPTS, self.data())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page: one HTML file without external resources."""
        Path(path).write_text(self.html(), encoding="utf-8")

    def __repr__(self) -> str:
        return f"<page of {self.count} training steps, {len(self.records)} recorded; save(path) writes it>"

    def _repr_html_(self) -> str:
        return self.html()._repr_html_() if self.records else "no step was recorded"

    def data(self) -> dict[str, Any]:
        numbers: list[Any] = []

        def place(array: Any) -> int | None:
            if array is None:
                return None
            numbers.append(array)
            return len(numbers) - 1

        records = [
            {
                **record,
                "values": [place(value) for value in record["values"]],
                "grads": [place(grad) for grad in record["grads"]],
            }
            for record in self.records
        ]
        return {
            "steps": self.count,
            "every": self.every,
            "losses": [[step, exact(np.float64(value))] for step, value in self.losses],
            "parameters": [{"name": spoken(name), "shape": list(p.shape)} for name, p in self.parameters],
            "leftOut": len(self.left_out),
            "records": records,
            "numbers": numbers,
        }


def variable(name: str) -> Any:
    """The user's variable of that name, in the innermost frame that has one."""
    frame = user_frame(2)
    while frame is not None:
        if name in frame.f_locals:
            return frame.f_locals[name]
        frame = frame.f_back
    return None


def number(loss: Any) -> float | None:
    """A loss as a float; None for a value that is not a single number."""
    if isinstance(loss, Tensor):
        return float(loss._array.reshape(-1)[0]) if loss._array.size == 1 else None
    return float(loss) if isinstance(loss, (int, float, np.floating)) else None


def ratio(update: np.ndarray, data: np.ndarray) -> float | None:
    """rms(update) / rms(data), the root mean squares; None if the data are 0."""
    below = rms(data)
    return float(f"{rms(update) / below:.4g}") if below > 0 else None


def rms(array: np.ndarray) -> float:
    """The root of the mean of the squares."""
    return float(np.sqrt(np.mean(np.abs(array.astype(np.complex128)) ** 2))) if array.size else 0.0
