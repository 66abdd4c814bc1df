"""Normalization over batches, features, groups and instances."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from math import prod
from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.autograd.graph import packed_at_the_end
from rushlight.base import dtypes
from rushlight.base.errors import check_given, runtime_error, value_error
from rushlight.core.arguments import integer
from rushlight.core.mode import mode
from rushlight.core.tensor import Tensor
from rushlight.core.views import assign, wrote
from rushlight.kernels.layout import suggests_last
from rushlight.nn.functional.pooling import avg_pool2d, avg_pool3d
from rushlight.ops.grad_mode import no_grad
from rushlight.ops.math import elementwise as e
from rushlight.ops.nn import normalization
from rushlight.ops.reduce import reduce as r
from rushlight.ops.shape.pad import constant_pad
from rushlight.ops.shape.views import contiguous, reshape, to, unsqueeze
from rushlight.ops.shape.views import squeeze as squeezed
from rushlight.ops.tensor.node_names import called


def of_halves(function: Callable) -> Callable:
    """Let a norm accept float16 or bfloat16 input with float32 weights and statistics: the norm is computed in float32
    and rounded once.
    """

    @wraps(function)
    def normalized(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        try:
            short = input._array.dtype.itemsize == 2
        except AttributeError:
            check_given(function, (input,), {})
            raise
        if (
            short
            and input.is_floating_point()
            and any(isinstance(a, Tensor) and a.dtype is dtypes.float32 for a in (*args, *kwargs.values()))
        ):
            return to(function(to(input, dtypes.float32), *args, **kwargs), input.dtype)
        return function(input, *args, **kwargs)

    return normalized


@of_halves
def layer_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """(x - mean) / sqrt(var + eps) * weight + bias, over the last dimensions, which have `normalized_shape`.

    weight and bias have this shape, too. RuntimeError for shapes that do not match.

    >>> rushlight.nn.functional.layer_norm(rushlight.tensor([[1., 2., 3.]]), (3,))
    tensor([[-1.2247,  0.0000,  1.2247]])
    """
    dims = last_dims(input, normalized_shape, "layer_norm", weight=weight, bias=bias)
    return normalization.layer_norm(input, weight, bias, dims, eps)[0]


def last_dims(
    input: Tensor, normalized_shape: Sequence[int], name: str, **parameters: Tensor | None
) -> tuple[int, ...]:
    """The trailing dimensions, which have `shape`. RuntimeError if they or a parameter have another shape."""
    shape = tuple([integer(n, "normalized_shape") for n in normalized_shape])
    ndim = input._array.ndim
    n = len(shape)
    if n == 0:
        raise runtime_error(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but "
            f"got normalized_shape = {list(shape)}"
        )
    for what, t in parameters.items():
        if t is not None and t._array.shape != shape:
            raise runtime_error(
                f"Expected {what} to be of same shape as normalized_shape, but got {what} of shape "
                f"{list(t.shape)} and normalized_shape = {list(shape)}"
            )
    if ndim < n or input._array.shape[ndim - n :] != shape:
        wanted = ", ".join(["*", *map(str, shape)])
        raise runtime_error(
            f"Given normalized_shape={list(shape)}, expected input with shape [{wanted}], but got input of "
            f"size{list(input.shape)}",
            f"{name} normalizes the last dimensions: make the layer take them "
            f"(normalized_shape={shape_argument(input._array.shape[-n:])}), or bring them to {list(shape)}",
        )
    return tuple(range(ndim - n, ndim))


def shape_argument(shape: tuple) -> Any:
    """The shape in the form that users write: a number for one size."""
    return shape[0] if len(shape) == 1 else list(shape)


def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """x / sqrt(mean(x^2) + eps) * weight, over the last dimensions; default eps: the dtype's machine epsilon.

    `normalized_shape`: the sizes of these dimensions, which are also the weight's shape. RuntimeError for shapes that
    do not fit. B. Zhang, R. Sennrich, *Root mean square layer normalization*, 2019.

    >>> from rushlight.nn import functional as F
    >>> F.rms_norm(rushlight.tensor([[3., 4.]]), (2,))  # over sqrt(12.5)
    tensor([[0.8485, 1.1314]])
    """
    dims = last_dims(input, normalized_shape, "rms_norm", weight=weight)
    if input.dtype in (dtypes.float16, dtypes.bfloat16):  # their squares may be too large
        wide = weight if weight is None else to(weight, dtypes.float32)
        return to(rms_norm(to(input, dtypes.float32), normalized_shape, wide, eps), input.dtype)
    eps = dtypes.finfo(input.dtype).eps if eps is None else eps
    if not (isinstance(input._array, np.ndarray) and suggests_last(input._array)):
        input = contiguous(input)  # torch's memory layout of the output
    out = e.mul(input, e.rsqrt(e.add(r.mean(e.square(input), dims, True), eps)))
    return out if weight is None else e.mul(out, weight)


def check_pair(running_mean: Tensor | None, running_var: Tensor | None) -> None:
    """ValueError if only one of two arguments is given."""
    if (running_mean is None) is not (running_var is None):
        raise value_error("running_mean and running_var must either both be None or neither be None")


@of_halves
def batch_norm(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None,
    bias: Tensor | None = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """(x - mean) / sqrt(var + eps) * weight + bias, mean and var over all but the channels in dimension 1.

    Training uses the statistics of the batch, and updates the running ones with `momentum`; evaluation uses the running
    ones. All arguments (C,). ValueError for one value per channel in training, RuntimeError for shapes that do not fit.
    S. Ioffe, C. Szegedy, *Batch normalization*, 2015.

    >>> mean, var = rushlight.zeros(1), rushlight.ones(1)
    >>> rushlight.nn.functional.batch_norm(rushlight.tensor([[1.], [3.]]), mean, var, training=True)
    tensor([[-1.0000],
            [ 1.0000]])
    >>> mean, var  # a tenth of the way to 2 and 2 (over n - 1)
    (tensor([0.2000]), tensor([1.1000]))
    """
    if input._array.size == 0:  # an empty batch does not change the statistics
        out = e.mul(input, 1 if weight is None else weight[0])
        return out if bias is None else e.add(out, bias[0])
    check_channels(input, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
    if not training:
        if running_mean is None or running_var is None:
            raise runtime_error(
                "Expected running_mean and running_var to be defined when training=False",
                "pass them, or normalize by the batch: training=True",
            )
        return normalization.frozen_batch_norm(input, weight, bias, running_mean, running_var, eps)
    check_pair(running_mean, running_var)
    if eps <= 0:
        raise value_error(f"batch_norm eps must be positive during training, but got {eps}")
    shape = input._array.shape
    count = prod(shape) // max(shape[1], 1)
    if count == 1:
        raise value_error(
            f"Expected more than 1 value per channel when training, got input size {input.shape}",
            "use larger batches, or call eval()",
        )
    by_batch = normalized_by_batch if mode().watch is None else packed_at_the_end(normalized_by_batch)
    return by_batch(input, weight, bias, (0, *range(2, len(shape))), eps, running_mean, running_var, momentum, count)


def normalized_by_batch(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, dims: tuple[int, ...], eps: float,
    running_mean: Tensor | None, running_var: Tensor | None, momentum: float, count: int,
) -> Tensor:  # fmt: skip
    """The input, normalized by the batch's statistics; the running statistics are updated."""
    out, mean, var = normalization.batch_norm(input, weight, bias, dims, eps)
    if running_mean is not None or running_var is not None:
        update_running(running_mean, running_var, mean, var, momentum, count)
    return out


