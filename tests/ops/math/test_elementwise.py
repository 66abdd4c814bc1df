"""Elementwise ops at infinities, beside zero, and of several dtypes."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from rushlight.kernels.elementwise import where


@pytest.mark.origin("edge cases")
@pytest.mark.parametrize(
    "ask",
    [
        lambda x, y: x & y,
        lambda x, y: rushlight.gcd(x, y),
        lambda x, y: rushlight.hypot(x * 1j, y),
        lambda x, y: x << y,
    ],
)
def test_shapes_are_looked_at_before_dtypes(ask):
    with pytest.raises(RuntimeError, match=r"The size of tensor a \(3\) must match the size of tensor b \(4\)") as told:
        ask(rushlight.ones(3), rushlight.ones(4))
    assert not isinstance(told.value, NotImplementedError)
    with pytest.raises(NotImplementedError):
        ask(rushlight.ones(3), rushlight.ones(3))


@pytest.mark.origin("edge cases")
@pytest.mark.parametrize(
    "pair", [("float32", "float64"), ("int64", "float32"), ("bool", "int64"), ("float16", "float32")]
)
def test_numbers_of_different_dtypes_are_not_close(torch, pair):
    for lib in (rushlight, torch):
        x, y = (lib.ones(2, dtype=getattr(lib, dtype)) for dtype in pair)
        for f in (lib.isclose, lib.allclose, lambda x, y: x.allclose(y)):
            with pytest.raises(RuntimeError, match=" did not match "):
                f(x, y)


@pytest.mark.origin("sizes in use")
def test_the_gradient_of_logaddexp2_at_infinity(oracle):
    """What is infinitely larger takes all of it; infinity less infinity is no number."""

    def gradients(t):
        x, y = (t.tensor(v, requires_grad=True) for v in ([np.inf, 1.0, -np.inf, 2000.0], [1.0, np.inf, 3.0, 1999.0]))
        t.logaddexp2(x, y).sum().backward()
        return [x.grad, y.grad]

    for a, b in zip(gradients(rushlight), oracle(gradients), strict=True):
        np.testing.assert_allclose(a.numpy(), b, rtol=1e-6)


@pytest.mark.origin("fuzzing")
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8, np.uint8, np.int64])
@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (4, 5), (40, 50)])
def test_where_beside_zero(dtype, shape):
    rng = np.random.default_rng(0)
    x, mask = (rng.standard_normal(shape) * 9).astype(dtype), rng.random(shape) < 0.5
    for a, m in ((x, mask), (x.T, mask.T), (x[..., ::-1] if x.ndim else x, mask)):
        made = where(m, a, 0)
        assert (made.dtype, made.shape) == (dtype, a.shape)
        np.testing.assert_array_equal(made, np.where(m, a, np.zeros((), dtype)))


@pytest.mark.origin("fuzzing")
def test_ldexp_of_large_exponents():
    x = rushlight.tensor([-3.0, 1.0, 0.0, float("inf"), 1e-30, 1e30])
    n = np.array([-(2**30), 2**30, 2**20, -2000, 140, -140], np.int32)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(rushlight.ldexp(x, rushlight.tensor(n)).numpy(), np.ldexp(x.numpy(), n))


@pytest.mark.origin("fuzzing")
@pytest.mark.parametrize("name", ["lt_", "le_", "gt_", "ge_", "eq_", "ne_", "less_", "not_equal_"])
def test_a_comparison_in_place_still_asks_for_a_gradient(torch, name):
    def run(lib):
        x = lib.arange(3.0).requires_grad_()
        y, other = x * 2, lib.ones(3)
        made = getattr(y, name)(1)
        (made * 3 + x).sum().backward()
        beside = getattr(other, name)(x)
        counted = getattr(lib.arange(3), name)(x.detach() * 2)
        return (
            made.tolist(),
            made.dtype.__repr__(),
            y._version,
            x.grad.tolist(),
            beside.requires_grad,
            counted.tolist(),
        )

    assert run(rushlight) == run(torch)
