"""torch.utils._device: the device of new tensors, as a context and as a decorator."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from rushlight.base.device import device as device_type


class DeviceContext:
    """New tensors are made on the device: "cpu" or "meta", as in `with torch.device(...)`.

    >>> with rushlight.utils._device.DeviceContext("meta"):
    ...     print(rushlight.ones(2).device)
    meta
    """

    def __init__(self, device: Any):
        self.device = device_type(device)

    def __enter__(self) -> DeviceContext:
        self.device.__enter__()
        return self

    def __exit__(self, *exc: Any) -> None:
        self.device.__exit__(*exc)


def set_device(device: Any) -> Callable[[Callable], Callable]:
    """A decorator: the function's new tensors are made on the device.

    >>> rushlight.utils._device.set_device("meta")(lambda: rushlight.ones(2).device)()
    device(type='meta')
    """

    def decorated(function: Callable) -> Callable:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with DeviceContext(device):
                return function(*args, **kwargs)

        return call

    return decorated


__all__ = ["DeviceContext", "set_device"]
