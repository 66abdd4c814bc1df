"""Reductions: float16, no dimensions, nan, gradients."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from tests.support.programs import Programs, leaf


@pytest.mark.origin("fuzzing")
def test_mean_of_halves_does_not_overflow():
    for dtype in (rushlight.float16, rushlight.bfloat16):
        x = rushlight.full((300, 400), 10.0, dtype=dtype)
        assert (x.mean().item(), x.mean().dtype) == (10.0, dtype)
        assert x.mean(0).tolist() == [10.0] * 400


@pytest.mark.origin("fuzzing")
@pytest.mark.parametrize("dtype", [rushlight.float16, rushlight.bfloat16])
def test_sums_of_halves_are_made_in_single_precision(dtype):
    n = 100_000
    x = rushlight.zeros(n, dtype=dtype, requires_grad=True)
    assert abs(rushlight.softmax(x, 0)[0].item() * n - 1) < 0.05
    assert abs(rushlight.log_softmax(x, 0)[0].item() + np.log(n)) < 0.05
    assert abs(rushlight.logsumexp(x, 0).item() - np.log(n)) < 0.05
    assert abs(rushlight.cumsum(rushlight.full((6000,), 0.25, dtype=dtype), 0)[-1].item() - 1500) < 8
    (x.mean() * 1000).backward()
    assert abs(x.grad[0].item() * 100 - 1) < 0.01
    wide = (rushlight.arange(7000) % 7 * 500).to(dtype).requires_grad_()
    assert abs(wide.std().item() - 1000) < 8
    wide.std().backward()
    assert wide.grad[0] < 0 < wide.grad[6]
    assert abs(rushlight.nn.functional.rms_norm(wide, (7000,)).square().mean().item() - 1) < 0.05
    small = rushlight.tensor([1e-3, 2e-3, -1e-3], dtype=dtype)  # beside float32's eps
    assert abs(rushlight.nn.functional.rms_norm(small, (3,))[0].item() - 0.687) < 0.005


@pytest.mark.origin("fuzzing")
def test_the_gradient_of_the_product_of_a_number_does_not_depend_on_the_product():
    x = rushlight.tensor(3.0, requires_grad=True)
    y = x.prod()
    y.register_hook(lambda g: -g)
    (g,) = rushlight.autograd.grad(y, x, create_graph=True)
    (g + x).backward()
    assert g.item() == -1
    assert x.grad.item() == 1


program = Programs()


@program.found_in("torch tests")
def all_and_any_over_no_dimensions(torch):
    x = torch.tensor([[0.0, 2.0], [3.0, 0.0]])
    return [
        f(x, dim=dim, keepdim=keep) for f in (torch.all, torch.any) for dim in ((), []) for keep in (False, True)
    ] + [torch.sum(x, dim=()), torch.any(x.to(torch.uint8), dim=())]


@pytest.mark.origin("scripts")
def test_softmax_of_whole_numbers_as_a_dtype():
    assert rushlight.arange(2).softmax(0, dtype=rushlight.float64).sum() == 1
    assert rushlight.zeros(0).softmax(0).shape == (0,)


@program.found_in("torch tests")
def the_largest_of_numbers_one_of_which_is_nan(torch):
    def gradient(name):
        x = leaf(torch, 1.0, float("nan"), 2.0, float("nan"))
        getattr(x, name)().backward()
        return x.grad

    return [gradient("max"), gradient("min"), gradient("median")]


test_program = program.test()


@pytest.mark.parametrize("name", ["max", "min", "sort", "argsort", "median", "cummax", "topk"])
def test_a_number_has_dimensions_0_and_minus_1(name):
    x, k = rushlight.tensor(1.0), (1,) if name == "topk" else ()
    for dim in (0, -1):
        getattr(x, name)(*k, dim=dim)
    for dim in (1, -2, 5):
        with pytest.raises(IndexError, match="Dimension out of range"):
            getattr(x, name)(*k, dim=dim)


def test_correlations_of_half_precision_are_rounded_once():
    x = rushlight.tensor([[1.0, 2.0, 4.0], [3.0, 2.0, 1.0]])
    half = x.half().requires_grad_()
    x.requires_grad_()
    for one in (half, x):
        (one.corrcoef()[0, 1] * 8).backward()
    assert (half.grad.float() - x.grad).abs().max() <= 2**-10
