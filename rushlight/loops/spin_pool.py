"""Threads that run the parts of a machine-code function. A thread that has done its part spins for a while, since the
next call often comes soon and waking a thread takes 50 us; then the thread sleeps.

A function `run(table, part, parts)` is called by the caller with part 0 and by each thread with its own part. Callers
post a job in the mailbox: 64-bit words, each on its own cache line."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from threading import Lock, Semaphore, Thread
from typing import Any

import numpy as np

from rushlight.base.threads import cores

LINE = 8  # words of a cache line
JOB, RUN, TABLE, SLEEPING, PARTS, DONE = (k * LINE for k in range(6))  # places in the mailbox
SPINS = 40_000  # rounds of looking for a job before a thread sleeps, about 0.5 ms


@cache
def machine_code() -> Any:
    """`work(mailbox, part, seen, result)`: performs jobs until it has spun in vain. `seen`: the number of the last job;
    `result`: its number at the end."""
    from rushlight.loops.llvm import INT64, POINTER, Function, Module, host

    module = Module(host())
    f = Function(module, "work", "mailbox part seen result", "part seen")
    box = f.args["mailbox"]

    def word(place: int) -> Any:
        return f.put(f"load atomic i64, ptr {f.at(box, place, INT64).v} seq_cst, align 8", INT64)

    head, look, run, wait, done = (f.label() for _ in range(5))
    f.jump(head)
    f.begin(head)
    seen = f.put("phi", INT64)
    seen_place = len(f.lines) - 1
    f.jump(look)
    f.begin(look)
    spins = f.put("phi", INT64)
    spins_place = len(f.lines) - 1
    job = word(JOB)
    f.branch(job != seen, run, wait)
    f.begin(wait)
    f.pause()
    more = spins + 1
    f.branch(more < SPINS, look, done)
    f.begin(run)
    address = f.load(box, RUN, POINTER)
    table, parts = f.load(box, TABLE, POINTER), f.load(box, PARTS, INT64)
    f.lines.append(f"call void {address.v}(ptr {table.v}, i64 {f.args['part'].v}, i64 {parts.v})")
    f.put(f"atomicrmw add ptr {f.at(box, DONE, INT64).v}, i64 1 seq_cst", INT64)
    f.jump(head)
    f.begin(done)
    f.store(seen, f.args["result"], 0)
    f.end()
    f.lines[seen_place] = f"{seen.v} = phi i64 [ {f.args['seen'].v}, %start ], [ {job.v}, %{run} ]"
    f.lines[spins_place] = f"{spins.v} = phi i64 [ 0, %{head} ], [ {more.v}, %{wait} ]"
    return module.compiled()


class SpinPool:
    """`cores() - 1` threads, started at the first use and again after a fork.

    The caller raises the number of the job and then looks whether threads sleep; a thread marks itself as asleep and
    then looks at the number of the job. So one of both notices the other, and no job waits for a sleeping thread."""

    def __init__(self) -> None:
        self.lock, self.process, self.count = Lock(), 0, 0

    def start(self, count: int) -> None:
        self.process, self.count = os.getpid(), count
        self.memory = np.zeros(8 * LINE, np.int64)
        self.words = (ctypes.c_int64 * len(self.memory)).from_address(self.memory.ctypes.data)
        self.wake, self.counting = [Semaphore(0) for _ in range(count)], Lock()
        self.words[SLEEPING] = count
        for k in range(count):
            state = self.memory, self.words, self.wake[k], self.counting, k + 1
            Thread(target=work, args=state, daemon=True, name="rushlight native").start()

    def ready(self) -> bool:
        """Whether all threads are awake; wakes them if not."""
        count = cores() - 1
        if self.process != os.getpid() or self.count != count:
            self.start(count)
        if self.words[SLEEPING]:
            self.wake_all()
            return False
        return True

    def wake_all(self) -> None:
        for semaphore in self.wake:
            semaphore.release()

    def wait(self) -> None:
        """Wait until all threads have left the function: then its machine code and memory may be freed."""
        words = self.words
        while words[DONE] < words[JOB] * self.count:
            pass

    def post(self, run: int, table: int) -> int:
        """Give the threads their parts of `run(table, part, parts)`. Returns the number of parts; the caller holds
        `lock`, runs part 0, and waits for the others."""
        words = self.words
        words[RUN], words[TABLE], words[PARTS] = run, table, self.count + 1
        words[JOB] += 1
        with self.counting:
            sleeping = words[SLEEPING]
        if sleeping:
            self.wake_all()
        return self.count + 1


def work(memory: np.ndarray, words: Any, wake: Semaphore, counting: Any, part: int) -> None:
    """The main loop of a thread."""
    kinds = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
    spin = ctypes.CFUNCTYPE(None, *kinds)(machine_code().get_function_address("work"))
    seen, address = ctypes.c_int64(0), memory.ctypes.data  # a job may have been posted before this thread runs
    while True:
        if words[JOB] == seen.value:
            wake.acquire()
        with counting:
            words[SLEEPING] -= 1
        spin(address, part, seen.value, ctypes.byref(seen))
        with counting:
            words[SLEEPING] += 1


pool = SpinPool()
