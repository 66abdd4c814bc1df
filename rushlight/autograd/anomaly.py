"""Anomaly detection: backward stops at the node that made the first nan, and names its statement."""
from __future__ import annotations

from typing import Any

from rushlight.autograd.grad_mode import Setting, current, mode


class detect_anomaly(Setting):
    """Inside it, backward raises RuntimeError where a gradient turns nan, with the line of the forward statement.

    >>> x = rushlight.tensor(0., requires_grad=True)
    >>> with rushlight.autograd.detect_anomaly():
    ...     (x.sqrt() * 0).backward()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output...
    """

    changes = {"checks": True}

    def __init__(self, check_nan: bool = True):
        self.changes = {"checks": bool(check_nan)}


class set_detect_anomaly(Setting):
    """Turn anomaly detection on or off, at once; as a context until the end of the block."""

    def __init__(self, mode_on: bool, check_nan: bool = True):
        self.changes = {"checks": bool(mode_on and check_nan)}
        self.before = current.set(mode().but(**self.changes))

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exc: object) -> None:
        current.reset(self.before)


def is_anomaly_enabled() -> bool:
    """Whether backward checks for nan."""
    return mode().checks
