"""Data sets and loaders, checkpoints, summaries of models, logs for TensorBoard."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rushlight.base.missing_names import missing

if TYPE_CHECKING:
    from rushlight.utils import checkpoint, data, dlpack, hooks, pytree, tensorboard
    from rushlight.utils.model_summary import summary

_LAZY = (
    "_device", "_pytree", "benchmark", "checkpoint", "data", "deterministic", "dlpack", "flop_counter", "hooks",
    "model_zoo", "pytree", "tensorboard",
)  # fmt: skip

__all__ = ["checkpoint", "data", "dlpack", "hooks", "pytree", "summary", "tensorboard"]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return import_module(f"rushlight.utils.{name}")
    if name in ("summary", "ModelStatistics"):
        found = globals()[name] = getattr(import_module("rushlight.utils.model_summary"), name)
        return found
    if name == "swap_tensors":
        return import_module("rushlight.utils.tensor_swap").swap_tensors
    return missing(__name__, name)
