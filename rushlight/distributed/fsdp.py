"""torch.distributed.fsdp: with one process, all parameters stay in it."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from enum import Enum
from types import SimpleNamespace
from typing import Any, TypeVar

from rushlight.base.dtypes import dtype, float32
from rushlight.base.errors import explain
from rushlight.base.submodules import importable
from rushlight.distributed import check_initialized
from rushlight.nn import Module
from rushlight.nn.utils import clip_grad_norm_

M = TypeVar("M", bound=Module)


class ShardingStrategy(Enum):
    """How parameters would be shared out."""

    FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD, _HYBRID_SHARD_ZERO2 = range(1, 6)


class Settings(SimpleNamespace):
    """How parameters would be kept; it may be made, and means nothing."""


class CPUOffload(Settings):
    """See `Settings`."""


class CPUOffloadPolicy(Settings):
    """See `Settings`."""


class MixedPrecision(Settings):
    """Dtypes for mixed precision. NotImplementedError for any but float32: parameters are not
    converted.
    """

    def __init__(
        self, param_dtype: Any = None, reduce_dtype: Any = None, *more: Any, **settings: Any
    ):
        for wanted in (param_dtype, reduce_dtype, *more, *settings.values()):
            if isinstance(wanted, dtype) and wanted is not float32:
                raise NotImplementedError(
                    explain(
                        f"{type(self).__name__} with {wanted}: sharded modules compute in the "
                        "dtype of their parameters",
                        "use autocast, or module.to(dtype)",
                    )
                )
        super().__init__(param_dtype=param_dtype, reduce_dtype=reduce_dtype, **settings)


class MixedPrecisionPolicy(MixedPrecision):
    """See `MixedPrecision`."""


class FSDPModule:
    """torch's class of modules after `fully_shard`; with one process no module is an instance."""


class FullyShardedDataParallel(Module):
    """A wrapper that calls `module`. ValueError without a process group; settings of sharding have
    no effect.
    """

    def __init__(self, module: Module, process_group: Any = None, **settings: Any):
        super().__init__()
        check_initialized()
        self._fsdp_wrapped_module = module

    @property
    def module(self) -> Module:
        """The module inside."""
        return self._fsdp_wrapped_module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._fsdp_wrapped_module(*args, **kwargs)

    def no_sync(self) -> AbstractContextManager:
        """A context without effect."""
        return nullcontext()

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Any:
        """`nn.utils.clip_grad_norm_` of its parameters."""
        return clip_grad_norm_(self.parameters(), max_norm, norm_type)


def fully_shard(module: M, **settings: Any) -> M:
    """The module itself. ValueError without a process group."""
    check_initialized()
    return module


fully_sharded_data_parallel = SimpleNamespace(  # torch's module with these names
    FullyShardedDataParallel=FullyShardedDataParallel,
    ShardingStrategy=ShardingStrategy,
    CPUOffload=CPUOffload,
    MixedPrecision=MixedPrecision,
)
importable(__name__, "fully_sharded_data_parallel")

__all__ = [
    "CPUOffload",
    "CPUOffloadPolicy",
    "FSDPModule",
    "FullyShardedDataParallel",
    "MixedPrecision",
    "MixedPrecisionPolicy",
    "ShardingStrategy",
    "fully_shard",
]
