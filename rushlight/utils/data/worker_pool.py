"""The batches of several workers, in order. Tasks are sent ahead, and all workers are ended at the end."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import cycle
from typing import TYPE_CHECKING, Any
from weakref import WeakSet, finalize

from rushlight.base.errors import runtime_error, type_error, value_error
from rushlight.utils.data.pipe import packed, receive, send
from rushlight.utils.data.worker import BATCH, END, ERROR, RESUME, Job, serve

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import BaseContext
    from multiprocessing.process import BaseProcess

SHUTDOWN_SECONDS = 5.0  # a worker that runs longer is stopped
# this process's ends of all pipes to workers, for forks to close
_ends: WeakSet[Connection] = WeakSet()


def context_of(given: Any) -> BaseContext:
    """The context, given by name or object; by default the program's, fork on Linux, or Python's default.

    From Python 3.14 on, Python's default on Linux is 'forkserver'. Python reports it as the program's choice once it
    was used, so it counts as a choice only if it is given as an argument.
    """
    import multiprocessing

    if given is None and sys.platform == "linux":
        chosen = multiprocessing.get_start_method(allow_none=True)
        given = "fork" if chosen in (None, "forkserver") else None
    if given is None or isinstance(given, str):
        return multiprocessing.get_context(given)
    return given


def check_context(given: Any, num_workers: int) -> None:
    """ValueError for a context without workers or of an unknown name, TypeError for another object."""
    if given is None:
        return
    if num_workers == 0:
        raise value_error(
            "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
            f"num_workers={num_workers}"
        )
    import multiprocessing
    from multiprocessing.context import BaseContext

    if isinstance(given, str):
        methods = multiprocessing.get_all_start_methods()
        if given not in methods:
            raise value_error(
                f"multiprocessing_context option should specify a valid start method in {methods!r}, but got "
                f"multiprocessing_context={given!r}"
            )
    elif not isinstance(given, BaseContext):
        raise type_error(
            "multiprocessing_context option should be a valid context object or a string specifying the start "
            f"method, but got multiprocessing_context={given}"
        )


class Member:
    """A worker as the main process sees it: the process, the pipes to and from the worker, open tasks."""

    def __init__(self, job: Job, context: Any):
        from_program, self.tasks = context.Pipe(duplex=False)
        self.results, to_program = context.Pipe(duplex=False)
        _ends.update((self.tasks, self.results))
        inherited = list(_ends) if context.get_start_method() == "fork" else []
        self.process: BaseProcess = context.Process(
            target=serve, args=(job, from_program, to_program, inherited), daemon=True
        )
        try:
            with warnings.catch_warnings():  # other threads do not harm forked workers: see worker.py
                warnings.filterwarnings("ignore", ".*multi-threaded, use of fork.*", DeprecationWarning)
                self.process.start()
        finally:
            from_program.close()
            to_program.close()
        # whether the worker still has samples; the number of its tasks without an answer
        self.active, self.tasks_open = True, 0

    def give(self, message: Any) -> None:
        """Send a task. A dead worker is detected when the loader waits for its answer."""
        with suppress(OSError):
            send(self.tasks, packed(message))

    def retire(self) -> None:
        """The worker's part of the data set is finished."""
        self.active = False
        self.give(None)


def dismiss(members: list[Member], owner: int) -> None:
    """End all workers by closing their pipes. A worker that is busy for longer is stopped."""
    if os.getpid() != owner:  # a copy, in a forked process
        return
    for member in members:
        member.tasks.close()
        member.results.close()
    until = time.monotonic() + SHUTDOWN_SECONDS
    for member in members:
        member.process.join(max(0.0, until - time.monotonic()))
    for stop in ("terminate", "kill"):
        for member in members:
            if member.process.is_alive():
                getattr(member.process, stop)()
                member.process.join(1.0)
    members.clear()


