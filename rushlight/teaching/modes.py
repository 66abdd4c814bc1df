"""Checks of training and evaluation mode."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.base.errors import here
from rushlight.core.mode import mode
from rushlight.core.tensor import Tensor
from rushlight.nn.dropout import _DropoutNd
from rushlight.nn.module import Module
from rushlight.nn.normalization import _BatchNorm
from rushlight.teaching.check import Check
from rushlight.teaching.notes import Notes, array_of, checksum, listed, parameters_of


def modal(root: Module, training: bool) -> list[str]:
    """The names of the layers in this mode whose result depends on the mode: dropout with p > 0, batch norm with
    running statistics."""
    found = []
    for name, module in root.named_modules():
        drops = isinstance(module, _DropoutNd) and module.p > 0
        tracks = isinstance(module, _BatchNorm) and module.running_mean is not None
        if (drops or tracks) and module.training is training:
            found.append(f"{name} ({type(module).__name__})" if name else type(module).__name__)
    return found


class Calls:
    """Calls of a model: `evaluated`: outputs that a loss or argmax read under no_grad; `since`: such outputs since the
    last step; `trained`: steps in training mode; `place`, `layers`: place and layers of the last evaluation; `data`: a
    checksum of its input; `repeated`: evaluations in a row of the same input, with a step between them.
    """

    evaluated = since = trained = wrong = data = repeated = 0
    trained_on: Any = None  # the array passed to the last training call
    warned = was_eval = False
    place = ""
    layers: list[str] = []


class TrainingModeInEvaluation(Check):
    name = "training-mode-in-evaluation"
    title = "the model is evaluated in training mode"
    why = (
        "Dropout still removes features, and batch norm uses the statistics of the test batch and adds them to its "
        "running statistics: the measured accuracy is wrong."
    )
    fix = "call model.eval() before the evaluation and model.train() after it."
    wrong = "with torch.no_grad(): correct = (model(x).argmax(1) == y).sum()"
    right = "model.eval()   # before it, and model.train() before the next training step"
    limit = (
        "a model that was trained before runs under no_grad in training mode, and a loss or argmax reads its "
        "output itself: twice between two steps; or on the same held-out numbers 10 times, with steps between them; "
        "or at the end of a program with four training steps or more for each evaluation. The mean of many dropout "
        "samples is not reported, nor are the losses of single samples (reduction='none')."
    )
    REPEATED = 10

    def prepare(self) -> None:
        self.models = Notes(Calls)
        # model, the array of its output, the array of its input
        self.last: tuple[Any, Any, Any] = (None, None, None)

    def on_module(self, module: Any, args: tuple, output: Any, outermost: bool) -> None:
        if not outermost:
            return
        note = self.models.of(module)
        given = array_of(args[0]) if args and isinstance(args[0], Tensor) else None
        if mode().grad:
            note.trained_on = given
        known = not mode().grad and note.trained and module.training and isinstance(output, Tensor)
        self.last = (module, output._array, given) if known else (None, None, None)

    def on_step_end(self, optimizer: Any) -> None:
        owned = {id(p) for p in parameters_of(optimizer)}
        for model, note in self.models.items():
            if any(id(p) in owned for p in model.parameters()):
                note.trained, note.since = note.trained + 1, 0

    def on_decision(self, name: str, scores: Tensor) -> None:
        model, array, given = self.last
        if model is None or mode().grad or scores._array is not array:
            return
        self.last = (None, None, None)
        layers = modal(model, True)
        if not layers:
            return
        note = self.models.of(model)
        note.evaluated, note.since = note.evaluated + 1, note.since + 1
        note.place, note.layers = here(), layers
        if name != "max" and given is not None and not note.warned:  # max: also targets in RL
            held_out = note.trained_on is None or not np.may_share_memory(given, note.trained_on)
            data = checksum(given) if held_out else 0
            note.repeated = note.repeated + 1 if held_out and data == note.data else 1
            note.data = data
        if note.since == 2 or note.repeated == self.REPEATED:
            self.tell(model, note)

    def tell(self, model: Module, note: Calls) -> None:
        if not note.warned:
            note.warned = True
            self.hint(
                f"{type(model).__name__} ran under no_grad with {listed(note.layers)} in training mode.", note.place
            )

    def finish(self) -> None:
        for model, note in self.models.items():
            if note.since and note.evaluated * 4 <= note.trained:
                self.tell(model, note)


class EvaluationModeInTraining(Check):
    name = "evaluation-mode-in-training"
    title = "the model is trained in evaluation mode"
    why = (
        "After model.eval() dropout is off and batch norm keeps its statistics, until train() is called: the model "
        "overfits, or normalizes by statistics of other weights."
    )
    fix = "call model.train() at the start of each epoch."
    wrong = "for epoch in ...: train(); model.eval(); test()"
    right = "for epoch in ...: model.train(); train(); model.eval(); test()"
    limit = (
        "the model was trained in training mode before, or evaluated under no_grad; then 3 steps in evaluation "
        "mode. A model whose own mode is training, with frozen batch norm inside, is not reported."
    )
    STEPS = 3

    def prepare(self) -> None:
        self.models = Notes(Calls)

    def on_module(self, module: Any, args: tuple, output: Any, outermost: bool) -> None:
        if not outermost:
            return
        note = self.models.of(module)
        if not mode().grad:
            note.was_eval = note.was_eval or not module.training
            return
        note.since = 1 if module.training else 2  # the mode of the last call with grad

    def on_step_end(self, optimizer: Any) -> None:
        owned = {id(p) for p in parameters_of(optimizer) if p._grad is not None}
        for model, note in self.models.items():
            last, note.since = note.since, 0
            if not last or not any(id(p) in owned for p in model.parameters()):
                continue
            if last == 1:
                note.trained, note.wrong = note.trained + 1, 0
                continue
            note.wrong += 1
            if note.wrong == self.STEPS and (note.trained or note.was_eval):
                layers = modal(model, False)
                if layers and not modal(model, True):
                    self.hint(
                        f"{type(model).__name__} made {self.STEPS} training steps with {listed(layers)} in evaluation "
                        "mode."
                    )


class DropoutInEvaluation(Check):
    name = "dropout-in-evaluation"
    title = "F.dropout drops in evaluation mode, too"
    why = (
        "F.dropout(x, p) has training=True: model.eval() does not reach it, and the measured accuracy belongs to a "
        "network with removed features."
    )
    fix = "pass the mode, F.dropout(x, p, self.training), or use the module nn.Dropout."
    wrong = "def forward(self, x): return self.fc(F.dropout(x, 0.5))"
    right = "def forward(self, x): return self.fc(F.dropout(x, 0.5, self.training))"
    limit = (
        "F.dropout without `training` runs inside a model that is in evaluation mode, under no_grad, and a loss "
        "or argmax reads the model's output itself. The mean of many dropout samples is not reported."
    )

    def prepare(self) -> None:
        self.places: list[str] = []  # the model whose call is running
        self.last: tuple[Any, str] = (None, "")  # the array of the output, the first place

    def on_dropout(self) -> None:
        if not mode().grad and not self.places:
            self.places.append(here())

    def on_module(self, module: Any, args: tuple, output: Any, outermost: bool) -> None:
        if not outermost:
            return
        found = self.places and not module.training and isinstance(output, Tensor)
        self.last = (output._array, self.places[0]) if found else (None, "")
        self.places = []

    def on_decision(self, name: str, scores: Tensor) -> None:
        array, place = self.last
        if place and scores._array is array:
            self.last = (None, "")
            self.hint("the model is in evaluation mode, and `training` was not given.", place)


CHECKS = (TrainingModeInEvaluation, EvaluationModeInTraining, DropoutInEvaluation)
