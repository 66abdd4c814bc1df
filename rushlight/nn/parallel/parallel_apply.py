"""Modules, each on its own part of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.nn.module import Module


def parallel_apply(
    modules: Sequence[Module], inputs: Sequence[Any], kwargs_tup: Sequence[dict] | None = None, devices: Any = None
) -> list[Any]:
    """The outputs of the modules for their inputs, computed in order."""
    named = kwargs_tup or [{}] * len(modules)
    return [
        module(*(x if isinstance(x, tuple) else (x,)), **kwargs)
        for module, x, kwargs in zip(modules, inputs, named, strict=True)
    ]
