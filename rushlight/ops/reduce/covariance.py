"""Covariances and correlations."""

from __future__ import annotations

from typing import Any

from rushlight.base import dtypes
from rushlight.base.errors import runtime_error, warn
from rushlight.core.arguments import integer
from rushlight.core.tensor import Tensor, numbers
from rushlight.ops.composites import composite
from rushlight.ops.linalg.arguments import check_tensor
from rushlight.ops.linalg.matmul_api import conjugate_transpose, in_single, matmul
from rushlight.ops.math import elementwise as e
from rushlight.ops.math.arithmetic import clamp
from rushlight.ops.math.complex import real
from rushlight.ops.reduce.reduce import sum as total
from rushlight.ops.shape.views import diagonal, reshape, squeeze, to, unsqueeze


@composite()
def cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """out_ij = sum over k of w_k (x_ik - mean_i) conj(x_jk - mean_j) / (sum w - correction).

    input: (variables, observations), or one variable. `fweights`: the count of each observation (integers); `aweights`:
    its weight (floating-point). The divisor then is sum w - correction sum(w a) / sum w.

    >>> rushlight.cov(rushlight.tensor([[1., 2., 3.], [3., 2., 1.]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    check_input(input, "cov")
    correction = integer(correction, "correction")
    x = reshape(input, (1, -1)) if input._array.ndim < 2 else input
    if x.dtype.category < dtypes.FLOATING:
        x = to(x, dtypes.get_default_dtype())
    return in_single(lambda x: covariance(x, correction, fweights, aweights), x)


def covariance(x: Tensor, correction: int, fweights: Tensor | None, aweights: Tensor | None) -> Tensor:
    w = weights(x, fweights, aweights)
    n: Any = float(x._array.shape[1]) if w is None else total(w)
    if w is not None and (numbers(n) == 0).any():
        raise runtime_error("cov(): weights sum to zero, can't be normalized")
    means = e.div(total(x if x._array.size == 0 or w is None else e.mul(x, w), (1,)), n)
    if w is None or aweights is None or correction == 0:
        left = n - correction
    else:
        left = n - e.div(total(e.mul(w, aweights)), n) * correction
    if (numbers(left) <= 0).any() if isinstance(left, Tensor) else left <= 0:
        warn("cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.")
    divisor = clamp(left, 0) if isinstance(left, Tensor) else max(left, 0.0)
    d = e.sub(x, unsqueeze(means, 1))
    made = e.div(matmul(d, conjugate_transpose(d if w is None else e.mul(d, w))), divisor)
    return squeeze(made)


def check_input(input: Tensor, name: str) -> None:
    check_tensor(input, name, "input")
    if input._array.ndim > 2:
        raise runtime_error(
            f"{name}(): expected input to have two or fewer dimensions but got an input with {input._array.ndim} "
            "dimensions"
        )
    if input.dtype is dtypes.bool_:
        raise runtime_error(f"{name}(): bool dtype is not supported for input")


def weights(x: Tensor, fweights: Tensor | None, aweights: Tensor | None) -> Tensor | None:
    """The product of both weights, in their common dtype; None without weights."""
    chosen = [(t, name) for t, name in ((fweights, "fweights"), (aweights, "aweights")) if t is not None]
    for t, name in chosen:
        whole = name == "fweights"
        if t._array.ndim > 1:
            raise runtime_error(
                f"cov(): expected {name} to have one or fewer dimensions but got {name} with {t._array.ndim} dimensions"
            )
        if (t._array.dtype.kind not in "iu") if whole else t.dtype.category != dtypes.FLOATING:
            kind = "integral" if whole else "floating point"
            raise runtime_error(
                f"cov(): expected {name} to have {kind} dtype but got {name} with {t.dtype.scalar_type} dtype"
            )
        if t._array.size != x._array.shape[1]:
            raise runtime_error(
                f"cov(): expected {name} to have the same numel as there are observations in the input but got "
                f"{t._array.size} != {x._array.shape[1]}"
            )
        if t._array.size and numbers(t).min() < 0:
            raise runtime_error(f"cov(): {name} cannot be negative")
    if not chosen:
        return None
    return chosen[0][0] if len(chosen) == 1 else e.mul(chosen[0][0], chosen[1][0])


@composite()
def corrcoef(input: Tensor) -> Tensor:
    """out_ij = cov_ij / sqrt(cov_ii cov_jj), clamped to [-1, 1].

    >>> rushlight.corrcoef(rushlight.tensor([[1., 2., 3.], [3., 2., 1.]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    check_input(input, "corrcoef")
    return in_single(correlation, input)


def correlation(input: Tensor) -> Tensor:
    c = cov(input)
    if c._array.ndim == 0:
        return e.div(c, c)
    sizes = e.sqrt(real(diagonal(c)) if c.is_complex() else diagonal(c))
    made = e.div(e.div(c, unsqueeze(sizes, 1)), unsqueeze(sizes, 0))
    return made if made.is_complex() else clamp(made, -1, 1)
