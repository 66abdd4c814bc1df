"""Modules as functions of their parameters and buffers."""

from __future__ import annotations

from rushlight.nn.module import Module
from rushlight.nn.normalization import _BatchNorm
from rushlight.nn.utils.stateless import functional_call, stack_module_state

__all__ = ["functional_call", "replace_all_batch_norm_modules_", "stack_module_state"]


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Set the running statistics of all batch norms in a module to None, so that `vmap` can run it. Returns the module.

    >>> net = rushlight.nn.Sequential(rushlight.nn.BatchNorm1d(2))
    >>> rushlight.func.replace_all_batch_norm_modules_(net)[0].running_mean is None
    True
    """
    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
