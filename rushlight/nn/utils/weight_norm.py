"""Weight norm by a hook: the old form, which old checkpoints use."""

from __future__ import annotations

import warnings
from typing import Any

from rushlight.base import shown_names
from rushlight.base.errors import runtime_error, value_error
from rushlight.core.tensor import Tensor
from rushlight.nn.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.nn.utils.norm import find_hook, norm_except_dim, with_norm


class WeightNorm:
    """The hook that computes weight = g v / |v| before each forward."""

    def __init__(self, name: str, dim: int | None):
        self.name, self.dim = name, -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Tensor:
        """The weight, from the module's g and v."""
        return with_norm(getattr(module, self.name + "_v"), getattr(module, self.name + "_g"), self.dim)

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


shown_names.IN_FILES[WeightNorm] = "torch.nn.utils.weight_norm", "WeightNorm"


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """weight = g v / |v|: length and direction of each slice along `dim` (None: of the whole) as the parameters
    `weight_g` and `weight_v`. Returns the module. RuntimeError if the weight already has a weight norm.
    `parametrizations.weight_norm` is the newer form.

    T. Salimans, D. Kingma, Weight Normalization, https://arxiv.org/abs/1602.07868

    >>> m = rushlight.nn.utils.weight_norm(rushlight.nn.Linear(3, 2))
    >>> list(m.state_dict())
    ['bias', 'weight_g', 'weight_v']
    """
    warnings.warn(
        "`torch.nn.utils.weight_norm` is deprecated in favor of `torch.nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
        stacklevel=2,
    )
    if find_hook(module, WeightNorm, name)[1] is not None:
        raise runtime_error(f"Cannot register two weight_norm hooks on the same parameter {name}")
    hook = WeightNorm(name, dim)
    weight = getattr(module, name)
    del module._parameters[name]
    module.register_parameter(name + "_g", Parameter(norm_except_dim(weight, 2, hook.dim).data))
    module.register_parameter(name + "_v", Parameter(weight.data))
    setattr(module, name, hook.compute_weight(module))
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Replace weight norm by an ordinary parameter with the current value. Returns the module. ValueError if there is
    none.

    >>> m = rushlight.nn.utils.weight_norm(rushlight.nn.Linear(2, 3))
    >>> [name for name, _ in rushlight.nn.utils.remove_weight_norm(m).named_parameters()]
    ['bias', 'weight']
    """
    key, hook = find_hook(module, WeightNorm, name)
    if hook is None:
        raise value_error(f"weight_norm of '{name}' not found in {module}")
    del module._forward_pre_hooks[key]
    weight = hook.compute_weight(module)
    delattr(module, name)
    del module._parameters[name + "_g"], module._parameters[name + "_v"]
    setattr(module, name, Parameter(weight.data))
    return module
