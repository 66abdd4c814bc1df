"""Results of a program: which tensors they are."""

from __future__ import annotations

import pytest

import rushlight


@pytest.mark.parametrize("backend", ["numpy", "loops"])
def test_a_returned_gradient_is_the_leafs_grad(backend):
    """The caller's next backward pass adds to the returned tensor, too."""

    def f(x, y):
        x.grad = None
        (x * y).sum().backward()
        return x.grad, y + 1

    compiled, x = rushlight.compile(f, backend=backend), rushlight.ones(3).requires_grad_()
    for _ in range(4):
        made, _ = compiled(x, rushlight.full((3,), 2.0))
        assert made is x.grad
        x.sum().backward()
        assert made.tolist() == [3.0, 3.0, 3.0]
    assert len(rushlight.compiler.programs(compiled)) == 1


def test_a_view_of_a_gradient_is_returned_by_eager_code():
    def f(x):
        x.grad = None
        (x * x).sum().backward()
        return x.grad[1:]

    compiled, x = rushlight.compile(f), rushlight.ones(3).requires_grad_()
    with pytest.warns(UserWarning, match="returns a view of a gradient"):
        compiled(x)
    made = compiled(x)
    x.sum().backward()
    assert made.tolist() == [3.0, 3.0]
