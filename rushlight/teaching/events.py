"""From the running program to the checks: functions of rushlight are wrapped while `teach()` is on.

While it is off nothing is wrapped, so there is no overhead.
"""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import partial, wraps
from typing import Any

import numpy as np

import rushlight.core.backward  # noqa: F401  (the module; autograd.backward is the function)
from rushlight.core.engine import reachable
from rushlight.core.mode import mode
from rushlight.core.tensor import Tensor
from rushlight.optim.optimizer import EVERYWHERE
from rushlight.teaching.check import EVENTS, Check
from rushlight.teaching.hints import Report

LOSSES = (
    "cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "kl_div",
)  # fmt: skip
CLIPS = ("clip_grad_norm_", "clip_grad_value_")


DROPOUTS = ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout")
TRAINING = 2  # the position of these functions' argument `training`


class Events:
    """Sends events to checks. A check that raises an error is switched off; the program continues."""

    def __init__(self, checks: list[Check], report: Report, strict: bool = False):
        self.report, self.strict = report, strict
        self.readers = {
            event: [c for c in checks if getattr(type(c), event) is not getattr(Check, event)]
            for event in [*EVENTS, "finish"]
        }
        self.undo: list[Callable[[], None]] = []
        self.lock = threading.RLock()
        self.depth = threading.local()

    def send(self, event: str, *args: Any) -> None:
        """Call the event's method of each check that has it. Inside vmap no check runs; inside rushlight.compile, only
        checks that need no values.
        """
        m = mode()
        if m.batch is not None:
            return
        with self.lock:
            for check in list(self.readers[event]):
                if m.watch is None or check.static:
                    self.call(check, event, args)

    def call(self, check: Check, event: str, args: tuple) -> None:
        try:
            getattr(check, event)(*args)
        except Exception as error:
            if self.strict:
                raise
            self.readers[event].remove(check)
            self.report.say(f"rushlight teach: {check.name} is off after {error!r}")

    # -- wrapping ----------------------------------------------------------------------------------

    def start(self) -> None:
        from rushlight import nn
        from rushlight.nn.hooks import Hooked
        from rushlight.optim.lr_scheduler import LRScheduler
        from rushlight.utils.data import dataloader

        for name in LOSSES:
            self.assign(nn.functional, name, self.loss(name, getattr(nn.functional, name)))
        for name in DROPOUTS:
            self.assign(nn.functional, name, self.dropout(getattr(nn.functional, name)))
        for name in CLIPS:
            for owner in (nn.utils, nn.utils.clip_grad):
                self.assign(owner, name, self.clip(getattr(owner, name)))
        self.assign(Hooked, "__call__", self.module(Hooked.__call__))
        self.assign(nn.Module, "load_state_dict", self.load(nn.Module.load_state_dict))
        engine = sys.modules["rushlight.core.backward"]
        self.assign(engine, "run", self.backward(engine.run))
        self.assign(engine, "seed", self.seed(engine.seed))
        for name in ("argmax", "max"):
            self.assign(Tensor, name, self.decision(name, getattr(Tensor, name)))
            public = sys.modules["rushlight"]
            forget(name)
            self.assign(public, name, self.decision(name, getattr(public, name)))
            self.undo.append(partial(forget, name))  # runs before the name is restored
        for name in ("__eq__", "eq"):
            self.assign(Tensor, name, self.comparison(getattr(Tensor, name)))
        for batches in (dataloader._SingleProcessDataLoaderIter, dataloader.WorkerIterator):
            self.assign(batches, "__next__", self.batch(batches.__next__))
        for kind, event in (("step_pre", "on_step_start"), ("step_post", "on_step_end")):
            self.undo.append(EVERYWHERE.add(kind, self.step(event)).remove)
        self.assign(LRScheduler, "step", self.schedule(LRScheduler.step))

    def stop(self) -> None:
        while self.undo:
            self.undo.pop()()

    def assign(self, owner: Any, name: str, value: Any) -> None:
        own, known = name in vars(owner), getattr(owner, name)
        setattr(owner, name, value)
        self.undo.append((lambda: setattr(owner, name, known)) if own else (lambda: delattr(owner, name)))

    def loss(self, name: str, function: Callable) -> Callable:
        place = [*inspect.signature(function).parameters].index("reduction")

        @wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            input = args[0] if args else kwargs.get("input")
            target = args[1] if len(args) > 1 else kwargs.get("target")
            if isinstance(input, Tensor) and isinstance(target, Tensor):
                self.send("on_loss", name, input, target)
                reduction = args[place] if len(args) > place else kwargs.get("reduction", "mean")
                self.send("on_reduction", name, reduction, input)
                if reduction != "none":
                    self.send("on_decision", name, input)
            return function(*args, **kwargs)

        return run

    def clip(self, function: Callable) -> Callable:
        @wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            if len(args) > 1:
                known = [args[0]] if isinstance(args[0], Tensor) else [*args[0]]
                if isinstance(args[0], Iterator):  # the function gets an iterator of its own
                    args = ((p for p in known), *args[1:])
                self.send("on_clip", known, float(args[1]))
            return function(*args, **kwargs)

        return run

    def dropout(self, function: Callable) -> Callable:
        @wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            if len(args) <= TRAINING and "training" not in kwargs:
                self.send("on_dropout")
            return function(*args, **kwargs)

        return run

    def module(self, call: Callable) -> Callable:
        depth = self.depth

        @wraps(call)
        def run(module: Any, /, *args: Any, **kwargs: Any) -> Any:
            depth.value = getattr(depth, "value", 0) + 1
            try:
                output = call(module, *args, **kwargs)
            finally:
                depth.value -= 1
            self.send("on_module", module, args, output, depth.value == 0)
            return output

        return run

    def load(self, function: Callable) -> Callable:
        @wraps(function)
        def run(module: Any, /, *args: Any, **kwargs: Any) -> Any:
            self.send("on_load", module)
            return function(module, *args, **kwargs)

        return run

    def seed(self, seed: Callable) -> Callable:
        """`core.backward.seed`, which receives the tensors at which backward begins."""

        @wraps(seed)
        def run(outputs: Any, grads: Any, create_graph: bool) -> Any:
            one = outputs[0] if len(outputs) == 1 else None
            array = getattr(one, "_array", None)
            self.report.root_array = array if isinstance(array, np.ndarray) else None
            return seed(outputs, grads, create_graph)

        return run

    def backward(self, engine: Callable) -> Callable:
        @wraps(engine)
        def run(seeds: Any, world: Any, targets: Any, *rest: Any) -> Any:
            if targets is None and mode().watch is None:  # this excludes autograd.grad
                self.send("on_backward", seeds, reachable(seeds))
            return engine(seeds, world, targets, *rest)

        return run

    def decision(self, name: str, function: Callable) -> Callable:
        @wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            one_of_many = name == "argmax" or len(args) > 1 or "dim" in kwargs
            if one_of_many and args and isinstance(args[0], Tensor):
                self.send("on_decision", name, args[0])
                dim = args[1] if len(args) > 1 else kwargs.get("dim")
                if dim is None or isinstance(dim, int):
                    self.send("on_choice", name, args[0], dim)
            return function(*args, **kwargs)

        return run

    def comparison(self, function: Callable) -> Callable:
        @wraps(function)
        def run(one: Tensor, /, *args: Any, **kwargs: Any) -> Any:
            if args and isinstance(args[0], Tensor):
                self.send("on_comparison", one, args[0])
            return function(one, *args, **kwargs)

        return run

    def batch(self, advance: Callable) -> Callable:
        @wraps(advance)
        def run(batches: Any) -> Any:
            batch = advance(batches)
            self.send("on_batch", batches, [*tensors_of(batch)])
            return batch

        return run

    def schedule(self, function: Callable) -> Callable:
        @wraps(function)
        def run(scheduler: Any, *args: Any, **kwargs: Any) -> Any:
            result = function(scheduler, *args, **kwargs)
            self.send("on_schedule", scheduler)
            return result

        return run

    def step(self, event: str) -> Callable:
        def hook(optimizer: Any, args: tuple, kwargs: dict) -> None:
            self.send(event, optimizer)

        return hook


def forget(name: str) -> None:
    """Make the module `torch` of `rushlight run` look the function up again (Torch in compat/hook.py keeps it)."""
    ours, torch = sys.modules["rushlight"], sys.modules.get("torch")
    if torch is not None and torch.__file__ == ours.__file__ and vars(torch).get(name) is getattr(ours, name):
        delattr(torch, name)


def tensors_of(batch: Any) -> Iterable[Tensor]:
    """The tensors of a batch: one, or those in a list, tuple or dict."""
    parts = batch.values() if isinstance(batch, dict) else batch
    if isinstance(batch, Tensor):
        yield batch
    elif isinstance(batch, (list, tuple, dict)):
        yield from (part for part in parts if isinstance(part, Tensor))
