"""Programs that say `import torch` run on rushlight, as they are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import rushlight
from rushlight.compat.check import check

PROGRAM = """
import sys
import torch
import torch.nn as nn, torch.nn.functional as F
from torch.utils.data import DataLoader
from torch import optim
print(torch.__version__, torch.nn is nn, sys.argv[1:], __name__)
print(F.relu(torch.tensor([-1.0, 2.0])))
"""


HERE = {**os.environ, "PYTHONPATH": str(Path(rushlight.__file__).parent.parent)}


def command(*arguments, folder):
    return subprocess.run(
        [sys.executable, "-m", "rushlight", *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=600,
        check=False,
        env=HERE,
    )


@pytest.fixture
def write(tmp_path):
    def write(name, text):
        (tmp_path / name).write_text(text)
        return name

    return write


def test_a_script_runs_with_its_arguments(tmp_path, write):
    done = command("run", write("p.py", PROGRAM), "--epochs", "3", "-h", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "2.13.0+rushlight True ['--epochs', '3', '-h'] __main__\ntensor([0., 2.])\n"


def test_a_module_runs_and_imports_its_neighbours(tmp_path, write):
    write("helper.py", "import torch\nONES = torch.ones(2)\n")
    write("main.py", "from helper import ONES\nprint(ONES.sum().item())\n")
    assert command("run", "-m", "main", folder=tmp_path).stdout == "2.0\n"
    assert command("run", "main.py", folder=tmp_path).stdout == "2.0\n"


def test_a_notebook_runs_cell_by_cell(tmp_path, write):
    cells = [
        ("markdown", "# Title"),
        ("code", "%matplotlib inline\nimport torch\nx = torch.ones(2)"),
        ("code", "x + 1"),
        ("code", "!pip list\nprint(__name__)"),
        ("code", "y = x\ny.foo"),
    ]
    write("n.ipynb", json.dumps({"cells": [{"cell_type": k, "source": s.splitlines(True)} for k, s in cells]}))
    done = command("run", "n.ipynb", folder=tmp_path)
    assert done.stdout == "tensor([2., 2.])\n__main__\n"
    assert done.returncode == 1
    assert "n.ipynb, cell 4" in done.stderr
    assert "y.foo" in done.stderr


def test_what_a_program_raises_is_shown_as_python_shows_it(tmp_path, write):
    done = command("run", write("p.py", "import torch\nopen('not there')\n"), folder=tmp_path)
    assert done.returncode == 1
    assert done.stderr.rstrip().endswith("No such file or directory: 'not there'")
    assert 'p.py", line 2' in done.stderr
    assert "compat" not in done.stderr
    assert command("run", write("q.py", "raise SystemExit(7)"), folder=tmp_path).returncode == 7


@pytest.mark.parametrize(
    "arguments", [("run", "missing.py"), ("check", "missing.py"), ("run", "broken.ipynb"), ("check", "broken.py")]
)
def test_nothing_to_run_is_one_line(tmp_path, write, arguments):
    write("broken.ipynb", "{}")
    write("broken.py", "def")
    done = command(*arguments, folder=tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


def test_what_is_missing_names_the_nearest(tmp_path, write):
    done = command("run", write("p.py", "import torch\ntorch.soft_max(torch.ones(2), 0)\n"), folder=tmp_path)
    assert "rushlight has no torch.soft_max" in done.stderr
    assert "torch.softmax" in done.stderr
    assert "p.py:2" in done.stderr
    done = command("run", write("q.py", "import torch.not_there\n"), folder=tmp_path)
    assert "rushlight has no module torch.not_there" in done.stderr
    assert "q.py:1" in done.stderr


def test_libraries_find_torch_and_its_real_self_stays_out(tmp_path, write):
    done = command(
        "run",
        write(
            "p.py",
            "import sys, torch\nassert sys.modules['torch'] is torch\n"
            "import rushlight\nassert torch.Tensor is rushlight.Tensor\n"
            "torch.nn.functional.mine = 1\nassert rushlight.nn.functional.mine == 1\n"
            "print('torch._C' in sys.modules)",
        ),
        folder=tmp_path,
    )
    assert done.stdout == "False\n", done.stderr


def test_install_refuses_once_torch_itself_was_imported(torch, tmp_path, write):
    done = subprocess.run(
        [sys.executable, "-c", "import torch, rushlight.compat\nrushlight.compat.install()"],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env=HERE,
    )
    assert "torch itself has been imported already" in done.stderr


def test_check_lists_names_without_running(tmp_path, write):
    write(
        "p.py",
        "import torch, os\nfrom torch import nn as layers, no_such\nimport torch.nn.functional as "
        "F\n"
        "raise SystemExit\nlayers.Linear(1, "
        "1)\nF.sofmax\ntorch.optim.Adam.step\ntorch.tensor(1).anything\n",
    )
    found = {use.name: use for use in check(str(tmp_path / "p.py"))}
    assert {name for name, use in found.items() if use.kind == "missing"} == {
        "torch.no_such",
        "torch.nn.functional.sofmax",
    }
    assert found["torch.nn.functional.sofmax"].like == "torch.nn.functional.softmax"
    assert found["torch.nn.functional.sofmax"].places == ["line 6"]
    assert found["torch.optim.Adam.step"].kind == "ok"
    done = command("check", "p.py", folder=tmp_path)
    assert done.returncode == 1
    assert "2 of them missing" in done.stdout
    assert command("check", write("q.py", "import torch\ntorch.ones(2)"), folder=tmp_path).returncode == 0


OPERATOR_METHODS = """
import torch
import torch.backends.cudnn as cudnn
from torch.backends import cudnn as again
from torch.nn.modules.activation import MultiheadAttention
from torch.nn.modules.batchnorm import _BatchNorm
import copy, pickle

