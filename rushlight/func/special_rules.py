"""Batching rules of single ops whose family and word say too little: shapes, products, layers, losses, random masks.

As in rules.py: (op, level, parts, settings of one sample) -> what the op makes of all samples, the batch first.
"""
from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from rushlight.autograd.grad_mode import within
from rushlight.errors import explain
from rushlight.func.batching import Level, Part, wrap
from rushlight.func.draws import ERROR
from rushlight.func.rules import SPECIAL, Parts, align, call, fold, folded, one_by_one, shift, unfolded
from rushlight.ops import shapes
from rushlight.ops.kernels.strided import reach
from rushlight.ops.table import Op
from rushlight.ops.worlds import TENSORS as ops
from rushlight.ranges import arange
from rushlight.tensor import Tensor


def rule(*names: str) -> Callable[[Callable], Callable]:
    """The function is the rule of the ops with these names."""
    def register(function: Callable) -> Callable:
        SPECIAL.update(dict.fromkeys(names, function))
        return function
    return register


# -- shapes --------------------------------------------------------------------------------------------------------------

@rule("reshape", "view_as_shape")
def reshape(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    (x,), (shape,) = parts, settings
    if -1 in shape and level.size == 0:
        known = prod(n for n in shape if n != -1)
        shape = tuple(prod(x.value.array.shape[1:]) // max(known, 1) if n == -1 else n for n in shape)
    return call(op, [x.value], ((level.size, *shape),))


@rule("unbind")
def unbind(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    return shapes.unbind(parts[0].value, settings[0] + 1)           # views, unlike what the op itself gives


@rule("split_sizes")
def split_sizes(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    lengths, dim = settings
    return shapes.split(parts[0].value, lengths, dim + 1)


@rule("expand")
def expand(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    return call(op, [parts[0].lined(len(settings[0]))], ((level.size, *settings[0]),))


@rule("permute", "unpermute")
def permute(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    return call(op, [parts[0].value], ((0, *(d + 1 for d in settings[0])),))


@rule("squeeze")
def squeeze(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """None means all dimensions of size 1, but not the batch."""
    x, = parts
    dims = range(x.ndim) if settings[0] is None else settings[0] if x.ndim else ()
    gone = tuple(d + 1 for d in dims if x.value.array.shape[d + 1] == 1)
    return call(op, [x.value], (gone,)) if gone else ops["view_as_shape"](x.value, tuple(x.value.array.shape))


@rule("repeat")
def repeat(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    return call(op, [parts[0].lined(len(settings[0]))], ((1, *settings[0]),))


@rule("fold_repeats")
def fold_repeats(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    size, repeats = settings
    missing = len(repeats) - len(size)
    made = call(op, [parts[0].value], ((level.size, *(1,) * missing, *size), (1, *repeats)))
    return made.reshape((level.size, *size))


@rule("unfold_dim")
def unfold_dim(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """One number has one window."""
    x, (_, size, _) = parts[0], settings
    return shift(op, level, parts, settings) if x.ndim else ops["narrow"](x.whole(1), 1, 0, size)


@rule("add_windows")
def add_windows(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    g, (size, *_) = parts[0], settings
    return shift(op, level, parts, settings) if size else g.whole().sum(1)


@rule("overwrite")
def overwrite(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    x, y = parts
    return call(op, [x.whole(), y.lined(x.ndim)], ())


@rule("lie")
def lie(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """The steps of a sample behind that from one sample to the next; the first begins where the values do."""
    value, (size, stride, start, own) = parts[0].value, settings
    step = value.stride(0)
    return call(op, [value], ((level.size, *size), (step, *stride), start, (step, *own)))


@rule("unlie")
def unlie(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    shape, size, stride, start, own = settings
    step = beyond((shape, own, 0), (size, stride, start))
    return call(op, [parts[0].whole()], ((level.size, *shape), (level.size, *size), (step, *stride), start, (step, *own)))


@rule("lie_again")
def lie_again(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    x, (size, stride, start, own) = parts[0].whole(), settings
    step = beyond((x.array.shape[1:], own, 0), (size, stride, start))
    return call(op, [x], ((level.size, *size), (step, *stride), start, (step, *own)))


def beyond(*regions: tuple) -> int:
    """A step between samples in memory of their own, in which none reaches the next."""
    found = [reach(*region) for region in regions if 0 not in region[0]]
    return max([high for _, high in found], default=0) - min([low for low, _ in found], default=0)


@rule("placed")
def placed(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """Each sample lies as it is said, one behind the other."""
    value, (strides,) = parts[0].value, settings
    _, end = reach(value.array.shape[1:], strides, 0)
    return call(op, [value], ((end, *strides),))


@rule("laid_out")
def elsewhere_in_memory(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """A copy; where its elements lie is the matter of a sample alone, which has no memory of its own."""
    return ops["clone"](parts[0].value)


# -- products ------------------------------------------------------------------------------------------------------------

@rule("mm")
def mm(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """Stacks of matrices broadcast; samples of x with one matrix y are one product: (B n, k) @ (k, m)."""
    x, y = parts
    if min(x.ndim, y.ndim) < 2:
        return one_by_one(op, level, parts, settings)
    if y.mapped or y.ndim > 2 or x.ndim > 2:
        return align(op, level, parts, settings)
    return unfolded(call(op, [folded(x.value), y.value], ()), level.size)


@rule("dot")
def dot(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """(B, n) @ (n,) where all samples share one of them, else (B, 1, n) @ (B, n, 1)."""
    x, y = parts
    if not (x.mapped and y.mapped):
        return ops["mv"](x.value, y.value) if x.mapped else ops["mv"](y.value, x.value)
    rows, columns = ops["unsqueeze"](x.whole(), 1), ops["unsqueeze"](y.whole(), 2)
    return ops["mm"](rows, columns).reshape((level.size,))


@rule("mv")
def mv(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """One product where all samples share the vector, or the matrix: (B n, k) @ (k,), (B, k) @ (k, n)."""
    x, y = parts
    if not y.mapped:
        return unfolded(call(op, [folded(x.value), y.value], ()), level.size)
    if not x.mapped:
        return ops["mm"](y.value, ops["transpose"](x.value, 0, 1))
    return ops["mm"](x.value, ops["unsqueeze"](y.value, 2)).reshape((level.size, -1))


@rule("linear")
def linear(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """One product where all samples share the weight, else one for each: (B, n, k) @ (B, k, m) + (B, 1, m)."""
    x, weight, bias = parts
    if not weight.mapped:
        r = call(op, [x.value, weight.value, None if bias is None or bias.mapped else bias.value], ())
        return r if bias is None or not bias.mapped else r + bias.lined(x.ndim if x.mapped else max(x.ndim, 1))
    shape = x.whole().array.shape
    rows = x.whole().reshape((level.size, prod(shape[1:-1]), shape[-1]))
    r = ops["mm"](rows, ops["transpose"](weight.value, 1, 2)).reshape((*shape[:-1], weight.value.array.shape[1]))
    return r if bias is None else r + bias.lined(x.ndim)


# -- positions -----------------------------------------------------------------------------------------------------------

@rule("gather")
def gather(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """One place in a vector gives one number."""
    x, index = parts
    if index.ndim == x.ndim:
        return shift(op, level, parts, settings)
    return call(op, [x.whole(1), index.whole(1)], (settings[0] + 1,)).reshape((level.size, *(1,) * index.ndim))


@rule("scatter", "scatter_add", "reduce_at")
def scatter(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """The source may be one number for all places: then it gets the index's shape."""
    x, index, source = parts
    if source.ndim == 0 and index.ndim:
        shape = index.whole().array.shape
        spread = source.lined(index.ndim).expand(shape) if source.mapped else source.value.expand(shape)
        source = Part(wrap(spread, level), level)
    if x.ndim:
        return shift(op, level, [x, index, source], settings)
    dim, *more = settings                         # one number has one place
    return call(op, [p.whole(1) for p in (x, index, source)], (dim + 1, *more)).reshape((level.size,))


@rule("embedding")
def embedding(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """Tables of all samples, one below the other: those of sample b begin at b n."""
    weight, index = parts
    if not weight.mapped:
        return call(op, [weight.value, index.value], settings)
    b, n, width = weight.value.array.shape
    rows = call(op, [weight.value.reshape((b * n, width)), below(index, n)], (None,))
    padding, = settings
    if padding is None:
        return rows
    return ops["without_gradient"](rows, ops["unsqueeze"](index.whole() == padding, index.ndim + 1))


def below(index: Part, n: int) -> Tensor:
    """Indices of each sample into its own n rows of a table of all."""
    starts = arange(index.level.size) * n
    return index.whole() + starts.reshape((-1,) + (1,) * index.ndim)


@rule("embedding_grad")
def embedding_grad(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    (g, index), (n, padding) = parts, settings
    rows = g.whole()
    if padding is not None:
        rows = rows * ops["cast"](ops["unsqueeze"](index.whole() != padding, index.ndim + 1), rows)
    return unfolded(call(op, [rows, below(index, n)], (level.size * n, None)), level.size)


# -- statistics ----------------------------------------------------------------------------------------------------------

@rule("argmax", "argmin")
def argmax(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    (x,), (dim, keepdim) = parts, settings
    if dim is not None:
        return shift(op, level, parts, settings)
    found = call(op, [x.value.reshape((level.size, -1))], (1, False))
    return found.reshape((level.size,) + (1,) * x.ndim) if keepdim else found


@rule("median_all", "nanmedian_all")
def median(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    return ops[op.name.replace("all", "dim")](parts[0].value.reshape((level.size, -1)), 1, False)[0]


@rule("places")
def places(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """One sequence for all values, or for each sample its own: (B, n) and (B, m)."""
    x, values, sorter = parts
    if not x.mapped and x.ndim == 1 and not (sorter and sorter.mapped):
        return call(op, [x.value, values.value, sorter and sorter.value], settings)
    rows = values.whole() if x.ndim > 1 else values.whole().reshape((level.size, -1))
    return call(op, [x.whole(), rows, sorter and sorter.whole()], settings).reshape(values.whole().array.shape)


@rule("among")
def among(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """(B, n, 1) compared with (B, 1, m), where each sample has a set of its own."""
    x, y = parts
    if not y.mapped:
        return call(op, [x.value, y.value], settings)
    pairs = x.whole().reshape((level.size, -1, 1)) == y.value.reshape((level.size, 1, -1))
    found = ops["any"](pairs, (2,), False).reshape(x.whole().array.shape)
    return ops["logical_not"](found) if settings[0] else found


# -- layers --------------------------------------------------------------------------------------------------------------

@rule("layer_norm")
def layer_norm(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    (x, weight, bias), (dims, eps) = parts, settings
    scales = [p and p.lined(x.ndim) for p in (weight, bias)]
    if not x.mapped or any(p is not None and p.mapped for p in (weight, bias)):
        mean_first = call(op, [x.whole(), None, None], (tuple(d + 1 for d in dims), eps))
        scaled = mean_first[0] if scales[0] is None else mean_first[0] * scales[0]
        return [scaled if scales[1] is None else scaled + scales[1], *mean_first[1:]]
    return call(op, [x.value, *scales], (tuple(d + 1 for d in dims), eps))


@rule("group_norm")
def group_norm(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """(B N, C, ...); what may differ from sample to sample, weight and bias, comes after."""
    x, weight, bias = parts
    out, mu, var = unfolded(call(op, [folded(x.whole()), None, None], settings), level.size)
    weight, bias = (p and p.whole().reshape((level.size, 1, -1, *(1,) * (x.ndim - 2))) for p in (weight, bias))
    out = out if weight is None else out * weight
    return [out if bias is None else out + bias, mu, var]


@rule("batch_norm", "frozen_batch_norm")
def batch_norm(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """Each sample's channels are channels of their own: x (N, B C, ...), scales (B C,), statistics (1, B C, 1, ...)."""
    x, *scales = parts
    b = level.size
    flat_scales = [p and p.whole().reshape((-1,)) for p in scales]
    made = call(op, [channels_together(x.whole()), *flat_scales], settings)
    return [channels_apart(t, b) for t in made] if isinstance(made, (tuple, list)) else channels_apart(made, b)


def channels_together(x: Tensor) -> Tensor:
    """(B, N, C, ...) -> (N, B C, ...)."""
    b, n, c, *rest = x.array.shape
    return ops["transpose"](x, 0, 1).reshape((n, b * c, *rest))


def channels_apart(x: Tensor, b: int) -> Tensor:
    """(N, B C, ...) -> (B, N, C, ...)."""
    n, c, *rest = x.array.shape
    return ops["transpose"](x.reshape((n, b, c // b, *rest)), 0, 1)  # type: ignore[attr-defined]


@rule("convolution")
def convolution(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """With one weight for all, the batch is as good as N; with one for each sample, channels come in B groups."""
    x, weight, bias = parts
    r = grouped(op, level, x, weight, settings, (None,))
    if bias is None:
        return r
    return r + bias.whole().reshape((-1, 1, bias.value.array.shape[-1]) + (1,) * (r.array.ndim - 3))


@rule("conv_input_grad")
def conv_input_grad(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    x, weight = parts
    return grouped(op, level, x, weight, settings, ())


def grouped(op: Op, level: Level, x: Part, weight: Part, settings: tuple, more: tuple) -> Any:
    """x (B, N, C, ...) with weight (B, O, ...): (N, B C, ...) with (B O, ...) in B times as many groups."""
    if not weight.mapped:
        return unfolded(call(op, [folded(x.whole()), weight.value, *more], settings), level.size)
    *rest, groups = settings
    made = call(op, [channels_together(x.whole()), folded(weight.value), *more], (*rest, groups * level.size))
    return channels_apart(made, level.size)


@rule("conv_weight_grad")
def conv_weight_grad(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """Of x (B, N, O, ...) and y (B, N, C, ...): the weights of B times as many groups, (B O, C / groups, ...)."""
    *rest, groups = settings
    made = call(op, [channels_together(p.whole()) for p in parts], (*rest, groups * level.size))
    return unfolded(made, level.size)


@rule("attention", "attention_back")
def attention(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """Stacks of q, k, v, of a mask which may have fewer dimensions, and of what `attention` gave: the batch is one more."""
    tensors, = parts
    return call(op, [[p.whole(tensors[0].ndim if i == 3 else None) for i, p in enumerate(tensors)]], settings)


# -- losses --------------------------------------------------------------------------------------------------------------

@rule("nll_loss")
def nll_loss(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """Element by element as if the batch were N, then reduced for each sample."""
    (x, target, weight), (ignored, reduction) = parts, settings
    if weight is not None and weight.mapped:
        return one_by_one(op, level, parts, settings)
    each = fold_classes(op, level, x.whole(), target, weight, ignored)
    if reduction == "none":
        return each
    total = each.reshape((level.size, -1)).sum(1)
    if reduction == "sum":
        return total
    return total / weights_of(op, level, x.whole(), target, weight, ignored)


def fold_classes(op: Op, level: Level, x: Tensor, target: Part, weight: Part | None, ignored: int) -> Tensor:
    """-weight x[target] for each element: (B, N, *d), or (B,) where a sample is one target."""
    made = call(op, [rows(x, target), rows(target.whole(), target), weight and weight.value], (ignored, "none"))
    return unfolded(made, level.size) if target.ndim else made


def rows(t: Tensor, target: Part) -> Tensor:
    """(B, N, ...) -> (B N, ...); where a sample is one target and its C numbers, (B, ...) has its rows already."""
    return folded(t) if target.ndim else t


def weights_of(op: Op, level: Level, like: Tensor, target: Part, weight: Part | None, ignored: int) -> Tensor:
    """The sum of the weights of each sample's targets, as the loss of -1: (B,)."""
    each: Any = fold_classes(op, level, ops["zeros_like"](like) - 1, target, weight, ignored)
    return each.reshape((level.size, -1)).sum(1)


@rule("nll_loss_grad")
def nll_loss_grad(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """The gradient of each element's loss, placed at its class: (B, N, C, *d)."""
    (g, target, weight), (size, ignored, reduction) = parts, settings
    if weight is not None and weight.mapped:
        return one_by_one(op, level, parts, settings)
    each = g.whole()
    if reduction == "mean":
        like = ops["zeros"]((level.size, *size), each)
        loss, classes = ops["nll_loss"], rows(target.whole(), target)
        made = loss(rows(like, target) - 1, classes, weight and weight.value, ignored, "none")
        each = each / made.reshape((level.size, -1)).sum(1)
    if reduction != "none":
        shape = target.whole().array.shape
        each = each.reshape((level.size,) + (1,) * (len(shape) - 1)).expand(shape)
    size = (level.size * size[0], *size[1:]) if target.ndim else (level.size, *size)
    made = call(op, [rows(each, target), rows(target.whole(), target), weight and weight.value], (size, ignored, "none"))
    return unfolded(made, level.size) if target.ndim else made


# -- random --------------------------------------------------------------------------------------------------------------

@rule("dropout_mask")
def dropout_mask(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """A mask for each sample, or one of a sample's shape for all."""
    x, features = parts[0], settings[1]
    if level.randomness == "error":
        raise RuntimeError(explain(ERROR))
    with within(batch=level.outer):
        if level.randomness == "same":
            like = ops["select"](x.value, 0, 0) if x.mapped else x.value
            return call(op, [like], settings), False
        if features:
            return fold(op, level, parts, settings), True
        return call(op, [x.whole().contiguous()], settings), True  # type: ignore[attr-defined]
