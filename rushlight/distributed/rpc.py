"""torch.distributed.rpc: calls of functions in other processes. Not supported."""

from rushlight.base.missing_names import tell as _tell


def is_available() -> bool:
    """False."""
    return False


_tell(__name__)
__all__ = ["is_available"]
