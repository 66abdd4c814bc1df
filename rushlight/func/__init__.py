"""torch.func: functions that take a function and give one: its gradient, its Jacobian, the same for a batch.

`grad`, `vjp` and `jacrev` go backward, `jvp`, `linearize` and `jacfwd` forward, `vmap` maps; all nest in any order.
`functional_call` and `stack_module_state` make functions of modules.
"""
from __future__ import annotations

from importlib import import_module
from typing import Any

from rushlight.absent import missing

# Loaded when first asked for: forward mode, in a layer below, needs a module of this package.
_HOME = {**dict.fromkeys(("functionalize", "grad", "grad_and_value", "vjp"), "reverse"),
         **dict.fromkeys(("jvp", "linearize"), "forward"),
         **dict.fromkeys(("hessian", "jacfwd", "jacrev"), "jacobians"),
         **dict.fromkeys(("functional_call", "replace_all_batch_norm_modules_", "stack_module_state"), "modules"),
         "vmap": "mapping"}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise missing(__name__, name)
    value = globals()[name] = getattr(import_module(f"rushlight.func.{_HOME[name]}"), name)
    return value
