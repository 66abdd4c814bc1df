"""Predicates of tensors, functions that exist for compatibility, and functions that call Python functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from numbers import Number
from typing import Any

import numpy as np

from rushlight.base import dtypes
from rushlight.base.errors import runtime_error, type_error
from rushlight.base.public_function import MORE
from rushlight.core.build import unrecorded
from rushlight.core.tensor import Tensor, created, from_array, method
from rushlight.core.views import assign, check_shape, wrote
from rushlight.ops.composites import checked_method
from rushlight.ops.tensor.storage_classes import between_processes

# In-place methods that torch has as functions, too: rushlight.exp_(x).
WRITING = """
abs_ addmv_ acos_ acosh_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ asin_ asinh_ atan_ atanh_ ceil_ clamp_ clamp_max_
clamp_min_ clip_ conj_physical_ cos_ cosh_ deg2rad_ detach_ erf_ erfc_ exp2_ exp_ expm1_ fill_ fix_ floor_ frac_ gcd_ i0_
index_put_ lcm_ ldexp_ log10_ log1p_ log2_ log_ logit_ nan_to_num_ neg_ negative_ rad2deg_ reciprocal_ resize_as_ round_
rsqrt_ sigmoid_ sin_ sinc_ sinh_ sqrt_ square_ tan_ tanh_ trunc_ xlogy_ zero_
"""  # noqa: E501


def question(function: Callable) -> Callable:
    """Register a function of the package that is also a method of tensors."""
    made = MORE[function.__name__] = checked_method(function)
    return made


@question
def is_nonzero(input: Tensor) -> bool:
    """Whether the tensor's only element is not 0. RuntimeError for a tensor of no or several elements.

    >>> rushlight.is_nonzero(rushlight.tensor(0.))
    False
    """
    return bool(input)


@question
def is_signed(input: Tensor) -> bool:
    """True if the dtype has negative numbers.

    >>> rushlight.is_signed(rushlight.zeros(1)), rushlight.is_signed(rushlight.zeros(1, dtype=rushlight.uint8))
    (True, False)
    """
    return input.dtype.is_signed


@question
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """True if two tensors have the same shape.

    >>> rushlight.is_same_size(rushlight.zeros(2, 3), rushlight.ones(2, 3))
    True
    """
    return input.shape == other.shape


@question
def is_conj(input: Tensor) -> bool:
    """False: conjugates are never lazy here.

    >>> rushlight.is_conj(rushlight.tensor([1j]).conj())
    False
    """
    return False


@question
def is_neg(input: Tensor) -> bool:
    """False: negatives are never lazy here.

    >>> rushlight.is_neg(rushlight.ones(1))
    False
    """
    return False


@question
def is_distributed(input: Tensor) -> bool:
    """False: a tensor belongs to one process.

    >>> rushlight.is_distributed(rushlight.ones(1))
    False
    """
    return False


@method
def is_pinned(self: Tensor, device: Any = None) -> bool:
    """False: pinned memory exists only for GPUs."""
    return False


@method
def is_shared(self: Tensor) -> bool:
    """Whether `share_memory_` was called: this process and its forks share the memory."""
    return between_processes(self._array)


@checked_method
def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Whether both tensors have the same memory, offset, size and strides."""
    a, b = self._array, tensor._array
    return a.ctypes.data == b.ctypes.data and a.shape == b.shape and a.strides == b.strides and a.size > 0


@method
def dim_order(self: Tensor) -> tuple[int, ...]:
    """The dimensions ordered from the largest stride to the smallest."""
    return tuple(sorted(range(self._array.ndim), key=lambda d: -self._array.strides[d]))


