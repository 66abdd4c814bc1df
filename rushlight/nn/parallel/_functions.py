"""What moves tensors between GPUs: names that libraries import and call only with several GPUs."""

from __future__ import annotations

from typing import Any

from rushlight.autograd.function import Function
from rushlight.base.device import present


class Broadcast(Function):
    """A tensor to several GPUs. RuntimeError: there is none."""

    @staticmethod
    def forward(ctx: Any, target_gpus: Any, *inputs: Any) -> Any:
        return present("cuda")


class ReduceAddCoalesced(Broadcast):
    """Sums of what several GPUs have."""


class Gather(Broadcast):
    """Gather the tensors of several GPUs."""


class Scatter(Broadcast):
    """Parts of a tensor to several GPUs."""
