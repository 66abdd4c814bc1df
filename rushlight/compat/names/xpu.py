"""torch.xpu without such a device: nothing is available."""

from rushlight.cuda import (
    absent,
    device_count,
    empty_cache,
    is_available,
    is_bf16_supported,
    is_current_stream_capturing,
    manual_seed,
    manual_seed_all,
    max_memory_allocated,
    memory_allocated,
    memory_reserved,
    reset_peak_memory_stats,
    synchronize,
)

(
    current_device, current_stream, device, get_device_capability, get_device_name, get_device_properties,
    get_rng_state, get_rng_state_all, mem_get_info, set_device, set_rng_state, set_rng_state_all,
) = (
    absent(name, "xpu")
    for name in (
        "current_device", "current_stream", "device", "get_device_capability", "get_device_name",
        "get_device_properties", "get_rng_state", "get_rng_state_all", "mem_get_info", "set_device", "set_rng_state",
        "set_rng_state_all",
    )
)  # fmt: skip

__all__ = [
    "current_device", "current_stream", "device_count", "empty_cache", "get_device_capability", "get_device_name",
    "get_device_properties", "get_rng_state", "get_rng_state_all", "is_available", "is_bf16_supported",
    "is_current_stream_capturing", "manual_seed", "manual_seed_all", "max_memory_allocated", "memory_allocated",
    "memory_reserved", "reset_peak_memory_stats", "set_device", "synchronize",
]  # fmt: skip
