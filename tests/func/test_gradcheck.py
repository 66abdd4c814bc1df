"""gradcheck of tangents."""

from __future__ import annotations

import pytest

import rushlight


def function_with(t, slope):
    """exp, whose derivative is known forward only, and is `slope` of it."""

    class Forward(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.out = x.exp()
            return ctx.out

        @staticmethod
        def jvp(ctx, tangent):
            return slope * tangent * ctx.out

    return Forward.apply


@pytest.mark.origin("scripts")
@pytest.mark.parametrize("slope", [1.0, 1.1])
def test_gradcheck_looks_at_tangents_when_told(oracle, slope):
    """Without backward, where there is none; `check_forward_ad` was passed over, so that nothing was checked."""

    def checked(t):
        x = t.tensor([0.3, -0.4], dtype=t.float64, requires_grad=True)
        f = function_with(t, slope)
        ways = {"check_forward_ad": True, "check_backward_ad": False, "check_undefined_grad": False}
        try:
            return t.autograd.gradcheck(f, (x,), **ways, check_batched_grad=False)
        except RuntimeError as error:
            return str(error).split("\n")[0]

    assert checked(rushlight) == oracle(checked)
    assert (checked(rushlight) is True) == (slope == 1.0)


@pytest.mark.origin("scripts")
def test_gradcheck_of_tangents_of_complex_numbers_and_several_inputs():
    x = rushlight.tensor([1 + 2j, 3 - 1j], dtype=rushlight.complex128, requires_grad=True)
    y = rushlight.tensor([[2.0], [0.5]], dtype=rushlight.float64, requires_grad=True)
    for f in (lambda x, y: (x * y).abs(), lambda x, y: x.conj() * y.exp(), lambda x, y: (x.real @ y, y.sum())):
        assert rushlight.autograd.gradcheck(f, (x, y), check_forward_ad=True)


def test_each_input_element_is_varied_once():
    """Two calls for each input element, however many outputs: GPyTorch checks 24 inputs of 1,008 outputs."""
    calls = []

    def f(x):
        calls.append(1)
        return x[:, None] * rushlight.arange(5.0, dtype=rushlight.float64)

    assert rushlight.autograd.gradcheck(f, (rushlight.ones(3, dtype=rushlight.float64).requires_grad_(),))
    assert len(calls) <= 2 * 3 + 2
