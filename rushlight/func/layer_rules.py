"""Batching rules of the ops of neural networks: normalization, convolution, attention, losses, dropout."""

from __future__ import annotations

from typing import Any

from rushlight.base.errors import runtime_error
from rushlight.core.mode import within
from rushlight.core.table import Op
from rushlight.core.tensor import Tensor
from rushlight.core.worlds import TENSORS as ops
from rushlight.func.batching import Level, Part
from rushlight.func.batching_families import Parts, call, fold, folded, one_by_one, rule, unfolded
from rushlight.func.vmap_random import ERROR
from rushlight.ops.nn import attention as attention_ops
from rushlight.ops.nn import conv, dropout, loss, normalization

# -- layers ----------------------------------------------------------------------------------------


@rule(normalization.layer_norm)
def layer_norm(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    (x, weight, bias), (dims, eps) = parts, settings
    scales = [p and p.lined(x.ndim) for p in (weight, bias)]
    if not x.mapped or any(p is not None and p.mapped for p in (weight, bias)):
        mean_first = call(op, [x.whole(), None, None], (tuple(d + 1 for d in dims), eps))
        scaled = mean_first[0] if scales[0] is None else mean_first[0] * scales[0]
        return [scaled if scales[1] is None else scaled + scales[1], *mean_first[1:]]
    return call(op, [x.value, *scales], (tuple(d + 1 for d in dims), eps))


@rule(normalization.group_norm)
def group_norm(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """Normalize as (B N, C, ...); then apply weight and bias, which may differ from sample to sample."""
    x, weight, bias = parts
    out, mu, var = unfolded(call(op, [folded(x.whole()), None, None], settings), level.size)
    weight, bias = (p and p.whole().reshape((level.size, 1, -1, *(1,) * (x.ndim - 2))) for p in (weight, bias))
    out = out if weight is None else out * weight
    return [out if bias is None else out + bias, mu, var]


@rule(normalization.batch_norm, normalization.frozen_batch_norm)
def batch_norm(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """The channels of all samples side by side: x (N, B C, ...), scales (B C,), statistics (1, B C, 1, ...)."""
    x, *scales = parts
    b = level.size
    flat_scales = [p and p.whole().reshape((-1,)) for p in scales]
    made = call(op, [channels_together(x.whole()), *flat_scales], settings)
    return [channels_apart(t, b) for t in made] if isinstance(made, (tuple, list)) else channels_apart(made, b)


def channels_together(x: Tensor) -> Tensor:
    """(B, N, C, ...) -> (N, B C, ...)."""
    b, n, c, *rest = x._array.shape
    return ops["transpose"](x, 0, 1).reshape((n, b * c, *rest))


def channels_apart(x: Tensor, b: int) -> Tensor:
    """(N, B C, ...) -> (B, N, C, ...)."""
    n, c, *rest = x._array.shape
    return ops["transpose"](x.reshape((n, b, c // b, *rest)), 0, 1)


@rule(conv.convolution)
def convolution(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """With a shared weight, the batch is folded into N; with one weight for each sample, the channels form B groups."""
    x, weight, bias = parts
    r = grouped(op, level, x, weight, settings, (None,))
    if bias is None:
        return r
    return r + bias.whole().reshape((-1, 1, bias.value._array.shape[-1]) + (1,) * (r._array.ndim - 3))


@rule(conv.conv_input_grad)
def conv_input_grad(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    x, weight = parts
    return grouped(op, level, x, weight, settings, ())


def grouped(op: Op, level: Level, x: Part, weight: Part, settings: tuple, more: tuple) -> Any:
    """Convolve x (B, N, C, ...) with weight (B, O, ...) as (N, B C, ...) with (B O, ...), in B times as many groups."""
    if not weight.mapped:
        return unfolded(call(op, [folded(x.whole()), weight.value, *more], settings), level.size)
    *rest, groups = settings
    made = call(op, [channels_together(x.whole()), folded(weight.value), *more], (*rest, groups * level.size))
    return channels_apart(made, level.size)


@rule(conv.conv_weight_grad)
def conv_weight_grad(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """From x (B, N, O, ...) and y (B, N, C, ...), in B times as many groups: (B O, C / groups, ...)."""
    *rest, groups = settings
    made = call(op, [channels_together(p.whole()) for p in parts], (*rest, groups * level.size))
    return unfolded(made, level.size)


@rule(attention_ops.attention, attention_ops.attention_back)
def attention(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """q, k, v, the mask (which may have fewer dimensions) and the outputs of `attention` get the batch as a leading
    dimension.
    """
    (tensors,) = parts
    return call(op, [[p.whole(tensors[0].ndim if i == 3 else None) for i, p in enumerate(tensors)]], settings)


# -- losses ----------------------------------------------------------------------------------------


@rule(loss.nll_loss)
def nll_loss(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """Compute the loss of each element, with samples and N merged; then reduce it for each sample."""
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
    """-weight x[target] for each element: (B, N, *d), or (B,) if a sample is one target."""
    made = call(op, [rows(x, target), rows(target.whole(), target), weight and weight.value], (ignored, "none"))
    return unfolded(made, level.size) if target.ndim else made


def rows(t: Tensor, target: Part) -> Tensor:
    """(B, N, ...) -> (B N, ...). If a sample is one target with its C numbers, (B, ...) already consists of rows."""
    return folded(t) if target.ndim else t


def weights_of(op: Op, level: Level, like: Tensor, target: Part, weight: Part | None, ignored: int) -> Tensor:
    """The sum of the weights of each sample's targets, (B,): the summed loss if all log-probabilities are -1."""
    each: Any = fold_classes(op, level, ops["zeros_like"](like) - 1, target, weight, ignored)
    return each.reshape((level.size, -1)).sum(1)


@rule(loss.nll_loss_grad)
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
        shape = target.whole()._array.shape
        each = each.reshape((level.size,) + (1,) * (len(shape) - 1)).expand(shape)
    size = (level.size * size[0], *size[1:]) if target.ndim else (level.size, *size)
    made = call(
        op, [rows(each, target), rows(target.whole(), target), weight and weight.value], (size, ignored, "none")
    )
    return unfolded(made, level.size) if target.ndim else made


# -- random ----------------------------------------------------------------------------------------


@rule(dropout.dropout_mask)
def dropout_mask(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """A mask for each sample, or one mask, of a sample's shape, for all samples."""
    x, features = parts[0], settings[1]
    if level.randomness == "error":
        raise runtime_error(ERROR)
    with within(batch=level.outer):
        if level.randomness == "same":
            like = ops["select"](x.value, 0, 0) if x.mapped else x.value
            return call(op, [like], settings), False
        if features:
            return fold(op, level, parts, settings), True
        return call(op, [x.whole().contiguous()], settings), True
