"""Fixtures of all tests, above all `oracle`: what torch answers, from torch itself or from a golden file."""

from __future__ import annotations

import gc
import json
import os
import random
import runpy
import signal
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import rushlight
from rushlight import fast
from rushlight.compile.run.compiled_function import Compiled
from rushlight.fast import index, policy
from rushlight.loops import budget, tiering
from rushlight.loops.background import background
from tests.support.oracle import Oracle, torch_or_none
from tests.support.paths import EXAMPLES, GOLDEN, TESTS

os.environ["RUSHLIGHT_LOOPS"] = "wait"  # the processes of tests wait for their loops
background.wait()
# A shell ignores SIGINT in its background jobs, and child processes inherit that: tests interrupt their children.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples each time, however slow the machine; `pytest --hypothesis-profile=search` looks for new ones.
ANY_TIME = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("same", derandomize=True, database=None, **ANY_TIME)
settings.register_profile("search", **ANY_TIME)
settings.load_profile("same")


def pytest_addoption(parser):
    parser.addoption(
        "--golden",
        choices=["read", "write"],
        default="read",
        help="write: ask torch and write tests/golden anew (`make golden`)",
    )

    parser.addoption("--quick", action="store_true", help="without what is marked exhaustive (`make test`)")
    parser.addoption("--beside-torch", action="store_true", help="only tests that compare with torch")
    parser.addoption("--origin", help="only tests with this marker `origin`: who found what they show")


def pytest_collection_modifyitems(config, items):
    """Leave out what --quick and --origin leave out, and tests of faster ways that are off.

    Marked `exhaustive`, a test is left out by --quick; marked `exhaustive(every=n)`, all of its cases but each nth
    are."""
    seen, kept, left = {}, [], []
    for item in items:
        test = item.nodeid.partition("[")[0]
        case = seen[test] = seen.get(test, -1) + 1
        origins = [mark.args[0] for mark in item.iter_markers("origin")]
        unwanted = config.getoption("--quick") and is_exhaustive(item.get_closest_marker("exhaustive"), case)
        unwanted = unwanted or (config.getoption("--origin") or None) not in (None, *origins)
        unwanted = unwanted or config.getoption("--beside-torch") and not {"oracle", "torch"} & {*item.fixturenames}
        unwanted = unwanted or item.get_closest_marker("faster") and not fast.is_on()
        (left if unwanted else kept).append(item)
    items[:] = kept
    config.hook.pytest_deselected(items=left)


def is_exhaustive(mark, case):
    return mark is not None and not ("every" in mark.kwargs and case % mark.kwargs["every"] == 0)


def pytest_configure(config):
    if config.getoption("--golden") == "write":
        if getattr(config.option, "numprocesses", None):
            raise pytest.UsageError("--golden=write runs in one process: leave -n out")
        if torch_or_none() is None:
            raise pytest.UsageError("--golden=write asks torch, and torch is not installed: pip install torch==2.13.0")


@pytest.fixture(scope="session")
def torch():
    """torch itself, for what a golden file cannot hold; the test is skipped without it."""
    return torch_or_none() or pytest.skip("torch is not installed")


@pytest.fixture(scope="session")
def torch_2_15():
    """torch from 2.15 on, for names and arguments that torch 2.13 lacks (docs/torch-versions.md)."""
    found = torch_or_none()
    if found is None or tuple(map(int, found.__version__.split(".")[:2])) < (2, 15):
        pytest.skip("torch 2.15 is not installed")
    return found


@pytest.fixture(autouse=True)
def as_if_alone(monkeypatch):
    """Each test begins as the first of a process, whichever ran before it: the random numbers that a seed gives, and
    NumPy until a test's own work has paid for loops (rushlight/fast/policy.py)."""
    monkeypatch.setattr(budget, "settled", False)
    monkeypatch.setattr(policy.small_arrays, "left", budget.LOADING_SECONDS)
    monkeypatch.setattr(policy.small_arrays, "loading", 0)  # as if llvmlite were not loaded yet
    monkeypatch.setattr(policy.products, "left", index.PRICE_PRODUCTS)
    monkeypatch.setattr(policy.products, "loading", 0)
    monkeypatch.setattr(policy.large_arrays, "left", 0.0)  # large arrays go through loops
    random.seed(0), np.random.seed(0), rushlight.manual_seed(0)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)


@pytest.fixture(autouse=True)
def programs_like_eager(request, monkeypatch):
    """Fail a test in which a program gave other numbers than eager, or the compiler met a limit, whatever becomes of
    warnings: the function then runs as it is, gives right results, and nobody would notice. Tests about that are
    marked."""
    faults, stop = [], Compiled.stop

    def noted(self, why):
        if "please report this" in why or "a limit of the compiler" in why:
            faults.append(f"{self.name} {why}")
        return stop(self, why)

    monkeypatch.setattr(Compiled, "stop", noted)
    yield
    if faults and request.node.get_closest_marker("falls_back") is None:
        pytest.fail("\n".join(["compiled functions that run as they are:", *faults]))


@pytest.fixture
def nothing_paid(monkeypatch):
    """No loop is compiled because this test is the one with which it was paid for: compiling takes memory."""
    monkeypatch.setattr(tiering.Loop, "pay", lambda self, elements: None)


@pytest.fixture
def uncollected(nothing_paid):
    """No garbage collector while the test runs; what it leaves behind is counted by the test. `gc.freeze` sets the
    objects of all tests before it aside: a collection in the test then walks through those of the test alone."""
    gc.collect()
    gc.freeze()
    gc.disable()
    yield
    gc.enable()
    gc.unfreeze()


@pytest.fixture(scope="module")
def golden_store(request):
    """The golden answers of this test file; written back at its end under --golden=write."""
    path = GOLDEN / request.path.relative_to(TESTS).with_suffix(".json")
    write = request.config.getoption("--golden") == "write"
    store = json.loads(path.read_text()) if path.exists() and not write else {}
    yield store
    if write and store:
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(store.items()))
        path.write_text("{\n" + lines + "\n}\n")


@pytest.fixture
def oracle(request, golden_store):
    return Oracle(golden_store, request.node.name, request.config.getoption("--golden") == "write")


@pytest.fixture
def run_example(monkeypatch, capsys):
    """run_example(example, *arguments) -> exit status, standard output, standard error."""

    def call(example, *arguments):
        monkeypatch.setattr(sys, "argv", [example, *map(str, arguments)])
        with pytest.raises(SystemExit) as leaving:
            runpy.run_path(str(EXAMPLES / example), run_name="__main__")
        return leaving.value.code, *capsys.readouterr()

    return call
