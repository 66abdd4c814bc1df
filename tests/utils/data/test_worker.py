"""Workers of a loader: processes, their order and errors, and that none is left behind."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time
import weakref
from pathlib import Path

import numpy as np
import pytest

import rushlight
from rushlight.utils import data
from rushlight.utils.data import pipe, worker_pool

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")
SOON = 60  # seconds
linux = pytest.mark.skipif(sys.platform != "linux", reason="forks, and counts processes in /proc")


class Items(data.Dataset):
    """Sample i is i, made by process `pid`; `act(i)` may do something first."""

    def __init__(self, n, act=lambda i: None):
        self.n, self.act = n, act

    def __getitem__(self, i):
        self.act(i)
        return i, os.getpid()

    def __len__(self):
        return self.n


class Squares(data.Dataset):
    def __getitem__(self, i):
        return rushlight.full((3,), float(i * i)), data.get_worker_info().id

    def __len__(self):
        return 6


def children():
    """The processes that have this one as their parent, also those that have ended and were not waited for."""
    return {pid for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()}


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """Who would wait in vain for a worker waits for longer than `SOON`, however slow the machine."""
    monkeypatch.setattr(worker_pool, "SHUTDOWN_SECONDS", 2.0 * SOON)


def wait_for(condition):
    until = time.monotonic() + SOON
    while not condition() and time.monotonic() < until:
        time.sleep(0.02)
    return condition()


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def no_one_stays():
    """The test leaves as many processes behind as it found."""
    before = len(multiprocessing.active_children())
    yield
    assert wait_for(lambda: len(multiprocessing.active_children()) <= before)


@linux
@pytest.mark.parametrize("in_order", [True, False])
def test_four_workers_give_each_item_once(no_one_stays, in_order):
    loader = data.DataLoader(
        Items(10_000),
        batch_size=50,
        shuffle=True,
        num_workers=4,
        in_order=in_order,
        generator=rushlight.Generator().manual_seed(3),
    )
    batches = list(loader)
    order = [i for numbers, _ in batches for i in numbers.tolist()]
    assert sorted(order) == list(range(10_000))
    makers = {pid for _, pids in batches for pid in pids.tolist()}
    assert len(makers) == 4
    assert os.getpid() not in makers
    if in_order:
        alone = data.DataLoader(
            Items(10_000), batch_size=50, shuffle=True, generator=rushlight.Generator().manual_seed(3)
        )
        assert order == [i for numbers, _ in alone for i in numbers.tolist()]


def test_large_batches_own_their_memory(no_one_stays):
    """3 MB each way of sending: arrays out of band, a view, bfloat16; what comes may be written to."""
    wide = rushlight.arange(1_000_000.0)
    samples = [(wide, wide[::2], rushlight.ones(1000, 1000, dtype=rushlight.bfloat16), np.arange(5), "text")]
    ((a, b, c, d, text),) = data.DataLoader(samples, batch_size=None, num_workers=1)
    assert a.equal(wide)
    assert b.equal(wide[::2])
    assert (c.dtype, c.float().sum().item()) == (rushlight.bfloat16, 1e6)
    assert (d.tolist(), text) == ([0, 1, 2, 3, 4], "text")
    a.zero_()
    assert wide[-1] == 999_999


def test_messages_without_file_descriptors(monkeypatch):
    """As on Windows."""
    monkeypatch.setattr(pipe, "USES_FILE_DESCRIPTORS", False)
    read, write = multiprocessing.Pipe(duplex=False)
    pipe.send(write, pipe.packed((1, np.arange(100), np.empty(0))))
    number, some, none = pipe.receive(read)
    assert (number, some.sum(), none.shape) == (1, 4950, (0,))
    some[:] = 0


def test_a_message_cut_off():
    read, write = multiprocessing.Pipe(duplex=False)
    write.send((b"", [1000]))
    os.write(write.fileno(), b"x" * 10)
    write.close()
    with pytest.raises((EOFError, OSError)):
        pipe.receive(read)


def test_spawned_workers(no_one_stays):
    loader = data.DataLoader(Squares(), batch_size=2, num_workers=2, multiprocessing_context="spawn")
    found = [(x[:, 0].tolist(), ids.tolist()) for x, ids in loader]
    assert found == [([0, 1], [0, 0]), ([4, 9], [1, 1]), ([16, 25], [0, 0])]


# -- torch's errors --------------------------------------------------------------------------------


class Picky(Exception):
    def __init__(self, one, two):
        super().__init__(one, two)


def test_errors_tell_where_they_come_from(oracle):
    def ask(torch):
        d = data if torch is rushlight else torch.utils.data

        class Faulty(d.Dataset):
            def __getitem__(self, i):
                if i < 4:
                    raise [ValueError("bad"), KeyError("key"), Picky(1, 2), ZeroDivisionError()][i]
                return i

            def __len__(self):
                return 6

        iterator, found = iter(d.DataLoader(Faulty(), num_workers=2)), []
        for _ in range(6):
            try:
                found.append(next(iterator).item())
            except Exception as error:
                lines = str(error).splitlines()
                found.append([type(error).__name__, lines[0], lines[1], lines[-1].rpartition(".")[2]])
        return found

    ours = ask(rushlight)
    assert ours == oracle(ask)
    assert ours[0] == [
        "ValueError",
        "Caught ValueError in DataLoader worker process 0.",
        "Original Traceback (most recent call last):",
        "ValueError: bad",
    ]
    assert ours[4:] == [4, 5]


@linux
def test_what_cannot_be_sent_is_an_error(no_one_stays):
    class Local(Exception):
        pass

    def fail(i):
        raise Local("of a class that has no public name")

    with pytest.raises(RuntimeError, match="(?s)Caught Local in DataLoader worker process 0.*no public name"):
        list(data.DataLoader(Items(2, fail), num_workers=2))
    with pytest.raises((AttributeError, TypeError, Exception), match="(?s)worker process 0.*pickle"):
        list(data.DataLoader([lambda: 1], batch_size=None, num_workers=1))


def test_an_error_of_worker_init_fn():
    def fail(i):
        raise ValueError(f"not {i}")

    with pytest.raises(ValueError, match="(?s)Caught ValueError in DataLoader worker process 0.*not 0"):
        list(data.DataLoader(range(4), num_workers=2, worker_init_fn=fail))


def test_timeout(no_one_stays):
    loader = data.DataLoader(Items(2, lambda i: time.sleep(1)), num_workers=1, timeout=0.1)
    start = time.monotonic()
    with pytest.raises(RuntimeError, match="DataLoader timed out after 0.1 seconds"):
        list(loader)
    assert time.monotonic() - start < SOON


@pytest.mark.parametrize(
    ("error", "words", "options"),
    [
        (ValueError, "only be used with multi-process loading", {"multiprocessing_context": "spawn"}),
        (ValueError, "should specify a valid start method in", {"num_workers": 1, "multiprocessing_context": "forks"}),
        (TypeError, "should be a valid context object", {"num_workers": 1, "multiprocessing_context": 3}),
    ],
)
def test_contexts_refused(error, words, options):
    with pytest.raises(error, match=words):
        data.DataLoader(range(3), **options)


# -- no worker stays, and none is waited for in vain -----------------------------------------------


@linux
@pytest.mark.parametrize("end", ["kill", "exit"])
def test_a_worker_that_dies(no_one_stays, end):
    def die(i):
        if i == 5:
            if end == "exit":
                os._exit(3)
            os.kill(os.getpid(), signal.SIGKILL)

    found, start = [], time.monotonic()
    loader = data.DataLoader(Items(100, die), num_workers=3)
    with pytest.raises(RuntimeError, match=r"DataLoader worker \(pid\(s\) \d+\) exited unexpectedly"):
        found.extend(numbers.item() for numbers, _ in loader)
    assert time.monotonic() - start < SOON
    assert found == list(range(len(found)))
    assert len(found) <= 5


@linux
def test_a_worker_killed_while_it_sends(no_one_stays):
    """Half a batch has come through the pipe when it dies."""
    loader = data.DataLoader([rushlight.ones(2_000_000)] * 8, batch_size=1, num_workers=1)
    iterator = iter(loader)
    next(iterator)
    time.sleep(0.2)
    os.kill(iterator.members[0].process.pid, signal.SIGKILL)
    start = time.monotonic()
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        list(iterator)
    assert time.monotonic() - start < SOON


@linux
def test_persistent_workers_that_died_are_replaced(no_one_stays):
    loader = data.DataLoader(range(8), num_workers=2, persistent_workers=True)
    first = iter(loader)
    pids = [m.process.pid for m in first.members]
    assert [x.item() for x in first] == list(range(8))
    assert [m.process.pid for m in iter(loader).members] == pids
    os.kill(pids[1], signal.SIGKILL)
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        list(loader)
    assert [x.item() for x in loader] == list(range(8))
    del loader, first


@linux
@pytest.mark.parametrize("how", ["break", "exception", "delete", "never begun", "two loaders"])
def test_leaving_early_leaves_no_process(how):
    def leave():
        loader = data.DataLoader(Items(1000), batch_size=4, num_workers=4)
        if how == "delete":
            iterator = iter(loader)
            next(iterator)
            del iterator
        elif how == "never begun":
            iter(loader)
        elif how == "two loaders":
            other = iter(data.DataLoader(Items(50), num_workers=2))
            for _ in zip(loader, other):
                break
        else:
            for _ in loader:
                assert len(children() - before) == 4
                if how == "exception":
                    raise KeyError("enough")
                break

    before, start = children(), time.monotonic()
    with contextlib.suppress(KeyError):
        leave()
    assert wait_for(lambda: children() <= before)
    assert time.monotonic() - start < SOON


@linux
def test_a_busy_worker_is_stopped(monkeypatch):
    monkeypatch.setattr(worker_pool, "SHUTDOWN_SECONDS", 0.2)
    before, start = children(), time.monotonic()
    iterator = iter(data.DataLoader(Items(9, lambda i: i and time.sleep(10 * SOON)), num_workers=2))
    next(iterator)
    del iterator
    assert wait_for(lambda: children() <= before)
    assert time.monotonic() - start < SOON


@linux
def test_the_iterator_is_in_no_cycle():
    iterator = iter(data.DataLoader(range(4), num_workers=1))
    gone = weakref.ref(iterator)
    del iterator
    assert gone() is None


PROGRAM = """
import os, sys, time
from rushlight.utils import data
loader = data.DataLoader(range(1000), num_workers=3, persistent_workers={persistent})
other = iter(data.DataLoader(range(1000), num_workers=1))
iterator = iter(loader)
print(*[m.process.pid for m in [*iterator.members, *other.members]], flush=True)
next(iterator)
{end}
"""


@linux
@pytest.mark.parametrize("end", ["", "sys.exit(3)", "raise ValueError", "os.kill(os.getpid(), 9)"])
def test_a_program_that_ends_takes_its_workers_along(end):
    program = textwrap.dedent(PROGRAM.format(end=end, persistent=bool(end)))
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600)
    pids = list(map(int, ran.stdout.split()))
    assert len(pids) == 4
    assert wait_for(lambda: not any(map(alive, pids)))
    assert "Traceback" not in ran.stderr or end == "raise ValueError"


@linux
def test_many_numbers_in_one_task_do_not_block(no_one_stays):
    """Tasks and batches larger than a pipe, in both directions at once."""
    loader = data.DataLoader(range(120_000), batch_size=30_000, num_workers=1, prefetch_factor=4)
    assert sum(len(batch) for batch in loader) == 120_000


@linux
def test_products_and_compiled_loops_after_a_fork(no_one_stays):
    """The threads of BLAS and of compiled loops do not live in a fork; a worker gets on without them."""
    a = rushlight.ones(300, 300)
    assert (a @ a).sum() == 300.0**3

    class Products(data.Dataset):
        def __getitem__(self, i):
            return (a @ a).sum()

        def __len__(self):
            return 4

    assert [x.item() for x in data.DataLoader(Products(), num_workers=2)] == [300.0**3] * 4
