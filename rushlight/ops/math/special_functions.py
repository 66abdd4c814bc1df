"""Special functions composed of ops, and the names in torch.special of existing functions."""

from __future__ import annotations

import math
from typing import Any

from rushlight.base import dtypes
from rushlight.base.errors import describe, runtime_error
from rushlight.core.arguments import check_dtypes
from rushlight.core.tensor import Tensor, method
from rushlight.ops.composites import composite, given
from rushlight.ops.math import special as special
from rushlight.ops.math.arithmetic import round, writing
from rushlight.ops.reduce import reduce as r
from rushlight.ops.reduce.reduce_api import log_softmax, softmax
from rushlight.ops.shape.views import to


@composite("mvlgamma", "special_multigammaln")
def mvlgamma(input: Tensor, p: int, *, out: Tensor | None = None) -> Tensor:
    """log(pi) p (p - 1) / 4 + sum over j = 0 ... p - 1 of lgamma(input - j / 2), from the multivariate gamma function.

    Shape: the input's. Integers become the default dtype. RuntimeError for p below 1.

    >>> rushlight.mvlgamma(rushlight.tensor([2., 3.]), 2)
    tensor([0.4516, 1.5502])
    """
    if p < 1:
        raise runtime_error("p has to be greater than or equal to 1", input=describe(input), p=p)
    check_dtypes("mvlgamma", "uif", input)
    if input.dtype.category < dtypes.FLOATING:
        input = to(input, dtypes.get_default_dtype())
    made: Any = p * (p - 1) / 4 * math.log(math.pi)
    for j in range(p):
        made = made + special.lgamma(input - j / 2)
    return given(out, made)


method(writing(mvlgamma))


@composite(tensor=False)
def special_logsumexp(input: Tensor, dim: Any, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """log sum exp(input) over `dim`: `logsumexp`.

    >>> rushlight.special.logsumexp(rushlight.tensor([0., 0.]), 0)
    tensor(0.6931)
    """
    return r.logsumexp(input, dim, keepdim, out=out)


@composite(tensor=False)
def special_softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """exp(x_i) / sum over j of exp(x_j), along `dim`: `softmax`.

    >>> rushlight.special.softmax(rushlight.tensor([0., 0.]), 0)
    tensor([0.5000, 0.5000])
    """
    return softmax(input, dim, dtype)


@composite(tensor=False)
def special_log_softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """x_i - log sum over j of exp(x_j), along `dim`: `log_softmax`.

    >>> rushlight.special.log_softmax(rushlight.tensor([0., 0.]), 0)
    tensor([-0.6931, -0.6931])
    """
    return log_softmax(input, dim, dtype)


composite("special_round", tensor=False)(round)
