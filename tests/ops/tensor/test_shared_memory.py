"""Memory that processes share, however they were started."""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
import types

import pytest

import rushlight
from rushlight import multiprocessing as ours
from rushlight import nn

METHODS = [m for m in multiprocessing.get_all_start_methods() if m != "fork"]


def double(x, done):
    x.mul_(2)
    done.put((x, x.is_shared()))
    done.get()  # the sender lives until the memory is mapped


def step(model, done):
    with rushlight.no_grad():
        model.weight.add_(1)
    done.set()


@pytest.mark.parametrize("method", METHODS)
def test_arguments_and_queues_send_the_memory(method):
    """The parent sees the child's writes, and the child those of the parent."""
    context = multiprocessing.get_context(method)
    x, queue = rushlight.arange(4.0).share_memory_(), context.Queue()
    child = context.Process(target=double, args=(x[1:3], queue))
    child.start()
    y, shared = queue.get(timeout=60)
    assert x.tolist() == [0, 2, 4, 3]
    assert (y.tolist(), shared, y.is_shared()) == ([2, 4], True, True)
    x[1] = 7
    assert y.tolist() == [7, 4]
    queue.put(None)
    child.join()


@pytest.mark.parametrize("method", METHODS[:1])
def test_a_module_in_shared_memory(method):
    context = multiprocessing.get_context(method)
    model, done = nn.Linear(2, 1), context.Event()
    model.share_memory()
    before = model.weight.tolist()
    child = context.Process(target=step, args=(model, done))
    child.start()
    child.join()
    assert done.is_set()
    assert model.weight.tolist() == [[pytest.approx(w + 1) for w in before[0]]]


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts descriptors in /proc")
def test_memory_is_given_back():
    def count():
        gc.collect()
        return len(os.listdir("/proc/self/fd"))

    rushlight.zeros(3).share_memory_()
    before = count()
    for _ in range(10):
        rushlight.zeros(3).share_memory_()
    assert count() == before


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork on Windows")
def test_processes_are_forked_whatever_pythons_default():
    """Python 3.14's is 'forkserver'."""
    assert ours.Process is multiprocessing.get_context("fork").Process
    for method in (None, "spawn", "forkserver"):
        assert ours.get_context(method).get_start_method() == "fork"


def test_all_that_can_be_imported_is_a_module():
    """Libraries such as hypothesis look into each entry of sys.modules."""
    from rushlight import backends  # noqa: F401
    from rushlight.distributed import fsdp  # noqa: F401

    own = {n: m for n, m in sys.modules.items() if n.partition(".")[0] == "rushlight"}
    assert [n for n, m in own.items() if not isinstance(m, types.ModuleType)] == []
    import rushlight.backends.cudnn as cudnn

    module = sys.modules["rushlight.backends.cudnn"]
    module.benchmark = True
    assert cudnn.benchmark is module.benchmark is True
    module.benchmark = False
