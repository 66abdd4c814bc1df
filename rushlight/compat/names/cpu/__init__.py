"""torch.cpu: the functions that programs for any device call. Ops run at once, so nothing waits."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from rushlight.cpu import amp

__all__ = [
    "Event", "Stream", "StreamContext", "amp", "current_device", "current_stream", "device_count", "is_available",
    "is_initialized", "set_device", "stream", "synchronize",
]  # fmt: skip


class Stream:
    """The only stream. Ops run when they are called, so nothing waits in it."""

    def __init__(self, priority: int = -1):
        pass

    def wait_stream(self, stream: Any) -> None:
        """Nothing to wait for."""

    def record_event(self) -> None:
        """Does nothing: the CPU has no queue."""

    def wait_event(self, event: Any) -> None:
        """Nothing to wait for."""


class Event:
    """An event, complete as soon as it is recorded."""

    def query(self) -> bool:
        """True."""
        return True

    def record(self, stream: Any = None) -> None:
        """Does nothing: the CPU has no queue."""

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def wait(self, stream: Any = None) -> None:
        """Nothing to wait for."""


class StreamContext(AbstractContextManager):
    """`with torch.cpu.stream(s)`: changes nothing."""

    def __init__(self, stream: Any):
        self.stream = stream

    def __exit__(self, *exc: object) -> None:
        pass


_stream = Stream()


def is_available() -> bool:
    """True."""
    return True


def is_initialized() -> bool:
    """True."""
    return True


def device_count() -> int:
    """1: the CPU is one device, whatever the number of its cores."""
    return 1


def current_device() -> str:
    """'cpu'."""
    return "cpu"


def set_device(device: Any) -> None:
    """Nothing to choose."""


def synchronize(device: Any = None) -> None:
    """Nothing to wait for."""


def current_stream(device: Any = None) -> Stream:
    """The one stream."""
    return _stream


def stream(stream: Stream) -> AbstractContextManager:
    """`with torch.cpu.stream(s)`: changes nothing."""
    return StreamContext(stream)
