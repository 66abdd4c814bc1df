"""Large loops on all cores: arrays are divided along their rows, and each thread calls the same function on its rows.

Uses Python's threads, since compiled loops release the interpreter's lock. OpenMP's workers would spin
after each region while BLAS needs the cores. Passing a part to a waiting thread
and back takes tens of microseconds, so only loops of more than about 0.1 ms are divided."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any

import numpy as np

from rushlight.base.threads import cores
from rushlight.loops.background import may_fall_back, state

CUT, OWN = 1, 2  # how an argument is divided: along rows; one array per part, summed at the end


class Pool:
    """Threads that wait for work; started on first use, and again after a fork."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.inbox: SimpleQueue = SimpleQueue()
        self.size, self.process = 0, 0

    def grow(self, size: int) -> None:
        with self.lock:
            if self.process != os.getpid():
                self.size, self.process, self.inbox = 0, os.getpid(), SimpleQueue()
            for _ in range(size - self.size):
                Thread(target=work, args=(self.inbox,), daemon=True, name="rushlight loop").start()
            self.size = max(size, self.size)

    def run(self, function: Callable, calls: Sequence[tuple]) -> None:
        """Run all calls in parallel. After all have ended, raises an error if there was one."""
        if len(calls) - 1 > self.size or self.process != os.getpid():
            self.grow(len(calls) - 1)
        done: SimpleQueue = SimpleQueue()
        falls_back = may_fall_back()
        for arguments in calls[1:]:
            self.inbox.put((function, arguments, done, falls_back))
        error: BaseException | None = None
        try:
            function(*calls[0])
        except BaseException as e:
            error = e
        self.help()
        for _ in calls[1:]:
            error = done.get() or error
        if error is not None:
            raise error

    def help(self) -> None:
        """Run the calls that no thread has started: on a busy machine threads may wait long for a core."""
        try:
            while True:
                perform(*self.inbox.get_nowait())
        except Empty:
            return


def work(inbox: SimpleQueue) -> None:
    """The main loop of a thread: perform calls, one after the other."""
    while True:
        perform(*inbox.get())


def perform(function: Callable, arguments: tuple, done: SimpleQueue, falls_back: bool) -> None:
    """Run a part of a loop; `falls_back`: whether the caller computes in another way after NotReady."""
    own, state.may_fall_back = state.may_fall_back, falls_back
    try:
        function(*arguments)
        done.put(None)
    except BaseException as error:
        done.put(error)
    finally:
        state.may_fall_back = own


pool = Pool()


def in_parts(loop: Callable, arguments: tuple, how: Sequence[int]) -> None:
    """`loop(*arguments)` on all cores.

    `how`, for each argument: 0, every part gets the whole argument; CUT, divided along the first dimension; OWN, every
    part fills its own array, and the argument receives their sum.
    """
    rows = next(len(a) for a, h in zip(arguments, how) if h == CUT)
    parts = min(cores(), rows)
    if parts <= 1:
        loop(*arguments)
        return
    bounds = [rows * k // parts for k in range(parts + 1)]
    calls = [tuple(divided(a, h, bounds[k], bounds[k + 1]) for a, h in zip(arguments, how)) for k in range(parts)]
    pool.run(loop, calls)
    for i, h in enumerate(how):
        if h == OWN:
            total = arguments[i]
            np.copyto(total, calls[0][i])
            for call in calls[1:]:
                np.add(total, call[i], out=total)


def divided(argument: Any, how: int, start: int, stop: int) -> Any:
    if how == CUT:
        return argument[start:stop]
    return np.empty_like(argument) if how == OWN else argument


def parallel_for(part: Callable, count: int, step: int, least: int | None = None) -> None:
    """Call `part(first, end, chunk)` on even ranges of the items 0 to `count`: one range per core, but at most one per
    `least` items (default: `step`). `chunk`: the items that a part computes at a time, at most `step`.
    """
    parts = min(cores(), -(-count // (least or step)))
    if parts == 1:
        part(0, count, step)
        return
    bounds = [count * k // parts for k in range(parts + 1)]
    steps = -(-count // (parts * step))
    pool.run(part, [(*bounds[k : k + 2], -(-count // (parts * steps))) for k in range(parts)])
