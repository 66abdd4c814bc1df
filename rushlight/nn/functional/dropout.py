"""Dropout, on torch's random stream: the same seed zeroes the same elements."""

from __future__ import annotations

from rushlight.base.errors import runtime_error, value_error, warn
from rushlight.core.mode import mode
from rushlight.core.tensor import Tensor
from rushlight.core.views import assign
from rushlight.ops.math import elementwise as e
from rushlight.ops.nn.dropout import dropout_mask

ALPHA = 1.7580993408473766  # minus selu's limit at -infinity


def check_p(p: float) -> None:
    """ValueError unless p is a probability."""
    if p < 0.0 or p > 1.0:
        raise value_error(f"dropout probability has to be between 0 and 1, but got {p}")


def apply_dropout(input: Tensor, p: float, training: bool, inplace: bool, features: bool = False) -> Tensor:
    """Zero elements, or whole channels, with probability p; divide the others by 1 - p."""
    check_p(p)
    if not training or p == 0 or input._array.size == 0:
        return input
    # inside transforms, torch draws numbers in the order of the elements
    inside = mode().derivative is not None or mode().batch is not None
    like = input.contiguous() if inside else input
    factor = e.mul(input, 0) if p == 1 else e.div(dropout_mask(like, p, features), 1 - p)
    r = factor if p == 1 else e.mul(input, factor)
    return assign(input, r) if inplace else r


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """x m / (1 - p), where m is 0 with probability p, else 1, for each element; x itself unless `training`.

    ValueError unless p is in [0, 1].

    >>> _ = rushlight.manual_seed(0)
    >>> rushlight.nn.functional.dropout(rushlight.ones(4), 0.5)
    tensor([0., 0., 2., 0.])
    """
    return apply_dropout(input, p, training, inplace)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """x m / (1 - p), where m is 0 with probability p, else 1, for each channel of (N, C, L) or (C, L); x itself unless
    `training`.

    RuntimeError for another number of dimensions, ValueError unless p is in [0, 1].

    >>> _ = rushlight.manual_seed(0)
    >>> rushlight.nn.functional.dropout1d(rushlight.ones(4, 3))
    tensor([[0., 0., 0.],
            [0., 0., 0.],
            [2., 2., 2.],
            [0., 0., 0.]])
    """
    check_p(p)
    if input._array.ndim not in (2, 3):
        raise runtime_error(
            f"dropout1d: Expected 2D or 3D input, but received a {input._array.ndim}D input. Note that dropout1d "
            "exists to provide channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and "
            "an optional batch dimension (i.e. 2D or 3D inputs)."
        )
    return batched(input, 3, p, training, inplace)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """x m / (1 - p), where m is 0 with probability p, else 1, for each channel of (N, C, H, W); x itself unless
    `training`.

    Three dimensions are read as (N, C, L), with a warning. ValueError unless p is in [0, 1]. J. Tompson et al.,
    *Efficient object localization using convolutional networks*, 2015.

    >>> _ = rushlight.manual_seed(0)
    >>> rushlight.nn.functional.dropout2d(rushlight.ones(1, 4, 1, 2)).squeeze()
    tensor([[0., 0.],
            [0., 0.],
            [2., 2.],
            [0., 0.]])
    """
    check_p(p)
    if input._array.ndim not in (3, 4):
        warn(
            f"dropout2d: Received a {input._array.ndim}-D input to dropout2d, which is deprecated and will result in "
            "an error in a future release."
        )
    elif input._array.ndim == 3:
        warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is "
            "desired - input is interpreted as shape (N, C, L), where C is the channel dim. Maybe you mean dropout1d?"
        )
    return apply_dropout(input, p, training, inplace, features=True)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """x m / (1 - p), where m is 0 with probability p, else 1, for each channel of (N, C, D, H, W) or (C, D, H, W).

    x itself unless `training`. ValueError unless p is in [0, 1].

    >>> _ = rushlight.manual_seed(0)
    >>> rushlight.nn.functional.dropout3d(rushlight.ones(4, 1, 1, 2)).squeeze()
    tensor([[0., 0.],
            [0., 0.],
            [2., 2.],
            [0., 0.]])
    """
    check_p(p)
    if input._array.ndim not in (4, 5):
        warn(
            f"dropout3d: Received a {input._array.ndim}-D input to dropout3d, which is deprecated and will result in "
            "an error in a future release."
        )
    return batched(input, 5, p, training, inplace)


def batched(input: Tensor, ndim: int, p: float, training: bool, inplace: bool) -> Tensor:
    """Dropout of channels. An input of other than `ndim` dimensions is one sample."""
    if input._array.ndim == ndim:
        return apply_dropout(input, p, training, inplace, features=True)
    one = apply_dropout(input.unsqueeze(0), p, training, False, features=True).squeeze(0)
    return assign(input, one) if inplace else one


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """a (x m + (m - 1) 1.758 + 1.758 p), where m is 0 with probability p, else 1: dropout to selu's limit instead of 0.

    a = 1 / sqrt((1 - p) (1 + 1.758^2 p)): numbers of mean 0 and variance 1 keep both. x itself unless `training`.
    ValueError unless p is in [0, 1]. G. Klambauer et al., *Self-normalizing neural networks*, 2017.

    >>> _ = rushlight.manual_seed(0)
    >>> dropped = rushlight.nn.functional.alpha_dropout(rushlight.randn(10000), 0.5, training=True)
    >>> dropped.mean().abs() < 0.05, (dropped.var() - 1).abs() < 0.05
    (tensor(True), tensor(True))
    """
    return apply_alpha_dropout(input, p, training, inplace, features=False)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """a (x m + (m - 1) 1.758 + 1.758 p) as in `alpha_dropout`, with one m for each channel of (N, C, *).

    >>> _ = rushlight.manual_seed(0)
    >>> rushlight.nn.functional.feature_alpha_dropout(rushlight.zeros(1, 4, 2), 0.5, training=True)
    tensor([[[-0.7792, -0.7792],
             [-0.7792, -0.7792],
             [ 0.7792,  0.7792],
             [-0.7792, -0.7792]]])
    """
    return apply_alpha_dropout(input, p, training, inplace, features=True)


def apply_alpha_dropout(input: Tensor, p: float, training: bool, inplace: bool, features: bool) -> Tensor:
    check_p(p)
    if not training or p == 0 or input._array.size == 0:
        return input
    if p == 1:
        r = e.mul(input, 0)
    else:
        scale = ((ALPHA**2 * p + 1) * (1 - p)) ** -0.5
        kept = dropout_mask(input, p, features)
        shift = e.mul(e.add(kept, p - 1), ALPHA * scale)  # alpha a (kept - 1 + p)
        r = e.add(e.mul(input, e.mul(kept, scale)), shift)
    return assign(input, r) if inplace else r
