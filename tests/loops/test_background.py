"""Loops that another process compiles while NumPy works (loops/background.py). Each program here is a process of its
own, with an empty cache folder."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from rushlight.base.dependencies import has_llvmlite
from rushlight.base.threads import process_cores
from rushlight.loops.compile_worker import AUTOGROUP, LOW_PRIORITY, SHARED_PRIORITY
from tests.support.paths import PACKAGE

pytestmark = [pytest.mark.skipif(not has_llvmlite(), reason="without llvmlite there are no loops"), pytest.mark.faster]


def output(program, folder, **settings):
    """What the program prints. `folder`: of its cache."""
    env = {k: v for k, v in os.environ.items() if k != "RUSHLIGHT_LOOPS"}
    env |= {"RUSHLIGHT_CACHE": str(folder), "PYTHONPATH": str(PACKAGE.parent), **settings}
    return subprocess.run(
        [sys.executable, "-c", program], env=env, check=True, capture_output=True, text=True
    ).stdout.split()


UNTIL_LOOPS_RUN = """
import time
import rushlight
from rushlight.loops.background import background
from rushlight.loops.cache import LOOPS, of, wait

x, first = rushlight.linspace(-3, 3, 100_000), None
end = time.monotonic() + 300
while time.monotonic() < end:
    y = rushlight.nn.functional.gelu(x)
    first = y if first is None else first
    if any(of(loop).codes for loop in LOOPS.values()):
        break
    time.sleep(0.01)
print(wait.spent > 0, time.monotonic() < end, bool((y - first).abs().max() < 1e-6))
"""


def test_numpy_works_until_another_process_has_compiled_the_loop(tmp_path):
    assert output(UNTIL_LOOPS_RUN, tmp_path) == ["False", "True", "True"]


@pytest.mark.parametrize(
    ("program", "settings"),
    [
        (UNTIL_LOOPS_RUN, {"RUSHLIGHT_LOOPS": "wait"}),
        ("import rushlight\nrushlight.fast.settle()" + UNTIL_LOOPS_RUN, {}),
        ("import rushlight\nrushlight.use_deterministic_algorithms(True)" + UNTIL_LOOPS_RUN, {}),
    ],
    ids=["RUSHLIGHT_LOOPS", "settle", "deterministic"],
)
def test_a_program_may_wait_for_its_loops(program, settings, tmp_path):
    assert output(program, tmp_path, **settings) == ["True", "True", "True"]


def test_a_process_whose_worker_was_killed_compiles_by_itself(tmp_path):
    program = UNTIL_LOOPS_RUN.replace(
        "    first = ", "    background.worker and background.worker.kill()\n    first = "
    )
    assert output(program, tmp_path) == ["True", "True", "True"]


def test_a_fork_waits_for_its_loops(tmp_path):
    program = """
import os
from rushlight.loops.background import background
assert background.wanted
child = os.fork()
if child == 0:
    os._exit(background.wanted)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert output(program, tmp_path) == ["0"]


@pytest.mark.skipif(not AUTOGROUP.exists(), reason="the system has no autogroups")
def test_the_worker_gives_way_to_processes_of_other_sessions(tmp_path):
    """The priority of the worker's session: Linux shares processor time between sessions first."""
    program = UNTIL_LOOPS_RUN + "print(*open(f'/proc/{background.worker.pid}/autogroup'))"
    *_, word, priority = output(program, tmp_path)
    assert (word, priority) == ("nice", str(LOW_PRIORITY if process_cores() > 1 else SHARED_PRIORITY))


def test_the_reference_kernel_does_the_work_of_a_way_that_is_not_ready(tmp_path):
    """For each way: the reference's numbers in results and in arguments. No loop is compiled."""
    program = "from tests.loops.test_background import compare; compare()"
    ways, fallen_back = map(int, output(program, tmp_path))
    assert 60 < fallen_back <= ways


def compare():
    """Each way of fast/index.py while no loop becomes ready. Prints the number of ways, and of those that met a loop
    that was not ready."""
    from importlib import import_module

    from rushlight.core.table import TABLE
    from rushlight.fast import dispatch, policy
    from rushlight.fast.index import SITES, WAYS
    from rushlight.loops import tiering
    from rushlight.loops.background import background
    from rushlight.loops.cache import wait
    from tests.fast import test_index_sites, test_index_ways

    met = []
    background.wanted = True
    background.ready = lambda loop, signature: met.append(signature)
    tiering.Loop.pay = lambda loop, elements: loop.build()

    def both(name, way, reference, arguments):
        for account in (policy.small_arrays, policy.large_arrays, policy.products):
            account.left = 0.0
        before = len(met)
        given, wanted = arguments(), arguments()
        found, expected = way(*given), reference(*wanted)
        pairs = ((given, wanted), (found, expected))
        for made, right in pairs:
            for a, b in zip(test_index_sites.arrays(made), test_index_sites.arrays(right), strict=True):
                np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5, err_msg=name)
        return len(met) > before

    fallen_back = [
        both(name, hooked(name, import_module), test_index_sites.kernel_of(name), test_index_sites.EXAMPLES[name])
        for name in SITES
    ]
    for name, of in WAYS:
        if name not in TABLE:
            continue
        op, kernel = TABLE[name], test_index_ways.reference(name, of)
        fallen_back.append(
            both(
                f"{name} {of}",
                lambda *args, op=op, of=of, kernel=kernel: dispatch.run(op, of, kernel, args),
                kernel,
                lambda name=name, of=of: test_index_ways.arguments(name, of),
            )
        )
    assert wait.spent == 0
    print(len(fallen_back), sum(fallen_back))


def hooked(name, import_module):
    """The kernel with its way."""
    module, function = name.split(".")
    home = "ops.nn" if function == "conv_bias_grad" else "kernels"
    return getattr(import_module(f"rushlight.{home}.{module}"), function)
