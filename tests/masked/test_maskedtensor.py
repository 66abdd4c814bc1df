"""torch.masked.MaskedTensor beside torch: values, masks, text and gradients.

A class with `__torch_function__` makes all later calls of a process slower, so the programs run in a process of their
own (`python -c`)."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.support.paths import ROOT

START = """
import json, sys, warnings
warnings.simplefilter("ignore")
t = __import__(sys.argv[1])
m, F, found = t.masked, t.nn.functional, {}
D = t.arange(12, dtype=t.float32).reshape(3, 4) - 4
M = t.arange(12).reshape(3, 4) % 3 != 0
def x(grad=False): return m.masked_tensor(D.clone(), M, requires_grad=grad)
def add(name, value): found[name] = repr(value)
"""
VALUES = """
for name in ("abs", "exp", "log", "sqrt", "neg", "sin", "isnan", "round", "reciprocal", "sigmoid"):
    add(name, getattr(t, name)(x()))
for name in ("add", "sub", "mul", "div", "maximum", "eq", "lt", "floor_divide", "logaddexp"):
    add(name, getattr(t, name)(x(), x() + 1))
    add(name + " plain", getattr(t, name)(x(), D))
    add("plain " + name, getattr(t, name)(D, x()))
for name, f in {
    "operators": lambda: (2 + x() * 3 - 1) / 2 ** 2, "compared": lambda: x() > 2,
    "broadcast": lambda: m.masked_tensor(t.ones(4), M[0]) * t.ones(3, 4),
    "int": lambda: m.masked_tensor(t.arange(4), M[0]), "clamp": lambda: t.clamp(x(), -1, 2),
    "filled": lambda: x().to_tensor(9.0), "data": lambda: (x().get_data(), x().get_mask()),
    "all": lambda: (x() == x()).all(), "in place": lambda: x().add_(1).mul_(2),
    "select": lambda: x()[0], "slice": lambda: x()[:, 1:3], "index": lambda: x()[t.tensor([0, 2])],
    "t": lambda: x().t(), "view": lambda: x().view(4, 3), "split": lambda: x().split(2),
    "cat": lambda: t.cat([x(), x()]), "expand": lambda: x()[0].expand(2, 4),
    "unfold": lambda: x().unfold(1, 2, 1), "stack": lambda: t.stack([x(), x()]),
    "softmax": lambda: t.softmax(x(), 1), "where": lambda: t.where(D > 0, x(), t.zeros(3, 4)),
    "ones_like": lambda: t.ones_like(x()), "double": lambda: x().double().dtype,
    "number": lambda: x().sum(), "nothing left": lambda: m.masked_tensor(D, M & ~M).sum(),
    "coo": lambda: x().to_sparse(), "csr": lambda: x().to_sparse_csr() * 2,
    "coo sum": lambda: x().to_sparse().sin().sum(), "dense": lambda: x().to_sparse().to_dense(),
    "item": lambda: (x()[0, 1].item(), float(x()[0, 1])), "of functions": lambda: m.sum(x(), 1),
    "asked": lambda: (m.is_masked_tensor(x()), isinstance(x(), t.Tensor), x().shape, len(x())),
}.items():
    add(name, f())
for name in ("sum", "mean", "amin", "amax", "argmin", "argmax", "prod", "var", "std"):
    for kind, f in {"": lambda f: f(), "0": lambda f: f(0), "1": lambda f: f(1, keepdim=True)}.items():
        add(name + kind, f(getattr(x(), name)))
print(json.dumps(found))
"""
GRADIENTS = """
for name, f in {
    "sum": lambda x: x, "exp": lambda x: x.exp(), "mul": lambda x: x * x, "mean": lambda x: x.mean(0),
    "amax": lambda x: x.amax(1), "prod": lambda x: x.prod(1), "var": lambda x: x.var(1),
    "softmax": lambda x: t.softmax(x, 1) * D, "select": lambda x: x[0], "view": lambda x: x.view(4, 3),
    "filled": lambda x: x.to_tensor(0.0), "data": lambda x: x.get_data(), "div": lambda x: x / D,
    "cat": lambda x: t.cat([x, x]), "clone": lambda x: x.clone(), "t": lambda x: x.t(),
}.items():
    leaf = x(True)
    f(leaf).sum().backward()
    add(name, leaf.grad)
y = D.clone().requires_grad_()
m.as_masked_tensor(y, M).exp().sum().backward()
add("of the data", y.grad)
z = t.tensor([-10.0, -5, 0, 5, 10, 100], requires_grad=True)
a = m.masked_tensor(z, z < 0, requires_grad=True)
b = m.masked_tensor(t.ones_like(z), z >= 0, requires_grad=True)
out = t.where(z < 0, t.exp(a), b)
out.sum().backward()
add("where", (out, a.grad, b.grad))
c = m.masked_tensor(t.tensor(2.0), t.tensor(True), requires_grad=True)
add("no NaN", t.autograd.grad(t.where(t.tensor(False), c / 0, t.ones(())), c))
print(json.dumps(found))
"""


def ran(program: str, name: str) -> dict:
    done = subprocess.run(
        [sys.executable, "-c", START + program, name], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.replace("rushlight", "torch"))


@pytest.mark.parametrize("program", [VALUES, GRADIENTS], ids=["values", "gradients"])
def test_as_torch(torch, program):
    ours, theirs = ran(program, "rushlight"), ran(program, "torch")
    for name, expected in theirs.items():
        assert ours[name] == expected, name


def test_errors():
    ran(
        """
def error(kind, words, f):
    try: f()
    except kind as e: assert words in str(e), e
    else: raise AssertionError(words)
error(ValueError, "masks must match", lambda: x() + m.masked_tensor(D, ~M))
error(TypeError, "data must be a Tensor", lambda: m.masked_tensor([1.0], M))
error(TypeError, "mask must have dtype bool", lambda: m.masked_tensor(D, M.float()))
error(ValueError, "data.dim() must equal mask.dim()", lambda: m.masked_tensor(D, M[0]))
error(TypeError, "is not supported in MaskedTensor", lambda: m.masked_tensor(D + 0j, M))
error(TypeError, "no implementation found for 'relu'", lambda: t.relu(x()))
error(ValueError, "expected a mask tensor", lambda: x()[0, 0].item())
error(RuntimeError, "tolist() is not supported", lambda: x().tolist())
assert m.mean(x(), 0).equal(x().mean(0).to_tensor(0))  # torch divides by the number of all elements
import copy, pickle
for other in (copy.deepcopy(x(True)), pickle.loads(pickle.dumps(x(True)))):
    assert repr(other) == repr(x()) and other.requires_grad
print("{}")
""",
        "rushlight",
    )
