"""torch.accelerator: no accelerators are available."""

from rushlight.cuda import (
    absent,
    device_count,
    empty_cache,
    is_available,
    max_memory_allocated,
    memory_allocated,
    memory_reserved,
    memory_stats,
    reset_peak_memory_stats,
    synchronize,
)

current_device_index, current_device_idx, set_device_index, set_device_idx, get_memory_info = (
    absent(name, "accelerator")
    for name in ("current_device_index", "current_device_idx", "set_device_index", "set_device_idx", "get_memory_info")
)

__all__ = [
    "current_accelerator", "current_device_index", "device_count", "empty_cache", "is_available",
    "max_memory_allocated", "memory_allocated", "memory_reserved", "memory_stats", "reset_peak_memory_stats",
    "set_device_index", "synchronize",
]  # fmt: skip


def current_accelerator(check_available: bool = False) -> None:
    """None: the CPU is the only device."""
