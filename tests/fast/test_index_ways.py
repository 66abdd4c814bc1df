"""Every faster way of fast/index.py against the reference kernel, and the switch that turns all of them off."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import rushlight
import rushlight.nn.functional as F
from rushlight import fast, nn
from rushlight.base.dependencies import has_llvmlite
from rushlight.core.table import TABLE, parameters
from rushlight.core.worlds import ARRAYS, rebind, sum_to_array
from rushlight.fast import dispatch, policy
from rushlight.fast.index import ELEMENTWISE, WAYS
from tests.support.paths import PACKAGE


@pytest.fixture
def off():
    fast.off()
    yield
    fast.on()


def reference(name, of):
    """The kernel of an op, or its rule for the derivative by `of`, on arrays; of several inputs, their rules."""
    op = TABLE[name]
    if " " in of:
        return lambda *given: all_gradients(op, of.split(), given)
    if of:
        return rebind(op.rules[of], ARRAYS)
    return inspect.unwrap(getattr(op.kernel, "reference", op.kernel))


def all_gradients(op, inputs, given):
    """The gradients of the inputs, each by its own rule, from the arguments of the first's."""
    known = dict(zip(parameters(op.rules[inputs[0]]), given))
    return tuple(reference(op.name, of)(*[known[name] for name in parameters(op.rules[of])]) for of in inputs)


def arguments(name, of):
    """The way's own example; of elementwise ops, numbers between -3 and 3."""
    module = import_module(WAYS[name, of].module)
    if hasattr(module, "examples"):
        return module.examples()[name, of]()
    x = np.linspace(-3, 3, 64, dtype=np.float32)
    return (x,) if not of else (np.cos(x), x)


@pytest.mark.skipif(not has_llvmlite(), reason="without llvmlite there are no loops")
@pytest.mark.parametrize(("name", "of"), WAYS)
def test_a_way_gives_what_the_reference_gives(name, of, monkeypatch):
    monkeypatch.setattr(policy.small_arrays, "left", 0.0)
    used, way = [], WAYS[name, of]
    kernel = reference(name, of) if name in TABLE else np.add
    op = TABLE.get(name) or type("Site", (), {"name": name, "elementwise": False})

    def counted(*args):
        used.append(args)
        return kernel(*args)

    found = dispatch.run_of(way.module)(op, of, counted, *arguments(name, of))
    fast.off()
    try:
        expected = kernel(*arguments(name, of))
    finally:
        fast.on()
    if way.passes:
        assert not used, "the way left its own example to NumPy"
    for ours, theirs in zip(*[r if isinstance(r, tuple) else (r,) for r in (found, expected)], strict=True):
        theirs = sum_to_array(theirs, ours.shape)  # the engine undoes broadcasting, some ways do so themselves
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-6)


def step(n):
    """Forward and backward through ops that have ways of all kinds."""
    random = np.random.default_rng(0)
    x, w, b = (
        rushlight.tensor(random.standard_normal(shape).astype(np.float32), requires_grad=True)
        for shape in ((n, 128), (128, 128), (128,))
    )
    h = F.gelu(F.layer_norm(x @ w + b, (128,)))
    h = h.softmax(1) * h.tanh() + h.cumsum(0).sin() * 1e-3
    images = F.max_pool2d(F.conv2d(h.reshape(1, 1, n, 128), w[:3, :3].reshape(1, 1, 3, 3)), 2)
    (h.sum() + images.square().sum() + h.logsumexp(1).mean() + rushlight.cdist(x, w).mean()).backward()
    return [h.detach(), images.detach(), x.grad, w.grad, b.grad]


def test_the_package_is_right_with_all_ways_off(off):
    assert not fast.is_on()
    slow = step(600)
    fast.on()
    for one, other in zip(slow, step(600)):
        rushlight.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def other_step():
    """Forward and backward through kernels that have ways, or call others that have."""
    x, y = rushlight.randn(64, 3, 32, 32), rushlight.randn(300, 300, requires_grad=True)
    net = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.MaxPool2d(2), nn.Conv2d(16, 16, 3))
    net(x).square().sum().backward()
    for layer in (nn.LSTM(32, 32), nn.GRU(32, 32), nn.RNN(32, 32)):
        layer(rushlight.randn(20, 64, 32))[0].sum().backward()
    q = rushlight.randn(50, 8, 64)
    nn.MultiheadAttention(64, 4)(q, q, q)[0].sum().backward()
    ((y @ y.T @ y).half().sin() % 3 + y.double().cos() + y.cumprod(0) + y.cummax(1)[0]).sum()
    (y.exp() * y.tanh() + y.sigmoid()).relu().sum().backward()
    rushlight.zeros(300, 300).index_add(0, rushlight.arange(300), y)
    F.interpolate(x, scale_factor=2, mode="bilinear")
    F.grid_sample(x, rushlight.rand(64, 20, 20, 2) * 2 - 1, align_corners=False)
    for pool in (F.max_pool2d, F.avg_pool2d, F.adaptive_avg_pool2d, F.adaptive_max_pool2d):
        pool(x[:1], 3)
    rushlight.randn(20, 64) @ rushlight.randn(200, 64).T


