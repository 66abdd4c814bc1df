"""torch.autograd.profiler: the older name of `torch.profiler`."""

from __future__ import annotations

from contextlib import nullcontext

from rushlight.profiler import profile, record_function
from rushlight.profiler.tables import Averages as EventList


class emit_nvtx(nullcontext):
    """A context that does nothing. In torch it marks ops for a profiler of GPUs."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False):
        super().__init__()


__all__ = ["EventList", "emit_nvtx", "profile", "record_function"]
