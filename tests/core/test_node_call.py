"""A node called with the gradient of its output returns the gradients of its inputs, as in torch."""

import pytest

import rushlight


def test_a_product_sends_the_other_factor():
    x, y = (rushlight.tensor(v, requires_grad=True) for v in (3.0, 4.0))
    to_x, to_y = (x * y).grad_fn(rushlight.tensor(2.0))
    assert (to_x, to_y) == (8, 6)
    assert to_x.requires_grad  # recorded, as in torch


def test_one_input_gives_no_tuple_and_a_constant_gives_none():
    x = rushlight.tensor([1.0, 2.0], requires_grad=True)
    assert x.exp().sum().grad_fn(rushlight.tensor(2.0)).tolist() == [2, 2]
    to_x, to_constant = (x * 2).grad_fn(rushlight.ones(2))
    assert to_x.tolist() == [2, 2]
    assert to_constant is None


def test_broadcasting_is_not_undone():
    x, b = rushlight.ones(2, requires_grad=True), rushlight.ones(1, requires_grad=True)
    assert [g.shape for g in (x + b).grad_fn(rushlight.ones(2))] == [(2,), (2,)]


def test_several_outputs_take_a_gradient_each():
    x = rushlight.tensor([1.0, 2.0], requires_grad=True)
    node = x.unbind()[0].grad_fn
    assert node(rushlight.tensor(1.0), rushlight.tensor(5.0)).tolist() == [1, 5]
    assert node(rushlight.tensor(1.0), None).tolist() == [1, 0]
    assert x.max(0).values.grad_fn(rushlight.tensor(3.0)).tolist() == [0, 3]


def test_a_leaf_accumulates():
    x = rushlight.tensor([1.0, 2.0], requires_grad=True)
    node = (x * 2).grad_fn.next_functions[0][0]
    assert node(rushlight.ones(2)) == ()
    node(rushlight.ones(2))
    assert x.grad.tolist() == [2, 2]


def test_the_graph_is_kept():
    x = rushlight.tensor(3.0, requires_grad=True)
    y = x * x
    y.grad_fn(rushlight.tensor(1.0))
    y.backward()
    assert x.grad == 6
    with pytest.raises(RuntimeError, match="second time"):
        y.grad_fn(rushlight.tensor(1.0))


def test_a_function_of_the_user():
    class Twice(rushlight.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, g):
            return 2 * g

    x = rushlight.tensor(3.0, requires_grad=True)
    assert Twice.apply(x).grad_fn(rushlight.tensor(5.0)) == 10
