"""Views and in-place writes: who shares memory with whom, and what a write does to the graph.

A write into a tensor is `x = f(x)` for its node. A write through a view rewrites the base: its new node passes gradient
outside the region to what the base was, and the region's to what was written; all views of the base are made again.
"""
from __future__ import annotations

from _thread import allocate_lock as Lock
from collections.abc import Callable, Iterable, Sequence
from sys import _getframe as frame
from weakref import ref

import numpy as np

from rushlight.autograd.clock import Left, stamp, tick
from rushlight.autograd.grad_mode import current, mode
from rushlight.autograd.node import Node, hooks_of
from rushlight.errors import explain, user_frame
from rushlight.tensor import Tensor, from_array, writes_of

views_of = Tensor.views.__get__  # type: ignore[attr-defined]  # the slot itself: an empty one asks nobody else
MAKING = Lock()                                   # threads that make a tensor's first views share one list


def register(view: Tensor, parent: Tensor, replay: Callable, settings: tuple, recorded: bool | None = None) -> None:
    """Note that `view = replay(parent, *settings)` shares the parent's memory; `recorded`: whether grad mode is on."""
    if view is parent:
        return
    root = parent if parent.viewing is None else parent.viewing[0]
    view.viewing = (root, parent, replay, settings, mode().grad if recorded is None else recorded)
    try:
        views = views_of(root)
    except AttributeError:
        views = first_views(root)
    views.append(ref(view))
    n = len(views)
    if n > 16 and n & (n - 1) == 0:               # at powers of two: constant cost on average
        forget_lost(views)


def register_all(made: Sequence[Tensor], parent: Tensor, replay: Callable, keys: Iterable) -> None:
    """Note of several views that each is `replay(parent, key)`, the parent no view of itself: 4,096 in half the time."""
    root = parent if parent.viewing is None else parent.viewing[0]
    recorded = mode().grad
    for view, key in zip(made, keys):
        view.viewing = (root, parent, replay, (key,), recorded)
    try:
        views = views_of(root)
    except AttributeError:
        views = first_views(root)
    before = len(views)
    views.extend(map(ref, made))
    if len(views) > 16 and len(views).bit_length() > before.bit_length():
        forget_lost(views)


def forget_lost(views: list) -> None:
    """Leave the views out of a list that nobody holds any more."""
    if MAKING.acquire(blocking=False):
        try:
            n = len(views)                        # what other threads append stays behind these
            views[:n] = [v for v in views[:n] if v() is not None]
        finally:
            MAKING.release()


def first_views(root: Tensor) -> list:
    """The list of the root's views, made by one thread only."""
    with MAKING:
        try:
            return views_of(root)
        except AttributeError:
            root.views = []
            return root.views


def released(view: Tensor) -> Tensor:
    """The tensor as nobody's view, where nobody else holds the memory: a result that was made in another shape."""
    view.viewing = None
    return view


def detached(x: Tensor) -> Tensor:
    """The same memory outside the graph; writes to either are noticed by both."""
    a = x.array
    t = from_array(a if a.__class__ is np.ndarray or not hasattr(a, "detached") else a.detached())     # a batch of vmap
    t.writes = writes_of(x)
    return t


def leave(x: Tensor) -> None:
    """Take a tensor that is no view out of the graph. Views of the tensor stay in the graph until the next write."""
    x.array, x.node = detached(x).array, None     # a batched tensor's samples leave theirs, too
    if views := [ref(view) for view in living_views(x) if view.node is not None]:
        writes = writes_of(x)
        writes.views, writes.__class__ = views, Left


def opaque(view: Tensor, parent: Tensor) -> Tensor:
    """`view` as one of the parent's memory that a user's Function handed out: only the Function's backward knows how the two
    hang together, so that what is written into it has no place in the graph (`check_writable`)."""
    view.viewing = (parent.root, parent, None, (), False)
    return view


class Region:
    """A part of a tensor, as the views that lead from the base to it."""

    __slots__ = ("path",)

    def __init__(self, view: Tensor):
        path = []
        while view.viewing is not None:
            _, parent, replay, settings, _ = view.viewing
            if replay is None:
                raise of_a_function()
            path.append((replay, settings))
            view = parent
        self.path = tuple(reversed(path))

    def of(self, base: Tensor) -> Tensor:
        """The region of `base`."""
        for replay, settings in self.path:
            base = replay(base, *settings)
        return base


class CopySlices(Node):
    """The base after a write through a view: edges lead to the base before, and to what was written."""

    __slots__ = ("region", "strides")
    region: Region
    strides: tuple                                # the base's, in elements: some views depend on how it lies in memory

    def arrays(self, g: np.ndarray) -> tuple:
        outside, inside = self.tensors(from_array(np.asarray(g)))         # rules may hand over NumPy's numbers
        return outside.array, inside.array

    def tensors(self, g: Tensor) -> tuple:
        if g.stride() != self.strides:
            g = g._placed(self.strides)  # type: ignore[attr-defined]
        inside = self.region.of(g).clone()  # type: ignore[attr-defined]
        outside = g.clone()  # type: ignore[attr-defined]
        m = mode()
        real = m.watch is None or m.watch.snapshots or m.batch is not None     # a tracer's arrays stand in, strides are 0
        if real and outside.stride() != self.strides:                          # a copy of samples of a vmap leaves no gaps
            outside = outside._placed(self.strides)  # type: ignore[attr-defined]
        self.region.of(outside).zero_()  # type: ignore[attr-defined]
        return outside, inside


