"""A worker of a loader: a process that makes batches, with its own random numbers.

On Linux, processes are forked. This is safe although NumPy's BLAS has threads (OpenBLAS ends them before a fork and
restarts them) and compiled loops have, too (loops/parallel.py checks the process id). A worker's BLAS uses one thread.
"""

from __future__ import annotations

import random
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.base.threads import set_num_threads
from rushlight.random import default_generator
from rushlight.utils.data.fetcher import END_OF_DATA, Recipe
from rushlight.utils.data.pipe import Packed, packed, receive, send

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

BATCH, ERROR, END = "batch", "error", "end"  # the kinds of answers to a task
RESUME = "resume"  # a message instead of a task: restart the data set


@dataclass(frozen=True)
class WorkerInfo:
    """The result of `get_worker_info()`: the worker's number, the number of workers, the seed, the data set."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


_here: WorkerInfo | None = None  # set once, when a worker's process begins


def get_worker_info() -> WorkerInfo | None:
    """The `WorkerInfo` of this process, for data sets that divide their samples; None in the main process.

    >>> rushlight.utils.data.get_worker_info() is None
    True
    """
    return _here


class LongKey(str):
    """The message of a KeyError. A plain string would be shown as its repr, on one line."""

    def __repr__(self) -> str:
        return str(self)


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """The seed of NumPy's random numbers in a worker: four words."""
    words = [worker_id, base_seed & 0xFFFF_FFFF, base_seed >> 32, 0]
    return np.random.SeedSequence(words).generate_state(4).tolist()


@dataclass(frozen=True)
class Caught:
    """An error in a worker, sent to the main process: the class and the text."""

    kind: type[BaseException]
    text: str

    @classmethod
    def now(cls, worker: int) -> Caught:
        """The error being handled."""
        kind, error, trace = sys.exc_info()
        text = "".join(traceback.format_exception(kind, error, trace))
        name = kind.__name__ if kind else "nothing"
        return cls(kind or RuntimeError, f"Caught {name} in DataLoader worker process {worker}.\nOriginal {text}")

    def error(self) -> BaseException:
        """An error of the same class with the worker's traceback; a RuntimeError if the class needs other arguments."""
        if self.kind is KeyError:
            return KeyError(LongKey(self.text))
        try:
            return self.kind(self.text)
        except Exception:
            return RuntimeError(self.text)


class Outbox:
    """Sends messages in a thread, so that a worker with unread batches can still receive tasks."""

    def __init__(self, pipe: Connection):
        self.pipe, self.waiting, self.broken = pipe, SimpleQueue[Packed | None](), False
        self.thread = Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        while (message := self.waiting.get()) is not None:
            try:
                send(self.pipe, message)
            except OSError:  # the program has closed its end
                self.broken = True
                return

    def put(self, index: int, kind: str, content: Any, worker: int) -> None:
        """Send the result of a task. If it cannot be pickled, send the error."""
        try:
            message = packed((index, kind, content))
        except Exception:
            message = packed_error(index, Caught.now(worker))
        self.waiting.put(message)

    def close(self) -> None:
        """Wait until everything is sent, or cannot be sent."""
        self.waiting.put(None)
        self.thread.join()


def packed_error(index: int, caught: Caught) -> Packed:
    """The message of an error; a RuntimeError if its class cannot be pickled."""
    try:
        return packed((index, ERROR, caught))
    except Exception:
        return packed((index, ERROR, Caught(RuntimeError, caught.text)))


@dataclass(frozen=True)
class Job:
    """The arguments of a worker process."""

    id: int
    num_workers: int
    base_seed: int
    recipe: Recipe
    init: Callable[[int], Any] | None

    def begin(self) -> None:
        """Make this process the worker: one BLAS thread, torch's seeds for it, and the user's own preparations."""
        global _here
        with suppress(ImportError):  # without threadpoolctl BLAS keeps its threads
            set_num_threads(1)
        seed = self.base_seed + self.id
        random.seed(seed)
        default_generator.manual_seed(seed)
        np.random.seed(_generate_state(self.base_seed, self.id))
        _here = WorkerInfo(self.id, self.num_workers, seed, self.recipe.dataset)
        if self.init is not None:
            self.init(self.id)


def serve(job: Job, tasks: Connection, results: Connection, inherited: list[Connection]) -> None:
    """The main loop of a worker: receives tasks, sends batches, until there are no more tasks or the main process is
    gone.

    `inherited`: the main process's ends of pipes, which a fork has copied. The worker closes these copies, so that a
    pipe ends when the main process closes its own end.
    """
    for pipe in inherited:
        pipe.close()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    outbox = Outbox(results)
    with suppress(EOFError, KeyboardInterrupt):  # the main process is gone, or was interrupted
        work(job, tasks, outbox)
    outbox.close()


def work(job: Job, tasks: Connection, outbox: Outbox) -> None:
    """Do the tasks. If one fails, its error is sent in place of the batch, and the worker continues."""
    fetch, unable = prepared(job, job.begin)
    while not outbox.broken:
        task = receive(tasks)
        if task is None:
            return
        if task == RESUME:
            fetch, unable = prepared(job) if unable is None else (fetch, unable)
            continue
        index, numbers = task
        if unable is not None:
            outbox.waiting.put(packed_error(index, unable))
        elif fetch is not None:
            try:
                batch = fetch(numbers)
            except Exception:
                outbox.waiting.put(packed_error(index, Caught.now(job.id)))
                continue
            if batch is END_OF_DATA:
                fetch = None  # tasks sent in the meantime are dropped
            outbox.put(index, END if batch is END_OF_DATA else BATCH, None if batch is END_OF_DATA else batch, job.id)


def prepared(job: Job, begin: Callable[[], None] | None = None) -> tuple[Callable | None, Caught | None]:
    """The fetcher, or the error raised when it was created."""
    try:
        if begin is not None:
            begin()
        return job.recipe.fetcher(), None
    except Exception:
        return None, Caught.now(job.id)
