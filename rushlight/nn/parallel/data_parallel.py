"""torch's wrapper for several devices, for its checkpoints; here there is one device."""

from __future__ import annotations

from typing import Any

from rushlight.nn.module import Module


class DataParallel(Module):
    """A wrapper that calls `module`: the batch is not split, because there is one device.

    >>> rushlight.nn.DataParallel(rushlight.nn.Linear(2, 3)).state_dict().keys()
    odict_keys(['module.weight', 'module.bias'])
    """

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0):
        super().__init__()
        self.dim, self.module = dim, module
        self.device_ids: list[int] = []

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Any = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict | None = None,
) -> Any:
    """`module(*inputs)`."""
    return module(*(inputs if isinstance(inputs, tuple) else (inputs,)), **(module_kwargs or {}))