class WorkerIterator:
    """The workers make the batches in turn, each up to `ahead` in advance. Batches come in order, unless `in_order` is
    false.

    When it is no longer referenced, at the end of the data or of the program, its workers end.
    """

    def __init__(self, jobs: list[Job], context: Any, ahead: int, timeout: float, in_order: bool, persistent: bool):
        self.members: list[Member] = []
        self.close = finalize(self, dismiss, self.members, os.getpid())
        self.ahead, self.timeout, self.in_order, self.persistent = ahead, timeout, in_order, persistent
        for job in jobs:
            self.members.append(Member(job, context_of(context)))
        self.turn = cycle(list(self.members))
        self.sent = self.given = 0  # numbers of the next task to send, and the next batch to give
        self.waiting: dict[int, Member] = {}  # task -> worker
        self.arrived: dict[int, Any] = {}  # answers that are not due yet
        self.numbers: Iterator[Any] = iter(())

    def begin(self, numbers: Iterable[Any]) -> WorkerIterator:
        """A new round through the data; answers to old tasks are dropped."""
        if self.sent:
            for member in self.members:
                member.active, member.tasks_open = True, 0
                member.give(RESUME)
        self.waiting.clear()
        self.arrived.clear()
        self.given, self.numbers, self.turn = self.sent, iter(numbers), cycle(list(self.members))
        for _ in range(self.ahead * len(self.members)):
            self._send_task()
        return self

    def __iter__(self) -> WorkerIterator:
        return self

    def __next__(self) -> Any:
        while True:
            self._skip()
            if self.given == self.sent:
                if not self.persistent:
                    self.close()
                raise StopIteration
            if self.given in self.arrived:
                return self._hand_over(self.given)
            index = self._answer()
            if index is not None and not self.in_order:
                return self._hand_over(index)

    def _send_task(self) -> None:
        """Send the next numbers to the next worker that has samples left; without order, to one with few open tasks."""
        active = sum(member.active for member in self.members)
        if not active:
            return
        most = len(self.waiting) // active + 1
        member = next(m for m in self.turn if m.active and (self.in_order or m.tasks_open < most))
        try:
            numbers = next(self.numbers)
        except StopIteration:
            return
        self.waiting[self.sent] = member
        member.tasks_open += 1
        member.give((self.sent, numbers))
        self.sent += 1

    def _skip(self) -> None:
        """Skip tasks whose worker has no samples left, and those returned out of order."""
        while self.given < self.sent and self.given not in self.arrived:
            member = self.waiting.get(self.given)
            if member is not None and member.active:
                return
            self.waiting.pop(self.given, None)
            self.given += 1

    def _answer(self) -> int | None:
        """Wait for an answer and store it. Returns its task, or None for an outdated answer or a worker's end."""
        index, kind, content = self._message()
        member = self.waiting.get(index)
        if member is None:  # an answer from an earlier round
            return None
        if kind == END:
            if self.persistent:
                member.active = False
            else:
                member.retire()
            self._send_task()
            return None
        self.arrived[index] = kind, content
        return index

    def _hand_over(self, index: int) -> Any:
        """The answer to a task that is due, in exchange for a new task."""
        kind, content = self.arrived.pop(index)
        self.waiting.pop(index).tasks_open -= 1
        self.given += index == self.given
        self._send_task()
        if kind == ERROR:
            raise content.error()
        assert kind == BATCH
        return content

    def _message(self) -> tuple[int, str, Any]:
        """The next message of a worker. RuntimeError if one has died, or after `timeout` seconds."""
        from multiprocessing.connection import wait

        at_work = {member.results: member for member in self.members if member.active}
        ends = {member.process.sentinel: member for member in at_work.values()}
        found: list[Any] = wait([*at_work, *ends], self.timeout or None)
        if not found:
            raise runtime_error(
                f"DataLoader timed out after {self.timeout} seconds", "use a longer timeout=, or faster samples"
            )
        for pipe in found:
            if pipe in at_work:
                try:
                    return receive(pipe)
                except (EOFError, OSError):
                    raise self._lost([at_work[pipe]]) from None
        raise self._lost([ends[end] for end in found])

    def _lost(self, members: list[Member]) -> RuntimeError:
        """The error for workers that have died; the other workers are ended."""
        pids = ", ".join(str(member.process.pid) for member in members)
        for member in members:
            member.process.join(1.0)
        codes = ", ".join(str(member.process.exitcode) for member in members)
        self.close()
        return runtime_error(
            f"DataLoader worker (pid(s) {pids}) exited unexpectedly",
            "see the worker's own message above; if the system killed it, it may have used too much memory: use "
            "fewer workers or smaller batches",
            exit_code=codes,
        )
