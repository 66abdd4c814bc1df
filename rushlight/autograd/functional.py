"""torch.autograd.functional: Jacobians, Hessians and their products with vectors."""

import numpy as np

from rushlight.core.tensor import Tensor, from_array
from rushlight.func.jacobian_api import (
    hessian,
    hvp,
    jacobian,
    jvp,
    vhp,
    vjp,
)


def _construct_standard_basis_for(
    tensors: tuple[Tensor, ...], tensor_numels: tuple[int, ...]
) -> tuple[Tensor, ...]:
    """The columns of the identity matrix that belong to each tensor: (all elements, its
    elements)."""
    whole, ends = np.eye(sum(tensor_numels)), np.cumsum(tensor_numels)
    parts = zip(tensors, ends.tolist(), tensor_numels)
    return tuple([from_array(whole[:, end - n : end].astype(t.dtype.numpy)) for t, end, n in parts])


__all__ = [
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "vhp",
    "vjp",
]
