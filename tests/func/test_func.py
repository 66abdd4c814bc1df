"""torch.func: derivatives of functions compose to any order and in any mix, and are torch's."""

from __future__ import annotations

from importlib import import_module
from itertools import product

import numpy as np
import pytest

import rushlight
from rushlight import func
from tests.support.op_calls import agree


def functions_of(torch):
    return import_module(f"{torch.__name__}.func")


def one(torch):
    return torch.tensor([[0.3, -1.2, 0.7], [1.5, 0.1, -0.4]], dtype=torch.float64)


def other(torch):
    return torch.tensor([0.5, 2.0, -0.3], dtype=torch.float64)


def tree(torch):
    return {"w": one(torch), "b": (other(torch),)}


def loss(torch):
    return lambda p, x: ((p["w"] @ x).tanh() * p["b"][0].sum()).exp().sum()


def pulled(torch):
    value, pull = functions_of(torch).vjp(lambda x, y: {"a": x @ y, "b": [y.sin()]}, one(torch), other(torch))
    return [value, pull({"a": value["a"].cos(), "b": [other(torch)]})]


def pushed(torch):
    f = lambda p, x: (p["w"] @ x, {"c": p["b"][0] * x})
    return functions_of(torch).jvp(f, (tree(torch), other(torch)), (tree(torch), other(torch).cos()))


def linear(torch):
    value, push = functions_of(torch).linearize(lambda x, y: (x @ y).exp(), one(torch), other(torch))
    return [value, push(one(torch).cos(), other(torch)), push(one(torch), other(torch).sin())]


CALLS = {
    "grad": lambda t, f: f.grad(loss(t))(tree(t), other(t)),
    "grad by two": lambda t, f: f.grad(loss(t), (1, 0))(tree(t), other(t)),
    "grad with more": lambda t, f: f.grad(lambda x: (x.sin().sum(), {"x": x * 2}), has_aux=True)(one(t)),
    "grad and value": lambda t, f: f.grad_and_value(loss(t), -1)(tree(t), other(t)),
    "grad and value with more": lambda t, f: f.grad_and_value(lambda x: (x.sum(), x), has_aux=True)(one(t)),
    "grad by keyword": lambda t, f: f.grad(lambda x, k=1: (x**k).sum())(one(t), k=3),
    "vjp": lambda t, f: pulled(t),
    "vjp with more": lambda t, f: f.vjp(lambda x: (x * x, x.sum()), one(t), has_aux=True)[2],
    "jvp": lambda t, f: pushed(t),
    "jvp with more": lambda t, f: f.jvp(lambda x: (x * x, x.sum()), (one(t),), (one(t),), has_aux=True),
    "jvp of a constant": lambda t, f: f.jvp(lambda x: t.ones(2), (one(t),), (one(t),)),
    "linearize": lambda t, f: linear(t),
    "jacrev": lambda t, f: f.jacrev(lambda p, x: [p["w"] @ x, p["b"][0] * x], (0, 1))(tree(t), other(t)),
    "jacrev in parts": lambda t, f: f.jacrev(lambda x: x.sin(), chunk_size=4)(one(t)),
    "jacrev with more": lambda t, f: f.jacrev(lambda x: (x.sin(), x.sum()), has_aux=True)(other(t)),
    "jacrev of a number": lambda t, f: f.jacrev(lambda x: x.sum())(one(t)),
    "jacrev of one element": lambda t, f: f.jacrev(lambda p, x: {"y": (p["w"] @ x).sum().reshape(1, 1)}, (0, 1))(
        tree(t), other(t)
    ),
    "jacrev of a number that nothing moves": lambda t, f: f.jacrev(lambda x: t.ones((), dtype=x.dtype))(one(t)),
    "jacrev of a number, mapped": lambda t, f: f.vmap(f.jacrev(lambda x: x.sin().prod()))(one(t)),
    "jacfwd": lambda t, f: f.jacfwd(lambda p, x: [p["w"] @ x, p["b"][0] * x], (0, 1))(tree(t), other(t)),
    "jacfwd with more": lambda t, f: f.jacfwd(lambda x: (x.sin(), x.sum()), has_aux=True)(other(t)),
    "jacfwd by a number": lambda t, f: f.jacfwd(lambda x: x * other(t))(t.tensor(0.5, dtype=t.float64)),
    "hessian": lambda t, f: f.hessian(loss(t), (0, 1))(tree(t), other(t)),
    "hessian of several": lambda t, f: f.hessian(lambda x: x**3)(other(t)),
    "Hessian of powers": lambda t, f: f.hessian(lambda x: (x**2 * x[0] + (x**2.0 - 1) ** 2 + x**3).sum())(
        other(t) - 0.5
    ),
    "third derivatives": lambda t, f: f.jacfwd(f.hessian(lambda x: (x.sin() * x[0]).sum()))(other(t)),
    "products with zeros, mapped": lambda t, f: f.vmap(f.hessian(lambda x: x.prod() + x.cumprod(0).sum()))(
        one(t).sin() * (one(t) < 1)
    ),
    "a gradient mapped": lambda t, f: f.vmap(f.grad(lambda x, w: (x @ w).tanh()), (0, None))(one(t), other(t)),
    "by what is shared": lambda t, f: f.vmap(f.grad(lambda w, x: (x @ w).tanh()), (None, 0))(other(t), one(t)),
    "a Jacobian mapped": lambda t, f: f.vmap(f.jacrev(lambda x: x.cumsum(0) * x))(one(t)),
    "forward, mapped": lambda t, f: f.vmap(lambda x, v: f.jvp(lambda x: x.exp() * x, (x,), (v,)))(one(t), one(t)),
    "mapped, forward": lambda t, f: f.jvp(f.vmap(lambda x: x.exp().sum()), (one(t),), (one(t),)),
    "a Hessian mapped": lambda t, f: f.vmap(f.hessian(lambda x: x.exp().sum().tanh() * x[0]))(one(t)),
    "backward through a map": lambda t, f: f.grad(lambda x: f.vmap(t.dot, (0, None))(x, other(t)).sin().sum())(one(t)),
}


