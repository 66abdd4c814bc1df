"""Margin losses: scores or distances should differ by at least a margin."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rushlight.base.dtypes import int64
from rushlight.base.errors import runtime_error, value_error
from rushlight.base.placeholder import sample_by_sample
from rushlight.core.arguments import check_dtypes
from rushlight.core.tensor import Tensor, from_array, noticed
from rushlight.nn.functional.linear import pairwise_distance
from rushlight.nn.functional.loss import Old, reduced, reduction_of, times
from rushlight.ops.math import elementwise as e
from rushlight.ops.math.activation import log_sigmoid
from rushlight.ops.reduce import reduce as r
from rushlight.ops.shape.views import reshape, unsqueeze

Distance = Callable[[Tensor, Tensor], Tensor]


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, size_average: Old = None, reduce: Old = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """mean of max(0, -y (x1 - x2) + margin): y = 1 ranks x1 above x2, y = -1 below.

    RuntimeError for different numbers of dimensions.

    >>> x1, x2, y = rushlight.tensor([1., 1.]), rushlight.tensor([3., 3.]), rushlight.tensor([1., -1.])
    >>> rushlight.nn.functional.margin_ranking_loss(x1, x2, y, reduction="none")
    tensor([2., 0.])
    """
    reduction = reduction_of(size_average, reduce, reduction)
    shapes = [t._array.ndim for t in (input1, input2, target)]
    if len(set(shapes)) > 1:
        raise runtime_error(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: "
            f"{input1.shape}, input2: {input2.shape}, target: {target.shape} "
        )
    loss = e.add(e.mul(e.neg(target), e.sub(input1, input2)), float(margin))
    return reduced(e.clamp_min(loss, 0), reduction)


def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, size_average: Old = None, reduce: Old = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """mean of x where y = 1, of max(0, margin - x) where y = -1.

    >>> from rushlight.nn import functional as F
    >>> F.hinge_embedding_loss(rushlight.tensor([0.3, 0.3]), rushlight.tensor([1., -1.]), reduction="none")
    tensor([0.3000, 0.7000])
    """
    reduction = reduction_of(size_average, reduce, reduction)
    whole = input._array.dtype.kind in "iu"  # losses of integers are integers, and have no mean
    apart = e.where(e.ne(target, 1), e.clamp_min((int(margin) if whole else margin) - input, 0), 0)
    near = e.where(e.ne(target, -1), input, 0)
    return reduced(e.add(apart, near), reduction)


def soft_margin_loss(
    input: Tensor, target: Tensor, size_average: Old = None, reduce: Old = None, reduction: str = "mean"
) -> Tensor:
    """mean of log(1 + exp(-y x)), without overflow; y is 1 or -1.

    >>> from rushlight.nn import functional as F
    >>> F.soft_margin_loss(rushlight.tensor([0., -100.]), rushlight.tensor([1., 1.]), reduction="none")
    tensor([  0.6931, 100.0000])
    """
    reduction = reduction_of(size_average, reduce, reduction)
    product = e.mul(input, target)
    if product._array.shape != input._array.shape:
        raise runtime_error(
            f"output with shape {list(input.shape)} doesn't match the broadcast shape {list(product.shape)}",
            "target needs the shape of input, or one that broadcasts to it",
            op="soft_margin_loss",
        )
    loss = e.log1p(e.exp(e.neg(product))) if product.dtype.is_complex else e.neg(log_sigmoid(product)).to(input.dtype)
    return reduced(loss, reduction, "SoftMarginLossBackward0")


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, size_average: Old = None, reduce: Old = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """mean of 1 - cos(x1, x2) where y = 1, of max(0, cos(x1, x2) - margin) where y = -1; x (N, D) or (D,).

    RuntimeError for other shapes.

    >>> from rushlight.nn import functional as F
    >>> x, y = rushlight.tensor([[1., 0.]]), rushlight.tensor([[0.6, 0.8]])
    >>> F.cosine_embedding_loss(x, y, rushlight.tensor([1])), F.cosine_embedding_loss(x, y, rushlight.tensor([-1]))
    (tensor(0.4000), tensor(0.6000))
    """
    reduction = reduction_of(size_average, reduce, reduction)
    n = target._array.ndim
    if n > 1:
        raise runtime_error("0D or 1D target tensor expected, multi-target not supported", target=list(target.shape))
    if input1._array.ndim != n + 1 or input2._array.ndim != n + 1:
        raise runtime_error(
            f"{n}D target tensor expects {n + 1}D input tensors, but found inputs with sizes {list(input1.shape)} "
            f"and {list(input2.shape)}."
        )
    tiny = 1e-12
    product = r.sum(e.mul(input1, input2), (n,))
    one, two = (e.add(r.sum(e.square(x), (n,)), tiny) for x in (input1, input2))
    cosine = e.div(product, e.sqrt(e.mul(one, two)))
    near = e.where(e.eq(target, 1), 1 - cosine, 0)
    apart = e.where(e.eq(target, -1), e.clamp_min(e.sub(cosine, margin), 0), 0)
    return reduced(e.add(near, apart), reduction)


def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2, eps: float = 1e-6,
    swap: bool = False, size_average: Old = None, reduce: Old = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """mean of max(0, |a - p| - |a - n| + margin). `swap`: |p - n| in place of |a - n| if it is smaller.

    anchor, positive and negative (N, D) or (D,); |.| is `pairwise_distance` with `p` and `eps`. RuntimeError for
    different numbers of dimensions, ValueError for a margin <= 0. V. Balntas et al., *Learning local feature
    descriptors with triplets and shallow convolutional neural networks*, 2016.

    >>> a, p, n = rushlight.tensor([[0.]]), rushlight.tensor([[2.]]), rushlight.tensor([[1.5]])
    >>> rushlight.nn.functional.triplet_margin_loss(a, p, n)  # 2 - 1.5 + 1
    tensor(1.5000)
    """
    return triplet_margin_with_distance_loss(
        anchor, positive, negative, distance_function=lambda x, y: pairwise_distance(x, y, p, eps), margin=margin,
        swap=swap, reduction=reduction_of(size_average, reduce, reduction),
    )  # fmt: skip


def triplet_margin_with_distance_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, *, distance_function: Distance | None = None,
    margin: float = 1.0, swap: bool = False, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """mean of max(0, d(a, p) - d(a, n) + margin) with d = `distance_function`. `swap`: d(p, n) in place of d(a, n) if
    it is smaller.

    The default distance is `pairwise_distance`. ValueError for a margin <= 0 or an unknown reduction.

    >>> from rushlight.nn import functional as F
    >>> a, p, n = rushlight.tensor([[0., 0.]]), rushlight.tensor([[2., 2.]]), rushlight.tensor([[1., 2.5]])
    >>> F.triplet_margin_with_distance_loss(a, p, n, distance_function=lambda x, y: (x - y).abs().amax(-1))
    tensor(0.5000)
    """
    if reduction not in ("mean", "sum", "none"):
        raise value_error(f"{reduction} is not a valid value for reduction", "'mean', 'sum' or 'none'")
    if margin <= 0:
        raise value_error(f"margin must be greater than 0, got {margin}")
    distance = pairwise_distance if distance_function is None else distance_function
    dims = [t._array.ndim for t in (anchor, positive, negative)]
    if len(set(dims)) > 1:
        raise runtime_error(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but "
            f"got: anchor {dims[0]}D, positive {dims[1]}D, and negative {dims[2]}D inputs"
        )
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = e.minimum(far, distance(positive, negative))
    return reduced(e.clamp_min(e.add(e.sub(near, far), margin), 0), reduction)


def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Old = None, reduce: Old = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """mean over classes, then samples, of -w (y log s + (1 - y) log(1 - s)), s = sigmoid(x); x, y (*, C).

    >>> from rushlight.nn import functional as F
    >>> F.multilabel_soft_margin_loss(rushlight.tensor([[0., 100.]]), rushlight.ones(1, 2))  # (log 2 + 0) / 2
    tensor(0.3466)
    """
    reduction = reduction_of(size_average, reduce, reduction)
    gain = e.add(e.mul(target, log_sigmoid(input)), e.mul(1 - target, log_sigmoid(e.neg(input))))
    return reduced(r.mean(e.neg(times(gain, weight)), (input._array.ndim - 1,)), reduction)


def checked_scores(input: Tensor, reduction: str) -> tuple[int, int]:
    """(number of dimensions, number of classes) of scores (N, C), (C,) or (). An error for other shapes or another
    reduction.
    """
    ndim, c = input._array.ndim, input._array.shape[-1] if input._array.ndim else 1
    if ndim > 2 or c == 0:
        raise runtime_error(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(input.shape)}"
        )
    if reduction not in ("mean", "sum", "none"):
        raise value_error(f"{reduction} is not a valid value for reduction", "'mean', 'sum' or 'none'")
    return ndim, c


def check_labels(target: Tensor) -> None:
    """RuntimeError unless the labels are int64."""
    if target.dtype is not int64:
        raise runtime_error(
            f"expected scalar type Long but found {target.dtype.scalar_type}", "convert the target with .long()"
        )


def multi_margin_loss(
    input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Tensor | None = None,
    size_average: Old = None, reduce: Old = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """mean over samples of sum over c != y of w_y max(0, margin - x_y + x_c)^p / C; x (N, C) or (C,), y (N,) or ().

    ValueError unless p is 1 or 2, RuntimeError for shapes that do not fit.

    >>> x, y = rushlight.tensor([[0.1, 0.2, 0.9]]), rushlight.tensor([2])
    >>> rushlight.nn.functional.multi_margin_loss(x, y)  # ((1 - 0.9 + 0.1) + (1 - 0.9 + 0.2)) / 3
    tensor(0.1667)
    """
    reduction = reduction_of(size_average, reduce, reduction)
    if p not in (1, 2):
        raise value_error("only p == 1 and p == 2 supported", p=p)
    ndim, c = checked_scores(input, reduction)
    n = input._array.shape[0] if ndim == 2 else 1
    if target._array.ndim > 1 or target._array.size != n:
        raise runtime_error(
            "multi_margin_loss: The target tensor should be 1-D with size equal to the batch. Expected target "
            f"size [{n}], but got {list(target.shape)}"
        )
    if weight is not None and weight._array.ndim != 1:
        raise value_error("weight must be one-dimensional", shape=tuple(weight.shape))
    if weight is not None and weight._array.shape != (c,):
        raise runtime_error(f"inconsistent weight size, expected {c} but got {list(weight.shape)}")
    check_labels(target)
    check_dtypes("multi_margin_loss", "f", input)
    x, y = reshape(input, (n, c)), reshape(target, (n, 1))
    lost = e.clamp_min(e.add(e.sub(x, x.gather(1, y)), margin), 0)
    lost = e.square(lost) if p == 2 else lost
    if weight is not None:
        lost = e.mul(lost, unsqueeze(weight.index_select(0, reshape(y, (n,))), 1))
    others = e.ne(y, from_array(np.arange(c)))
    lost = r.mean(e.where(others, lost, 0), (1,))
    if reduction == "none" and ndim < 2:
        lost = reshape(lost, ())
    return reduced(lost, reduction, "MultiMarginLossBackward0")


@sample_by_sample
def multilabel_margin_loss(
    input: Tensor, target: Tensor, size_average: Old = None, reduce: Old = None, reduction: str = "mean"
) -> Tensor:
    """mean over samples of sum over labels y and other classes c of max(0, 1 - x_y + x_c) / C. A target row lists
    labels, ended by -1.

    x and y (N, C) or (C,). RuntimeError for shapes that do not fit.

    >>> from rushlight.nn import functional as F
    >>> x, y = rushlight.tensor([[0.1, 0.2, 0.9]]), rushlight.tensor([[2, -1, -1]])
    >>> F.multilabel_margin_loss(x, y)  # label 2 alone: ((1 - 0.9 + 0.1) + (1 - 0.9 + 0.2)) / 3
    tensor(0.1667)
    """
    reduction = reduction_of(size_average, reduce, reduction)
    ndim, c = checked_scores(input, reduction)
    if target._array.shape != input._array.shape and (ndim == 2 or target._array.size != c):
        raise runtime_error(f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}")
    check_labels(target)
    check_dtypes("multilabel_margin_loss", "f", input)
    noticed(target)
    y = target._array.reshape(-1, c)
    ended = np.logical_or.accumulate(y < 0, 1)
    is_label = np.zeros(y.shape, bool)
    rows = np.broadcast_to(np.arange(len(y))[:, None], y.shape)
    is_label[rows[~ended], y[~ended]] = True
    # labels usually fill only a few of the columns
    most = np.count_nonzero(~ended, 1).max(initial=0)
    ended, y = ended[:, :most], y[:, :most]
    x = reshape(input, (-1, c))
    own = x.gather(1, from_array(np.where(ended, 0, y)))
    lost = e.clamp_min(e.add(e.sub(unsqueeze(x, 1), unsqueeze(own, 2)), 1), 0)  # (N, labels, C)
    counted = from_array(~ended[:, :, None] & ~is_label[:, None, :])
    lost = e.div(r.sum(e.where(counted, lost, 0), (1, 2)), c)
    if reduction == "none" and ndim < 2:
        lost = reshape(lost, ())
    return reduced(lost, reduction, "MultilabelMarginLossBackward0")
