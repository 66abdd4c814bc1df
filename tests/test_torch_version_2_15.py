"""Names and arguments that torch 2.13 lacks and torch 2.15 has (docs/torch-versions.md)."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight

BESSEL = "bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_k0 modified_bessel_k1".split()


def first_and_second(t, name):
    """The derivatives of a function of torch.special at numbers in (0, 3)."""
    x = t.linspace(0.1, 3.0, 7, dtype=t.float64).requires_grad_()
    (first,) = t.autograd.grad(getattr(t.special, name)(x).sum(), x, create_graph=True)
    (second,) = t.autograd.grad(first.sum(), x)
    return np.stack([first.detach().numpy(), second.numpy()])


@pytest.mark.parametrize("name", BESSEL)
def test_bessel_functions_have_derivatives(name):
    x = rushlight.linspace(0.1, 3.0, 7, dtype=rushlight.float64).requires_grad_()
    function = getattr(rushlight.special, name)
    assert rushlight.autograd.gradcheck(function, (x,))
    assert rushlight.autograd.gradgradcheck(function, (x,))


@pytest.mark.parametrize("name", BESSEL)
def test_derivatives_of_bessel_functions(torch_2_15, name):
    np.testing.assert_allclose(first_and_second(rushlight, name), first_and_second(torch_2_15, name), rtol=1e-6)


def test_the_slope_of_j1_at_zero():
    x = rushlight.zeros(1, dtype=rushlight.float64, requires_grad=True)
    rushlight.special.bessel_j1(x).sum().backward()
    assert x.grad.item() == 0.5


def climbed(t, optimizer, **settings):
    """A point after steps up the hill -(w - 1)^2, or down the hollow."""
    w = t.tensor([[3.0, -4.0], [0.5, 2.0], [1.0, -1.0]], dtype=t.float64, requires_grad=True)
    optimizer = getattr(t.optim, optimizer)([w], **settings)
    sign = -1.0 if settings.get("maximize") else 1.0

    def closure():
        optimizer.zero_grad()
        loss = sign * ((w - 1) ** 4).sum()
        loss.backward()
        return loss

    losses = [optimizer.step(closure).item() for _ in range(3)]
    return w.detach().numpy(), losses


SEARCHES = [None, "strong_wolfe"]


@pytest.mark.parametrize("search", SEARCHES)
def test_lbfgs_ascends(torch_2_15, search):
    settings = {"maximize": True, "line_search_fn": search, "max_iter": 4, "lr": 0.1}
    (ours, losses), (theirs, expected) = (
        climbed(rushlight, "LBFGS", **settings),
        climbed(torch_2_15, "LBFGS", **settings),
    )
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)
    np.testing.assert_allclose(losses, expected, rtol=1e-9)


@pytest.mark.parametrize("search", SEARCHES)
def test_lbfgs_ascends_as_it_descends(search):
    settings = {"line_search_fn": search, "max_iter": 4, "lr": 0.1}
    up, down = climbed(rushlight, "LBFGS", maximize=True, **settings), climbed(rushlight, "LBFGS", **settings)
    np.testing.assert_array_equal(up[0], down[0])
    assert up[1] == [-loss for loss in down[1]]
    w = rushlight.ones(1, requires_grad=True)
    assert "maximize" not in rushlight.optim.LBFGS([w]).state_dict()["param_groups"][0]  # torch 2.13 has no such key


def test_muon_without_the_lower_bound(torch_2_15):
    settings = {"adjust_lr_fn": "spectral_unclamped", "lr": 0.1}
    ours, theirs = (climbed(t, "Muon", **settings)[0] for t in (rushlight, torch_2_15))
    np.testing.assert_allclose(ours, theirs, atol=0.02)  # torch computes in bfloat16


def test_the_factor_of_muon_is_the_root_of_n_over_m():
    wide, usual = (
        climbed(rushlight, "Muon", adjust_lr_fn=name, lr=0.1, weight_decay=0.0)[0]
        for name in ("spectral_unclamped", "original")
    )
    np.testing.assert_allclose(wide, usual, rtol=1e-12)  # 3 rows, 2 columns: n / m > 1


def test_a_generator_for_gamma():
    def drawn(draw):
        generator = rushlight.Generator().manual_seed(3)
        return draw(generator)

    a = rushlight.tensor([0.5, 2.0, 7.0], dtype=rushlight.float64, requires_grad=True)
    d = rushlight.distributions.Gamma(a, 2.0)
    before = rushlight.get_rng_state()
    x, y = (drawn(lambda g: d.sample((4,), generator=g)) for _ in range(2))
    assert rushlight.equal(x, y)
    assert not x.requires_grad
    z = drawn(lambda g: d.rsample((4,), generator=g))
    assert rushlight.equal(z, x)
    assert rushlight.equal(rushlight.get_rng_state(), before)
    rushlight.manual_seed(3)
    own = d.rsample((4,))
    for sample in (z, own):
        a.grad = None
        sample.sum().backward()
        assert rushlight.isfinite(a.grad).all()


def decorated(t):
    """What a function gives that `checkpoint` decorates: result, gradient, how often it ran."""
    x, calls = t.ones(2, requires_grad=True), []

    @t.utils.checkpoint.checkpoint(use_reentrant=False, preserve_rng_state=False)
    def f(x, factor=1.0):
        calls.append(1)
        return x.exp().sin() * factor

    y = f(x, factor=2.0)
    y.sum().backward()
    return f.__name__, y.detach().numpy().tolist(), x.grad.numpy().tolist(), len(calls)


def test_checkpoint_without_a_function_is_a_decorator(torch_2_15):
    ours, theirs = decorated(rushlight), decorated(torch_2_15)
    assert ours[0] == theirs[0] == "f"
    np.testing.assert_allclose(ours[1:3], theirs[1:3], rtol=1e-6)
    assert ours[3] == theirs[3] == 2


def test_a_decorator_of_unknown_settings():
    assert decorated(rushlight)[3] == 2
    with pytest.raises(ValueError, match="Unexpected keyword arguments: colour"):
        rushlight.utils.checkpoint.checkpoint(use_reentrant=False, colour=1)
