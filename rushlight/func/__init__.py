"""torch.func: higher-order functions: the gradient or Jacobian of a function, or the same function for a batch.

`grad`, `vjp` and `jacrev` go backward, `jvp`, `linearize` and `jacfwd` forward, `vmap` maps; all nest in any order.
`functional_call` and `stack_module_state` make functions of modules."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rushlight.base.missing_names import missing

if TYPE_CHECKING:
    from rushlight.func.jacobians import hessian, jacfwd, jacrev
    from rushlight.func.jvp_transform import jvp, linearize
    from rushlight.func.vjp_transform import functionalize, grad, grad_and_value, vjp
    from rushlight.func.vmap_transform import vmap

# Loaded on first access, because forward mode, in a lower layer, imports one module of this package.
_HOME = {
    **dict.fromkeys(("functionalize", "grad", "grad_and_value", "vjp"), "func.vjp_transform"),
    **dict.fromkeys(("jvp", "linearize"), "func.jvp_transform"),
    **dict.fromkeys(("hessian", "jacfwd", "jacrev"), "func.jacobians"),
    **dict.fromkeys(
        ("functional_call", "replace_all_batch_norm_modules_", "stack_module_state"), "nn.utils.functional_call"
    ),
    "vmap": "func.vmap_transform",
}

__all__ = [
    "functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize",
    "replace_all_batch_norm_modules_", "stack_module_state", "vjp", "vmap",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        return missing(__name__, name)
    value = globals()[name] = getattr(import_module(f"rushlight.{_HOME[name]}"), name)
    return value
