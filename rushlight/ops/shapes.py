"""Shapes by torch's signatures, made of ops: splitting, stacking, moving dimensions, repeating."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from rushlight import dtypes
from rushlight.autograd.views import register, released
from rushlight.errors import explain
from rushlight.ops import shape as s
from rushlight.ops.arguments import sizes, wrap, wrap_all
from rushlight.ops.arithmetic import writing
from rushlight.ops.build import composite
from rushlight.ops.elementwise import where as choose
from rushlight.ops.families import into
from rushlight.ops.index import write_at
from rushlight.ops.kernels.index import HERE
from rushlight.tensor import Tensor, created, from_array, method


def pieces(made: tuple, input: Tensor, keys: Sequence[tuple]) -> tuple[Tensor, ...]:
    """Outputs of one node as views of its input, each of its own part."""
    for t, key in zip(made, keys):
        register(t, input, s.getitem, (key,))
    return made


@composite()
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The slices along `dim`, without it: views.

    >>> rushlight.unbind(rushlight.tensor([[1, 2], [3, 4]]), 1)
    (tensor([1, 3]), tensor([2, 4]))
    """
    dim = wrap(dim, input.array.ndim)
    lead = (slice(None),) * dim
    return pieces(s.unbind(input, dim), input, [(*lead, i, ...) for i in range(input.array.shape[dim])])


