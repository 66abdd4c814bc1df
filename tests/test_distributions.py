"""Distributions are torch's: samples of one stream, log-probabilities with gradients, entropies, KL."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight

A, B = [[0.3, -1.2, 0.7], [1.5, 0.1, -0.4]], [[0.5, 1.3, 2.0], [0.9, 0.2, 1.1]]

MAKE = {
    "Normal": lambda t: t.distributions.Normal(leaf(t, A), leaf(t, B)),
    "Normal numbers": lambda t: t.distributions.Normal(0.5, 2.0),
    "LogNormal": lambda t: t.distributions.LogNormal(leaf(t, A), leaf(t, B)),
    "Laplace": lambda t: t.distributions.Laplace(leaf(t, A), leaf(t, B)),
    "Uniform": lambda t: t.distributions.Uniform(leaf(t, A) - 2, leaf(t, B) + 3),
    "Exponential": lambda t: t.distributions.Exponential(leaf(t, B)),
    "Bernoulli probs": lambda t: t.distributions.Bernoulli(leaf(t, A).sigmoid()),
    "Bernoulli logits": lambda t: t.distributions.Bernoulli(logits=leaf(t, A)),
    "Categorical probs": lambda t: t.distributions.Categorical(leaf(t, B)),
    "Categorical logits": lambda t: t.distributions.Categorical(logits=leaf(t, A)),
    "OneHotCategorical": lambda t: t.distributions.OneHotCategorical(logits=leaf(t, A)),
    "Independent": lambda t: t.distributions.Independent(t.distributions.Normal(leaf(t, A), leaf(t, B)), 1),
    "MultivariateNormal": lambda t: t.distributions.MultivariateNormal(
        leaf(t, A), t.eye(3) + 0.2 * t.ones(3, 3) * leaf(t, [[[0.5]]])),
}


def leaf(torch, values):
    return torch.tensor(values, requires_grad=True)


def facts(torch, name):
    d = MAKE[name](torch)
    torch.manual_seed(3)
    x = d.sample((4,))
    log_prob = d.log_prob(x)
    found = [x, log_prob, d.mean, d.variance, d.entropy(), list(d.batch_shape), list(d.event_shape)]
    if d.has_rsample:
        torch.manual_seed(4)
        found.append(d.rsample((2,)))
    return [f.detach() if hasattr(f, "detach") else f for f in found]


def gradients(torch, name):
    leaves = []
    make, keep = MAKE[name], leaf.__globals__["leaf"]

    def seen(t, values):
        leaves.append(keep(t, values))
        return leaves[-1]
    leaf.__globals__["leaf"] = seen
    try:
        d = make(torch)
    finally:
        leaf.__globals__["leaf"] = keep
    torch.manual_seed(3)
    (d.log_prob(d.sample((4,))).sum() + d.entropy().sum()).backward()
    return [x.grad for x in leaves]


def agree(ours, expected):
    for a, b in zip(ours, expected, strict=True):
        if isinstance(a, list):
            assert a == list(b)
        else:
            np.testing.assert_allclose(a.numpy(), b, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", MAKE)
def test_values_are_torchs(oracle, name):
    agree(facts(rushlight, name), oracle(lambda torch: facts(torch, name)))


@pytest.mark.parametrize("name", [name for name in MAKE if "numbers" not in name])
def test_gradients_are_torchs(oracle, name):
    agree(gradients(rushlight, name), oracle(lambda torch: gradients(torch, name)))


@pytest.mark.parametrize("name", ["Normal", "Laplace", "Uniform", "Exponential", "LogNormal"])
def test_icdf_undoes_cdf(name):
    d = MAKE[name](rushlight)
    x = d.sample()
    np.testing.assert_allclose(d.icdf(d.cdf(x)).detach(), x, rtol=1e-4, atol=1e-5)


PAIRS = [("Normal", "Normal numbers"), ("Laplace", "Laplace"), ("Exponential", "Exponential"), ("Uniform", "Uniform"),
         ("Bernoulli probs", "Bernoulli logits"), ("Categorical probs", "Categorical logits"),
         ("Independent", "Independent"), ("MultivariateNormal", "MultivariateNormal"),
         ("OneHotCategorical", "OneHotCategorical")]


@pytest.mark.parametrize(("p", "q"), PAIRS)
def test_kl_is_torchs(oracle, p, q):
    def ask(torch):
        return torch.distributions.kl_divergence(MAKE[p](torch), MAKE[q](torch)).detach()
    np.testing.assert_allclose(ask(rushlight).numpy(), oracle(ask), rtol=1e-5, atol=1e-6)


def test_bad_arguments_and_values_are_named():
    d = rushlight.distributions
    with pytest.raises(ValueError, match="Expected parameter scale .* to satisfy the constraint GreaterThan"):
        d.Normal(0.0, -1.0)
    with pytest.raises(ValueError, match="to be within the support"):
        d.Bernoulli(0.5).log_prob(rushlight.tensor(2.0))
    with pytest.raises(ValueError, match="Either `probs` or `logits`"):
        d.Categorical()
    with pytest.raises(NotImplementedError, match="No KL"):
        d.kl_divergence(d.Normal(0.0, 1.0), d.Bernoulli(0.5))
    assert d.Normal(0.0, -1.0, validate_args=False).mean == 0
    assert repr(d.Normal(0.0, 1.0)) == "Normal(loc: 0.0, scale: 1.0)"
