"""Views and in-place writes: which tensors share memory, and what a write does to the graph.

A write into a tensor is `x = f(x)` in the graph. A write through a view rewrites the base: the base gets a new node,
`CopySlices`. That node passes the gradient outside the written region to the base's old node, and the gradient of the
region to the node of the written value. Then all views of the base get new nodes, by repeating the view ops on the
base."""

from __future__ import annotations

from _thread import allocate_lock as Lock
from collections.abc import Callable
from functools import partial
from sys import _getframe as frame
from typing import Any
from weakref import ref

import numpy as np
from numpy import ndarray

from rushlight.base.errors import describe, runtime_error, type_error, user_frame, warn, warn_once
from rushlight.base.memory_format import copy_of
from rushlight.core.mode import current, mode
from rushlight.core.node import Node, at_next_write, hooks_of, stamp, tick
from rushlight.core.table import TABLE
from rushlight.core.tensor import Tensor, from_array, writes_of

views_of = Tensor._views.__get__  # type: ignore[attr-defined]  # AttributeError for an empty slot, without __getattr__
MAKING = Lock()  # held while a tensor's list of views is made or shortened


def register(view: Tensor, parent: Tensor, replay: Callable, settings: tuple, recorded: bool | None = None) -> None:
    """Register `view = replay(parent, *settings)` as a view of the parent. `recorded`: whether grad mode is on."""
    if view is parent:
        return
    root = parent if parent._viewing is None else parent._viewing[0]
    view._viewing = (root, parent, replay, settings, mode().grad if recorded is None else recorded)
    add_view(root, view)


def add_view(root: Tensor, view: Tensor) -> None:
    """Add `view` to the list of the root's views."""
    try:
        views = views_of(root)
    except AttributeError:
        views = first_views(root)
    views.append(ref(view))
    n = len(views)
    if n > 16 and n & (n - 1) == 0:  # at powers of two: amortized constant cost
        forget_lost(views)


def forget_lost(views: list) -> None:
    """Remove dead weak references from a list of views."""
    if MAKING.acquire(blocking=False):
        try:
            n = len(views)  # other threads may append behind the first n
            views[:n] = [v for v in views[:n] if v() is not None]
        finally:
            MAKING.release()


def first_views(root: Tensor) -> list:
    """The list of the root's views; made under a lock, so that two threads get the same list."""
    with MAKING:
        try:
            return views_of(root)
        except AttributeError:
            root._views = []
            return root._views


def unregistered(view: Tensor) -> Tensor:
    """`view`, no longer registered as a view. For results whose base no other tensor uses."""
    view._viewing = None
    return view


def detached(x: Tensor) -> Tensor:
    """A tensor on x's memory, outside the graph. Both share the write log."""
    a = x._array
    # `detached` is a method of the batched arrays of vmap
    t = from_array(a if a.__class__ is np.ndarray or not hasattr(a, "detached") else a.detached())
    t._writes = writes_of(x)
    return t


def leave_graph(x: Tensor) -> None:
    """Take a tensor (not a view) out of the graph. Its views stay in the graph until the next write."""
    # the samples of a batched tensor leave the graph, too
    x._array, x._node = detached(x)._array, None
    if views := [ref(view) for view in living_views(x) if view._node is not None]:
        at_next_write(writes_of(x), "leave", partial(take_out, views))


def take_out(views: list) -> None:
    """Take these views out of the graph, because no node computed their new elements."""
    for weak in views:
        if (view := weak()) is not None:
            view._node = None


def register_opaque(view: Tensor, parent: Tensor) -> Tensor:
    """Mark `view` as a view of `parent` that a user's Function returned.

    Only the Function's backward knows how the view depends on the base. So a recorded write into the view is an error
    (`check_writable`), and after any write to the base backward from the view is an error (`Stale`)."""
    root = parent._root
    if view._viewing is None or view._viewing[2] is not None:
        add_view(root, view)
    view._viewing = (root, parent, None, (), False)
    at_next_write(writes_of(root), "function", partial(make_stale, ref(root)))
    return view


def make_stale(weak: ref) -> None:
    """Give a `Stale` node to views of a rewritten base that a Function returned, and to views of these."""
    root = weak()
    for view in [] if root is None else all_views(root):
        if view._node is not None and is_opaque(view):
            view._node = Stale(view, writes_of(view).where)


def is_opaque(view: Tensor) -> bool:
    """Whether a Function returned this view, or a view that leads to it."""
    while view._viewing is not None:
        if view._viewing[2] is None:
            return True
        view = view._viewing[1]
    return False


