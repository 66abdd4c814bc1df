"""torch.backends for programs that ask which there are: none but the CPU; switches may be set and
mean nothing."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rushlight.base.errors import explain
from rushlight.base.missing_names import missing
from rushlight.base.submodules import importable


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
    """The backend of GPUs: which attention it would choose can be asked and said, and means
    nothing."""

    matmul = Absent()

    @staticmethod
    @contextmanager
    def sdp_kernel(
        enable_flash: bool = True,
        enable_math: bool = True,
        enable_mem_efficient: bool = True,
        enable_cudnn: bool = True,
    ) -> Iterator[None]:
        """A context, or a decorator of functions, in which attention is computed as everywhere
        else."""
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

    preferred_linalg_library = preferred_blas_library = preferred_rocm_fa_library = staticmethod(
        lambda backend=None: None
    )
    is_flash_attention_available = is_ck_sdpa_available = staticmethod(lambda: False)
    can_use_flash_attention = can_use_efficient_attention = can_use_cudnn_attention = staticmethod(
        lambda params, debug=False: False
    )


class Processor(Absent):
    """The CPU itself, and what of torch's it has in place of libraries."""

    engine, supported_engines = "none", ["none"]

    @staticmethod
    def get_cpu_capability() -> str:
        """What torch calls a processor of which it asks for no instructions in particular; Numba
        finds them itself."""
        return "DEFAULT"

    @staticmethod
    def get_fastpath_enabled() -> bool:
        """False: transformer layers have one way."""
        return False

    @staticmethod
    def set_fastpath_enabled(value: bool) -> None:
        """Accepted."""

    @contextmanager
    def verbose(self, enable: int) -> Iterator[None]:
        """A context in which nothing is said."""
        yield

    @staticmethod
    def set_flags(_enabled: bool) -> tuple[bool]:
        """(False,): what was set before."""
        return (False,)


cudnn, mps, openmp, opt_einsum, cusparselt, miopen, kleidiai = (Absent() for _ in range(7))
cpu, mha, quantized, xnnpack, nnpack, mkl, mkldnn = (Processor() for _ in range(7))
mkl.VERBOSE_OFF, mkl.VERBOSE_ON = mkldnn.VERBOSE_OFF, mkldnn.VERBOSE_ON = 0, 1  # type: ignore[attr-defined]
cuda = AbsentCUDA()
importable(
    __name__,
    "cuda",
    "cudnn",
    "mkl",
    "mkldnn",
    "mps",
    "openmp",
    "opt_einsum",
    "cusparselt",
    "miopen",
    "kleidiai",
    "cpu",
    "mha",
    "quantized",
    "xnnpack",
    "nnpack",
)

has_lapack, has_spectral, has_mkl, has_openmp = (
    True,
    True,
    False,
    False,
)  # torch.has_lapack: what NumPy brings

_precision = "highest"


def get_float32_matmul_precision() -> str:
    """What `set_float32_matmul_precision` was told; products are always computed in full single
    precision.

    >>> rushlight.get_float32_matmul_precision()
    'highest'
    """
    return _precision


def set_float32_matmul_precision(precision: str) -> None:
    """Accepts 'highest', 'high' and 'medium': on the CPU each is full single precision, as in torch
    without bfloat16.

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
    instead = {
        "has_mps": "mps.is_built",
        "has_cuda": "cuda.is_built",
        "has_cudnn": "cudnn.is_available",
        "has_mkldnn": "mkldnn.is_available",
    }.get(name)
    if instead is None:
        raise missing(__name__, name)
    warnings.warn(f"'{name}' is deprecated, please use 'torch.backends.{instead}()'", stacklevel=3)
    return False
