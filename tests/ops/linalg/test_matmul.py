"""Matrix products: what is refused, no elements, integers, beta = 0."""

from __future__ import annotations

import math

import pytest

import rushlight
from tests.support.programs import Programs, outcome


@pytest.mark.origin("edge cases")
@pytest.mark.parametrize("name", ["outer", "inner", "kron", "ger", "mm", "bmm", "matmul"])
def test_products_of_what_is_no_tensor(name):
    x = rushlight.ones(*[2] * {"mm": 2, "bmm": 3}.get(name, 1))
    for args in ((x, 2), (1.5, x), (x, None)):
        with pytest.raises(
            TypeError, match=f"{'outer' if name == 'ger' else name}\\(\\): argument .*must be Tensor, not"
        ):
            getattr(rushlight, name)(*args)


@pytest.mark.origin("fuzzing")
def test_products_of_integers_along_a_dimension_of_one():
    x = rushlight.tensor([[3], [4]], dtype=rushlight.int16)
    made = rushlight.inner(x, x)
    assert (made.dtype, made.tolist()) == (rushlight.int16, [[9, 12], [12, 16]])


@pytest.mark.origin("fuzzing")
@pytest.mark.parametrize("name", ["addmm", "addmv", "baddbmm"])
def test_what_is_added_nought_times_has_a_gradient_of_noughts(name):
    shapes = {
        "addmm": ((2, 4), (2, 3), (3, 4)),
        "addmv": ((2,), (2, 3), (3,)),
        "baddbmm": ((5, 2, 4), (5, 2, 3), (5, 3, 4)),
    }
    x, a, b = [rushlight.ones(shape) for shape in shapes[name]]
    x = (x * math.nan).requires_grad_()
    made = getattr(rushlight, name)(x, a, b, beta=0)
    assert (made == 3).all()
    made.sum().backward()
    assert x.grad.shape == x.shape
    assert not x.grad.any()
    assert not getattr(rushlight, name)(x.detach(), a, b, beta=0).requires_grad


program = Programs()


@program.found_in("torch tests")
def products_of_truth_values_are_refused(torch):
    a, v = torch.eye(3) > 0, torch.tensor([True, False, True])
    return [
        outcome(f, x, y)
        for f, x, y in (
            (torch.mm, a, a),
            (torch.matmul, a, v),
            (torch.mv, a, v),
            (torch.dot, v, v),
            (torch.bmm, a[None], a[None]),
        )
    ] + [outcome(torch.einsum, "ij,jk->ik", a, a), outcome(torch.nn.functional.linear, a, a), torch.outer(v, v)]


@pytest.mark.origin("torch tests")
def test_shapes_of_products_are_told_where_they_are_empty():
    with pytest.raises(RuntimeError, match="0x2 and 1x0"):
        rushlight.mm(rushlight.ones(0, 2), rushlight.ones(1, 0))


@program.found_in("torch tests")
def the_operands_of_a_sum_with_a_product_have_their_dimensions(torch):
    shapes = {
        "addmm": ([(2,), (2, 2)], [(2, 2), (2,)], [(1, 2, 2), (2, 2)], [(2, 3), (3, 2)]),
        "addmv": ([(2,), (2,)], [(2, 2), (2, 2)], [(2, 2), (2,)]),
        "addr": ([(2, 2), (2,)], [(2,), (2,)]),
        "baddbmm": ([(2, 2), (2, 2, 2)], [(2, 2, 2), (2, 2, 2)]),
        "addbmm": ([(2, 2, 2), (2, 2, 2)],),
    }
    return [
        outcome(getattr(torch, name), torch.ones(()), torch.ones(a), torch.ones(b))
        for name in shapes
        for a, b in shapes[name]
    ]


@program.found_in("torch tests")
def what_is_added_to_a_product_expands_to_it(torch):
    def added(name, shape, *operands, **factors):
        x = torch.ones(shape)
        apart = outcome(getattr(torch, name), x, *operands, **factors)
        return [apart, outcome(getattr(x, name + "_"), *operands, **factors)]

    square, row, vector, stack = torch.ones(2, 2), torch.ones(1, 2), torch.ones(2), torch.ones(3, 2, 2)
    return (
        [
            added("addmm", shape, a, square, **factors)
            for factors in ({}, {"beta": 2, "alpha": 3})
            for shape in ((), (2,), (2, 2), (1, 2), (4, 2), (4, 2, 2))
            for a in (square, row)
        ]
        + [added("addmv", shape, square, vector) for shape in ((), (2,), (1,), (2, 2))]
        + [added("addr", shape, vector, vector) for shape in ((), (2,), (2, 2), (2, 2, 2))]
        + [added("baddbmm", shape, stack, stack) for shape in ((), (3, 2, 2), (1, 1, 2), (2, 3, 2, 2))]
        + [added("addbmm", shape, stack, stack) for shape in ((2, 2), (3, 2, 2))]
    )


test_program = program.test()
