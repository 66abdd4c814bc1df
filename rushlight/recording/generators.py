"""The random states of rushlight, NumPy and Python's `random`, as tensors and numbers."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np

from rushlight.creation.factories import tensor
from rushlight.random import Generator, get_rng_state, set_rng_state


def random_states(loader: Any) -> dict[str, Any]:
    """All random states: the default generators, and the loader's."""
    state: Any = np.random.get_state(legacy=True)
    kind, words, position, has_gauss, gauss = state
    return {
        "rushlight": get_rng_state(),
        "numpy": [kind, tensor(words.astype(np.int64)), position, has_gauss, gauss],
        "python": python_state(),
        "loader": [generator.get_state() for generator in generators(loader)],
    }


def set_random_states(states: dict[str, Any], loader: Any) -> None:
    """Restore the states that `random_states` returned."""
    set_rng_state(states["rushlight"])
    kind, words, position, has_gauss, gauss = states["numpy"]
    np.random.set_state((kind, words.numpy().astype(np.uint32), position, has_gauss, gauss))
    version, numbers, gauss_next = states["python"]
    random.setstate((version, tuple(numbers.tolist()), gauss_next))
    for generator, state in zip(generators(loader), states["loader"]):
        generator.set_state(state)


def python_state() -> list[Any]:
    version, numbers, gauss_next = random.getstate()
    return [version, tensor(np.array(numbers, np.int64)), gauss_next]


def generators(loader: Any) -> list[Generator]:
    """The generators that the loader and its samplers were given, each once."""
    return list({id(g): g for g in found(loader) if isinstance(g, Generator)}.values())


def found(loader: Any) -> Iterator[Any]:
    batches = getattr(loader, "batch_sampler", None)
    for owner in (loader, getattr(loader, "sampler", None), getattr(batches, "sampler", None)):
        yield getattr(owner, "generator", None)
