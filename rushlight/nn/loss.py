"""Losses as modules. `reduction`: 'mean', 'sum' or 'none'; size_average and reduce are torch's older arguments for
it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

from rushlight.base.errors import runtime_error, type_error, value_error, warn
from rushlight.core.tensor import Tensor
from rushlight.nn import functional as F
from rushlight.nn.flatten_resize import PairwiseDistance
from rushlight.nn.functional.loss import Old, reduction_of
from rushlight.nn.layer_settings import Layer
from rushlight.nn.linear import Linear
from rushlight.ops.shape.views import reshape


class _Loss(Layer, shows=""):
    """A loss with a reduction and settings."""

    _not_kept = ("size_average", "reduce")
    reduction: str

    def __init__(self, size_average: Old = None, reduce: Old = None, reduction: str = "mean", **settings: Any):
        super().__init__(reduction=reduction_of(size_average, reduce, reduction), **settings)


class _WeightedLoss(_Loss):
    """A loss with a weight for each class, which is a buffer."""

    weight: Tensor | None

    def __init__(self, weight: Tensor | None = None, *reduction: Any, **settings: Any):
        super().__init__(*reduction, **settings)
        self.register_buffer("weight", weight)


class MSELoss(_Loss, function=F.mse_loss, settings="size_average reduce reduction"):
    """mean (x - y)^2.

    >>> rushlight.nn.MSELoss()(rushlight.tensor([1., 2.]), rushlight.tensor([0., 0.]))
    tensor(2.5000)
    """


class L1Loss(_Loss, function=F.l1_loss, settings="size_average reduce reduction"):
    """mean |x - y|.

    >>> rushlight.nn.L1Loss()(rushlight.tensor([1., 2.]), rushlight.tensor([0., 0.]))
    tensor(1.5000)
    """


class SmoothL1Loss(_Loss, function=F.smooth_l1_loss):
    """mean of 0.5 d^2 / beta where |d| < beta, else |d| - 0.5 beta; d = x - y. R. Girshick, *Fast R-CNN*, 2015.

    >>> rushlight.nn.SmoothL1Loss(reduction="none")(rushlight.tensor([0.5, 3.]), rushlight.tensor([0., 0.]))
    tensor([0.1250, 2.5000])
    """


class HuberLoss(_Loss, function=F.huber_loss, settings="reduction delta"):
    """mean of 0.5 d^2 where |d| < delta, else delta (|d| - 0.5 delta); d = x - y. P. J. Huber, 1964.

    >>> rushlight.nn.HuberLoss(reduction="none", delta=2.0)(rushlight.tensor([0.5, 3.]), rushlight.tensor([0., 0.]))
    tensor([0.1250, 4.0000])
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0):
        if not isinstance(delta, (int, float)):
            raise type_error(f"delta must be a float or int, got: {type(delta)}")
        super().__init__(None, None, reduction, delta=delta)


class PoissonNLLLoss(_Loss, function=F.poisson_nll_loss):
    """mean of exp(x) - y x, or x - y log(x + eps) unless `log_input`; `full`: plus Stirling's log y!.

    >>> rushlight.nn.PoissonNLLLoss()(rushlight.tensor([0.]), rushlight.tensor([2.]))  # rate exp(0), count 2
    tensor(1.)
    """

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(log_input, target, self.log_input, self.full, eps=self.eps, reduction=self.reduction)


