"""torch.backends, for programs that test for backends: only the CPU exists, and switches have no effect."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from types import ModuleType
from typing import Any

from rushlight.base.device import device as Device
from rushlight.base.errors import runtime_error, value_error, warn
from rushlight.base.missing_names import missing
from rushlight.base.submodules import importable


class Absent:
    """A backend that does not exist."""

    enabled = deterministic = benchmark = allow_tf32 = False

    @staticmethod
    def is_available() -> bool:
        """False."""
        return False

    is_built = is_available

    @contextmanager
    def flags(self, *args: Any, **kwargs: Any) -> Iterator[None]:
        """A context or decorator without effect."""
        yield

    def version(self) -> None:
        """None: there is no version."""
        return None


class AbsentOptEinsum(Absent):
    """In place of the library opt_einsum: einsum needs no library to find the order of products."""

    strategy = None

    @staticmethod
    def set_flags(_enabled: bool | None = None, _strategy: str | None = None) -> tuple:
        """(False, None): the previous settings. ValueError for other settings than these."""
        if _enabled or _strategy is not None:
            raise value_error(
                f"opt_einsum is not available, so setting `enabled` to {_enabled} and `strategy` to {_strategy} "
                "will not be meaningful."
            )
        return False, None


class AbsentCUDA(Absent):
    """The CUDA backend: its choice of attention kernels can be set and read, without effect."""

    matmul = Absent()

    @staticmethod
    @contextmanager
    def sdp_kernel(
        enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True,
        enable_cudnn: bool = True,
    ) -> Iterator[None]:  # fmt: skip
        """A context or decorator that does not change how attention is computed."""
        warn(
            "`torch.backends.cuda.sdp_kernel()` is deprecated. In the future, this context manager will be removed. "
            "Please see `torch.nn.attention.sdpa_kernel()` for the new context manager, with updated signature.",
            FutureWarning,
        )
        yield

    @staticmethod
    def flash_sdp_enabled() -> bool:
        """False: there is only one implementation of attention."""
        return False

    mem_efficient_sdp_enabled = cudnn_sdp_enabled = flash_sdp_enabled

    @staticmethod
    def math_sdp_enabled() -> bool:
        """True: the only implementation of attention is composed of basic formulas."""
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
    """The CPU backend, with attributes in place of torch's libraries."""

    engine, supported_engines = "none", ["none"]

    @staticmethod
    def get_cpu_capability() -> str:
        """'DEFAULT', torch's name for a CPU without a particular instruction set; LLVM finds the CPU's instructions
        itself.
        """
        return "DEFAULT"

    @staticmethod
    def get_fastpath_enabled() -> bool:
        """False: transformer layers have no fast path."""
        return False

    @staticmethod
    def set_fastpath_enabled(value: bool) -> None:
        """Accepted."""

    @contextmanager
    def verbose(self, enable: int) -> Iterator[None]:
        """A context that prints nothing."""
        yield

    @staticmethod
    def set_flags(_enabled: bool) -> tuple[bool]:
        """(False,): the previous setting."""
        return (False,)


cudnn, mps, openmp, cusparselt, miopen, kleidiai = (Absent() for _ in range(6))
opt_einsum = AbsentOptEinsum()
cudnn.benchmark_limit = None  # type: ignore[attr-defined]
cpu, mha, quantized, xnnpack, nnpack, mkl, mkldnn = (Processor() for _ in range(7))
# torch.ao's modules compute as torch's do with either engine
quantized.engine, quantized.supported_engines = "x86", ["x86", "fbgemm"]
mkl.VERBOSE_OFF, mkl.VERBOSE_ON = mkldnn.VERBOSE_OFF, mkldnn.VERBOSE_ON = 0, 1  # type: ignore[attr-defined]
cuda = AbsentCUDA()
importable(
    __name__, "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp", "opt_einsum", "cusparselt", "miopen", "kleidiai",
    "cpu", "mha", "quantized", "xnnpack", "nnpack",
)  # fmt: skip

# torch.has_lapack: LAPACK comes with NumPy
has_lapack, has_spectral, has_mkl, has_openmp = True, True, False, False

# True in torch by default: the modules of backends take assignments outside of `flags()`
__allow_nonbracketed_mutation_flag = True


def __allow_nonbracketed_mutation() -> AbstractContextManager:
    """A context in which settings of backends may be assigned, as they may anywhere."""
    return nullcontext()


def get_device_module(device: Any = None) -> ModuleType:
    """The module of a device: `torch.cpu` for the CPU, the default.

    >>> rushlight.get_device_module("cpu").__name__
    'rushlight.cpu'
    """
    kind = "cpu" if device is None else Device(device).type
    try:
        return import_module(f"rushlight.{kind}")
    except ImportError:
        raise runtime_error(f"Invalid device string: '{kind}'", "there is only the CPU") from None


_precision = "highest"


def get_float32_matmul_precision() -> str:
    """The value given to `set_float32_matmul_precision`; products always have full single precision.

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
        raise runtime_error(f"{precision} is not one of 'highest', 'high', or 'medium'")
    _precision = precision


def __getattr__(name: str) -> Any:
    """torch.has_mps and so on: False, with torch's warning; no other names."""
    instead = {
        "has_mps": "mps.is_built",
        "has_cuda": "cuda.is_built",
        "has_cudnn": "cudnn.is_available",
        "has_mkldnn": "mkldnn.is_available",
    }.get(name)
    if instead is None:
        return missing(__name__, name)
    warnings.warn(f"'{name}' is deprecated, please use 'torch.backends.{instead}()'", stacklevel=3)
    return False
