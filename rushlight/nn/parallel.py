"""torch.nn.parallel on one CPU: the module itself, under the name that its users' checkpoints have."""
from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import Any

from rushlight.distributed import check_initialized
from rushlight.errors import explain
from rushlight.nn.module import Module
from rushlight.ops.shape import cat
from rushlight.tensor import Tensor


class DataParallel(Module):
    """`module`, called as it is: there are no other devices to share a batch with.

    >>> rushlight.nn.DataParallel(rushlight.nn.Linear(2, 3)).state_dict().keys()
    odict_keys(['module.weight', 'module.bias'])
    """

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0):
        super().__init__()
        self.dim, self.module = dim, module
        self.device_ids: list[int] = []

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)


class DistributedDataParallel(Module):
    """`module`, called as it is: in a world of one process its gradients are the mean.

    ValueError without a process group (`torch.distributed.init_process_group`), RuntimeError for a module without
    parameters that require gradients. `no_sync()` is a context in which nothing is different.
    """

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0,
                 broadcast_buffers: bool = True, init_sync: bool = True, process_group: Any = None,
                 bucket_cap_mb: Any = None, find_unused_parameters: bool = False, **settings: Any):
        super().__init__()
        check_initialized()
        if not any(p.requires_grad for p in module.parameters()):
            raise RuntimeError(explain("DistributedDataParallel is not needed when a module doesn't have any parameters "
                                       "that require a gradient."))
        if device_ids:
            raise ValueError(explain("device_ids are of GPUs, and there is none", "device_ids=None"))
        self.dim, self.module = dim, module
        self.broadcast_buffers, self.find_unused_parameters = broadcast_buffers, find_unused_parameters

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)

    def no_sync(self) -> AbstractContextManager:
        """A context in which nothing is different."""
        return nullcontext()


def scatter(inputs: Any, target_gpus: Any, dim: int = 0) -> Any:
    """Tensors cut into as many parts as there are targets, along `dim`; of a tuple or list, the same parts of each."""
    if isinstance(inputs, Tensor):
        return inputs.chunk(len(target_gpus), dim)  # type: ignore[attr-defined]
    if isinstance(inputs, (tuple, list)) and inputs:
        return [type(inputs)(parts) for parts in zip(*[scatter(x, target_gpus, dim) for x in inputs])]
    return [inputs for _ in target_gpus]


def gather(outputs: Any, target_device: Any = None, dim: int = 0) -> Any:
    """The opposite of `scatter`."""
    if isinstance(outputs[0], Tensor):
        return cat([t.reshape(1) if t.ndim == 0 else t for t in outputs], dim)  # type: ignore[attr-defined]
    if isinstance(outputs[0], (tuple, list)):
        return type(outputs[0])([gather(parts, target_device, dim) for parts in zip(*outputs)])
    return outputs[0]


# torch's modules of these
scatter_gather = SimpleNamespace(scatter=scatter, gather=gather)
distributed = SimpleNamespace(DistributedDataParallel=DistributedDataParallel)


def data_parallel(module: Module, inputs: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0,
                  module_kwargs: dict | None = None) -> Any:
    """`module(*inputs)`."""
    return module(*(inputs if isinstance(inputs, tuple) else (inputs,)), **(module_kwargs or {}))
