"""torch.xpu without such a device: nothing is available."""

from rushlight.cuda import (
    absent,
    device_count,
    empty_cache,
    is_available,
    manual_seed,
    manual_seed_all,
    max_memory_allocated,
    memory_allocated,
    memory_reserved,
    reset_peak_memory_stats,
    synchronize,
)

current_device, get_device_name, get_device_properties, set_device, current_stream = (
    absent(name, "xpu")
    for name in (
        "current_device",
        "get_device_name",
        "get_device_properties",
        "set_device",
        "current_stream",
    )
)

__all__ = [
    "current_device",
    "current_stream",
    "device_count",
    "empty_cache",
    "get_device_name",
    "get_device_properties",
    "is_available",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "memory_allocated",
    "memory_reserved",
    "reset_peak_memory_stats",
    "set_device",
    "synchronize",
]