@no_grad()
def update_running(
    running_mean: Tensor | None, running_var: Tensor | None, mean: Tensor, var: Tensor, momentum: float, count: int
) -> None:
    """running = (1 - momentum) running + momentum new, in place; the new variance has the divisor count - 1.
    RuntimeError inside vmap, if each sample has its own statistics and all samples share the running ones."""
    if mode().batch is not None:
        check_batched(running_mean, mean)
    for running, new, factor in ((running_mean, mean, 1.0), (running_var, var, count / max(count - 1, 1))):
        if running is not None and not updated_in_place(running, new, 1 - momentum, momentum * factor):
            assign(running, normalization.moved(running, new, 1 - momentum, momentum * factor))


def check_batched(running: Tensor | None, new: Tensor) -> None:
    """RuntimeError if `new` is batched by vmap and `running` is not."""
    if running is not None and running._array.__class__ is ndarray is not new._array.__class__:
        raise runtime_error(
            "Batch norm got a batched tensor as input while the running_mean or running_var, which will be "
            "updated in place, were not batched.",
            "call eval() on the module, or make it with track_running_stats=False: each sample of vmap has its "
            "own statistics",
        )


def updated_in_place(running: Tensor, new: Tensor, keep: float, add: float) -> bool:
    """Whether NumPy can update `running` in place, without ops: only if nothing records the ops. This is faster for
    small inputs.
    """
    a, b = running._array, new._array
    if (
        running.__class__ is not Tensor
        or mode().watch is not None
        or a.__class__ is not ndarray
        or b.__class__ is not ndarray
        or a.dtype is not b.dtype
        or a.dtype.itemsize < 4
        or not a.flags.writeable
    ):
        return False
    a *= keep
    a += b.reshape(a.shape) * add
    wrote(running)
    return True


