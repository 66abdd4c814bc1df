"""torch.distributed.rpc: calls of functions in other processes; there are none."""


def is_available() -> bool:
    """False."""
    return False


__all__ = ["is_available"]
