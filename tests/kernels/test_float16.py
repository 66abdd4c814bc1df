"""float16 and bfloat16 by way of float32 (kernels/float16.py)."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as torch
from rushlight.base.dependencies import has_llvmlite
from rushlight.fast import float16_loops

BFLOAT = pytest.importorskip("ml_dtypes").bfloat16
KINDS = [np.dtype(np.float16), np.dtype(BFLOAT)]


def paid(dtype):
    """The loops, as if NumPy had taken long enough."""
    for name in ("widen", "narrow"):
        float16_loops.loop_of(name, dtype).build()
        assert float16_loops.loop_of(name, dtype).function is not None


def every(dtype):
    return np.arange(1 << 16, dtype=np.uint16).view(dtype)


def same(a, b):
    a, b = a.astype(np.float32), b.astype(np.float32)
    nan = np.isnan(a)
    return (nan == np.isnan(b)).all() and (a.view(np.int32)[~nan] == b.view(np.int32)[~nan]).all()


@pytest.mark.faster
@pytest.mark.skipif(not has_llvmlite(), reason="loops need llvmlite")
@pytest.mark.parametrize("dtype", KINDS, ids=str)
def test_loops_convert_as_numpy_does_to_the_last_bit(dtype):
    paid(dtype)
    x = every(dtype)
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        between = ((wide[1:] + wide[:-1]) / 2).astype(np.float32)  # as near to one as to the other
        given = [
            between,
            np.nextafter(between, np.float32(0)),
            np.nextafter(between, np.float32(np.inf)),
            x.astype(np.float32),
            np.random.default_rng(0).integers(0, 1 << 32, 1 << 18, np.uint32).view(np.float32),
        ]
        assert same(float16_loops.widened(x), x.astype(np.float32))
        for f in given:
            assert same(float16_loops.narrowed(f, dtype), f.astype(dtype))


@pytest.mark.faster
@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_much_half_precision_is_computed_in_single(dtype, loops):
    if loops:
        if not has_llvmlite():
            pytest.skip("loops need llvmlite")
        paid(dtype.numpy)
    x = torch.randn(40, 30).to(dtype).requires_grad_()
    y = torch.randn(40, 30).to(dtype)
    wide = x.detach().float().requires_grad_()
    out, expected = (
        (x * y).sigmoid() + y,
        (wide * y.float()).to(dtype).float().sigmoid().to(dtype).float() + y.float(),
    )
    assert out.dtype is dtype
    assert torch.equal(out, expected.to(dtype))
    out.sum().backward()
    assert x.grad.dtype is dtype
    expected.sum().backward()
    assert torch.allclose(x.grad.float(), wide.grad, rtol=2e-2, atol=1e-2)
    assert torch.equal((x > y), (wide > y.float()))
    assert (x > y).dtype is torch.bool
    assert torch.equal(x.t().exp(), x.detach().float().t().exp().to(dtype))
    x.grad = None
    (x + x + x * x).sum().backward()
    assert torch.allclose(x.grad.float(), 2 + 2 * wide.detach(), rtol=2e-2)
    z = y.clone()
    z += 1
    assert torch.equal(z, y + 1)
    assert torch.equal(y + 1, (y.float() + 1).to(dtype))


@pytest.mark.parametrize("size", [0, 1, 600])
def test_what_depends_on_the_dtype_stays_in_it(size):
    x = torch.full((size,), float("inf"), dtype=torch.float16)
    assert (x.nan_to_num() == 65504).all()
    one = torch.ones(size, dtype=torch.float16)
    assert torch.equal(one.nextafter(2 * one), one + 2.0**-10)
    assert torch.equal(one.to(torch.float64), torch.ones(size, dtype=torch.float64))


@pytest.mark.parametrize("size", [6, 600])
@pytest.mark.parametrize(
    "name",
    [
        "logsigmoid",
        "hardsigmoid",
        "hardswish",
        "softplus",
        "silu",
        "mish",
        "elu",
        "celu",
        "selu",
        "gelu",
        "leaky_relu",
        "hardshrink",
        "softshrink",
        "relu",
        "hardtanh",
        "glu",
    ],
)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_functions_of_several_steps_round_once(dtype, name, size):
    """However few numbers there are: forward and gradient are float32's, rounded, as torch's."""
    f = getattr(torch.nn.functional, name)
    x = (3 * torch.randn(size)).to(dtype).requires_grad_()
    weights = torch.randn(size // 2 if name == "glu" else size).to(dtype)
    wide = x.detach().float().requires_grad_()
    out, expected = f(x), f(wide)
    assert torch.equal(out, expected.to(dtype))
    out.backward(weights)
    expected.backward(weights.float())
    assert torch.equal(x.grad, wide.grad.to(dtype))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_what_is_added_to_products_is_rounded_with_them(dtype):
    """A layer's result is float32's, rounded once, as torch's; it was rounded before its bias was added, and after."""
    f = torch.nn.functional
    calls = {
        "linear": lambda x, w, b: f.linear(x, w, b),
        "addmm": lambda x, w, b: torch.addmm(b, x, w.T, beta=-4.5, alpha=2.25),
        "baddbmm": lambda x, w, b: torch.baddbmm(b[None, None], x[None], w.T[None], beta=0.3),
        "conv1d": lambda x, w, b: f.conv1d(x.T[None], w[..., None], b),
        "conv2d": lambda x, w, b: f.conv2d(
            x.reshape(2, 8, 10, 4), w[:, :8, None, None].repeat(1, 1, 3, 3), b, padding=1
        ),
    }
    calls["conv_transpose2d"] = lambda x, w, b: f.conv_transpose2d(
        x.reshape(2, 8, 10, 4), w[:8, :12, None, None], b[:12]
    )
    x, w, b = (torch.randn(*size).to(dtype) for size in ((40, 16), (12, 16), (12,)))
    for name, call in calls.items():
        given = [t.clone().requires_grad_() for t in (x, w, b)]
        wide = [t.float().detach().requires_grad_() for t in (x, w, b)]
        out, expected = call(*given), call(*wide)
        assert out.dtype is dtype, name
        assert torch.equal(out, expected.to(dtype)), name
        weights = torch.randn(*out.shape).to(dtype)
        out.backward(weights)
        expected.backward(weights.float())
        for ours, theirs in zip(given, wide):
            assert theirs.grad is None or torch.allclose(ours.grad.float(), theirs.grad, rtol=2e-2, atol=2e-1), name
    assert type(calls["addmm"](*given).grad_fn).__name__ == "AddmmBackward0"


def test_float16_is_widened_by_bits_as_by_numpy():
    every = np.arange(65536, dtype=np.uint16).view(np.float16)
    for h in (every, every[:31744], np.tile(every, 3)[1:].copy(), every.reshape(256, 256), every[:0]):
        wide = float16_loops.widened_by_bits(h)
        assert wide.dtype == np.float32
        assert wide.shape == h.shape
        np.testing.assert_array_equal(wide.view(np.int32), h.astype(np.float32).view(np.int32))


@pytest.mark.origin("sizes in use")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_many_halves_beside_none(dtype):
    x = torch.ones(600, 1, dtype=getattr(torch, dtype))
    none = torch.ones(1, 0, dtype=x.dtype)
    assert (x + none).shape == (x < none).shape == torch.maximum(x, none).shape == (600, 0)
