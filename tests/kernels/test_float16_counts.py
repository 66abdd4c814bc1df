"""Counts that half precision does not hold: float16 ends at 65,504 and skips whole numbers from 2,048 on, bfloat16 from
256 on. tests/fuzz/halves.py searches for others."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rushlight
from rushlight.nn import functional as F

N = 70_000
# of N ones: each has 1 / N of the gradient
MEANS = {
    "amax": lambda x: x.amax(),
    "max": lambda x: x.max(),
    "amin": lambda x: x.amin(),
    "min": lambda x: x.min(),
    "aminmax": lambda x: rushlight.aminmax(x)[1],
    "median": lambda x: x.median(),
    "nanmedian": lambda x: x.nanmedian(),
    "vector_norm inf": lambda x: rushlight.linalg.vector_norm(x, math.inf),
    "vector_norm -inf": lambda x: rushlight.linalg.vector_norm(x, -math.inf),
    "dist inf": lambda x: rushlight.dist(x, x.detach() * 0, math.inf),
    "amax dim": lambda x: x.reshape(1, -1).amax(1),
    "mean": lambda x: x.mean(),
    "mean dim": lambda x: x.reshape(1, -1).mean(1),
    "masked.mean": lambda x: rushlight.masked.mean(x, mask=x > 0),
    "masked.amax": lambda x: rushlight.masked.amax(x, mask=x > 0),
    "adaptive_avg_pool1d": lambda x: F.adaptive_avg_pool1d(x[None], 1),
    "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x.reshape(1, 250, 280), 1),
    "avg_pool1d": lambda x: F.avg_pool1d(x[None], N),
    "avg_pool2d": lambda x: F.avg_pool2d(x.reshape(1, 250, 280), (250, 280)),
    "avg_pool3d": lambda x: F.avg_pool3d(x.reshape(1, 50, 50, 28), (50, 50, 28)),
    "area": lambda x: F.interpolate(x[None, None], size=1, mode="area"),
    "segment mean": lambda x: rushlight.segment_reduce(x, "mean", lengths=rushlight.tensor([N])),
}


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", MEANS)
@pytest.mark.parametrize("dtype", [rushlight.float16, rushlight.bfloat16])
def test_gradients_that_divide_by_a_count(name, dtype, compiled):
    x = rushlight.ones(N, dtype=dtype, requires_grad=True)
    f = rushlight.compile(MEANS[name]) if compiled else MEANS[name]
    made = f(x)
    made.backward(rushlight.ones_like(made))
    assert made.item() == 1
    assert np.allclose(x.grad.float().numpy(), 1 / N, rtol=2**-8, atol=0)


def test_the_second_derivative_has_the_count_too():
    x = rushlight.ones(N, dtype=rushlight.float16, requires_grad=True)
    (g,) = rushlight.autograd.grad(x.amax() * 2, x, create_graph=True)
    assert np.allclose(g.detach().float().numpy(), 2 / N, rtol=2**-8, atol=0)


@pytest.mark.parametrize("dtype", [rushlight.float16, rushlight.bfloat16])
@pytest.mark.parametrize("include_self", [True, False])
def test_means_of_many_at_one_place(dtype, include_self):
    x = rushlight.ones(N, dtype=dtype, requires_grad=True)
    at, begin = rushlight.zeros(N, dtype=rushlight.int64), rushlight.ones(1, dtype=dtype)
    made = begin.scatter_reduce(0, at, x, "mean", include_self=include_self)
    made.backward()
    assert made.item() == 1
    assert np.allclose(x.grad.float().numpy(), 1 / N, rtol=2**-8, atol=0)
    assert begin.index_reduce(0, at, x.detach(), "mean", include_self=include_self).item() == 1


SUMS = {
    "embedding_bag": lambda x: F.embedding_bag(rushlight.zeros(1, N, dtype=rushlight.int64), x[:1, None], mode="mean"),
    "weighted mse_loss": lambda x: F.mse_loss(x, x * 0, weight=x),
    "cross_entropy of probabilities": lambda x: (
        F.cross_entropy(x[:, None] * x[:2], x[:, None] * x[:2]) / (2 * math.log(2))
    ),
    "smoothed cross_entropy": lambda x: (
        F.cross_entropy(x[:, None] * x[:2], rushlight.zeros(N, dtype=rushlight.int64), x[:2], label_smoothing=0.5)
        / math.log(2)
    ),
    "cov": lambda x: 1 + x.cov(),
    "masked.var": lambda x: 1 + rushlight.masked.var(x, mask=x > 0),
}


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("dtype", [rushlight.float16, rushlight.bfloat16])
def test_means_of_sums_that_are_too_large(name, dtype):
    assert SUMS[name](rushlight.ones(N, dtype=dtype)).item() == pytest.approx(1, rel=2**-7)


@pytest.mark.parametrize("n", [1000, 3001, N])
@pytest.mark.parametrize("dtype", [rushlight.float16, rushlight.bfloat16])
def test_linspace_counts_its_steps(n, dtype):
    made = rushlight.linspace(-1, 1, n, dtype=dtype).double().numpy()
    assert np.abs(made - np.linspace(-1, 1, n)).max() < (0.001 if dtype is rushlight.float16 else 0.01)


NORMS = {
    "group_norm": lambda x: F.group_norm(x.reshape(1, 2, -1), 1),
    "layer_norm": lambda x: F.layer_norm(x, x.shape),
    "softmax": lambda x: x.softmax(0),
    "logsumexp": lambda x: x.logsumexp(0),
    "var": lambda x: x.var(),
    "renorm": lambda x: rushlight.renorm(x.reshape(2, -1), 1, 0, 5.0),
    "vector_norm 3": lambda x: rushlight.linalg.vector_norm(x, 3),
    "attention": lambda x: F.scaled_dot_product_attention(*[x.reshape(1, 1, -1, 20)] * 3),
}


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("dtype", [rushlight.float16, rushlight.bfloat16])
def test_gradients_in_several_steps_are_rounded_once(name, dtype):
    """The gradient is that in double precision up to the rounding of inputs and outputs."""
    rng = np.random.default_rng(0)
    data = rushlight.tensor(rng.uniform(-1, 1, 6000), dtype=rushlight.float32).to(dtype)
    found = []
    for wide in (dtype, rushlight.float64):
        x = data.detach().to(wide).requires_grad_()
        made = NORMS[name](x)
        g = np.random.default_rng(1).uniform(0.5, 1, made.shape)
        made.backward(rushlight.tensor(g, dtype=rushlight.float32).to(dtype).to(wide))
        found.append(x.grad.double().numpy())
    half, right = found
    step = {rushlight.float16: 2**-11, rushlight.bfloat16: 2**-8}[dtype]
    assert np.abs(half - right).max() <= 6 * step * np.abs(right).max()
