"""Norms of channels and softmax across them, of much: their loops (fast/row_text.py) against double precision."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
import rushlight.nn.functional as F

pytest.importorskip("llvmlite")


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def given(shape, affine, mean=5):
    """An input, and a weight and a bias for its channels, or None for both."""
    x = rushlight.tensor(normal(*shape) + mean, requires_grad=True)
    return x, *(rushlight.tensor(normal(shape[1], seed=k), requires_grad=True) if affine else None for k in (1, 2))


def as_in_double_precision(f, *tensors, atol=2e-5, slopes=2e-5):
    """f of float32 and its gradients beside those of float64, which NumPy computes; -> f of float32."""
    wide = [None if t is None else t.detach().double().requires_grad_() for t in tensors]
    y, expected = f(*tensors), f(*wide)
    g = rushlight.tensor(normal(*y.shape, seed=3))
    y.backward(g)
    expected.backward(g.double())
    assert rushlight.allclose(y.double(), expected, rtol=1e-5, atol=atol)
    for t, w in zip(tensors, wide):
        if t is not None:
            assert t.grad.shape == t.shape
            assert rushlight.allclose(t.grad.double(), w.grad, rtol=1e-4, atol=slopes * (1 + float(w.grad.abs().max())))
    return y


@pytest.mark.parametrize(
    ("shape", "affine", "last"),
    [
        ((8, 5, 40, 50), True, False),
        ((3, 7, 5000), True, False),
        ((2, 40, 24, 24), False, False),
        ((8, 6, 40, 30), True, True),
        ((300, 40, 2, 3), True, False),
        ((2, 3, 4, 50, 60), True, False),
        ((400, 100), True, False),
    ],
)
def test_frozen_batch_norm(shape, affine, last):
    """The channels of the last but one in the list are too short for a loop, those of a matrix have one number each."""
    x, weight, bias = given(shape, affine)
    if last:
        x = x.detach().contiguous(memory_format=rushlight.channels_last).requires_grad_()
    mean, var = rushlight.tensor(normal(shape[1], seed=4)), rushlight.tensor(normal(shape[1], seed=5) ** 2)
    f = lambda x, *scales: F.batch_norm(x, mean.to(x.dtype), var.to(x.dtype), *scales)
    with rushlight.no_grad():
        scale = float(f(x, weight, bias).abs().max())
    y = as_in_double_precision(f, x, weight, bias, atol=2e-6 * scale, slopes=2e-6)
    assert y.stride() == x.stride()


@pytest.mark.parametrize(
    "shape", [(400, 100), (40, 5000), (9000, 1), (8, 5, 40, 50), (3, 7, 5000), (40, 300, 4, 4), (300, 40, 2, 3)]
)
@pytest.mark.parametrize("affine", [True, False])
def test_batch_norm(shape, affine):
    """The last shape's channels are too short for the loop."""
    of = {
        dtype: (rushlight.zeros(shape[1]).to(dtype), rushlight.ones(shape[1]).to(dtype))
        for dtype in (rushlight.float32, rushlight.float64)
    }
    as_in_double_precision(
        lambda x, *scales: F.batch_norm(x, *of[x.dtype], *scales, training=True), *given(shape, affine)
    )
    for a, b in zip(*of.values()):
        assert rushlight.allclose(a.double(), b)


@pytest.mark.parametrize("shape", [(8, 6, 40, 30), (3, 12, 5000), (2, 6, 4, 50, 60), (2000, 12, 4), (16, 24, 20, 20)])
@pytest.mark.parametrize("groups", [1, 2, 6])
@pytest.mark.parametrize("affine", [True, False])
def test_group_norm(shape, groups, affine):
    as_in_double_precision(lambda x, *scales: F.group_norm(x, groups, *scales), *given(shape, affine))


def test_instance_norm_moves_its_statistics():
    x = rushlight.tensor(normal(4, 6, 50, 50) + 5)
    found = []
    for t in (x, x.double()):
        mean, var = rushlight.zeros(6).to(t.dtype), rushlight.ones(6).to(t.dtype)
        y = F.instance_norm(t, mean, var)
        found.append((y, mean, var))
    for a, b in zip(*found):
        assert rushlight.allclose(a.double(), b, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize(
    ("shape", "dim"),
    [((8, 21, 64, 64), 1), ((64, 1024), 0), ((3, 5, 40, 7, 5), 1), ((3, 50, 3000), -2), ((3, 50, 3000, 3), 0)],
)
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_between_dimensions(shape, dim, name):
    x = rushlight.tensor(normal(*shape) * 5)
    x[..., 1] = 100.0
    as_in_double_precision(lambda x: getattr(rushlight, name)(x, dim), x.requires_grad_(), atol=1e-6)


def test_softmax_between_dimensions_of_infinities():
    x = rushlight.tensor(normal(2, 3, 64, 64))
    x[0, :, 0, 0], x[0, 1, 1, 1], x[1, 1, 5, 5] = float("-inf"), float("nan"), float("inf")
    for name in ("softmax", "log_softmax"):
        found, expected = (getattr(rushlight, name)(t, 1).double() for t in (x, x.double()))
        assert rushlight.allclose(found, expected, rtol=1e-5, atol=1e-5, equal_nan=True)