@composite()
def split(tensor: Tensor, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of the given size (the last may be smaller), or of the given sizes, along `dim`: views.

    >>> rushlight.split(rushlight.arange(5), 2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    dim = wrap(dim, tensor.array.ndim)
    n = tensor.array.shape[dim]
    if isinstance(split_size_or_sections, Iterable):
        lengths = sizes(split_size_or_sections)
    else:
        step = int(split_size_or_sections)
        if step < 0 or (step == 0 and n):
            raise RuntimeError(explain(f"split expects split_size be non-negative, but got split_size={step}"))
        lengths = tuple(min(step, n - i) for i in range(0, n, step)) if n else (0,)
    starts = np.cumsum((0, *lengths)).tolist()
    lead = (slice(None),) * dim
    keys = [(*lead, slice(a, a + k), ...) for a, k in zip(starts, lengths)]
    return pieces(s.split_sizes(tensor, lengths, dim), tensor, keys)


composite("split_with_sizes")(split)


@composite()
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` parts of equal size (the last may be smaller) along `dim`: views."""
    if chunks <= 0:
        raise RuntimeError(explain("chunk expects `chunks` to be greater than 0, got: " + str(chunks)))
    n = input.array.shape[wrap(dim, input.array.ndim)]
    return split(input, max(-(-n // chunks), 1) if n else [0] * chunks, dim)


def view(input: Tensor, *shape: Any) -> Tensor:
    """The same memory in another shape (-1: what is left), or seen as another dtype; never a copy (RuntimeError)."""
    if len(shape) == 1 and isinstance(shape[0], dtypes.dtype):
        return seen_as(input, shape[0])
    return s.view_as_shape(input, *shape)


def seen_as(input: Tensor, dtype: dtypes.dtype) -> Tensor:
    """The same bytes as elements of another dtype."""
    if dtype is input.dtype:
        return input
    t = from_array(input.array.view(dtype.numpy))
    t.writes = None
    register(t, input, seen_as, (dtype,))
    return t


method(view, "view")


@composite(function=False)
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """The same memory in the shape of another tensor."""
    return s.view_as_shape(input, other.array.shape)


@composite(function=False)
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """The tensor in the shape of another."""
    return s.reshape(input, other.array.shape)


@composite(function=False)
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """The tensor repeated to the shape of another, without a copy."""
    return s.expand(input, other.array.shape)


@composite()
def broadcast_to(input: Tensor, size: Any) -> Tensor:
    """The tensor repeated to `size`, without a copy."""
    return s.expand(input, sizes(size))


@composite(tensor=False)
def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """All tensors repeated to their common shape."""
    shape = np.broadcast_shapes(*(t.array.shape for t in tensors))
    return tuple(s.expand(t, shape) for t in tensors)


@composite()
def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """Dimensions at `source` moved to `destination`, the others in their order."""
    n = input.array.ndim
    a, b = wrap_all(source, n), wrap_all(destination, n)
    rest = iter(d for d in range(n) if d not in a)
    return s.permute(input, tuple(a[b.index(d)] if d in b else next(rest) for d in range(n)))


composite("moveaxis")(movedim)


@composite()
def repeat_interleave(input: Tensor, repeats: Any, dim: int | None = None, *, output_size: int | None = None) -> Tensor:
    """Each element (or slice along `dim`) `repeats` times in a row."""
    from_all = dim is None
    x = s.flatten(input) if from_all else input
    d = 0 if from_all else wrap(dim, input.array.ndim)
    times = repeats.array if isinstance(repeats, Tensor) else np.asarray(repeats)
    places = np.repeat(np.arange(x.array.shape[d]), times)
    return x.index_select(d, created(from_array(places)))  # type: ignore[attr-defined]


@composite()
def tile(input: Tensor, *dims: Any) -> Tensor:
    """The tensor repeated `dims` times along its last dimensions."""
    times = sizes(dims[0]) if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else sizes(dims)
    return s.repeat(input, (1,) * (input.array.ndim - len(times)) + times)


@composite()
def roll(input: Tensor, shifts: Any, dims: Any = None) -> Tensor:
    """Elements moved by `shifts` along `dims`, those that fall off coming in at the other end."""
    if dims is None:
        return released(s.reshape(roll(s.flatten(input), shifts, 0), input.array.shape))
    moves = zip(sizes(shifts), wrap_all(dims, input.array.ndim))
    for shift, d in moves:
        n = input.array.shape[d]
        k = shift % n if n else 0
        input = s.cat((s.narrow(input, d, n - k, k), s.narrow(input, d, 0, n - k)), d)
    return input


@composite(tensor=False)
def hstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Joined along the second dimension (vectors: the first)."""
    ts = [t if t.array.ndim else s.reshape(t, (1,)) for t in tensors]
    return s.cat(ts, 0 if ts[0].array.ndim == 1 else 1, out=out)


@composite(tensor=False)
def vstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Joined along the first dimension, vectors as rows."""
    return s.cat([t if t.array.ndim > 1 else s.reshape(t, (1, -1)) for t in tensors], 0, out=out)


@composite(tensor=False)
def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Coordinates of a grid: one tensor for each axis, all of the grid's shape."""
    ts = tensors[0] if len(tensors) == 1 and not isinstance(tensors[0], Tensor) else tensors
    if indexing == "xy" and len(ts) > 1:
        first, second, *rest = meshgrid(ts[1], ts[0], *ts[2:])
        return (second, first, *rest)
    shape = tuple(t.array.size for t in ts)
    return tuple(s.expand(s.reshape(t, (1,) * i + (-1,) + (1,) * (len(ts) - i - 1)), shape) for i, t in enumerate(ts))


@composite(tensor=False)
def atleast_1d(input: Tensor) -> Tensor:
    """A number as a vector of one element."""
    return input if input.array.ndim else s.reshape(input, (1,))


@composite()
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """`value` where the mask is true, the input elsewhere.

    >>> rushlight.tensor([1., 2.]).masked_fill(rushlight.tensor([True, False]), 0)
    tensor([0., 2.])
    """
    if mask.array.dtype.kind != "b":
        raise RuntimeError(explain(f"masked_fill only supports boolean masks, but got mask with dtype {mask.dtype}",
                                   "compare first: mask = m != 0"))
    if not isinstance(value, Tensor):
        value = created(from_array(np.asarray(value).astype(input.array.dtype)))
    elif value.array.dtype != input.array.dtype:
        value = s.to(value, input.dtype)
    return choose(mask, value, input)


@composite()
def masked_select(input: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements where the mask is true, as a vector."""
    a, b = broadcast_tensors(input, mask)
    return a[b] if out is None else into(out, a[b])  # type: ignore[index]


@composite()
def index_put(input: Tensor, indices: Sequence[Tensor], values: Tensor, accumulate: bool = False) -> Tensor:
    """The tensor with `values` written, or added, at the positions that the index tensors name."""
    return write_at(input, values, list(indices), (*[HERE] * len(indices), ...), accumulate)


@composite()
def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """The tensor with one number at the slices `index` along `dim`."""
    value = value if isinstance(value, Tensor) else created(from_array(np.asarray(value, input.array.dtype)))
    shape = list(input.array.shape)
    if shape:
        shape[wrap(dim, len(shape))] = index.array.size
    return input.index_copy(dim, index, s.expand(value, tuple(shape)))  # type: ignore[attr-defined]


@composite(tensor=False)
def where(condition: Tensor, input: Any = None, other: Any = None, *, out: Tensor | None = None) -> Any:
    """`input` where the condition is true, `other` elsewhere, broadcast; the condition alone: `nonzero` as a tuple.

    >>> rushlight.where(rushlight.tensor([True, False]), 1., 2.)
    tensor([1., 2.])
    """
    if input is None and other is None:
        return nonzero(condition, as_tuple=True)
    if isinstance(condition, Tensor) and condition.array.dtype.kind != "b":
        raise RuntimeError(explain(f"where expected condition to be a boolean tensor, but got a tensor with dtype "
                                   f"{condition.dtype}", "compare first: condition != 0"))
    return choose(condition, input, other, out=out)


@composite()
def nonzero(input: Tensor, *, out: Tensor | None = None, as_tuple: bool = False) -> Any:
    """The positions of the elements that are not 0: a row each, or one vector for each dimension."""
    found = np.nonzero(input.array) if input.array.ndim else np.nonzero(input.array.reshape(1))[:1]
    if as_tuple:
        return tuple(from_array(i) for i in found)
    rows = np.stack(found, 1) if input.array.ndim else np.zeros((len(found[0]), 0), np.int64)
    return from_array(rows) if out is None else into(out, from_array(rows))


@composite("argwhere")
def argwhere(input: Tensor) -> Tensor:
    """The positions of the elements that are not 0, a row each."""
    return nonzero(input)


def where_method(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """The tensor where the condition is true, `other` elsewhere."""
    return where(condition, self, other)


method(where_method, "where")


def stacked(first: Tensor, rows: Sequence[Tensor]) -> Tensor:
    """For `autograd.grad(is_grads_batched=True)`: tensors as the rows of one."""
    return s.stack(list(rows))


method(stacked, "_stacked")

for function in (masked_fill, index_put, index_fill):
    method(writing(function))
