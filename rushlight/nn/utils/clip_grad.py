"""Gradients kept within bounds, in place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from numpy import ndarray

from rushlight.base.errors import runtime_error, type_error, warn
from rushlight.core.mode import mode
from rushlight.core.tensor import Tensor
from rushlight.creation.factories import tensor
from rushlight.ops.grad_mode import no_grad
from rushlight.ops.math import elementwise as e
from rushlight.ops.reduce.reduce_api import norm
from rushlight.ops.shape.views import stack

Tensors = Tensor | Iterable[Tensor]


def gradients(parameters: Tensors) -> list[Tensor]:
    """The gradients of the parameters, without the Nones."""
    found = [parameters] if isinstance(parameters, Tensor) else parameters
    return [p._grad for p in found if p._grad is not None]


@no_grad()
def get_total_norm(
    tensors: Tensors, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """|(|t_1|_p, |t_2|_p, ...)|_p: the norm of all tensors as one vector.

    RuntimeError if `error_if_nonfinite` and the norm is nan or infinite. `foreach` has no effect.

    >>> rushlight.nn.utils.get_total_norm([rushlight.tensor([3.]), rushlight.tensor([0., 4.])])
    tensor(5.)
    """
    given = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    if not given:
        return tensor(0.0)
    # the method: for a tensor that is divided over ranks (DTensor), it returns the norm of the whole
    total = norm(stack([t.norm(norm_type) for t in given]), norm_type)
    if error_if_nonfinite and not bool(e.isfinite(total)):
        raise runtime_error(
            f"The total norm of order {float(norm_type)} for gradients from `parameters` is non-finite, so it "
            "cannot be clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total


@no_grad()
def clip_grads_with_norm_(
    parameters: Tensors, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """g <- g min(1, max_norm / (total_norm + 1e-6)), all gradients, in place.

    >>> w = rushlight.ones(2, requires_grad=True)
    >>> (w * rushlight.tensor([3., 4.])).sum().backward()
    >>> rushlight.nn.utils.clip_grads_with_norm_(w, max_norm=1.0, total_norm=rushlight.tensor(5.))
    >>> w.grad
    tensor([0.6000, 0.8000])
    """
    factor = e.clamp_max(max_norm / e.add(total_norm, 1e-6), 1.0)
    if mode().watch is None and factor._array.__class__ is ndarray and (factor._array == 1).all():
        return  # a factor of 1 changes nothing: skip the loop (but not in a recorded program)
    for g in gradients(parameters):
        g.mul_(factor if factor.dtype is g.dtype else factor.to(g.dtype))


def clip_grad_norm_(
    parameters: Tensors, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:  # fmt: skip
    """Scale the gradients in place so that their total norm is at most max_norm. Returns the total norm before.

    RuntimeError if `error_if_nonfinite` and the norm is nan or infinite. `foreach` has no effect.

    >>> w = rushlight.nn.Parameter(rushlight.zeros(2))
    >>> w.grad = rushlight.tensor([3., 4.])
    >>> rushlight.nn.utils.clip_grad_norm_([w], 1.0)
    tensor(5.)
    >>> w.grad
    tensor([0.6000, 0.8000])
    """
    if not isinstance(parameters, Iterable):
        raise type_error(
            f"clip_grad_norm_(): argument 'parameters' (position 1) must be Tensor, not {type(parameters).__name__}",
            "pass model.parameters()",
        )
    kept = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    if not kept and isinstance(parameters, Iterator):
        warn("`parameters` is an empty generator, no gradient clipping will occur.")
    total = get_total_norm(gradients(kept), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(kept, max_norm, total)
    return total


def clip_grad_norm(*args: Any, **kwargs: Any) -> Tensor:
    """The old name of `clip_grad_norm_`.

    >>> w = rushlight.nn.Parameter(rushlight.zeros(2))
    >>> rushlight.nn.utils.clip_grad_norm([w], 1.0)
    tensor(0.)
    """
    warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.", FutureWarning
    )
    return clip_grad_norm_(*args, **kwargs)


@no_grad()
def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """g <- min(max(g, -clip_value), clip_value), every element of the gradients, in place.

    >>> w = rushlight.ones(2, requires_grad=True)
    >>> (w * rushlight.tensor([3., -5.])).sum().backward()
    >>> rushlight.nn.utils.clip_grad_value_(w, 4.0)
    >>> w.grad
    tensor([ 3., -4.])
    """
    bound = float(clip_value)
    for g in gradients(parameters):
        g.clamp_(-bound, bound)
