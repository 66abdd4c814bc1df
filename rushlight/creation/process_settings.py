"""torch's settings of the whole process, most without effect here: default device, determinism, warnings."""

from __future__ import annotations

from typing import Any

from rushlight.base.device import chosen as chosen_device
from rushlight.base.device import device, placed
from rushlight.base.errors import Once, runtime_error, type_error
from rushlight.core.mode import mode
from rushlight.creation.factories import FILLING
from rushlight.loops.background import background


class Settings:
    """The present settings. Each is one attribute, so that a thread never sees a half-changed setting."""

    __slots__ = ("deterministic", "fill_uninitialized_memory")
    deterministic: int  # 0 default, 1 warn, 2 error for an algorithm that is not deterministic
    fill_uninitialized_memory: bool  # fill `empty` with nan while deterministic algorithms are on


chosen = Settings()
chosen.deterministic, chosen.fill_uninitialized_memory = 0, True
LEVELS = ("default", "warn", "error")


def set_default_device(device: Any) -> None:
    """Set the device of new tensors: "cpu", None for the CPU, or "meta". RuntimeError for any other device.

    >>> rushlight.set_default_device("cpu")
    """
    chosen_device.set(placed("cpu" if device is None else device))


def get_default_device() -> device:
    """The device of new tensors.

    >>> rushlight.get_default_device()
    device(type='cpu')
    """
    return chosen_device.get()


# -- determinism: all algorithms here are deterministic, so there is nothing to warn of ------------


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Switch deterministic algorithms on or off.

    All algorithms here are deterministic. But if a program's loops must first be compiled, the op from which on they
    replace NumPy may differ between runs. If this setting is on, the program waits for its loops, so that each run
    gives the same bits.

    >>> rushlight.use_deterministic_algorithms(True)
    >>> rushlight.are_deterministic_algorithms_enabled()
    True
    >>> rushlight.use_deterministic_algorithms(False)
    """
    if not isinstance(mode, bool):
        raise type_error(f"use_deterministic_algorithms takes a bool, not {type(mode).__name__}")
    choose_deterministic((1 if warn_only else 2) if mode else 0)


def choose_deterministic(level: int) -> None:
    chosen.deterministic = level
    if level:
        background.wait()
    (FILLING.add if level and chosen.fill_uninitialized_memory else FILLING.discard)("empty")


def fill_uninitialized_memory(fill: bool) -> None:
    """Set whether `empty` and similar functions fill memory with nan while deterministic algorithms are on."""
    if not isinstance(fill, bool):
        raise type_error(f"expected bool, but got {type(fill).__name__}")
    chosen.fill_uninitialized_memory = fill
    choose_deterministic(chosen.deterministic)


def are_deterministic_algorithms_enabled() -> bool:
    """True after `use_deterministic_algorithms(True)`.

    >>> rushlight.are_deterministic_algorithms_enabled()
    False
    """
    return chosen.deterministic > 0


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """True after `use_deterministic_algorithms(True, warn_only=True)`.

    >>> rushlight.is_deterministic_algorithms_warn_only_enabled()
    False
    """
    return chosen.deterministic == 1


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Set the determinism level: 0 'default', 1 'warn', 2 'error'. RuntimeError for another value.

    >>> rushlight.set_deterministic_debug_mode("warn")
    >>> rushlight.get_deterministic_debug_mode()
    1
    >>> rushlight.set_deterministic_debug_mode(0)
    """
    if isinstance(debug_mode, str):
        if debug_mode not in LEVELS:
            raise runtime_error(
                f"invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got {debug_mode}"
            )
        debug_mode = LEVELS.index(debug_mode)
    if debug_mode not in (0, 1, 2):
        raise runtime_error(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    choose_deterministic(debug_mode)


def get_deterministic_debug_mode() -> int:
    """The determinism level, 0, 1 or 2: see `set_deterministic_debug_mode`.

    >>> rushlight.get_deterministic_debug_mode()
    0
    """
    return chosen.deterministic


# -- warnings, anomalies, small numbers ------------------------------------------------------------


def set_warn_always(b: bool) -> None:
    """Set whether repeated warnings, such as for `x.T` of three dimensions, are shown each time, not once per process.
    RuntimeError unless b is a bool.

    >>> rushlight.set_warn_always(True)
    >>> rushlight.is_warn_always_enabled()
    True
    >>> rushlight.set_warn_always(False)
    """
    if not isinstance(b, bool):
        raise runtime_error(f"setWarnOnlyOnce expects a bool, but got {type(b).__name__}")
    Once.always = b


def is_warn_always_enabled() -> bool:
    """The last value given to `set_warn_always`.

    >>> rushlight.is_warn_always_enabled()
    False
    """
    return Once.always


def is_anomaly_enabled() -> bool:
    """True if anomaly detection is on: see `autograd.detect_anomaly`.

    >>> rushlight.is_anomaly_enabled()
    False
    """
    return bool(mode().checks)


def set_flush_denormal(mode: bool) -> bool:
    """Returns False: denormal numbers are never flushed to zero here, as in NumPy.

    >>> rushlight.set_flush_denormal(True)
    False
    """
    return False
