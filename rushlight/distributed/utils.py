"""torch.distributed.utils: checks and copies that make a module equal on all ranks."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from rushlight.comm.groups import member
from rushlight.core.tensor import Tensor
from rushlight.nn import Module
from rushlight.nn.parallel.module_state import broadcast_all, check_same_model


def _verify_param_shape_across_processes(process_group: Any, tensors: Sequence[Tensor], logger: Any = None) -> None:
    """RuntimeError if the shapes or dtypes of the tensors differ between ranks."""
    if (own := member(process_group)) is not None:
        check_same_model([(str(i), t) for i, t in enumerate(tensors)], own)


def _sync_module_states(
    module: Module, process_group: Any, broadcast_bucket_size: int, src: int,
    params_and_buffers_to_ignore: Container[str] = (), broadcast_buffers: bool = True,
) -> None:  # fmt: skip
    """Copy the parameters and buffers of rank `src` of the group to all ranks."""
    if (own := member(process_group)) is None:
        return
    named = [*module.named_parameters(), *(module.named_buffers() if broadcast_buffers else ())]
    states = [t for name, t in named if name not in params_and_buffers_to_ignore]
    broadcast_all(states, own, src)
