"""Ctrl-C while Numba compiles: it comes when that is done, to whoever handles it."""

import signal
import threading

import pytest

pytest.importorskip("llvmlite")
from numba.core.compiler_lock import global_compiler_lock as compiling

from rushlight.loops.ctrl_c import numba


@pytest.fixture(autouse=True)
def handler():
    """Python's own, which programs started in the background of a shell do not have."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def nested(done):
    with compiling:
        with compiling:
            signal.raise_signal(signal.SIGINT)
            done.append("inner")
        done.append("outer")


def test_it_waits_for_the_outermost_compilation():
    done = []
    with pytest.raises(KeyboardInterrupt):
        nested(done)
    assert done == ["inner", "outer"]
    with compiling:  # it comes once
        pass


def test_while_a_function_is_compiled(monkeypatch):
    """LLVM's call when it has finished, from which no exception comes back."""
    from llvmlite.binding.executionengine import ExecutionEngine

    own, called = ExecutionEngine.add_module, []

    def interrupted(engine, module):
        called.append(signal.raise_signal(signal.SIGINT))
        return own(engine, module)

    monkeypatch.setattr(ExecutionEngine, "add_module", interrupted)
    twice = numba.njit(lambda x: 2 * x)
    with pytest.raises(KeyboardInterrupt):
        twice(3.5)
    monkeypatch.undo()
    assert called
    assert twice(3.5) == 7


def test_the_users_handler_is_kept():
    numbers = []
    before = signal.signal(signal.SIGINT, lambda number, frame: numbers.append(number))
    try:
        mine = signal.getsignal(signal.SIGINT)
        with compiling:
            signal.raise_signal(signal.SIGINT)
            assert numbers == []
        assert numbers == [signal.SIGINT]
        assert signal.getsignal(signal.SIGINT) is mine
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with compiling:
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        assert numbers == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_get_none():
    handlers = []

    def compile_there():
        with compiling:
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=compile_there)
    thread.start()
    thread.join()
    assert handlers == [signal.getsignal(signal.SIGINT)]
