"""Dropout as modules: active in training, the identity in evaluation."""

from __future__ import annotations

from rushlight.base.errors import check_kinds, value_error
from rushlight.nn import functional as F
from rushlight.nn.layer_settings import Layer


class _DropoutNd(Layer):
    """Dropout with probability p. ValueError unless p is in [0, 1]."""

    def __init__(self, p: float = 0.5, inplace: bool = False):
        check_kinds(type(self).__name__, [("p", "float", p)])
        if p < 0 or p > 1:
            raise value_error(
                f"dropout probability has to be between 0 and 1, but got {p}",
                "pass the fraction of elements to drop, such as 0.5",
            )
        super().__init__(p=p, inplace=inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd, function=F.dropout):
    """x m / (1 - p) in training, where m is 0 with probability p, else 1, for each element; x itself in evaluation.

    ValueError unless p is in [0, 1]. G. Hinton et al., *Improving neural networks by preventing co-adaptation of
    feature detectors*, 2012.

    >>> _ = rushlight.manual_seed(0)
    >>> dropout = rushlight.nn.Dropout(0.5)
    >>> dropout(rushlight.ones(4)), dropout.eval()(rushlight.ones(4))
    (tensor([0., 0., 2., 0.]), tensor([1., 1., 1., 1.]))
    """


class Dropout1d(_DropoutNd, function=F.dropout1d):
    """x m / (1 - p) in training, where m is 0 with probability p, else 1, for each channel of (N, C, L) or (C, L).

    >>> _ = rushlight.manual_seed(0)
    >>> rushlight.nn.Dropout1d(0.5)(rushlight.ones(4, 3))
    tensor([[0., 0., 0.],
            [0., 0., 0.],
            [2., 2., 2.],
            [0., 0., 0.]])
    """


class Dropout2d(_DropoutNd, function=F.dropout2d):
    """x m / (1 - p) in training, where m is 0 with probability p, else 1, for each channel of (N, C, H, W).

    J. Tompson et al., *Efficient object localization using convolutional networks*, 2015.

    >>> _ = rushlight.manual_seed(0)
    >>> rushlight.nn.Dropout2d(0.5)(rushlight.ones(1, 4, 1, 2)).squeeze()
    tensor([[0., 0.],
            [0., 0.],
            [2., 2.],
            [0., 0.]])
    """


class Dropout3d(_DropoutNd, function=F.dropout3d):
    """x m / (1 - p) in training, where m is 0 with probability p, else 1, for each channel of (N, C, D, H, W) or (C, D,
    H, W).

    >>> _ = rushlight.manual_seed(0)
    >>> rushlight.nn.Dropout3d(0.5)(rushlight.ones(4, 1, 1, 2)).squeeze()
    tensor([[0., 0.],
            [0., 0.],
            [2., 2.],
            [0., 0.]])
    """


class AlphaDropout(_DropoutNd, function=F.alpha_dropout):
    """a (x m + (m - 1) 1.758 + 1.758 p) in training, where m is 0 with probability p, else 1: dropout to selu's limit,
    not to 0.

    a = 1 / sqrt((1 - p) (1 + 1.758^2 p)): numbers of mean 0 and variance 1 keep both. G. Klambauer et al., 2017.

    >>> _ = rushlight.manual_seed(0)
    >>> dropped = rushlight.nn.AlphaDropout(0.5)(rushlight.randn(10000))
    >>> dropped.mean().abs() < 0.05, (dropped.var() - 1).abs() < 0.05
    (tensor(True), tensor(True))
    """


class FeatureAlphaDropout(_DropoutNd, function=F.feature_alpha_dropout):
    """a (x m + (m - 1) 1.758 + 1.758 p) as in `AlphaDropout`, with one m for each channel of (N, C, *).

    >>> _ = rushlight.manual_seed(0)
    >>> rushlight.nn.FeatureAlphaDropout(0.5)(rushlight.zeros(1, 4, 2))
    tensor([[[-0.7792, -0.7792],
             [-0.7792, -0.7792],
             [ 0.7792,  0.7792],
             [-0.7792, -0.7792]]])
    """
