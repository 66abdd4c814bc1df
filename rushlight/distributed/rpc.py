"""torch.distributed.rpc: function calls in other processes; not available."""


def is_available() -> bool:
    """False."""
    return False


__all__ = ["is_available"]
