"""Gradients of each sample, as torch.nn.utils._per_sample_grad: the module is a function of one sample, and vmap calls
it with a copy of the parameters for each sample."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from rushlight.base.errors import runtime_error
from rushlight.core.tensor import Tensor
from rushlight.func import vmap
from rushlight.nn.module import Module
from rushlight.nn.normalization import _BatchNorm
from rushlight.nn.utils.functional_call import functional_call


def call_for_per_sample_grads(
    module: Module, *, batch_size: int | None = None, loss_reduction: str = "sum", batch_first: bool = True
) -> Callable:
    """f(*args) = module(*args); backward sets `grad_sample[i]` = d(loss of sample i)/d(parameter).

    The parameters get no `grad`. `loss_reduction`: how the loss is computed from the samples' losses, "sum" or "mean".
    `batch_first`: the samples lie along dimension 0 of all tensors, else along 1. RuntimeError for layers that mix
    samples, for tensors with different numbers of samples, and for parameters that have a `grad_sample` already.

    >>> model = rushlight.nn.Linear(4, 3)
    >>> call = rushlight.nn.utils._per_sample_grad.call_for_per_sample_grads(model)
    >>> call(rushlight.randn(5, 4)).sum().backward()
    >>> model.weight.grad_sample.shape, model.weight.grad is None
    (torch.Size([5, 3, 4]), True)
    """
    check(module, batch_size, loss_reduction)
    dim = 0 if batch_first else 1

    @wraps(module.forward)
    def call(*args: Any, **kwargs: Any) -> Any:
        n = batch_size or samples(args, kwargs, dim)
        parameters = {
            name: expanded(p, n, loss_reduction) if p.requires_grad else p for name, p in module.named_parameters()
        }
        batched = {name: p for name, p in parameters.items() if p.requires_grad}

        def one(parameters: dict, args: tuple, kwargs: dict) -> Any:
            parts = [a.unsqueeze(dim) if isinstance(a, Tensor) else a for a in args]
            named = {k: a.unsqueeze(dim) if isinstance(a, Tensor) else a for k, a in kwargs.items()}
            return functional_call(module, parameters, tuple(parts), named)

        along = {name: 0 if name in batched else None for name in parameters}
        places = tuple(dim if isinstance(a, Tensor) else None for a in args)
        named = {k: dim if isinstance(a, Tensor) else None for k, a in kwargs.items()}
        made = vmap(one, (along, places, named), dim, randomness="different")(parameters, args, kwargs)
        return made.squeeze(dim + 1)

    return call


def expanded(parameter: Tensor, n: int, reduction: str) -> Tensor:
    """A parameter expanded by a first dimension of size n, without a copy. The gradient of the result becomes its
    `grad_sample`."""
    copies = parameter.detach().expand(n, *parameter.shape).requires_grad_()

    def keep(g: Tensor) -> None:
        # a mean divides the gradient of each sample by the number of samples
        new = g * n if reduction == "mean" else g
        known = getattr(parameter, "grad_sample", None)
        parameter.grad_sample = new if known is None else known + new  # type: ignore[attr-defined]

    copies.register_hook(keep)
    return copies


def samples(args: tuple, kwargs: dict, dim: int) -> int:
    """The number of samples. RuntimeError if it differs between tensors, or if there is no tensor."""
    sizes = {a.shape[dim] for a in (*args, *kwargs.values()) if isinstance(a, Tensor)}
    if len(sizes) > 1:
        raise runtime_error(
            f"When computing batch size, found inputs with batch sizes {sorted(sizes)}",
            "pass batch_size=... to call_for_per_sample_grads",
        )
    if not sizes:
        raise runtime_error(
            "Unable to find a tensor in the passed args and kwargs", "pass batch_size=... to call_for_per_sample_grads"
        )
    return sizes.pop()


def check(module: Any, batch_size: Any, reduction: str) -> None:
    """RuntimeError for arguments that do not fit."""
    if reduction not in ("sum", "mean"):
        raise runtime_error(f"Expected loss_reduction argument to be sum or mean, got {reduction}")
    if not isinstance(module, Module):
        kind = type(module).__name__
        raise runtime_error(f"Module passed must be nn.Module, got {kind}")
    if batch_size is not None and not isinstance(batch_size, int):
        kind = type(batch_size).__name__
        raise runtime_error(f"Batch size passed must be None or an integer, got {kind}")
    if batch_size is not None and batch_size < 1:
        raise runtime_error(f"Batch size must be positive, got {batch_size}")
    for layer in module.modules():
        if isinstance(layer, _BatchNorm):
            raise runtime_error(
                f"{type(layer).__name__} mixes samples: they have no gradients of their own", "replace it by GroupNorm"
            )
    for p in module.parameters():
        if getattr(p, "grad_sample", None) is not None:
            raise runtime_error(
                "Current Expanded Weights accumulates the gradients, which will be incorrect for multiple calls "
                "without clearing gradients.",
                "set grad_sample of each parameter to None first",
            )


__all__ = ["call_for_per_sample_grads"]
