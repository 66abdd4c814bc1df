"""x[key] of all samples at once, with the values and the layout in memory of one sample's result."""

from __future__ import annotations

import pytest

import rushlight

KEYS = {
    "x.t()[:, i]": lambda x, i: x.t()[:, i],
    "x.t()[i]": lambda x, i: x.t()[i],
    "x[:, i]": lambda x, i: x[:, i],
    "x[i, i]": lambda x, i: x[i, i],
    "x[0, i]": lambda x, i: x[0, i],
    "x[..., i]": lambda x, i: x[..., i],
    "x[None, i]": lambda x, i: x[None, i],
    "x.t()[::2, i]": lambda x, i: x.t()[::2, i],
    "x[i, None, i]": lambda x, i: x[i, None, i],
    "a column": lambda x, i: x.t()[i[:, None], i],
}


def strides(x):
    """Those of the dimensions that have several elements."""
    return [step for step, n in zip(x.stride(), x.shape) if n > 1]


@pytest.mark.parametrize("name", KEYS)
def test_results_lie_in_memory_as_those_of_one_sample(name):
    x, i = rushlight.arange(24.0).reshape(2, 3, 4), rushlight.tensor([1, 0])
    seen = []

    def f(one):
        made = KEYS[name](one, i)
        seen.append(strides(made))
        return made

    made = rushlight.vmap(f)(x)
    alone = [KEYS[name](one, i) for one in x]
    assert made.tolist() == [one.tolist() for one in alone]
    assert seen == [strides(alone[0])]


def test_a_write_is_seen_through_a_view_of_the_result():
    def f(x):
        y = x.t()[:, rushlight.tensor([1, 0])]
        z = y.flatten()
        y.fill_(9)
        return z

    assert rushlight.vmap(f)(rushlight.arange(8.0).view(2, 2, 2)).tolist() == [[9.0] * 4] * 2


def test_gradients_of_shared_positions():
    def f(x):
        return (x.t()[:, rushlight.tensor([1, 1])] ** 2).sum()

    x = rushlight.arange(8.0).view(2, 2, 2)
    made = rushlight.vmap(rushlight.func.grad(f))(x)
    assert made.tolist() == [rushlight.func.grad(f)(one).tolist() for one in x]
