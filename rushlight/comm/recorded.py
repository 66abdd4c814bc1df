"""Profiler events of operations between ranks: "gloo:all_reduce"."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from rushlight.core.tensor import Tensor
from rushlight.profiler.clocks import RUNNING, Event


def shape_of(tensor: Tensor) -> list[int]:
    """The shape that torch shows. Complex numbers have a last dimension of their two parts."""
    return [*tensor.shape, 2] if tensor.is_complex() else [*tensor.shape]


def recorded(name: str, tensors: Sequence[Tensor]) -> Callable[[], None] | None:
    """Begin a profiler event. Returns the function that ends it, or None if no profiler is running."""
    if not RUNNING:
        return None
    recorder = RUNNING[0]
    shapes = [shape_of(t) for t in tensors] if recorder.shapes else None
    event = Event(name, "collective", shapes, 0)
    event.start = time.perf_counter_ns() / 1000

    def ends() -> None:
        event.end = time.perf_counter_ns() / 1000
        recorder.events.append(event)

    return ends
