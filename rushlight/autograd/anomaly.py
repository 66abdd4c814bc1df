"""Anomaly detection: backward stops at the node that made the first nan or inf, and names its statement."""
from __future__ import annotations

from typing import Any

from rushlight.autograd.finite import BOTH, NAN
from rushlight.autograd.grad_mode import Setting, current, mode


def looked_for(check_nan: bool, check_inf: bool) -> str:
    return "" if not check_nan else BOTH if check_inf else NAN


class detect_anomaly(Setting):
    """Inside it, backward raises RuntimeError where a gradient turns nan or inf, with the line of the forward statement.

    The message says whether it began in the forward pass, and in which op. torch looks for nan alone, as
    `check_inf=False` does: say so where gradients may overflow, as under `amp.GradScaler`. It costs backward about 0.6 us
    a gradient, so that it may be left on.

    >>> x = rushlight.tensor(0., requires_grad=True)
    >>> with rushlight.autograd.detect_anomaly():
    ...     x.sqrt().backward()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    RuntimeError: Function 'SqrtBackward0' returned inf values in its 0th output...
    """

    changes = {"checks": BOTH}

    def __init__(self, check_nan: bool = True, check_inf: bool = True):
        self.changes = {"checks": looked_for(check_nan, check_inf)}


class set_detect_anomaly(Setting):
    """anomaly detection = mode, at once; as a context until the end of the block. See `detect_anomaly`.

    >>> with rushlight.autograd.set_detect_anomaly(True):
    ...     rushlight.is_anomaly_enabled()
    True
    """

    def __init__(self, mode_on: bool, check_nan: bool = True, check_inf: bool = True):
        self.changes = {"checks": looked_for(mode_on and check_nan, check_inf)}
        self.before = current.set(mode().but(**self.changes))

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exc: object) -> None:
        current.reset(self.before)


def is_anomaly_enabled() -> bool:
    """Whether backward looks for nan."""
    return bool(mode().checks)