def assign(x: Tensor, r: Tensor, op: str | None = None) -> Tensor:
    """Write the elements of `r` into `x`, in memory and in the graph. Returns `x`; `op` is named in errors."""
    check_fits(x, r, op)
    m = mode()
    recorded = m.grad and (x.node is not None or r.node is not None or x.root.node is not None)
    if m.watch is not None:
        m.watch.writing(x)
    if recorded:
        check_writable(x, op)
        if r.array.dtype != x.array.dtype:
            r = r.to(x.dtype)  # type: ignore[attr-defined]
        if x.viewing is None and r.node is not None and (r.node.leaf or r.array.shape != x.array.shape):
            r = r.expand(x.array.shape)  # type: ignore[attr-defined]    # a node of its own: x is no leaf
        keep_old(x, r)
    write(x, r, op)
    if recorded:
        rebase(x, r)
    if m.watch is not None:
        m.watch.wrote(x, r)
    return x


def write(x: Tensor, r: Tensor, op: str | None = None) -> None:
    """The elements of r into x's memory; RuntimeError if x repeats some, or must not be written to."""
    try:
        np.copyto(x.array, r.array, casting="unsafe")
    except TypeError as error:
        if not hasattr(error, "batch"):
            raise
        error.batch.written(x, r)                 # inside vmap
    except ValueError as error:
        if (once := without_repeats(x.array, r.array)) is not None:
            np.copyto(*once, casting="unsafe")
            return wrote(x)
        raise RuntimeError(explain("unsupported operation: more than one element of the written-to tensor refers to a "
                                   "single memory location, or its memory is read-only",
                                   "clone() the tensor before writing", op=op)) from error
    wrote(x)


