"""Run columns of suites against a candidate, in worker processes that may crash or hang."""

import collections
import contextlib
import dataclasses
import multiprocessing
import multiprocessing.connection
import signal
import time
import warnings

import torch
from bridge import Library, NotApplicable, record_constructor_calls
from common import first_line
from compare import Wrong
from suites import SUITES

FAILURES = ("missing", "wrong", "raises")

# Seconds beyond its time limit after which a worker is taken to hang.
GRACE = 20


class TimeLimit(BaseException):
    """Not an Exception, so that code under test does not catch it by accident."""


@dataclasses.dataclass(frozen=True)
class Task:
    suite: str
    entry: int
    column: str


@dataclasses.dataclass
class Record:
    """What one column of one entry came to."""

    suite: str
    name: str
    variant: str
    family: str
    column: str
    status: str = "n/a"
    passed: int = 0
    missing: int = 0
    wrong: int = 0
    raises: int = 0
    not_applicable: int = 0
    seconds: float = 0.0
    message: str = ""
    sample: str = ""

    @property
    def title(self):
        return f"{self.name} ({self.variant})" if self.variant else self.name

    @property
    def applicable(self):
        return self.passed + self.missing + self.wrong + self.raises


@contextlib.contextmanager
def time_limit(seconds):
    def expire(number, frame):
        raise TimeLimit

    previous = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def judge(suite, entry, column, sample, candidate):
    """The outcome of one sample and, for a failure, the message."""
    try:
        suite.check(entry, column, sample, candidate)
    except NotApplicable:
        return "not_applicable", ""
    except Wrong as error:
        return "wrong", str(error)
    except Exception as error:
        text = f"{type(error).__name__}: {first_line(error)}"
        return ("missing", first_line(error)) if candidate.is_missing(error) else ("raises", text)
    return "passed", ""


def measure(suite, entry, column, candidate, limit=60, max_samples=None):
    """Put all samples of one column to the candidate."""
    record = Record(suite.name, entry.name, entry.variant, entry.family, column)
    tally = collections.Counter()
    start = time.perf_counter()

    def fail(outcome, message, sample=""):
        if record.status not in FAILURES:
            record.status, record.message, record.sample = outcome, message[:400], sample[:400]

    try:
        with time_limit(limit):
            for sample in suite.samples(entry, column):
                outcome, message = judge(suite, entry, column, sample, candidate)
                tally[outcome] += 1
                if outcome in FAILURES and record.status not in FAILURES:
                    fail(outcome, message, suite.describe(sample))
                if max_samples and tally.total() - tally["not_applicable"] >= max_samples:
                    break
    except TimeLimit:
        tally["raises"] += 1
        fail("raises", f"time limit of {limit} s")
    for outcome, count in tally.items():
        setattr(record, outcome, count)
    if record.applicable and record.status not in FAILURES:
        record.status = "pass"
    record.seconds = round(time.perf_counter() - start, 3)
    return record


def work(connection, name, limit, max_samples):
    """Answer tasks until the connection closes."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    record_constructor_calls()
    entries = {key: list(suite.entries()) for key, suite in SUITES.items()}
    try:
        candidate = Library.named(name)
    except Exception as error:
        connection.send(f"cannot import {name}: {type(error).__name__}: {first_line(error)}")
        return
    connection.send(None)
    with contextlib.suppress(EOFError):
        while True:
            task = connection.recv()
            suite, entry = SUITES[task.suite], entries[task.suite][task.entry]
            connection.send(measure(suite, entry, task.column, candidate, limit, max_samples))


class Worker:
    """A process that measures one task at a time."""

    def __init__(self, *options):
        context = multiprocessing.get_context("fork")
        self.connection, other = context.Pipe()
        self.process = context.Process(target=work, args=(other, *options), daemon=True)
        self.process.start()
        other.close()
        self.task = None
        self.deadline = 0.0
        problem = self.connection.recv()
        if problem:
            raise SystemExit(problem)

    def start(self, task, seconds):
        self.task = task
        self.deadline = time.monotonic() + seconds
        self.connection.send(task)

    def stop(self):
        self.connection.close()
        self.process.kill()
        self.process.join()


def run(tasks, candidate, *, jobs=2, limit=60, max_samples=None, progress=None):
    """Measure all tasks; the records come in no particular order."""
    waiting = collections.deque(tasks)
    options = (candidate, limit, max_samples)
    workers = [Worker(*options) for _ in range(min(jobs, len(waiting)))]
    records = []

    def lost(task, message):
        entry = list(SUITES[task.suite].entries())[task.entry]
        return Record(
            task.suite, entry.name, entry.variant, entry.family, task.column,
            status="raises", raises=1, message=message,
        )  # fmt: skip

    try:
        while waiting or any(worker.task for worker in workers):
            for worker in workers:
                if worker.task is None and waiting:
                    worker.start(waiting.popleft(), limit + GRACE)
            busy = {worker.connection: worker for worker in workers if worker.task}
            ready = multiprocessing.connection.wait(list(busy), timeout=1)
            for connection, worker in busy.items():
                if connection in ready:
                    try:
                        record = connection.recv()
                    except (EOFError, ConnectionResetError):
                        record = lost(worker.task, "the process died")
                elif time.monotonic() > worker.deadline:
                    record = lost(worker.task, f"hangs, stopped after {limit + GRACE} s")
                else:
                    continue
                records.append(record)
                worker.task = None
                if record.message.startswith(("the process died", "hangs, stopped")):
                    worker.stop()
                    workers[workers.index(worker)] = Worker(*options)
                if progress:
                    progress(len(records))
    finally:
        for worker in workers:
            worker.stop()
    return records
