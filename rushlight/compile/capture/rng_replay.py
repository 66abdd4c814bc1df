"""Repeat the random numbers that a traced run has drawn from the default generator."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import get_ident

import numpy as np

from rushlight.core.tensor import from_array
from rushlight.ops.tensor.random_tensors import generators


def random_state() -> bytes | None:
    """The state of the default generator, or None if it was never used."""
    module = sys.modules.get("rushlight.random")
    return None if module is None else module.get_rng_state()._array.tobytes()


def restore(state: bytes | None) -> None:
    module = sys.modules.get("rushlight.random")
    if module is not None and state is not None:
        module.set_rng_state(from_array(np.frombuffer(state, np.uint8).copy()))


class Draws:
    """`with Draws() as draws`: notes the threads that draw from the default generator. `draws.again()` repeats the
    numbers.

    Other threads may draw at any time, so a changed state of the generator does not prove that this thread has
    drawn."""

    def __init__(self) -> None:
        self.generator, self.thread = generators().default_generator, get_ident()
        self.threads: set[int] = set()

    def __enter__(self) -> Draws:
        with self.generator.lock:
            self.began = random_state()
            self.generator.witnesses += (self.threads,)
        return self

    def __exit__(self, *error: object) -> None:
        with self.generator.lock:
            self.ended = random_state()
            self.generator.witnesses = tuple([t for t in self.generator.witnesses if t is not self.threads])

    @property
    def own(self) -> bool:
        """Whether this thread has drawn."""
        return self.thread in self.threads

    @property
    def mixed(self) -> str:
        """The reason why the numbers of this thread cannot be repeated; "" if they can."""
        return "draws random numbers while other threads do" if self.own and len(self.threads) > 1 else ""

    @contextmanager
    def again(self) -> Iterator[Callable[[], str]]:
        """Inside, this thread draws the same numbers again, and other threads wait.

        Yields a function that returns "" if all numbers were drawn, else a description of the difference."""
        if not self.own:
            yield lambda: ""
            return
        with self.generator.lock:
            now = random_state()
            try:
                restore(self.began)
                yield lambda: "" if random_state() == self.ended else "other random numbers"
            finally:
                restore(now)
