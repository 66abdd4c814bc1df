"""Random numbers: torch 2.13's CPU stream, bit for bit, on NumPy arrays.

`default_generator` draws for every function without a `generator` argument. Until `manual_seed` it is seeded from the
operating system's noise. It is made on first use, so importing this module costs nothing.

>>> _ = manual_seed(0)
>>> default_generator.normal(2)
array([ 1.5409961, -0.2934289], dtype=float32)
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.random.blocks import in_memory_order as in_memory_order
from rushlight.random.blocks import memory_axes as memory_axes

from .generator import Generator

__all__ = [
    "Generator", "default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed",
    "set_rng_state",
]  # fmt: skip

default_generator = Generator()
default_generator.restart(None)


def manual_seed(seed: int) -> Generator:
    """Seed the default generator with int(seed), in [-2^63, 2^64), and return the generator. ValueError out of range.

    >>> _ = rushlight.manual_seed(0)
    >>> rushlight.rand(2)
    tensor([0.4963, 0.7682])
    """
    return default_generator.manual_seed(int(seed))


def seed() -> int:
    """Seed the default generator from the operating system's noise. Returns the seed.

    >>> seed = rushlight.seed()
    >>> seed == rushlight.initial_seed()
    True
    """
    return default_generator.seed()


def initial_seed() -> int:
    """The last seed of the default generator.

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
    """Set the default generator's state to one from get_rng_state(), of rushlight or torch.

    >>> state = rushlight.random.get_rng_state()
    >>> x = rushlight.rand(2)
    >>> rushlight.random.set_rng_state(state)
    >>> rushlight.rand(2).equal(x)
    True
    """
    default_generator.set_state(new_state)


@contextlib.contextmanager
def fork_rng(devices: Iterable[Any] | None = None, enabled: bool = True, device_type: str = "cuda") -> Iterator[None]:
    """Restore the default generator's state at the end of the block. `enabled=False`: do nothing. `devices` and
    `device_type` name other devices whose generators to restore; there are none.

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
