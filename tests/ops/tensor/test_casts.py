"""Casts: integers have no gradient."""

from __future__ import annotations

import pytest

import rushlight

WHOLE = {
    "the part behind the point": lambda t, x: x - x.long(),
    "by to": lambda t, x: x * x.to(t.int32),
    "by the dtype of another": lambda t, x: x - x.type_as(t.tensor(1)),
    "a truth": lambda t, x: x * x.bool(),
    "and back": lambda t, x: x - x.int().float(),
    "written into whole numbers": lambda t, x: x * t.zeros(3, dtype=t.int64).copy_(x),
}


def gradient(t, f, *numbers):
    x = t.tensor(numbers, requires_grad=True)
    f(x).sum().backward()
    return x.grad


@pytest.mark.origin("tutorials")
@pytest.mark.parametrize("name", WHOLE)
def test_whole_numbers_have_no_gradient(oracle, name):
    f = WHOLE[name]
    expected = oracle(lambda t: gradient(t, lambda x: f(t, x), 1.25, 2.5, -3.75))
    assert gradient(rushlight, lambda x: f(rushlight, x), 1.25, 2.5, -3.75).tolist() == expected.tolist()
    compiled = rushlight.compile(lambda x: f(rushlight, x))
    for _ in range(4):
        assert gradient(rushlight, compiled, 1.25, 2.5, -3.75).tolist() == expected.tolist()


@pytest.mark.origin("tutorials")
def test_whole_numbers_ask_for_none():
    x = rushlight.ones(2, requires_grad=True)
    assert not any(y.requires_grad for y in (x.int(), (x * 2).long(), x.bool(), x.to(rushlight.uint8), x.byte()))
    assert x.double().requires_grad
    assert x.int().numpy().tolist() == [1, 1]
