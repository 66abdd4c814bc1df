"""`record` writes checkpoints while a training loop runs; `replay` restarts at any step, with the same numbers to the
bit.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from rushlight.base.errors import explain, value_error, warn
from rushlight.loops.background import background
from rushlight.recording import checkpoint
from rushlight.recording.generators import random_states, set_random_states
from rushlight.recording.process import process_state, set_process_state


class Steps:
    """The iterator of `replay`: (step, batch), for several rounds through a loader. `step`, `epoch`, `index`: the
    number of the next batch in total, its epoch, and its index in the epoch.
    """

    def __init__(self, loader: Iterable, every: int, epochs: int, objects: dict[str, Any]):
        checkpoint.check_objects(objects)
        background.wait()  # wait for compiled loops: if they took over at a random time, last bits would change
        self.loader, self.every, self.epochs, self.objects = loader, every, epochs, objects
        self.step = self.epoch = self.index = 0
        self.last_epoch_of: int | None = None  # the step whose epoch is the last one
        self.batches: Iterator[Any] | None = None
        self.began: dict[str, Any] = {}  # the random states before this epoch's first batch

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        return self

    def __next__(self) -> tuple[int, Any]:
        while self.epoch < self.epochs:
            if self.batches is None:
                self.began = random_states(self.loader)
            self.before_batch()
            if self.batches is None:
                self.batches = iter(self.loader)
            try:
                batch = next(self.batches)
            except StopIteration:
                self.batches, self.index, self.epoch = None, 0, self.epoch + 1
                continue
            self.step, self.index = self.step + 1, self.index + 1
            if self.last_epoch_of is not None and self.step > self.last_epoch_of:
                self.epochs, self.last_epoch_of = self.epoch + 1, None
            return self.step - 1, batch
        raise StopIteration

    def before_batch(self) -> None:
        """Called before each batch, and at the end of each epoch."""

    def content(self) -> dict[str, Any]:
        """The content of a checkpoint."""
        return {
            "every": self.every,
            "epochs": self.epochs,
            "epoch": self.epoch,
            "index": self.index,
            "began": self.began,
            "random": random_states(self.loader),
            "process": process_state(),
            **checkpoint.states(self.objects),
        }

    def restore(self, content: dict[str, Any]) -> None:
        """Restore a checkpoint: objects, the position in the loader, random states."""
        checkpoint.set_states(content, self.objects)
        self.step, self.epoch, self.index = content["step"], content["epoch"], content["index"]
        self.began, self.batches = content["began"], None
        if self.index:
            set_random_states(self.began, self.loader)
            self.batches = iter(self.loader)
            for _ in range(self.index):
                next(self.batches)
        set_random_states(content["random"], self.loader)
        set_process_state(content["process"])


class Recording(Steps):
    """The iterator of `record`."""

    def __init__(self, folder: Path, loader: Iterable, every: int, epochs: int, objects: dict[str, Any]):
        super().__init__(loader, every, epochs, objects)
        self.folder = folder
        self.written: int | None = None  # the step of the last checkpoint

    def before_batch(self) -> None:
        if self.step % self.every == 0 and self.step != self.written:
            checkpoint.write(self.folder, self.step, self.content())
            if self.written is None:
                checkpoint.read(self.folder, self.step)  # raise an error now, not after the training
            self.written = self.step


def record(
    folder: str | os.PathLike, loader: Iterable, *, every: int = 100, epochs: int = 1, resume: bool = False,
    **objects: Any,
) -> Recording:  # fmt: skip
    """Iterate over (step, batch), `epochs` times through the loader; write a checkpoint into the folder before each
    `every`-th step.

    `objects`: the objects that training changes, under any names: model=, optimizer=, scheduler=; each has state_dict()
    and load_state_dict(). A checkpoint holds their states, the gradients, the position in the loader, and the random
    states of rushlight, NumPy and `random`. `replay` restarts there, even after the process was killed. `resume`:
    continue at the last checkpoint.

    ValueError if the folder has a recording and `resume` is false, or `every` is below 1; TypeError for an object
    without a state.

    >>> import tempfile
    >>> model = rushlight.nn.Linear(1, 1)
    >>> folder = tempfile.mkdtemp()
    >>> for step, x in rushlight.record(folder, [rushlight.ones(1)], epochs=3, model=model):
    ...     print(step, model(x).shape)
    0 torch.Size([1])
    1 torch.Size([1])
    2 torch.Size([1])
    """
    place = Path(folder)
    if every < 1:
        raise value_error(f"every={every} is below 1", "every=100: each 100th step")
    recording = Recording(place, loader, every, epochs, objects)
    place.mkdir(parents=True, exist_ok=True)
    known = checkpoint.steps_in(place)
    if known and not resume:
        raise value_error(
            f"{place} has a recording up to step {known[-1]}",
            "use another folder, or resume=True to continue, or rushlight.replay(folder, ...)",
        )
    if known:
        warn_of_persistent_workers(loader)
        recording.restore(checkpoint.read(place, None))
        recording.written = recording.step
    return recording


def replay(
    folder: str | os.PathLike, loader: Iterable, *, step: int | None = None, epochs: int | None = None,
    body: Callable[[Any], Any] | None = None, **objects: Any,
) -> Steps:  # fmt: skip
    """Iterate over (step, batch) as `record` did, from the last checkpoint at or before `step` (default: the last of
    all), with the same numbers to the bit.

    `loader`, `objects`: made by the same program as for `record`. `body(batch)`: the loop's work for one batch; it is
    called for the steps between the checkpoint and `step`, so that the model, the optimizer and the loader are as they
    were before `step`. Without it the loop itself makes these steps. `epochs`: the total number of rounds through the
    loader (default: to the end of the epoch of `step`). Nothing is written.

    ValueError if there is no such checkpoint, if the names of objects differ, or if the recording ends before `step`.

    >>> import tempfile
    >>> def parts():
    ...     model = rushlight.nn.Linear(1, 1)
    ...     return model, rushlight.optim.SGD(model.parameters(), lr=0.1)
    >>> def train(x, model, optimizer):
    ...     optimizer.zero_grad()
    ...     loss = model(x).square().sum()
    ...     loss.backward()
    ...     optimizer.step()
    ...     return loss.item()
    >>> folder, data = tempfile.mkdtemp(), [rushlight.ones(1)] * 20
    >>> model, optimizer = parts()
    >>> steps = rushlight.record(folder, data, every=8, model=model, optimizer=optimizer)
    >>> losses = [train(x, model, optimizer) for step, x in steps]
    >>> model, optimizer = parts()  # in another process
    >>> steps = rushlight.replay(folder, data, step=11, model=model, optimizer=optimizer,
    ...     body=lambda x: train(x, model, optimizer))
    >>> [train(x, model, optimizer) for step, x in steps] == losses[11:]
    True
    """
    content = checkpoint.read(Path(folder), step)
    recorded = content["epoch"] + 1 if step is None else content.get("epochs", content["epoch"] + 1)
    steps = Steps(loader, content["every"], recorded if epochs is None else epochs, objects)
    steps.last_epoch_of = step if epochs is None else None
    warn_of_persistent_workers(loader)
    steps.restore(content)
    while step is not None and body is not None and steps.step < step:
        try:
            body(next(steps)[1])
        except StopIteration:
            raise value_error(f"the loader ends at step {steps.step}, before {step}", "raise epochs=") from None
    return steps


def warn_of_persistent_workers(loader: Any) -> None:
    if getattr(loader, "persistent_workers", False):
        warn(
            "the random numbers of persistent workers depend on all earlier epochs, so that they are not replayed: "
            "use persistent_workers=False"
        )


__all__ = ["Recording", "Steps", "record", "replay"]
