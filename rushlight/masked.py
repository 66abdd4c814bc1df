"""torch.masked: reductions and normalisations that leave masked elements out."""

from rushlight.base.missing_names import tell as _tell
from rushlight.ops.reduce.masked import _input_mask as _input_mask
from rushlight.ops.reduce.masked import _output_mask as _output_mask
from rushlight.ops.reduce.masked import (
    amax,
    amin,
    argmax,
    argmin,
    cumprod,
    cumsum,
    log_softmax,
    logaddexp,
    logsumexp,
    mean,
    median,
    norm,
    normalize,
    prod,
    softmax,
    softmin,
    std,
    sum,
    var,
)

__all__ = [
    "amax",
    "amin",
    "argmax",
    "argmin",
    "cumprod",
    "cumsum",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]

_tell(__name__)
