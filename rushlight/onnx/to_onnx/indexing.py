"""Reading and writing at places that index tensors give."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rushlight.kernels.index import HERE
from rushlight.onnx.to_onnx.elementwise import WORLD
from rushlight.onnx.to_onnx.onnx_graph import BOOL, INT64, NotExpressed, Symbol
from rushlight.onnx.to_onnx.rules import Step, expresses
from rushlight.onnx.to_onnx.shapes import ends_of, taken
from rushlight.onnx.to_onnx.sizes import product
from rushlight.ops.index import along_dim, index_tensors


@expresses(along_dim.embedding)
def write_embedding(step: Step) -> Symbol:
    weight, index = step.args[:2]
    return weight.named("Gather", index, axis=0)


@expresses(along_dim.index_select)
def write_index_select(step: Step) -> Symbol:
    x, index, dim = step.args
    if not x.ndim:
        return x
    index = index if index.ndim else step.graph.unsqueezed(index, [0])
    return x.named("Gather", index, axis=dim % x.ndim)


@expresses(along_dim.gather)
def write_gather(step: Step) -> Symbol:
    x, index, dim = step.args
    if not x.ndim or not index.ndim:
        x, index = [a if a.ndim else step.graph.unsqueezed(a, [0]) for a in (x, index)]
        return step.graph.reshaped(x.named("GatherElements", index, axis=0), step.out.shape)
    return x.named("GatherElements", index, axis=dim % x.ndim)


@expresses(along_dim.scatter, along_dim.scatter_add)
def write_scatter(step: Step) -> Symbol:
    x, index, source, dim = step.args
    return scattered(step, x, index, source, dim, "add" if step.runs(along_dim.scatter_add) else None)


@expresses(along_dim.reduce_at)
def write_scatter_reduce(step: Step) -> Symbol:
    x, index, source, dim, how = step.args[:5]
    kind = NEUTRAL[how]
    if not step.setting(5, True):  # the elements before do not count: a neutral element stands in their place
        neutral = kind.number if x.dtype.kind == "f" or np.isfinite(kind.number) else extreme(x.dtype, kind.number)
        x = scattered(step, x, index, step.graph.constant(np.array(neutral, x.dtype)), dim, None)
    total = scattered(step, x, index, source, dim, kind.operator)
    if how != "mean":
        return total
    ones = [step.graph.constant(np.array(n, x.dtype)) for n in (1, int(step.setting(5, True)))]
    start = step.graph.expanded(ones[1], x.shape)
    if not step.setting(5, True):
        start = step.graph.filled(x.shape, 1, x.dtype)
        start = scattered(step, start, index, ones[1], dim, None)
    count = scattered(step, start, index, ones[0], dim, "add")
    return total / count if x.dtype.kind == "f" else WORLD["floor_divide"](total, count)


class Neutral(NamedTuple):
    """How elements are combined at a place, and the number that changes nothing."""

    operator: str
    number: float


NEUTRAL = {
    "sum": Neutral("add", 0), "prod": Neutral("mul", 1), "mean": Neutral("add", 0),
    "amax": Neutral("max", -np.inf), "amin": Neutral("min", np.inf),
}  # fmt: skip


def extreme(dtype: np.dtype, number: float) -> int:
    """The least or largest integer of a dtype."""
    return int(np.iinfo(dtype).min if number < 0 else np.iinfo(dtype).max)


@expresses(along_dim.rows_summed)
def write_rows_summed(step: Step) -> Symbol:
    """Rows of x added up into n bags: r[land[i]] += x[take[i]]."""
    x, take, land, n = step.args
    rows = x.named("Gather", take, axis=0)
    zeros = step.graph.filled([n, x.shape[1]], 0, x.dtype)
    return zeros.named("ScatterND", step.graph.unsqueezed(land, [1]), rows, reduction="add")


def scattered(step: Step, x: Symbol, index: Symbol, source: Symbol, dim: int, how: str | None) -> Symbol:
    """x with elements of `source` at places along a dimension. The source may be larger than the index, or a number."""
    graph = step.graph
    source = source.to(step.out.dtype)
    if not x.ndim:
        x, index, source = [a if a.ndim else graph.unsqueezed(a, [0]) for a in (x, index, source)]
    if not source.ndim:
        source = graph.expanded(source, index.shape)
    for d, (n, m) in enumerate(zip(source.shape, index.shape)):
        if n != m:
            source = graph.sliced(source, d, 0, m)
    found = x.named("ScatterElements", index, source, axis=dim % x.ndim, reduction=how)
    return graph.reshaped(found, step.out.shape)


@expresses(along_dim.index_add, along_dim.index_copy)
def write_index_add(step: Step) -> Symbol:
    x, index, source, dim = step.args
    graph = step.graph
    if not x.ndim:
        raise NotExpressed("ONNX scatters into tensors with dimensions")
    dim %= x.ndim
    index = index if index.ndim else graph.unsqueezed(index, [0])
    shape = (*x.shape[:dim], index.shape[0], *x.shape[dim + 1 :])
    source = graph.reshaped(source.to(x.dtype), shape)
    places = graph.expanded(graph.unsqueezed(index, range(1, x.ndim - dim)), shape)
    how = "add" if step.runs(along_dim.index_add) else None
    return x.named("ScatterElements", places.to(INT64), source, axis=dim, reduction=how)


# -- several index tensors ---------------------------------------------------------------------------


class Places:
    """x[key] with index tensors, as one Gather: x with the indexed dimensions first and flattened, and flat places.

    `x`: after the key's slices, integers and None. `dims`: its dimensions that index tensors look up. `front`: the
    place of the index tensors' dimensions in the result."""

    def __init__(self, x: Symbol, key: tuple, tensors: list[Symbol]):
        if any(tensor.dtype == BOOL for tensor in tensors):
            raise NotExpressed("it takes the elements where a mask is true: their number depends on the mask")
        self.graph, parts = x.graph, spelled_out(key, x.ndim)
        self.x = sliced(x, tuple([slice(None) if part is HERE else part for part in parts]))
        kept = [part for part in parts if part is None or part is HERE or isinstance(part, slice)]
        self.dims = [dim for dim, part in enumerate(kept) if part is HERE]
        self.indices = [self.wrapped(t, d) for t, d in zip(tensors, self.dims)]
        self.front = self.dims[0] if side_by_side(parts) else 0
        self.others = [d for d in range(self.x.ndim) if d not in self.dims]
        self.shape = broadcast([t.shape for t in self.indices])

    def wrapped(self, tensor: Symbol, dim: int) -> Symbol:
        """Places from 0 on: negative places count from the end."""
        tensor = tensor.to(INT64)
        size = self.graph.scalar(self.x.shape[dim])
        if tensor.array is not None and (tensor.array >= 0).all():
            return tensor
        shape = tensor.shape
        found = (tensor < 0).named("Where", tensor + size, tensor, dtype=INT64)
        found.shape = shape
        return found

    def flat(self) -> Symbol:
        """The places in the flattened indexed dimensions, of the index tensors' broadcast shape."""
        total: Any = None
        for dim, tensor in zip(self.dims, self.indices):
            total = tensor if total is None else total * self.graph.scalar(self.x.shape[dim]) + tensor
        total.shape = self.shape
        return total

    def rows(self) -> Symbol:
        """x with the indexed dimensions first, flattened into one."""
        if self.dims == [self.front]:
            return self.x
        turned = self.graph.transposed(self.x, [*self.dims, *self.others])
        size = product([self.x.shape[d] for d in self.dims])
        return self.graph.reshaped(turned, [size, *[self.x.shape[d] for d in self.others]])


