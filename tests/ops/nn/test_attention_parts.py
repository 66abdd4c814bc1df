"""What a GPT's step is made of, where it takes short cuts: q, k and v as parts of one product, their gradients as
one."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
import rushlight.nn.functional as F
from rushlight.kernels import attention
from rushlight.kernels.shape import rejoined


def attended(lib, x, order, heads=2, causal=True):
    """Some of the gradient of x, whose parts in some order are q, k and v."""
    x = lib.tensor(x, requires_grad=True)
    batch, length, width = x.shape
    parts = x.split(width // 3, dim=2)
    q, k, v = (parts[i].view(batch, length, heads, -1).transpose(1, 2) for i in order)
    y = lib.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
    (y * y).sum().backward()
    return x.grad.numpy()[:, ::5, ::7].copy()


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (0, 0, 2)])
@pytest.mark.parametrize("length", [5, 48])  # by NumPy, and by the loop
def test_gradients_of_parts_of_one_product(oracle, order, length):
    x = np.random.default_rng(length).standard_normal((2, length, 96)).astype(np.float32)
    mine = attended(rushlight, x, order)
    expected = oracle(lambda torch: attended(torch, x, order))
    np.testing.assert_allclose(mine, expected, rtol=2e-4, atol=2e-5)


def test_gradients_side_by_side_are_not_copied():
    x = np.ones((2, 5, 3, 2, 4), np.float32)
    q, k, v = (x[:, :, i].transpose(0, 2, 1, 3) for i in range(3))
    parts = [a.transpose(0, 2, 1, 3).reshape(2, 5, 8) for a in attention.rooms(q, k, v)]
    for i, part in enumerate(parts):
        part[...] = i
    whole = rejoined(parts, 2)
    assert whole.shape == (2, 5, 24)
    assert np.shares_memory(whole, parts[0])
    assert (whole == np.concatenate(parts, 2)).all()
    assert (whole == np.repeat([0, 1, 2], 8)).all()


@pytest.mark.parametrize("order", [(1, 0), (0, 0), (0, 2)])
def test_parts_that_do_not_lie_in_order_are_copied(order):
    x = np.arange(24.0).reshape(2, 12)
    parts = [x[:, 4 * i : 4 * i + 4] for i in order]
    whole = rejoined(parts, 1)
    assert not np.shares_memory(whole, x)
    assert (whole == np.concatenate(parts, 1)).all()


def test_cat_itself_copies():
    x = rushlight.arange(6.0)
    y = rushlight.cat([x[:3], x[3:]])
    y += 1
    assert x.tolist() == [0, 1, 2, 3, 4, 5]


def test_a_gradient_that_is_kept_has_memory_of_its_own():
    x = rushlight.ones(1, 40, 96, requires_grad=True)
    q, k, v = (t.view(1, 40, 2, 16).transpose(1, 2) for t in x.split(32, dim=2))
    for t in (q, v):
        t.retain_grad()
    F.scaled_dot_product_attention(q, k, v).sum().backward()
    before = x.grad.clone()
    v.grad.zero_()
    assert (x.grad == before).all()
    assert x.grad[..., 64:].abs().sum() > 0
