"""torch.backends for programs that ask which there are: none but the CPU; switches may be set and mean nothing."""
from __future__ import annotations


class Absent:
    """A backend that is not there."""

    enabled = deterministic = benchmark = allow_tf32 = False

    @staticmethod
    def is_available() -> bool:
        """False."""
        return False

    is_built = is_available


cudnn, cuda, mps, mkl, mkldnn, openmp = (Absent() for _ in range(6))