def spelled_out(key: tuple, ndim: int) -> list:
    """The parts of a key with a slice for each dimension that `...`, or the end of the key, stands for."""
    whole = [slice(None)] * (ndim - sum(part is not None and part is not Ellipsis for part in key))
    if not any(part is Ellipsis for part in key):
        return [*key, *whole]
    at = next(k for k, part in enumerate(key) if part is Ellipsis)
    return [*key[:at], *whole, *key[at + 1 :]]


def side_by_side(parts: list) -> bool:
    """Whether no slice or new dimension stands between index tensors; an integer counts as an index tensor."""
    places = [k for k, part in enumerate(parts) if part is HERE or isinstance(part, int)]
    return places[-1] - places[0] == len(places) - 1


def broadcast(shapes: list) -> tuple:
    """The broadcast shape of shapes with Sizes."""
    found: list[Any] = [1] * max(map(len, shapes))
    for shape in shapes:
        for k, n in enumerate(shape, len(found) - len(shape)):
            found[k] = n if n != 1 else found[k]
    return tuple(found)


def sliced(x: Symbol, key: tuple) -> Symbol:
    """x[key] for slices, integers and None, with its shape."""
    if all(isinstance(part, slice) and part == slice(None) for part in key):
        return x
    found, shape, dims = taken(x, key), [], iter(x.shape)
    for part in key:
        if part is None:
            shape.append(1)
        elif isinstance(part, slice):
            n = next(dims)
            start, stop, step = ends_of(part)
            if part != slice(None):
                if not all(isinstance(k, int) for k in (n, start, stop, step)):
                    raise NotExpressed("it has slices of a dynamic dimension beside index tensors")
                n = len(range(n)[part])
            shape.append(n)
        else:
            next(dims)
    found.shape = tuple(shape)
    return found


