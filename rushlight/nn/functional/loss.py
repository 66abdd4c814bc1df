"""Regression and classification losses. `reduction`: 'mean' over the elements, 'sum', or 'none'."""

from __future__ import annotations

import math
from math import prod
from typing import Any

import numpy as np

from rushlight.base import dtypes
from rushlight.base.errors import describe, not_implemented_error, runtime_error, value_error, warn
from rushlight.core.arguments import check_dtypes, integer
from rushlight.core.tensor import Tensor, created, from_array
from rushlight.nn.functional.linear import linear
from rushlight.ops.linalg.matmul_api import in_single
from rushlight.ops.math import elementwise as e
from rushlight.ops.math.activation import log_sigmoid
from rushlight.ops.nn import loss as losses
from rushlight.ops.reduce import reduce as r
from rushlight.ops.shape.views import reshape, to, unsqueeze
from rushlight.ops.tensor.node_names import called

Old = bool | None  # type of size_average and reduce, the older form of `reduction`


def reduced(loss: Tensor, reduction: str, name: str = "") -> Tensor:
    """The mean, the sum, or the loss itself, by `reduction`; ValueError for another value."""
    if reduction == "mean":
        loss = r.mean(loss)
    elif reduction == "sum":
        loss = r.sum(loss)
    elif reduction != "none":
        raise value_error(f"{reduction} is not a valid value for reduction", "'mean', 'sum' or 'none'")
    return called(loss, name) if name else loss


def reduction_of(size_average: Old, reduce: Old, reduction: str) -> str:
    """The `reduction` that torch's two older arguments stand for, if they are given."""
    if size_average is None and reduce is None and not isinstance(reduction, Tensor):
        return reduction
    if any(isinstance(old, Tensor) for old in (size_average, reduce, reduction)):
        raise runtime_error(
            "Boolean value of Tensor with more than one value is ambiguous: an argument of the loss's constructor "
            "is a tensor",
            "create the loss first, then call it: nn.MSELoss()(input, target); or use "
            "nn.functional.mse_loss(input, target)",
        )
    said = "none" if reduce is False else "sum" if size_average is False else "mean"
    warn(f"size_average and reduce args will be deprecated, please use reduction='{said}' instead.")
    return said


def warn_of_sizes(input: Tensor, target: Tensor) -> None:
    if input._array.shape != target._array.shape:
        warn(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). This will "
            "likely lead to incorrect results due to broadcasting. Please ensure they have the same size."
        )


def weighted(loss: Tensor, weight: Tensor | None, reduction: str, name: str = "") -> Tensor:
    """The loss times weights of its shape; 'mean' divides by the sum of the weights."""
    if weight is None:
        return reduced(loss, reduction, name)
    if weight._array.shape != loss._array.shape:
        raise value_error(
            "Inputs and weight must have the same size.", loss=tuple(loss.shape), weight=tuple(weight.shape)
        )
    total = e.mul(loss, weight)
    return (
        in_single(lambda total, weight: e.div(r.sum(total), r.sum(weight)), total, weight)
        if reduction == "mean"
        else reduced(total, reduction, name)
    )


# -- numbers ---------------------------------------------------------------------------------------


