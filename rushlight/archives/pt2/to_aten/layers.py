"""Products with weights, convolutions, pooling, resizing, normalization, attention."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.core.tensor import from_array
from rushlight.onnx.to_onnx.sizes import Size, Varying
from rushlight.ops.linalg.matmul import dot, linear, mm, mv
from rushlight.ops.nn import attention, conv, loss, normalization, pool
from rushlight.ops.nn.resize import blend

from .rules import Step, called, expresses, same
from .writer import NotExpressed, Symbol, example

called("matmul.default", mm, mv, dot)
same("default", linear, conv.im2col, conv.col2im)


@expresses(conv.convolution)
def write_convolution(step: Step) -> Symbol:
    x, weight, bias, stride, padding, dilation, groups = step.args
    return step.call(
        "convolution.default", x, weight, bias, stride, padding, dilation, False, [0] * len(stride), groups
    )


@expresses(conv.conv_input_grad)
def write_transposed_convolution(step: Step) -> Symbol:
    x, weight, size, stride, padding, dilation, groups = step.args
    least = [
        (n - 1) * s - 2 * p + d * (k - 1) + 1
        for n, s, p, d, k in zip(x.shape[2:], stride, padding, dilation, weight.shape[2:], strict=True)
    ]
    more = [n - m for n, m in zip(size, least)]
    return step.call("convolution.default", x, weight, None, stride, padding, dilation, True, more, groups)


# -- pooling and resizing ----------------------------------------------------------------------------


@expresses(pool.max_pool, pool.max_values)
def write_max_pool(step: Step) -> Any:
    x, kernel, stride, padding, dilation, ceil_mode = step.args
    k = len(kernel)
    if k == 1 or step.runs(pool.max_values):
        step.unused(1)
        found = step.call(f"max_pool{k}d.default", x, kernel, stride, padding, dilation, bool(ceil_mode))
        return found if step.runs(pool.max_values) else [found, None]
    return step.call(f"max_pool{k}d_with_indices.default", x, kernel, stride, padding, dilation, bool(ceil_mode))


@expresses(pool.avg_pool)
def write_avg_pool(step: Step) -> Symbol:
    x, kernel, stride, padding, ceil_mode, with_padding, divisor = step.args
    k = len(kernel)
    more = () if k == 1 else (divisor,)
    if k == 1 and divisor is not None:
        raise NotExpressed("ATen's avg_pool1d has no divisor")
    return step.call(f"avg_pool{k}d.default", x, kernel, stride, padding, bool(ceil_mode), bool(with_padding), *more)


@expresses(pool.adaptive_avg_pool, pool.adaptive_max_pool)
def write_adaptive_pool(step: Step) -> Any:
    return step.call(f"{step.op.name}{len(step.args[1])}d.default", *step.args)


@expresses(pool.avg_pool_grad)
def write_repeated_elements(step: Step) -> Symbol:
    """Resizing by whole numbers to the nearest element."""
    x, size, kernel, stride, padding, _, _, divisor = step.args
    if (
        kernel != stride
        or any(padding)
        or divisor != 1
        or any(n * k != m for n, k, m in zip(x.shape[2:], kernel, size))
    ):
        raise NotExpressed("it is a derivative")
    return step.call(f"upsample_nearest{len(size)}d.vec", x, size, None)


@expresses(blend)
def write_resizing(step: Step) -> Symbol:
    """Resizing along a dimension: a product with the matrix that resizes the identity; for a dynamic size, the operator
    that resizes an image, of which the other sizes stay."""
    x, dim, how, *back = step.args
    if any(isinstance(part, (Size, Varying)) for part in how):
        return write_dynamic_resizing(step, x, dim, how)
    size = how[1]
    eye = from_array(np.eye(size, dtype=x.tensor._array.dtype))
    matrix = step.writer.constant(blend(eye, 1, how, *back)._array)
    turned = step.call("transpose.int", x, dim, -1)
    return step.call("transpose.int", step.call("matmul.default", turned, matrix), dim, -1)


def write_dynamic_resizing(step: Step, x: Symbol, dim: int, how: tuple) -> Symbol:
    """Resizing along a dimension of dynamic size."""
    mode, _, out, _, setting = how
    name = RESIZED.get((mode, bool(setting) and mode == "nearest", x.ndim - 2))
    if name is None or dim < 2:
        raise NotExpressed("ATen has no such resizing of a dynamic dimension")
    sizes = [out if d == dim else x.shape[d] for d in range(2, x.ndim)]
    made = step.call(f"{name}.vec", x, sizes, *(() if mode == "nearest" else (bool(setting),)), None)
    for k, (before, after) in enumerate(zip(x.tensors, made.tensors)):
        if not np.allclose(blend(before, dim, tuple(example(how, k)))._array, after._array, 1e-4, 1e-5):
            raise NotExpressed("ATen resizes a dynamic dimension by the result's size, and not by this factor")
    return made


# (mode, whether it takes the nearest element exactly, dimensions of an image) -> operator
RESIZED = {
    **{("nearest", False, k): f"upsample_nearest{k}d" for k in (1, 2, 3)},
    **{("nearest", True, k): f"_upsample_nearest_exact{k}d" for k in (1, 2, 3)},
    ("linear", False, 1): "upsample_linear1d", ("linear", False, 2): "upsample_bilinear2d",
    ("linear", False, 3): "upsample_trilinear3d", ("bicubic", False, 2): "upsample_bicubic2d",
}  # fmt: skip


# -- normalization -----------------------------------------------------------------------------------


@expresses(normalization.frozen_batch_norm)
def write_batch_norm(step: Step) -> Symbol:
    x, weight, bias, mean, var, eps = step.args
    return step.call("batch_norm.default", x, weight, bias, mean, var, False, 0.0, eps, False)


@expresses(normalization.layer_norm)
def write_layer_norm(step: Step) -> list:
    step.unused(1, 2)
    x, weight, bias, dims, eps = step.args
    if sorted([d % x.ndim for d in dims]) != [*range(x.ndim - len(dims), x.ndim)]:
        raise NotExpressed("it does not go over the last dimensions")
    shape = [x.shape[d] for d in sorted([d % x.ndim for d in dims])]
    return [step.call("layer_norm.default", x, shape, weight, bias, eps, False), None, None]


@expresses(normalization.group_norm)
def write_group_norm(step: Step) -> list:
    step.unused(1, 2)
    x, weight, bias, groups, eps = step.args
    return [step.call("group_norm.default", x, groups, weight, bias, eps, False), None, None]


@expresses(normalization.batch_norm)
def write_normalized_channels(step: Step) -> list:
    """Batch norm with the batch's own statistics: (x - mean) / sqrt(var + eps) weight + bias."""
    x, weight, bias, dims, eps = step.args
    mean = step.call("mean.dim", x, [*dims], True)
    var = step.call("var.correction", x, [*dims], correction=0, keepdim=True)
    away = step.call("sub.Tensor", x, mean)
    scale = step.call("rsqrt.default", step.call("add.Scalar", var, eps))
    made = step.call("mul.Tensor", away, scale)
    for target, p in (("mul.Tensor", weight), ("add.Tensor", bias)):
        if p is not None:
            wide = p if p.ndim > 1 else step.call("reshape.default", p, [-1, *[1] * (x.ndim - 2)])
            made = step.call(target, made, wide)
    shapes = [shape for _, shape, _ in step.outs[1:]]
    return [made, *[step.call("reshape.default", m, shape) for m, shape in zip((mean, var), shapes)]]


@expresses(normalization.moved)
def write_moved(step: Step) -> Symbol:
    """Running statistics: x keep + y add."""
    x, y, keep, add = step.args
    new = step.call("mul.Scalar", step.call("reshape.default", y, x.shape), add)
    return step.call("add.Tensor", step.call("mul.Scalar", x, keep), new)


# -- attention and losses ----------------------------------------------------------------------------


@expresses(attention.attention)
def write_attention(step: Step) -> list:
    step.unused(1)
    (q, k, v, *rest), causal, scale = step.args
    if rest and causal:
        raise NotExpressed("ATen's attention has a mask, or is causal")
    mask = rest[0] if rest else None
    name = "scaled_dot_product_attention.default"
    return [step.call(name, q, k, v, mask, 0.0, bool(causal), scale=float(scale)), None]


@expresses(loss.nll_loss)
def write_nll_loss(step: Step) -> Symbol:
    x, target, weight, *rest = step.args
    ignored, reduction = rest[0] if rest else -100, rest[1] if len(rest) > 1 else "mean"
    return step.call("nll_loss_nd.default", x, target, weight, ("none", "mean", "sum").index(reduction), ignored)
