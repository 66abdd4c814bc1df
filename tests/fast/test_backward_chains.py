"""Backward of elementwise ops on large tensors is put off and becomes one loop: the same numbers to the last bit."""

import numpy as np
import pytest

import rushlight
import rushlight.nn.functional as F
from rushlight.fast import backward_chains

pytest.importorskip("llvmlite")
SHAPE = (300, 1000)


def leaves(*shapes, dtype=np.float32):
    random = np.random.default_rng(0)
    return [rushlight.tensor(random.standard_normal(s).astype(dtype), requires_grad=True) for s in shapes or (SHAPE,)]


def gaussian(x):
    return (x * rushlight.sigmoid(1.702 * x) + rushlight.tanh(x) * rushlight.exp(-x * x)).sum()


def of_two(x, y):
    z = x * y - y / (x * x + 1)
    return (rushlight.where(z > 0, z, x) * z.relu() + (z - y).abs() + (z**3).clamp(-1, 2)).mean()


def rows_between(x, y):
    z = F.softmax(x * y, -1) * x.sqrt().nan_to_num()
    return (z + z.mT.reshape(SHAPE) * y).sum()


def broadcast(x, row, number):
    return ((x * row + number) * (x - row) * number).sum()


def handed_on(x, y):
    """Both get the gradient as it comes."""
    return ((x + y) - (x + 0 * y)).square().sum() + (x + y).sum()


def inside(x, y):
    z = x * y
    z[3:7] = 1.0
    z.mul_(y)
    return (z * z).sum()


PROGRAMS = {
    "one": (gaussian, SHAPE),
    "two": (of_two, SHAPE, SHAPE),
    "rows": (rows_between, SHAPE, SHAPE),
    "broadcast": (broadcast, SHAPE, (1, 1000), ()),
    "handed on": (handed_on, SHAPE, SHAPE),
    "in place": (inside, SHAPE, SHAPE),
}


def gradients(f, shapes, dtype):
    given = leaves(*shapes, dtype=dtype)
    f(*given).backward()
    return [t.grad.numpy() for t in given]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_to_the_last_bit(monkeypatch, name, dtype):
    f, *shapes = PROGRAMS[name]
    blocks = gradients(f, shapes, dtype)  # by NumPy in blocks, unless the loop was paid for already
    for chain in computed(monkeypatch, f, shapes, dtype):
        chain.loop.build()
    loops = gradients(f, shapes, dtype)
    monkeypatch.setattr(backward_chains, "DEFERRED_ELEMENTS", 1 << 60)
    for a, b, c in zip(gradients(f, shapes, dtype), blocks, loops):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)
    for a in loops:  # memory of its own
        assert not any(np.shares_memory(a, b) for b in loops if a is not b)


def computed(monkeypatch, f, shapes, dtype):
    """The chains that a second run computes."""
    found, compute = [], backward_chains.Chain.compute

    def noted(self, *args):
        found.append(self)
        return compute(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(backward_chains.Chain, "compute", noted)
        gradients(f, shapes, dtype)
    return found


def test_one_loop_for_all(monkeypatch):
    assert len(computed(monkeypatch, gaussian, (SHAPE,), np.float32)) == 1


def test_targets_on_the_way_and_a_graph_that_stays():
    x, y = leaves(SHAPE, SHAPE)
    z = x * y
    out = (z * z + x).sum()
    for _ in range(2):
        gx, gz = rushlight.autograd.grad(out, (x, z), retain_graph=True)
        np.testing.assert_array_equal(gz.numpy(), (2 * z).detach().numpy())
        np.testing.assert_allclose(gx.numpy(), (2 * z * y + 1).detach().numpy(), rtol=1e-5, atol=1e-5)
    out.backward(retain_graph=True)
    first = x.grad.clone()
    out.backward()
    assert rushlight.equal(x.grad, first + first)


def test_a_hook_sees_what_it_always_saw():
    """Nor is anything put off then: the hook may write to what a formula would read."""
    x, w = leaves(SHAPE, SHAPE)

    def erase(p):
        p.data.zero_()

    w.register_post_accumulate_grad_hook(erase)
    seen, before = [], w.detach().clone()
    y = x * w
    y.register_hook(lambda g: seen.append(g.clone()))
    (y * 3).sum().backward()
    assert seen[0].eq(3).all()
    assert rushlight.equal(x.grad, 3 * before)
    assert not w.any()


def test_a_long_chain_is_cut():
    (x,) = leaves()
    y = x
    for k in range(40):
        y = y * (x + k % 3) * 0.5
    y.sum().backward()
    assert x.grad.isfinite().all()
    wide = x.detach().double().requires_grad_()
    y = wide
    for k in range(40):
        y = y * (wide + k % 3) * 0.5
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), wide.grad.numpy(), rtol=1e-3, atol=1e-4)
