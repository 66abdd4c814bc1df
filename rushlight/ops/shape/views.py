"""Views, and joining and splitting."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rushlight.base.dtypes import float32
from rushlight.core.build import build, general, inner, inner_view, view
from rushlight.core.tensor import created, from_array, method
from rushlight.core.worlds import ARRAYS, TENSORS, adopt, shared
from rushlight.kernels import layout
from rushlight.kernels import shape as kernels
from rushlight.kernels.float16 import is_half, single
from rushlight.ops.tensor.node_names import of_index

if TYPE_CHECKING:  # names in rules, provided by the rule's world (core/worlds.py)
    from rushlight.core.rule_names import rejoined, zeros, zeros_like

adopt(kernels)
adopt(layout)

# -- the sizes of outputs, for tensors without elements: None if the op itself raises the error


def sizes_of_cat(tensors, dim):
    """The sizes along `dim` are added; all other sizes are equal."""
    first = tensors[0].shape
    if not -len(first) <= dim < len(first):
        return None
    dim %= len(first)
    before, after = first[:dim], first[dim + 1 :]
    if any(len(x.shape) != len(first) or x.shape[:dim] != before or x.shape[dim + 1 :] != after for x in tensors):
        return None
    return [((*before, sum(x.shape[dim] for x in tensors), *after), tensors[0].dtype)]


def sizes_of_stack(tensors, dim):
    """A new dimension whose size is the number of tensors; all have the same shape."""
    first = tensors[0].shape
    if not -len(first) - 1 <= dim <= len(first) or any(x.shape != first for x in tensors):
        return None
    dim %= len(first) + 1
    return [((*first[:dim], len(tensors), *first[dim:]), tensors[0].dtype)]


def sizes_of_repeat(x, repeats):
    """Each size times its number of repeats; there may be more repeats than dimensions."""
    missing = len(repeats) - len(x.shape)
    if missing < 0 or min(repeats, default=0) < 0:
        return None
    return [(tuple([n * k for n, k in zip((1,) * missing + x.shape, repeats)]), x.dtype)]


# -- views

# fmt: off
reshape = view(lambda x, /, shape: reshape(x, shape), x=lambda g, x_shape: reshape(g, x_shape),
    copies=True, variadic="shape", node="ViewBackward0", in_order=True)
flatten = view(lambda x, /, start_dim=0, end_dim=-1: flatten(x, start_dim, end_dim),
    x=lambda g, x_shape: reshape(g, x_shape),
    copies=True, itself=True, node="ViewBackward0", batched="shift", in_order=True)
unflatten = view(lambda x, /, dim, shape: unflatten(x, dim, shape), x=lambda g, x_shape: reshape(g, x_shape),
    copies=True, names={"shape": "sizes"}, node="ViewBackward0", batched="shift", in_order=True)
squeeze = view(lambda x, /, dims=None: squeeze(x, dims), x=lambda g, x_shape: reshape(g, x_shape),
    names={"dims": "dim"}, in_order=True)
unsqueeze = view(lambda x, /, new_dim: unsqueeze(x, new_dim), x=lambda g, x_shape: reshape(g, x_shape),
    batched="insert", in_order=True)
transpose = view(lambda x, /, dim0, dim1: transpose(x, dim0, dim1), x=lambda g, dim0, dim1: transpose(g, dim0, dim1),
    alias="swapdims", batched="shift")
permute = view(lambda x, /, new_order: permute(x, new_order), x=lambda g, new_order: unpermute(g, new_order),
    variadic="new_order", names={"new_order": "dims"})
expand = view(lambda x, /, shape: expand(x, shape), x=lambda g: g,
    variadic="shape", function=False, names={"shape": "size"})
narrow = view(lambda x, /, dim, start, length: narrow(x, dim, start, length),
    x=lambda g, x_shape, dim, start: embed(g, x_shape, part(dim, start, g.shape[dim])),
    node="SliceBackward0", batched="shift")
select = view(lambda x, /, dim, index: select(x, dim, index),
    x=lambda g, x_shape, dim, index: embed(g, x_shape, part(dim, index, None)), batched="shift")
diagonal = view(lambda x, /, offset=0, dim0=0, dim1=1: diagonal(x, offset, dim0, dim1),
    x=lambda g, x_shape, offset, dim0, dim1: embed_diagonal(g, x_shape, offset, dim0, dim1),
    names={"dim0": "dim1", "dim1": "dim2"}, batched="shift")

view_as_shape = inner_view(lambda x, /, shape: view(x, shape), x=lambda g, x_shape: reshape(g, x_shape),
    kernel=kernels.view, variadic="shape", names={"shape": "size"}, node="ViewBackward0", called="view", strides=True,
    in_order=True)
getitem = inner_view(lambda x, /, key: x[key], x=lambda g, x_shape, key: embed(g, x_shape, key),
    node=of_index, called="indexing", batched="insert")
unpermute = inner_view(lambda x, /, dims: unpermute(x, dims), x=lambda g, dims: permute(g, dims))
unfold_dim = view(lambda x, /, dim, size, step: unfold_dim(x, dim, size, step),
    x=lambda g, x_shape, dim, size, step: add_windows(g, x_shape, dim, size, step),
    names={"dim": "dimension"}, alias="unfold", function=False, called="unfold", node="UnfoldBackward0",
    batched="shift")

# -- copies

contiguous = view(lambda x, /: contiguous(x), x=lambda g: g,
    copies=True, itself=True, function=False, batched="align", node="CloneBackward0", sizes="all")
clone    = general(lambda x, /: clone(x), x=lambda g: g, batched="align", linear="x", exact=True, sizes="all")
placed   = inner(lambda x, /, strides: placed(x, strides), x=lambda g: g)
laid_out = inner(lambda x, /, order: laid_out(x, order), x=lambda g: g, node="CloneBackward0")
flip = general(lambda x, /, dims: flip(x, dims), x=lambda g, dims: flip(g, dims),
    variadic="dims", batched="shift", linear="x", sizes="all")
rolled = inner(lambda x, /, moves, axes, back=False: rolled(x, moves, axes, back),
    x=lambda g, moves, axes, back: rolled(g, moves, axes, not back),
    node="RollBackward0", called="roll", batched="shift", linear="x", sizes="all")
tril = general(lambda x, /, diagonal=0: tril(x, diagonal), x=lambda g, diagonal: tril(g, diagonal),
    inplace=True, batched="matrix", sizes="all")
triu = general(lambda x, /, diagonal=0: triu(x, diagonal), x=lambda g, diagonal: triu(g, diagonal),
    inplace=True, batched="matrix", sizes="all")
repeat = general(lambda x, /, shape: repeat(x, shape), x=lambda g, x_shape, shape: fold_repeats(g, x_shape, shape),
    variadic="shape", function=False, names={"shape": "repeats"}, linear="x", sizes=sizes_of_repeat)

to = inner(lambda x, /, dtype: to(x, dtype), x=lambda g, x_dtype: to(g, x_dtype),
    node="ToCopyBackward0", batched="align", linear="x", exact=True, sizes="all")
overwrite = inner(lambda x, y, /: overwrite(x, y), x=lambda g: zeros_like(g), y=lambda g: g,
    promote="", node="CopyBackwards", jointly="x y", sizes="all")
embed = inner(lambda x, /, size, key: embed(x, size, key), x=lambda g, key: getitem(g, key),
    batched="insert", linear="x")
embed_diagonal = inner(lambda x, /, size, offset, first, second: embed_diagonal(x, size, offset, first, second),
    x=lambda g, offset, first, second: diagonal(g, offset, first, second), batched="insert", node="DiagEmbedBackward0")
add_windows = inner(lambda x, /, size, axis, width, step: add_windows(x, size, axis, width, step),
    x=lambda g, axis, width, step: unfold_dim(g, axis, width, step), batched="shift")
fold_repeats = inner(lambda x, /, size, repeats: fold_repeats(x, size, repeats),
    x=lambda g, repeats: repeat(g, repeats))

# -- joining and splitting

cat = general(lambda tensors, /, dim=0: cat(tensors, dim),
    tensors=lambda g, tensors_shapes, dim: uncat(g, tensors_shapes, dim),
    method=False, batched="shift", linear="tensors", sizes=sizes_of_cat)
stack = general(lambda tensors, /, new_dim=0: stack(tensors, new_dim), tensors=lambda g, new_dim: unbind(g, new_dim),
    batched="insert", linear="tensors", sizes=sizes_of_stack)
unbind = general(lambda x, /, dim=0: unbind(x, dim), x=lambda gs, dim: stack(gs, dim), list=True, batched="shift")
split_sizes = inner(lambda x, /, lengths, dim=0: split_sizes(x, lengths, dim), x=lambda gs, dim: rejoined(gs, dim),
    list=True, node="SplitBackward0", batched="shift")
# fmt: on


@shared
def part(dim, start, length):
    """The key for `length` elements from `start` on along `dim`; `length` None: one element, without its dimension."""
    if length is None:
        return (slice(None),) * dim + (start, ...)
    stop = start + length
    return (slice(None),) * dim + (slice(start, None if start < 0 and stop == 0 else stop), ...)


@shared
def uncat(g, shapes, dim):
    """The parts of g that came from each tensor; nothing for an empty 1-d tensor."""
    parts, start = [], 0
    for shape in shapes:
        if shape == (0,) and len(g.shape) > 1:
            parts.append(zeros(shape, g))
        else:
            parts.append(narrow(g, dim, start, shape[dim]))
            start += shape[dim]
    return parts


@shared
def rows(x):
    """All leading dimensions merged: (..., n) -> (rows, n)."""
    if len(x.shape) == 2:
        return x
    n = 1  # with 0 elements per row, -1 would be ambiguous
    for size in x.shape[:-1]:
        n *= size
    return reshape(x, (n, x.shape[-1]))


@shared
def unrows(y, x):
    """The reverse of `rows`: (rows, n) -> (..., n) with the leading dimensions of x."""
    return y if len(x.shape) == 2 else reshape(y, x.shape[:-1] + y.shape[-1:])


@shared
def others(x):
    """All dimensions except the channels."""
    return (0, *range(2, len(x.shape)))


ARRAYS["cast"] = lambda x, like: x.astype(like.dtype)
ARRAYS["zeros"] = lambda shape, like: np.zeros(shape, like.dtype)
ARRAYS["single"] = single
TENSORS["single"] = lambda x: TENSORS["to"](x, float32) if is_half(x._array) else x
TENSORS["cast"] = lambda x, like: TENSORS["to"](x, like.dtype)
TENSORS["zeros"] = lambda shape, like: created(from_array(np.zeros(shape, like._array.dtype)))
TENSORS["rejoined"] = lambda parts, dim: TENSORS["cat"](parts, dim)
TENSORS["zeros_like"] = lambda x: created(from_array(np.zeros_like(x._array)))
TENSORS["is_complex"] = lambda x: x.is_complex()

build(globals())
method(lambda x, strides: placed(x, strides), "_placed")  # for writes through views (core/views.py)