class GaussianNLLLoss(_Loss, function=F.gaussian_nll_loss, settings="full eps reduction"):
    """mean of 0.5 (log var + (x - y)^2 / var), var at least eps; `full`: plus 0.5 log 2 pi.

    >>> mean, target, var = rushlight.tensor([1.]), rushlight.tensor([0.]), rushlight.tensor([4.])
    >>> rushlight.nn.GaussianNLLLoss()(mean, target, var)  # 0.5 (log 4 + 1 / 4)
    tensor(0.8181)
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean"):
        super().__init__(None, None, reduction, full=full, eps=eps)


class KLDivLoss(_Loss, function=F.kl_div):
    """mean of y (log y - x) for log-probabilities x and probabilities y; `log_target`: the target is log y.

    'mean' divides by the elements; 'batchmean', by the batch, is the divergence KL(y || exp(x)) of its definition.

    >>> p, q = rushlight.tensor([[0.5, 0.5]]), rushlight.tensor([[0.25, 0.75]])
    >>> rushlight.nn.KLDivLoss(reduction="batchmean")(q.log(), p)  # sum of p log(p / q)
    tensor(0.1438)
    """


class BCELoss(_WeightedLoss, function=F.binary_cross_entropy):
    """mean of -w (y log x + (1 - y) log(1 - x)) for probabilities x, the logarithms not below -100.

    >>> rushlight.nn.BCELoss()(rushlight.tensor([0.5, 0.9]), rushlight.tensor([1., 1.]))
    tensor(0.3993)
    """


class BCEWithLogitsLoss(_WeightedLoss, function=F.binary_cross_entropy_with_logits):
    """mean of -w (p y log s + (1 - y) log(1 - s)), s = sigmoid(x), without overflow; p = pos_weight.

    >>> rushlight.nn.BCEWithLogitsLoss()(rushlight.tensor([0., 1000.]), rushlight.tensor([1., 1.]))  # log 2 / 2
    tensor(0.3466)
    """

    pos_weight: Tensor | None

    def __init__(
        self, weight: Tensor | None = None, size_average: Old = None, reduce: Old = None, reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ):  # fmt: skip
        super().__init__(weight, size_average, reduce, reduction)
        self.register_buffer("pos_weight", pos_weight)


class NLLLoss(_WeightedLoss, function=F.nll_loss):
    """mean of -x[n, y_n] for log-probabilities x (N, C, *d) and classes y (N, *d).

    `weight` (C,): factors of the classes; the mean divides by the factors of the targets. Targets equal to
    `ignore_index` do not count.

    >>> rushlight.nn.NLLLoss()(rushlight.tensor([[-0.1, -2.3], [-0.7, -0.7]]), rushlight.tensor([0,
    ...     1]))  # (0.1 + 0.7) / 2
    tensor(0.4000)
    """


class NLLLoss2d(NLLLoss):
    """mean of -x[n, y_n] for log-probabilities: NLLLoss, by its old name.

    >>> log_p = rushlight.tensor([[-0.1, -2.3]])
    >>> rushlight.nn.NLLLoss2d()(log_p, rushlight.tensor([0]))
    tensor(0.1000)
    """

    def __init__(self, *args: Any, **kwargs: Any):
        warn(
            "`NLLLoss2d` has been deprecated. Please use `NLLLoss` instead as a drop-in replacement and see "
            "https://pytorch.org/docs/main/nn.html#torch.nn.NLLLoss for more details.",
            FutureWarning,
        )
        super().__init__(*args, **kwargs)


class CrossEntropyLoss(_WeightedLoss, function=F.cross_entropy):
    """mean of -log softmax(x)[n, y_n] for logits x (N, C, *d) and classes, or probabilities, y.

    Settings as `nn.functional.cross_entropy`.

    >>> rushlight.nn.CrossEntropyLoss()(rushlight.tensor([[1., 2., 3.]]), rushlight.tensor([2]))
    tensor(0.4076)
    """


@dataclass
class LinearCrossEntropyOptions:
    """loss(options) = loss(): how torch divides `linear_cross_entropy` into chunks; no effect here.

    >>> rushlight.nn.LinearCrossEntropyOptions(batch_chunk_size=1024).batch_chunk_size
    1024
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None


