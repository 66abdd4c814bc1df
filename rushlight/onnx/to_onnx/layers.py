"""Layers: products with weights, convolutions, pooling, normalization, attention."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from rushlight.onnx.to_onnx.elementwise import isnan, sqrt, where
from rushlight.onnx.to_onnx.onnx_graph import BOOL, INT64, NotExpressed, Symbol
from rushlight.onnx.to_onnx.reductions import reduced
from rushlight.onnx.to_onnx.rules import Step, expresses, fixed, unused
from rushlight.onnx.to_onnx.sizes import Size, product
from rushlight.ops.linalg import solve
from rushlight.ops.linalg.matmul import dot, linear, mm, mv
from rushlight.ops.nn import attention, conv, loss, normalization, pool


@expresses(mm, mv, dot)
def write_product(step: Step) -> Symbol:
    small = step.out.dtype.kind in "iu" and step.out.dtype.itemsize < 4  # which ONNX does not take
    x, y = [a.to(np.int32 if small else step.out.dtype) for a in step.args]
    if step.out.dtype == BOOL or step.out.dtype.kind == "c":
        raise NotExpressed(f"ONNX has no product of {step.out.dtype}")
    return x.named("MatMul", y)


@expresses(solve.linalg_det)
def write_determinant(step: Step) -> Symbol:
    return step.args[0].named("Det")


@expresses(linear)
def write_linear(step: Step) -> Symbol:
    x, weight, bias = step.args
    if x.ndim == 2 and x.dtype.kind == "f":
        return x.named("Gemm", weight, bias, transB=1)
    if x.dtype.kind in "iub":
        raise NotExpressed(f"ONNX's products with weights take no {x.dtype.name}")
    order = [*range(weight.ndim - 2), weight.ndim - 1, weight.ndim - 2] if weight.ndim > 1 else [0]
    product = x.named("MatMul", step.graph.transposed(weight, order))
    return product if bias is None else product + bias


# -- convolutions ------------------------------------------------------------------------------------


def twice(padding: Any) -> list:
    """Padding before and after each dimension, as ONNX takes it."""
    return [*fixed(padding, "padding"), *padding]


@expresses(conv.convolution)
def write_convolution(step: Step) -> Symbol:
    x, weight, bias, stride, padding, dilation, groups = step.args
    return x.named(
        "Conv", weight, bias, strides=[*stride], pads=twice(padding), dilations=[*dilation], group=groups,
        kernel_shape=[*weight.shape[2:]],
    )  # fmt: skip


@expresses(conv.conv_input_grad)
def write_transposed_convolution(step: Step) -> Symbol:
    x, weight, size, stride, padding, dilation, groups = step.args
    least = [(n - 1) * s - 2 * p + d * (k - 1) + 1 for n, s, p, d, k in zip(
        x.shape[2:], stride, padding, dilation, weight.shape[2:], strict=True
    )]  # fmt: skip
    more = fixed([n - m for n, m in zip(size, least)], "output padding")
    beyond = [max(0, n - s + 1) for n, s in zip(more, stride)]  # ONNX's output padding is less than the stride
    pads = [*padding, *[p - b for p, b in zip(padding, beyond)]]
    return x.named(
        "ConvTranspose", weight, strides=[*stride], pads=pads, dilations=[*dilation], group=groups,
        kernel_shape=[*weight.shape[2:]], output_padding=[n - b for n, b in zip(more, beyond)],
    )  # fmt: skip


@expresses(conv.im2col)
def write_unfold(step: Step) -> Symbol:
    """Windows as columns: a convolution with one filter for each place of the kernel."""
    x, kernel, dilation, padding, stride = step.args
    channels = fixed(x.shape[1], "number of channels")
    filters = np.eye(prod(kernel)).reshape(prod(kernel), 1, *kernel).astype(x.dtype)
    weight = step.graph.constant(np.tile(filters, (channels, *[1] * (1 + len(kernel)))))
    found = x.named(
        "Conv", weight, strides=[*stride], pads=twice(padding), dilations=[*dilation], group=channels,
        kernel_shape=[*kernel],
    )  # fmt: skip
    return step.graph.reshaped(found, step.out.shape)


@expresses(conv.col2im)
def write_fold(step: Step) -> Symbol:
    columns, size, kernel, dilation, padding, stride = step.args
    inputs = step.graph.integers(size), step.graph.integers(kernel)
    return columns.named("Col2Im", *inputs, dilations=[*dilation], pads=twice(padding), strides=[*stride])


# -- pooling -----------------------------------------------------------------------------------------


@expresses(pool.max_pool, pool.max_values)
def write_max_pool(step: Step) -> Any:
    x, kernel, stride, padding, dilation, ceil_mode = step.args
    if x.dtype.kind in "iu" and x.dtype.itemsize > 1:
        raise NotExpressed(f"ONNX's MaxPool takes no {x.dtype.name}")
    attributes = {
        "kernel_shape": [*kernel], "strides": [*stride], "pads": twice(padding), "dilations": [*dilation],
        "ceil_mode": int(ceil_mode),
    }  # fmt: skip
    if step.runs(pool.max_values):
        return x.named("MaxPool", **attributes)
    values, at = step.graph.nodes_of("MaxPool", [x], [(x.dtype, None), (INT64, None)], **attributes)
    if not step.results[1].used:
        return [values, None]
    # ONNX counts places over the whole batch, this library over one plane
    return [values, at.named("Mod", step.graph.scalar(product(x.shape[2:])))]


def varies(shape: tuple) -> bool:
    return any(isinstance(n, Size) for n in shape)


@expresses(pool.avg_pool)
def write_avg_pool(step: Step) -> Symbol:
    x, kernel, stride, padding, ceil_mode, with_padding, divisor = step.args
    scale = 1.0 if divisor is None else prod(kernel) / divisor
    if divisor is not None and (ceil_mode or any(padding) and not with_padding):
        raise NotExpressed("ONNX's average has no divisor")
    found = x.named(
        "AveragePool", kernel_shape=[*kernel], strides=[*stride], pads=twice(padding), ceil_mode=int(ceil_mode),
        count_include_pad=int(with_padding),
    )  # fmt: skip
    return found if scale == 1 else found * scale


@expresses(pool.adaptive_avg_pool)
def write_adaptive_avg_pool(step: Step) -> Symbol:
    x, size = step.args
    if all(n == 1 for n in size):
        return x.named("GlobalAveragePool")
    return adaptive(step, x, size, "AveragePool", "ReduceMean")


@expresses(pool.adaptive_max_pool)
def write_adaptive_max_pool(step: Step) -> list:
    unused(step, 1)
    x, size = step.args
    if all(n == 1 for n in size):
        return [x.named("GlobalMaxPool"), None]
    return [adaptive(step, x, size, "MaxPool", "ReduceMax"), None]


def adaptive(step: Step, x: Symbol, size: tuple, pooling: str, reduction: str) -> Symbol:
    """Pooling to a given size: windows of equal sizes where the sizes divide, otherwise each window by itself."""
    given = x.shape[2:]
    if tuple(given) == tuple(size):
        return x
    if varies((*given, *size)):
        for dim, n in enumerate(size, 2):
            x = pooled_to(x, dim, n, pooling == "MaxPool")
        return x
    if all(n % m == 0 for n, m in zip(given, size)):
        kernel = [n // m for n, m in zip(given, size)]
        return x.named(pooling, kernel_shape=kernel, strides=kernel)
    for dim, (n, m) in enumerate(zip(given, size), 2):
        ends = [(k * n // m, -(-(k + 1) * n // m)) for k in range(m)]
        x = step.graph.joined([reduced(reduction, step.graph.sliced(x, dim, *end), (dim,), True) for end in ends], dim)
    return x


def pooled_to(x: Symbol, dim: int, count: Any, largest: bool) -> Symbol:
    """Averages or maxima of `count` windows along a dimension of any size: window k goes from floor(k n / count) to
    ceil((k + 1) n / count)."""
    graph, n = x.graph, x.graph.scalar(x.shape[dim])
    windows = graph.scalar(count)
    k = graph.unsqueezed(graph.counted(count), [1])
    start, end = k * n // windows, ((k + 1) * n + windows - 1) // windows
    at = graph.counted(x.shape[dim])
    inside = (at >= start) & (at < end)  # (count, n)
    order = [*[d for d in range(x.ndim) if d != dim], dim]
    turned = graph.transposed(x, order)
    if largest:
        found = reduced("ReduceMax", where(inside, graph.unsqueezed(turned, [x.ndim - 1]), -np.inf), (x.ndim,))
    else:
        weights = inside.to(x.dtype) / (end - start).to(x.dtype)
        weights.shape = (count, x.shape[dim])
        found = turned.named("MatMul", graph.transposed(weights, [1, 0]))
    found.shape = (*turned.shape[:-1], count)
    return graph.transposed(found, np.argsort(order).tolist())


@expresses(pool.scatter_spatial)
def write_unpool(step: Step) -> Symbol:
    x, indices, size = step.args
    graph = step.graph
    shape = (*x.shape[:2], prod(fixed(size, "size")))
    flat = [graph.reshaped(a, [*x.shape[:2], -1]) for a in (x, indices)]
    zeros = graph.filled(shape, 0, x.dtype)
    return graph.reshaped(zeros.named("ScatterElements", flat[1], flat[0], axis=2), step.out.shape)


# -- normalization -----------------------------------------------------------------------------------


@expresses(normalization.frozen_batch_norm)
def write_batch_norm(step: Step) -> Symbol:
    x, weight, bias, mean, var, eps = step.args
    ones = step.graph.constant(np.ones(mean.shape, mean.dtype)) if weight is None else weight
    zeros = step.graph.constant(np.zeros(mean.shape, mean.dtype)) if bias is None else bias
    return x.named("BatchNormalization", ones, zeros, mean, var, epsilon=float(eps))


@expresses(normalization.layer_norm)
def write_layer_norm(step: Step) -> list:
    x, weight, bias, dims, eps = step.args
    dims = tuple(d % x.ndim for d in dims)
    mean, var = moments(x, dims)
    shape = [x.shape[d] for d in dims]
    if varies(tuple(shape)):  # ONNX's operator has a weight, whose size is fixed
        found = (x - mean) / sqrt(var + float(eps))
        found = found if weight is None else found * weight
        return [found if bias is None else found + bias, mean, var]
    scale = step.graph.constant(np.ones(shape, x.dtype)) if weight is None else weight
    found = x.named("LayerNormalization", scale, bias, axis=min(dims) - x.ndim, epsilon=float(eps))
    return [found, mean, var]


def moments(x: Symbol, dims: tuple) -> list[Symbol]:
    """The mean and the variance over dimensions. Nodes that no step reads are removed later."""
    mean = reduced("ReduceMean", x, dims, True)
    away = x - mean
    return [mean, reduced("ReduceMean", away * away, dims, True)]


@expresses(normalization.batch_norm)
def write_normalized_channels(step: Step) -> list:
    """Batch norm with the batch's own statistics: (x - mean) / sqrt(var + eps) weight + bias. Instance norm is a batch
    norm in which each channel of each image is a channel."""
    x, weight, bias, dims, eps = step.args
    mean, var = moments(x, tuple(d % x.ndim for d in dims))
    found = (x - mean) / sqrt(var + float(eps))
    return [scaled_channels(found, x.ndim, weight, bias), mean, var]


def scaled_channels(x: Symbol, ndim: int, weight: Symbol | None, bias: Symbol | None) -> Symbol:
    """x weight + bias, with a number for each channel."""
    a, b = [p if p is None or p.ndim > 1 else x.graph.reshaped(p, [-1, *[1] * (ndim - 2)]) for p in (weight, bias)]
    x = x if a is None else x * a
    return x if b is None else x + b


@expresses(normalization.group_norm)
def write_group_norm(step: Step) -> list:
    x, weight, bias, groups, eps = step.args
    graph = step.graph
    flat = graph.reshaped(x, [x.shape[0], groups, -1])
    flat.shape = (x.shape[0], groups, None)
    ones, zeros = [graph.constant(np.full(groups, n, x.dtype)) for n in (1, 0)]
    found = flat.named("InstanceNormalization", ones, zeros, epsilon=float(eps))
    found = scaled_channels(graph.reshaped(found, x.shape), x.ndim, weight, bias)
    return [found, *moments(flat, (2,))]


@expresses(normalization.batch_dots)
def write_dots(step: Step) -> Symbol:
    x, y, mu, dims = step.args
    return reduced("ReduceSum", x * (y - mu), tuple(dims), True)


# -- attention ---------------------------------------------------------------------------------------


@expresses(attention.attention)
def write_attention(step: Step) -> list:
    """softmax(q k^T scale + mask) v, and 0 for a query whose keys are all masked."""
    (q, k, v, *rest), causal, scale = step.args
    graph = step.graph
    order = [*range(k.ndim - 2), k.ndim - 1, k.ndim - 2]
    scores = (q * float(scale)).named("MatMul", graph.transposed(k, order))
    mask = rest[0] if rest else None
    if causal:
        lowest = graph.filled([q.shape[-2], k.shape[-2]], -np.inf, q.dtype)
        scores = scores + lowest.named("Trilu", graph.scalar(1), upper=1)
    if mask is not None:
        scores = where(mask, scores, -np.inf) if mask.dtype == BOOL else scores + mask
    weights = scores.named("Softmax", axis=-1)
    if mask is not None:
        weights = where(isnan(weights), 0.0, weights)
    total = scores.named("ReduceLogSumExp", graph.integers([q.ndim - 1]), keepdims=0)
    return [weights.named("MatMul", v), total]


# -- losses ------------------------------------------------------------------------------------------


@expresses(loss.nll_loss)
def write_nll_loss(step: Step) -> Symbol:
    x, target, weight, *rest = step.args
    ignored, reduction = (*rest, -100, "mean")[:2] if len(rest) < 2 else rest
    return x.named("NegativeLogLikelihoodLoss", target, weight, ignore_index=ignored, reduction=reduction)
