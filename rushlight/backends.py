"""torch.backends for programs that ask which there are: none but the CPU; switches may be set and mean nothing."""
from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rushlight.errors import explain
from rushlight.parts import importable


class Absent:
    """A backend that is not there."""

    enabled = deterministic = benchmark = allow_tf32 = False

    @staticmethod
    def is_available() -> bool:
        """False."""
        return False

    is_built = is_available

    @contextmanager
    def flags(self, *args: Any, **kwargs: Any) -> Iterator[None]:
        """A context, or a decorator of functions, in which nothing is different."""
        yield

    def version(self) -> None:
        """None: no version is there."""
        return None


class AbsentCUDA(Absent):
    """The backend of GPUs: which attention it would choose can be asked and said, and means nothing."""

    matmul = Absent()

    @staticmethod
    @contextmanager
    def sdp_kernel(enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True,
                   enable_cudnn: bool = True) -> Iterator[None]:
        """A context, or a decorator of functions, in which attention is computed as everywhere else."""
        yield

    @staticmethod
    def flash_sdp_enabled() -> bool:
        """False: there is one way of computing attention."""
        return False

    mem_efficient_sdp_enabled = cudnn_sdp_enabled = flash_sdp_enabled

    @staticmethod
    def math_sdp_enabled() -> bool:
        """True: the way by formulas, the only one."""
        return True

    @staticmethod
    def enable_flash_sdp(enabled: bool) -> None:
        """Accepted."""

    enable_mem_efficient_sdp = enable_math_sdp = enable_cudnn_sdp = enable_flash_sdp


cudnn, mps, mkl, mkldnn, openmp, opt_einsum = (Absent() for _ in range(6))
cuda = AbsentCUDA()
importable(__name__, "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp", "opt_einsum")

_precision = "highest"


def get_float32_matmul_precision() -> str:
    """What `set_float32_matmul_precision` was told; products are always computed in full single precision.

    >>> rushlight.get_float32_matmul_precision()
    'highest'
    """
    return _precision


def set_float32_matmul_precision(precision: str) -> None:
    """Accepts 'highest', 'high' and 'medium': on the CPU each is full single precision, as in torch without bfloat16.

    RuntimeError for another.

    >>> rushlight.set_float32_matmul_precision("high")
    >>> rushlight.get_float32_matmul_precision()
    'high'
    >>> rushlight.set_float32_matmul_precision("highest")
    """
    global _precision
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(explain(f"{precision} is not one of 'highest', 'high', or 'medium'"))
    _precision = precision


def __getattr__(name: str) -> Any:
    """torch.has_mps and its kin: False, with torch's warning; no other name."""
    instead = {"has_mps": "mps.is_built", "has_cuda": "cuda.is_built", "has_cudnn": "cudnn.is_available"}.get(name)
    if instead is None:
        raise AttributeError(f"module 'torch.backends' has no attribute '{name}'")
    warnings.warn(f"'{name}' is deprecated, please use 'torch.backends.{instead}()'", stacklevel=3)
    return False
