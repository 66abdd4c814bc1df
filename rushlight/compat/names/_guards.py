"""torch._guards: the names that libraries import; no mode of fake tensors is ever active."""

from __future__ import annotations

from typing import Any

from rushlight.base.missing_names import tell as _tell


def detect_fake_mode(inputs: Any = None) -> None:
    """None: no tensor is fake."""


def active_fake_mode() -> None:
    """None: no mode of fake tensors is active."""


__all__ = ["active_fake_mode", "detect_fake_mode"]

_tell(__name__)
