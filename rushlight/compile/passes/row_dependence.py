"""Row-by-row ops: the part of the arguments that an op needs for a part of the result."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from rushlight.compile.graph import Call, Store, Value, with_each
from rushlight.core.table import TABLE, Op
from rushlight.kernels.index import HERE
from rushlight.ops.index.along_dim import embedding
from rushlight.ops.index.index_tensors import index
from rushlight.ops.linalg.matmul import linear, mm
from rushlight.ops.nn.attention import attention
from rushlight.ops.nn.normalization import layer_norm
from rushlight.ops.reduce.reduce import log_softmax, softmax
from rushlight.ops.shape import views as shape
from rushlight.ops.shape.views import part

Box = tuple[slice, ...]  # the part that a call reads, one slice for each dimension
# (value, box with a slice for each dimension) -> that part of the value
Cut = Callable[[Value, Box], Value]
ALL = slice(None)

# op -> the dimensions of the result along which the op needs its whole first argument
WHOLE: dict[Op | None, Callable[..., Iterable[int]]] = {
    linear.op: lambda x, weight, bias: (-1,),
    mm.op: lambda x, y: (-1, *range(len(y.shape) - 2)),
    softmax.op: lambda x, dim: (dim,),
    log_softmax.op: lambda x, dim: (dim,),
    layer_norm.op: lambda x, weight, bias, dims, eps: dims,
    shape.split_sizes.op: lambda x, lengths, dim: (dim,),
}


def part_of(step: Call, box: Box, cut: Cut) -> Call | None:
    """The call that computes this part of a step's results; None if the op does not work row by row."""
    n, args = len(box), None
    touched = [d for d in range(n) if box[d] != ALL]

    def taken(v: Value, box: Box) -> Value:
        """The part of an operand for this part of the result. The operand broadcasts: its dimensions are the last ones,
        and a dimension of size 1 is kept whole.
        """
        own = zip(box[len(box) - len(v.shape) :], v.shape)
        key = tuple([ALL if size == 1 or range(size)[k] == range(size) else k for k, size in own])
        return v if all([k == ALL for k in key]) else cut(v, key)

    if step.entry is not None and step.entry.elementwise or step.runs(shape.to, shape.clone, shape.contiguous):
        args = with_each(step.args, lambda v: taken(v, box))
    elif step.entry in WHOLE and len(step.args[0].shape) == n:
        if not {d % n for d in WHOLE[step.entry](*step.args)} & {*touched}:
            args = (taken(step.args[0], box), *step.args[1:])
    elif step.entry in ARGUMENTS:
        args = ARGUMENTS[step.entry](step, box, touched, taken)
    if args is None:
        return None
    outs = [Value(np.broadcast_to(np.zeros((), v.dtype), v._array[box[: len(v.shape)]].shape)) for v in step.outs]
    return Call(step.op, args, tuple(outs), step.line, step.late, step.shares, step.origin)


def of_turned(step: Call, box: Box, touched: list[int], cut: Cut) -> tuple:
    """The order of the dimensions is found by running the op on an array whose sizes all differ."""
    x, *settings = step.args
    order = [size - 1 for size in TABLE[step.op].kernel(np.empty(range(1, len(box) + 1)), *settings).shape]
    return cut(x, tuple([box[order.index(d)] for d in range(len(box))])), *settings


def of_reshaped(step: Call, box: Box, touched: list[int], cut: Cut) -> tuple | None:
    """Possible only if the restricted dimensions are leading ones, which x also has."""
    x, out = step.args[0], step.outs[0]
    lead = max(touched) + 1
    if x.shape[:lead] != out.shape[:lead]:
        return None
    return cut(x, (*box[:lead], *[ALL] * (len(x.shape) - lead))), (*out._array[box].shape[:lead], *out.shape[lead:])


