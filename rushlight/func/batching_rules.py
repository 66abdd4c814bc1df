"""Batching rules of single ops for which family and `batched=` do not suffice: shapes, products, indices, reductions.

As in func/batching_families.py: (op, level, parts, settings of one sample) -> the outputs for all samples, with the
batch in front.
"""

from __future__ import annotations

from math import prod
from typing import Any

from rushlight.core.table import Op
from rushlight.core.tensor import Tensor
from rushlight.core.worlds import TENSORS as ops
from rushlight.creation.ranges import arange
from rushlight.func.batching import Level, Part, wrap
from rushlight.func.batching_families import (
    Parts,
    align,
    call,
    folded,
    one_by_one,
    rule,
    shift,
    shifted,
    unfolded,
    without_dim,
)
from rushlight.kernels.layout import reach
from rushlight.ops.index import along_dim
from rushlight.ops.linalg import matmul
from rushlight.ops.reduce import reduce
from rushlight.ops.shape import view_functions
from rushlight.ops.shape import views as shape

# -- shapes ----------------------------------------------------------------------------------------


@rule(shape.reshape, shape.view_as_shape)
def reshape(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    (x,), (shape,) = parts, settings
    if -1 in shape and level.size == 0:
        known = prod(n for n in shape if n != -1)
        shape = tuple(prod(x.value._array.shape[1:]) // max(known, 1) if n == -1 else n for n in shape)
    return call(op, [x.value], ((level.size, *shape),))


@rule(shape.unbind)
def unbind(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    # the function returns views of the input, the batched op would not
    return view_functions.unbind(parts[0].value, settings[0] + 1)


@rule(shape.split_sizes)
def split_sizes(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    lengths, dim = settings
    return view_functions.split(parts[0].value, lengths, dim + 1)


@rule(shape.expand)
def expand(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    return call(op, [parts[0].lined(len(settings[0]))], ((level.size, *settings[0]),))


@rule(shape.permute, shape.unpermute)
def permute(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    return call(op, [parts[0].value], ((0, *(d + 1 for d in settings[0])),))


@rule(shape.squeeze)
def squeeze(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """None means all dimensions of size 1, except the batch."""
    (x,) = parts
    dims = range(x.ndim) if settings[0] is None else settings[0] if x.ndim else ()
    gone = tuple(d + 1 for d in dims if x.value._array.shape[d + 1] == 1)
    return call(op, [x.value], (gone,)) if gone else ops["view_as_shape"](x.value, tuple(x.value._array.shape))


@rule(shape.cat)
def cat(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """Empty vectors are left out, as in torch."""
    (tensors,) = parts
    ndim = max([p.ndim for p in tensors], default=0)
    kept = [p for p in tensors if p.ndim == ndim or p.value._array.shape[p.mapped :] != (0,)]
    return shift(op, level, [kept], settings)


@rule(shape.unflatten)
def unflatten(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """The given shape replaces one dimension; it does not contain the batch."""
    (x,), (dim, sizes) = parts, settings
    point = not x.ndim
    made = call(op, [x.whole(point)], (shifted("dim", dim, level.size, x.ndim), sizes))
    return without_dim(made) if point else made


@rule(shape.flatten)
def flatten(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """A 0-d sample becomes a vector of one element."""
    (x,) = parts
    return call(op, [x.whole(not x.ndim)], [shifted("dim", dim, level.size, x.ndim) for dim in settings])


@rule(shape.repeat)
def repeat(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    return call(op, [parts[0].lined(len(settings[0]))], ((1, *settings[0]),))


@rule(shape.fold_repeats)
def fold_repeats(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    size, repeats = settings
    missing = len(repeats) - len(size)
    made = call(op, [parts[0].value], ((level.size, *(1,) * missing, *size), (1, *repeats)))
    return made.reshape((level.size, *size))


@rule(shape.unfold_dim)
def unfold_dim(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """A 0-d sample has one window."""
    x, (_, size, _) = parts[0], settings
    return shift(op, level, parts, settings) if x.ndim else ops["narrow"](x.whole(1), 1, 0, size)


@rule(shape.add_windows)
def add_windows(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    g, (size, *_) = parts[0], settings
    return shift(op, level, parts, settings) if size else g.whole().sum(1)


@rule(shape.overwrite)
def overwrite(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    x, y = parts
    return call(op, [x.whole(), y.lined(x.ndim)], ())


@rule(shape.placed)
def placed(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """The samples one after the other in memory, each with the given strides."""
    value, (strides,) = parts[0].value, settings
    _, end = reach(value._array.shape[1:], strides, 0)
    return call(op, [value], ((end, *strides),))


@rule(shape.laid_out)
def elsewhere_in_memory(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """A copy: the memory layout has no meaning inside vmap, because a sample has no memory of its own."""
    return ops["clone"](parts[0].value)


# -- products --------------------------------------------------------------------------------------


@rule(matmul.mm)
def mm(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """Stacks of matrices broadcast; samples of x with one matrix y are one product: (B n, k) @ (k, m)."""
    x, y = parts
    if min(x.ndim, y.ndim) < 2:
        return one_by_one(op, level, parts, settings)
    if y.mapped or y.ndim > 2 or x.ndim > 2:
        return align(op, level, parts, settings)
    return unfolded(call(op, [folded(x.value), y.value], ()), level.size)


@rule(matmul.dot)
def dot(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """(B, n) @ (n,) if all samples share one operand, else (B, 1, n) @ (B, n, 1)."""
    x, y = parts
    if not (x.mapped and y.mapped):
        return ops["mv"](x.value, y.value) if x.mapped else ops["mv"](y.value, x.value)
    rows, columns = ops["unsqueeze"](x.whole(), 1), ops["unsqueeze"](y.whole(), 2)
    return ops["mm"](rows, columns).reshape((level.size,))


@rule(matmul.mv)
def mv(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """One product if all samples share the vector or the matrix: (B n, k) @ (k,), (B, k) @ (k, n)."""
    x, y = parts
    if not y.mapped:
        return unfolded(call(op, [folded(x.value), y.value], ()), level.size)
    if not x.mapped:
        return ops["mm"](y.value, ops["transpose"](x.value, 0, 1))
    return ops["mm"](x.value, ops["unsqueeze"](y.value, 2)).reshape((level.size, -1))


@rule(matmul.linear)
def linear(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """One product if all samples share the weight, else (B, n, k) @ (B, k, m) + (B, 1, m)."""
    x, weight, bias = parts
    if not weight.mapped:
        r = call(op, [x.value, weight.value, None if bias is None or bias.mapped else bias.value], ())
        return r if bias is None or not bias.mapped else r + bias.lined(x.ndim if x.mapped else max(x.ndim, 1))
    shape = x.whole()._array.shape
    rows = x.whole().reshape((level.size, prod(shape[1:-1]), shape[-1]))
    r = ops["mm"](rows, ops["transpose"](weight.value, 1, 2)).reshape((*shape[:-1], weight.value._array.shape[1]))
    return r if bias is None else r + bias.lined(x.ndim)


# -- positions -------------------------------------------------------------------------------------


@rule(along_dim.gather)
def gather(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """A 0-d index gives one number."""
    x, index = parts
    if index.ndim == x.ndim:
        return shift(op, level, parts, settings)
    return call(op, [x.whole(1), index.whole(1)], (settings[0] + 1,)).reshape((level.size, *(1,) * index.ndim))


@rule(along_dim.scatter, along_dim.scatter_add, along_dim.reduce_at)
def scatter(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """A source that is one number for all positions is expanded to the index's shape."""
    x, index, source = parts
    if source.ndim == 0 and index.ndim:
        shape = index.whole()._array.shape
        spread = source.lined(index.ndim).expand(shape) if source.mapped else source.value.expand(shape)
        source = Part(wrap(spread, level), level)
    if x.ndim:
        return shift(op, level, [x, index, source], settings)
    dim, *more = settings  # a 0-d sample has one position
    return call(op, [p.whole(1) for p in (x, index, source)], (dim + 1, *more)).reshape((level.size,))


@rule(along_dim.embedding)
def embedding(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """The tables of all samples, stacked: the rows of sample b begin at b n."""
    weight, index = parts
    if not weight.mapped:
        return call(op, [weight.value, index.value], settings)
    b, n, width = weight.value._array.shape
    rows = call(op, [weight.value.reshape((b * n, width)), below(index, n)], (None,))
    (padding,) = settings
    if padding is None:
        return rows
    return ops["without_gradient"](rows, ops["unsqueeze"](index.whole() == padding, index.ndim + 1))


def below(index: Part, n: int) -> Tensor:
    """Indices into the n rows of each sample, as indices into the rows of all samples."""
    starts = arange(index.level.size) * n
    return index.whole() + starts.reshape((-1,) + (1,) * index.ndim)


@rule(along_dim.embedding_grad)
def embedding_grad(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    (g, index), (n, padding) = parts, settings
    rows = g.whole()
    if padding is not None:
        rows = rows * ops["cast"](ops["unsqueeze"](index.whole() != padding, index.ndim + 1), rows)
    return unfolded(call(op, [rows, below(index, n)], (level.size * n, None)), level.size)


@rule(along_dim.rows_summed)
def rows_summed(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    (x, take, land), (n,) = parts, settings
    b, m, width = (whole := x.whole())._array.shape
    rows, at = below(take, m).reshape((-1,)), below(land, n).reshape((-1,))
    return unfolded(call(op, [whole.reshape((b * m, width)), rows, at], (b * n,)), b)


# -- statistics ------------------------------------------------------------------------------------


@rule(reduce.var_core)
def var_core(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """A 0-d sample is reduced over an added dimension; () means all dimensions."""
    (x,), (_, correction) = parts, settings
    if x.ndim:
        return shift(op, level, parts, settings)
    return without_dim(call(op, [x.whole(True)], ((1,), correction)))


@rule(reduce.argmax, reduce.argmin)
def argmax(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    (x,), (dim, keepdim) = parts, settings
    if dim is not None:
        return shift(op, level, parts, settings)
    found = call(op, [x.value.reshape((level.size, -1))], (1, False))
    return found.reshape((level.size,) + (1,) * x.ndim) if keepdim else found