class Region:
    """A part of a tensor, as the chain of view ops that lead from the base to that part. `key`: the index, where the
    chain is one index."""

    __slots__ = ("key", "path")

    def __init__(self, view: Tensor):
        path = []
        while view._viewing is not None:
            _, parent, replay, settings, _ = view._viewing
            if replay is None:
                raise of_a_function()
            path.append((replay, settings))
            view = parent
        self.path = tuple(reversed(path))
        self.key = path[0][1][0] if len(path) == 1 and path[0][0] is TABLE["getitem"].call else None

    def of(self, base: Tensor) -> Tensor:
        """The region of `base`, as a view of `base`."""
        for replay, settings in self.path:
            base = replay(base, *settings)
        return base


class CopySlices(Node):
    """The base's node after a write through a view. Edges: the nodes of the old base and of the written value."""

    __slots__ = ("in_order", "region", "strides")
    region: Region
    in_order: bool  # whether the base is contiguous in C order
    strides: tuple  # of the base, in elements: the meaning of as_strided depends on the base's strides

    def arrays(self, g: np.ndarray) -> tuple:
        key = self.region.key
        if key is not None and self.in_order and g.__class__ is np.ndarray:  # 6 us instead of 30
            rest = g.copy()
            inside = copy_of(rest[key])
            rest[key] = 0
            return rest, inside
        outside, inside = self.tensors(from_array(np.asarray(g)))  # g may be a NumPy scalar
        return outside._array, inside._array

    def tensors(self, g: Tensor) -> tuple:
        if g.stride() != self.strides:
            g = g._placed(self.strides)  # type: ignore[attr-defined]
        inside = self.region.of(g).clone()
        outside = g.clone()
        m = mode()
        # A tracer computes with symbolic arrays, whose strides are 0. A clone inside vmap may have other strides.
        has_strides = m.watch is None or m.watch.snapshots or m.batch is not None
        if has_strides and outside.stride() != self.strides:
            outside = outside._placed(self.strides)  # type: ignore[attr-defined]
        self.region.of(outside).zero_()
        return outside, inside


def assign(x: Tensor, r: Tensor, op: str | None = None) -> Tensor:
    """Write the elements of `r` into `x`, in memory and in the graph. Returns `x`. `op`: for errors."""
    check_fits(x, r, op)
    m = mode()
    recorded = m.grad and (x._node is not None or r._node is not None or x._root._node is not None)
    if m.watch is not None:
        m.watch.on_write_start(x)
    if recorded:
        check_writable(x, op)
        if r._array.dtype != x._array.dtype:
            r = r.to(x.dtype)
        if x._viewing is None and r._node is not None and (r._node.leaf or r._array.shape != x._array.shape):
            r = r.expand(x._array.shape)  # a new node, so that x does not become a leaf
        keep_old(x, r)
    write(x, r, op)
    if recorded:
        rebase(x, r)
    if m.watch is not None:
        m.watch.on_write(x, r)
    return x


DISCARDS = "Casting complex values to real discards the imaginary part"


def write_other_kind(x: Tensor, r: Tensor, op: str | None) -> None:
    """`write` of floats into integers, or of complex numbers into real ones."""
    a = r._array
    if a.dtype.kind == "c" and x._array.dtype.kind != "b":
        warn_once(DISCARDS)
        a = a.real
    np.copyto(x._array, a, casting="unsafe")
    wrote(x)


def write(x: Tensor, r: Tensor, op: str | None = None) -> None:
    """Copy the elements of r into x's memory. RuntimeError if elements of x overlap in memory, or x is read-only."""
    try:
        np.copyto(x._array, r._array)  # 'same_kind': casts that lose digits, but no parts
    except TypeError as error:
        if not hasattr(error, "batch"):
            return write_other_kind(x, r, op)
        error.batch.written(x, r)  # inside vmap
    except ValueError:
        from rushlight.kernels.layout import without_repeats  # rare

        if (once := without_repeats(x._array, r._array)) is not None:
            np.copyto(*once, casting="unsafe")
            return wrote(x)
        raise runtime_error(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory "
            "location, or its memory is read-only",
            "clone() the tensor before writing",
            op=op,
        ) from None
    wrote(x)


def wrote(x: Tensor) -> None:
    """Add the write that has just happened to x's write log, with the user's statement."""
    f = user_frame(2) or frame(1)
    stamp(writes_of(x), (f.f_code, f.f_lasti))


