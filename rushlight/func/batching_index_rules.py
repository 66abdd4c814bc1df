"""Batching rules of x[key] with index tensors in the key, and of the ops for its derivatives.

The key gets one more index tensor, 0 ... B - 1 for the batch, before all others. If index tensors are separated by
slices, NumPy puts their dimensions first, (B, *I, *rest); if one sample's result has its I dimensions elsewhere, they
are moved there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.core.table import Op
from rushlight.core.tensor import Tensor, created, from_array, numbers
from rushlight.core.worlds import TENSORS as ops
from rushlight.func.batching import Level, Part, wrap
from rushlight.func.batching_families import Parts, call, rule
from rushlight.kernels.index import HERE
from rushlight.ops.index import along_dim
from rushlight.ops.index import index_tensors as index_ops

DYNAMIC = (
    "vmap: We do not support batching operators that can support dynamic shape. Attempting to batch over "
    "indexing with a boolean mask."
)


class Places:
    """The key of one sample with its index tensors, prepared for all samples.

    `tensors`: 0 ... B - 1 and the index tensors, all of (B, *I); `key`: HERE for each index tensor; `ndim`: the number
    of dimensions of I; `at`: the number of dimensions before I in a sample's result; `points`: the dimensions of size 1
    from which masks without dimensions choose."""

    def __init__(self, x_ndim: int, parts: list[Part], key: tuple, level: Level):
        indices = [one for p in parts for one in as_positions(p, level)]
        masks = [p.ndim if p.value._array.dtype.kind == "b" else None for p in parts]
        self.points = points_of(x_ndim, masks, key)
        self.ndim = max((p.ndim for p in indices), default=0)
        found, spread = iter(masks), []
        for part in key:  # a mask of k dimensions has become k index tensors
            spread += [HERE] * (next(found) or 1) if part is HERE else [part]
        own = created(from_array(np.arange(level.size).reshape((-1,) + (1,) * self.ndim)))
        self.tensors = [own, *(p.whole(self.ndim) for p in indices)]
        self.key = (HERE, *spread)
        self.at = self.place(x_ndim + len(self.points), spread)

    def place(self, x_ndim: int, key: list) -> int:
        """The number of dimensions before I in a sample's result."""
        here = indexed(key)
        if not side_by_side(key):
            return 0
        used = sum(part is not None and part is not Ellipsis for part in key)
        return sum(x_ndim - used if part is Ellipsis else 1 for part in key[: here[0]])

    def opened(self, t: Tensor) -> Tensor:
        """The indexed tensor (B, *shape of a sample), with the dimensions `points` inserted."""
        for dim in self.points:
            t = ops["unsqueeze"](t, 1 + dim)
        return t

    def closed(self, t: Tensor) -> Tensor:
        """The inverse of `opened`."""
        return ops["squeeze"](t, tuple([1 + dim for dim in self.points])) if self.points else t

    def result(self, t: Tensor) -> Tensor:
        """(B, *I, *rest), as NumPy returns it, with I moved to its position in a sample's result."""
        if not self.at:
            return t
        return ops["movedim"](t, tuple(range(1, 1 + self.ndim)), tuple(range(1 + self.at, 1 + self.at + self.ndim)))

    def source(self, t: Tensor) -> Tensor:
        """The tensor to write, (B, *shape of a sample's result), in NumPy's order of dimensions: the inverse of the
        move above.
        """
        if not self.at:
            return t
        return ops["movedim"](t, tuple(range(1 + self.at, 1 + self.at + self.ndim)), tuple(range(1, 1 + self.ndim)))


def indexed(key: Any) -> list[int]:
    """The places of integers and index tensors in a key."""
    return [i for i, part in enumerate(key) if part is HERE or part.__class__ is int]


def side_by_side(key: Any) -> bool:
    """Whether no slice separates the index tensors of a key."""
    here = indexed(key)
    return bool(here) and here == list(range(here[0], here[-1] + 1))


