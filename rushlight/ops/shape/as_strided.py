"""The memory layout of a tensor: `as_strided`, `resize_`, and in-place views (`t_`, `squeeze_`)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from math import prod
from typing import Any
from weakref import ref

import numpy as np
from numpy.lib.array_utils import byte_bounds

from rushlight.base.array_memory import memory_of
from rushlight.base.errors import overflowed, runtime_error
from rushlight.base.memory_format import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    lies_so,
    memory_format,
    preserve_format,
    room_for,
)
from rushlight.core.arguments import integer, sizes
from rushlight.core.build import build, inner, inner_view
from rushlight.core.mode import current, mode
from rushlight.core.tensor import Tensor, from_array, holder, method, writes_of
from rushlight.core.views import MAKING, check_writable, living_views, views_of, wrote
from rushlight.kernels import layout as kernels
from rushlight.kernels.layout import reach
from rushlight.ops.composites import composite
from rushlight.ops.linalg.matmul_api import t
from rushlight.ops.shape import views as s
from rushlight.ops.shape.flip_roll import swapaxes

# `own`: the strides of x; `start`: the offset of the result from the first element of x; both in elements.
# fmt: off
lie = inner_view(lambda x, /, size, stride, start, own: lie(x, size, stride, start, own),
    x=lambda g, x_shape, size, stride, start, own: unlie(g, x_shape, size, stride, start, own),
    node="AsStridedBackward0", called="as_strided", strides=True)
unlie = inner(lambda x, /, shape, size, stride, start, own: unlie(x, shape, size, stride, start, own),
    x=lambda g, size, stride, start, own: lie_again(g, size, stride, start, own))
lie_again = inner(lambda x, /, size, stride, start, own: lie_again(x, size, stride, start, own),
    x=lambda g, x_shape, size, stride, start, own: unlie(g, x_shape, size, stride, start, own))
# fmt: on

build(globals())


@composite()
def as_strided(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """A view of the tensor's memory with any size, strides and offset, all in elements.

    An element of memory that occurs several times in the view gets the sum of the gradients; memory outside the input
    gets none. RuntimeError for a view beyond the tensor's memory; inside vmap, beyond the sample's memory.

    >>> rushlight.arange(5).as_strided((3, 2), (1, 1))
    tensor([[0, 1],
            [1, 2],
            [2, 3]])
    """
    size, stride = sizes(size), sizes(stride)
    memory = holder(input)
    first = memory.storage_offset()
    offset = first if storage_offset is None else integer(storage_offset, "storage_offset")
    own = tuple(step // input._array.itemsize for step in input._array.strides)
    check_steps(size, stride)
    if memory is input:
        check_room(input, size, stride, offset)
    else:
        check_sample(input, size, stride, offset, own, first)
    return lie(input, size, stride, offset - first, own)


def check_steps(size: tuple, stride: tuple) -> None:
    """RuntimeError unless there is one stride for each size, and no stride is negative."""
    if len(size) != len(stride):
        raise runtime_error(f"mismatch in length of strides and shape: {len(stride)} and {len(size)}")
    if any(step < 0 for step in stride):
        raise runtime_error(
            f"as_strided: Negative strides are not supported at the moment, got strides: {list(stride)}", "use flip()"
        )


def check_sample(input: Tensor, size: tuple, stride: tuple, offset: int, own: tuple, first: int) -> None:
    """RuntimeError unless the view stays within the memory of one sample of vmap."""
    low, high = reach(size, stride, offset)
    least, most = reach(input._array.shape, own, first)
    if 0 not in size and not least <= low <= high <= most:
        raise runtime_error(
            f"result = tensor.as_strided({list(size)}, {list(stride)}, {offset}) can access memory outside of "
            f"`tensor`. `result` can access some memory in range [{low}, {high}], but `tensor` can only access "
            f"some memory in range [{least}, {most}]. This is not supported inside of vmap, please try to rewrite "
            "the `as_strided` call as a sequence of PyTorch view operations"
        )


def check_room(input: Tensor, size: tuple, stride: tuple, offset: int) -> None:
    """RuntimeError unless the view stays within the tensor's memory."""
    if offset < 0 or any(n < 0 for n in size):
        raise runtime_error(f"as_strided: sizes and offset cannot be negative: {list(size)}, {offset}")
    low, high = byte_bounds(memory_of(input))
    item = input._array.itemsize
    needed = reach(size, stride, offset)[1] * item
    if 0 not in size and needed > high - low:
        raise runtime_error(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, and itemsize "
            f"{item} requiring a storage size of {needed} are out of bounds for storage of size {high - low}",
            "the last element must be inside the tensor's memory",
        )


# -- in-place views --------------------------------------------------------------------------------


