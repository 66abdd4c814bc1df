"""torch's wrapper for several processes; here there is one process."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from rushlight.base.errors import explain
from rushlight.comm.process_group import check_initialized
from rushlight.nn.module import Module


class DistributedDataParallel(Module):
    """A wrapper that calls `module`. With one process, the gradients are already the mean.

    ValueError without a process group (`torch.distributed.init_process_group`), RuntimeError for a
    module without parameters that require gradients. `no_sync()` is a context without effect.
    """

    def __init__(
        self,
        module: Module,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: Any = None,
        find_unused_parameters: bool = False,
        **settings: Any,
    ):
        super().__init__()
        check_initialized()
        if not any(p.requires_grad for p in module.parameters()):
            raise RuntimeError(
                explain(
                    "DistributedDataParallel is not needed when a module doesn't have any "
                    "parameters "
                    "that require a gradient."
                )
            )
        if device_ids:
            raise ValueError(
                explain("device_ids are GPUs, and rushlight has none", "device_ids=None")
            )
        self.dim, self.module = dim, module
        self.broadcast_buffers, self.find_unused_parameters = (
            broadcast_buffers,
            find_unused_parameters,
        )

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)

    def no_sync(self) -> AbstractContextManager:
        """A context without effect."""
        return nullcontext()
