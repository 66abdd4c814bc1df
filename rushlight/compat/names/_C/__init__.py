"""torch._C: the names that libraries in Python import. Nothing is traced, and there is no kernel compiler to set."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from rushlight._C import _functorch as _functorch

from rushlight.base.device import device
from rushlight.base.errors import LinAlgError as _LinAlgError
from rushlight.core.mode import mode as _mode
from rushlight.core.tensor import Tensor
from rushlight.ops.tensor.control_flow import _assert as _assert
from rushlight.ops.tensor.tensor_copy_pickle import disabled as _disabled_torch_function_impl
from rushlight.ops.tensor.torch_function import DisableTorchFunction, DisableTorchFunctionSubclass
from rushlight.random import Generator as Generator

_TensorMeta = type(Tensor)


class Value:
    """torch's value of a scripted graph, for annotations and isinstance. No object is an instance."""


class PyTorchFileReader:
    """torch's reader of files. NotImplementedError: use `torch.load`.

    >>> try:
    ...     rushlight.PyTorchFileReader("weights.pt")
    ... except NotImplementedError as error:
    ...     print(error)
    torch.PyTorchFileReader is not supported; hint: use torch.load
    """

    def __init__(self, *args: Any):
        raise NotImplementedError("torch.PyTorchFileReader is not supported; hint: use torch.load")


class TensorType:
    """torch's type of tensors in scripted graphs, for annotations and isinstance. No object is an instance.

    >>> isinstance(rushlight.ones(2), rushlight.TensorType)
    False
    """

    @staticmethod
    def get() -> TensorType:
        """The type."""
        return TensorType()


def _get_accelerator(check: Any = None) -> device:
    """The CPU, the only device."""
    return device("cpu")


def _get_tracing_state() -> None:
    """None: no tracing is active."""
    return None


def _is_tracing() -> bool:
    """False: no tracing is active."""
    return False


def _log_api_usage_once(event: str) -> None:
    """Nothing is logged."""


def _has_compatible_shallow_copy_type(input: Tensor, from_: Tensor) -> bool:
    """Whether `input` can take the memory of `from_` in place: both are dense or both are not."""
    return input.layout == from_.layout


def _are_functorch_transforms_active() -> bool:
    """Whether vmap, or another transform of functions, is running."""
    return _mode().batch is not None


def _assert_async(input: Any, assert_msg: str = "Expected Tensor with single nonzero value, but got zero") -> None:
    """RuntimeError with the message unless the one element is not zero."""
    if not bool(input):
        raise RuntimeError(assert_msg)


def _switch(*args: Any) -> bool:
    """A switch of torch's kernel compilers, without effect: always off."""
    return False


_jit_set_profiling_executor = _jit_set_profiling_mode = _jit_set_texpr_fuser_enabled = _jit_set_nvfuser_enabled = (
    _switch
)
_jit_set_nvfuser_guard_mode = _jit_override_can_fuse_on_cpu = _jit_override_can_fuse_on_gpu = _switch
_jit_can_fuse_on_cpu = _jit_can_fuse_on_gpu = _jit_texpr_fuser_enabled = _switch
_jit_set_autocast_mode = _set_graph_executor_optimize = _debug_set_autodiff_subgraph_inlining = _switch


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """The meaning of the arguments of `to`: device, dtype, non_blocking, memory format."""
    from rushlight.nn.to_dtype import target

    dtype, where = target(*args, **kwargs)
    return (
        None if where is None else device(where),
        dtype,
        bool(kwargs.get("non_blocking")),
        kwargs.get("memory_format"),
    )


_nn = SimpleNamespace(_parse_to=_parse_to)

__all__ = ["DisableTorchFunction", "DisableTorchFunctionSubclass", "_LinAlgError", "_disabled_torch_function_impl"]
