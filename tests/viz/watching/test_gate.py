"""The gate: a paused training waits, single steps pass one by one, Ctrl-C interrupts."""

import os
import signal
import subprocess
import sys
from threading import Thread
from time import monotonic, sleep

import pytest

from rushlight.viz.watching.gate import Gate
from tests.support.paths import ROOT


def until(condition, seconds=20):
    end = monotonic() + seconds
    while not condition() and monotonic() < end:
        sleep(0.005)
    assert condition()


@pytest.fixture
def running():
    """(gate, list that grows by one at each step of a training in another thread)."""
    gate, steps, over = Gate(), [], []

    def train():
        while not over:
            steps.append(len(steps))
            gate.enter()
            sleep(0.001)

    thread = Thread(target=train)
    thread.start()
    yield gate, steps
    over.append(True)
    gate.close()
    thread.join(20)
    assert not thread.is_alive()


def test_pause_steps_and_go(running):
    gate, steps = running
    until(lambda: len(steps) > 3)
    gate.pause()
    until(lambda: gate.held)
    count = len(steps)
    sleep(0.1)
    assert len(steps) == count
    for more in (1, 2, 3):
        gate.step()
        until(lambda: len(steps) == count + more)  # noqa: B023
        sleep(0.05)
        assert len(steps) == count + more
    gate.go()
    until(lambda: len(steps) > count + 10)


def test_jobs_run_between_two_steps(running):
    gate, steps = running
    assert gate.between_steps(lambda: len(steps), 20) > 0
    gate.pause()
    until(lambda: gate.held)
    assert gate.between_steps(lambda: "while it waits", 20) == "while it waits"
    with pytest.raises(ZeroDivisionError):
        gate.between_steps(lambda: 1 / 0, 20)


def test_a_job_without_a_training_gives_up():
    gate = Gate()
    with pytest.raises(TimeoutError):
        gate.between_steps(lambda: 1, 0.05)
    assert not gate.jobs


PAUSED = """
from rushlight.viz.watching.gate import Gate
gate = Gate()
gate.pause()
print("waiting", flush=True)
try:
    gate.enter()
except KeyboardInterrupt:
    print("interrupted", gate.held)
"""


@pytest.mark.skipif(os.name == "nt", reason="sends a signal of POSIX")
def test_ctrl_c_while_paused():
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", PAUSED], stdout=subprocess.PIPE, text=True, env=environment) as child:
        assert child.stdout.readline() == "waiting\n"
        sleep(0.3)
        child.send_signal(signal.SIGINT)
        assert child.communicate(timeout=20)[0] == "interrupted False\n"
