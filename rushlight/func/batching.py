"""Batched tensors inside `vmap`, and how an op runs on them.

A batched tensor is a Tensor whose `array` is a `Batch`. The Batch has the shape and dtype of ONE sample, and refers to
the tensor of all samples: `value`, with the batch in dimension 0, which may itself be batched by an outer vmap. Kernels
fail on a Batch. The code that would report this error runs the op on the values instead, by the batching rule of its
family (func/batching_families.py); so programs without vmap have no overhead. Each level has its own graph: an op on
batched tensors is recorded between the batched tensors, with the shapes of one sample; the ops of its batching rule are
recorded between the values. Hence the gradient of one sample's loss is per sample, also for a weight that all samples
share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from math import prod
from sys import _getframe as frame
from typing import Any, cast

import numpy as np

from rushlight.base import dtypes
from rushlight.base.errors import explain, runtime_error, warn
from rushlight.base.memory_format import room_like
from rushlight.base.placeholder import Placeholder, Touched
from rushlight.core.arguments import reduced_dims
from rushlight.core.call import result_type
from rushlight.core.families import kept_shape, reduction, saved_facts, view
from rushlight.core.mode import Mode, current, mode
from rushlight.core.node import Output, outside, tick
from rushlight.core.table import Op
from rushlight.core.tensor import Tensor, created, from_array
from rushlight.core.views import assign, detached, register
from rushlight.func.observer_boundary import Boundary, tensors_of

CONTROL_FLOW = (
    "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't "
    "support that yet, please file an issue at https://github.com/pytorch/pytorch/issues ."
)
ITEM = (
    "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a "
    "Tensor, please try to rewrite what you're doing with other operations."
)
IN_PLACE = (
    "vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor `other` in "
    "extra_args that has more elements than `self`. This happened due to `other` being vmapped over but `self` not "
    "being vmapped over in a vmap. Please try to use out-of-place operators instead of inplace arithmetic."
)
NUMBERS = (
    "vmap: {what} looks at the numbers of a batched tensor, of which one sample has shape {shape}, and has no "
    "batching rule\n  hint: compute it with other ops, or outside of vmap"
)
DYNAMIC = {"nonzero", "count_nonzero", "unique"}


class Level:
    """A running vmap.

    `size`: the number of samples. `randomness`: the behaviour of random ops. `outer`: the vmap around it. `open`:
    whether it still runs. `since`: the clock tick at its start; nodes made later are in its graph. `watch`: the watcher
    around it, which gets the ops on the values; a watcher entered inside gets the ops on batched tensors.
    """

    __slots__ = ("size", "randomness", "outer", "watch", "depth", "since", "open", "name", "token", "modes")

    def __init__(self, size: int, randomness: str, name: str):
        m = mode()
        self.outer: Level | None = m.batch
        self.watch = m.watch
        self.size, self.randomness, self.name = size, randomness, name
        self.depth = 1 if self.outer is None else self.outer.depth + 1
        self.since, self.open = tick(), True
        self.modes: tuple[Mode, Mode] = m, m  # the last argument and result of `around`

    def __enter__(self) -> Level:
        watch = None if self.watch is None else Boundary(self, self.watch)
        self.token = current.set(mode().but(batch=self, watch=watch))
        return self

    def __exit__(self, *exc: object) -> None:
        current.reset(self.token)
        self.open = False

    def around(self, inside: Mode) -> Mode:
        """The mode of ops on the values: with the outer vmap and the outer watchers."""
        known, outside = self.modes
        if known is not inside:
            outside = inside.but(batch=self.outer, watch=self.watch)
            self.modes = inside, outside
        return outside

    def call_outside(self, function: Callable, *args: Any) -> Any:
        """Call the function in the mode around the vmap."""
        token = current.set(self.around(mode()))
        try:
            return function(*args)
        finally:
            current.reset(token)

    def run(self, op: Op, args: tuple) -> Any:
        """Run a random op that has no batched argument."""
        return run(op, args, self)

    def records(self, *tensors: Any) -> bool:
        """Whether one of the batched tensors is recorded, inside or outside the vmap."""
        return any([t._array.__class__ is Batch and recorded(t) for t in tensors if isinstance(t, Tensor)])


class Batch(Placeholder):
    """The `array` of a batched tensor: has the shape of one sample's array, and raises if NumPy computes with it.

    `value`: the tensor of all samples, (B, *shape). (A tensor that all samples share is a plain tensor.)"""

    __slots__ = ("__weakref__", "value", "level")  # the compiler's tracer needs weak references
    one_by_one: Callable  # runs a function that needs the numbers, sample by sample (vmap_fallback.py)

    def __init__(self, value: Tensor, level: Level):
        self.value, self.level = value, level

    shape = property(lambda self: self.value._array.shape[1:])
    strides = property(lambda self: self.value._array.strides[1:])
    ndim = property(lambda self: self.value._array.ndim - 1)
    # the dtype object of the table, because ops compare by identity: an unpickled array's dtype is an equal object
    dtype = property(lambda self: dtypes.of(self.value._array.dtype).numpy)
    itemsize = property(lambda self: self.value._array.itemsize)
    device = property(lambda self: self.value.device)
    size = property(lambda self: prod(self.value._array.shape[1:]))
    nbytes = property(lambda self: self.size * self.itemsize)

    flags = property(lambda self: self.first().flags)

    def first(self) -> np.ndarray:
        """The array of the first sample, for its memory layout."""
        array = self.value._array
        array = array if isinstance(array, np.ndarray) else array.first()
        return array[0] if len(array) else np.empty(self.shape, self.dtype)

    def __len__(self) -> int:
        return self.shape[0]

    def detached(self) -> Batch:
        """The same samples outside the graphs of this level and of the levels around it."""
        return Batch(detached(self.value), self.level)

    def __array_function__(self, function: Callable, types: Any, args: tuple, kwargs: dict) -> Any:
        """NumPy functions that need the shape only; any other raises `Touched`."""
        if function in (np.zeros_like, np.empty_like) and isinstance(args[0], Batch):
            like, *dtype = args
            dtype = kwargs.get("dtype", dtype[0] if dtype else None) or like.dtype
            whole = room_like(like.value._array, dtype, np.zeros if function is np.zeros_like else np.empty)
            return Batch(created(from_array(whole)), like.level)
        if function in (np.shape, np.ndim, np.size):
            return getattr(self, function.__name__)
        raise self.touched(function.__name__)

    def spread(self, array: np.ndarray) -> Any:
        """A new array repeated for each sample, as a Batch: a tensor created like a batched tensor is batched, too."""
        shape = (self.level.size, *array.shape)
        value = self.value._array
        whole = np.empty(shape, array.dtype)
        whole[...] = array
        return Batch(created(from_array(value.spread(whole) if isinstance(value, Batch) else whole)), self.level)

    @staticmethod
    def written(to: Tensor, source: Tensor) -> None:
        """Write `source` into `to`, at least one of them batched: writes into the values, outside of the vmap."""
        batch: Any = to._array
        level, inner = (batch.level if batch.__class__ is Batch else None), innermost((source,))
        if level is None or (inner is not None and inner.depth > level.depth):
            raise refused(source._array)  # type: ignore[arg-type]
        part = Part(source, level)
        level.call_outside(lambda: assign(batch.value, part.lined(batch.ndim)))

    def __setitem__(self, key: Any, number: Any) -> None:
        """`array[...] = number`."""
        if key is not Ellipsis:
            raise self.touched("an index")
        self.value._array[...] = number

    def touched(self, what: str) -> Touched:
        if what in DYNAMIC:
            return Touched(
                explain(
                    "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap "
                    f"over aten::{what}.",
                    "use torch.where(), or call it outside of vmap",
                ),
                self,
            )
        return Touched(NUMBERS, self, what)

    def __array_ufunc__(self, ufunc: Any, *args: Any, **kwargs: Any) -> Any:
        raise Touched(NUMBERS, self, ufunc.__name__)

    def __bool__(self) -> bool:
        raise Touched(explain(CONTROL_FLOW, "torch.where(condition, a, b) chooses for each sample"), self)

    def item(self) -> Any:
        raise Touched(explain(ITEM, "return the tensor, and call .item() outside of vmap"), self)

    tolist = item

    def numpy(self) -> Any:
        raise Touched(
            explain(
                "Cannot access data pointer of Tensor that doesn't have storage",
                "inside vmap a tensor holds all samples: return it, and test it outside",
            ),
            self,
        )

    def shown(self) -> str:
        """The text for print: all samples."""
        inside = repr(self.value).replace("\n", "\n    ")
        return f"BatchedTensor(lvl={self.level.depth}, bdim=0, value=\n    {inside}\n)"

    def run(self, op: Op, args: tuple) -> Any:
        """Run an op on arguments that contain this batch."""
        return run(op, args)


# -- in and out of a level -------------------------------------------------------------------------


def is_batched(t: Tensor) -> bool:
    """Whether the tensor is batched by a vmap."""
    return isinstance(t._array, Batch)


def wrap(value: Tensor, level: Level) -> Tensor:
    """The batched tensor of `value`, (B, *shape)."""
    return from_array(Batch(value, level))  # type: ignore[arg-type]


def spread_as(x: Tensor, like: Tensor) -> Tensor:
    """x, repeated for the samples of each level at which `like` is batched and x is not, so that `like` can be written
    into x.
    """
    batch, own = cast(Any, like._array), cast(Any, x._array)
    if batch.__class__ is not Batch:
        return x
    level = batch.level
    if own.__class__ is not Batch or own.level.depth < level.depth:
        blank = created(from_array(np.zeros((level.size, *x._array.shape), x._array.dtype)))
        # a sum, because it makes a node if x has one
        return x + wrap(level.call_outside(spread_as, blank, batch.value), level)
    value = own.level.call_outside(spread_as, own.value, batch.value if own.level is level else like)
    if value is own.value:
        return x
    made = wrap(value, own.level)
    made._node = x._node
    return made


def recorded(x: Tensor) -> bool:
    """Whether x has a node, in its own graph or in the graph of an outer level."""
    return x._node is not None or recorded_below(x)


def recorded_below(x: Tensor) -> bool:
    """Whether the values of a batched tensor have a node, at any outer level."""
    array: Any = x._array
    while array.__class__ is Batch:
        if array.value._node is not None:
            return True
        array = array.value._array
    return False


def refused(source: Batch) -> Touched:
    """The error for writing a batched tensor into a tensor that all samples share."""
    return Touched(
        explain(IN_PLACE, "write x = x + y; or create the tensor with new_zeros() or zeros_like() of a mapped tensor"),
        source,
    )


class Part:
    """An argument of an op at a level.

    `value`: the tensor of all samples if `mapped`, else the tensor that all samples share. `ndim`: the dimensions of
    one sample. `node`: the argument's node in the level's graph. A shared tensor has a node in this graph only if the
    node was made inside the vmap; its node in an outer graph is used by the ops on the values."""

    __slots__ = ("value", "mapped", "ndim", "_node", "level")

    def __init__(self, t: Tensor, level: Level):
        array: Any = t._array
        self.level = level
        if array.__class__ is Batch and array.level is level:
            self.value: Tensor = array.value
            self.mapped, self.ndim, self._node = True, array.value._array.ndim - 1, t._node
        else:
            self.value, self.mapped, self.ndim = t, False, array.ndim
            self._node = t._node if t._node is not None and t._node.seq > level.since else None

    def lined(self, ndim: int) -> Tensor:
        """The value as (B, 1, ..., *shape) with `ndim` dimensions per sample, so that samples broadcast from the
        right."""
        missing = ndim - self.ndim
        if not self.mapped or missing <= 0:
            return self.value
        shape = self.value._array.shape
        return self.value.reshape(shape[:1] + (1,) * missing + shape[1:])

    def whole(self, ndim: int | None = None) -> Tensor:
        """The value as (B, 1, ..., *shape); a shared tensor is expanded."""
        missing = max((ndim or 0) - self.ndim, 0)
        if self.mapped:
            return self.lined(ndim or 0)
        shape = self.value._array.shape
        return self.value.expand((self.level.size, *(1,) * missing, *shape))


def innermost(args: Iterable) -> Level:
    """The innermost level of the batched arguments, or None. RuntimeError if the vmap of that level has returned."""
    found: Any = None
    for t in tensors_of(args):
        array: Any = t._array
        if array.__class__ is Batch:
            level = array.level
            if not level.open:
                raise runtime_error(
                    "Either your tensor may have escaped from inside a function being vmapped and this is a user "
                    "error (see https://pytorch.org/functorch/stable/ux_limitations.html)",
                    "return it from the mapped function instead",
                    vmap_of=level.name,
                )
            if found is None or level.depth > found.depth:
                found = level
    return found


# -- running an op ---------------------------------------------------------------------------------

# one function, op -> batching rule, registered by func/batching_families.py, which imports this module
RULES: list[Callable] = []


def run(op: Op, args: tuple, level: Level | None = None) -> Any:
    """Run the op on batched arguments (in the order of its entry), and record it at their level."""
    return runner(op)(args, level or innermost(args))


@cache
def runner(op: Op) -> Callable[[tuple, Level], Any]:
    """The function (args, level) -> outputs of an op, with everything that does not depend on the call."""
    n, rule, is_view, is_reduction = len(op.inputs), RULES[0](op), op.family is view, op.family is reduction
    ruled = [op.rules[name] is not None for name in op.inputs]
    result = result_type(op)

    def run(args: tuple, level: Level) -> Any:
        parts: list[Any] = [
            None if a is None else [Part(t, level) for t in a] if a.__class__ is tuple else Part(a, level)
            for a in args[:n]
        ]
        m = mode()
        token = current.set(level.around(m))
        try:
            made, mapped = rule(op, level, parts, args[n:])
        finally:
            current.reset(token)
        if not mapped:  # random numbers that all samples share
            return made
        edges = edges_of(ruled, parts) if m.grad else ()
        if is_reduction:
            args = with_dims(args)
        if not isinstance(made, Tensor):
            outs = [wrap(t, level) for t in made]
            if any([e is not None for e in edges]):
                record(op, args, edges, outs)
            out = result(outs)
        elif is_view and made is parts[0].value:
            return args[0]
        else:
            out = wrap(made, level)
            if any([e is not None for e in edges]):
                record(op, args, edges, [out])
            if is_view and made._viewing is not None:
                register(out, args[0], op.call, args[1:], m.grad)
        if m.watch is not None:
            m.watch.on_op(op, args, out)
        return out

    return run


def with_dims(args: tuple) -> tuple:
    """The arguments of a reduction with `dim` as a tuple of dimensions >= 0."""
    x, dim, *more = args
    return x, None if dim is None else reduced_dims(dim, x._array.ndim), *more


def edges_of(ruled: Sequence[bool], parts: Sequence) -> tuple:
    """The nodes of the inputs in the level's graph; None for an input without a rule."""
    edges: list = []
    for p, has_rule in zip(parts, ruled):
        if p.__class__ is not list:
            edges.append(p._node if has_rule and p is not None else None)
        elif has_rule:
            edges += [one._node for one in p]
    return tuple(edges)