class LinearCrossEntropyLoss(_WeightedLoss):
    """mean of -log softmax(x w^T + b)[n, y_n], with w and b learned; settings as `nn.functional.cross_entropy`.

    `out_features`: the further dimensions *d of the logits (N, C, *d).

    >>> rushlight.nn.LinearCrossEntropyLoss(3, 4)(rushlight.ones(2, 3), rushlight.tensor([0, 3])).shape
    torch.Size([])
    """

    def __init__(
        self, in_features: int, num_classes: int, *, out_features: tuple[int, ...] = (), bias: bool = False,
        device: Any = None, dtype: Any = None, reduction: str = "mean", weight: Tensor | None = None,
        ignore_index: int | None = None, label_smoothing: float = 0.0, options: LinearCrossEntropyOptions | None = None,
    ):  # fmt: skip
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise runtime_error(f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}")
        if not 0 <= label_smoothing <= 1:
            raise runtime_error(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        super().__init__(
            weight, None, None, reduction, num_classes=num_classes, out_features=tuple(out_features),
            ignore_index=ignore_index, label_smoothing=label_smoothing, options=options,
        )  # fmt: skip
        self.linear = Linear(in_features, num_classes * prod(out_features), bias, device, dtype)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        shape = (self.num_classes, *self.out_features)
        weight, bias = self.linear.weight, self.linear.bias
        return F.linear_cross_entropy(
            input, reshape(weight, (*shape, -1)), target, linear_bias=None if bias is None else reshape(bias, shape),
            weight=self.weight, reduction=self.reduction, ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
        )  # fmt: skip

    def extra_repr(self) -> str:
        linear = self.linear
        return (
            f"in_features={linear.in_features}, num_classes={self.num_classes}, out_features={self.out_features}, "
            f"bias={linear.bias is not None}, reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )


# -- margins ---------------------------------------------------------------------------------------


class MarginRankingLoss(_Loss, function=F.margin_ranking_loss, margin=0.0):
    """mean of max(0, -y (x1 - x2) + margin): y = 1: x1 should be larger; y = -1: x2 should be larger.

    >>> x1, x2, y = rushlight.tensor([1., 1.]), rushlight.tensor([3., 3.]), rushlight.tensor([1., -1.])
    >>> rushlight.nn.MarginRankingLoss(reduction="none")(x1, x2, y)
    tensor([2., 0.])
    """


class HingeEmbeddingLoss(_Loss, function=F.hinge_embedding_loss):
    """mean of x where y = 1, of max(0, margin - x) where y = -1.

    >>> rushlight.nn.HingeEmbeddingLoss(reduction="none")(rushlight.tensor([0.3, 0.3]), rushlight.tensor([1., -1.]))
    tensor([0.3000, 0.7000])
    """


class SoftMarginLoss(_Loss, function=F.soft_margin_loss):
    """mean of log(1 + exp(-y x)).

    >>> rushlight.nn.SoftMarginLoss()(rushlight.tensor([0., 0.]), rushlight.tensor([1., -1.]))
    tensor(0.6931)
    """


class CosineEmbeddingLoss(_Loss, function=F.cosine_embedding_loss, margin=0.0):
    """mean of 1 - cos(x1, x2) where y = 1, of max(0, cos(x1, x2) - margin) where y = -1.

    >>> loss, x, y = rushlight.nn.CosineEmbeddingLoss(), rushlight.tensor([[1., 0.]]), rushlight.tensor([[0.6, 0.8]])
    >>> loss(x, y, rushlight.tensor([1])), loss(x, y, rushlight.tensor([-1]))
    (tensor(0.4000), tensor(0.6000))
    """


class MultiLabelMarginLoss(_Loss, function=F.multilabel_margin_loss):
    """mean over samples of sum over labels y and other classes c of max(0, 1 - x_y + x_c) / C. A target row lists
    labels, ended by -1.

    >>> x, y = rushlight.tensor([[0.1, 0.2, 0.9]]), rushlight.tensor([[2, -1, -1]])
    >>> rushlight.nn.MultiLabelMarginLoss()(x, y)  # label 2 alone: ((1 - 0.9 + 0.1) + (1 - 0.9 + 0.2)) / 3
    tensor(0.1667)
    """


class MultiLabelSoftMarginLoss(_WeightedLoss, function=F.multilabel_soft_margin_loss):
    """mean of -w (y log s + (1 - y) log(1 - s)), s = sigmoid(x), over classes and samples.

    >>> rushlight.nn.MultiLabelSoftMarginLoss()(rushlight.tensor([[0., 100.]]), rushlight.ones(1, 2))  # (log 2 + 0) / 2
    tensor(0.3466)
    """


class MultiMarginLoss(_WeightedLoss, function=F.multi_margin_loss):
    """mean over samples of sum over c != y of w_y max(0, margin - x_y + x_c)^p / C. ValueError unless p is 1 or 2.

    >>> x, y = rushlight.tensor([[0.1, 0.2, 0.9]]), rushlight.tensor([2])
    >>> rushlight.nn.MultiMarginLoss()(x, y)  # ((1 - 0.9 + 0.1) + (1 - 0.9 + 0.2)) / 3
    tensor(0.1667)
    """

    def __init__(
        self, p: int = 1, margin: float = 1.0, weight: Tensor | None = None, size_average: Old = None,
        reduce: Old = None, reduction: str = "mean",
    ):  # fmt: skip
        if p not in (1, 2):
            raise value_error("only p == 1 and p == 2 supported")
        if weight is not None and weight.dim() != 1:
            raise AssertionError(f"weight must be None or 1D, but got {weight.dim()}D")
        super().__init__(weight, size_average, reduce, reduction, p=p, margin=margin)


class TripletMarginLoss(_Loss, function=F.triplet_margin_loss):
    """mean of max(0, |a - p| - |a - n| + margin). ValueError for a margin <= 0. V. Balntas et al., 2016.

    >>> anchor, positive, negative = rushlight.tensor([[0.]]), rushlight.tensor([[2.]]), rushlight.tensor([[1.5]])
    >>> rushlight.nn.TripletMarginLoss()(anchor, positive, negative)  # 2 - 1.5 + 1
    tensor(1.5000)
    """

    def __init__(
        self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False, size_average: Old = None,
        reduce: Old = None, reduction: str = "mean",
    ):  # fmt: skip
        if margin <= 0:
            raise value_error(f"TripletMarginLoss: expected margin to be greater than 0, got {margin} instead")
        super().__init__(size_average, reduce, reduction, margin=margin, p=p, eps=eps, swap=swap)


class TripletMarginWithDistanceLoss(_Loss):
    """mean of max(0, d(a, p) - d(a, n) + margin), d the `distance_function`. ValueError for a margin <= 0.

    >>> loss = rushlight.nn.TripletMarginWithDistanceLoss(distance_function=lambda x, y: (x - y).abs().amax(-1))
    >>> loss(rushlight.tensor([[0., 0.]]), rushlight.tensor([[2., 2.]]), rushlight.tensor([[1., 2.5]]))
    tensor(0.5000)
    """

    def __init__(
        self, *, distance_function: Callable | None = None, margin: float = 1.0, swap: bool = False,
        reduction: str = "mean",
    ):  # fmt: skip
        if margin <= 0:
            raise value_error(
                f"TripletMarginWithDistanceLoss: expected margin to be greater than 0, got {margin} instead"
            )
        super().__init__(None, None, reduction, margin=margin, swap=swap)
        self.distance_function = PairwiseDistance() if distance_function is None else distance_function

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_with_distance_loss(
            anchor, positive, negative, distance_function=self.distance_function, margin=self.margin, swap=self.swap,
            reduction=self.reduction,
        )  # fmt: skip


class CTCLoss(_Loss, function=F.ctc_loss, settings="blank reduction zero_infinity"):
    """-log of the probability of a label sequence without known positions in time; see `nn.functional.ctc_loss`.

    A. Graves et al., *Connectionist temporal classification*, 2006.

    >>> x = rushlight.tensor([[0.6, 0.4], [0.6, 0.4]]).log()  # two steps, the blank and the label 1
    >>> rushlight.nn.CTCLoss()(x, rushlight.tensor([1]), (2,), (1,)).exp()  # 1 / (1 - 0.36): missed if both are blank
    tensor(1.5625)
    """