def leaves(value):
    if isinstance(value, dict):
        value = list(value.values())
    return [p for v in value for p in leaves(v)] if isinstance(value, (tuple, list)) else [value]


@pytest.mark.parametrize("name", CALLS)
def test_values_are_torchs(oracle, name):
    def ask(torch):
        return leaves(CALLS[name](torch, functions_of(torch)))

    found = ask(rushlight)
    assert not any(t.requires_grad for t in found)
    agree(found, oracle(ask))


def test_results_have_the_inputs_form():
    gradient, value = func.grad_and_value(loss(rushlight), (0,))(tree(rushlight), other(rushlight))
    assert list(gradient[0]) == ["w", "b"]
    assert isinstance(gradient[0]["b"], tuple)
    assert value.dim() == 0
    J = func.jacfwd(lambda p: {"y": p["w"].sum(0)})(tree(rushlight))
    assert J["y"]["w"].shape == (3, 2, 3)
    assert J["y"]["b"][0].shape == (3, 3)


# -- composed --------------------------------------------------------------------------------------


WAYS = {
    "jvp": lambda f: lambda x: func.jvp(f, (x,), (rushlight.ones_like(x),))[1],
    "grad": func.grad,
    "vjp": lambda f: lambda x: func.vjp(f, x)[1](rushlight.ones_like(x))[0],
    "linearize": lambda f: lambda x: func.linearize(f, x)[1](rushlight.ones_like(x)),
    "jacrev": func.jacrev,
    "jacfwd": func.jacfwd,
    "backward": lambda f: lambda x: by_backward(f, x),
}
FIFTH = 6.1137039319531523  # of tanh at 0.3, by mpmath


