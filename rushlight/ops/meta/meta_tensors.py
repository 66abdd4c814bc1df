"""Meta tensors: shape and dtype without elements, to build a model that is loaded later, or to compute the shapes of
its results.

The `_array` of a meta tensor is a `Meta`. Kernels cannot compute with a `Meta`: an op's fast path fails, and its slow
path (`fallback` in core/arguments.py) then runs the op on zeros of that shape, or of a smaller one
(ops/meta/symbolic_sizes.py). Only shape and dtype of the result are kept. So most ops need no separate rule for shapes,
and programs without meta tensors have no overhead."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from rushlight.base import dtypes
from rushlight.base.device import device
from rushlight.base.errors import explain, not_implemented_error, runtime_error, shown_as, type_error
from rushlight.base.placeholder import Placeholder, Touched
from rushlight.base.pytree import tree_leaves, tree_map
from rushlight.base.size import in_order
from rushlight.core.call import result_type
from rushlight.core.mode import current, mode
from rushlight.core.node import Node, Output, outside, tick
from rushlight.core.table import Op
from rushlight.core.tensor import Tensor, from_array
from rushlight.core.worlds import TENSORS
from rushlight.ops.meta.symbolic_sizes import Unknown, ways
from rushlight.random import default_generator

NO_DATA = "Cannot copy out of meta tensor; no data!"
ITEM = "Tensor.item() cannot be called on meta tensors"
TO_EMPTY = "empty_like(x, device='cpu') or module.to_empty(device='cpu') gives it memory"
# Ops whose result shape depends on the numbers.
DYNAMIC = {"nonzero", "argwhere", "masked_select", "unique", "unique_consecutive", "bincount", "equal"}


class NoData(Touched, NotImplementedError):
    """The caller needs the elements of a tensor that has no elements."""

    def instead(self, function: Callable, args: tuple, kwargs: dict) -> Any:
        """The result of a function that is not an op, run on zeros. The error itself is raised if the function writes
        to its arguments.
        """
        if function.__name__ in DYNAMIC or function.__name__.endswith("_") or kwargs.get("out") is not None:
            raise self
        return on_zeros(function, args, kwargs)


shown_as(NoData, "builtins", "NotImplementedError")


class Elsewhere(NoData):
    """A meta and a CPU tensor in one call: an error of the caller, unless the function created the CPU tensor."""


class Meta(Placeholder):
    """Takes the place of an array in a meta tensor: shape, strides in bytes and dtype. A `Meta` is immutable, so
    tensors can share it.
    """

    __slots__ = ("shape", "strides", "dtype", "__weakref__")
    device, base = device("meta"), None

    def __init__(self, shape: tuple, dtype: np.dtype, strides: tuple | None = None):
        self.shape, self.dtype = tuple(shape), dtype
        self.strides = strides or tuple([dtype.itemsize * step for step in in_order(shape)])

    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: prod(self.shape))
    itemsize = property(lambda self: self.dtype.itemsize)
    nbytes = property(lambda self: self.size * self.itemsize)
    flags = property(lambda self: self.seen().flags)

    def __reduce__(self) -> tuple:
        return Meta, (self.shape, self.dtype, self.strides)

    def __len__(self) -> int:
        return self.shape[0]

    def seen(self) -> np.ndarray:
        """An array with this shape and these strides, on the memory of a single element: for its attributes only."""
        return np.lib.stride_tricks.as_strided(np.empty(1, self.dtype), self.shape, self.strides)

    detached = property(lambda self: lambda: self)

    def spread(self, array: Any) -> Meta:
        """A `Meta` like `array`: tensors created by *_like functions of a meta tensor are meta tensors, too."""
        return without(array)

    def __array_function__(self, function: Callable, types: Any, args: tuple, kwargs: dict) -> Any:
        if function is np.copyto:
            if not isinstance(args[0], Meta):
                raise not_implemented_error(NO_DATA, TO_EMPTY)
            return None  # nothing to write; the caller has compared the shapes
        if function in (np.zeros_like, np.ones_like, np.empty_like, np.shape, np.ndim, np.size):
            return function(self.seen(), *args[1:], **kwargs)
        raise self.touched(function.__name__)

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        if out is not None and isinstance(out[0], Meta) and all(isinstance(a, Meta) for a in args):
            return out[0]  # the sum of two gradients
        raise self.touched(ufunc.__name__)

    def __add__(self, other: Any) -> Meta:
        if not isinstance(other, Meta):
            raise self.touched("add")
        return self

    def touched(self, what: str) -> Touched:
        return NoData(
            explain(
                f"{NO_DATA} {what} needs the elements of a tensor of shape {self.shape}, which is on the device 'meta'",
                TO_EMPTY,
            ),
            self,
        )

    __setitem__ = Placeholder._refuse

    def item(self) -> Any:
        raise runtime_error(ITEM, "use a tensor on the CPU")

    __bool__ = item

    def numpy(self) -> Any:
        raise type_error("can't convert meta device type tensor to numpy.", TO_EMPTY)

    def tolist(self) -> Any:
        raise not_implemented_error(NO_DATA, TO_EMPTY)

    def run(self, op: Op, args: tuple) -> Any:
        """Run an op with this tensor among its inputs."""
        return on_zeros(TENSORS[op.name], args, {}, op)

    @staticmethod
    def one_by_one(function: Callable, args: tuple, kwargs: dict) -> Any:
        """Run a function that is not an op, with this tensor among its arguments."""
        return on_zeros(function, args, kwargs)


class Unread(Node):
    """The node of a meta tensor: the gradients are meta tensors of the shapes of its inputs, `like`."""

    __slots__ = ("like", "called")
    like: tuple
    called: str
    first = None

    def name(self) -> str:
        return self.called

    def arrays(self, g: Any) -> tuple:
        return self.like

    def tensors(self, g: Any) -> tuple:
        return tuple(map(from_array, self.like))


def without(array: Any) -> Meta:
    """An array's shape, memory order and dtype."""
    return array if array.__class__ is Meta else Meta(array.shape, array.dtype, array.strides)


