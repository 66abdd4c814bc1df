"""torch's old tensor types, from before dtypes: FloatTensor, LongTensor and so on, which older programs still use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rushlight.base import dtypes
from rushlight.base.errors import not_implemented_error, type_error, value_error, warn_once
from rushlight.base.public_function import MORE
from rushlight.base.size import Size
from rushlight.core.tensor import Tensor, method
from rushlight.core.views import register
from rushlight.creation.factories import as_tensor, empty
from rushlight.ops.shape.view_functions import _make_subclass, alias
from rushlight.ops.tensor.casts import convert


class tensortype(type):
    """A type of tensors of one dtype.

    >>> rushlight.LongTensor([1, 2])
    tensor([1, 2])
    >>> isinstance(rushlight.ones(2), rushlight.FloatTensor)
    True
    """

    dtype: dtypes.dtype

    def __call__(cls, *args: Any, size: Any = None, data: Any = None, device: Any = None) -> Tensor:
        """Tensor(2, 3), Tensor(size): an uninitialised tensor of that size. Tensor([1, 2]): a tensor of the numbers."""
        if size is not None or len(args) != 1 and data is None:
            return empty(*((size,) if size is not None else args or (0,)), dtype=cls.dtype, device=device)
        return cls.alone(args[0] if args else data, device)

    def alone(cls, given: Any, device: Any) -> Tensor:
        """The tensor for a single argument: a tensor, a size, or numbers. A NumPy array of this dtype shares its
        memory."""
        if isinstance(given, Tensor):
            return cls.alias(given)
        if hasattr(given, "untyped"):
            return as_tensor(given, dtype=cls.dtype)
        integer = hasattr(given, "__index__") and not isinstance(given, (bool, np.bool_, np.ndarray))
        if integer or isinstance(given, Size):
            return empty(given, dtype=cls.dtype, device=device)
        if isinstance(given, str) or not isinstance(given, (Sequence, np.ndarray)):
            raise type_error(
                f"new(): data must be a sequence (got {type(given).__name__})",
                f"torch.tensor(number, dtype={cls.dtype}) makes a tensor of one number",
            )
        return as_tensor(given, dtype=cls.dtype, device=device)

    def alias(cls, other: Tensor) -> Tensor:
        if other.dtype is not cls.dtype:
            raise type_error(f"expected a tensor of {cls.dtype}, but got {other.dtype}", f"x.to({cls.dtype}) converts")
        return alias(other)

    def __instancecheck__(cls, other: Any) -> bool:
        return isinstance(other, Tensor) and other.dtype is cls.dtype

    def __repr__(cls) -> str:
        return f"<class 'torch.{cls.__name__}'>"


TYPES = {f"{d.scalar_type}Tensor": d for d in dtypes.DTYPES if not d.is_complex and d.scalar_type[:4] != "UInt"}
TYPES_OF = {
    d: tensortype(
        name,
        (),
        {
            "dtype": d,
            "__doc__": f"""x = {name}(numbers): a tensor of {d}, by an older name.

    >>> rushlight.{name}([1, 0]).dtype
    {d}
    """,
        },
    )
    for name, d in TYPES.items()
}
MORE.update((made.__name__, made) for made in TYPES_OF.values())


def type_of(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """torch's name of the tensor's type, such as 'torch.FloatTensor'; with a dtype, a type or its name as argument, the
    converted tensor."""
    if dtype is None:
        return f"torch.{self.dtype.scalar_type}Tensor"
    return convert(self, meant(dtype))


def meant(dtype: Any) -> dtypes.dtype:
    """The dtype of a tensor type or its name; a dtype itself. torch.Tensor stands for the default dtype."""
    if dtype in (Tensor, "torch.Tensor"):
        return dtypes.get_default_dtype()
    if isinstance(dtype, str):
        name = dtype.removeprefix("torch.")
        if name.startswith("cuda."):
            raise type_error(
                f"type {dtype} not available. Torch not compiled with CUDA enabled.",
                f"test torch.cuda.is_available() first, or use torch.{name[5:]}",
            )
        if name not in TYPES:
            raise value_error(f"invalid type: '{dtype}'", "give a dtype such as torch.float32")
        return TYPES[name]
    return dtype.dtype if isinstance(dtype, tensortype) else dtypes.as_dtype(dtype)


def set_default_tensor_type(t: Any) -> None:
    """Set the default dtype by the old name of a tensor type; `set_default_dtype` is the newer function.

    >>> rushlight.set_default_tensor_type(rushlight.DoubleTensor)
    >>> rushlight.tensor(1.).dtype
    torch.float64
    >>> rushlight.set_default_tensor_type("torch.FloatTensor")
    """
    warn_once(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and "
        "torch.set_default_device() as alternatives."
    )
    dtypes.set_default_dtype(meant(t))


@method
def new(self: Tensor, *args: Any, **keywords: Any) -> Tensor:
    """A tensor of the same dtype: x.new(2, 3) uninitialised, x.new([1, 2]) with these numbers. `new_tensor` is newer.

    >>> rushlight.ones(1).new([2, 3])
    tensor([2., 3.])
    """
    return tensortype.__call__(TYPES_OF[self.dtype], *args, **keywords)


@method
def _fill(self: Tensor, *args: Any, **keywords: Any) -> None:
    """Initialise `Tensor(...)`: as a view of a given tensor, in the graph; else by the type of the default dtype."""
    if len(args) == 1 and isinstance(args[0], Tensor):
        made = alias(args[0])
    else:
        made = tensortype.__call__(TYPES_OF[dtypes.get_default_dtype()], *args, **keywords)
    self._array, self._node, self._grad = made._array, made._node, None
    self._viewing, self._writes = None, None
    if made._viewing is not None:
        register(self, *made._viewing[1:])


def _make_wrapper_subclass(
    cls: type, size: Any, *args: Any, dtype: Any = None, requires_grad: bool = False, **kwargs: Any
) -> Any:
    """A tensor of a user's class with a size and a dtype but without elements, for classes whose `__torch_function__`
    computes with other tensors. NotImplementedError for a class with `__torch_dispatch__`, which rushlight does not
    call."""
    if getattr(cls, "__torch_dispatch__", None) is not None:
        raise not_implemented_error(
            f"{cls.__name__} has __torch_dispatch__, which is not supported",
            "define __torch_function__, which sees each function that is called",
        )
    return _make_subclass(cls, empty(size, dtype=dtype, device="meta"), requires_grad)


MORE["set_default_tensor_type"] = set_default_tensor_type
method(type_of, "type")
method(staticmethod(_make_wrapper_subclass), "_make_wrapper_subclass")
