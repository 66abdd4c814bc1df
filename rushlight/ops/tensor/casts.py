"""Copies, conversions and detaching: torch's signatures, with memory formats."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from typing import Any

import numpy as np

from rushlight.base import dtypes
from rushlight.base.device import placed
from rushlight.base.errors import NoCuda, describe, explain, runtime_error, suggesting, type_error, warn_once
from rushlight.base.memory_format import contiguous_format, lies_so, memory_format, order_of, preserve_format
from rushlight.core.build import unrecorded
from rushlight.core.tensor import TANGENTS, Tensor, created, from_array, method
from rushlight.core.views import DISCARDS, assign, check_shape, detached, into, leave_graph, write, wrote
from rushlight.kernels.layout import suggests_last
from rushlight.ops.composites import composite
from rushlight.ops.shape import views as s

Format = memory_format | None

# -- memory formats ----------------------------------------------------------------------------


def in_format(input: Tensor, form: Format) -> Tensor:
    """The tensor if its elements have this memory order, else a copy in this order."""
    if form is None or lies_so(input._array, form):
        return input
    return s.laid_out(input, order_of(form, input._array.ndim))


def check_format(form: Any) -> None:
    """TypeError unless the argument is a memory format."""
    if not isinstance(form, memory_format):
        raise type_error(f"argument 'memory_format' must be torch.memory_format, not {describe(form)}")


def suggesting_format(input: Tensor, form: memory_format) -> Tensor:
    """The tensor if its strides suggest this memory format, else a copy with such strides. The strides of (N, 1, H, W)
    in C order do not suggest channels_last, though the elements are in that order.
    """
    check_format(form)
    if form.ndim is None or not isinstance(input._array, np.ndarray) or suggests_last(input._array):
        return in_format(input, form)
    return s.laid_out(input, order_of(form, input._array.ndim))


@composite()
def clone(input: Tensor, *, memory_format: Format = preserve_format) -> Tensor:
    """A copy with its own memory, in the graph; laid out as the input, or by `memory_format`.

    >>> rushlight.ones(1, 2, 3, 3).clone(memory_format=rushlight.channels_last).stride()
    (18, 1, 6, 2)
    """
    if memory_format is None or memory_format is preserve_format:
        return s.clone(input)
    return s.laid_out(input, order_of(memory_format, input._array.ndim))


def contiguous(self: Tensor, memory_format: memory_format = contiguous_format) -> Tensor:
    """The tensor in row-major memory order, or in `memory_format`; the tensor itself if it already is."""
    if memory_format is contiguous_format:
        return s.contiguous(self)
    if memory_format is preserve_format:
        if self._array.flags.c_contiguous:
            return self
        raise runtime_error(
            "preserve memory format is unsupported by the contiguous operator", "contiguous() or clone()"
        )
    check_format(memory_format)
    return in_format(self, memory_format)


def is_contiguous(self: Tensor, memory_format: memory_format = contiguous_format) -> bool:
    """True if the memory order is row-major, or `memory_format`."""
    return lies_so(self._array, contiguous_format if memory_format is preserve_format else memory_format)


for f in (contiguous, is_contiguous):
    method(f)

# -- out of the graph ------------------------------------------------------------------------------


@composite()
def detach(input: Tensor) -> Tensor:
    """out = input, outside the graph, on the same memory; backward's checks detect writes to both tensors.

    >>> x = rushlight.ones(2, requires_grad=True)
    >>> rushlight.detach(x * 2).requires_grad
    False
    """
    return detached(input)


@composite()
def detach_(input: Tensor) -> Tensor:
    """input = itself, out of the graph and without tangents. RuntimeError for a view.

    >>> x = rushlight.ones(2, requires_grad=True) * 2
    >>> x.detach_().requires_grad
    False
    """
    if input._viewing is not None:
        raise runtime_error("Can't detach views in-place. Use detach() instead")
    leave_graph(input)
    input.__dict__.pop(TANGENTS, None)
    return input


# -- writing ---------------------------------------------------------------------------------------


@composite(function=False)
def copy_(input: Tensor, source: Any, non_blocking: bool = False) -> Tensor:
    """Write the elements of `source`, broadcast and converted, or one number, into this tensor."""
    if isinstance(source, Number):
        source = from_array(np.asarray(source))
    if not isinstance(source, Tensor):
        raise type_error(f"copy_(): argument 'other' must be Tensor, not {type(source).__name__}")
    if source._array.shape != input._array.shape:
        check_shape(input, source)
    if unrecorded(input, (source,)):
        write(input, source, "copy_")
        return input
    if source._array.dtype != input._array.dtype:
        source = converted(source, input.dtype)
    return assign(input, s.overwrite(input, source))


def one_value(value: Any, input: Tensor, name: str) -> Tensor:
    """The fill value, a number or a 0-d tensor, as a tensor."""
    if not isinstance(value, Tensor):
        if value is None or isinstance(value, str):
            raise type_error(f"{name}(): the value must be Number, not {type(value).__name__}")
        return created(from_array(dtypes.holding(value, input.dtype)))
    if value._array.ndim:
        raise runtime_error(
            f"{name} only supports 0-dimension value tensor but got tensor with {value._array.ndim} dimensions.",
            "pass a number, or use copy_()",
        )
    return value


@composite(function=False)
def fill_(input: Tensor, value: Any) -> Tensor:
    """input = value, everywhere.

    >>> rushlight.zeros(2).fill_(3)
    tensor([3., 3.])
    """
    # the fast path: a Python number, and no graph
    if (value.__class__ is int or value.__class__ is float) and unrecorded(input, ()):
        numbers, array = dtypes.holding(value, input.dtype), input._array
        if array.__class__ is np.ndarray and array.flags.carray:
            array.fill(numbers[()])
            wrote(input)
        else:
            write(input, from_array(numbers), "fill_")
        return input
    copy_(once(input), one_value(value, input, "fill_"))
    return input


def once(x: Tensor) -> Tensor:
    """The elements of an expanded tensor without repetition."""
    if x._array.__class__ is np.ndarray and not x._array.flags.writeable:
        for d, (size, step) in enumerate(zip(x._array.shape, x._array.strides)):
            if size > 1 and step == 0:
                x = x.narrow(d, 0, 1)
    return x


@composite()
def fill(input: Tensor, value: Any, *, out: Tensor | None = None) -> Tensor:
    """A tensor like the input, full of one number.

    >>> rushlight.fill(rushlight.zeros(2), 3)
    tensor([3., 3.])
    """
    made = s.overwrite(input, convert(one_value(value, input, "fill"), input.dtype))
    return made if out is None else into(out, made)


@composite()
def zero_(input: Tensor) -> Tensor:
    """input = 0, everywhere.

    >>> rushlight.ones(2).zero_()
    tensor([0., 0.])
    """
    return fill_(input, 0)


# -- other dtypes ----------------------------------------------------------------------------------


def converted(x: Tensor, d: dtypes.dtype) -> Tensor:
    """The tensor in another dtype. Integers and bools have no gradient."""
    if x.dtype.is_complex and not d.is_complex and d is not dtypes.bool_:
        warn_once(DISCARDS)
    return s.to(x if d.category >= dtypes.FLOATING or x._node is None else detached(x), d)


def convert(
    self: Tensor,
    *args: Any,
    dtype: Any = None,
    device: Any = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Format = None,
    other: Tensor | None = None,
) -> Tensor:
    """The tensor in another dtype or on another device: `x.to(torch.float64)`, `x.to('cpu')`, `x.to(other)`; the tensor
    itself if nothing changes.

    >>> rushlight.tensor([1, 2]).to(rushlight.float64)
    tensor([1., 2.], dtype=torch.float64)
    """
    flags = []  # non_blocking and copy, in this order
    for arg in (*args, other):
        if isinstance(arg, Tensor):
            dtype, device = arg.dtype, arg.device
        elif isinstance(arg, dtypes.dtype) or arg in (float, int, bool, complex):
            dtype = dtypes.as_dtype(arg)
        elif isinstance(arg, bool):
            flags.append(arg)
        elif arg is not None:
            device = arg
    made = self if dtype is None or dtype is self.dtype else converted(self, dtypes.as_dtype(dtype))
    if device is not None and placed(device).type != made.device.type:
        from rushlight.ops.meta.meta_tensors import moved  # loaded with the first meta tensor

        made = moved(made)
    if memory_format is not None:
        made = suggesting_format(made, memory_format)
    return s.clone(made) if made is self and (copy or flags[1:] == [True]) else made


def caster(name: str, d: dtypes.dtype) -> Callable:
    """The method `name`, such as x.float()."""

    def cast(self: Tensor, memory_format: Format = None) -> Tensor:
        made = self if self._array.dtype == d.numpy else converted(self, d)
        return made if memory_format is None else suggesting_format(made, memory_format)

    cast.__name__ = cast.__qualname__ = name
    cast.__doc__ = f"The tensor as {d}; the tensor itself if it has this dtype."
    return cast


method(suggesting(convert, name="to"), "to")
for name, d in dtypes.NAMES.items():
    if name in ("float", "double", "half", "bfloat16", "long", "int", "short", "bool", "cfloat", "cdouble"):
        method(caster(name, d), name)
method(caster("byte", dtypes.uint8), "byte")
method(caster("char", dtypes.int8), "char")


@composite(function=False)
def type_as(input: Tensor, other: Tensor) -> Tensor:
    """out = input.to(other.dtype).

    >>> rushlight.ones(2).type_as(rushlight.zeros(1, dtype=rushlight.int64))
    tensor([1, 1])
    """
    return convert(input, other.dtype)


def cpu(self: Tensor, memory_format: Format = None) -> Tensor:
    """The tensor itself: it is on the CPU."""
    return convert(self, device="cpu", memory_format=memory_format)


def cuda(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """RuntimeError: the CPU is the only device."""
    raise NoCuda(
        explain(
            "Torch not compiled with CUDA enabled",
            "remove .cuda(), or use .to('cuda' if torch.cuda.is_available() else 'cpu')",
        )
    )


for f, name in ((cpu, "cpu"), (cuda, "cuda")):
    method(f, name)