def expands(shape: tuple, to: tuple) -> bool:
    """Whether `shape` can be broadcast to the shape `to`."""
    return len(shape) <= len(to) and all(m in (1, n) for m, n in zip(shape[::-1], to[::-1]))


def check_shape(x: Tensor, r: Tensor, op: str | None = None) -> None:
    """RuntimeError unless r's shape can be broadcast to x's shape."""
    if r._array.shape != x._array.shape and not expands(r._array.shape, x._array.shape):
        raise runtime_error(
            f"output with shape {list(x.shape)} doesn't match the broadcast shape {list(r.shape)}",
            f"an in-place op keeps its shape: write a new tensor, x.{op.rstrip('_')}(...)"
            if op is not None and op.endswith("_") and op not in ("copy_", "fill_")
            else "give values of the shape to write to, or of sizes 1",
            op=op,
        )


def check_fits(x: Tensor, r: Tensor, op: str | None) -> None:
    check_shape(x, r, op)
    check_dtype(x, r, op)


def check_dtype(x: Tensor, r: Tensor, op: str | None) -> None:
    """RuntimeError if a float result would be stored as integers, or a complex result as real numbers."""
    if r._array.dtype is not x._array.dtype and r.dtype.category > x.dtype.category:
        raise runtime_error(
            f"result type {r.dtype.scalar_type} can't be cast to the desired output type {x.dtype.scalar_type}",
            f"convert the tensor first: x = x.to({r.dtype})",
            op=op,
        )


def check_writable(x: Tensor, op: str | None) -> None:
    """RuntimeError for a write that cannot be recorded: into a leaf, into a view made in no_grad or by a Function."""
    root, view = x._root, x
    while view._viewing is not None:
        _, parent, replay, _, recorded = view._viewing
        if replay is None:
            raise of_a_function(op)
        if not recorded:
            what = "A view" if view is x else "A view of a view, which"
            raise runtime_error(
                f"{what} was created in no_grad mode and is being modified inplace with grad mode enabled.",
                "make the view outside no_grad(), or clone() it",
                op=op,
            )
        view = parent
    if any(t._node is not None and t._node.leaf for t in (x, root)):
        what = "a leaf Variable" if x.is_leaf else "a view of a leaf Variable"
        raise runtime_error(
            f"{what} that requires grad is being used in an in-place operation.",
            "write inside `with torch.no_grad():`, or to a clone()",
            op=op,
        )


def of_a_function(op: str | None = None) -> RuntimeError:
    return runtime_error(
        "Output 0 of a custom Function is a view and is being modified inplace. This view was created inside a "
        "custom Function (or because an input was returned as-is), and its backward says nothing of the base.",
        "write to a clone() of it",
        op=op,
    )


class Stale(Node):
    """The node of a view that a Function returned, after a write to the view's base: the Function's backward belongs to
    the elements before the write."""

    __slots__ = ()

    def __init__(self, view: Tensor, where: tuple | None):
        self.edges, self.saved, self.seq, self.shape = (), (), tick(), view._array.shape
        self.where = where

    def arrays(self, g: np.ndarray) -> tuple:
        raise runtime_error(
            "Output 0 of a custom Function is a view and its base or another view of its base has been modified "
            "inplace. This view was created inside a custom Function (or because an input was returned as-is), "
            "and the Function's backward does not know about the write.",
            "return a clone() from the Function's forward, or write to a clone()",
            written_at=self.made_at,
        )

    tensors = arrays


def keep_old(x: Tensor, r: Tensor) -> None:
    """If r's node saved x, it saves a copy: the write changes x, and x will own that node."""
    node = r._node
    if node is not None and node.saved and any(s is x for s in node.saved):
        old = copy_with_node(x)
        node.saved = tuple(old if s is x else s for s in node.saved)


def copy_with_node(x: Tensor) -> Tensor:
    """A copy of x with the same node, for rules that need x as it was before a write."""
    token = current.set(mode().but(grad=False))
    try:
        old = x.clone()
    finally:
        current.reset(token)
    old._node = x._node
    return old


def rebase(x: Tensor, r: Tensor) -> None:
    """Give x the node of the written value r; if x is a view, give the base and all its views new nodes."""
    root = x._root
    if root is x:
        set_node(x, r._node)
    else:
        node = CopySlices()
        node.edges, node.saved, node.seq, node.shape = (root._node, r._node), (), tick(), root._array.shape
        node.where, node.region = (root._writes.where if root._writes else None), Region(x)
        node.strides, node.in_order = root.stride(), root._array.flags.c_contiguous
        set_node(root, node)
    token = current.set(mode().but(grad=True, watch=None))
    try:
        for view in living_views(root):
            _, parent, replay, settings, _ = view._viewing  # type: ignore[misc]
            set_node(view, replay(parent, *settings)._node)
    finally:
        current.reset(token)