def turning(view: Callable) -> Callable:
    """The in-place form of a view: the tensor itself becomes the view, on the same memory."""
    name = view.__name__ + "_"

    def turn(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return become(input, lambda x: view(x, *args, **kwargs), name)

    turn.__name__ = turn.__qualname__ = name
    given = {"as_strided": "(2,), (3,)", "t": "", "squeeze": "", "unsqueeze": "0"}.get(view.__name__, "0, 1")
    turn.__doc__ = f"""input = {view.__name__}(input, ...): the tensor itself; its memory stays. Returns the tensor.

    >>> x = rushlight.ones(2, 2)
    >>> x.{name}({given}) is x
    True
    """
    return turn


composite("as_strided_")(turning(as_strided))
for view, names in (
    (s.transpose, "transpose_ swapdims_"),
    (swapaxes, "swapaxes_"),
    (s.squeeze, "squeeze_"),
    (t, "t_"),
    (s.unsqueeze, "unsqueeze_"),
):
    method(turning(view), *names.split())


# -- other sizes -----------------------------------------------------------------------------------


def resize_(self: Tensor, *size: Any, memory_format: memory_format | None = None) -> Tensor:
    """Resize the tensor in place. Elements in memory are kept as far as they fit; new elements are uninitialised.

    If the size does not change, the strides do not change either, unless `memory_format` is given.

    RuntimeError for a tensor that requires grad.
    """
    shape = sizes(size[0] if len(size) == 1 and not hasattr(size[0], "__index__") else size)
    if any(n < 0 for n in shape):
        raise runtime_error(
            f"Trying to create tensor with negative dimension {min(shape)}: {list(shape)}", op="resize_"
        )
    if self._node is not None:
        raise runtime_error("cannot resize variables that require grad", "use reshape(), or detach() first")
    if memory_format is preserve_format:
        raise runtime_error("Unsupported memory format Preserve", "use torch.contiguous_format")
    if prod([max(n, 1) for n in shape]) * self._array.itemsize > sys.maxsize:
        raise overflowed(shape)
    if shape == self._array.shape and (memory_format is None or lies_so(self._array, memory_format)):
        return self
    form = memory_format or contiguous_format
    become(self, lambda x: lie(enlarged(x, prod(shape)), shape, steps(shape, form), 0, ()), "resize_")
    return self


def steps(shape: tuple, form: memory_format) -> tuple:
    """The strides, in elements, of a tensor of this memory format."""
    return room_for(shape, np.dtype(np.int8), form).strides


def enlarged(x: Tensor, n: int) -> Tensor:
    """The tensor if its memory holds n elements from the tensor's start; else a larger tensor with the same first
    elements.
    """
    memory = byte_bounds(memory_of(x))[1] - x.data_ptr()
    if n * x._array.itemsize <= memory:
        return x
    room = np.empty(n, x._array.dtype)
    held = kernels.lie(x._array, (memory // x._array.itemsize,), (1,), 0)
    room[: held.size] = held
    return from_array(room)


def resize_as_(self: Tensor, the_template: Tensor, *, memory_format: memory_format | None = None) -> Tensor:
    """Resize the tensor in place to another tensor's size; see `resize_`. `preserve_format`: use the other tensor's
    memory format.

    >>> rushlight.arange(4).resize_as_(rushlight.zeros(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    if memory_format is preserve_format:
        memory_format = next(
            (form for form in (channels_last, channels_last_3d) if lies_so(the_template._array, form)),
            contiguous_format,
        )
    return resize_(self, the_template._array.shape, memory_format=memory_format)


composite("resize_as_")(resize_as_)
method(resize_)


def insert_before(view: Tensor, parent: Tensor) -> None:
    """Insert `parent` before `view` in the base's list of views: a write renews views in the order of the list."""
    views = views_of(view._root)
    with MAKING:
        views.insert(next((i for i, weak in enumerate(views) if weak() is view), len(views)), ref(parent))


def become(x: Tensor, view: Callable, op: str) -> Tensor:
    """Make x the view `view(x)` of itself, in place: `x.t_()`. Returns x.

    If x has views or is a view, a new tensor takes over x's old shape and place, so that the view ops can be
    repeated."""
    m, inner = mode(), x._node is not None and not x._node.leaf
    if m.grad and x._node is not None:
        check_writable(x, op)
        writes_of(x)  # for x's present node, which may have saved x: the node gets the log of writes
    old, others = from_array(x._array), living_views(x)
    old._node, old._viewing, old._writes = x._node, x._viewing, x._writes
    if x._viewing is not None:
        insert_before(x, old)
    watch = m.watch
    if watch is not None:
        watch.on_move(old, x)
    # recorded in no_grad, too, because the node must get the new shape
    token = current.set(m.but(grad=m.grad or inner))
    try:
        made = view(old)
    finally:
        current.reset(token)
    if watch is not None:
        watch.on_move(x, made)
    viewed = x._viewing is not None or bool(others)
    for other in others:
        assert other._viewing is not None  # x is a view
        other._viewing = tuple(old if t is x else t for t in other._viewing[:2]) + other._viewing[2:]
    if others:
        old._views, x._views = [*map(ref, others), ref(x)], []
    x._array, x._viewing = made._array, made._viewing if viewed else None
    if inner:
        x._node = made._node
    elif x._node is not None and x._node.leaf:
        x._node.shape = x._array.shape
    wrote(x)
    return x