def mse_loss(
    input: Tensor, target: Tensor, size_average: Old = None, reduce: Old = None, reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """mean (x - y)^2.

    >>> rushlight.nn.functional.mse_loss(rushlight.tensor([1., 2.]), rushlight.tensor([0., 0.]))
    tensor(2.5000)
    """
    reduction = reduction_of(size_average, reduce, reduction)
    warn_of_sizes(input, target)
    return weighted(losses.mse_loss(input, target), weight, reduction, "MseLossBackward0")


def l1_loss(
    input: Tensor, target: Tensor, size_average: Old = None, reduce: Old = None, reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """mean |x - y|.

    >>> rushlight.nn.functional.l1_loss(rushlight.tensor([1., 2.]), rushlight.tensor([0., 0.]))
    tensor(1.5000)
    """
    reduction = reduction_of(size_average, reduce, reduction)
    warn_of_sizes(input, target)
    return weighted(e.abs(e.sub(input, target)), weight, reduction)


def smooth_l1_loss(
    input: Tensor, target: Tensor, size_average: Old = None, reduce: Old = None, reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:  # fmt: skip
    """mean of 0.5 d^2 / beta where |d| < beta, else |d| - 0.5 beta; d = x - y. RuntimeError for beta < 0.

    R. Girshick, *Fast R-CNN*, 2015.

    >>> from rushlight.nn import functional as F
    >>> F.smooth_l1_loss(rushlight.tensor([0.5, 3.]), rushlight.tensor([0., 0.]), reduction="none")
    tensor([0.1250, 2.5000])
    """
    reduction = reduction_of(size_average, reduce, reduction)
    warn_of_sizes(input, target)
    if beta < 0:
        raise runtime_error("smooth_l1_loss does not support negative values for beta.", beta=beta)
    if beta == 0:
        return l1_loss(input, target, reduction=reduction)
    return reduced(losses.smooth_l1_loss(input, target, beta), reduction, "SmoothL1LossBackward0")


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """mean of 0.5 d^2 where |d| < delta, else delta (|d| - 0.5 delta); d = x - y. RuntimeError for delta <= 0.

    P. J. Huber, *Robust estimation of a location parameter*, 1964.

    >>> from rushlight.nn import functional as F
    >>> F.huber_loss(rushlight.tensor([0.5, 3.]), rushlight.tensor([0., 0.]), reduction="none", delta=2.0)
    tensor([0.1250, 4.0000])
    """
    warn_of_sizes(input, target)
    if delta <= 0:
        raise runtime_error("huber_loss does not support non-positive values for delta.", delta=delta)
    return weighted(losses.huber_loss(input, target, delta), weight, reduction, "HuberLossBackward0")


def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool = True, full: bool = False, size_average: Old = None,
    eps: float = 1e-8, reduce: Old = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """mean of exp(x) - y x, or x - y log(x + eps) unless `log_input`; `full`: plus Stirling's log y!.

    >>> from rushlight.nn import functional as F
    >>> F.poisson_nll_loss(rushlight.tensor([0.]), rushlight.tensor([2.]))  # rate exp(0), count 2
    tensor(1.)
    """
    reduction = reduction_of(size_average, reduce, reduction)
    if log_input:
        loss = e.sub(e.exp(input), e.mul(target, input))
    else:
        loss = e.sub(input, e.mul(target, e.log(e.add(input, eps))))
    if full:
        safe = e.where(e.gt(target, 1), target, 1)
        stirling = e.add(e.sub(e.mul(safe, e.log(safe)), safe), e.mul(e.log(e.mul(safe, 2 * math.pi)), 0.5))
        loss = e.add(loss, e.where(e.gt(target, 1), stirling, 0))
    return reduced(loss, reduction)


def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """mean of 0.5 (log var + (x - y)^2 / var), var at least eps; `full`: plus 0.5 log 2 pi.

    `var` has the input's shape, or without its last dimension, or with 1 in its place. ValueError for another shape,
    and for values below 0.

    >>> x, y, var = rushlight.ones(1), rushlight.zeros(1), rushlight.full((1,), 4.)
    >>> rushlight.nn.functional.gaussian_nll_loss(x, y, var)  # 0.5 (log 4 + 1 / 4)
    tensor(0.8181)
    """
    if not isinstance(var, Tensor):
        var = created(from_array(np.full(input._array.shape, var, input._array.dtype)))
    if var._array.shape != input._array.shape:
        if input._array.shape[:-1] == var._array.shape:
            var = unsqueeze(var, -1)
        elif [b for a, b in zip(input._array.shape, var._array.shape) if a != b] != [1] or var.dim() != input.dim():
            raise value_error("var is of incorrect size", input=tuple(input.shape), var=tuple(var.shape))
    if reduction not in ("none", "mean", "sum"):
        raise value_error(f"{reduction} is not valid", "'mean', 'sum' or 'none'")
    if (var._array < 0).any():
        raise value_error("var has negative entry/entries")
    check_dtypes("gaussian_nll_loss", "fc", var)
    raw = var.detach()
    safe = e.add(var, e.sub(e.clamp_min(raw, eps), raw))  # at least eps, with var's gradient
    loss = e.mul(e.add(e.log(safe), e.div(e.square(e.sub(input, target)), safe)), 0.5)
    return reduced(e.add(loss, 0.5 * math.log(2 * math.pi)) if full else loss, reduction)


# -- probabilities ---------------------------------------------------------------------------------


def same_sizes(input: Tensor, target: Tensor, what: str) -> None:
    """ValueError unless both shapes are equal; `what` is the message, with {input} and {target}."""
    if input._array.shape != target._array.shape:
        raise value_error(
            what.format(input=input.shape, target=target.shape),
            f"the target needs the input's shape: target.reshape({tuple(input.shape)})"
            if input.numel() == target.numel()
            else "the target needs the input's shape",
        )


def times(loss: Tensor, weight: Tensor | None) -> Tensor:
    return loss if weight is None else e.mul(loss, weight)


def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Old = None, reduce: Old = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """mean of -w (y log x + (1 - y) log(1 - x)), the logarithms not below -100; x are probabilities.

    RuntimeError for x outside [0, 1] and for different dtypes, ValueError for different shapes.

    >>> from rushlight.nn import functional as F
    >>> F.binary_cross_entropy(rushlight.tensor([0.5, 0.9]), rushlight.tensor([1., 1.]), reduction="none")
    tensor([0.6931, 0.1054])
    """
    reduction = reduction_of(size_average, reduce, reduction)
    same_sizes(
        input,
        target,
        "Using a target size ({target}) that is different to the input size ({input}) is deprecated. Please ensure "
        "they have the same size.",
    )
    if input.dtype is not target.dtype:
        raise runtime_error(
            f"Found dtype {target.dtype.scalar_type} but expected {input.dtype.scalar_type}",
            "convert the target: target.to(input.dtype)",
            input=describe(input),
            target=describe(target),
        )
    loss = times(losses.binary_cross_entropy(input, target), weight)
    return reduced(loss, reduction, "BinaryCrossEntropyBackward0")


def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Old = None, reduce: Old = None,
    reduction: str = "mean", pos_weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """mean of -w (p y log s + (1 - y) log(1 - s)), s = sigmoid(x), without overflow; p = pos_weight.

    >>> rushlight.nn.functional.binary_cross_entropy_with_logits(rushlight.tensor([0.]), rushlight.tensor([1.]))
    tensor(0.6931)
    """
    reduction = reduction_of(size_average, reduce, reduction)
    same_sizes(input, target, "Target size ({target}) must be the same as input size ({input})")
    if target.dtype.category < dtypes.FLOATING:
        raise runtime_error(
            f"result type {input.dtype.scalar_type} can't be cast to the desired output type "
            f"{target.dtype.scalar_type}",
            "convert the target: target.float()",
            input=describe(input),
            target=describe(target),
        )
    check_dtypes("binary_cross_entropy_with_logits", "f", input)
    if pos_weight is None:
        loss = losses.binary_cross_entropy_with_logits(input, target)
    else:  # (1 - y) x - (1 + (p - 1) y) log s
        factor = e.add(e.mul(e.sub(pos_weight, 1), target), 1)
        loss = e.sub(e.mul(1 - target, input), e.mul(factor, log_sigmoid(input)))
    return reduced(times(loss, weight), reduction, "BinaryCrossEntropyWithLogitsBackward0")


def kl_div(
    input: Tensor, target: Tensor, size_average: Old = None, reduce: Old = None, reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:  # fmt: skip
    """mean of y (log y - x) for log-probabilities x and probabilities y; `log_target`: the target is log y.

    'mean' divides by the elements; 'batchmean', by the batch, is the divergence KL(y || exp(x)) of its definition.
    RuntimeError for integers.

    >>> p, q = rushlight.tensor([[0.5, 0.5]]), rushlight.tensor([[0.25, 0.75]])
    >>> rushlight.nn.functional.kl_div(q.log(), p, reduction="batchmean")  # sum of p log(p / q)
    tensor(0.1438)
    """
    said = reduction if size_average is None and reduce is None else ""
    reduction = reduction_of(size_average, reduce, reduction)
    if min(input.dtype.category, target.dtype.category) < dtypes.FLOATING:
        raise runtime_error(
            "kl_div: Integral inputs not supported.",
            "convert the probabilities: target.float()",
            input=describe(input),
            target=describe(target),
        )
    if input.dtype.is_complex or target.dtype.is_complex:
        raise runtime_error("kl_div: Complex inputs not supported.")
    if log_target:
        loss = e.mul(e.exp(target), e.sub(target, input))
    else:
        loss = e.sub(e.xlogy(target, target), e.mul(target, input))
    if said == "mean":
        warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size.'batchmean' divides "
            "only by the batch size, and aligns with the KL div math definition.'mean' will be changed to behave the "
            "same as 'batchmean' in the next major release."
        )
    if reduction == "batchmean":
        total = r.sum(loss)
        return e.div(total, input._array.shape[0]) if input._array.ndim else total
    return reduced(loss, reduction)


# -- classes ---------------------------------------------------------------------------------------


def nll_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Old = None, ignore_index: int = -100,
    reduce: Old = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """mean of -x[n, y_n]: log-probabilities x (N, C, *d) or (C,), classes y (N, *d) or (), int64.

    `weight` (C,): factors of the classes; the mean divides by the factors of the targets. Targets equal to
    `ignore_index` do not count. IndexError for a class outside 0 to C - 1, ValueError or RuntimeError for shapes that
    do not fit.

    >>> from rushlight.nn import functional as F
    >>> F.nll_loss(rushlight.tensor([[-0.1, -2.3], [-0.7, -0.7]]), rushlight.tensor([0, 1]))  # (0.1 + 0.7) / 2
    tensor(0.4000)
    """
    reduction = reduction_of(size_average, reduce, reduction)
    if reduction not in ("mean", "sum", "none"):
        raise value_error(f"{reduction} is not a valid value for reduction", "'mean', 'sum' or 'none'")
    ignore_index = integer(ignore_index, "ignore_index")
    x, t = input._array, target._array
    if x.ndim < 3 and t.shape == x.shape[:-1] and x.ndim and weight is None:
        return losses.nll_loss(input, target, weight, ignore_index, reduction)
    check_classes(input, target, weight)
    loss = losses.nll_loss(input, target, weight, ignore_index, reduction)
    return called(loss, "NllLoss2DBackward0") if x.ndim > 2 else loss


def check_classes(input: Tensor, target: Tensor, weight: Tensor | None) -> None:
    """Errors in torch's words for shapes of log-probabilities, classes and weights that do not match."""
    x, t = input._array.shape, target._array.shape
    if not x:
        raise value_error("Expected 1 or more dimensions (got 0)", "input needs a logit for each class")
    if len(x) > 1 and (not t or x[0] != t[0]):
        raise value_error(
            f"Expected input batch_size ({x[0]}) to match target batch_size ({t[0] if t else 1}).",
            "target needs one class for each row of the input",
            input=x,
            target=t,
        )
    if len(x) < 3 and len(t) > 1:
        raise runtime_error(
            "0D or 1D target tensor expected, multi-target not supported",
            "drop the dimension of size 1: target.squeeze(1)"
            if t == (x[0], 1)
            else "pass class indices, or float probabilities of the input's shape",
            target=t,
        )
    wanted = (*x[:1], *x[2:]) if len(x) > 1 else ()
    if t != wanted:
        raise runtime_error(f"Expected target size {list(wanted)}, got {list(t)}", input=x)
    classes = x[min(len(x) - 1, 1)]
    if weight is not None and weight.dtype is not input.dtype:
        raise runtime_error(
            f"expected scalar type {input.dtype.scalar_type} but found {weight.dtype.scalar_type}",
            "convert the weight with .to(dtype)",
        )
    if weight is not None and weight._array.shape != (classes,):
        raise runtime_error(
            f"weight tensor should be defined either for all {classes} classes or no classes but got weight "
            f"tensor of shape: {list(weight.shape)}"
        )


def cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Old = None, ignore_index: int = -100,
    reduce: Old = None, reduction: str = "mean", label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    """mean of -log softmax(x)[n, y_n]: logits x (N, C, *d) or (C,), classes y (N, *d) or () in int64.

    y may also be probabilities, floats of the input's shape. `weight` (C,): factors of the classes; targets of
    `ignore_index` do not count; `label_smoothing`: the fraction of the target that is distributed over all classes.
    Errors as for `nll_loss`.

    >>> rushlight.nn.functional.cross_entropy(rushlight.tensor([[1., 2., 3.]]), rushlight.tensor([2]))
    tensor(0.4076)
    """
    if size_average is not None or reduce is not None:
        reduction = reduction_of(size_average, reduce, reduction)
    if not 0 <= label_smoothing <= 1:
        raise runtime_error(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    if input._array.ndim == 0:
        raise runtime_error("cross_entropy: expected an input of 1 or more dimensions, but got 0")
    if input.dtype.category < dtypes.FLOATING:
        raise not_implemented_error(
            f"\"log_softmax\" not implemented for '{input.dtype.scalar_type}'",
            "the logits (floats) come first, the classes (integers) second: swapped?",
        )
    dim = 1 if input._array.ndim > 1 else 0
    logs = r.log_softmax(input, dim)
    if input._array.shape == target._array.shape:
        return soft_cross_entropy(logs, target, weight, dim, ignore_index, reduction, label_smoothing)
    loss = nll_loss(logs, target, weight, ignore_index=ignore_index, reduction=reduction)
    if label_smoothing == 0:
        return loss
    spread = shared_loss(logs, target, weight, dim, ignore_index, reduction)
    share = label_smoothing / input._array.shape[dim]
    return e.add(e.mul(loss, 1 - label_smoothing), e.mul(spread, share))


def along_classes(weight: Tensor | None, ndim: int, dim: int) -> Tensor | None:
    """Weights (C,) reshaped to broadcast against (N, C, *d)."""
    return None if weight is None else reshape(weight, (-1,) + (1,) * (ndim - dim - 1))


def soft_cross_entropy(
    logs: Tensor, target: Tensor, weight: Tensor | None, dim: int, ignore_index: int, reduction: str,
    label_smoothing: float,
) -> Tensor:  # fmt: skip
    """-sum over the classes of w y log softmax(x), for probabilities y."""
    if target.dtype.category < dtypes.FLOATING:
        raise runtime_error(
            f"Expected floating point type for target with class probabilities, got {target.dtype}",
            "pass class indices, target.argmax(1), or float probabilities, target.float()",
        )
    if ignore_index >= 0:
        raise runtime_error("ignore_index is not supported for floating point target")
    classes = logs._array.shape[dim]
    if label_smoothing > 0:
        target = e.add(e.mul(target, 1 - label_smoothing), label_smoothing / classes)
    loss = e.neg(r.sum(times(e.mul(logs, target), along_classes(weight, logs._array.ndim, dim)), (dim,)))
    if reduction == "mean":
        n = loss._array.size if classes else 0
        return in_single(lambda x: e.div(r.sum(x), n), loss)  # the mean of no elements is nan, as in torch
    return reduced(loss, reduction)


def shared_loss(
    logs: Tensor, target: Tensor, weight: Tensor | None, dim: int, ignore_index: int, reduction: str
) -> Tensor:
    """The term of label smoothing: the mean loss of all classes."""
    loss = e.neg(r.sum(times(logs, along_classes(weight, logs._array.ndim, dim)), (dim,)))
    counted = e.ne(target, ignore_index)
    loss = e.where(counted, loss, 0)
    if reduction != "mean":
        return reduced(loss, reduction)
    if weight is None:
        of_all = r.sum(counted)
    else:
        rows = reshape(e.where(counted, target, 0), (-1,))
        factors = weight.index_select(0, rows)
        wide = to(factors, dtypes.float32) if factors.dtype.itemsize == 2 else factors
        of_all = r.sum(e.mul(wide, reshape(counted, (-1,))))
    return in_single(lambda x: e.div(r.sum(x), of_all), loss)


def linear_cross_entropy(
    input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None,
    weight: Tensor | None = None, reduction: str = "mean", ignore_index: int | None = None,
    label_smoothing: float = 0.0, options: Any = None,
) -> Tensor:  # fmt: skip
    """mean of -log softmax(x w^T + b)[n, y_n]: cross_entropy of a linear map; `options` do nothing here.

    input (N, in) or (in,), linear_weight (C, *d, in), linear_bias (C, *d), target, `weight` and errors as for
    `cross_entropy`.

    >>> from rushlight.nn import functional as F
    >>> x, w = rushlight.ones(2, 3), rushlight.zeros(4, 3)
    >>> F.linear_cross_entropy(x, w, rushlight.tensor([0, 3]))  # log 4: all classes are alike
    tensor(1.3863)
    """
    check_linear(input, linear_weight, linear_bias, target, weight, ignore_index, label_smoothing)
    *classes, features = linear_weight._array.shape
    flat_bias = None if linear_bias is None else reshape(linear_bias, (-1,))
    logits = linear(input, reshape(linear_weight, (prod(classes), features)), flat_bias)
    logits = reshape(logits, (*input._array.shape[:-1], *classes))
    return cross_entropy(
        logits, target, weight, reduction=reduction, label_smoothing=label_smoothing,
        ignore_index=-100 if ignore_index is None else ignore_index,
    )  # fmt: skip


def check_linear(
    input: Tensor, linear_weight: Tensor, linear_bias: Tensor | None, target: Tensor, weight: Tensor | None,
    ignore_index: int | None, label_smoothing: float,
) -> None:  # fmt: skip
    """RuntimeError, in torch's words, for arguments of `linear_cross_entropy` that do not match."""
    x, w = input._array.shape, linear_weight._array.shape
    what = ""
    if len(x) not in (1, 2):
        what = f"expected input with dimensionality 1 or 2, got {len(x)}"
    elif len(w) < 2:
        what = f"expected linear_weight with dimensionality at least 2, got {len(w)}"
    elif x[-1] != w[-1]:
        what = (
            f"expected equal input and linear_weight last dimensions (in_features), got {x[-1]} and {w[-1]}, "
            "respectively"
        )
    elif len(w) > 2 and len(x) == 1:
        what = (
            f"K-dimensional loss defined by linear_weight shape {w} requires batched input, (N, {w[-1]}), got "
            f"unbatched input with shape {x}"
        )
    elif linear_bias is not None and linear_bias._array.shape != w[:-1]:
        what = f"expected linear_bias shape {w[:-1]}, got {linear_bias._array.shape}"
    elif weight is not None and weight._array.shape != w[:1]:
        what = f"expected weight shape to be {w[:1]}, got {weight._array.shape}"
    elif ignore_index is not None and target.dtype.category >= dtypes.FLOATING:
        what = "ignore_index cannot be specified when target contains probabilities"
    elif not 0 <= label_smoothing <= 1:
        what = f"expected label_smoothing to be in range [0, 1], got {label_smoothing}"
    if what:
        raise runtime_error(what, op="linear_cross_entropy")