cudnn.benchmark = True
print(torch.backends.cudnn.benchmark, again is cudnn, issubclass(torch.nn.BatchNorm1d, _BatchNorm))
x = torch.zeros(2)
print(*map(type, (x, x.shape, x.dtype, x.device, torch.default_generator)))
print(pickle.loads(pickle.dumps((x, x.shape, x.dtype, x.device))), copy.deepcopy(x))
try:
    import torch.backends.nothing
except ModuleNotFoundError as error:
    print(error.name)
"""


def test_modules_and_types_have_the_names_that_programs_know(tmp_path, write):
    done = command("run", write("p.py", OPERATOR_METHODS), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "True True True",
        "<class 'torch.Tensor'> <class 'torch.Size'> <class 'torch.dtype'> <class 'torch.device'> <class "
        "'torch._C.Generator'>",
        "(tensor([0., 0.]), torch.Size([2]), torch.float32, device(type='cpu')) tensor([0., 0.])",
        "torch.backends.nothing",
    ]


def test_parts_that_share_a_function_s_name_leave_it_in_place(tmp_path, write):
    """As sync_batchnorm, which many programs carry along, imports them."""
    write(
        "p.py",
        "from torch.nn.parallel._functions import Broadcast, ReduceAddCoalesced\n"
        "from torch.nn.parallel.data_parallel import DataParallel\nimport "
        "torch.nn.parallel.replicate\n"
        "import torch\nfrom torch.nn.parallel import replicate\nlayer = torch.nn.Linear(2, 3)\n"
        "print(*torch.nn.parallel.data_parallel(layer, torch.ones(4, 2)).shape)\n"
        "try: replicate(layer, [0, 1])\nexcept RuntimeError as error: print(str(error)[:20])\n",
    )
    assert command("run", "p.py", folder=tmp_path).stdout == "4 3\nTorch not compiled w\n"


def test_uninstalled_types_are_at_home_again():
    code = (
        "import rushlight, rushlight.compat as c; c.install(); a = str(rushlight.Tensor); c.uninstall(); print(a, "
        "rushlight.Tensor)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=HERE)
    assert done.stdout == "<class 'torch.Tensor'> <class 'rushlight.Tensor'>\n"


def test_names_that_a_program_reuses_are_not_torchs(tmp_path, write):
    write(
        "p.py",
        "from torch.utils import data\nfrom torch import optim\nfor data in []:\n    data.shape\n"
        "def f(optim):\n    optim.zero_grad()\ntry:\n    import torch\nexcept ImportError:\n    "
        "torch = None\n"
        "torch.no_such_thing\n",
    )
    assert [use.name for use in check(str(tmp_path / "p.py")) if use.kind == "missing"] == ["torch.no_such_thing"]


def test_the_module_version_is_torchs(tmp_path, write):
    done = command(
        "run",
        write(
            "p.py",
            "import torch\nfrom torch.version import __version__\n"
            "print(__version__ == torch.version.__version__ == torch.__version__)\n"
            "print(torch.version.cuda)\n",
        ),
        folder=tmp_path,
    )
    assert done.stdout == "True\nNone\n"


def test_what_dir_lists_is_there(tmp_path, write):
    """Programs walk torch's names: for name in dir(torch): getattr(torch, name)."""
    text = "import torch\nprint(len([getattr(torch, name) for name in dir(torch)]) > 500)\n"
    done = command("run", write("p.py", text), folder=tmp_path)
    assert done.stdout == "True\n", done.stderr


def test_check_tells_names_that_only_raise(tmp_path):
    names = "jit.save jit.load cuda.current_stream nn.Linear save hub.load"
    source = "import torch\n" + "".join(f"torch.{name}\n" for name in names.split())
    (tmp_path / "p.py").write_text(source + "torch.nothing\n")
    kinds = {use.name.partition(".")[2]: use.kind for use in check(str(tmp_path / "p.py"))}
    assert kinds.pop("nothing") == "missing"
    assert kinds.pop("") == kinds.pop("nn.Linear") == kinds.pop("save") == "ok"
    assert kinds.pop("hub.load") == kinds.pop("jit.load") == "ok"
    assert {*kinds.values()} == {"raises"}
    assert len(kinds) == 2
