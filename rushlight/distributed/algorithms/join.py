"""torch.distributed.algorithms.join."""

from rushlight.comm.join import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable"]
