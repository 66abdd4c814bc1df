"""Views, joining and splitting, copies, padding."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.onnx.to_onnx.elementwise import where
from rushlight.onnx.to_onnx.onnx_graph import BOOL, END, NotExpressed, Symbol
from rushlight.onnx.to_onnx.rules import Step, expresses
from rushlight.onnx.to_onnx.sizes import remainder
from rushlight.ops.index import along_dim
from rushlight.ops.shape import as_strided, pad, views
from rushlight.ops.tensor import traced_writes

COPIES = views.contiguous, views.clone, views.placed, views.laid_out


@expresses(*COPIES, along_dim.without_gradient, along_dim.with_scaled_gradient)
def write_copy(step: Step) -> Symbol:
    return step.args[0]


@expresses(views.to)
def write_to(step: Step) -> Symbol:
    return step.args[0].to(step.out.dtype)


@expresses(views.reshape, views.view_as_shape, views.flatten, views.unflatten)
def write_reshape(step: Step) -> Symbol:
    return step.graph.reshaped(step.args[0], step.out.shape)


@expresses(views.squeeze)
def write_squeeze(step: Step) -> Symbol:
    x, dims = step.args[0], step.setting(1)
    dims = (
        range(x.ndim) if dims is None else [d % max(x.ndim, 1) for d in (dims if isinstance(dims, tuple) else (dims,))]
    )
    return step.graph.squeezed(x, [d for d in dims if x.ndim and x.shape[d] == 1])


@expresses(views.unsqueeze)
def write_unsqueeze(step: Step) -> Symbol:
    x, dim = step.args
    return step.graph.unsqueezed(x, [dim % (x.ndim + 1)])


@expresses(views.transpose)
def write_transpose(step: Step) -> Symbol:
    x, first, second = step.args
    order = [*range(x.ndim)]
    if x.ndim:
        order[first], order[second] = order[second], order[first]
    return step.graph.transposed(x, order)


@expresses(views.permute)
def write_permute(step: Step) -> Symbol:
    x, order = step.args
    return step.graph.transposed(x, [d % max(x.ndim, 1) for d in order])


@expresses(views.unpermute)
def write_unpermute(step: Step) -> Symbol:
    x, order = step.args
    return step.graph.transposed(x, np.argsort(order).tolist())


@expresses(views.expand)
def write_expand(step: Step) -> Symbol:
    return step.graph.expanded(step.args[0], step.out.shape)


@expresses(views.repeat)
def write_repeat(step: Step) -> Symbol:
    x, repeats = step.args
    x = step.graph.unsqueezed(x, range(len(repeats) - x.ndim))
    return x.named("Tile", step.graph.integers(repeats)) if repeats else x


@expresses(views.narrow)
def write_narrow(step: Step) -> Symbol:
    x, dim, start, length = step.args
    start = x.shape[dim] + start if isinstance(start, int) and start < 0 else start
    return step.graph.sliced(x, dim % x.ndim, start, start + length)


@expresses(views.select)
def write_select(step: Step) -> Symbol:
    x, dim, index = step.args
    return x.named("Gather", step.graph.scalar(index), axis=dim % x.ndim)


@expresses(views.getitem)
def write_getitem(step: Step) -> Symbol:
    x, key = step.args
    return taken(x, key)


def taken(x: Symbol, key: tuple) -> Symbol:
    """x[key] for a key of slices, integers, None and `...`."""
    graph, dim, at = x.graph, 0, 0
    rest = x.ndim - sum(part is not None and part is not Ellipsis for part in key)
    starts: list[tuple] = []  # (dimension, start, stop, step)
    gone, new = [], []  # dimensions to remove; dimensions of the result to insert
    for part in key:
        if part is None:
            new.append(at)
            at += 1
        elif part is Ellipsis:
            dim, at = dim + rest, at + rest
        elif isinstance(part, slice):
            starts += [(dim, *ends)] if (ends := ends_of(part)) != (0, END, 1) else []
            dim, at = dim + 1, at + 1
        else:
            starts.append((dim, part, END if part == -1 else part + 1, 1))
            gone.append(dim)
            dim += 1
    if starts:
        numbers = [graph.integers(column) for column in zip(*starts)]
        x = x.named("Slice", numbers[1], numbers[2], numbers[0], numbers[3])
    return graph.unsqueezed(graph.squeezed(x, gone), new)


def ends_of(part: slice) -> tuple:
    """(start, stop, step) of a slice, as ONNX takes them."""
    step = 1 if part.step is None else part.step
    backward = isinstance(step, int) and step < 0
    start = (END if backward else 0) if part.start is None else part.start
    stop = (-END if backward else END) if part.stop is None else part.stop
    return start, stop, step


@expresses(views.diagonal)
def write_diagonal(step: Step) -> Symbol:
    x, offset, first, second = step.args[0], step.setting(1, 0), step.setting(2, 0), step.setting(3, 1)
    first, second = first % x.ndim, second % x.ndim
    rest = [d for d in range(x.ndim) if d not in (first, second)]
    x = step.graph.transposed(x, [*rest, first, second])
    rows, columns, length = x.shape[-2], x.shape[-1], step.out.shape[-1]
    flat = step.graph.reshaped(x, [*x.shape[:-2], rows * columns])
    start = offset if offset >= 0 else -1 * offset * columns
    along = step.graph.counted(length) * step.graph.scalar(columns + 1) + step.graph.scalar(start)
    return flat.named("Gather", along, axis=len(rest))


@expresses(views.embed_diagonal)
def write_embed_diagonal(step: Step) -> Symbol:
    """Zeros with x on a diagonal. Element k stands in row k for an offset above 0, otherwise in column k."""
    x, shape, offset, first, second = step.args
    graph, ndim, below = step.graph, len(step.out.shape), offset < 0
    first, second = first % ndim, second % ndim
    rows, columns = (graph.counted(shape[d]) for d in (first, second))
    there = graph.unsqueezed(rows, [1]) + offset == columns
    length = shape[second if below else first]
    line = x.named("Pad", graph.integers([*[0] * (2 * x.ndim - 1), length - x.shape[-1]]))
    line.shape = (*x.shape[:-1], length)
    made = where(there, graph.unsqueezed(line, [x.ndim - 1 if below else x.ndim]), 0)
    made.shape = (*x.shape[:-1], shape[first], shape[second])
    rest = [d for d in range(ndim) if d not in (first, second)]
    return graph.transposed(made, np.argsort([*rest, first, second]).tolist())


@expresses(views.unfold_dim)
def write_unfold(step: Step) -> Symbol:
    x, dim, size, stride = step.args
    dim %= x.ndim
    count = step.out.shape[dim]
    starts = step.graph.unsqueezed(step.graph.counted(count) * step.graph.scalar(stride), [1])
    windows = x.named("Gather", starts + step.graph.counted(size), axis=dim)
    windows.shape = (*x.shape[:dim], count, size, *x.shape[dim + 1 :])
    order = [d for d in range(x.ndim + 1) if d != dim + 1]
    return step.graph.transposed(windows, [*order, dim + 1])


@expresses(views.add_windows)
def write_add_windows(step: Step) -> Symbol:
    """The elements of windows, a last dimension of x, added at their places along a dimension."""
    x, shape, dim, size, stride = step.args
    graph, dim = step.graph, dim % len(shape)
    count = x.shape[dim]
    rest = [d for d in range(x.ndim - 1) if d != dim]
    windows = graph.transposed(x, [*rest, dim, x.ndim - 1])
    lead = [x.shape[d] for d in rest]
    flat = graph.reshaped(windows, [*lead, count * size])
    starts = graph.unsqueezed(graph.counted(count) * graph.scalar(stride), [1])
    at = graph.reshaped(starts + graph.counted(size), [count * size])
    at = graph.expanded(at, [*lead, count * size])
    zeros = graph.filled([*lead, shape[dim]], 0, x.dtype)
    made = zeros.named("ScatterElements", at, flat, axis=len(rest), reduction="add", shape=zeros.shape)
    return graph.transposed(made, np.argsort([*rest, dim]).tolist())


@expresses(views.flip)
def write_flip(step: Step) -> Symbol:
    x, dims = step.args
    dims = [d % x.ndim for d in dims] if x.ndim else []
    for dim in dims:
        x = step.graph.sliced(x, dim, -1, -END, -1)
    return x


@expresses(views.rolled)
def write_roll(step: Step) -> Symbol:
    x, moves, axes = step.args[:3]
    shape = x.shape
    for move, axis in zip(moves, axes):
        cut = remainder(move if step.setting(3, False) else -1 * move, shape[axis])
        parts = step.graph.sliced(x, axis, cut, END), step.graph.sliced(x, axis, 0, cut)
        x = step.graph.joined(parts, axis)
    return x


@expresses(views.tril, views.triu)
def write_tril(step: Step) -> Symbol:
    x, offset = step.args[0], step.setting(1, 0)
    whole = x.to(np.int64) if x.dtype.itemsize < 4 and x.dtype.kind in "iu" else x
    return whole.named("Trilu", step.graph.scalar(offset), upper=int(step.runs(views.triu))).to(x.dtype)


# -- joining and splitting ---------------------------------------------------------------------------


@expresses(views.cat)
def write_cat(step: Step) -> Symbol:
    tensors, dim = step.args[0], step.setting(1, 0)
    kept = [t for t in tensors if t.shape != (0,)] or tensors[:1]
    return step.graph.joined([t.to(step.out.dtype) for t in kept], dim % kept[0].ndim)


@expresses(views.stack)
def write_stack(step: Step) -> Symbol:
    tensors, dim = step.args[0], step.setting(1, 0)
    dim %= tensors[0].ndim + 1
    return step.graph.joined([step.graph.unsqueezed(t.to(step.out.dtype), [dim]) for t in tensors], dim)


@expresses(views.unbind)
def write_unbind(step: Step) -> list:
    x, dim = step.args[0], step.setting(1, 0)
    return [x.named("Gather", step.graph.scalar(k), axis=dim % x.ndim) for k in range(len(step.results))]


@expresses(views.split_sizes)
def write_split(step: Step) -> list:
    (x, lengths), dim = step.args[:2], step.setting(2, 0)
    results = [(x.dtype, r.shape) for r in step.results]
    return step.graph.nodes_of("Split", [x, step.graph.integers(lengths)], results, axis=dim % x.ndim)


# -- regions of memory, which traced writes through views change ---------------------------------------


def places(graph: Any, shape: tuple, strides: tuple, start: Any) -> Symbol:
    """The flat places of a region's elements: start + the sum of index * stride."""
    total = graph.number(start)
    for dim, (size, stride) in enumerate(zip(shape, strides)):
        along = graph.counted(size) * graph.scalar(stride)
        total = total + graph.unsqueezed(along, range(1, len(shape) - dim))
    return graph.reshaped(total, shape) if shape else graph.squeezed(total, [0])


