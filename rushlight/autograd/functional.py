"""torch.autograd.functional: Jacobians, Hessians and their products with vectors."""

from rushlight.func.jacobian_api import (
    hessian,
    hvp,
    jacobian,
    jvp,
    vhp,
    vjp,
)

__all__ = [
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "vhp",
    "vjp",
]
