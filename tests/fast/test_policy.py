"""The first use of an op on a large tensor: NumPy does it, without a compiler, until that has cost the loops' price."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import rushlight
from rushlight.base import dependencies
from rushlight.fast import policy
from rushlight.loops.budget import LOADING_SECONDS, Budget
from tests.support.paths import PACKAGE

F = rushlight.nn.functional

# What tutorials do first, on tensors beyond all sizes from which loops are faster, forward and backward, a few times.
FIRST = """
import sys
import rushlight as torch
from rushlight import nn
F = nn.functional
x, image, words = torch.randn(300, 300), torch.randn(16, 3, 32, 32), torch.randn(20, 16, 64)
net = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                    nn.Linear(16 * 256, 10))
lstm, attend = nn.LSTM(64, 32), nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
steps = [lambda f=f: f(x) for f in (
    torch.sum, torch.amax, torch.exp, torch.sin, torch.std, F.gelu, F.silu, lambda x: x.norm(), lambda x: x.cumsum(0),
    lambda x: x.softmax(-1), lambda x: x.logsumexp(0), lambda x: F.layer_norm(x, (300,)), lambda x: torch.cdist(x, x),
    lambda x: x.index_add(0, torch.arange(300), x), lambda x: F.mse_loss(x, x), lambda x: F.dropout(x),
    lambda x: F.interpolate(image, scale_factor=2), lambda x: x.sort(), lambda x: x.double().sin(), lambda x: x @ x)]
steps += [lambda: F.cross_entropy(net(image), torch.arange(16) % 10), lambda: lstm(words)[0].sum(),
          lambda: attend(words).sum()]
x.requires_grad_()
for step in steps:
    y = step()
    y = y[0] if isinstance(y, tuple) else y
    if y.requires_grad:
        y.sum().backward()
    assert "rushlight.loops.loop_code" not in sys.modules, step
print("done")
"""


def test_no_first_use_loads_a_compiler():
    made = subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True, timeout=120)
    assert made.stdout == "done\n", made.stderr


def large(n):
    return (3 * (0.7 * rushlight.arange(n)).sin()).reshape(-1, 100).requires_grad_()


def convolved(x):
    return F.conv2d(x.reshape(-1, 4, 10, 10), rushlight.ones(32, 4, 3, 3) * 0.1)


@pytest.mark.parametrize(
    "function",
    [
        F.gelu,
        lambda x: x.softmax(1),
        lambda x: F.layer_norm(x, (100,)),
        lambda x: x.cumsum(0),
        lambda x: x.norm(),
        convolved,
        lambda x: F.scaled_dot_product_attention(x.reshape(4, -1, 20), x.reshape(4, -1, 20), x.reshape(4, -1, 20)),
        lambda x: rushlight.zeros(100, 100).index_add(0, rushlight.arange(len(x)) % 100, x),
    ],
)
def test_both_give_the_same(function, monkeypatch):
    """Of loops, which a test of a large tensor has, and of NumPy, before they have paid."""
    found = []
    for left in (0.0, np.inf):
        monkeypatch.setattr(policy.large_arrays, "left", left)
        x = large(40_000)
        y = function(x)
        (y * y).sum().backward()
        found.append((y.detach(), x.grad))
    rushlight.testing.assert_close(*found, rtol=2e-5, atol=1e-4)


def test_what_alone_costs_the_price_is_for_loops():
    bill = Budget(LOADING_SECONDS)
    assert not bill.charge(LOADING_SECONDS / 2)
    assert bill.charge(LOADING_SECONDS / 2) == dependencies.has_llvmlite()


def test_without_llvmlite_numpy_goes_on(monkeypatch):
    monkeypatch.setattr(dependencies, "has_llvmlite", lambda: False)
    bill = Budget(LOADING_SECONDS)
    assert not any(bill.charge(LOADING_SECONDS) for _ in range(3))


def test_who_compiles_does_not_wait_for_loops(monkeypatch):
    pytest.importorskip("llvmlite")
    monkeypatch.setattr(policy.large_arrays, "left", LOADING_SECONDS)
    program = rushlight.compile(lambda x: x.exp() + 1, backend="loops")
    for _ in range(3):
        program(rushlight.ones(3))
    assert policy.large_arrays.left == 0


def test_an_llvmlite_that_refuses_to_be_imported_is_as_none(tmp_path):
    """As releases do beside a newer NumPy than they know: it was an error in the middle of a training run."""
    (tmp_path / "llvmlite").mkdir()
    (tmp_path / "llvmlite" / "__init__.py").write_text("raise ImportError('no library')")
    code = """if True:
        import warnings, rushlight
        from rushlight.fast import policy
        policy.large_arrays.left = policy.small_arrays.left = 0.04
        x = rushlight.ones(300, 1000, requires_grad=True)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            for _ in range(200):
                rushlight.softmax(rushlight.nn.functional.gelu(x), 1).sum().backward()
            assert policy.large_arrays.left == float("inf")
        print([str(w.message).split(";")[0] for w in told], rushlight.compile(lambda x: x * 2)(x.detach()).sum().item())
    """
    path = f"{tmp_path}:{Path(rushlight.__file__).parent.parent}"
    made = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    told = "llvmlite is installed, but cannot be imported: no library"
    assert made.stdout == f"['{told}'] 600000.0\n", made.stderr


def test_accounts_are_charged_in_one_place():
    """By the functions of fast/policy.py; random numbers have an account of their own."""
    places = {"loops/budget.py", "fast/policy.py", "random/choose_loop.py"}
    charging = re.compile(r"\.charge(?:_passes)?\(|\bBudget\(")
    for file in PACKAGE.rglob("*.py"):
        if file.relative_to(PACKAGE).as_posix() not in places:
            assert not charging.search(file.read_text()), file
