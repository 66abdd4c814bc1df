"""torch's types of tensors from before dtypes: FloatTensor, LongTensor and so on, which older programs still use."""
from __future__ import annotations

from typing import Any

import numpy as np

from rushlight import dtypes
from rushlight.creation import empty, tensor
from rushlight.errors import explain
from rushlight.ops.build import MORE
from rushlight.ops.casts import convert
from rushlight.size import Size
from rushlight.tensor import Tensor, from_array, method


class tensortype(type):
    """A type of tensors of one dtype.

    >>> rushlight.LongTensor([1, 2])
    tensor([1, 2])
    >>> isinstance(rushlight.ones(2), rushlight.FloatTensor)
    True
    """

    dtype: dtypes.dtype

    def __call__(cls, *args: Any) -> Tensor:
        """Tensor(2, 3): uninitialised, of that size. Tensor([1, 2]): of these numbers."""
        if len(args) == 1 and isinstance(args[0], Tensor):
            return cls.alias(args[0])
        if len(args) == 1 and isinstance(args[0], (list, tuple, np.ndarray)) and not isinstance(args[0], Size):
            return convert(tensor(args[0]), cls.dtype)
        if len(args) == 1 and not isinstance(args[0], (int, Size)):
            raise TypeError(explain(f"new(): data must be a sequence (got {type(args[0]).__name__})",
                                    f"torch.tensor(number, dtype={cls.dtype}) makes a tensor of one number"))
        return empty(*(args or (0,)), dtype=cls.dtype)

    def alias(cls, other: Tensor) -> Tensor:
        if other.dtype is not cls.dtype:
            raise TypeError(explain(f"expected a tensor of {cls.dtype}, but got {other.dtype}",
                                    f"x.to({cls.dtype}) converts"))
        return from_array(other.array)

    def __instancecheck__(cls, other: Any) -> bool:
        return isinstance(other, Tensor) and other.dtype is cls.dtype

    def __repr__(cls) -> str:
        return f"<class 'torch.{cls.__name__}'>"


TYPES = {f"{d.scalar_type}Tensor": d for d in dtypes.NAMES.values() if not d.is_complex and d.scalar_type[:4] != "UInt"}
MORE.update((name, tensortype(name, (), {"dtype": d, "__doc__": f"Tensors of {d}; older than dtypes."}))
            for name, d in TYPES.items())


def type_of(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """torch's name of the tensor's type, 'torch.FloatTensor'; with a dtype, or such a name or type, the tensor converted."""
    if dtype is None:
        return f"torch.{self.dtype.scalar_type}Tensor"
    return convert(self, meant(dtype))


def meant(dtype: Any) -> dtypes.dtype:
    """The dtype of torch.FloatTensor, of 'torch.FloatTensor', or itself."""
    if isinstance(dtype, str):
        name = dtype.removeprefix("torch.")
        if name.startswith("cuda."):
            raise TypeError(explain(f"type {dtype} not available. Torch not compiled with CUDA enabled.",
                                    f"ask torch.cuda.is_available() first, or say torch.{name[5:]}"))
        if name not in TYPES:
            raise ValueError(explain(f"invalid type: '{dtype}'", "give a dtype such as torch.float32"))
        return TYPES[name]
    return dtype.dtype if isinstance(dtype, tensortype) else dtypes.as_dtype(dtype)


def set_default_tensor_type(t: Any) -> None:
    """The default dtype, by the old name of its tensors: `set_default_dtype` is the newer way."""
    dtypes.set_default_dtype(meant(t))


@method
def new(self: Tensor, *args: Any) -> Tensor:
    """A tensor of the same dtype: x.new(2, 3) uninitialised, x.new([1, 2]) of these numbers. `new_tensor` is newer.

    >>> rushlight.ones(1).new([2, 3])
    tensor([2., 3.])
    """
    return tensortype.__call__(TYPES_OF[self.dtype], *args)


TYPES_OF = {d: MORE[name] for name, d in TYPES.items()}
MORE["set_default_tensor_type"] = set_default_tensor_type
method(type_of, "type")