def set_node(x: Tensor, node: Node | None) -> None:
    """Give x another node. `retain_grad` moves to the new node; hooks stay on the old node, as in torch."""
    old, x._node = x._node, node
    if (
        old is not None
        and node is not None
        and old is not node
        and not old.leaf
        and (hooks := old.hooks) is not None
        and hooks.retained is not None
        and hooks.retained() is x
    ):
        hooks_of(node, x._array.dtype).retained, hooks.retained = hooks.retained, None


def all_views(root: Tensor) -> list[Tensor]:
    """The views of a tensor that have not been freed, in the order in which they were made."""
    try:
        found = [weak() for weak in list(views_of(root))]
    except AttributeError:
        return []
    return [view for view in found if view is not None and view._viewing is not None]


def living_views(root: Tensor) -> list[Tensor]:
    """The views of a tensor that ops have made: `all_views` without the views that Functions returned."""
    return [view for view in all_views(root) if view._viewing[2] is not None]  # type: ignore[index]


# -- out= ------------------------------------------------------------------------------------------


def into(out: Any, result: Any, *apart: Tensor) -> Any:
    """Write the result into `out`, resized to the result's shape. Returns `out`.

    `apart`: the tensors whose memory `out` must not share.
    """
    if isinstance(result, tuple):
        for o, r in zip(out, result):
            check_out_dtype(o, r)
        return type(result)([into(o, r, *apart) for o, r in zip(out, result)])
    check_out(out)
    if result._node is not None or (out._node is not None and mode().grad):
        raise runtime_error(
            "functions with out=... arguments don't support automatic differentiation, but one of the arguments "
            "requires grad.",
            "leave out= away, or use no_grad()",
        )
    if out.dtype.category < result.dtype.category:
        raise runtime_error(
            f"result type {result.dtype.scalar_type} can't be cast to the desired output type {out.dtype.scalar_type}",
            f"give an out= of dtype {result.dtype}",
        )
    check_memory(out._array, [t._array for t in apart])
    watch = mode().watch
    if watch is not None:
        watch.on_write_start(out)
    if out._array.shape == result._array.shape:
        write(out, result)
    else:
        if out._array.size:
            warn(
                f"An output with one or more elements was resized since it had shape {list(out._array.shape)}, which "
                f"does not match the required output shape {list(result._array.shape)}. This behavior is deprecated, "
                "and in a future PyTorch release outputs will not be resized unless they have zero elements. You can "
                "explicitly reuse an out tensor t by resizing it, inplace, to zero elements with t.resize_(0)."
            )
        out._array = result._array.astype(out._array.dtype)
        wrote(out)
    if watch is not None:
        watch.on_write(out, result)
    return out


def filled(out: Any, result: Any) -> Any:
    """The result of an op on operands without arrays (sparse tensors), written into `out` if that is given."""
    if out is None:
        return result
    return out.copy_(result) if out.is_sparse or result.is_sparse else into(out, result)


def check_out(out: Any) -> None:
    """TypeError unless `out` is a tensor."""
    if not isinstance(out, Tensor):
        raise type_error(f"argument 'out' must be Tensor, not {type(out).__name__}", got=describe(out))


def check_out_dtype(out: Tensor, result: Tensor) -> None:
    """RuntimeError for another dtype. torch converts no results of ops with several outputs."""
    check_out(out)
    if out.dtype is not result.dtype:
        raise runtime_error(
            f"Expected out tensor to have dtype {result.dtype}, but got {out.dtype} instead",
            f"expected scalar type {result.dtype.scalar_type} but got {out.dtype.scalar_type}",
        )


def check_memory(out: ndarray, apart: list[ndarray]) -> None:
    """RuntimeError if elements of `out` share memory with each other, or with one of the other arrays."""
    what = None
    if out.size and 0 in out.strides and any(n > 1 and step == 0 for n, step in zip(out.shape, out.strides)):
        what = "more than one element of the written-to tensor refers"
    elif any(np.shares_memory(out, a) for a in apart if np.may_share_memory(out, a)):
        what = "some elements of the input tensor and the written-to tensor refer"
    if what is not None:
        raise runtime_error(
            f"unsupported operation: {what} to a single memory location. Please clone() the tensor before "
            "performing the operation."
        )
