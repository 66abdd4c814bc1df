"""Records of a running training: the loss of each step, and some steps in full."""

from __future__ import annotations

import json
import sys
from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from functools import wraps
from threading import Lock
from time import perf_counter
from typing import Any
from weakref import WeakSet

import rushlight.core.backward  # noqa: F401  (the module; `autograd.backward` is the function of that name)
from rushlight import nn
from rushlight.core.mode import mode
from rushlight.optim.optimizer import EVERYWHERE
from rushlight.viz.watching.gate import Gate
from rushlight.viz.watching.layers import Layers
from rushlight.viz.watching.predictions import Compared, batch_of, losses, predictions, shown
from rushlight.viz.watching.sample import Sample, array_of
from rushlight.viz.watching.samples import short

INTERVAL = 0.33  # seconds between two steps that are recorded in full: more than two a second
SHARE = 0.015  # of the time, for records; a model with many layers is recorded more rarely
MAX_RECORDS = 240  # then every second one is dropped
MAX_LOSSES = 4000


class Observer:
    """The hooks of a training and their findings, as JSON for the page.

    `losses`: [step, loss, number of the optimizer]; `records`: (number, text) of the recorded steps. Both are bounded:
    a long training keeps every second one of the older steps."""

    def __init__(self, layers: Layers, gate: Gate, discovers: bool, predict: Callable[[], Any] | None = None):
        self.layers, self.gate, self.discovers, self.predict = layers, gate, discovers, predict
        self.count = self.number = 0
        self.losses: list[list[Any]] = []
        self.records: list[tuple[int, str]] = []
        self.latest = '"ops":[],"predictions":null'  # of the newest record
        self.optimizers: WeakSet[Any] = WeakSet()
        self.unknown: WeakSet[Any] = WeakSet()  # optimizers whose modules the next record finds
        self.ignored: WeakSet[Any] = WeakSet()  # optimizers of parameters that the page does not show
        self.places: list[int] = []  # ids of the optimizers, in the order of their first steps
        self.roots: deque[Any] = deque(maxlen=64)  # losses of the backwards since the last step, as arrays
        self.compared = Compared()
        self.sample: Sample | None = None
        self.due = 0.0  # the time of the next record
        self.spent = self.cost = 0.0  # seconds: for all records, and for the one that is being made
        self.began = perf_counter()
        self.undo: list[Callable[[], None]] = []
        self.lock, self.turn = Lock(), Lock()  # of the records, and of the hooks
        self.after_each_step: list[Callable[[Any], None]] = []
        self.after_records: list[Callable[[], None]] = []
        self.batch: Callable[[], Any] | None = None  # computes the loss of the last recorded batch again

    # -- hooks -------------------------------------------------------------------------------------

    def start(self) -> None:
        """Put the hooks in place; the first step is recorded."""
        for name in losses():
            self.assign(nn.functional, name, self.compared.watch(name, getattr(nn.functional, name)))
        engine = sys.modules["rushlight.core.backward"]
        self.assign(engine, "add_gradients", self.backward(engine.add_gradients))
        for kind, hook in (("step_pre", self.before_step), ("step_post", self.after_step)):
            self.undo.append(EVERYWHERE.add(kind, hook).remove)
        self.arm()

    def stop(self) -> None:
        """Take the hooks away."""
        with self.turn:  # another thread may train
            while self.undo:
                self.undo.pop()()
            sample, self.sample = self.sample, None
            if sample is not None:
                sample.stop()

    def assign(self, owner: Any, name: str, value: Any) -> None:
        known = getattr(owner, name)
        setattr(owner, name, value)
        self.undo.append(lambda: setattr(owner, name, known))

    def backward(self, function: Callable) -> Callable:
        """`core.backward.add_gradients`, which starts each backward: its first argument has the loss."""

        @wraps(function)
        def run(outputs: Any, *rest: Any) -> Any:
            m = mode()
            if len(outputs) == 1 and m.watch is None and m.batch is None:
                array = array_of(outputs[0])
                if array is not None and array.size == 1:
                    self.roots.append(array)
            return function(outputs, *rest)

        return run

    def arm(self) -> None:
        """Record the next step in full, unless the hooks are away."""
        with self.turn:
            if self.undo:
                self.sample = Sample()
                self.sample.start()

    def watched(self, optimizer: Any) -> bool:
        """Whether the page shows the steps of this optimizer. The modules of a new optimizer are found among the
        modules that a recorded step calls."""
        if optimizer in self.optimizers or optimizer in self.ignored:
            return optimizer in self.optimizers
        if self.discovers:
            if self.sample is None:
                self.unknown.add(optimizer)
                self.due = 0.0
                return False
            self.unknown.discard(optimizer)
            self.layers.adopt(optimizer, [*self.sample.calls])
        if not self.layers.of(optimizer):
            self.ignored.add(optimizer)
            return False
        self.optimizers.add(optimizer)
        self.places.append(id(optimizer))
        return True

    def before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self.watched(optimizer) and (sample := self.sample) is not None:
            begin = perf_counter()
            if optimizer in sample.stepped:
                self.finish()  # another optimizer made no step this time
                self.pay(begin)
                self.plan()
            else:
                sample.before_update(optimizer, self.layers.of(optimizer))
                self.pay(begin)

    def after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if optimizer not in self.optimizers:
            return
        self.count += 1
        self.note_loss(optimizer)
        if (sample := self.sample) is not None:
            begin = perf_counter()
            sample.after_update(optimizer, self.layers.of(optimizer))
            if len(sample.stepped) >= len(self.optimizers) + len(self.unknown):
                self.finish()
            self.pay(begin)
            self.plan()
        for call in self.after_each_step:
            call(optimizer)
        self.gate.enter()
        self.arm_if_due()

    def arm_if_due(self) -> None:
        begin = perf_counter()
        if self.sample is None and (self.gate.paused or begin >= self.due):
            self.arm()
            self.pay(begin)

    def pay(self, begin: float) -> None:
        """Add the time since `begin` to the cost of the record."""
        self.cost += perf_counter() - begin

    def plan(self) -> None:
        """After a record: the time of the next one."""
        if self.sample is None:
            self.due = perf_counter() + max(INTERVAL, self.cost / SHARE)
            self.spent += self.cost
            self.cost = 0.0

    def note_loss(self, optimizer: Any) -> None:
        """The mean of the losses from which backward began since the last step."""
        if not self.roots:
            return
        values = [float(array.reshape(-1)[0].real) for array in self.roots]
        self.roots.clear()
        which = self.places.index(id(optimizer)) if len(self.places) > 1 else 0
        self.add_loss(sum(values) / len(values), which)

    def add_loss(self, loss: float, which: int) -> None:
        with self.lock:
            self.losses.append([self.count, short(loss), which])
            if len(self.losses) > MAX_LOSSES:
                del self.losses[1 : MAX_LOSSES // 2 : 2]

    def by_hand(self, loss: float | None) -> None:
        """A step of a loop without an optimizer: its loss; no gradients or updates."""
        self.count += 1
        if loss is not None:
            self.add_loss(loss, 0)
        self.roots.clear()
        if (sample := self.sample) is not None:
            sample.seconds = perf_counter() - sample.began
            self.finish()
            self.plan()
        self.gate.enter()
        self.arm_if_due()

    # -- records -----------------------------------------------------------------------------------

    def finish(self) -> None:
        """Turn the sample into a record."""
        sample, self.sample = self.sample, None
        if sample is None:  # another thread has ended the page
            return
        sample.stop()
        calls = [(m, *call) for m, call in sample.calls.items() if m in self.layers.models.values()]
        told = self.predicted(calls)
        self.batch = batch_of(calls, self.compared.last)
        record = {"p": sample.changes, "a": sample.activations(self.layers.number)}
        latest = json.dumps({"ops": sample.ops(), "predictions": told, "ms": short(1000 * sample.seconds)})
        text = json.dumps(record)[1:-1]
        with self.lock:
            self.number += 1
            self.latest = latest[1:-1]
            self.records.append((self.number, f'{{"number":{self.number},"step":{self.count},{text}}}'))
            if len(self.records) > MAX_RECORDS:
                del self.records[1 : MAX_RECORDS // 2 : 2]
        self.compared.last = None
        for call in self.after_records:
            call()

    def predicted(self, calls: list[tuple]) -> dict[str, Any] | None:
        """The predictions for the page. `calls`: (model, arguments, keyword arguments, output)."""
        if self.predict is not None:
            return shown(self.predict())
        if not calls:
            return predictions(self.compared.last, None, None)
        _, args, _, output = calls[-1]
        return predictions(self.compared.last, array_of(args[0]) if args else None, array_of(output))

    def state(self, since: int = 0, losses: int = 0, version: int = -1) -> str:
        """The news as JSON: records with a number above `since`, losses of steps above `losses`, and the layers if
        their version differs."""
        with self.lock:
            records = [text for number, text in self.records if number > since]
            points = self.losses[bisect_right(self.losses, losses, key=lambda point: point[0]) :]
            latest, count = self.latest, self.count
        meta = self.layers.meta() if self.layers.version != version else None
        head = json.dumps(
            {"count": count, "seconds": short(perf_counter() - self.began), "losses": points, "meta": meta}
        )
        return f'{head[:-1]},{latest},"records":[{",".join(records)}]}}'
