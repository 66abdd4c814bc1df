"""Without llvmlite or SciPy: programs run, and errors name what to install."""

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
    if name == "llvmlite":
        raise metadata.PackageNotFoundError(name)
    return version(name)
metadata.version = asked
for name in ("llvmlite", "scipy"):
    sys.modules[name] = None
import rushlight as torch
from rushlight import nn
"""


def alone(code, *options, folder=None):
    """What a process of its own prints, without llvmlite and SciPy."""
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
def test_a_program_is_made_and_printed_without_llvmlite():
    assert (
        alone("""
model = nn.Sequential(nn.Linear(2, 3), nn.Dropout(0.5), nn.Tanh(), nn.Linear(3, 1))
step = torch.compile(lambda x: torch.sigmoid(model(x)).round().sum(), backend="numpy")
for _ in range(3):
    step(torch.ones(2, 2))
program, = torch.compiler.programs(step)
print("llvmlite" in program.source, "tanh(" in program.source)
""")
        == "False True\n"
    )


@pytest.mark.origin("newcomers")
def test_a_model_is_exported_without_llvmlite(tmp_path):
    assert (
        alone(
            """
model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
torch.compiler.export(model, torch.ones(1, 2), "answers")
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
    assert "pip install llvmlite" in done.stdout


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


# Each kind of layer, large enough for its faster ways. llvmlite is not installed.
WITHOUT_LLVMLITE = """
import importlib.abc, sys

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "llvmlite":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == "llvmlite" else found(name, package)
import rushlight as torch
F, nn = torch.nn.functional, torch.nn

def learn(model, x):
    out = model(x)
    out = out[0] if isinstance(out, tuple) else out
    out.square().sum().backward()
    assert all(p.grad is not None for p in model.parameters())

for _ in range(2):
    learn(nn.Conv2d(16, 32, 3, padding=1), torch.randn(8, 16, 32, 32, requires_grad=True))
    learn(nn.Conv2d(3, 8, 5, stride=2), torch.randn(64, 3, 28, 28, requires_grad=True))
    learn(nn.Conv2d(32, 32, 3, groups=32), torch.randn(8, 32, 28, 28, requires_grad=True))
    learn(nn.ConvTranspose2d(16, 8, 2, stride=2), torch.randn(8, 16, 32, 32, requires_grad=True))
    learn(nn.MaxPool2d(2), torch.randn(32, 16, 32, 32, requires_grad=True))
    learn(nn.BatchNorm2d(16), torch.randn(32, 16, 32, 32, requires_grad=True))
    learn(nn.LayerNorm(512), torch.randn(512, 512, requires_grad=True))
    learn(nn.Linear(512, 512), torch.randn(512, 512, requires_grad=True))
    learn(nn.LSTM(64, 64), torch.randn(32, 64, 64, requires_grad=True))
    learn(nn.Embedding(1000, 64), torch.randint(1000, (4096,)))
    learn(nn.Softmax(1), torch.randn(512, 512, requires_grad=True))
    learn(nn.GELU(), torch.randn(512, 512, requires_grad=True))
    q = torch.randn(2, 4, 256, 32, requires_grad=True)
    F.scaled_dot_product_attention(q, q, q).sum().backward()
    x = torch.randn(512, 512, requires_grad=True)
    (x.half() * 2 + 1).sum().backward()
    (x.double().sin() + x.cumsum(0).abs().cumprod(1) % 3).sum().backward()
    F.interpolate(torch.randn(4, 8, 64, 64, requires_grad=True), scale_factor=2, mode="bilinear").sum().backward()
    torch.cdist(torch.randn(300, 16, requires_grad=True), torch.randn(300, 16)).sum().backward()
    assert torch.rand(100_000).mean() < 1
print("llvmlite" in sys.modules)
"""


def test_all_layers_run_without_llvmlite():
    done = subprocess.run([sys.executable, "-c", WITHOUT_LLVMLITE], capture_output=True, text=True)
    assert not done.returncode, done.stderr
    assert done.stdout == "False\n"


def test_transforms_without_scipy_are_numpys():
    """In single precision, too."""
    printed = alone("""
x = torch.arange(8.0)
print(torch.fft.fft(x).dtype, torch.fft.irfft(torch.fft.rfft(x)).round().tolist())
""")
    assert printed == "torch.complex64 [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]\n"
