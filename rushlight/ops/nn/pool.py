"""Pooling: maxima by a pair of ops that scatter and gather, averages by pairs of linear maps."""

from __future__ import annotations

from rushlight.core.build import build, inner
from rushlight.core.worlds import ARRAYS
from rushlight.kernels import fractional_pool
from rushlight.kernels import pool as kernels
from rushlight.ops.tensor.node_names import of_pool

KERNELS = """max_pool max_values adaptive_max_pool scatter_spatial gather_spatial avg_pool avg_pool_grad
             adaptive_avg_pool adaptive_avg_pool_grad"""
for name in KERNELS.split():
    ARRAYS[name] = getattr(kernels, name)
ARRAYS["fractional_max_pool"] = fractional_pool.fractional_max_pool

# x (N, C, *size); kernel, stride, padding, dilation, size are tuples of ints, indices flat over the spatial input
# fmt: off
max_pool = inner(
    lambda x, /, kernel, stride, padding, dilation, ceil_mode: max_pool(
        x, kernel, stride, padding, dilation, ceil_mode
    ),
    x=lambda gs, indices, x_shape: scatter_spatial(gs[0], indices, x_shape[2:]),
    outputs="out indices", node=of_pool("MaxPool", "WithIndices"), batched="fold", sizes="leading", called="max_pool",
    takes="uif")
# the maxima without their indices, for calls without a gradient
max_values = inner(
    lambda x, /, kernel, stride, padding, dilation, ceil_mode: max_values(
        x, kernel, stride, padding, dilation, ceil_mode
    ),
    batched="fold", sizes="leading", called="max_pool", takes="uif")
adaptive_max_pool = inner(lambda x, /, output_size: adaptive_max_pool(x, output_size),
    x=lambda gs, indices, x_shape: scatter_spatial(gs[0], indices, x_shape[2:]),
    outputs="out indices", node=of_pool("AdaptiveMaxPool"), batched="fold", sizes="leading", takes="f")
fractional_max_pool = inner(
    lambda x, samples, /, kernel, output_size: fractional_max_pool(x, samples, kernel, output_size),
    x=lambda gs, indices, x_shape: scatter_spatial(gs[0], indices, x_shape[2:]),
    outputs="out indices", batched="fold", takes="f")
scatter_spatial = inner(lambda x, indices, /, size: scatter_spatial(x, indices, size),
    x=lambda g, indices: gather_spatial(g, indices), called="max_unpool", takes="f", batched="fold")
gather_spatial = inner(lambda x, indices, /: gather_spatial(x, indices),
    x=lambda g, indices, x_shape: scatter_spatial(g, indices, x_shape[2:]), batched="fold")

avg_pool = inner(
    lambda x, /, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override: avg_pool(
        x, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override
    ),
    x=lambda g, x_shape, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override: avg_pool_grad(
        g, x_shape[2:], kernel, stride, padding, ceil_mode, count_include_pad, divisor_override
    ),
    node=of_pool("AvgPool"), batched="fold", sizes="leading", takes="if")
avg_pool_grad = inner(
    lambda x, /, size, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override: avg_pool_grad(
        x, size, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override
    ),
    x=lambda g, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override: avg_pool(
        g, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override
    ),
    batched="fold")
adaptive_avg_pool = inner(lambda x, /, output_size: adaptive_avg_pool(x, output_size),
    x=lambda g, x_shape: adaptive_avg_pool_grad(g, x_shape[2:]),
    node=of_pool("AdaptiveAvgPool"), batched="fold", sizes="leading", takes="f")
adaptive_avg_pool_grad = inner(lambda x, /, size: adaptive_avg_pool_grad(x, size),
    x=lambda g, x_shape: adaptive_avg_pool(g, x_shape[2:]), batched="fold")
# fmt: on

build(globals())
