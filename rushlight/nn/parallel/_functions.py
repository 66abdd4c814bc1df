"""Functions that move tensors between GPUs: names that libraries import and call only with several GPUs."""

from __future__ import annotations

from typing import Any

from rushlight.autograd.function import Function
from rushlight.base.device import present


class Broadcast(Function):
    """Copies of a tensor on several GPUs. RuntimeError: there are no GPUs."""

    @staticmethod
    def forward(ctx: Any, target_gpus: Any, *inputs: Any) -> Any:
        return present("cuda")


class ReduceAddCoalesced(Broadcast):
    """Sums of tensors on several GPUs."""


class Gather(Broadcast):
    """Gather the tensors of several GPUs."""


class Scatter(Broadcast):
    """Parts of a tensor to several GPUs."""
