"""Anomaly detection: backward raises at the node that made the first nan or inf, and names the node's statement."""

from __future__ import annotations

from typing import Any

from rushlight.autograd.nan_check import BOTH, NAN
from rushlight.core.mode import current, mode
from rushlight.ops.grad_mode import Decorator


def checks_of(check_nan: bool, check_inf: bool) -> str:
    """The value of `Mode.checks`: "", "nan" or "nan or inf"."""
    return "" if not check_nan else BOTH if check_inf else NAN


class detect_anomaly(Decorator):
    """Inside, backward raises RuntimeError when a gradient becomes nan or inf, and names the line of the forward
    statement.

    The message also names the op of the forward pass that made the first such value, if there is one. torch checks for
    nan only: pass `check_inf=False` if gradients may overflow, as under `amp.GradScaler`. The check of a gradient costs
    about as much as an op on a small tensor, so detection may stay switched on.

    >>> x = rushlight.tensor(0., requires_grad=True)
    >>> with rushlight.autograd.detect_anomaly():
    ...     x.sqrt().backward()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    RuntimeError: Function 'SqrtBackward0' returned inf values in its 0th output...
    """

    changes = {"checks": BOTH}

    def __init__(self, check_nan: bool = True, check_inf: bool = True):
        self.changes = {"checks": checks_of(check_nan, check_inf)}


class set_detect_anomaly(Decorator):
    """Switch anomaly detection (`detect_anomaly`) on or off: at once, and as a context until the end of the block.

    >>> with rushlight.autograd.set_detect_anomaly(True):
    ...     rushlight.is_anomaly_enabled()
    True
    """

    def __init__(self, mode_on: bool, check_nan: bool = True, check_inf: bool = True):
        self.changes = {"checks": checks_of(mode_on and check_nan, check_inf)}
        self.before = current.set(mode().but(**self.changes))

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exc: object) -> None:
        current.reset(self.before)


def is_anomaly_enabled() -> bool:
    """Whether anomaly detection is on."""
    return bool(mode().checks)
