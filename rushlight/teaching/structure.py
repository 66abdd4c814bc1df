"""Checks of a model's structure: frozen parameters, parts under no_grad, equal layers, layers used in several
places.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from rushlight.core.mode import mode
from rushlight.core.tensor import Tensor
from rushlight.nn.containers import ModuleList, Sequential
from rushlight.nn.conv import _ConvNd
from rushlight.nn.linear import Linear
from rushlight.nn.module import Module
from rushlight.teaching.check import Check
from rushlight.teaching.notes import Notes, array_of, listed, parameters_of
from rushlight.teaching.parameters import Use, WithoutGradient


class AllFrozen(Check):
    name = "all-parameters-frozen"
    title = "all parameters of the optimizer are frozen"
    why = "No parameter requires a gradient: step() changes nothing, and the loss stays as it is."
    fix = "leave requires_grad True for the parameters to be trained: model.head.requires_grad_(True)."
    wrong = "model.requires_grad_(False); optimizer = SGD(model.parameters(), lr=0.1)"
    right = "model.body.requires_grad_(False); optimizer = SGD(model.head.parameters(), lr=0.1)"
    limit = "no parameter of the optimizer requires a gradient, in 3 of its steps in a row."
    STEPS = 3

    def prepare(self) -> None:
        self.counts = Notes(lambda: [0])

    def on_step_start(self, optimizer: Any) -> None:
        params, count = parameters_of(optimizer), self.counts.of(optimizer)
        frozen = not any(p.requires_grad or p._grad is not None for p in params)
        count[0] = count[0] + 1 if frozen else 0
        if count[0] == self.STEPS:
            self.hint(f"none of {len(params)} parameters requires a gradient.")


class ForwardWithoutGrad(WithoutGradient):
    name = "forward-under-no-grad"
    title = "a layer that is to be trained runs under no_grad"
    why = (
        "Under no_grad nothing is recorded: the layer's parameters never get a gradient, and keep their initial values."
    )
    fix = "call the layer outside of no_grad(); keep no_grad for the evaluation."
    wrong = "with torch.no_grad(): h = encoder(x)\nloss = F.cross_entropy(head(h), y)"
    right = "h = encoder(x)\nloss = F.cross_entropy(head(h), y)"
    limit = (
        "the optimizer has the layer's parameters, they require a gradient and were not loaded by "
        "load_state_dict, the layer was called under no_grad only, and in 20 steps (or 5, at the end of the program) "
        "other parameters of the optimizer had gradients."
    )
    STEPS, LEAST = 20, 5

    result = "the layers of {} ran under no_grad only"

    def count(self, p: Tensor, note: Use) -> None:
        note.steps = note.steps + 1 if p._grad is None and p.requires_grad else 0

    def is_cut(self, note: Use) -> bool:
        return note.unrecorded and not note.recorded and not note.loaded


class EqualUnits(Check):
    name = "equal-units"
    title = "all units of a layer are equal"
    why = (
        "Units with equal weights get equal gradients: they stay equal, and the layer computes one number as often "
        "as it has units. With weights of 0, the layers before it learn nothing."
    )
    fix = "initialize with random numbers: kaiming_normal_ or xavier_normal_; biases may be 0."
    wrong = "nn.init.constant_(layer.weight, 0.0)"
    right = "nn.init.kaiming_normal_(layer.weight)"
    limit = (
        "a Linear or convolution of 4 or more units, followed by another layer with weights, had equal rows "
        "before the first step of its optimizer, and still has after 5 steps."
    )
    STEPS, UNITS = 5, 4

    def prepare(self) -> None:
        self.roots: Notes[dict] = Notes(dict)
        self.steps = Notes(lambda: [0])
        self.equal: Notes[dict] = Notes(dict)  # layers with equal rows before the first step

    def on_module(self, module: Any, args: tuple, output: Any, outermost: bool) -> None:
        if outermost and mode().grad:
            self.roots.of(module)

    def layers(self, optimizer: Any) -> Iterator[tuple[str, Module]]:
        """(name, layer) of the layers with equal rows that the optimizer trains, without the last one of each model:
        its units have separate targets.
        """
        owned = {id(p) for p in parameters_of(optimizer)}
        for root, _ in list(self.roots.items()):
            kinds = (Linear, _ConvNd)
            named = [(n, m) for n, m in root.named_modules() if isinstance(m, kinds)]
            for name, layer in named[:-1]:
                if id(layer.weight) in owned and layer.weight.requires_grad and same_rows(layer):
                    yield name, layer

    def on_step_start(self, optimizer: Any) -> None:
        if self.steps.of(optimizer)[0] == 0:
            for _, layer in self.layers(optimizer):
                self.equal.of(layer)["before"] = True

    def on_step_end(self, optimizer: Any) -> None:
        count = self.steps.of(optimizer)
        count[0] += 1
        if count[0] != self.STEPS:
            return
        found = [n for n, layer in self.layers(optimizer) if "before" in self.equal.of(layer)]
        if found:
            self.hint(
                f"all units of {listed(map(repr, found))} had the same weights after {count[0]} steps, as before the "
                "first."
            )


def same_rows(layer: Any) -> bool:
    """Whether all units of a layer have the same weights and bias."""
    for tensor in (layer.weight, layer.bias):
        array = None if tensor is None else array_of(tensor)
        if array is not None and not (array == array[:1]).all():
            return False
    weight = array_of(layer.weight)
    return weight is not None and len(weight) >= EqualUnits.UNITS


class RepeatedLayer(Check):
    name = "one-layer-in-several-places"
    title = "one layer stands in several places of a list"
    why = (
        "[layer] * 3 is three times the same object: the places share their weights, and the model is smaller than "
        "it looks."
    )
    fix = "make each layer: [nn.Linear(8, 8) for _ in range(3)]; to share weights, call one layer."
    wrong = "nn.Sequential(*[nn.Linear(8, 8)] * 3)"
    right = "nn.Sequential(*[nn.Linear(8, 8) for _ in range(3)])"
    limit = (
        "a layer with parameters stands in two or more places of one Sequential or ModuleList of a model that is "
        "trained."
    )

    def prepare(self) -> None:
        self.seen: Notes[dict] = Notes(dict)
        self.found: list[str] = []

    def on_module(self, module: Any, args: tuple, output: Any, outermost: bool) -> None:
        if mode().grad and isinstance(module, Module) and "looked" not in self.seen.of(module):
            self.seen.of(module)["looked"] = True
            self.look(module)

    def look(self, module: Module) -> None:
        rows = [module, *module._modules.values()]
        for row in rows:
            if isinstance(row, (Sequential, ModuleList)):
                places = Counter(map(id, row._modules.values()))
                for layer in {id(m): m for m in row._modules.values()}.values():
                    if places[id(layer)] > 1 and any(True for _ in layer.parameters()):
                        self.found.append(
                            f"a {type(layer).__name__} stands in {places[id(layer)]} places of a {type(row).__name__}."
                        )

    def on_step_start(self, optimizer: Any) -> None:
        for seen in dict.fromkeys(self.found):
            self.hint(seen)
        self.found = []


class ForgottenLayer(Check):
    name = "one-layer-called-for-another"
    title = "one layer is called again, and another like it never"
    why = "The second layer is not part of the computation: its weights stay as they are."
    fix = "call each layer in its place; remove a layer that is not used."
    wrong = "h = self.fc2(self.fc1(x).relu()).relu(); h = self.fc2(h)   # and self.fc3"
    right = "h = self.fc2(self.fc1(x).relu()).relu(); h = self.fc3(h)"
    limit = (
        "in 5 training calls of a model, a layer is called twice or more each time, and a layer beside it of the "
        "same class and shapes is never called. A layer that is used again on purpose, as in a recurrent network, has "
        "no such neighbour."
    )
    CALLS = 5

    def prepare(self) -> None:
        self.calls: Counter = Counter()  # the modules inside the current outermost call
        self.models: Notes[dict] = Notes(dict)

    def on_module(self, module: Any, args: tuple, output: Any, outermost: bool) -> None:
        if not mode().grad or not isinstance(module, Module):
            return
        self.calls[id(module)] += 1
        if outermost:
            self.count(module)
            self.calls = Counter()

    def count(self, model: Module) -> None:
        note = self.models.of(model)
        calls = note.setdefault("calls", [])
        if len(calls) == self.CALLS:
            return
        calls.append(self.calls)
        if len(calls) == self.CALLS:
            for parent in model.modules():
                self.compare(parent, calls)

    def compare(self, parent: Module, calls: list[Counter]) -> None:
        children = [(n, m) for n, m in parent._modules.items() if m is not None and m._parameters]
        for name, layer in children:
            if min(seen[id(layer)] for seen in calls) < 2:
                continue
            unused = [
                other for other, m in children if not any(seen[id(m)] for seen in calls) and shapes(m) == shapes(layer)
            ]
            if unused:
                times = calls[-1][id(layer)]
                self.hint(
                    f"{type(parent).__name__}: '{name}' was called {times} times in each forward, "
                    f"{listed(map(repr, unused))} never."
                )


def shapes(layer: Module) -> tuple:
    """The class of a layer and the shapes of its parameters."""
    sizes = [None if p is None else tuple(p.shape) for p in layer._parameters.values()]
    return type(layer), *sizes


CHECKS = (AllFrozen, ForwardWithoutGrad, EqualUnits, RepeatedLayer, ForgottenLayer)
