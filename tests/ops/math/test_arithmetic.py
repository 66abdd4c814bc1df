"""Sums, products and quotients: small integers beside large numbers, no elements, alpha, rounding."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import rushlight
from tests.support.programs import Programs, leaf, outcome


@pytest.mark.origin("fuzzing")
@pytest.mark.parametrize(
    "divide",
    [lambda x, n: x / n, lambda x, n: rushlight.div(x, n), lambda x, n: x.true_divide(n), lambda x, n: 1 / (n / x)],
)
@pytest.mark.parametrize(
    ("dtype", "number"),
    [(rushlight.uint8, -1), (rushlight.uint8, 300), (rushlight.int8, 300), (rushlight.int16, 100_000)],
)
def test_integers_are_divided_by_numbers_that_they_do_not_hold(divide, dtype, number):
    x = rushlight.tensor([9, 100], dtype=dtype)
    np.testing.assert_allclose(divide(x, number).numpy(), np.array([9, 100]) / number, rtol=1e-6)


@pytest.mark.origin("fuzzing")
def test_floats_of_integers_beside_numbers_that_they_do_not_hold():
    x = rushlight.tensor([9, 100], dtype=rushlight.uint8)
    np.testing.assert_allclose(rushlight.xlogy(x, 300).numpy(), np.array([9, 100]) * np.log(300), rtol=1e-6)
    assert rushlight.copysign(x, -1).tolist() == [-9.0, -100.0]


@pytest.mark.origin("fuzzing")
def test_alpha_times_small_integers_in_the_common_dtype():
    small = rushlight.tensor([30_000], dtype=rushlight.int16)
    assert rushlight.add(rushlight.tensor([1.0]), small, alpha=3).tolist() == [90_001.0]
    assert rushlight.sub(rushlight.tensor([1]), small, alpha=3).tolist() == [-89_999]
    assert rushlight.add(rushlight.tensor([1.0]), rushlight.tensor([3]), alpha=0.5).tolist() == [2.5]
    assert rushlight.add(rushlight.tensor([True]), rushlight.tensor([True]), alpha=True).dtype is rushlight.bool
    with pytest.raises(RuntimeError, match="alpha must not be a floating point number"):
        rushlight.add(rushlight.tensor([1]), rushlight.tensor([3]), alpha=0.5)


@pytest.mark.origin("fuzzing")
def test_divisions_of_nothing():
    x, none = rushlight.ones(4096, 1), rushlight.ones(0)
    for function in (rushlight.fmod, rushlight.remainder, rushlight.floor_divide):
        assert function(x, none).shape == (4096, 0)
    empty = rushlight.zeros(0, 3, dtype=rushlight.int8)
    assert (empty % 0).shape == rushlight.div(empty, 0, rounding_mode="trunc").shape == (0, 3)


@pytest.mark.origin("fuzzing")
def test_truncated_quotients_are_flat():
    x, y = (
        rushlight.tensor([1.0, np.inf, 2.0], requires_grad=True),
        rushlight.tensor([2.0, 0.5, 0.0], requires_grad=True),
    )
    rushlight.div(x, y, rounding_mode="trunc").sum().backward()
    assert x.grad.tolist() == y.grad.tolist() == [0.0] * 3


@pytest.mark.origin("fuzzing")
def test_addcmul_of_bytes_wraps_around():
    ones = rushlight.ones(2, dtype=rushlight.uint8)
    assert rushlight.addcmul(ones * 3, ones, ones, value=-1).tolist() == [2, 2]


program = Programs()


@program.found_in("torch tests")
def factors_are_numbers_of_the_results_kind(torch):
    x, n = torch.ones(2), torch.ones(2, dtype=torch.int64)
    return [
        outcome(f, t, t, alpha=alpha) for f in (torch.add, torch.sub) for t in (x, n) for alpha in (True, 1j, 1.5)
    ] + [torch.add(x > 0, x > 0, alpha=True)]


@pytest.mark.origin("programs")
def test_the_power_of_two_is_a_square():
    x = rushlight.tensor([3.0, -1.0], requires_grad=True)
    for y in (x.pow(2), x**2, x.pow(2.0), x.pow(exponent=2), rushlight.pow(x, 2)):
        x.grad = None
        y.sum().backward()
        assert (y.tolist(), x.grad.tolist(), y.grad_fn.name()) == ([9.0, 1.0], [6.0, -2.0], "PowBackward0")
    assert x.detach().pow(2, out=rushlight.empty(2)).tolist() == [9.0, 1.0]
    assert rushlight.tensor([2, 3]).pow(2).tolist() == [4, 9]


@program.found_in("torch tests")
def factors_stand_where_older_programs_have_them(torch):
    x, v, m = (
        leaf(torch, 1.0, 2.0),
        torch.tensor([3.0, 5.0]).double(),
        torch.tensor([[1.0, 2.0], [3.0, 4.0]]).double(),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = [
            x.add(0.5, v),
            torch.add(x, 2, v),
            torch.sub(x, 0.5, v),
            torch.addcmul(x, 0.5, v, v),
            torch.addcdiv(x, 2, v, v * v),
            torch.addmv(2, x, 3, m, v),
            torch.addmm(2, m, 3, m, m),
            torch.addmm(2, m, m, m),
            torch.addr(2, m, 3, v, v),
            torch.addbmm(2, m, 3, m[None], m[None]),
            torch.baddbmm(2, m[None], 3, m[None], m[None]),
            m.addmm(2, 3, m, m),
        ]
        sum(made[i].sum() for i in range(6)).backward()
        y = v.clone()
        written = [
            y.mul_(0.9).add_(0.1, v).clone(),
            y.sub_(2, v).clone(),
            y.addcmul_(0.1, v, v).clone(),
            y.addcdiv_(-1, v, v).clone(),
            m.clone().addmm_(2, 3, m, m),
            y.addmv_(2, m, v),
        ]
        refused = [
            outcome(torch.add, x, 1, 2),
            outcome(torch.add, x, v, v),
            outcome(torch.add, x, 1, v, 2),
            outcome(torch.addcmul, x, v),
            outcome(torch.addmm, m, m, m, m),
            outcome(torch.addcmul, x, 1, 2, v, v),
        ]
    return [*made, x.grad, *written, *refused]


@program.found_in("torch tests")
def whole_quotients_toward_zero(torch):
    """Also of the least number, which has no absolute value."""

    def quotients(numbers, by, dtype=torch.int64):
        return torch.div(torch.tensor(numbers, dtype=dtype), by, rounding_mode="trunc")

    return [
        quotients([-128, 127, -7], 3, torch.int8),
        quotients([-128, 5], -1, torch.int8),
        quotients([-(2**63), 7], 2),
        quotients([200, 7], torch.tensor(3, dtype=torch.uint8), torch.uint8),
        quotients([], 0),
        quotients([5, -5], True),
        quotients([5, -5], torch.tensor([[2], [-3]], dtype=torch.int32)),
        outcome(quotients, [5], 0),
        outcome(quotients, [True], torch.tensor([True]), torch.bool),
    ]


test_program = program.test()
