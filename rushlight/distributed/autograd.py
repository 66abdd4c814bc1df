"""torch.distributed.autograd: backward through calls of `distributed.rpc`. Not supported."""

from rushlight.base.missing_names import tell as _tell


def is_available() -> bool:
    """False."""
    return False


_tell(__name__)
__all__ = ["is_available"]
