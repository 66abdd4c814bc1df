"""torch.cuda as a program without a GPU sees it: nothing is available, and seeding nothing does nothing."""
from __future__ import annotations

from typing import Any

from rushlight.absent import tell as _tell
from rushlight.cuda import amp, nvtx
from rushlight.cuda.random import get_rng_state_all, manual_seed, manual_seed_all, set_rng_state_all
from rushlight.errors import NoCuda, explain


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
    """A line that says so: there is only the CPU."""
    return "no memory of a GPU: there is only the CPU"


class OutOfMemoryError(RuntimeError):
    """Never raised: what does not fit the CPU's memory is a MemoryError.

    >>> issubclass(rushlight.OutOfMemoryError, RuntimeError)
    True
    """


def reset_peak_memory_stats(device: Any = None) -> None:
    """Nothing to reset."""


reset_max_memory_allocated = reset_max_memory_cached = reset_accumulated_memory_stats = reset_peak_memory_stats


def get_arch_list() -> list[str]:
    """[]: there is only the CPU."""
    return []


def seed() -> None:
    """Nothing to seed."""


seed_all = seed
default_generators: tuple = ()
memory_stats_as_nested_dict = memory_stats


def get_sync_debug_mode() -> int:
    """0: nothing waits."""
    return 0


def set_sync_debug_mode(debug_mode: Any) -> None:
    """Accepted: nothing waits."""


def set_device(device: Any) -> None:
    """RuntimeError: there is only the CPU."""
    raise NoCuda(explain("Torch not compiled with CUDA enabled", "use device='cpu'; torch.cuda.is_available() tells"))


def is_initialized() -> bool:
    """False: there is only the CPU."""
    return False


_initialized = False                              # reversible networks look at it


def is_bf16_supported() -> bool:
    """False: there is only the CPU."""
    return False


is_tf32_supported = is_current_stream_capturing = is_bf16_supported


def absent_type(name: str) -> Any:
    """torch.cuda.FloatTensor and its kin: TypeError, as torch's own without a GPU."""
    def make(*args: Any, **kwargs: Any) -> Any:
        """TypeError: there is only the CPU."""
        raise TypeError(explain(f"type torch.cuda.{name} not available. Torch not compiled with CUDA enabled.",
                                f"torch.{name}, or ask torch.cuda.is_available() before"))
    make.__name__ = make.__qualname__ = name
    return make


def absent(name: str, place: str = "cuda") -> Any:
    """A function or class that needs another device: AssertionError, as torch's own without one."""
    def need(*args: Any, **kwargs: Any) -> Any:
        """AssertionError: there is only the CPU."""
        raise AssertionError(explain(f"Torch not compiled with {place.upper()} enabled",
                                     f"ask torch.{place}.is_available() before {name}"))
    need.__name__ = need.__qualname__ = name
    return need


current_device, get_device_name, get_device_capability, get_device_properties, stream, current_stream = map(
    absent, ("current_device", "get_device_name", "get_device_capability", "get_device_properties", "stream",
             "current_stream"))
Event, Stream, StreamContext, CUDAGraph = (                        # classes, for annotations and isinstance
    type(name, (), {"__init__": absent(name), "__doc__": f"""AssertionError: there is only the CPU.

    >>> try:
    ...     rushlight.cuda.{name}()
    ... except AssertionError:
    ...     print(rushlight.cuda.is_available())
    False
    """}) for name in ("Event", "Stream", "StreamContext", "CUDAGraph"))
device, get_rng_state, set_rng_state, mem_get_info, default_stream, init, ipc_collect, graph = map(
    absent, ("device", "get_rng_state", "set_rng_state", "mem_get_info", "default_stream", "init", "ipc_collect", "graph"))
utilization, memory_usage, power_draw, temperature, initial_seed, memory_snapshot, list_gpu_processes, set_stream = map(
    absent, ("utilization", "memory_usage", "power_draw", "temperature", "initial_seed", "memory_snapshot",
             "list_gpu_processes", "set_stream"))
cudart, make_graphed_callables, device_of, set_per_process_memory_fraction, can_device_access_peer = map(
    absent, ("cudart", "make_graphed_callables", "device_of", "set_per_process_memory_fraction", "can_device_access_peer"))
for _name in ("FloatTensor", "DoubleTensor", "HalfTensor", "LongTensor", "IntTensor", "ByteTensor", "BoolTensor",
              "BFloat16Tensor", "ShortTensor", "CharTensor"):
    globals()[_name] = absent_type(_name)

_tell(__name__)
