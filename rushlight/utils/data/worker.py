"""Workers of a loader: who they are, and their own streams of random numbers.

Torch's workers are processes. Ours take turns in the calling thread, so they need neither pickling nor a guarded
`__main__`, and give the numbers that torch's give: each is seeded as a torch worker is, and what it draws or seeds does
not disturb the program's own random numbers.
"""
from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np

from rushlight.random import default_generator


@dataclass(frozen=True)
class WorkerInfo:
    """What `get_worker_info()` tells a data set: the worker's number, how many there are, its seed, the data set."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


current: ContextVar[WorkerInfo | None] = ContextVar("worker", default=None)


def get_worker_info() -> WorkerInfo | None:
    """The worker that is asking, for data sets that share out their samples; None in the main program.

    >>> rushlight.utils.data.get_worker_info() is None
    True
    """
    return current.get()


class Worker:
    """One of several that make batches: `fetch(numbers)` runs with the worker's own random streams."""

    def __init__(self, info: WorkerInfo, base_seed: int, init: Callable[[int], Any] | None):
        self.info = info
        self.streams: tuple | None = None
        with self.turn():
            random.seed(info.seed)
            default_generator.manual_seed(info.seed)
            words = [info.id, base_seed & 0xFFFF_FFFF, base_seed >> 32, 0]
            np.random.seed(np.random.SeedSequence(words).generate_state(4))
            if init is not None:
                init(info.id)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """The worker's streams in place of the program's, which go on afterwards as if nothing had happened."""
        outside, token = streams(), current.set(self.info)
        if self.streams is not None:
            set_streams(self.streams)
        try:
            yield
        finally:
            self.streams = streams()
            set_streams(outside)
            current.reset(token)


def streams() -> tuple:
    """The states of rushlight's, NumPy's and Python's random numbers."""
    return default_generator.get_state(), np.random.get_state(), random.getstate()


def set_streams(states: tuple) -> None:
    default_generator.set_state(states[0])
    np.random.set_state(states[1])
    random.setstate(states[2])