@pytest.mark.faster
def test_off_no_code_of_a_way_runs(monkeypatch):
    """After off(), though all ways ran before: of fast/, only what finds out that they are off."""
    for account in (policy.small_arrays, policy.large_arrays, policy.products):
        monkeypatch.setattr(account, "left", 0.0)
    step(600), other_step()
    used = set()

    def note(frame, event, arg):
        if event == "call" and str(PACKAGE / "fast") in frame.f_code.co_filename:
            used.add((Path(frame.f_code.co_filename).name, frame.f_code.co_name))

    fast.off()
    try:
        sys.setprofile(note)
        step(600), other_step()
    finally:
        sys.setprofile(None)
        fast.on()
    finding = {"run", "prepared", "call", "computed", "<listcomp>", "way_of", "is_ufunc"}
    used -= {(file, name) for file in ("dispatch.py", "index.py") for name in finding}
    assert used <= {("backward_chains.py", name) for name in ("__init__", "over", "<listcomp>")}


def test_off_no_way_is_asked_and_nothing_is_charged(off, monkeypatch):
    monkeypatch.setattr(dispatch, "run_of", lambda way: pytest.fail(f"{way} was asked"))
    left = policy.small_arrays.left, policy.large_arrays.left
    step(600)
    assert left == (policy.small_arrays.left, policy.large_arrays.left)


@pytest.mark.parametrize("size", [8, 600, 100_000])
@pytest.mark.parametrize("function", [F.silu, F.gelu, F.softplus, F.mish, F.hardswish])
def test_half_precision_is_rounded_once_whether_on_or_off(function, size, off):
    """The op and its derivative compute in float32: a part of the result, not of the speed."""

    def results(dtype):
        x = rushlight.linspace(-3, 3, size).half().to(dtype).requires_grad_()
        y = function(x)
        y.backward(rushlight.ones_like(y))
        return y.detach(), x.grad

    wide = results(rushlight.float32)
    for switch in (fast.off, fast.on):
        switch()
        for half, exact in zip(results(rushlight.float16), wide, strict=True):
            ulp = np.spacing(np.abs(exact.numpy()).astype(np.float16)).astype(np.float32)
            assert (np.abs(half.float().numpy() - exact.numpy()) <= 0.51 * ulp + 1e-7).all()


@pytest.mark.parametrize("size", [8, 600])
def test_a_derivative_made_of_the_output_is_rounded_once(size, off):
    for switch in (fast.off, fast.on):
        switch()
        x = rushlight.linspace(-3, 3, size).half().requires_grad_()
        y = x.tanh()
        y.backward(rushlight.ones_like(y))
        out = y.detach().float().numpy()
        np.testing.assert_array_equal(x.grad.numpy(), (1 - out * out).astype(np.float16))


def test_the_environment_switches_them_off():
    text = (
        "import rushlight; from rushlight.core.table import TABLE; from rushlight.base.faster import least; "
        "print(rushlight.fast.is_on(), least(TABLE['softmax']), least(TABLE['add']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", text],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "RUSHLIGHT_FAST": "0"},
    )
    assert done.stdout.split() == ["False", "inf", "inf"]


def test_the_core_works_without_the_package():
    """Where `rushlight.fast` is absent, no op has a faster way."""
    text = """if True:
        import sys
        from importlib import import_module
        import rushlight.base.faster
        import rushlight.base.faster as faster
        rushlight.base.faster.PLUG = "rushlight.absent_fast"
        from rushlight.core.table import TABLE
        assert faster.index() is not None or True
        faster.index.cache_clear()
        assert faster.least(TABLE["softmax"]) == float("inf")
        faster.runner.cache_clear()
        assert faster.faster(TABLE["add"], "", lambda a, b: a + b, 1, 2) == 3
    """
    subprocess.run([sys.executable, "-c", text], check=True)


def test_elementwise_ops_share_one_way():
    from rushlight.fast.index import way_of

    assert way_of(TABLE["frac"], "") is ELEMENTWISE
    assert way_of(TABLE["mm"], "") is None