def check_channels(input: Tensor, **vectors: Tensor | None) -> None:
    """RuntimeError unless the input has a dimension 1, and each vector has one element for each channel."""
    if input._array.ndim < 2:
        raise runtime_error(
            f"batch_norm: expected an input of 2 or more dimensions, but got {input._array.ndim}",
            "its shape is (N, C, *)",
        )
    channels = input._array.shape[1]
    for name, t in vectors.items():
        if t is not None and t._array.shape != (channels,):
            raise runtime_error(
                f"{name} should contain {channels} elements not {t.numel()}",
                "the channels are last: x.movedim(-1, 1)"
                if input._array.ndim > 2 and input._array.shape[-1] == t.numel()
                else f"use num_features={channels}, the size of dimension 1 of the input",
                input=list(input.shape),
            )


@of_halves
def instance_norm(
    input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None, weight: Tensor | None = None,
    bias: Tensor | None = None, use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """(x - mean) / sqrt(var + eps) * weight + bias, mean and var of each sample's channels, over the * of (N, C, *).

    `use_input_stats=False`: use the running statistics. ValueError for a single element in *. D. Ulyanov, A. Vedaldi,
    V. Lempitsky, *Instance normalization*, 2016.

    >>> rushlight.nn.functional.instance_norm(rushlight.tensor([[[1., 3.], [10., 30.]]]))
    tensor([[[-1.0000,  1.0000],
             [-1.0000,  1.0000]]])
    """
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    check_pair(running_mean, running_var)
    n, c, *size = input._array.shape
    if prod(size) == 1:
        raise value_error(f"Expected more than 1 spatial element when training, got input size {input.shape}")
    check_channels(input, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
    if not c:
        return input.clone()
    # torch's memory layout
    out, mean, var = normalization.group_norm(contiguous(input), weight, bias, c, eps)
    if running_mean is not None or running_var is not None:
        mean, var = (r.mean(squeezed(t.detach(), 2), (0,)) for t in (mean, var))
        update_running(running_mean, running_var, mean, var, momentum, prod(size))
    return called(out, "ViewBackward0")


@of_halves
def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """(x - mean) / sqrt(var + eps) * weight + bias, mean and var of each sample's groups of channels.

    input (N, C, *), weight and bias (C,). RuntimeError unless C is a multiple of `num_groups`. Y. Wu, K. He, *Group
    normalization*, 2018.

    >>> rushlight.nn.functional.group_norm(rushlight.tensor([[1., 3., 10., 30.]]), num_groups=2)
    tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """
    if input._array.ndim < 2:
        raise runtime_error(f"Expected at least 2 dimensions for input tensor but received {input._array.ndim}")
    n, c, *size = input._array.shape
    if num_groups <= 0:
        raise runtime_error(f"Expected num groups to be greater than 0, got {num_groups}")
    if c % num_groups:
        raise runtime_error(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(input.shape)} and num_groups={num_groups}"
        )
    for what, t in (("weight", weight), ("bias", bias)):
        if t is not None and t._array.shape != (c,):
            raise runtime_error(
                f"Expected {what} to be a vector of size equal to the number of channels in input, but got {what} "
                f"of shape {list(t.shape)} and input of shape {list(input.shape)}",
                f"use num_channels={c}",
            )
    if n * (c // num_groups) * prod(size) == 1:
        raise value_error(
            f"Expected more than 1 value per channel when training, got input size {list(input.shape)}",
            f"num_groups={num_groups} leaves one value in each group",
        )
    return normalization.group_norm(input, weight, bias, num_groups, eps)[0]


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """x / (k + alpha mean of x^2 over `size` neighbouring channels)^beta; input (N, C, *) with spatial dimensions.

    The mean is over `size` channels also at the ends, with zeros for missing channels. ValueError for fewer than 3
    dimensions. A. Krizhevsky, I. Sutskever, G. Hinton, *ImageNet classification with deep convolutional neural
    networks*, 2012.

    >>> from rushlight.nn import functional as F
    >>> F.local_response_norm(rushlight.ones(1, 3, 1), size=3, alpha=3.0, beta=1.0).squeeze()  # 1 / 3, 1 / 4, 1 / 3
    tensor([0.3333, 0.2500, 0.3333])
    """
    if input._array.ndim < 3:
        raise value_error(f"Expected 3D or higher dimensionality input (got {input._array.ndim} dimensions)")
    if input._array.size == 0:
        return input
    n, c, first, *rest = input._array.shape
    ends: Any = (size // 2, (size - 1) // 2)
    squares = e.square(input)
    if not rest:
        x = constant_pad(unsqueeze(squares, 1), ((0, 0), (0, 0), ends, (0, 0)), 0)
        mean = squeezed(avg_pool2d(x, (size, 1), stride=1), 1)
    else:
        x = constant_pad(reshape(squares, (n, 1, c, first, prod(rest))), ((0, 0), (0, 0), ends, (0, 0), (0, 0)), 0)
        mean = reshape(squeezed(avg_pool3d(x, (size, 1, 1), stride=1), 1), input._array.shape)
    return e.div(input, e.pow(e.add(e.mul(mean, alpha), k), beta))
