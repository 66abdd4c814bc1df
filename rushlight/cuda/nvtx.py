"""torch.cuda.nvtx: marks for a profiler of GPUs, which is not here: RuntimeError, as torch's own without one."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rushlight.errors import explain


def mark(msg: str, *args: Any, **kwargs: Any) -> Any:
    """RuntimeError: there is no profiler of GPUs."""
    raise RuntimeError(explain("NVTX functions not installed. Are you sure you have a CUDA build?",
                               "torch.profiler.record_function marks a part for the profiler that is here"))


range_push = range_start = mark


def range_pop() -> int:
    """RuntimeError: there is no profiler of GPUs."""
    return mark("")


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """RuntimeError: there is no profiler of GPUs."""
    mark(msg)
    yield


__all__ = ["mark", "range", "range_pop", "range_push", "range_start"]
