"""torch.accelerator: no accelerators are available."""

from rushlight.cuda import device_count, is_available

__all__ = ["current_accelerator", "device_count", "is_available"]


def current_accelerator(check_available: bool = False) -> None:
    """None: the CPU is the only device."""
