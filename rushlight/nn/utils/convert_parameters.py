"""Parameters as one vector, and back."""
from __future__ import annotations

from collections.abc import Iterable

from rushlight.ops.shape import cat, reshape
from rushlight.tensor import Tensor


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements, one parameter after the other, as a vector; in the graph."""
    return cat([reshape(p, (-1,)) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Give the parameters the elements of a vector, of which they then share the memory. TypeError for no tensor."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    start = 0
    for p in parameters:
        p.data = vec[start:start + p.numel()].view_as(p).data
        start += p.numel()
