"""Dropout as modules: active in training, the identity in evaluation."""
from __future__ import annotations

from rushlight.errors import explain
from rushlight.nn import functional as F
from rushlight.nn.module import Module
from rushlight.tensor import Tensor


class _DropoutNd(Module):
    """A probability and whether to write into the input. ValueError unless p is in [0, 1]."""

    def __init__(self, p: float = 0.5, inplace: bool = False):
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(explain(f"dropout probability has to be between 0 and 1, but got {p}",
                                     "give the share that is dropped, 0.5 for a half"))
        self.p, self.inplace = p, inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """Elements zeroed with probability p, the others divided by 1 - p.

    >>> _ = rushlight.manual_seed(0)
    >>> rushlight.nn.Dropout(0.5)(rushlight.ones(4))
    tensor([0., 0., 2., 0.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    """Whole channels of (N, C, L) or (C, L) zeroed with probability p, the others divided by 1 - p."""

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """Whole channels of (N, C, H, W) zeroed with probability p, the others divided by 1 - p."""

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """Whole channels of (N, C, D, H, W) or (C, D, H, W) zeroed with probability p, the others divided by 1 - p."""

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """Dropout for SELU: to its limit -1.758 instead of 0, mean and variance kept."""

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training, self.inplace)


class FeatureAlphaDropout(_DropoutNd):
    """`AlphaDropout` of whole channels."""

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training, self.inplace)
