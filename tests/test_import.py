"""`import rushlight` in a fresh process: NumPy and nothing heavier; and no need of what a browser lacks."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.support.paths import TESTS

SUPPORT = TESTS / "support"
HEAVY = [
    "scipy",
    "llvmlite",
    "matplotlib",
    "ml_dtypes",
    "rich",
    "safetensors",
    "torch",
    "mpi4py",
    "argparse",
    "multiprocessing",
    "asyncio",
    "http",
    "xml",
    "sqlite3",
    "unittest",
    "pdb",
]
LATER = [
    "rushlight.nn",
    "rushlight.optim",
    "rushlight.compile",
    "rushlight.viz",
    "rushlight.utils.data",
    "rushlight.cli",
]
NOT_IN_A_BROWSER = ["scipy", "llvmlite", "ml_dtypes", "multiprocessing", "subprocess", "mmap", "ctypes"]

LOADED = "import sys, json; {}; print(json.dumps(sorted(sys.modules)))"

# NumPy itself imports some of these, so an import is refused by who asks for it.
REFUSE = """
import builtins
real, refused = builtins.__import__, {names!r}
def refusing(name, globals=None, locals=None, fromlist=(), level=0):
    asker = (globals or {{}}).get("__name__", "")
    if level == 0 and name.partition(".")[0] in refused and asker.partition(".")[0] == "rushlight":
        raise ImportError(f"{{asker}} imports {{name}}")
    return real(name, globals, locals, fromlist, level)
builtins.__import__ = refusing
"""


def run(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


def modules_after(statement):
    return set(json.loads(run(LOADED.format(statement))))


@pytest.fixture(scope="module")
def added():
    """What `import rushlight` loads that NumPy does not."""
    return modules_after("import rushlight") - modules_after("import numpy")


def test_loads_nothing_heavy(added):
    assert sorted(name for name in added if name.partition(".")[0] in HEAVY) == []


def test_loads_packages_on_first_use(added):
    assert sorted(set(LATER) & added) == []


def test_packages_load_on_first_use():
    assert (
        run("import rushlight; print(rushlight.nn.Linear(2, 3)(rushlight.ones(1, 2)).shape)").strip()
        == "torch.Size([1, 3])"
    )


def test_works_without_what_a_browser_lacks():
    code = (
        REFUSE.format(names=NOT_IN_A_BROWSER)
        + """
import sys
sys.platform = "emscripten"
import rushlight as torch
x = torch.tensor([[1.0, 2.0]], requires_grad=True)
((x @ torch.ones(2, 3)).tanh() * x.sum()).sum().backward()
model = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
optimizer = torch.optim.Adam(model.parameters())
model(x.detach()).sum().backward()
optimizer.step()
print(x.grad.shape)
"""
    )
    assert run(code).strip() == "torch.Size([1, 2])"


def test_a_refused_import_would_be_seen():
    code = (
        REFUSE.format(names=["ctypes"])
        + """
exec("import ctypes", {"__name__": "rushlight.ops"})
"""
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert "rushlight.ops imports ctypes" in done.stderr


def test_what_is_loaded_later_replaces_nothing():
    """A name means the same function before and after the rest of the library is there."""
    code = """
import rushlight
from rushlight.base import lazy as later
functions, methods = dict(vars(rushlight)), dict(vars(rushlight.Tensor))
later.complete()
dir(rushlight)
from rushlight.ops.composites import offered
now = {name: f for name, f in offered().items() if name in functions}
print(sorted(name for name in now if functions[name] is not now[name]),
      sorted(name for name in methods if vars(rushlight.Tensor)[name] is not methods[name]))
"""
    assert run(code).strip() == "[] []"


def test_parts_that_cannot_be_loaded_say_so():
    """Python takes an AttributeError for the missing name itself, and would be silent."""
    code = """
import sys
import rushlight
from rushlight.base import lazy as later
sys.modules["broken"] = None
later.left.insert(0, "broken")
try:
    rushlight.median
except ImportError as error:
    print("broken" in str(error), later.left[0])
"""
    assert run(code).strip() == "True broken"


@pytest.mark.parametrize("first", ["rushlight.ops.rest", "rushlight.ops.frequent", "rushlight.nn.functional"])
def test_rules_have_their_helpers_in_any_order_of_loading(first):
    """A kernel of the same name does not take the place of a rule's helper: `quotient` did, and eigh had no
    gradient."""
    code = f"""
import {first}
import rushlight
from rushlight.core.table import SHARED
from rushlight.core.worlds import ARRAYS, TENSORS
dir(rushlight)
print([name for name in SHARED for world in (ARRAYS, TENSORS) if world[name].__code__ is not SHARED[name].__code__])
"""
    assert run(code).strip() == "[]"


def test_methods_that_are_loaded_later_are_there():
    code = """
import rushlight
from rushlight.ops.tensor.method_names import METHODS
from rushlight.core.tensor import Tensor
print([name for name in METHODS.split() if name in vars(Tensor)])
print([name for name in METHODS.split() if not hasattr(Tensor, name)])
print(hasattr(Tensor, "no_such_method"), hasattr(rushlight.ones(1), "no_such_method"), hasattr(Tensor, "__getattr__"))
"""
    assert run(code).split("\n")[:3] == ["[]", "[]", "False False False"]


def test_trains_without_modules_that_other_machines_lack():
    """No ctypes, fcntl, resource, ssl, sqlite3, lzma, bz2, readline, fork or processes."""
    assert run((SUPPORT / "lean_python.py").read_text()).strip() == "torch.Size([2, 1])"