@expresses(traced_writes.region, as_strided.lie)
def write_region(step: Step) -> Symbol:
    x, shape, strides, start = step.args[:4]
    if step.runs(as_strided.lie) and tuple(step.args[4]) != in_order(x.shape):
        raise NotExpressed("as_strided of a tensor that is not contiguous")
    flat = step.graph.reshaped(x, [-1])
    found = flat.named("Gather", places(step.graph, shape, strides, start), axis=0)
    return found


def in_order(shape: tuple) -> tuple:
    """The strides of a contiguous array, in elements."""
    strides: list = [1]
    for size in shape[:0:-1]:
        strides.append(size * strides[-1])
    return tuple(strides[::-1][: len(shape)])


@expresses(traced_writes.with_region)
def write_with_region(step: Step) -> Symbol:
    x, y, shape, strides, start = step.args[:5]
    graph = step.graph
    at = graph.reshaped(places(graph, shape, strides, start), [-1])
    values = graph.reshaped(graph.expanded(y.to(x.dtype), shape), [-1])
    changed = graph.reshaped(x, [-1]).named("ScatterElements", at, values, axis=0)
    changed.shape = None
    return graph.reshaped(changed, step.out.shape)


# -- padding -----------------------------------------------------------------------------------------


@expresses(pad.constant_pad)
def write_pad(step: Step) -> Symbol:
    x, amounts, value = step.args
    pads = [pair[0] for pair in amounts] + [pair[1] for pair in amounts]
    whole = x.to(np.int32) if x.dtype == BOOL else x
    number = step.graph.constant(np.array(value, whole.dtype))
    return whole.named("Pad", step.graph.integers(pads), number).to(x.dtype)


@expresses(pad.bordered)
def write_border(step: Step) -> Symbol:
    x, mode, amounts = step.args
    pads = [pair[0] for pair in amounts] + [pair[1] for pair in amounts]
    if mode == "circular":
        return circular(x, amounts)
    return x.named("Pad", step.graph.integers(pads), mode="edge" if mode == "replicate" else mode)


def circular(x: Symbol, amounts: Any) -> Symbol:
    """x with its other end before and after it; ONNX has this mode since opset 19."""
    graph = x.graph
    shape = [*x.shape]
    for dim, (before, after) in enumerate(amounts):
        if before == 0 and after == 0:
            continue
        head = [graph.sliced(x, dim, shape[dim] - before, END)] if before != 0 else []
        tail = [graph.sliced(x, dim, 0, after)] if after != 0 else []
        x = graph.joined([*head, x, *tail], dim)
    return x
