"""torch.nn.utils: helpers for parameters and their gradients."""

from importlib import import_module
from typing import Any

from rushlight.base.missing_names import give_up as _give_up
from rushlight.nn.utils import rnn
from rushlight.nn.utils.clip_grad import (
    clip_grad_norm,
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)
from rushlight.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters
from rushlight.nn.utils.spectral_norm import remove_spectral_norm, spectral_norm
from rushlight.nn.utils.weight_norm import remove_weight_norm, weight_norm

__all__ = [
    "Any", "clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm",
    "import_module", "parameters_to_vector", "remove_spectral_norm", "remove_weight_norm", "rnn", "spectral_norm",
    "vector_to_parameters", "weight_norm",
]  # fmt: skip

# Seldom used: loaded on first use.
_MODULES = (
    "_per_sample_grad", "fusion", "init", "memory_format", "parametrizations", "parametrize", "prune", "stateless",
)  # fmt: skip
_HOME = {
    "fuse_conv_bn_eval": "fusion", "fuse_conv_bn_weights": "fusion", "fuse_linear_bn_eval": "fusion",
    "fuse_linear_bn_weights": "fusion", "skip_init": "init", "convert_conv2d_weight_memory_format": "memory_format",
    "convert_conv3d_weight_memory_format": "memory_format",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _MODULES and name not in _HOME:
        return _give_up(__name__, name)
    module = import_module(f"rushlight.nn.utils.{_HOME.get(name, name)}")
    value = globals()[name] = getattr(module, name) if name in _HOME else module
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_HOME})