def without_repeats(a: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """A part of an expanded tensor that holds each of its places once, and what of r is to be written there. None where r
    would write other numbers into each repeat, or the memory must not be written to."""
    from rushlight.memory import address, owner  # seldom asked for: no part of the import
    from rushlight.ops.kernels.strided import Memory

    repeated = [n > 1 and not step for n, step in zip(a.shape, a.strides)]
    r = np.broadcast_to(r, a.shape)
    if not isinstance(a, np.ndarray) or not owner(a).flags.writeable \
            or any(again and step for again, step in zip(repeated, r.strides)):
        return None
    first = *(slice(1) if again else slice(None) for again in repeated), ...
    once = a[first]
    reached = a.itemsize                          # windows share elements, and are not written
    for step, n in sorted((abs(step), n) for n, step in zip(once.shape, once.strides) if n > 1):
        if step < reached:
            return None
        reached += step * (n - 1)
    return np.asarray(Memory(once, once.__array_interface__ | {"data": (address(once), False)})).view(a.dtype), r[first]


def wrote(x: Tensor) -> None:
    """Note that x's memory has just been written to, and by which statement."""
    f = user_frame(2) or frame(1)
    stamp(writes_of(x), (f.f_code, f.f_lasti))


def expands(shape: tuple, to: tuple) -> bool:
    """Whether a tensor of `shape` can be repeated to the shape `to`."""
    return len(shape) <= len(to) and all(m in (1, n) for m, n in zip(shape[::-1], to[::-1]))


def check_shape(x: Tensor, r: Tensor, op: str | None = None) -> None:
    """RuntimeError unless r can be written into x."""
    if r.array.shape != x.array.shape and not expands(r.array.shape, x.array.shape):
        raise RuntimeError(explain(f"output with shape {list(x.shape)} doesn't match the broadcast shape "
                                   f"{list(r.shape)}", "an in-place op cannot change the shape: use the one "
                                   "without underscore", op=op))


def check_fits(x: Tensor, r: Tensor, op: str | None) -> None:
    check_shape(x, r, op)
    check_dtype(x, r, op)


def check_dtype(x: Tensor, r: Tensor, op: str | None) -> None:
    """RuntimeError for a result of floats that is to be kept as integers, or of complex numbers as real ones."""
    if r.array.dtype is not x.array.dtype and r.dtype.category > x.dtype.category:
        raise RuntimeError(explain(f"result type {r.dtype.scalar_type} can't be cast to the desired output type "
                                   f"{x.dtype.scalar_type}", f"convert the tensor first: x = x.to({r.dtype})", op=op))


def check_writable(x: Tensor, op: str | None) -> None:
    """RuntimeError for a write that the graph has no place for."""
    root, view = x.root, x
    while view.viewing is not None:
        _, parent, replay, _, recorded = view.viewing
        if replay is None:
            raise of_a_function(op)
        if not recorded:
            what = "A view" if view is x else "A view of a view, which"
            raise RuntimeError(explain(f"{what} was created in no_grad mode and is being modified inplace with grad mode "
                                       "enabled.", "make the view outside no_grad(), or clone() it", op=op))
        view = parent
    if any(t.node is not None and t.node.leaf for t in (x, root)):
        what = "a leaf Variable" if x.is_leaf else "a view of a leaf Variable"
        raise RuntimeError(explain(f"{what} that requires grad is being used in an in-place operation.",
                                   "write inside `with torch.no_grad():`, or to a clone()", op=op))


def of_a_function(op: str | None = None) -> RuntimeError:
    return RuntimeError(explain("Output 0 of a custom Function is a view and is being modified inplace. This view was "
                                "created inside a custom Function (or because an input was returned as-is), and its "
                                "backward says nothing of the base.", "write to a clone() of it", op=op))


def keep_old(x: Tensor, r: Tensor) -> None:
    """Where r's node has saved x itself, give it a copy: the rules need what x was, and no cycle may arise."""
    node = r.node
    if node is not None and node.saved and any(s is x for s in node.saved):
        old = as_it_is(x)
        node.saved = tuple(old if s is x else s for s in node.saved)


def as_it_is(x: Tensor) -> Tensor:
    """A copy of x at the same place in the graph, for rules that need what x was before a write."""
    token = current.set(mode().but(grad=False))
    try:
        old = x.clone()  # type: ignore[attr-defined]
    finally:
        current.reset(token)
    old.node = x.node
    return old


def rebase(x: Tensor, r: Tensor) -> None:
    """Give x (and, through it, its base and the base's views) the history of what was written."""
    root = x.root
    if root is x:
        renewed(x, r.node)
    else:
        node = CopySlices()
        node.edges, node.saved, node.seq, node.shape = (root.node, r.node), (), tick(), root.array.shape
        node.where, node.region = (root.writes.where if root.writes else None), Region(x)
        node.strides = root.stride()
        renewed(root, node)
    token = current.set(mode().but(grad=True, watch=None))
    try:
        for view in living_views(root):
            _, parent, replay, settings, _ = view.viewing  # type: ignore[misc]
            renewed(view, replay(parent, *settings).node)
    finally:
        current.reset(token)


def renewed(x: Tensor, node: Node | None) -> None:
    """Give x another history. Whoever asked for its gradient (`retain_grad`) gets that of what x is now; hooks stay with
    what it was, as in torch."""
    old, x.node = x.node, node
    if old is not None and node is not None and old is not node and not old.leaf and (hooks := old.hooks) is not None \
            and hooks.retained is not None and hooks.retained() is x:
        hooks_of(node, x.array.dtype).retained, hooks.retained = hooks.retained, None


def living_views(root: Tensor) -> list[Tensor]:
    """The views of a tensor's memory that somebody still holds, in the order in which they were made."""
    try:
        found = [weak() for weak in list(views_of(root))]
    except AttributeError:
        return []
    return [view for view in found if view is not None and view.viewing is not None and view.viewing[2] is not None]


def insert_before(view: Tensor, parent: Tensor) -> None:
    """Let a tensor on the way from the base to a view stand before the view among the base's views: writes renew them in
    this order."""
    views = views_of(view.root)
    with MAKING:
        views.insert(next((i for i, weak in enumerate(views) if weak() is view), len(views)), ref(parent))


def become(x: Tensor, view: Callable, op: str) -> Tensor:
    """Let x be what `view` makes of it, in the same memory, as `x.t_()` does. Returns x.

    If others view x's memory, or x another's, a tensor with x's old shape stays behind for them to start from.
    """
    m, inner = mode(), x.node is not None and not x.node.leaf
    if m.grad and x.node is not None:
        check_writable(x, op)
        writes_of(x)                              # known to x's node before x has another: it may have saved its output
    old, others = from_array(x.array), living_views(x)
    old.node, old.viewing, old.writes = x.node, x.viewing, x.writes
    if x.viewing is not None:
        insert_before(x, old)
    watch = m.watch
    if watch is not None:
        watch.moved(old, x)
    token = current.set(m.but(grad=m.grad or inner))        # in no_grad too: its node has to have its shape
    try:
        made = view(old)
    finally:
        current.reset(token)
    if watch is not None:
        watch.moved(x, made)
    viewed = x.viewing is not None or bool(others)
    for other in others:
        other.viewing = tuple(old if t is x else t for t in other.viewing[:2]) + other.viewing[2:]  # type: ignore[index]
    if others:
        old.views, x.views = [*map(ref, others), ref(x)], []
    x.array, x.viewing = made.array, made.viewing if viewed else None
    if inner:
        x.node = made.node
    elif x.node is not None and x.node.leaf:
        x.node.shape = x.array.shape
    wrote(x)
    return x
