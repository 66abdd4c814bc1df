"""Threads that run the parts of a machine-code function (loops/spin_pool.py)."""

from __future__ import annotations

import ctypes
import time

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from rushlight.loops import spin_pool
from rushlight.loops.llvm import INT64, Function, Module, host
from rushlight.loops.spin_pool import SpinPool


@pytest.fixture(scope="module")
def counting():
    """(address, function) of run(table, part, parts): adds 1 to the word of the part, and waits for all words."""
    module = Module(host())
    f = Function(module, "run", "table part parts", "part parts")
    table, part, parts = f.args.values()
    place = f.at(table, part * 8, INT64)
    f.store(f.load(place, 0, INT64) + 1, place, 0)
    f.end()
    engine = module.compiled()
    address = engine.get_function_address("run")
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(address)
    run.engine = engine
    return address, run


def rounds(pool, counting, count, pause=0.0):
    """The words after `count` jobs; each job is awaited."""
    address, run = counting
    words = np.zeros(64, np.int64)
    table = words.ctypes.data
    for k in range(1, count + 1):
        parts = pool.post(address, table)
        run(table, 0, parts)
        end = time.monotonic() + 20
        while (words[: parts * 8 : 8] != k).any():
            assert time.monotonic() < end, "a part did not run"
        time.sleep(pause)
    return words[::8]


@pytest.mark.parametrize("cores", [2, 3])
@pytest.mark.parametrize("pause", [0.0, 0.003])
def test_each_thread_does_its_part_of_each_job(monkeypatch, counting, cores, pause):
    """`pause`: so long that the threads fall asleep between two jobs."""
    monkeypatch.setattr("rushlight.base.threads.chosen", cores)
    pool = SpinPool()
    pool.ready()
    words = rounds(pool, counting, 60, pause)
    assert (words[:cores] == 60).all()
    assert not words[cores:].any()


def test_a_job_before_the_threads_have_started(monkeypatch, counting):
    monkeypatch.setattr("rushlight.base.threads.chosen", 2)
    for _ in range(20):
        pool = SpinPool()
        pool.start(1)
        assert (rounds(pool, counting, 1)[:2] == 1).all()


def test_threads_sleep_after_a_while(monkeypatch, counting):
    monkeypatch.setattr("rushlight.base.threads.chosen", 2)
    pool = SpinPool()
    pool.ready()
    rounds(pool, counting, 1)
    end = time.monotonic() + 20
    while not pool.words[spin_pool.SLEEPING]:
        assert time.monotonic() < end
        time.sleep(0.001)
