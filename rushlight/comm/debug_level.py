"""DebugLevel: the detail of errors between ranks, set by TORCH_DISTRIBUTED_DEBUG."""

from __future__ import annotations

import os
from enum import IntEnum

from rushlight.base.errors import runtime_error

VARIABLE = "TORCH_DISTRIBUTED_DEBUG"


class DebugLevel(IntEnum):
    """OFF, INFO, and DETAIL: errors show the line of each rank."""

    OFF, INFO, DETAIL = range(3)


_chosen: list[DebugLevel] = []  # at most one level, set by the program


def from_environment() -> DebugLevel:
    """The level in TORCH_DISTRIBUTED_DEBUG. RuntimeError for an unknown name."""
    name = os.environ.get(VARIABLE, "OFF").upper() or "OFF"
    if name not in DebugLevel.__members__:
        raise runtime_error(f"The value of {VARIABLE} must be either `OFF`, `INFO`, or `DETAIL`.")
    return DebugLevel[name]


def get_debug_level() -> DebugLevel:
    """The level that the program has set, or else the level in TORCH_DISTRIBUTED_DEBUG."""
    return _chosen[0] if _chosen else from_environment()


def set_debug_level(level: DebugLevel) -> None:
    """Set the level. It overrides the environment variable."""
    _chosen[:] = [DebugLevel(level)]


def set_debug_level_from_env() -> None:
    """Set the level in TORCH_DISTRIBUTED_DEBUG."""
    _chosen[:] = [from_environment()]
