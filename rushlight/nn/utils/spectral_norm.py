"""Spectral norm by a hook: the old form, which old checkpoints use."""

from __future__ import annotations

from typing import Any

from rushlight.base.errors import runtime_error, value_error
from rushlight.core.tensor import Tensor
from rushlight.nn.conv import _ConvTransposeNd
from rushlight.nn.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.nn.utils.norm import as_matrix, find_hook, largest_singular, unit
from rushlight.ops.grad_mode import no_grad
from rushlight.ops.linalg.matmul_api import matmul
from rushlight.ops.math import elementwise as e


class SpectralNorm:
    """The hook that divides the weight by its largest singular value before each forward.

    The singular vectors are buffers. Each forward in training improves them by `n_power_iterations` steps."""

    def __init__(self, name: str, n_power_iterations: int, dim: int, eps: float):
        if n_power_iterations <= 0:
            raise value_error(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.name, self.n_power_iterations, self.dim, self.eps = name, n_power_iterations, dim, eps

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        """The weight over its largest singular value."""
        weight, u, v = (getattr(module, self.name + end) for end in ("_orig", "_u", "_v"))
        matrix = as_matrix(weight, self.dim)
        if do_power_iteration:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(unit(matmul(matrix.T, u), self.eps))
                    u.copy_(unit(matmul(matrix, v), self.eps))
            # copies, because the next forward writes to the buffers, perhaps before backward
            u, v = u.clone(), v.clone()
        return e.div(weight, largest_singular(matrix, u, v))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, module.training))


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """weight / its largest singular value, the weight seen as a matrix with `dim` as rows (1 for ConvTranspose, else
    0). The weight itself becomes `weight_orig`, the singular vectors buffers `weight_u` and `weight_v`. Returns the
    module. RuntimeError if the weight already has a spectral norm. `parametrizations.spectral_norm` is the newer form.

    T. Miyato et al., Spectral Normalization, https://arxiv.org/abs/1802.05957

    >>> m = rushlight.nn.utils.spectral_norm(rushlight.nn.Linear(3, 2))
    >>> list(m.state_dict())
    ['bias', 'weight_orig', 'weight_u', 'weight_v']
    """
    if find_hook(module, SpectralNorm, name)[1] is not None:
        raise runtime_error(f"Cannot register two spectral_norm hooks on the same parameter {name}")
    weight = module._parameters.get(name)
    if weight is None:
        raise value_error(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
    hook = SpectralNorm(name, n_power_iterations, rows_of(module) if dim is None else dim, eps)
    with no_grad():
        height, width = as_matrix(weight, hook.dim)._array.shape
        u = unit(weight.new_empty(height).normal_(0, 1), eps)
        v = unit(weight.new_empty(width).normal_(0, 1), eps)
    del module._parameters[name]
    module.register_parameter(name + "_orig", weight)
    setattr(module, name, weight.data)
    module.register_buffer(name + "_u", u)
    module.register_buffer(name + "_v", v)
    module.register_forward_pre_hook(hook)
    module._register_state_dict_hook(Version(name))
    return module


class Version:
    """The hook that writes the version of spectral norm into the metadata of a state dict."""

    def __init__(self, name: str):
        self.name = name

    def __call__(self, module: Module, state: dict, prefix: str, metadata: dict) -> None:
        metadata.setdefault("spectral_norm", {})[self.name + ".version"] = 1


def rows_of(module: Module) -> int:
    """The output dimension of the weight."""
    return 1 if isinstance(module, _ConvTransposeNd) else 0


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Replace spectral norm by an ordinary parameter with the current value. Returns the module. ValueError if there is
    no spectral norm.

    >>> m = rushlight.nn.utils.spectral_norm(rushlight.nn.Linear(2, 3))
    >>> [name for name, _ in rushlight.nn.utils.remove_spectral_norm(m).named_parameters()]
    ['bias', 'weight']
    """
    key, hook = find_hook(module, SpectralNorm, name)
    if hook is None:
        raise value_error(f"spectral_norm of '{name}' not found in {module}")
    del module._forward_pre_hooks[key]
    with no_grad():
        weight = hook.compute_weight(module, False)
    delattr(module, name)
    for end in ("_u", "_v", "_orig"):
        delattr(module, name + end)
    module.register_parameter(name, Parameter(weight.detach()))
    for other, found in list(module._state_dict_hooks.items()):
        if isinstance(found, Version) and found.name == name:
            del module._state_dict_hooks[other]
    return module