def of_attention(step: Call, box: Box, touched: list[int], cut: Cut) -> tuple | None:
    """Queries are independent of each other. With a causal mask, query i sees the first i + 1 keys: so a single query,
    or the first queries of all, need only a prefix of the keys.
    """
    (q, k, v, *mask), causal, scale = step.args
    rows = range(q.shape[-2])[box[-2]]
    if touched != [len(box) - 2] or mask or len(q.shape) != len(box):
        return None
    first = causal and rows == range(rows.stop)
    if causal and not first and len(rows) > 1:
        return None
    q, seen = cut(q, (*box[:-1], ALL)), slice(0, rows.stop) if causal else ALL
    k, v = [cut(t, (*[ALL] * (len(t.shape) - 2), seen, ALL)) for t in (k, v)]
    return (q, k, v), first, scale


def of_rows(step: Call, box: Box, touched: list[int], cut: Cut) -> tuple | None:
    """The rows of a table that an index refers to."""
    table, index, *settings = step.args
    return None if box[-1] != ALL else (table, cut(index, box[:-1]), *settings)


def of_joined(step: Call, box: Box, touched: list[int], cut: Cut) -> tuple | None:
    values, dim = step.args
    return None if dim % len(box) in touched else (tuple([cut(v, box) for v in values]), dim)


def of_unbound(step: Call, box: Box, touched: list[int], cut: Cut) -> tuple:
    x, dim = step.args
    return cut(x, (*box[: dim % len(x.shape)], ALL, *box[dim % len(x.shape) :])), dim


def of_read(step: Call, box: Box, touched: list[int], cut: Cut) -> tuple | None:
    """A part of a part, if the inner read is whole along the dimensions that the outer one restricts."""
    found, x = places(step), step.args[0]
    if found is None or not step.runs(shape.getitem):
        return None
    kept = [d for d, k in enumerate(found) if isinstance(k, range)]
    if any(found[kept[d]] != range(x.shape[kept[d]]) for d in touched):
        return None
    whole = [ALL] * len(found)
    for d in touched:
        whole[kept[d]] = box[d]
    return cut(x, tuple(whole)), key_of(found, x.shape)


ARGUMENTS: dict[Op | None, Callable[..., tuple | None]] = {
    shape.transpose.op: of_turned,
    shape.permute.op: of_turned,
    shape.reshape.op: of_reshaped,
    shape.view_as_shape.op: of_reshaped,
    attention.op: of_attention,
    embedding.op: of_rows,
    shape.cat.op: of_joined,
    shape.unbind.op: of_unbound,
    shape.getitem.op: of_read,
}


def places(reader: Call | Store) -> list[int | range] | None:
    """The index or range that a reader reads in each dimension; None if `reader` is not such a read."""
    x, *settings = reader.args
    if reader.runs(shape.select):
        key = part(settings[0] % len(x.shape), settings[1], None)
    elif reader.runs(shape.narrow):
        key = part(settings[0] % len(x.shape), *settings[1:])
    elif reader.runs(shape.getitem):
        key = settings[0] if isinstance(settings[0], tuple) else settings
    elif reader.runs(index):
        key = of_list(*settings)
    else:
        return None
    if not all([type(k) is int or type(k) is slice or k is ... for k in key]):
        return None
    lead = key.index(...) if ... in key else len(key)
    between = [ALL] * (len(x.shape) - len(key) + (... in key))
    found = [range(n)[k] for n, k in zip(x.shape, (*key[:lead], *between, *key[lead + 1 :]))]
    return found if all([isinstance(k, int) or k.step > 0 for k in found]) else None


def of_list(indices: tuple, key: tuple) -> tuple:
    """The key that reads the same part as x[:, [i]]."""
    first, *others = indices
    if others or first.kind != "constant" or first.shape != (1,) or any(type(k) is int for k in key):
        return (HERE,)
    [i] = first._array.tolist()
    return tuple([slice(i, i + 1 or None) if k is HERE and type(i) is int else k for k in key])


def key_of(found: list[int | range], shape: tuple) -> tuple:
    """The key that reads these indices and ranges of an array of this shape."""
    reads = lambda k, n: k if isinstance(k, int) else ALL if k == range(n) else slice(k.start, k.stop, k.step)
    return *map(reads, found, shape), ...
