"""A module for several processes; there is only one."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from rushlight.base.errors import explain
from rushlight.comm.groups import check_initialized
from rushlight.nn.module import Module


class DistributedDataParallel(Module):
    """`module`, called as it is: in a world of one process its gradients are the mean.

    ValueError without a process group (`torch.distributed.init_process_group`), RuntimeError for a
    module without parameters that require gradients. `no_sync()` is a context in which nothing is
    different."""

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
                explain("device_ids are of GPUs, and there is none", "device_ids=None")
            )
        self.dim, self.module = dim, module
        self.broadcast_buffers, self.find_unused_parameters = (
            broadcast_buffers,
            find_unused_parameters,
        )

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)

    def no_sync(self) -> AbstractContextManager:
        """A context in which nothing is different."""
        return nullcontext()
