"""Checks of parameters: cleared gradients, gradients that never come, forgotten optimizers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any
from weakref import ref

from rushlight.base.errors import here
from rushlight.core.mode import mode
from rushlight.core.node import Node
from rushlight.core.tensor import Tensor
from rushlight.nn.module import Module
from rushlight.teaching.check import Check
from rushlight.teaching.notes import (
    Notes,
    array_of,
    checksum,
    gradient,
    listed,
    name_in,
    nonzero,
    optimized,
    parameters_of,
    rms,
)


class GradientState:
    """`stepped`: a weak reference to the gradient that an optimizer has used. `stale`: backward() has added to this
    gradient since then."""

    stepped: Any = None
    stale = False


class NotCleared(Check):
    name = "gradients-not-cleared"
    title = "gradients are not cleared between steps"
    why = (
        "backward() adds to .grad. Each step then follows the sum of the gradients of all steps so far: training "
        "becomes unstable, or stops improving."
    )
    fix = "call optimizer.zero_grad() before backward()."
    wrong = "loss.backward(); optimizer.step()"
    right = "optimizer.zero_grad(); loss.backward(); optimizer.step()"
    limit = (
        "three steps in a row use gradients that contain the gradients of the step before, for at least half of the "
        "parameters. Deliberate gradient accumulation is not reported."
    )
    STEPS = 3

    def prepare(self) -> None:
        self.notes = Notes(GradientState)
        self.steps = Notes(lambda: [0])  # for each optimizer, the number of steps in a row

    def on_backward(self, roots: Iterable[Node], nodes: list[Node]) -> None:
        for p in leaves(nodes):
            note = self.notes.of(p)
            kept = p._grad is not None and note.stepped is not None and note.stepped() is p._grad
            if kept and nonzero(gradient(p)):
                note.stale = True
            else:  # a new gradient, or one filled with 0
                note.stepped, note.stale = None, False

    def on_step_start(self, optimizer: Any) -> None:
        used = [self.notes.of(p) for p in parameters_of(optimizer) if p._grad is not None]
        stale = sum(note.stale for note in used)
        count = self.steps.of(optimizer)
        count[0] = count[0] + 1 if used and 2 * stale >= len(used) else 0
        if count[0] == self.STEPS:
            self.hint(
                f"in {self.STEPS} steps in a row, {stale} of {len(used)} gradients still contained the gradient of "
                "the step before."
            )

    def on_step_end(self, optimizer: Any) -> None:
        for p in parameters_of(optimizer):
            note = self.notes.of(p)
            note.stepped, note.stale = None if p._grad is None else ref(p._grad), False


def leaves(nodes: list[Any]) -> Iterator[Tensor]:
    """The leaf tensors of a graph, oldest nodes first."""
    for node in reversed(nodes):
        tensor = node.tensor() if node.leaf else None
        if tensor is not None:
            yield tensor


class Reached:
    """Note of a parameter or an optimizer. `since`: backward() has computed a gradient since the last step. `steps`:
    the number of steps in a row without gradients."""

    since = False
    steps = 0


class ClearedTooEarly(Check):
    name = "gradients-cleared-before-step"
    title = "gradients are cleared between backward() and step()"
    why = "step() finds no gradient and changes nothing: the loss stays as it is."
    fix = "call optimizer.zero_grad() before backward(), or after step()."
    wrong = "loss.backward(); optimizer.zero_grad(); optimizer.step()"
    right = "optimizer.zero_grad(); loss.backward(); optimizer.step()"
    limit = (
        "backward() reached parameters of the optimizer, and .grad of all its parameters was None at the step "
        "after it, three steps in a row."
    )
    STEPS = 3

    def prepare(self) -> None:
        self.notes = Notes(Reached)

    def on_backward(self, roots: Iterable[Node], nodes: list[Node]) -> None:
        for p in leaves(nodes):
            self.notes.of(p).since = True

    def on_step_start(self, optimizer: Any) -> None:
        params = parameters_of(optimizer)
        reached = sum(self.notes.of(p).since for p in params)
        note = self.notes.of(optimizer)
        note.steps = note.steps + 1 if reached and all(p._grad is None for p in params) else 0
        if note.steps == self.STEPS:
            self.hint(
                f"in {self.STEPS} steps in a row, backward() gave {reached} parameters a gradient, and step() found "
                "none."
            )

    def on_step_end(self, optimizer: Any) -> None:
        for p in parameters_of(optimizer):
            self.notes.of(p).since = False


class Use:
    """Note of a parameter. `recorded`: its module has run with grad mode on; `unrecorded`: the module's last call was
    under no_grad; `steps`: the number of counted steps; `reached`: it had a gradient; `loaded` from a state dict;
    `hinted`: reported."""

    recorded = unrecorded = reached = loaded = hinted = False
    steps = 0


class WithoutGradient(Check):
    """The base of checks of parameters that get no gradient while others of their optimizer do."""

    STEPS = LEAST = 0  # steps needed for a hint: while the program runs, and at its end
    result = ""  # the last part of the hint

    def prepare(self) -> None:
        self.notes = Notes(Use)
        self.roots: Notes[dict] = Notes(dict)  # outermost modules

    def on_module(self, module: Any, args: tuple, output: Any, outermost: bool) -> None:
        recorded = mode().grad
        if outermost:
            self.roots.of(module)
        for p in module._parameters.values():
            if p is not None:
                note = self.notes.of(p)
                note.recorded, note.unrecorded = note.recorded or recorded, not recorded

    def on_load(self, module: Any) -> None:
        for p in module.parameters():
            self.notes.of(p).loaded = True

    def on_step_start(self, optimizer: Any) -> None:
        params = parameters_of(optimizer)
        if any(p._grad is not None for p in params):
            for p in params:
                self.count(p, self.notes.of(p))
            if self.is_due(params):
                self.look(params, self.STEPS)

    def count(self, p: Tensor, note: Use) -> None:
        """Count a step in which some parameter of the optimizer has a gradient."""
        raise NotImplementedError

    def is_due(self, params: list[Tensor]) -> bool:
        """Whether to look for parameters to report at this step."""
        return True

    def is_cut(self, note: Use) -> bool:
        """Whether a parameter with enough steps is to be reported."""
        raise NotImplementedError

    def look(self, params: list[Tensor], least: int) -> None:
        notes = [(p, self.notes.of(p)) for p in params]
        cut = [(p, n) for p, n in notes if n.steps >= least and not n.hinted and self.is_cut(n)]
        if not cut:
            return
        names = listed(name_in([root for root, _ in self.roots.items()], p) for p, _ in cut)
        self.hint(f"in {min(n.steps for _, n in cut)} steps, {self.result.format(names)}.", names)
        for _, note in cut:
            note.hinted = True

    def finish(self) -> None:
        self.look([p for p, _ in self.notes.items()], self.LEAST)


class NoGradient(WithoutGradient):
    name = "no-gradient"
    title = "a parameter never gets a gradient"
    why = (
        "The optimizer has the parameter, but no path of the graph leads from the loss to it: it keeps its initial "
        "value."
    )
    fix = (
        "look for detach(), .data, .item(), numpy() or no_grad() between the layer and the loss; for an unused "
        "layer: remove it, or call it in forward."
    )
    wrong = "h = self.encoder(x).detach(); return self.head(h)"
    right = "h = self.encoder(x);          return self.head(h)"
    limit = (
        "its module was called with grad mode on, its optimizer made 50 steps (or the program ended after 5), and "
        ".grad was None in each. Layers that are never called are not reported."
    )
    STEPS, LEAST = 50, 5

    result = ".grad was None for {}"

    def count(self, p: Tensor, note: Use) -> None:
        note.steps += 1
        note.reached = note.reached or p._grad is not None or not p.requires_grad

    def is_due(self, params: list[Tensor]) -> bool:
        return any(self.notes.of(p).steps == self.STEPS for p in params)

    def is_cut(self, note: Use) -> bool:
        return note.recorded and not note.reached


class Kept:
    """A parameter without an optimizer: `seen` with a gradient in this many steps; `size`: its first root mean square;
    `reached` by a backward since the last step; `loaded` from a state dict, or trained by an optimizer.
    """

    seen = 0
    size: float | None = None
    loaded = reached = False


class NoOptimizer(Check):
    name = "no-optimizer"
    title = "a parameter gets gradients, but no optimizer has it"
    why = "Its gradient is computed in each step and never used: it keeps its initial value."
    fix = "give all of model.parameters() to the optimizer; to freeze: p.requires_grad_(False)."
    wrong = "optimizer = SGD(model.head.parameters(), lr=0.1)"
    right = "optimizer = SGD(model.parameters(), lr=0.1)"
    limit = (
        "the parameter had a gradient in 5 steps of an optimizer, its value did not change, no optimizer has had "
        "it, and it was not loaded by load_state_dict."
    )
    STEPS, WINDOW = 5, 40

    def prepare(self) -> None:
        self.notes = Notes(Kept)
        self.roots: Notes[dict] = Notes(dict)
        self.steps = 0
        # models that share nothing with the optimizer are skipped: they may get an optimizer later
        self.later: list[tuple[Module, list[tuple[str, list[Tensor]]], str]] = []

    def on_module(self, module: Any, args: tuple, output: Any, outermost: bool) -> None:
        if outermost and mode().grad and self.steps < self.WINDOW:
            self.roots.of(module)

    def on_backward(self, roots: Iterable[Node], nodes: list[Node]) -> None:
        if self.steps < self.WINDOW:
            for p in leaves(nodes):
                self.notes.of(p).reached = True

    def on_load(self, module: Any) -> None:
        for p in module.parameters():
            self.notes.of(p).loaded = True

    def on_step_end(self, optimizer: Any) -> None:
        self.steps += 1
        if self.steps > self.WINDOW:
            return
        owned = {id(p) for p in parameters_of(optimizer)}
        for p in parameters_of(optimizer):
            self.notes.of(p).loaded = True  # it was trained before, so it is frozen on purpose
        for root, _ in self.roots.items():
            found = self.unowned(root, owned)
            if found and any(id(p) in owned for p in root.parameters()):
                self.look(root, found)
            elif found:
                self.later.append((root, found, here()))
        for _, note in self.notes.items():
            note.reached = False

    def finish(self) -> None:
        for root, found, place in self.later:
            never = [(n, [p for p in ps if not self.notes.of(p).loaded]) for n, ps in found]
            self.look(root, [(name, free) for name, free in never if free], place)

    def candidates(self, root: Module) -> Iterator[tuple[str, list[Tensor]]]:
        """(name, parameters) for each possible hint."""
        for name, p in root.named_parameters():
            yield name, [p]

    def unowned(self, root: Module, owned: set[int]) -> list[tuple[str, list[Tensor]]]:
        """(name, parameters) of unchanged parameters that have had gradients in enough steps."""
        found: list[tuple[str, list[Tensor]]] = []
        for name, params in self.candidates(root):
            free = [p for p in params if id(p) not in owned and self.unused(p)]
            if free:
                found.append((name, free))
        return found

    def look(self, root: Module, found: list[tuple[str, list[Tensor]]], place: str = "") -> None:
        if not found:
            return
        everywhere = optimized()
        names = [name for name, free in found if not any(id(p) in everywhere for p in free)]
        if names:
            self.tell(root, names, place)

    def unused(self, p: Tensor) -> bool:
        """Whether the parameter has had a gradient in `STEPS` steps without any change."""
        note = self.notes.of(p)
        if note.loaded or not note.reached or not p.requires_grad or not nonzero(gradient(p)):
            return False
        size = rms(p._array)
        note.seen, note.size = (note.seen + 1 if size == note.size else 1), size
        return note.seen == self.STEPS

    def tell(self, root: Module, names: list[str], place: str) -> None:
        kind = type(root).__name__
        self.hint(f"{kind}: {listed(names)} had a gradient in {self.STEPS} steps and stayed equal.", place)


class PlainList(NoOptimizer):
    name = "modules-in-a-plain-list"
    title = "modules in a plain list or dict are not found"
    why = (
        "A module finds submodules that are attributes. Those in a plain list or dict are missing in parameters(), "
        "state_dict(), to() and eval(): they are not trained and not saved."
    )
    fix = "use nn.ModuleList or nn.ModuleDict, or nn.Sequential."
    wrong = "self.layers = [nn.Linear(8, 8) for _ in range(3)]"
    right = "self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))"
    limit = (
        "parameters in the list got a gradient in 5 steps of an optimizer of the model; neither the model nor any "
        "optimizer has them."
    )

    def candidates(self, root: Module) -> Iterator[tuple[str, list[Tensor]]]:
        inside = set(map(id, root.modules()))
        for path, module in root.named_modules():
            for name, value in list(vars(module).items()):
                hidden = [m for m in modules_in(value) if id(m) not in inside]
                if hidden and name != "_modules":
                    where = f"{path}.{name}" if path else name
                    text = f"'{where}', a {type(value).__name__} of {len(hidden)} modules"
                    yield text, [p for m in hidden for p in m.parameters()]

    def tell(self, root: Module, names: list[str], place: str) -> None:
        self.hint(f"{type(root).__name__}: no optimizer has the parameters in {listed(names)}.", place)


def modules_in(value: Any) -> list[Module]:
    """The modules in a plain list, tuple or dict."""
    parts = value.values() if type(value) is dict else value
    return [m for m in parts if isinstance(m, Module)] if type(value) in (list, tuple, dict) else []


class NoStep(Check):
    name = "no-step"
    title = "gradients are computed, but no optimizer makes a step"
    why = "Parameters change in optimizer.step() only: the loss stays where it began."
    fix = "call optimizer.step() after backward(), with the brackets."
    wrong = "loss.backward(); optimizer.step"
    right = "loss.backward(); optimizer.step()"
    limit = (
        "an optimizer exists, one of its parameters got a new gradient in 20 backward passes and was cleared "
        "between them, its numbers are still the same, and at the end of the program no optimizer has made a step."
    )
    PASSES = 20

    def prepare(self) -> None:
        self.steps = self.passes = self.data = 0
        self.leaf: Any = None  # a weak reference to a parameter of the first pass
        self.place = ""

    def on_step_start(self, optimizer: Any) -> None:
        self.steps += 1

    def on_backward(self, roots: Iterable[Node], nodes: list[Any]) -> None:
        if self.steps or self.place:
            return
        found = [node.tensor() for node in nodes if node.leaf]
        leaves = [leaf for leaf in found if leaf is not None]
        if self.leaf is None and leaves:
            self.leaf, self.data = ref(leaves[0]), checksum(array_of(leaves[0]))
        leaf = self.leaf and self.leaf()
        if leaf is None or not any(leaf is other for other in leaves) or nonzero(gradient(leaf)):
            return
        self.passes += 1
        if self.passes == self.PASSES and id(leaf) in optimized():
            self.place = here() if checksum(array_of(leaf)) == self.data else ""

    def finish(self) -> None:
        if self.place and not self.steps:
            self.hint(f"{self.PASSES} backward passes or more, and no step.", self.place)


CHECKS = (ClearedTooEarly, NotCleared, NoGradient, NoOptimizer, PlainList, NoStep)