@expresses(index_tensors.index)
def write_index(step: Step) -> Symbol:
    x, tensors, key = step.args
    if len(tensors) == 1 and tensors[0].dtype == BOOL:
        return masked_elements(step, x, tensors[0], key)
    p = Places(x, key, list(tensors))
    if p.dims == [p.front]:
        return p.x.named("Gather", p.indices[0], axis=p.front)
    found = p.rows().named("Gather", p.flat(), axis=0)
    if not p.front:
        return found
    found.shape = (*p.shape, *[p.x.shape[d] for d in p.others])
    width = len(p.shape)
    order = [*range(width, width + p.front), *range(width), *range(width + p.front, len(found.shape))]
    return step.graph.transposed(found, order)


def masked_elements(step: Step, x: Symbol, mask: Symbol, key: tuple) -> Symbol:
    """x[mask]: the elements, or rows, where the mask is true."""
    if key[0] is not HERE or any(part is not Ellipsis for part in key[1:]) or not mask.ndim:
        raise NotExpressed("it has a mask beside other parts of a key")
    places = mask.named("NonZero", dtype=INT64)
    return x.named("GatherND", step.graph.node("Transpose", [places], dtype=INT64, perm=[1, 0]))


@expresses(index_tensors.write_at)
def write_at(step: Step) -> Symbol:
    x, y, tensors, key = step.args[:4]
    adds = step.setting(4, False)
    if len(tensors) == 1 and tensors[0].dtype == BOOL and not y.ndim and key[0] is HERE and not adds:
        mask = tensors[0]
        mask = step.graph.reshaped(mask, [*mask.shape, *[1] * (x.ndim - mask.ndim)])
        return mask.named("Where", y.to(x.dtype), x, dtype=x.dtype)
    if any(part is not HERE and part != slice(None) and part is not Ellipsis for part in key):
        raise NotExpressed("it writes at index tensors beside slices and integers")
    return changed_at(Places(x, key, list(tensors)), y.to(x.dtype), "add" if adds else None)


def changed_at(p: Places, y: Symbol, how: str | None) -> Symbol:
    """x with the values y at places, written (`how` None) or added."""
    graph, x, width = p.graph, p.x, len(p.shape)
    rest, size = [x.shape[d] for d in p.others], product([x.shape[d] for d in p.dims])
    shape = (*rest[: p.front], *p.shape, *rest[p.front :])
    order = [*range(p.front, p.front + width), *range(p.front), *range(p.front + width, len(shape))]
    values = graph.transposed(graph.expanded(y, shape), order)
    rows = graph.reshaped(graph.transposed(x, [*p.dims, *p.others]), [size, *rest])
    changed = rows.named("ScatterND", graph.reshaped(p.flat(), [*p.shape, 1]), values, reduction=how)
    changed.shape = (size, *rest)
    changed = graph.reshaped(changed, [*[x.shape[d] for d in p.dims], *rest])
    return graph.transposed(changed, np.argsort([*p.dims, *p.others]).tolist())
