"""torch.backends for programs that ask which there are: none but the CPU; switches may be set and mean nothing."""
from __future__ import annotations

from rushlight.errors import explain


class Absent:
    """A backend that is not there."""

    enabled = deterministic = benchmark = allow_tf32 = False

    @staticmethod
    def is_available() -> bool:
        """False."""
        return False

    is_built = is_available


cudnn, cuda, mps, mkl, mkldnn, openmp = (Absent() for _ in range(6))
cuda.matmul = Absent()  # type: ignore[attr-defined]

_precision = "highest"


def get_float32_matmul_precision() -> str:
    """What `set_float32_matmul_precision` was told; products are always computed in full single precision."""
    return _precision


def set_float32_matmul_precision(precision: str) -> None:
    """Accepts 'highest', 'high' and 'medium': on the CPU each is full single precision, as in torch without bfloat16."""
    global _precision
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(explain(f"{precision} is not one of 'highest', 'high', or 'medium'"))
    _precision = precision
