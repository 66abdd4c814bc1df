"""Parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from rushlight.base.errors import type_error
from rushlight.core.tensor import Tensor
from rushlight.ops.shape.views import cat, reshape


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """v = (p_1, p_2, ...): all elements, one parameter after the other; in the graph.

    >>> rushlight.nn.utils.parameters_to_vector([rushlight.tensor([1., 2.]), rushlight.tensor([[3.]])])
    tensor([1., 2., 3.])
    """
    return cat([reshape(p, (-1,)) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """p_1, p_2, ... <- v: the parameters get the elements of a vector and share its memory. TypeError for no tensor.

    >>> linear = rushlight.nn.Linear(2, 1)
    >>> rushlight.nn.utils.vector_to_parameters(rushlight.tensor([1., 2., 3.]), linear.parameters())
    >>> linear.weight.tolist(), linear.bias.tolist()
    ([[1.0, 2.0]], [3.0])
    """
    if not isinstance(vec, Tensor):
        raise type_error(f"expected torch.Tensor, but got: {type(vec).__name__}")
    start = 0
    for p in parameters:
        p.data = vec[start : start + p.numel()].view_as(p).data
        start += p.numel()
