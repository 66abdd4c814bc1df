"""torch.accelerator: there is none."""

from rushlight.cuda import device_count, is_available

__all__ = ["current_accelerator", "device_count", "is_available"]


def current_accelerator(check_available: bool = False) -> None:
    """None: there is only the CPU."""
