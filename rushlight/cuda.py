"""torch.cuda as a program without a GPU sees it: nothing is available, and seeding nothing does nothing."""
from __future__ import annotations

from typing import Any


def is_available() -> bool:
    """False: there is only the CPU."""
    return False


def device_count() -> int:
    """0: there is only the CPU."""
    return 0


def manual_seed(seed: int) -> None:
    """Nothing to seed."""


def manual_seed_all(seed: int) -> None:
    """Nothing to seed."""


def empty_cache() -> None:
    """Nothing to empty."""


def synchronize(device: Any = None) -> None:
    """Nothing to wait for."""
