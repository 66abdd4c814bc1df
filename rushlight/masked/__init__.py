"""torch.masked: reductions and normalisations that leave masked elements out."""

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any

from rushlight.base.missing_names import give_up as _give_up
from rushlight.core.tensor import Tensor
from rushlight.ops.reduce import masked as _functions
from rushlight.ops.reduce.masked import *  # noqa: F403
from rushlight.ops.reduce.masked import _input_mask as _input_mask
from rushlight.ops.reduce.masked import _output_mask as _mask_of_results

__all__ = _functions.__all__


def _output_mask(op: Any, input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Whether each result of a function of this module includes at least one element."""
    return _mask_of_results(getattr(op, "__wrapped__", op), input, *args, **kwargs)


def _of_masked_tensors(function: Callable) -> Callable:
    """The function, extended to a MaskedTensor: it is called with the data, and with the mask as `mask=`."""

    @wraps(function)
    def call(input: Any, *args: Any, mask: Any = None, **settings: Any) -> Any:
        if input.__class__ is not Tensor and hasattr(input, "get_mask"):
            own = input.get_mask()
            input, mask = input.get_data(), own if mask is None else own & mask
        return function(input, *args, mask=mask, **settings)

    return call


globals().update({name: _of_masked_tensors(globals()[name]) for name in __all__ if name != "logaddexp"})

_LAZY = ("MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor")


def __getattr__(name: str) -> Any:
    if name in _LAZY:  # made on first access, because a class with __torch_function__ makes calls slower
        return getattr(import_module("rushlight.masked.maskedtensor"), name)
    return _give_up(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
