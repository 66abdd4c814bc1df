"""torch.cuda.nvtx: marks for a GPU profiler. They raise RuntimeError, as in torch without a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rushlight.base.errors import runtime_error


def mark(msg: str, *args: Any, **kwargs: Any) -> Any:
    """RuntimeError: there is no GPU profiler."""
    raise runtime_error(
        "NVTX functions not installed. Are you sure you have a CUDA build?",
        "use torch.profiler.record_function, which marks a part of a program for torch.profiler",
    )


range_push = range_start = mark


def range_pop() -> int:
    """RuntimeError: there is no GPU profiler."""
    return mark("")


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """RuntimeError: there is no GPU profiler."""
    mark(msg)
    yield


__all__ = ["mark", "range", "range_pop", "range_push", "range_start"]
