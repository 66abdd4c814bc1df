"""A second backward without `retain_graph`, where the first freed nothing."""

from __future__ import annotations

import pytest

import rushlight

CALLS = {
    "add": lambda a, b: rushlight.add(a, b, alpha=2),
    "sub": lambda a, b: rushlight.sub(a, b, alpha=2),
    "rsub": lambda a, b: rushlight.rsub(a, b, alpha=2),
    "lerp": lambda a, b: rushlight.lerp(a, b, 0.3),
    "trapezoid": lambda a, b: rushlight.trapezoid(a, dx=3.0),
    "cumulative_trapezoid": lambda a, b: rushlight.cumulative_trapezoid(a),
    "gradient": lambda a, b: rushlight.gradient(a, spacing=2.0)[0],
    "gradient of order 2": lambda a, b: rushlight.gradient(a, edge_order=2)[1],
    "round": lambda a, b: rushlight.round(a, decimals=2),
    "repeat_interleave": lambda a, b: a.repeat_interleave(2, 0),
    "addmm": lambda a, b: rushlight.addmm(a, rushlight.ones(3, 3), rushlight.ones(3, 3), beta=2),
}


@pytest.mark.parametrize("name", CALLS)
def test_numbers_are_not_freed(name):
    a, b = (rushlight.ones(3, 3, requires_grad=True) for _ in "ab")
    s = CALLS[name](a, b).sum()
    s.backward()
    once = a.grad.clone()
    s.backward()
    assert rushlight.equal(a.grad, 2 * once)


def test_a_product_frees_its_factor():
    a = rushlight.ones(3, requires_grad=True)
    s = (a * 2).sum()
    s.backward()
    with pytest.raises(RuntimeError, match="second time"):
        s.backward()


def test_a_weight_that_is_a_tensor_is_checked_for_writes():
    a, weight = rushlight.ones(2, requires_grad=True), rushlight.ones(2)
    y = rushlight.lerp(a, rushlight.zeros(2), weight)
    weight.zero_()
    with pytest.raises(RuntimeError, match="inplace"):
        y.sum().backward()


def test_ldexp_does_not_save_its_input():
    a = rushlight.ones(2, requires_grad=True)
    x = a.clone()
    y = rushlight.ldexp(x, x.sign())
    x /= 2
    y.sum().backward()
    assert a.grad.tolist() == [2.0, 2.0]
