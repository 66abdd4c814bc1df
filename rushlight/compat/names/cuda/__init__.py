"""torch.cuda without a GPU: queries return that nothing is available, the rest raises torch's error."""

from __future__ import annotations

from typing import Any

from rushlight.cuda import amp, nvtx
from rushlight.cuda.random import get_rng_state_all, manual_seed, manual_seed_all, set_rng_state_all

from rushlight.base.errors import NoCuda, assertion_error, explain, type_error
from rushlight.base.missing_names import tell as _tell


def is_available() -> bool:
    """False: there is only the CPU."""
    return False


def device_count() -> int:
    """0: there is only the CPU."""
    return 0


def empty_cache() -> None:
    """Nothing to empty."""


def synchronize(device: Any = None) -> None:
    """Nothing to wait for."""


def memory_allocated(device: Any = None) -> int:
    """0 bytes: there is only the CPU."""
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_cached = max_memory_cached = memory_allocated


def memory_stats(device: Any = None) -> dict[str, Any]:
    """{}: there is only the CPU."""
    return {}


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """A line with the reason: there is only the CPU."""
    return "no memory of a GPU: there is only the CPU"


class OutOfMemoryError(RuntimeError):
    """Never raised: the CPU raises MemoryError.

    >>> issubclass(rushlight.OutOfMemoryError, RuntimeError)
    True
    """

    __module__ = "rushlight"


def reset_peak_memory_stats(device: Any = None) -> None:
    """Nothing to reset."""


reset_max_memory_allocated = reset_max_memory_cached = reset_accumulated_memory_stats = reset_peak_memory_stats


def get_arch_list() -> list[str]:
    """[]: there is only the CPU."""
    return []


def _lazy_call(callable: Any, **kwargs: Any) -> None:
    """Nothing: torch calls the function when CUDA starts, which it never does here."""


def seed() -> None:
    """Nothing to seed."""


seed_all = seed
default_generators: tuple = ()
memory_stats_as_nested_dict = memory_stats


def get_sync_debug_mode() -> int:
    """0: nothing is asynchronous."""
    return 0


def set_sync_debug_mode(debug_mode: Any) -> None:
    """No effect: nothing is asynchronous."""


def set_device(device: Any) -> None:
    """RuntimeError: there is only the CPU."""
    raise NoCuda(explain("Torch not compiled with CUDA enabled", "use device='cpu', or check is_available() first"))


def is_initialized() -> bool:
    """False: there is only the CPU."""
    return False


_initialized = False  # libraries of reversible networks read it


def is_bf16_supported() -> bool:
    """False: there is only the CPU."""
    return False


is_tf32_supported = is_current_stream_capturing = is_bf16_supported


def absent_type(name: str) -> Any:
    """torch.cuda.FloatTensor and so on: TypeError, as in torch without a GPU."""

    def make(*args: Any, **kwargs: Any) -> Any:
        """TypeError: there is only the CPU."""
        raise type_error(
            f"type torch.cuda.{name} not available. Torch not compiled with CUDA enabled.",
            f"use torch.{name}, or check torch.cuda.is_available() first",
        )

    make.__name__ = make.__qualname__ = name
    return make


def absent(name: str, place: str = "cuda") -> Any:
    """A function of another device: it raises AssertionError, as in torch without that device."""

    def need(*args: Any, **kwargs: Any) -> Any:
        """AssertionError: there is only the CPU."""
        raise assertion_error(
            f"Torch not compiled with {place.upper()} enabled", f"check torch.{place}.is_available() before {name}"
        )

    need.__name__ = need.__qualname__ = name
    return need


Event, Stream, StreamContext, CUDAGraph = (  # classes, for annotations and isinstance
    type(
        name,
        (),
        {
            "__init__": absent(name),
            "__doc__": f"""AssertionError: there is only the CPU.

    >>> try:
    ...     rushlight.cuda.{name}()
    ... except AssertionError:
    ...     print(rushlight.cuda.is_available())
    False
    """,
        },
    )
    for name in ("Event", "Stream", "StreamContext", "CUDAGraph")
)
for _name in (
    "can_device_access_peer", "cudart", "current_device", "current_stream", "default_stream", "device", "device_of",
    "get_device_capability", "get_device_name", "get_device_properties", "get_rng_state", "graph", "init",
    "initial_seed", "ipc_collect", "list_gpu_processes", "make_graphed_callables", "mem_get_info", "memory_snapshot",
    "memory_usage", "power_draw", "set_per_process_memory_fraction", "set_rng_state", "set_stream", "stream",
    "temperature", "utilization",
):  # fmt: skip
    globals()[_name] = absent(_name)
for _name in (
    "FloatTensor", "DoubleTensor", "HalfTensor", "LongTensor", "IntTensor", "ByteTensor", "BoolTensor",
    "BFloat16Tensor", "ShortTensor", "CharTensor",
):  # fmt: skip
    globals()[_name] = absent_type(_name)

_tell(__name__)
