"""Work: an operation between ranks that has begun, and how a rank waits for its end.

MPI's own Wait waits for ever when a rank has died. Here a rank calls Test until the operation is complete. If a rank of
the group has left, or after the timeout, it raises an error that names the ranks."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.base.higher import Higher
from rushlight.comm.errors import DistBackendError

try:
    from os import sched_yield as give_way
except ImportError:  # no Linux

    def give_way() -> None:
        """Let another process run on this core."""
        time.sleep(0)


if TYPE_CHECKING:
    from rushlight.base.futures import Future

work_future = Higher("rushlight.comm.work_future")  # loads threads

SPINS = 300  # calls of Test, 0.1 ms, before a waiting rank yields its core
BUSY_SECONDS = 2.0  # how long a waiting rank keeps its core busy
REST_SECONDS = 0.0002
GRACE_SECONDS = 2.0  # messages of a rank that has left may still arrive for this time


class Check:
    """A check that all ranks of a group have called the same operation: the hashes of operation, dtypes and sizes must
    be equal, so their maximum must be their minimum."""

    def __init__(self, group: Any, number: int):
        self.numbers = np.array([number, -number])
        self.request = group.transport.all_reduce(self.numbers, "MAX")

    def failed(self) -> bool | None:
        """Whether the ranks differ; None as long as it is not known."""
        if not self.request.Test():
            return None
        return bool(self.numbers[0] != -self.numbers[1])


class Work:
    """An operation that has begun. With async_op=True collectives return one."""

    def __init__(
        self, group: Any, what: str, requests: Sequence[Any], finish: Callable[[], None] | None = None,
        outputs: Sequence[Any] = (), check: Check | None = None,
    ):  # fmt: skip
        self.group, self.what, self.requests, self.finish = group, what, list(requests), finish
        self.outputs, self.check = list(outputs), check
        self.number = group.count
        self.error: Exception | None = None
        self.begun = time.monotonic()
        self.complete = False
        self.future: Any = None  # a WorkFuture
        self.event: Callable[[], None] | None = None  # ends the profiler's event

    def poll(self) -> bool:
        """Let MPI make progress. Returns whether the operation is complete."""
        if self.complete:
            return True
        if self.error is not None:
            raise self.error
        try:
            if self.check is not None:
                failed = self.check.failed()
                if failed is None:
                    return False
                if failed:
                    raise self.group.mismatch(self)
                self.check = None
            while self.requests:
                if not self.requests[-1].Test():
                    return False
                self.requests.pop()
        except DistBackendError as error:
            raise self.fail(error)  # noqa: B904
        except Exception as error:  # of MPI
            raise self.fail(self.group.failure(self, f"{error}")) from None
        if self.finish is not None:
            self.finish()
        self.complete = True
        self.finish = None
        if self.event is not None:
            self.event()
        self.group.pending.discard(self)
        return True

    def wait(self, timeout: timedelta | float | None = None) -> bool:
        """Wait until the operation is complete. Returns True. DistBackendError if a rank has left, or after the
        timeout, by default the group's."""
        poll = self.poll
        for _ in range(SPINS):
            if poll():
                break
        else:
            limit = timeout or self.group.timeout
            self.wait_long(limit.total_seconds() if isinstance(limit, timedelta) else limit)
        if self.future is not None:
            self.future.settle()
        return True

    def wait_long(self, seconds: float) -> None:
        world, start = self.group.world, time.monotonic()
        while not self.poll():
            now = time.monotonic()
            if now - start > BUSY_SECONDS:
                time.sleep(REST_SECONDS)
            else:
                give_way()
            world.look()
            if world.left:
                gone = self.group.gone(now - GRACE_SECONDS)
                if gone:
                    raise self.fail(self.group.failure(self, gone))
            if now - start > seconds:
                raise self.fail(self.group.late(self, seconds))

    def fail(self, error: Exception) -> Exception:
        """Note the failure. The group keeps the work's memory, since MPI may still write to it."""
        self.error = error
        self.group.pending.discard(self)
        self.group.failed.append(self)
        return error

    def is_completed(self) -> bool:
        """Whether the operation is complete."""
        try:
            return self.poll()
        except DistBackendError:
            return True

    def is_success(self) -> bool:
        """Whether the operation is complete and has not failed."""
        return self.complete

    def exception(self) -> Exception | None:
        """The error of a failed operation, or None."""
        return self.error

    def result(self) -> list[Any]:
        """The tensors that the operation has written."""
        return self.outputs

    def synchronize(self) -> None:
        """Wait."""
        self.wait()

    def source_rank(self) -> int:
        """The sender's rank, for recv."""
        raise RuntimeError("sourceRank is of a recv")

    def _source_rank(self) -> int:
        return self.source_rank()

    def get_future(self) -> Future:
        """The future of the tensors that the operation writes. Its callbacks run during a wait, since MPI makes
        progress only when it is called."""
        if self.future is None:
            self.future = work_future().WorkFuture(self)
        return self.future
