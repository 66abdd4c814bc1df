"""Older names: `torch.cuda.amp` and `torch.cpu.amp`, which warn, and settings with a device in their name."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from rushlight.amp import autocast_mode, grad_scaler
from rushlight.base.dtypes import dtype


def warn(place: str, name: str, instead: str) -> None:
    """torch's warning, shown at the line of the caller's caller."""
    warnings.warn(
        f"`torch.{place}.amp.{name}(args...)` is deprecated. Please use `torch.amp.{name}({instead})` instead.",
        FutureWarning,
        stacklevel=3,
    )


def legacy_names(place: str, lower: dtype) -> dict[str, Any]:
    """{name: object} of `autocast`, `GradScaler`, `custom_fwd`, `custom_bwd` for the device `place` with the default
    dtype `lower`."""

    class autocast(autocast_mode.autocast):
        __doc__ = f"`torch.autocast('{place}')` by its old name."

        def __init__(self, enabled: bool = True, dtype: dtype = lower, cache_enabled: bool = True):
            warn(place, "autocast", f"'{place}', args...")
            super().__init__(place, dtype, enabled, cache_enabled)

    class GradScaler(grad_scaler.GradScaler):
        __doc__ = f"`torch.amp.GradScaler('{place}')` by its old name."

        def __init__(
            self, init_scale: float = 2.0**16, growth_factor: float = 2.0, backoff_factor: float = 0.5,
            growth_interval: int = 2000, enabled: bool = True,
        ):  # fmt: skip
            warn(place, "GradScaler", f"'{place}', args...")
            super().__init__(place, init_scale, growth_factor, backoff_factor, growth_interval, enabled)

    def custom_fwd(fwd: Callable | None = None, *, cast_inputs: dtype | None = None) -> Callable:
        warn(place, "custom_fwd", f"args..., device_type='{place}'")
        return autocast_mode.custom_fwd(fwd, device_type=place, cast_inputs=cast_inputs)

    def custom_bwd(bwd: Callable) -> Callable:
        warn(place, "custom_bwd", f"args..., device_type='{place}'")
        return autocast_mode.custom_bwd(bwd, device_type=place)

    return {"autocast": autocast, "GradScaler": GradScaler, "custom_fwd": custom_fwd, "custom_bwd": custom_bwd}


def get_autocast_cpu_dtype() -> dtype:
    """The lower precision of autocast on the CPU: get_autocast_dtype("cpu").

    >>> rushlight.get_autocast_cpu_dtype()
    torch.bfloat16
    """
    return autocast_mode.get_autocast_dtype("cpu")


def get_autocast_gpu_dtype() -> dtype:
    """The lower precision of autocast on GPUs: get_autocast_dtype("cuda").

    >>> rushlight.get_autocast_gpu_dtype()
    torch.float16
    """
    return autocast_mode.get_autocast_dtype("cuda")


def set_autocast_cpu_dtype(dtype: dtype) -> None:
    """Set the lower precision of autocast on the CPU.

    >>> rushlight.set_autocast_cpu_dtype(rushlight.bfloat16)
    """
    autocast_mode.set_autocast_dtype("cpu", dtype)


def set_autocast_gpu_dtype(dtype: dtype) -> None:
    """No effect: there is no GPU.

    >>> rushlight.set_autocast_gpu_dtype(rushlight.float16)
    """


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """Switch autocast on the CPU on or off.

    >>> rushlight.set_autocast_cpu_enabled(False)
    """
    autocast_mode.set_autocast_enabled("cpu", enabled)


def clear_autocast_cache() -> None:
    """No effect: there is no cache, since weights are converted in each call.

    >>> rushlight.clear_autocast_cache()
    """
