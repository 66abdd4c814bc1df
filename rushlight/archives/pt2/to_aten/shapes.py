"""Views, joins, indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.kernels.index import HERE
from rushlight.onnx.to_onnx.sizes import together
from rushlight.ops.index import along_dim, getitem, index_tensors
from rushlight.ops.shape import pad, views
from rushlight.ops.tensor import traced_writes

from .dynamic_sizes import in_trace
from .rules import Step, called, expresses, same
from .writer import NotExpressed, Symbol

same("default", views.permute, views.unsqueeze, views.stack, views.cat, views.tril, views.triu, views.narrow)
same("default", views.expand, views.repeat, views.contiguous, views.clone, getitem.flip, views.diagonal)
same("int", views.transpose, views.select, views.unbind)
called("reshape.default", views.reshape, views.view_as_shape)
called("flatten.using_ints", views.flatten)
called("split_with_sizes.default", views.split_sizes)
called("unfold.default", views.unfold_dim)
called("clone.default", views.laid_out, views.placed)


@expresses(views.squeeze)
def write_squeeze(step: Step) -> Symbol:
    return step.call("reshape.default", step.args[0], step.outs[0][1])


@expresses(views.unflatten)
def write_unflatten(step: Step) -> Symbol:
    return step.call("reshape.default", step.args[0], step.outs[0][1])


@expresses(views.rolled)
def write_roll(step: Step) -> Symbol:
    x, moves, axes, back = (*step.args, False)[:4]
    return step.call("roll.default", x, [0 - n if back else n for n in moves], [*axes])


@expresses(pad.bordered)
def write_border(step: Step) -> Symbol:
    x, mode, amounts = step.args
    return step.call("pad.default", x, widths(amounts), mode)


@expresses(pad.constant_pad)
def write_constant_pad(step: Step) -> Symbol:
    x, amounts, value = step.args
    return step.call("constant_pad_nd.default", x, widths(amounts), value)


def widths(amounts: Any) -> list[int]:
    """The widths of a padding in torch's order: of the last dimension first, without dimensions that have none."""
    pairs = [*amounts]
    while pairs and not any(pairs[0]):
        pairs = pairs[1:]
    return [n for pair in reversed(pairs) for n in pair]


# -- indices -----------------------------------------------------------------------------------------


@expresses(getitem.getitem)
def write_getitem(step: Step) -> Symbol:
    x, key = step.args
    return basic(step, x, spelled_out(key, x.ndim))


def spelled_out(key: tuple, ndim: int) -> list[Any]:
    """The parts of a key, with a slice for each dimension that `...`, or the end of the key, stands for."""
    whole = [slice(None)] * (ndim - sum(part is not None and part is not Ellipsis for part in key))
    if not any(part is Ellipsis for part in key):
        return [*key, *whole]
    at = next(k for k, part in enumerate(key) if part is Ellipsis)
    return [*key[:at], *whole, *key[at + 1 :]]


def basic(step: Step, x: Symbol, parts: list[Any]) -> Symbol:
    """x at slices, integers and None, one after the other."""
    made, dim = x, 0
    for part in parts:
        if part is None:
            made = step.call("unsqueeze.default", made, dim)
        elif isinstance(part, slice):
            start, stop, stride = bounds(part, [t.shape[dim] for t in made.tensors])
            if not isinstance(stride, int) or stride < 0:
                raise NotExpressed("a slice goes backwards")
            if (start, stop, stride) != (0, made.shape[dim], 1):
                made = step.call("slice.Tensor", made, dim, start, stop, stride)
        elif isinstance(part, (int, np.integer)):
            made = step.call("select.int", made, dim, part)
            continue
        dim += 1
    return step.call("alias.default", made) if made is x else made


def bounds(part: slice, sizes: list[int]) -> list[Any]:
    """(start, stop, step) of a slice, for the sizes of a dimension in each example."""
    return [*map(together, zip(*[in_trace(part, k).indices(n) for k, n in enumerate(sizes)]))]


@expresses(index_tensors.index)
def write_index(step: Step) -> Symbol:
    x, tensors, key = step.args
    x, places = placed(step, x, tensors, key)
    return step.call("index.Tensor", x, places)


def placed(step: Step, x: Symbol, tensors: Any, key: tuple) -> tuple[Symbol, list[Any]]:
    """x after the slices of a key, and its index tensors, with None for dimensions that are taken whole."""
    width = sum([t.ndim - 1 for t in tensors if t.tensor._array.dtype == bool])
    parts, each = spelled_out(key, x.ndim - width), iter(tensors)
    # an integer beside index tensors counts as one
    parts = [step.writer.constant(np.array(p)) if isinstance(p, (int, np.integer)) else p for p in parts]
    kept = [slice(None) if part is HERE or isinstance(part, Symbol) else part for part in parts]
    if any(part is None or part != slice(None) for part in kept):
        x = basic(step, x, kept)
    return x, [next(each) if part is HERE else part if isinstance(part, Symbol) else None for part in parts]


@expresses(index_tensors.write_at)
def write_at(step: Step) -> Symbol:
    x, y, tensors, key = step.args[:4]
    if any(part is not HERE and part is not Ellipsis and part != slice(None) for part in key):
        raise NotExpressed("it writes at index tensors beside slices and integers")
    places = placed(step, x, tensors, key)[1]
    return step.call("index_put.default", x, places, y, bool(step.setting(4, False)))


@expresses(traced_writes.with_region)
def write_region(step: Step) -> Symbol:
    x, y, size, stride, start = step.args
    wide = y if y.shape == tuple(size) else step.call("expand.default", y, [*size])
    return step.call("as_strided_scatter.default", step.call("contiguous.default", x), wide, [*size], [*stride], start)


@expresses(traced_writes.region)
def write_look(step: Step) -> Symbol:
    x, size, stride, start = step.args[:4]
    return step.call("as_strided.default", step.call("contiguous.default", x), [*size], [*stride], start)


@expresses(along_dim.embedding)
def write_embedding(step: Step) -> Symbol:
    weight, index, *padding = step.args
    return step.call("embedding.default", weight, index, padding[0] if padding and padding[0] is not None else -1)


@expresses(along_dim.index_select, along_dim.gather)
def write_along(step: Step) -> Symbol:
    x, index, dim = step.args
    return step.call(f"{step.op.name}.default", x, dim, index)


@expresses(along_dim.scatter, along_dim.scatter_add, along_dim.index_add, along_dim.index_copy)
def write_scatter(step: Step) -> Symbol:
    x, index, source, dim = step.args
    if not source.ndim and index.ndim:
        source = step.call("expand.default", source, index.shape)
    return step.call(f"{step.op.name}.{'src' if step.runs(along_dim.scatter) else 'default'}", x, dim, index, source)


@expresses(along_dim.reduce_at)
def write_scatter_reduce(step: Step) -> Symbol:
    x, index, source, dim, how = step.args[:5]
    return step.call("scatter_reduce.two", x, dim, index, source, how, include_self=bool(step.setting(5, True)))
