"""torch.distributed: one process; it says that it is not available."""
from __future__ import annotations

from typing import Any


def is_available() -> bool:
    """False."""
    return False


def is_initialized() -> bool:
    """False."""
    return False


def get_rank(group: Any = None) -> int:
    """0: the only process."""
    return 0


def get_world_size(group: Any = None) -> int:
    """1: the only process."""
    return 1


def init_process_group(*args: Any, **kwargs: Any) -> None:
    """RuntimeError: there is one process."""
    raise RuntimeError("rushlight has no distributed training yet: run one process")
