"""layer_norm of large inputs goes block by block and gives the same to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from rushlight import nn
from rushlight.compile import compile, programs
from rushlight.kernels import normalization


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize(
    ("shape", "dims"), [((300, 700), (1,)), ((4, 50, 30, 40), (2, 3)), ((2, 140000), (1,)), ((140000, 1), (1,))]
)
def test_blocks(monkeypatch, shape, dims, affine):
    rng = np.random.default_rng(0)
    x = rng.normal(1, 3, shape).astype("float32")
    weight, bias = (rng.normal(size=[shape[d] for d in dims]).astype("float32") if affine else None for _ in range(2))
    assert x.size > 2 * normalization.BLOCK_ELEMENTS
    by_blocks = normalization.layer_norm(x, weight, bias, dims, 1e-5)
    monkeypatch.setattr(normalization, "BLOCK_ELEMENTS", x.size)
    for got, want in zip(by_blocks, normalization.layer_norm(x, weight, bias, dims, 1e-5)):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


def test_half_and_strides():
    x = np.random.default_rng(0).normal(size=(700, 300)).astype("float16").T
    out, mean, _ = normalization.layer_norm(x, None, None, (1,), 1e-5)
    assert out.dtype == np.float16
    assert mean.shape == (300, 1)
    np.testing.assert_allclose(mean[:, 0], x.astype("float64").mean(1), atol=1e-5)


@pytest.mark.origin("sizes in use")
def test_gradients_that_cancel_are_no_other_numbers():
    """Of one number to normalize, each gradient is a number less itself; a loop that multiplies and subtracts at once
    leaves its rounding, and where so many are looked at, some had been shaken by the same in all of three tries."""
    layer, x = nn.LayerNorm(1), rushlight.randn(640, 960, 1, requires_grad=True)
    weights = rushlight.randn(640, 960, 1)

    def step(x):
        (layer(x) * weights).sum().backward()

    run = compile(step, fullgraph=True)
    for _ in range(3):
        run(x)
    assert programs(run)
    assert x.grad.abs().max() < 1e-3
