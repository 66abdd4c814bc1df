"""Without Numba or SciPy: programs run, and errors name what to install."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support.paths import ROOT

WITHOUT = """
import sys, importlib.metadata as metadata
version = metadata.version
def asked(name):
    if name == "numba":
        raise metadata.PackageNotFoundError(name)
    return version(name)
metadata.version = asked
for name in ("numba", "llvmlite", "scipy"):
    sys.modules[name] = None
import rushlight as torch
from rushlight import nn
"""


def alone(code, *options, folder=None):
    """What a process of its own prints, without Numba and SciPy."""
    done = subprocess.run(
        [sys.executable, *options, "-c", WITHOUT + code],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.origin("newcomers")
def test_a_program_is_made_and_printed_without_numba():
    assert (
        alone("""
model = nn.Sequential(nn.Linear(2, 3), nn.Dropout(0.5), nn.Tanh(), nn.Linear(3, 1))
step = torch.compile(lambda x: torch.sigmoid(model(x)).round().sum(), backend="numpy")
for _ in range(3):
    step(torch.ones(2, 2))
program, = torch.compiler.programs(step)
print("numba" in program.source, "tanh(" in program.source)
""")
        == "False True\n"
    )


@pytest.mark.origin("newcomers")
def test_a_model_is_exported_without_numba(tmp_path):
    assert (
        alone(
            """
model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
torch.export(model, torch.ones(1, 2), "answers")
sys.path.insert(0, ".")
from answers import model as small
x = torch.ones(1, 2)
print(bool(abs(small(x.numpy()) - model(x).detach().numpy()).max() < 1e-6))
""",
            folder=tmp_path,
        )
        == "True\n"
    )


@pytest.mark.origin("newcomers")
def test_that_nothing_is_fused_is_said_at_the_users_line(tmp_path):
    (tmp_path / "mine.py").write_text(
        WITHOUT + "import warnings\nwith warnings.catch_warnings(record=True) as seen:\n"
        "    torch.compile(lambda x: x)\nprint(seen[0].filename, seen[0].message)\n"
    )
    done = subprocess.run(
        [sys.executable, "mine.py"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.stdout.startswith(str(tmp_path / "mine.py")), done.stdout + done.stderr
    assert "pip install numba" in done.stdout


@pytest.mark.origin("newcomers")
@pytest.mark.parametrize(
    "call",
    [
        "torch.erf(x)",
        "torch.linalg.lstsq(x, x)",
        "torch.matrix_exp(x)",
        "torch.linalg.lu(x)",
        "torch.linalg.ldl_factor(x)",
        "torch.linalg.solve_triangular(x, x, upper=True)",
        "x.to_sparse() @ x",
        "torch.fft.fft(x)",
        "torch.quasirandom.SobolEngine(2)",
        "torch.distributions.Gamma(x.requires_grad_(), x).rsample().sum().backward()",
    ],
)
def test_what_needs_scipy_says_so(call):
    assert alone(f"""
x = torch.eye(3) + 1
try:
    {call}
except ImportError as error:
    print(error)
""").endswith("SciPy: pip install scipy\n")