def by_backward(f, x):
    x = x * 1 if x.requires_grad else x.clone().requires_grad_()
    return rushlight.autograd.grad(f(x), x, create_graph=True)[0]


def test_the_fifth_derivative_is_mpmath_s():
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(40):
        assert abs(mpmath.diff(mpmath.tanh, mpmath.mpf("0.3"), 5) - FIFTH) < 1e-14


@pytest.mark.parametrize("mix", [*product(WAYS, repeat=2)], ids="-".join)
def test_derivatives_of_fifth_order_by_any_mix(mix):
    f = rushlight.tanh
    for way in (mix[0], mix[1], mix[1], mix[0], mix[1]):
        f = WAYS[way](f)
    assert abs(f(rushlight.tensor(0.3, dtype=rushlight.float64)).item() - FIFTH) < 1e-10


def test_variables_of_nested_derivatives_do_not_mix():
    x = rushlight.tensor(2.0)
    assert func.grad(lambda x: x * func.grad(lambda y: x + y)(rushlight.tensor(1.0)))(x) == 1
    assert func.grad(lambda x: func.jvp(lambda y: x * y, (x,), (x,))[1])(x) == 4
    assert func.jvp(lambda x: func.grad(lambda y: x * y * y)(x), (x,), (rushlight.tensor(1.0),))[1] == 8
    assert func.grad(lambda x: func.grad(lambda y: y**3)(x.detach()) * x)(x) == 12


def test_jacobians_agree_and_hessians_are_symmetric():
    rushlight.manual_seed(0)
    model = rushlight.nn.Sequential(
        rushlight.nn.Linear(3, 5),
        rushlight.nn.GELU(),
        rushlight.nn.LayerNorm(5),
        rushlight.nn.Linear(5, 2),
        rushlight.nn.LogSoftmax(0),
    ).double()
    x = other(rushlight)
    assert np.allclose(func.jacrev(model)(x)._array, func.jacfwd(model)(x)._array)
    H = func.hessian(lambda x: model(x)[0])(x)._array
    assert np.allclose(H, H.T)
    assert np.allclose(H, func.jacrev(func.jacrev(lambda x: model(x)[0]))(x)._array)
    assert np.allclose(H, func.jacrev(func.jacfwd(lambda x: model(x)[0]))(x)._array)


def test_a_module_as_a_function_of_its_parameters():
    rushlight.manual_seed(0)
    model = rushlight.nn.Sequential(rushlight.nn.Linear(3, 4), rushlight.nn.Tanh(), rushlight.nn.Linear(4, 1)).double()
    parameters = dict(model.named_parameters())
    x = one(rushlight)
    gradient = func.grad(lambda p: func.functional_call(model, p, (x,)).sum())(parameters)
    model(x).sum().backward()
    for name, p in parameters.items():
        assert np.allclose(gradient[name]._array, p.grad._array)
    stacked, _ = func.stack_module_state([model, model])
    y = func.vmap(lambda p: func.functional_call(model, p, (x,)))(stacked)
    assert np.allclose(y[1].detach()._array, model(x).detach()._array)


# -- what outlives a derivative --------------------------------------------------------------------


def test_results_stay_in_the_graphs_around():
    w = rushlight.tensor([1.0, 2.0], requires_grad=True)
    x = rushlight.tensor([3.0, 4.0])
    g = func.grad(lambda x: (x * x * w).sum())(x)
    g.sum().backward()
    assert w.grad.tolist() == [6, 8]
    assert func.grad(lambda x: (x + w).sum())(x).requires_grad is False
    assert func.grad(lambda w: (w * w).sum())(w).requires_grad
    with rushlight.no_grad():
        assert not func.grad(lambda w: (w * w).sum())(w).requires_grad
    value, pull = func.vjp(lambda x: x * w, x)
    assert value.requires_grad
    assert pull(x)[0].requires_grad
    with rushlight.no_grad():
        value, pull = func.vjp(lambda x: x * w, x)
        assert not pull(x)[0].requires_grad
    assert not value.requires_grad
    assert pull(x)[0].requires_grad  # the mode where it is called counts


