"""Jacobians, Hessians and their products are torch's, for tensors and tuples of them."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from rushlight.func import jacobian_api
from tests.support.programs import Programs


def one(torch):
    return torch.tensor([[0.3, -1.2, 0.7], [1.5, 0.1, -0.4]], dtype=torch.float64)


def two(torch):
    return one(torch), torch.tensor([0.5, 2.0, -0.3], dtype=torch.float64)


FUNCTIONS = {
    "one to one": (lambda x: x.sin() * x, one),
    "one to a number": (lambda x: (x**3).sum(), one),
    "two to a number": (lambda x, y: (x @ y).exp().sum() * y[0], two),
    "two to one": (lambda x, y: x * y, two),
    "two to two": (lambda x, y: ((x * y).sum(1), y.exp()), two),
    "unused": (lambda x, y: y**2, two),
    "a constant": (lambda x: x.detach() * 2, one),
}


def parts(value):
    return [p for v in value for p in parts(v)] if isinstance(value, (tuple, list)) else [value]


def like(torch, value, k=0):
    """A vector for it: other numbers of the same shape."""
    if isinstance(value, tuple):
        return tuple(like(torch, v, i) for i, v in enumerate(value))
    return torch.cos(torch.arange(value.numel(), dtype=value.dtype) + k).reshape(value.shape)


def ask(torch, name, call):
    f, make = FUNCTIONS[name]
    x = make(torch)
    xs = x if isinstance(x, tuple) else (x,)
    return parts(call(torch, torch.autograd.functional, f, x, f(*xs)))


CALLS = {
    "jacobian": lambda t, af, f, x, y: af.jacobian(f, x),
    "vjp": lambda t, af, f, x, y: af.vjp(f, x, like(t, y)),
    "jvp": lambda t, af, f, x, y: af.jvp(f, x, like(t, x)),
    "jacobian at once": lambda t, af, f, x, y: af.jacobian(f, x, vectorize=True),
    "jacobian forward": lambda t, af, f, x, y: af.jacobian(f, x, vectorize=True, strategy="forward-mode"),
    "hessian at once": lambda t, af, f, x, y: af.hessian(f, x, vectorize=True),
    "hessian forward": lambda t, af, f, x, y: af.hessian(f, x, vectorize=True, outer_jacobian_strategy="forward-mode"),
    "hessian": lambda t, af, f, x, y: af.hessian(f, x),
    "vhp": lambda t, af, f, x, y: af.vhp(f, x, like(t, x)),
    "hvp": lambda t, af, f, x, y: af.hvp(f, x, like(t, x)),
}
CASES = [(call, name) for call in CALLS for name in FUNCTIONS if call[:2] not in ("he", "vh", "hv") or "number" in name]


@pytest.mark.parametrize(("call", "name"), CASES)
def test_values_are_torchs(oracle, call, name):
    expected = oracle(lambda torch: ask(torch, name, CALLS[call]))
    found = ask(rushlight, name, CALLS[call])
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        assert not a.requires_grad
        np.testing.assert_allclose(a.numpy(), b, rtol=1e-10, atol=1e-12)


def test_create_graph_differentiates_again():
    x = rushlight.tensor([0.5, 1.5], dtype=rushlight.float64, requires_grad=True)
    for f in (
        lambda x: jacobian_api.jacobian(lambda x: x**3, x, create_graph=True).sum(),
        lambda x: jacobian_api.jvp(lambda x: x**3, x, rushlight.ones_like(x), create_graph=True)[1].sum(),
        lambda x: jacobian_api.vjp(lambda x: x**3, x, rushlight.ones_like(x), create_graph=True)[1].sum(),
    ):
        np.testing.assert_allclose(rushlight.autograd.grad(f(x), x)[0], 6 * x.detach(), rtol=1e-12)
    assert rushlight.autograd.gradcheck(lambda x: jacobian_api.hessian(lambda x: (x**4).sum(), x, create_graph=True), x)


def test_errors():
    x = rushlight.ones(2)
    with pytest.raises(RuntimeError, match="does not require gradients|independent of input"):
        jacobian_api.jacobian(lambda x: rushlight.ones(2), x, strict=True)
    with pytest.raises(RuntimeError, match="single element"):
        jacobian_api.hessian(lambda x: x, x)
    with pytest.raises(RuntimeError, match="v has shapes"):
        jacobian_api.vjp(lambda x: x, x, rushlight.ones(3))
    with pytest.raises(RuntimeError, match="can only be None"):
        jacobian_api.jvp(lambda x: x, x)
    with pytest.raises(TypeError, match="must be either a Tensor or a tuple of Tensors"):
        jacobian_api.vjp(lambda x: 3, x)


MIXED = {
    "another strategy": {"strategy": "sideways"},
    "forward, graph": {"strategy": "forward-mode", "create_graph": True},
    "forward, strict": {"strategy": "forward-mode", "strict": True, "vectorize": True},
    "forward, row by row": {"strategy": "forward-mode"},
    "strict, at once": {"strict": True, "vectorize": True},
}


@pytest.mark.parametrize("name", MIXED)
def test_what_does_not_go_together(oracle, name):
    def ask(torch):
        try:
            torch.autograd.functional.jacobian(lambda x: x.sin(), torch.ones(2), **MIXED[name])
        except Exception as error:
            return [type(error).__name__, str(error)[:60]]

    assert ask(rushlight) == oracle(ask)


def test_create_graph_records_inside_no_grad():
    x, w = rushlight.tensor([1.0, 2.0]), rushlight.tensor([3.0, 4.0], requires_grad=True)
    with rushlight.no_grad():
        found = [
            jacobian_api.jacobian(lambda x: x**3, x, create_graph=True),
            jacobian_api.hessian(lambda x: (x**3).sum(), x, create_graph=True),
            jacobian_api.jacobian(lambda x: x**3, w, create_graph=True),
        ]
        plain = jacobian_api.jacobian(lambda x: x**3, w)
    assert [t.requires_grad for t in (*found, plain)] == [True, True, True, False]
    assert rushlight.autograd.grad(found[2].sum(), w)[0].tolist() == [18.0, 24.0]


program = Programs()


@program.found_in("torch tests")
def strict_says_which_output_or_input_it_is(torch):
    def said(name, function, *args):
        try:
            return getattr(torch.autograd.functional, name)(function, *args, strict=True)
        except RuntimeError as error:
            return str(error).partition(". ")[0]

    one, two = torch.ones(2), (torch.ones(2), torch.ones(2))
    return [
        said("jacobian", lambda x: x.detach(), one),
        said("jacobian", lambda x, y: x * 2, two),
        said("jacobian", lambda x, y: y * 2, two),
        said("hessian", lambda x: x.sum().detach(), one),
        said("hessian", lambda x: x.sum(), one),
        said("vjp", lambda x: (x, x.detach()), one, two),
        said("jvp", lambda x: x.detach(), one, one),
        said("hvp", lambda x: x.detach().sum(), one, one),
        said("vhp", lambda x: x.sum(), one, one),
        said("vhp", lambda x: (x**2).sum(), one, one)[1],
    ]


test_program = program.test()