def points_of(x_ndim: int, masks: list, key: tuple) -> list[int]:
    """The positions of 0-d masks in a key: each indexes an inserted dimension of size 1. `masks`: for each index tensor
    the number of dimensions of a mask, None if it is not a mask.
    """
    found, points, dim = iter(masks), [], 0
    taken = sum(m if m is not None else 1 for m in masks) + sum(part.__class__ in (int, slice) for part in key)
    for part in key:
        mask = next(found) if part is HERE else None
        if mask == 0:
            points.append(dim)
        if part is Ellipsis:
            dim += x_ndim - taken
        elif part is not None:
            dim += mask or 1
    return points


def as_positions(p: Part, level: Level) -> list[Part]:
    """A Part as a list of index tensors. A mask that all samples share becomes the indices of its true elements."""
    if p.value._array.dtype.kind != "b":
        return [p]
    if p.mapped:
        raise RuntimeError(DYNAMIC)
    return [Part(created(from_array(places)), level) for places in np.nonzero(np.atleast_1d(numbers(p.value)))]


def result_ndim(x_ndim: int, places: Places) -> int:
    """The number of dimensions of a sample's result."""
    key = places.key[1:]
    taken = sum(part is HERE or part.__class__ is int for part in key)
    return x_ndim + len(places.points) - taken + sum(part is None for part in key) + places.ndim


@rule(index_ops.index)
def index(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    (x, tensors), (key,) = parts, settings
    if side_by_side(key) and not any(p.mapped or p.value._array.dtype.kind == "b" for p in tensors):
        shared = [p.value for p in tensors]  # all samples in one array, with the memory layout of one sample
        return call(op, [x.whole(), shared], ((slice(None), *key),))
    places = Places(x.ndim, tensors, key, level)
    return places.result(call(op, [places.opened(x.whole()), places.tensors], (places.key,)))


@rule(index_ops.index_add_zeros)
def index_add_zeros(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    (g, tensors), (key, size) = parts, settings
    places = Places(len(size), tensors, key, level)
    opened = [level.size, *size]
    for dim in places.points:
        opened.insert(1 + dim, 1)
    return places.closed(call(op, [places.source(g.whole()), places.tensors], (places.key, tuple(opened))))


@rule(index_ops.write_at)
def write_at(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    (x, y, tensors), (key, accumulate) = parts, settings
    places = Places(x.ndim, tensors, key, level)
    source = places.source(y.whole(result_ndim(x.ndim, places)))
    return places.closed(call(op, [places.opened(x.whole()), source, places.tensors], (places.key, accumulate)))


@rule(index_ops.clear)
def clear(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    (g, tensors), (key,) = parts, settings
    places = Places(g.ndim, tensors, key, level)
    return places.closed(call(op, [places.opened(g.whole()), places.tensors], (places.key,)))


# -- positions along one dimension -----------------------------------------------------------------


def along(dim: int) -> tuple:
    return ((slice(None),) * dim + (HERE, ...),)


@rule(along_dim.index_select)
def index_select(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """Positions that all samples share select along the next dimension; a sample's own positions act as x[:, index]."""
    x, places = parts
    if not places.mapped and x.ndim:
        return call(op, [x.value, places.value], (settings[0] + 1,))
    if not x.ndim:  # a 0-d sample
        return call(op, [x.whole(1), created(from_array(np.zeros(1, np.int64)))], (1,)).reshape((level.size,))
    return index(index_ops.index.op, level, [x, [as_vectors(places, level)]], along(settings[0]))


def as_vectors(p: Part, level: Level) -> Part:
    """The tensors of all samples; 0-d samples become vectors of one element."""
    whole = p.whole()
    return Part(wrap(whole if p.ndim else whole.reshape((level.size, 1)), level), level)


@rule(along_dim.index_add, along_dim.index_copy)
def index_add(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    (x, places, source), (dim,) = parts, settings
    if not places.mapped and x.ndim and source.ndim:
        return call(op, [x.whole(), places.value, source.whole()], (dim + 1,))
    whole, column, source = (as_vectors(p, level) for p in (x, places, source))
    settings = *along(dim), op is along_dim.index_add.op
    made = write_at(index_ops.write_at.op, level, [whole, source, [column]], settings)
    return made if x.ndim else made.reshape((level.size,))
