"""torch.overrides: classes that take over torch's functions. Here functions call no `__torch_function__`."""
from __future__ import annotations

from typing import Any

from rushlight.tensor import Tensor


class TorchFunctionMode:
    """A context that sees every call of a function of torch: NotImplementedError where one is entered."""

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        """What torch would call."""
        return func(*args, **(kwargs or {}))

    def __enter__(self) -> TorchFunctionMode:
        raise NotImplementedError("torch.overrides.TorchFunctionMode: functions here call no __torch_function__; cure: call "
                                  "other functions, or autograd.graph.saved_tensors_hooks and module hooks, which are there")

    def __exit__(self, *exc: object) -> None:
        """Nothing to end."""


def has_torch_function(relevant_args: Any) -> bool:
    """False: no argument takes over."""
    return False


has_torch_function_unary = has_torch_function_variadic = has_torch_function


def is_tensor_like(inp: Any) -> bool:
    """Whether it is a tensor, or has `__torch_function__`."""
    return isinstance(inp, Tensor) or hasattr(type(inp), "__torch_function__")


__all__ = ["TorchFunctionMode", "has_torch_function", "is_tensor_like"]
