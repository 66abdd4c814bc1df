"""torch.mps without such a device: nothing is available."""

from rushlight.cuda import absent, device_count, empty_cache, is_available, manual_seed, synchronize

(current_allocated_memory, driver_allocated_memory, recommended_max_memory, get_rng_state, set_rng_state) = (
    absent(name, "mps")
    for name in (
        "current_allocated_memory",
        "driver_allocated_memory",
        "recommended_max_memory",
        "get_rng_state",
        "set_rng_state",
    )
)

__all__ = [
    "current_allocated_memory", "device_count", "driver_allocated_memory", "empty_cache", "get_rng_state",
    "is_available", "manual_seed", "recommended_max_memory", "set_rng_state", "synchronize",
]  # fmt: skip
