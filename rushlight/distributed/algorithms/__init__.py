"""torch.distributed.algorithms, as far as libraries import it."""

from rushlight.distributed.algorithms import join

__all__ = ["join"]
