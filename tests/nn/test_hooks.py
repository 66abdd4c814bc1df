"""Full backward hooks of modules: what they see, what they may return."""

from __future__ import annotations

from collections import namedtuple

import pytest

import rushlight
from rushlight import nn


class Calls(nn.Module):
    """A module of a function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def hooked(function, answer=None):
    """A module, and what its backward hook saw."""
    module, seen = Calls(function), []
    module.register_full_backward_hook(lambda m, *grads: (seen.append(grads), answer)[1])
    return module, seen


def leaf(*shape):
    return rushlight.ones(*shape or (2,), requires_grad=True)


@pytest.mark.origin("suites")
def test_results_that_nobody_differentiates_are_none_to_hooks():
    module, seen = hooked(lambda a, b: (a * 2, "no tensor", b * 3))
    a, b = leaf(), leaf()
    module(a, b)[0].sum().backward()
    [(grad_input, grad_output)] = seen
    assert [g.tolist() for g in grad_input] == [[2.0, 2.0], [0.0, 0.0]]
    assert grad_output[0].tolist() == [1.0, 1.0]
    assert grad_output[1:] == (None, None)
    assert b.grad.tolist() == [0.0, 0.0]


Pair = namedtuple("Pair", "first second")


@pytest.mark.origin("suites")
def test_named_tuples_pass_hooks():
    module, seen = hooked(lambda a: Pair(a * 2, a * 3))
    made = module(leaf())
    made.second.sum().backward()
    assert type(made) is Pair
    assert seen[0][0][0].tolist() == [3.0, 3.0]


@pytest.mark.origin("suites")
def test_what_has_no_gradient_has_none_inside_a_hooked_module():
    module, _ = hooked(lambda a, b: (a * 2, b * 3, b.requires_grad))
    made = module(leaf(), rushlight.ones(2))
    assert made[0].requires_grad
    assert not made[1].requires_grad
    assert made[2] is False


@pytest.mark.origin("suites")
def test_hooks_are_not_called_for_other_results_than_tensors():
    module, seen = hooked(lambda a: {"x": a * 2})
    x = leaf()
    with pytest.warns(UserWarning, match="should be a Tensor or a tuple of Tensors"):
        made = module(x)
    made["x"].sum().backward()
    assert not seen
    assert x.grad.tolist() == [2.0, 2.0]


@pytest.mark.origin("suites")
def test_hooks_that_return_another_number_of_gradients():
    module, _ = hooked(lambda a, b: a * b, answer=(leaf(),))
    with pytest.raises(RuntimeError, match="invalid number of grad_input, got 1, but expected 2"):
        module(leaf(), leaf()).sum().backward()
    module = Calls(lambda a: a * 2)
    module.register_full_backward_pre_hook(lambda m, grads: (*grads, *grads))
    with pytest.raises(RuntimeError, match="invalid number of grad_output, got 2, but expected 1"):
        module(leaf()).sum().backward()
    module, _ = hooked(lambda a: a * leaf(), answer=(leaf(),))
    with pytest.raises(RuntimeError, match="where no input requires gradient"):
        module(rushlight.ones(2)).sum().backward()


@pytest.mark.origin("suites")
def test_an_input_that_is_handed_back_may_have_no_gradient():
    class Keep(rushlight.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.mark_non_differentiable(b)
            return a, b

        @staticmethod
        def backward(ctx, a, b):
            return a, None

    a, b = Keep.apply(leaf(), leaf())
    assert a.requires_grad
    assert not b.requires_grad