def on_zeros(function: Callable, args: tuple, kwargs: dict, op: Op | None = None) -> Any:
    """The result of a function run on zeros in place of tensors without elements; the result has no elements either."""
    given = [t for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
    name = op.name if op is not None else function.__name__
    if name in DYNAMIC or (name in ("index", "getitem") and any(t.dtype is dtypes.bool_ for t in given[1:])):
        raise not_implemented_error(
            f"aten::{name}: attempted to run this operator with Meta tensors, but there was no fake impl or Meta "
            "kernel registered: the result's shape depends on the elements",
            TO_EMPTY,
        )
    for t in given:
        if t._array.__class__ is not Meta and t._array.ndim and not indexes(t, op):
            raise Elsewhere(
                explain(
                    "Tensor on device cpu is not on the expected device meta!",
                    "put both on one device",
                    inputs=[(tuple(t.shape), str(t.device)) for t in given],
                ),
                None,
            )
    state, token = default_generator.get_state(), current.set(mode().but(grad=False, watch=None))
    try:
        if (made := by_rule(op, args)) is None:
            *cheap, last = ways(op, args, [t._array for t in given if t._array.__class__ is Meta])
            made = next((one for way in cheap if (one := tried(function, args, kwargs, *way)) is not None), None)
            made = run_with(function, args, kwargs, *last) if made is None else made
    finally:
        current.reset(token)
        default_generator.set_state(state)
    record(made, given, op)
    return made


def by_rule(op: Op | None, args: tuple) -> Any:
    """The meta result of an op whose entry has a `sizes` function; None if there is none, or if it does not cover these
    arguments.
    """
    sizes = None if op is None else op.options.get("sizes")
    if not callable(sizes):
        return None
    arrays = [t._array for t in tree_leaves(args) if isinstance(t, Tensor)]
    if not all([a.__class__ is Meta and a.dtype == arrays[0].dtype for a in arrays]):
        return None
    if any([a.ndim in (4, 5) and not a.flags.c_contiguous for a in arrays]):
        return None  # only the op itself keeps an image's memory order
    found = sizes(*tree_map(lambda t: t._array if isinstance(t, Tensor) else t, args))
    if found is None:
        return None
    outs: list[Any] = [from_array(Meta(shape, dtype)) for shape, dtype in found]  # type: ignore[arg-type]
    return outs[0] if len(outs) == 1 else result_type(op)(outs)


def run_with(function: Callable, args: tuple, kwargs: dict, stand_in: Callable, put_back: Callable) -> Any:
    """Run the function with `stand_in(array)` in place of each `Meta`; results become meta tensors by `put_back`."""

    def given(t: Any) -> Any:
        return from_array(stand_in(t._array)) if isinstance(t, Tensor) and t._array.__class__ is Meta else t

    def taken(t: Any) -> Any:
        if not isinstance(t, Tensor):
            return t
        shape, strides = put_back(t._array)
        return from_array(Meta(shape, t._array.dtype, strides))  # type: ignore[arg-type]

    return tree_map(taken, function(*tree_map(given, args), **tree_map(given, kwargs)))


def tried(*call: Any) -> Any:
    """The result of `run_with`, or None after an error, whose message would contain the wrong sizes."""
    try:
        return run_with(*call)
    except (Unknown, RuntimeError, ValueError, IndexError, TypeError):
        return None


def indexes(t: Tensor, op: Op | None) -> bool:
    """Whether `t` is an index tensor of the op: an index tensor may be on the CPU beside meta tensors."""
    return op is not None and op.name.startswith("index") and t.dtype.category < dtypes.FLOATING


def record(made: Any, given: list[Tensor], op: Op | None) -> None:
    """Give the results a node with shapes only."""
    edges = [t for t in given if t._node is not None]
    outs = [t for t in tree_leaves(made) if isinstance(t, Tensor) and t.dtype.category >= dtypes.FLOATING]
    if not (edges and outs and mode().grad):
        return
    node = Unread()
    node.called = "UnreadBackward0" if op is None else op.node_class.__name__
    node.like = tuple(without(t._array) for t in edges)
    node.edges, node.saved, node.seq, node.shape = tuple(t._node for t in edges), (), tick(), outs[0]._array.shape
    node.where = outside(None)
    outs[0]._node = node
    if len(outs) > 1:
        node.shape = None  # the node gets one gradient for each output
        for i, t in enumerate(outs):
            t._node = Output(node, i, tick(), t._array.shape)


def moved(t: Tensor) -> Tensor:
    """A CPU tensor as a meta tensor. NotImplementedError for a meta tensor: it cannot move to the CPU, because it has
    no elements.
    """
    if t._array.__class__ is Meta:
        raise not_implemented_error(NO_DATA, TO_EMPTY)
    r = from_array(without(t._array))  # type: ignore[arg-type]
    record(r, [t], None)
    return r


class Undrawn:
    """A generator for tensors without elements: it draws nothing."""

    @staticmethod
    def uniform(shape: tuple, dtype: np.dtype, *how: Any) -> Meta:
        return Meta(shape, dtype)

    normal = uniform

    @staticmethod
    def randint(low: int, high: int, shape: tuple, dtype: np.dtype) -> Meta:
        return Meta(shape, dtype)

    @staticmethod
    def randperm(n: int, dtype: np.dtype) -> Meta:
        return Meta((n,), dtype)
