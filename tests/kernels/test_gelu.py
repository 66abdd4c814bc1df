"""gelu in single precision against double, in the tails too."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

import rushlight as rl
from rushlight.nn import functional as F

X = np.concatenate([np.linspace(-9, 9, 40001), np.logspace(-30, 6, 200), -np.logspace(-30, 0.7, 200)]).astype("float32")
D = X.astype("float64")


def test_value():
    exact = D * ndtr(D)
    got = F.gelu(rl.tensor(X)).numpy().astype("float64")
    np.testing.assert_allclose(got[X > -5], exact[X > -5], rtol=2e-6)
    np.testing.assert_allclose(got, exact, rtol=2e-6, atol=1e-9)


def test_slope():
    exact = ndtr(D) + D * np.exp(-D * D / 2) / np.sqrt(2 * np.pi)
    x = rl.tensor(X, requires_grad=True)
    F.gelu(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), exact, rtol=1e-5, atol=3e-7)


def test_ends():
    y = F.gelu(rl.tensor([float("inf"), float("nan"), 0.0, 1e30, -1e30]))
    np.testing.assert_array_equal(y.numpy(), np.float32([np.inf, np.nan, 0, 1e30, 0]))


@pytest.mark.parametrize("shape", [(), (0,), (3, 50000)])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_shapes_and_dtypes(shape, dtype):
    x = rl.randn(*shape).to(getattr(rl, dtype))
    y = F.gelu(x)
    assert y.shape == shape
    assert y.dtype is x.dtype
    again = F.gelu(x.double()).to(x.dtype)
    np.testing.assert_allclose(y.float().numpy(), again.float().numpy(), rtol=1e-2, atol=1e-6)


def test_strides():
    x = rl.randn(64, 65).T[::2]
    # a loop may take over from NumPy between the two calls: the last bits may differ
    rl.testing.assert_close(F.gelu(x), F.gelu(x.contiguous()), rtol=1e-6, atol=1e-7)