def record(op: Op, args: tuple, edges: tuple, outs: list[Tensor]) -> None:
    """Make the node of the outputs, as the op's family does for arrays."""
    arrays: list = [t._array for t in outs]
    node = object.__new__(op.node_class)
    node.edges, node.seq, node.where, node.shape = edges, tick(), outside(frame(3)), arrays[0].shape
    node.saved = saved(op, args, edges, arrays)
    if not several(op):
        outs[0]._node = node
        return
    node.shape = None
    for i in smooth(op, arrays):
        outs[i]._node = Output(node, i, tick(), arrays[i].shape)


def saved(op: Op, args: tuple, edges: tuple, arrays: list) -> tuple:
    """The values that the node of the outputs `arrays` saves."""
    if op.family is reduction:
        x, axes = args[0], args[1]
        shape = x._array.shape
        kept = kept_shape(shape, tuple(range(len(shape))) if axes is None else axes)
        return saved_facts(op.saves, x, arrays[0], shape, axes, kept)
    found = op.save(args, edges, arrays)
    if not several(op):
        return found
    chosen = smooth(op, arrays)
    return (*found, tuple([(a.shape, a.dtype) if i in chosen else None for i, a in enumerate(arrays)]))


def several(op: Op) -> bool:
    """Whether the op has several outputs: its rules take a list of gradients."""
    return bool(op.options.get("list")) or len(op.options.get("outputs", "").split()) > 1


def smooth(op: Op, arrays: list) -> list[int]:
    """The positions of the outputs that have a gradient."""
    return [i for i, a in enumerate(arrays) if a.dtype.kind in "fcV" and i != op.options.get("fixed")]


WARNED: set[str] = set()


def slow(name: str) -> None:
    """Warn, once per name, that an op runs sample by sample."""
    if name not in WARNED:
        WARNED.add(name)
        warn(
            f"There is a performance drop because we have not yet implemented the batching rule for {name}: it runs "
            "sample by sample"
        )


def rules(function: Callable) -> Callable:
    RULES.append(function)
    return function
