"""The core stands alone: a neuron of the table's ops, its derivative and the derivative of that, without the layers
above the core and without llvmlite.

`import rushlight.core` would run rushlight/__init__.py, which imports every layer that a user needs. So the program
below puts an empty package `rushlight` in its place, whose `__path__` is the folder: Python then loads the core's own
files and those that they import, and nothing else."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.paths import PACKAGE

# All but base, kernels, core, and ops, where the entries of the table stand.
BLOCKED = {
    path.stem
    for path in PACKAGE.iterdir()
    if path.stem not in {"base", "kernels", "core", "ops", "__init__", "__pycache__"}
}

START = """
import sys
from types import ModuleType

class Blocked:
    "Finds no module of the layers that are blocked, and no llvmlite."

    def find_spec(self, name, path=None, target=None):
        package, _, rest = name.partition(".")
        above = package == "rushlight" and rest.partition(".")[0] in BLOCKED
        if package == "llvmlite" or above:
            raise ModuleNotFoundError(f"{name} is blocked", name=name)

BLOCKED = BLOCKED_NAMES
sys.meta_path.insert(0, Blocked())
rushlight = sys.modules["rushlight"] = ModuleType("rushlight")
rushlight.__path__ = [PACKAGE_FOLDER]
"""

NEURON = """
import numpy as np
import rushlight.core
from rushlight.core.backward import backward, grad
from rushlight.core.tensor import from_array
from rushlight.ops.linalg import matmul
from rushlight.ops.math import arithmetic, elementwise

def leaf(*numbers):
    return from_array(np.array(numbers)).requires_grad_()

# a neuron: y = tanh(w . x + b)
w, x, b = leaf(0.5, -1.0), leaf(2.0, 0.25), leaf(0.125)
y = elementwise.tanh(arithmetic.add(matmul.dot(w, x), b))

# backward twice: dy/dw = (1 - y * y) * x, and d(sum of dy/dw)/db = -2 * y * (1 - y * y) * sum(x)
(dw,) = grad(y, [w], from_array(np.ones(1)), create_graph=True)
backward(dw, from_array(np.ones(2)))
t = np.tanh(0.875)
np.testing.assert_allclose(dw._array, (1 - t * t) * x._array)
np.testing.assert_allclose(b.grad._array, [-2 * t * (1 - t * t) * 2.25])
print(y)

# the graph of y
left = [(y.grad_fn, 0)]
while left:
    node, depth = left.pop()
    print("  " * depth + node.name())
    left += [(n, depth + 1) for n, _ in reversed(node.next_functions) if n is not None]

print(*sorted(m for m in sys.modules if m.split(".")[0] in ("rushlight", "llvmlite", "scipy")))
"""

PRINTED = """\
tensor([0.7039], dtype=torch.float64, grad_fn=<TanhBackward0>)
TanhBackward0
  AddBackward0
    DotBackward0
      AccumulateGrad
      AccumulateGrad
    AccumulateGrad
"""


def run(program):
    start = START.replace("BLOCKED_NAMES", repr(BLOCKED))
    return subprocess.run(
        [sys.executable, "-c", start.replace("PACKAGE_FOLDER", repr(str(PACKAGE))) + program],
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_a_neuron_on_the_core_alone():
    done = run(NEURON)
    assert done.returncode == 0, done.stderr
    *printed, loaded = done.stdout.splitlines(keepends=True)
    assert "".join(printed) == PRINTED
    assert not [m for m in loaded.split() if m.partition(".")[2].partition(".")[0] in BLOCKED]


@pytest.mark.parametrize("module", ["llvmlite", "rushlight.nn", "rushlight.fast"])
def test_what_is_blocked_cannot_be_imported(module):
    done = run(f"import {module}")
    assert done.returncode == 1
    assert f"{module} is blocked" in done.stderr
