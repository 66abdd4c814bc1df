"""Normalization functions that torch's layers call: they also return the statistics, and all arguments are
positional."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from rushlight.base.errors import runtime_error
from rushlight.core.tensor import Tensor, from_array
from rushlight.core.views import into
from rushlight.nn.functional import normalization
from rushlight.ops.math import elementwise as e
from rushlight.ops.nn import normalization as norm
from rushlight.ops.shape.views import reshape

Statistics = tuple[Tensor, Tensor, Tensor]  # normalized input, mean, 1 / sqrt(var + eps)


def native_layer_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> Statistics:
    """(layer_norm(input), mean, 1 / sqrt(var + eps)); the last two have no gradient.

    >>> rushlight.native_layer_norm(rushlight.tensor([[1., 3.]]), [2], None, None, 0.)[1]
    tensor([[2.]])
    """
    dims = normalization.last_dims(input, normalized_shape, "layer_norm", weight=weight, bias=bias)
    out, mean, var = norm.layer_norm(input, weight, bias, dims, eps)
    return out, *statistics(mean, var, eps)


def native_group_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, N: int, C: int, HxW: int, group: int, eps: float
) -> Statistics:
    """(group_norm(input), mean, 1 / sqrt(var + eps)), the last two (N, group).

    >>> rushlight.native_group_norm(rushlight.ones(2, 4, 3), None, None, 2, 4, 3, 2, 0.1)[1].shape
    torch.Size([2, 2])
    """
    if group <= 0 or C % group:
        raise runtime_error(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(input.shape)} and num_groups={group}"
        )
    rows = reshape(input, (N, group, C // group * HxW))
    out, mean, var = norm.layer_norm(rows, None, None, (2,), eps)
    out, column = reshape(out, input._array.shape), (C,) + (1,) * (input._array.ndim - 2)
    if weight is not None:
        out = e.mul(out, reshape(weight, column))
    if bias is not None:
        out = e.add(out, reshape(bias, column))
    return out, reshape(mean, (N, group)), e.rsqrt(e.add(reshape(var, (N, group)), eps))


def native_batch_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
    training: bool, momentum: float, eps: float, *, out: Statistics | None = None,
) -> Statistics:  # fmt: skip
    """(batch_norm(input), mean, 1 / sqrt(var + eps)) of each channel; outside of training the last two are empty.

    In training the running statistics move by `momentum`.

    >>> rushlight.native_batch_norm(rushlight.tensor([[1.], [3.]]), None, None, None, None, True, 0.1, 0.)[1]
    tensor([2.])
    """
    normalization.check_channels(input, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
    made = (
        trained(input, weight, bias, running_mean, running_var, momentum, eps)
        if training
        else (
            normalization.batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps),
            from_array(np.zeros(0, input._array.dtype)),
            from_array(np.zeros(0, input._array.dtype)),
        )
    )
    return made if out is None else into(out, made)


def trained(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
    momentum: float, eps: float,
) -> Statistics:  # fmt: skip
    """Normalize by the statistics of the batch, and update the running statistics."""
    shape = input._array.shape
    out, mean, var = norm.batch_norm(input, weight, bias, (0, *range(2, len(shape))), eps)
    normalization.update_running(running_mean, running_var, mean, var, momentum, prod(shape) // max(shape[1], 1))
    return out, *[reshape(t, (-1,)) for t in statistics(mean, var, eps)]


def statistics(mean: Tensor, var: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Mean and 1 / sqrt(var + eps), as constants."""
    return from_array(mean._array), e.rsqrt(e.add(from_array(var._array), eps))
