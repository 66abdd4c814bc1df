"""The base class of checks: a name, an explanation for the docs, and events."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rushlight.base.errors import here
from rushlight.core.node import Node
from rushlight.core.tensor import Tensor
from rushlight.teaching.hints import Hint, Report


class Check:
    """One silent mistake. A subclass overrides the events that it needs, and calls `hint`.

    `name`: the anchor on the docs page. `title`: a heading. `why`: the mistake and its effect. `fix`: the remedy,
    beginning with a verb. `wrong`, `right`: statements for the page. `limit`: what the check requires before it warns.
    `static`: the check reads shapes and graphs only, so that it also runs while rushlight.compile traces a function.
    """

    name = title = why = fix = wrong = right = limit = ""
    static = False

    def __init__(self, report: Report):
        self.report = report
        self.prepare()

    def prepare(self) -> None:
        """Set the attributes of a new check."""

    def hint(self, seen: str, place: str = "") -> None:
        """Report the mistake: `seen` is the measurement, `place` the user's statement (default: the running one)."""
        self.report.add(Hint(self.name, self.title, place or here(), seen, self.fix))

    def on_loss(self, name: str, input: Tensor, target: Tensor) -> None:
        """A loss function of nn.functional is about to run."""

    def on_module(self, module: Any, args: tuple, output: Any, outermost: bool) -> None:
        """A module's call has returned; `outermost`: the call is not inside another module's call."""

    def on_dropout(self) -> None:
        """A dropout function is about to run, with `training=True` because the argument was omitted."""

    def on_decision(self, name: str, scores: Tensor) -> None:
        """The function `name` is about to run on scores: `argmax`, `max` with a dimension, or a loss that is a single
        number."""

    def on_choice(self, name: str, scores: Tensor, dim: Any) -> None:
        """`argmax`, or `max` with a dimension, is about to choose along `dim`; None: among all elements."""

    def on_comparison(self, one: Tensor, two: Tensor) -> None:
        """`==` or `eq` is about to compare two tensors."""

    def on_reduction(self, name: str, reduction: str, input: Tensor) -> None:
        """A loss function of nn.functional is about to reduce the losses of its input's samples."""

    def on_batch(self, batches: Any, batch: list[Tensor]) -> None:
        """`batches`, the iterator of one pass over a DataLoader, has made a batch of these tensors."""

    def on_backward(self, roots: Iterable[Node], nodes: list[Node]) -> None:
        """Backward is about to begin at `roots`; `nodes`: the graph below them, newest first."""

    def on_step_start(self, optimizer: Any) -> None:
        """An optimizer's step is about to begin."""

    def on_step_end(self, optimizer: Any) -> None:
        """An optimizer's step has ended."""

    def on_clip(self, parameters: list[Tensor], limit: float) -> None:
        """A function is about to clip the gradients of these parameters to `limit`."""

    def on_schedule(self, scheduler: Any) -> None:
        """A scheduler's step has set the rates of its optimizer."""

    def on_load(self, module: Any) -> None:
        """A module is about to load a state dict."""

    def finish(self) -> None:
        """The watched program, or the watched part of it, has ended."""


EVENTS = [name for name in vars(Check) if name.startswith("on_")]