@method
def to_dense(self: Tensor, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    """out = input: this tensor is dense.

    >>> rushlight.ones(2).to_dense()
    tensor([1., 1.])
    """
    return self if dtype is None else self.to(dtype)


def typename(obj: Any) -> str:
    """The name of a tensor's type, or the name of an object's class with its module.

    >>> rushlight.typename(rushlight.ones(1))
    'torch.FloatTensor'
    """
    if isinstance(obj, Tensor):
        return obj.type()
    kind = obj if isinstance(obj, type) else type(obj)
    home = "" if kind.__module__ in ("builtins", "__builtin__") else kind.__module__ + "."
    return home + kind.__qualname__


# -- calling Python functions ----------------------------------------------------------------------


def check_unrecorded(x: Tensor, name: str) -> None:
    if x.requires_grad:
        raise runtime_error(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")


@method
def apply_(self: Tensor, callable: Callable) -> Tensor:
    """Replace each element by `callable(element)`; slow. RuntimeError if the tensor requires grad.

    >>> rushlight.tensor([1., 2.]).apply_(lambda x: x + 1)
    tensor([2., 3.])
    """
    check_unrecorded(self, "apply_")
    return made_by(self, map(callable, dtypes.plain(self._array).ravel().tolist()), "apply_")


@checked_method
def map_(self: Tensor, tensor: Tensor, callable: Callable) -> Tensor:
    """input_i = callable(input_i, tensor_i); slow. RuntimeError if the tensor requires grad.

    >>> rushlight.tensor([1., 2.]).map_(rushlight.tensor([3., 4.]), lambda a, b: 10 * a + b)
    tensor([13., 24.])
    """
    return mapped(self, (tensor,), callable, "map_")


@checked_method
def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable) -> Tensor:
    """input_i = callable(input_i, x_i, y_i); slow. RuntimeError if the tensor requires grad."""
    return mapped(self, (x, y), callable, "map2_")


def mapped(self: Tensor, others: tuple[Tensor, ...], callable: Callable, name: str) -> Tensor:
    for t in (self, *others):
        check_unrecorded(t, name)
        check_shape(self, t, name)
        if t.dtype is not self.dtype:
            raise type_error(
                f"{name}: expected {self.type()} for 'other' (got {t.type()})", f"x.to({self.dtype}) converts"
            )
    rows = [np.broadcast_to(dtypes.plain(t._array), self._array.shape).ravel().tolist() for t in (self, *others)]
    return made_by(self, (callable(*row) for row in zip(*rows)), name)


def made_by(x: Tensor, values: Iterable, name: str) -> Tensor:
    """Fill the tensor with the results of a Python function. TypeError for a result that is not a number."""
    found = list(values)
    for value in found:
        if not isinstance(value, (Number, Tensor)):
            raise type_error(f"{name}(): '{type(value).__name__}' object cannot be interpreted as a number")
    return assign(x, from_array(np.array(found, x._array.dtype).reshape(x._array.shape)), name)


@checked_method
def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Write the number along the main diagonal; with `wrap`, the diagonal of a tall matrix starts again below its end.

    RuntimeError for fewer than 2 dimensions, and for more than 2 dimensions of different sizes.

    >>> rushlight.zeros(2, 2).fill_diagonal_(5)
    tensor([[5., 0.],
            [0., 5.]])
    """
    shape = self._array.shape
    if len(shape) < 2:
        raise runtime_error("dimensions must larger than 1", shape=shape)
    if len(shape) > 2 and len(set(shape)) > 1:
        raise runtime_error("all dimensions of input must be of equal length", shape=shape)
    a = self._array
    plain = a.dtype.char in "fd" and a.__class__ is np.ndarray and a.flags.writeable
    if plain and fill_value.__class__ in (int, float) and unrecorded(self, ()):
        np.fill_diagonal(a, fill_value, wrap)
        wrote(self)
        return self
    mask = np.zeros(shape, bool)
    np.fill_diagonal(mask, True, wrap)
    return self.masked_fill_(created(from_array(mask)), fill_value)


@method
def get_device(self: Tensor) -> int:
    """The device's index: -1, the CPU.

    >>> rushlight.get_device(rushlight.ones(2))
    -1
    """
    return -1


@method
def is_inference(self: Tensor) -> bool:
    """Whether the tensor was created for inference only. Always False: tensors created in `inference_mode` have no
    restrictions.

    >>> with rushlight.inference_mode():
    ...     x = rushlight.ones(2)
    >>> rushlight.is_inference(x)
    False
    """
    return False


MORE["typename"] = typename
MORE.update((name, getattr(Tensor, name)) for name in ("get_device", "is_inference", *WRITING.split()))


@method
def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """The tensor itself: pinned memory exists only for GPUs."""
    return self


@method
def share_memory_(self: Tensor) -> Tensor:
    """Move the elements to shared memory. It is shared with later forks of this process, and with processes that get
    the tensor through a queue, a pipe or as an argument.

    Existing views keep the old memory. RuntimeError for a view, whose base would keep the old memory.

    >>> rushlight.zeros(2).share_memory_().is_shared()
    True
    """
    if not is_shared(self):
        from rushlight.ops.tensor import shared_memory  # it needs multiprocessing, which a browser lacks

        if self._viewing is not None:
            raise runtime_error(
                "share_memory_ of a view cannot move the memory of its base", "call share_memory_() on the base"
            )
        self._array = shared_memory.moved(self._array)
        shared_memory.send_by_reference(type(self))
    return self