def test_recording_turned_off_inside_is_off_and_outside_is_on():
    x = rushlight.tensor(3.0)
    with rushlight.no_grad():
        assert func.grad(lambda x: x * x)(x) == 6

    def partly(x):
        with rushlight.no_grad():
            c = x * x
        return c * x

    assert func.grad(partly)(x) == 9
    assert func.jvp(partly, (x,), (rushlight.tensor(1.0),))[1] == 27


def test_a_tensor_that_escapes_is_an_ordinary_one():
    kept = []

    def f(x):
        kept.append(x * 2)
        return (x**2).sum()

    x = rushlight.tensor([1.0, 2.0])
    func.grad(f)(x)
    func.jvp(f, (x,), (x,))
    assert [(t * 3).tolist() for t in kept] == [[6, 12], [6, 12]]
    assert func.grad(lambda y: (y * kept[0]).sum())(x).tolist() == [2, 4]
    assert not func.grad(lambda y: (y * kept[0]).sum())(x).requires_grad


def test_the_arguments_are_not_written():
    x = rushlight.tensor([1.0, 2.0])
    func.hessian(lambda x: (x.clone().mul_(x) * x).sum())(x)
    assert x.tolist() == [1, 2]
    assert x._version == 0
    assert not x.requires_grad


# -- what torch refuses ----------------------------------------------------------------------------


def numbers(torch):
    return torch.ones(2)


