"""Random numbers: torch 2.13's CPU stream, bit for bit, on NumPy arrays.

`default_generator` draws for every function that is given no generator of its own. Until `manual_seed` it starts from
the operating system's noise, and it is made on first use: importing this costs nothing.

>>> _ = manual_seed(0)
>>> default_generator.normal(2)
array([ 1.5409961, -0.2934289], dtype=float32)
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

from ..tensor import Tensor
from .filling import in_memory_order as in_memory_order
from .filling import memory_axes as memory_axes
from .generator import Generator

__all__ = [
    "Generator", "default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state",
]  # fmt: skip

default_generator = Generator()
default_generator.restart(None)


def manual_seed(seed: int) -> Generator:
    """Starts the default generator from int(seed), in [-2^63, 2^64), and returns it; ValueError for another.

    >>> _ = rushlight.manual_seed(0)
    >>> rushlight.rand(2)
    tensor([0.4963, 0.7682])
    """
    return default_generator.manual_seed(int(seed))


def seed() -> int:
    """seed = the operating system's noise: starts the default generator from it, and returns it.

    >>> seed = rushlight.seed()
    >>> seed == rushlight.initial_seed()
    True
    """
    return default_generator.seed()


def initial_seed() -> int:
    """seed from which the default generator last started.

    >>> _ = rushlight.manual_seed(7)
    >>> rushlight.initial_seed()
    7
    """
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The default generator's state, (5056,) uint8: the bytes of torch.get_rng_state().

    >>> rushlight.random.get_rng_state().shape
    torch.Size([5056])
    """
    return default_generator.get_state()


def set_rng_state(new_state: Any) -> None:
    """The default generator goes on from a state that get_rng_state() gave, here or in torch.

    >>> state = rushlight.random.get_rng_state()
    >>> x = rushlight.rand(2)
    >>> rushlight.random.set_rng_state(state)
    >>> rushlight.rand(2).equal(x)
    True
    """
    default_generator.set_state(new_state)


@contextlib.contextmanager
def fork_rng(devices: Iterable[Any] | None = None, enabled: bool = True, device_type: str = "cuda") -> Iterator[None]:
    """What is drawn or seeded inside leaves the default generator as it was. `devices` and `device_type` say which
    other devices to keep, of which there are none; `enabled=False` does nothing.

    >>> _ = rushlight.manual_seed(0)
    >>> with rushlight.random.fork_rng():
    ...     inside = rushlight.rand(1)
    >>> rushlight.rand(1).equal(inside)
    True
    """
    if not enabled:
        yield
        return
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)
