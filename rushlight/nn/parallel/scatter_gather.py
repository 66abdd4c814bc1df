"""Split batches into parts, and join the parts."""

from __future__ import annotations

from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.ops.shape.views import cat


def scatter(inputs: Any, target_gpus: Any, dim: int = 0) -> Any:
    """Tensors split along `dim` into one part for each target. A tuple or list becomes one tuple or list for each
    target.
    """
    if isinstance(inputs, Tensor):
        return inputs.chunk(len(target_gpus), dim)
    if isinstance(inputs, (tuple, list)) and inputs:
        return [type(inputs)(parts) for parts in zip(*[scatter(x, target_gpus, dim) for x in inputs])]
    return [inputs for _ in target_gpus]


def gather(outputs: Any, target_device: Any = None, dim: int = 0) -> Any:
    """Join the parts that `scatter` made."""
    if isinstance(outputs[0], Tensor):
        return cat([t.reshape(1) if t.ndim == 0 else t for t in outputs], dim)
    if isinstance(outputs[0], (tuple, list)):
        return type(outputs[0])([gather(parts, target_device, dim) for parts in zip(*outputs)])
    return outputs[0]


def scatter_kwargs(inputs: tuple, kwargs: dict[str, Any] | None, target_gpus: Any, dim: int = 0) -> tuple[tuple, tuple]:
    """Arguments and named arguments in parts."""
    parts = [tuple(part) for part in scatter(inputs, target_gpus, dim)] if inputs else [()] * len(target_gpus)
    named = {name: scatter(value, target_gpus, dim) for name, value in (kwargs or {}).items()}
    return tuple(parts), tuple({name: values[i] for name, values in named.items()} for i in range(len(target_gpus)))
