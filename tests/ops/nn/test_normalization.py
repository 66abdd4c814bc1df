"""Norms of float16 beside float32 weights."""

from __future__ import annotations

import pytest

import rushlight
from rushlight import nn


@pytest.mark.origin("suites")
@pytest.mark.parametrize("dtype", [rushlight.float16, rushlight.bfloat16])
@pytest.mark.parametrize(
    "norm",
    [
        nn.BatchNorm2d(4),
        nn.BatchNorm2d(4).eval(),
        nn.GroupNorm(2, 4),
        nn.LayerNorm(3),
        nn.InstanceNorm2d(4, affine=True),
    ],
)
def test_norms_of_halves_beside_float32_weights(norm, dtype):
    x = rushlight.randn(2, 4, 3, 3).to(dtype).requires_grad_()
    made, whole = norm(x), norm(x.detach().float())
    assert made.dtype is dtype
    assert rushlight.equal(made, whole.to(dtype))
    made.sum().backward()
    assert x.grad.dtype is dtype
    assert norm.weight.grad.dtype is rushlight.float32