REFUSED = {
    "grad of several numbers": lambda t, f: f.grad(lambda x: x)(numbers(t)),
    "grad of one number in a list": lambda t, f: f.grad(lambda x: x.sum().reshape(1))(numbers(t)),
    "grad of no tensor": lambda t, f: f.grad(lambda x: 3.0)(numbers(t)),
    "grad of a complex number": lambda t, f: f.grad(lambda x: x.sum() * 1j)(numbers(t)),
    "grad without the rest": lambda t, f: f.grad(lambda x: x.sum(), has_aux=True)(numbers(t)),
    "grad of integers": lambda t, f: f.grad(lambda x: x.sum())(numbers(t).long()),
    "grad by a number": lambda t, f: f.grad(lambda x: x.sum())(3.0),
    "grad by an argument that is not there": lambda t, f: f.grad(lambda x: x.sum(), 1)(numbers(t)),
    "grad by an argument twice": lambda t, f: f.grad(lambda x, y: x.sum(), (0, 0))(numbers(t), numbers(t)),
    "grad by nothing": lambda t, f: f.grad(lambda x: x.sum(), ())(numbers(t)),
    "grad by a name": lambda t, f: f.grad(lambda x: x.sum(), "x")(numbers(t)),
    "a write to what is differentiated": lambda t, f: f.grad(lambda x: x.sin_().sum())(numbers(t)),
    "vjp of a number": lambda t, f: f.vjp(lambda x: 3, numbers(t)),
    "vjp of nothing": lambda t, f: f.vjp(lambda x: (), numbers(t)),
    "vjp without the rest": lambda t, f: f.vjp(lambda x: x, numbers(t), has_aux=True),
    "pulled in another form": lambda t, f: f.vjp(lambda x: (x, x), numbers(t))[1](numbers(t)),
    "pulled in another shape": lambda t, f: f.vjp(lambda x: x, numbers(t))[1](t.ones(3)),
    "jvp without a tuple": lambda t, f: f.jvp(lambda x: x, numbers(t), numbers(t)),
    "jvp of nothing": lambda t, f: f.jvp(lambda: 0, (), ()),
    "pushed in another form": lambda t, f: f.jvp(lambda x: x, (numbers(t),), (numbers(t), numbers(t))),
    "pushed in another shape": lambda t, f: f.jvp(lambda x: x, (numbers(t),), (t.ones(3),)),
    "pushed integers": lambda t, f: f.jvp(lambda x: x, (numbers(t).long(),), (numbers(t).long(),)),
    "jvp of a number": lambda t, f: f.jvp(lambda x: 3, (numbers(t),), (numbers(t),)),
    "jvp of a constant, strictly": lambda t, f: f.jvp(lambda x: t.ones(2), (numbers(t),), (numbers(t),), strict=True),
    "linear in another shape": lambda t, f: f.linearize(lambda x: x, numbers(t))[1](t.ones(3)),
    "linear in another form": lambda t, f: f.linearize(lambda x: x, numbers(t))[1](numbers(t), numbers(t)),
    "jacrev of a number": lambda t, f: f.jacrev(lambda x: 3)(numbers(t)),
    "jacrev by a number": lambda t, f: f.jacrev(lambda x: x)(3),
    "jacrev in no parts": lambda t, f: f.jacrev(lambda x: x, chunk_size=0)(numbers(t)),
    "jacfwd of a number": lambda t, f: f.jacfwd(lambda x: (x, 3))(numbers(t)),
    "no models": lambda t, f: f.stack_module_state([]),
    "two kinds of models": lambda t, f: f.stack_module_state([t.nn.Linear(2, 1), t.nn.Tanh()]),
    "a parameter twice": lambda t, f: f.functional_call(t.nn.Linear(2, 1), [{"bias": t.ones(1)}] * 2, numbers(t)),
    "no parameters": lambda t, f: f.functional_call(t.nn.Linear(2, 1), 3, numbers(t)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(oracle, name):
    def ask(torch):
        try:
            REFUSED[name](torch, functions_of(torch))
        except Exception as error:
            return [type(error).__name__, str(error).split("\n")[0]]
        return ["nothing", ""]

    kind, words = ask(rushlight)
    expected, text = oracle(ask)
    assert kind == expected
    assert words[:30] == text[:30]


def test_rows_one_by_one_need_no_rule_for_batches():
    x = rushlight.tensor([1.0, 2.0, 3.0])
    plain, single = (func.jacrev(lambda x: (x**2 * x[0], x.sum()), chunk_size=size)(x) for size in (None, 1))
    for a, b in zip(plain, single, strict=True):
        agree(a, b._array)

    class Counted(rushlight.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return g * len(g.nonzero())  # of a shape that depends on the numbers: no batch has it

    assert func.jacrev(Counted.apply, chunk_size=1)(x).tolist() == np.eye(3).tolist()
    with pytest.raises(RuntimeError, match="dynamic shape"):
        func.jacrev(Counted.apply, chunk_size=2)(x)


@pytest.mark.parametrize("name", ["jacrev", "jacfwd"])
def test_jacobians_are_of_real_numbers(name):
    jacobian = getattr(func, name)
    with pytest.raises(RuntimeError, match=f"{name}: Expected all inputs to be real"):
        jacobian(rushlight.conj)(rushlight.ones(1, dtype=rushlight.complex64))
    with pytest.raises(RuntimeError, match=f"{name}: Expected all outputs to be real"):
        jacobian(lambda x: x * 1j)(rushlight.ones(1))


@pytest.mark.parametrize("numbers", [((1.0,), (rushlight.ones(1),)), ((rushlight.ones(1),), (1.0,))])
def test_jvp_is_of_tensors(numbers):
    with pytest.raises(RuntimeError, match="to only contain Tensors"):
        func.jvp(rushlight.sin, *numbers)


@pytest.mark.parametrize("output", [None, ()])
def test_a_function_without_output(output):
    x = rushlight.ones(2)
    for call in (lambda f: func.vjp(f, x), lambda f: func.jvp(f, (x,), (x,)), lambda f: func.jacrev(f)(x)):
        with pytest.raises(RuntimeError, match="Expected f to be a function that has non-empty output"):
            call(lambda x: output)
