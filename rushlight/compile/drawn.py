"""What the default generator has drawn, drawn again."""
from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from rushlight.tensor import from_array


def random_state() -> bytes | None:
    """The state of the default generator, if it was ever used."""
    module = sys.modules.get("rushlight.random")
    return None if module is None else module.get_rng_state().array.tobytes()


def restore(state: bytes | None) -> None:
    module = sys.modules.get("rushlight.random")
    if module is not None and state is not None:
        module.set_rng_state(from_array(np.frombuffer(state, np.uint8).copy()))


@contextmanager
def again(state: bytes | None) -> Iterator[Callable[[], str]]:
    """Inside, the numbers that were drawn since `state` are drawn again; gives a function that says whether they were."""
    module, now = sys.modules.get("rushlight.random"), random_state()
    if module is None or state is None or state == now:
        yield lambda: ""
        return
    try:
        restore(state)
        yield lambda: "" if random_state() == now else "other random numbers"
    finally:
        restore(now)
