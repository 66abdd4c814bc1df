"""torch.cuda.random: seeds of GPUs; there are no GPUs."""

from __future__ import annotations

from typing import Any


def manual_seed(seed: int) -> None:
    """Nothing to seed."""


def manual_seed_all(seed: int) -> None:
    """Nothing to seed."""


def get_rng_state_all() -> list:
    """[]: no GPU has a generator."""
    return []


def set_rng_state_all(new_states: Any) -> None:
    """Nothing to set."""
