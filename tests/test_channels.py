"""Norms of channels and softmax across them, of much: their loops (kernels/channels.py) against double precision."""
from __future__ import annotations

import numpy as np
import pytest

import rushlight
import rushlight.nn.functional as F

pytest.importorskip("numba")


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


@pytest.mark.parametrize(("shape", "affine", "last"), [
    ((8, 5, 40, 50), True, False), ((3, 7, 5000), True, False), ((2, 40, 24, 24), False, False),
    ((8, 6, 40, 30), True, True), ((300, 40, 2, 3), True, False), ((2, 3, 4, 50, 60), True, False),
    ((400, 100), True, False)])
def test_frozen_batch_norm(shape, affine, last):
    """The channels of the last but one in the list are too short for a loop, those of a matrix have one number each."""
    x = rushlight.tensor(normal(*shape) + 5)
    x = (x.contiguous(memory_format=rushlight.channels_last) if last else x).requires_grad_()
    weight, bias = (rushlight.tensor(normal(shape[1], seed=k), requires_grad=True) if affine else None for k in (1, 2))
    mean, var = rushlight.tensor(normal(shape[1], seed=4)), rushlight.tensor(normal(shape[1], seed=5) ** 2)
    g = rushlight.tensor(normal(*shape, seed=3))
    wide = [None if t is None else t.detach().double().requires_grad_() for t in (x, weight, bias)]
    y = F.batch_norm(x, mean, var, weight, bias)
    expected = F.batch_norm(wide[0], mean.double(), var.double(), *wide[1:])
    y.backward(g)
    expected.backward(g.double())
    assert y.stride() == x.stride()
    scale = float(expected.detach().abs().max())
    assert rushlight.allclose(y.double(), expected, rtol=1e-5, atol=2e-6 * scale)
    for t, w in zip((x, weight, bias), wide):
        if t is not None:
            assert t.grad.shape == t.shape
            assert rushlight.allclose(t.grad.double(), w.grad, rtol=1e-4, atol=2e-6 * float(w.grad.abs().max()))


@pytest.mark.parametrize("shape", [(400, 100), (40, 5000), (9000, 1), (8, 5, 40, 50), (3, 7, 5000), (40, 300, 4, 4),
                                   (300, 40, 2, 3)])
@pytest.mark.parametrize("affine", [True, False])
def test_batch_norm(shape, affine):
    """As in double precision, which NumPy does; the last shape's channels are too short for the loop."""
    x = rushlight.tensor(normal(*shape) + 5, requires_grad=True)
    weight, bias = (rushlight.tensor(normal(shape[1], seed=k), requires_grad=True) if affine else None for k in (1, 2))
    g = rushlight.tensor(normal(*shape, seed=3))
    wide = [None if t is None else t.detach().double().requires_grad_() for t in (x, weight, bias)]
    mean, var = rushlight.zeros(shape[1]), rushlight.ones(shape[1])
    means, variances = mean.double(), var.double()
    y = F.batch_norm(x, mean, var, weight, bias, training=True)
    expected = F.batch_norm(wide[0], means, variances, *wide[1:], training=True)
    y.backward(g)
    expected.backward(g.double())
    assert rushlight.allclose(y.double(), expected, rtol=1e-5, atol=2e-5)
    assert rushlight.allclose(mean.double(), means)
    assert rushlight.allclose(var.double(), variances)
    for t, w in zip((x, weight, bias), wide):
        if t is not None:
            assert rushlight.allclose(t.grad.double(), w.grad, rtol=1e-4, atol=2e-5 * (1 + float(w.grad.abs().max())))


@pytest.mark.parametrize("shape", [(8, 6, 40, 30), (3, 12, 5000), (2, 6, 4, 50, 60), (2000, 12, 4), (16, 24, 20, 20)])
@pytest.mark.parametrize("groups", [1, 2, 6])
@pytest.mark.parametrize("affine", [True, False])
def test_group_norm(shape, groups, affine):
    """As in double precision, which NumPy does."""
    x = rushlight.tensor(normal(*shape) + 5, requires_grad=True)
    weight, bias = (rushlight.tensor(normal(shape[1], seed=k), requires_grad=True) if affine else None for k in (1, 2))
    g = rushlight.tensor(normal(*shape, seed=3))
    wide = [None if t is None else t.detach().double().requires_grad_() for t in (x, weight, bias)]
    y = F.group_norm(x, groups, weight, bias)
    expected = F.group_norm(wide[0], groups, *wide[1:])
    y.backward(g)
    expected.backward(g.double())
    assert rushlight.allclose(y.double(), expected, rtol=1e-5, atol=2e-5)
    for t, w in zip((x, weight, bias), wide):
        if t is not None:
            assert rushlight.allclose(t.grad.double(), w.grad, rtol=1e-4, atol=2e-5 * (1 + float(w.grad.abs().max())))


def test_instance_norm_moves_its_statistics():
    x = rushlight.tensor(normal(4, 6, 50, 50) + 5)
    found = []
    for t in (x, x.double()):
        mean, var = rushlight.zeros(6).to(t.dtype), rushlight.ones(6).to(t.dtype)
        y = F.instance_norm(t, mean, var)
        found.append((y, mean, var))
    for a, b in zip(*found):
        assert rushlight.allclose(a.double(), b, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize(("shape", "dim"), [((8, 21, 64, 64), 1), ((64, 1024), 0), ((3, 5, 40, 7, 5), 1),
                                            ((3, 50, 3000), -2), ((3, 50, 3000, 3), 0)])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_between_dimensions(shape, dim, name):
    """As in double precision, which NumPy does."""
    x = rushlight.tensor(normal(*shape) * 5)
    x[..., 1] = 100.0
    x.requires_grad_()
    wide = x.detach().double().requires_grad_()
    y, expected = (getattr(rushlight, name)(t, dim) for t in (x, wide))
    g = rushlight.tensor(normal(*shape, seed=3))
    y.backward(g)
    expected.backward(g.double())
    assert rushlight.allclose(y.double(), expected, rtol=1e-5, atol=1e-6)
    assert rushlight.allclose(x.grad.double(), wide.grad, rtol=1e-4, atol=2e-5)


def test_softmax_between_dimensions_of_infinities():
    x = rushlight.tensor(normal(2, 3, 64, 64))
    x[0, :, 0, 0], x[0, 1, 1, 1], x[1, 1, 5, 5] = float("-inf"), float("nan"), float("inf")
    for name in ("softmax", "log_softmax"):
        found, expected = (getattr(rushlight, name)(t, 1).double() for t in (x, x.double()))
        assert rushlight.allclose(found, expected, rtol=1e-5, atol=1e-5, equal_nan=True)
