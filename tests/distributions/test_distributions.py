"""Distributions are torch's: samples of one stream, log-probabilities with gradients, moments, cdfs, KL, transforms."""

from __future__ import annotations

import importlib
import math
import pickle
import pkgutil
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rushlight
from rushlight.distributions.gamma import beta_slope, gamma_slope

A, B = [[0.3, -1.2, 0.7], [1.5, 0.1, -0.4]], [[0.5, 1.3, 2.0], [0.9, 0.2, 1.1]]
LARGE, FACTOR = [[3.5, 4.0, 9.0], [5.5, 12.0, 6.5]], [[0.5, -0.1], [0.3, 0.8], [-0.6, 0.2]]


def covariance(t):
    w = leaf(t, FACTOR)
    return w @ w.mT + t.eye(3)


MAKE = {
    "Normal": lambda t, d: d.Normal(leaf(t, A), leaf(t, B)),
    "Normal numbers": lambda t, d: d.Normal(0.5, 2.0),
    "LogNormal": lambda t, d: d.LogNormal(leaf(t, A), leaf(t, B)),
    "Laplace": lambda t, d: d.Laplace(leaf(t, A), leaf(t, B)),
    "Uniform": lambda t, d: d.Uniform(leaf(t, A) - 2, leaf(t, B) + 3),
    "Exponential": lambda t, d: d.Exponential(leaf(t, B)),
    "Gamma": lambda t, d: d.Gamma(leaf(t, B), leaf(t, LARGE)),
    "Chi2": lambda t, d: d.Chi2(leaf(t, LARGE)),
    "InverseGamma": lambda t, d: d.InverseGamma(leaf(t, LARGE), leaf(t, B)),
    "Beta": lambda t, d: d.Beta(leaf(t, B), leaf(t, LARGE)),
    "Dirichlet": lambda t, d: d.Dirichlet(leaf(t, B)),
    "StudentT": lambda t, d: d.StudentT(leaf(t, LARGE), leaf(t, A), leaf(t, B)),
    "FisherSnedecor": lambda t, d: d.FisherSnedecor(leaf(t, LARGE), leaf(t, LARGE) + 1),
    "Cauchy": lambda t, d: d.Cauchy(leaf(t, A), leaf(t, B)),
    "HalfCauchy": lambda t, d: d.HalfCauchy(leaf(t, B)),
    "HalfNormal": lambda t, d: d.HalfNormal(leaf(t, B)),
    "Gumbel": lambda t, d: d.Gumbel(leaf(t, A), leaf(t, B)),
    "Weibull": lambda t, d: d.Weibull(leaf(t, B), leaf(t, LARGE)),
    "Pareto": lambda t, d: d.Pareto(leaf(t, B), leaf(t, LARGE)),
    "GeneralizedPareto": lambda t, d: d.GeneralizedPareto(leaf(t, A), leaf(t, B), leaf(t, [[0.3, -0.4, 0.0]])),
    "Kumaraswamy": lambda t, d: d.Kumaraswamy(leaf(t, LARGE), leaf(t, B) + 1),
    "VonMises": lambda t, d: d.VonMises(leaf(t, A), leaf(t, B)),
    "LogisticNormal": lambda t, d: d.LogisticNormal(leaf(t, A), leaf(t, B)),
    "Bernoulli probs": lambda t, d: d.Bernoulli(leaf(t, A).sigmoid()),
    "Bernoulli logits": lambda t, d: d.Bernoulli(logits=leaf(t, A)),
    "ContinuousBernoulli": lambda t, d: d.ContinuousBernoulli(logits=leaf(t, A)),
    "Geometric": lambda t, d: d.Geometric(logits=leaf(t, A)),
    "Geometric probs": lambda t, d: d.Geometric(leaf(t, A).sigmoid()),
    "Binomial": lambda t, d: d.Binomial(10, logits=leaf(t, A)),
    "Binomial probs": lambda t, d: d.Binomial(t.full((2, 3), 7.0), leaf(t, A).sigmoid()),
    "NegativeBinomial": lambda t, d: d.NegativeBinomial(leaf(t, LARGE), logits=leaf(t, A)),
    "Poisson": lambda t, d: d.Poisson(leaf(t, LARGE)),
    "Categorical probs": lambda t, d: d.Categorical(leaf(t, B)),
    "Categorical logits": lambda t, d: d.Categorical(logits=leaf(t, A)),
    "OneHotCategorical": lambda t, d: d.OneHotCategorical(logits=leaf(t, A)),
    "OneHotCategoricalStraightThrough": lambda t, d: d.OneHotCategoricalStraightThrough(leaf(t, B)),
    "Multinomial": lambda t, d: d.Multinomial(5, logits=leaf(t, A)),
    "RelaxedBernoulli": lambda t, d: d.RelaxedBernoulli(t.tensor(0.7), logits=leaf(t, A)),
    "RelaxedOneHotCategorical": lambda t, d: d.RelaxedOneHotCategorical(t.tensor(0.7), logits=leaf(t, A)),
    "Independent": lambda t, d: d.Independent(d.Normal(leaf(t, A), leaf(t, B)), 1),
    "MultivariateNormal": lambda t, d: d.MultivariateNormal(leaf(t, A), covariance(t)),
    "MultivariateNormal precision": lambda t, d: d.MultivariateNormal(leaf(t, A), precision_matrix=covariance(t)),
    "LowRankMultivariateNormal": lambda t, d: d.LowRankMultivariateNormal(leaf(t, A), leaf(t, FACTOR), leaf(t, B)),
    "Wishart": lambda t, d: d.Wishart(leaf(t, 5.5), covariance(t)),
    "LKJCholesky": lambda t, d: d.LKJCholesky(3, leaf(t, [0.5, 2.0])),
    "MixtureSameFamily": lambda t, d: d.MixtureSameFamily(d.Categorical(leaf(t, B)), d.Normal(leaf(t, A), leaf(t, B))),
    "Mixture of vectors": lambda t, d: d.MixtureSameFamily(
        d.Categorical(logits=leaf(t, [0.1, 0.9])), d.Independent(d.Normal(leaf(t, A), leaf(t, B)), 1)),
    "Transformed": lambda t, d: d.TransformedDistribution(
        d.Normal(leaf(t, A), leaf(t, B)), [d.AffineTransform(leaf(t, [0.5]), leaf(t, [-2.0])), d.SigmoidTransform()]),
    "Transformed vectors": lambda t, d: d.TransformedDistribution(
        d.Independent(d.Normal(leaf(t, A), leaf(t, B)), 1), [d.TanhTransform(), d.StickBreakingTransform()]),
}
IMPLICIT = ("Gamma", "Chi2", "InverseGamma", "Beta", "Dirichlet", "StudentT", "FisherSnedecor", "Wishart")
FACTS = ("mean", "variance", "stddev", "mode", "entropy")
APART = [("Kumaraswamy", "mode")]                  # torch takes a logarithm of a negative number


def leaf(torch, values):
    return torch.tensor(values, requires_grad=True)


def made(torch, name):
    return MAKE[name](torch, torch.distributions)


def answer(f):
    """What it gives, or that there is none."""
    try:
        found = f()
    except NotImplementedError:
        return "NotImplementedError"
    return found.detach() if hasattr(found, "detach") else found


def drawn(torch, d, name):
    """Samples; but torch draws a Wishart sample anew ten times if nothing is wrong with it."""
    return d.mean.detach() * torch.tensor([0.5, 1.0, 2.0, 3.0])[:, None, None] if name == "Wishart" else d.sample((4,))


def torch_of(d):
    """The library that the distribution is of."""
    return sys.modules[type(d).__module__.partition(".")[0]]


def facts(torch, name):
    d = made(torch, name)
    torch.manual_seed(3)
    x = drawn(torch, d, name)
    wider = d.expand((2, *d.batch_shape))
    found = [x, d.log_prob(x), list(d.batch_shape), list(d.event_shape), d.has_rsample, wider.log_prob(x[:2, None]),
             list(wider.sample().shape), type(d.support).__name__ == "x", d.support.event_dim, d.support.is_discrete,
             answer(d.enumerate_support) if d.has_enumerate_support else None,
             None if name == "Multinomial" else answer(wider.entropy), answer(lambda: d.cdf(x)),
             answer(lambda: d.icdf(torch.full((4, *d.batch_shape), 0.3)))]
    found += [answer(lambda f=f: getattr(d, f)() if f == "entropy" else getattr(d, f)) for f in FACTS
              if (name, f) not in APART]
    if d.has_rsample and name != "Wishart":
        torch.manual_seed(4)
        found.append(d.rsample((2,)))
    return [f.detach() if hasattr(f, "detach") else f for f in found]


def gradients(torch, name, monkeypatch, of):
    leaves, keep = [], leaf

    def seen(t, values):
        leaves.append(keep(t, values))
        return leaves[-1]
    monkeypatch.setitem(globals(), "leaf", seen)
    d = made(torch, name)
    monkeypatch.setitem(globals(), "leaf", keep)
    torch.manual_seed(3)
    (of(d)).backward()
    return [x.grad for x in leaves]


def agree(ours, expected, rtol=3e-5, atol=3e-6):
    for i, (a, b) in enumerate(zip(ours, expected, strict=True)):
        if isinstance(a, (list, str, bool, int)) or a is None:
            assert (a if not isinstance(a, list) else list(a)) == (list(b) if isinstance(a, list) else b), f"fact {i}"
        else:
            assert tuple(a.shape) == b.shape, f"fact {i}"
            np.testing.assert_allclose(a.numpy(), b, rtol=rtol, atol=atol, err_msg=f"fact {i}")


@pytest.mark.parametrize("name", MAKE)
def test_values_are_torchs(oracle, name):
    agree(facts(rushlight, name), oracle(lambda torch: facts(torch, name)))


@pytest.mark.parametrize("name", [name for name in MAKE if "numbers" not in name])
def test_gradients_of_log_prob_are_torchs(oracle, name, monkeypatch):
    def of(d):
        return d.log_prob(drawn(torch_of(d), d, name)).sum()
    agree(gradients(rushlight, name, monkeypatch, of), oracle(lambda torch: gradients(torch, name, monkeypatch, of)), 2e-4,
          2e-5)


@pytest.mark.parametrize("name", [name for name in MAKE if "numbers" not in name and name != "Wishart"
                                  and made(rushlight, name).has_rsample])
def test_gradients_of_samples_are_torchs(oracle, name, monkeypatch):
    """torch's implicit gradients are approximations, ours are not: test_samples_move_with_quantiles."""
    def of(d):
        return d.rsample((4,)).sin().sum()
    exact = name not in IMPLICIT
    agree(gradients(rushlight, name, monkeypatch, of), oracle(lambda torch: gradients(torch, name, monkeypatch, of)),
          *((1e-4, 2e-5) if exact else (1e-3, 1e-3)))


@pytest.mark.parametrize("name", ["Normal", "Laplace", "Uniform", "Exponential", "LogNormal", "Cauchy", "Gumbel", "Weibull",
                                  "Pareto", "GeneralizedPareto", "Kumaraswamy", "HalfNormal", "HalfCauchy", "Transformed",
                                  "ContinuousBernoulli"])
def test_icdf_undoes_cdf(name):
    d = made(rushlight, name)
    x = d.sample()
    np.testing.assert_allclose(d.icdf(d.cdf(x)).detach(), x, rtol=1e-3, atol=1e-4)


positive = st.floats(-2.5, 4).map(lambda e: 10**e)
inside = st.floats(0.001, 0.999)


@given(positive, inside)
@settings(max_examples=200, deadline=None)
def test_samples_move_with_quantiles(a, p):
    """The implicit gradient is how the quantile of a probability moves."""
    from scipy import special
    x = special.gammaincinv(a, p)
    if x < 1e-250:
        return
    h = 1e-5 * a
    expected = (special.gammaincinv(a + h, p) - special.gammaincinv(a - h, p)) / (2 * h)
    assert gamma_slope(np.array([a]), np.array([x]))[0] == pytest.approx(expected, 1e-5)


@given(st.floats(-1, 2).map(lambda e: 10**e), st.floats(-1, 2).map(lambda e: 10**e), inside)
@settings(max_examples=200, deadline=None)
def test_beta_samples_too(a, b, p):
    from scipy import special
    x = special.betaincinv(a, b, p)
    if not 1e-12 < x < 1 - 1e-6:
        return
    h = 1e-4 * a
    expected = (special.betaincinv(a + h, b, p) - special.betaincinv(a - h, b, p)) / (2 * h)
    assert beta_slope(np.array([a]), np.array([b]), np.array([x]))[0] == pytest.approx(expected, 1e-4, 1e-9)


def test_mode_of_kumaraswamy():
    d = made(rushlight, "Kumaraswamy")
    most = d.log_prob(d.mode)
    assert (most > d.log_prob(d.mode + 1e-2)).all()
    assert (most > d.log_prob(d.mode - 1e-2)).all()


def test_wishart_samples():
    """Their mean and spread; gradients go through them."""
    d = made(rushlight, "Wishart")
    rushlight.manual_seed(0)
    x = d.rsample((20000,))
    np.testing.assert_allclose(x.mean(0).detach(), d.mean.detach(), atol=0.15)
    np.testing.assert_allclose(x.var(0).detach(), d.variance.detach(), rtol=0.06)
    x.sum().backward()


@given(st.floats(0.2, 20), st.floats(0.2, 20), st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_densities_are_scipys(a, b, seed):
    from scipy import stats
    d, t = rushlight.distributions, rushlight.tensor
    a, b = np.float64(np.float32(a)), np.float64(np.float32(b))
    pairs = [(d.Gamma(t(a), t(b)), stats.gamma(a, scale=1 / b)), (d.Beta(t(a), t(b)), stats.beta(a, b)),
             (d.StudentT(t(a), t(b)), stats.t(a, b)), (d.Weibull(t(a), t(b)), stats.weibull_min(b, scale=a)),
             (d.Gumbel(t(a), t(b)), stats.gumbel_r(a, b)), (d.InverseGamma(t(a), t(b)), stats.invgamma(a, scale=b)),
             (d.FisherSnedecor(t(a), t(b)), stats.f(a, b)), (d.VonMises(t(a), t(b)), stats.vonmises(b, a)),
             (d.Pareto(t(a), t(b)), stats.pareto(b, scale=a)), (d.Cauchy(t(a), t(b)), stats.cauchy(a, b))]
    rushlight.manual_seed(seed)
    for ours, theirs in pairs:
        x = ours.sample((3,))
        np.testing.assert_allclose(ours.log_prob(x), theirs.logpdf(x), rtol=1e-6, atol=1e-7)


PAIRS = [("Normal", "Normal numbers"), ("Laplace", "Laplace"), ("Exponential", "Exponential"), ("Uniform", "Uniform"),
         ("Bernoulli probs", "Bernoulli logits"), ("Categorical probs", "Categorical logits"),
         ("Independent", "Independent"), ("MultivariateNormal", "MultivariateNormal precision"),
         ("OneHotCategorical", "OneHotCategorical"), ("Gamma", "Gamma"), ("Gamma", "Chi2"), ("Beta", "Beta"),
         ("Dirichlet", "Dirichlet"), ("Poisson", "Poisson"), ("Geometric", "Geometric probs"), ("Gumbel", "Gumbel"),
         ("HalfNormal", "HalfNormal"), ("LogNormal", "LogNormal"), ("Cauchy", "Cauchy"), ("Pareto", "Pareto"),
         ("Binomial", "Binomial"), ("ContinuousBernoulli", "ContinuousBernoulli"),
         ("LowRankMultivariateNormal", "LowRankMultivariateNormal"),
         ("MultivariateNormal", "LowRankMultivariateNormal"), ("Normal", "Laplace"), ("Exponential", "Gamma"),
         ("Uniform", "Normal"), ("Laplace", "Normal"), ("Normal", "Gumbel"), ("Exponential", "Normal"), ("Gamma", "Normal"),
         ("Beta", "Normal"), ("Uniform", "Gumbel"), ("Gamma", "Exponential"), ("Exponential", "Gumbel"),
         ("Gumbel", "Normal"), ("Beta", "Uniform"), ("Beta", "Gamma"),
         ("Beta", "Exponential"), ("Uniform", "Exponential"), ("Uniform", "Gamma"),
         ("Gamma", "Gumbel"), ("Pareto", "Exponential"), ("Pareto", "Gamma"), ("Pareto", "Normal"), ("Uniform", "Beta"),
         ("Poisson", "Bernoulli logits"), ("Bernoulli probs", "Poisson"), ("Normal", "Gamma"), ("Wishart", "Wishart")]


@pytest.mark.parametrize(("p", "q"), PAIRS)
def test_kl_is_torchs(oracle, p, q):
    def ask(torch):
        return answer(lambda: torch.distributions.kl_divergence(made(torch, p), made(torch, q)))
    expected = oracle(ask)
    if isinstance(expected, str):
        assert ask(rushlight) == expected
    else:
        np.testing.assert_allclose(ask(rushlight).numpy(), expected, rtol=2e-5, atol=5e-6)


def test_kl_of_a_low_rank_and_a_whole_covariance():
    d = rushlight.distributions
    p, q = made(rushlight, "LowRankMultivariateNormal"), made(rushlight, "MultivariateNormal")
    whole = d.MultivariateNormal(p.loc, p.covariance_matrix)
    np.testing.assert_allclose(d.kl_divergence(p, q).detach(), d.kl_divergence(whole, q).detach(), rtol=1e-5)


TRANSFORMS = {
    "Exp": lambda t, d: d.ExpTransform(), "Power": lambda t, d: d.PowerTransform(t.tensor([2.0, 0.5, -1.0])),
    "Sigmoid": lambda t, d: d.SigmoidTransform(), "Softplus": lambda t, d: d.SoftplusTransform(),
    "Tanh": lambda t, d: d.TanhTransform(), "Affine": lambda t, d: d.AffineTransform(t.tensor([1.0, 2.0, 3.0]), -2.0),
    "Affine vectors": lambda t, d: d.AffineTransform(0.5, t.tensor([1.0, 2.0, 3.0]), event_dim=1),
    "Compose": lambda t, d: d.ComposeTransform([d.AffineTransform(1.0, 0.5), d.TanhTransform(), d.StickBreakingTransform()]),
    "Independent": lambda t, d: d.IndependentTransform(d.ExpTransform(), 1),
    "Reshape": lambda t, d: d.transforms.ReshapeTransform((3,), (1, 3)),
    "StickBreaking": lambda t, d: d.StickBreakingTransform(), "CorrCholesky": lambda t, d: d.CorrCholeskyTransform(),
    "Cumulative": lambda t, d: d.transforms.CumulativeDistributionTransform(d.Normal(0.5, 2.0)),
    "Cat": lambda t, d: d.CatTransform([d.ExpTransform(), d.TanhTransform()], -1, [1, 2]),
    "Stack": lambda t, d: d.StackTransform([d.ExpTransform(), d.AffineTransform(1, 2)], 0),
    "Inverse": lambda t, d: d.ComposeTransform([d.ExpTransform(), d.AffineTransform(1, 2)]).inv,
}


def transformed(torch, name):
    f = TRANSFORMS[name](torch, torch.distributions)
    x = torch.tensor([[0.3, 1.2, 0.7], [1.5, 0.1, 0.4]]) + (2 if name == "Inverse" else 0)
    y = f(x)
    shapes = ("Cat", "Stack")
    return [y, f.inv(y), f.log_abs_det_jacobian(x, y), f.bijective, f.domain.event_dim, f.codomain.event_dim, answer(
        lambda: f.sign), *([] if name in shapes else [list(f.forward_shape((2, 3))), list(f.inverse_shape(y.shape))])]


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_are_torchs(oracle, name):
    agree(transformed(rushlight, name), oracle(lambda torch: transformed(torch, name)), atol=1e-5)


SETS = ["real", "positive", "nonnegative", "unit_interval", "simplex", "lower_cholesky", "corr_cholesky", "real_vector",
        "positive_definite"]


@pytest.mark.parametrize("name", SETS)
def test_ways_into_a_set(oracle, name):
    def ask(torch):
        d = torch.distributions
        c = getattr(d.constraints, name)
        x = torch.tensor([[0.3, -1.2, 0.7], [1.5, 0.1, -0.4], [0.2, 0.3, 0.5]])
        y = d.transform_to(c)(x)
        return [y, bool(c.check(y).all()), repr(c), c.event_dim, c.is_discrete]
    agree(ask(rushlight), oracle(ask))


def test_torchs_paths(torch):
    """Every file of torch.distributions, and what it offers."""
    home = rushlight.distributions
    for file in pkgutil.iter_modules(torch.distributions.__path__):
        theirs = importlib.import_module(f"torch.distributions.{file.name}")
        ours = importlib.import_module(f"rushlight.distributions.{file.name}")
        missing = [name for name in theirs.__all__ if not hasattr(ours, name) and name not in (
            "MixtureSameFamilyConstraint",)]
        assert not missing, file.name
    assert not [name for name in torch.distributions.__all__ if not hasattr(home, name)]


def test_utils(oracle):
    def ask(torch):
        u, p = torch.distributions.utils, torch.tensor([0.0, 0.3, 0.7])
        m = torch.arange(9.0).reshape(3, 3)
        return [u.probs_to_logits(p), u.probs_to_logits(p, True), u.logits_to_probs(p), u.logits_to_probs(p, True),
                *(u.tril_matrix_to_vec(m, k) for k in (-1, 0, 1)),
                *(u.vec_to_tril_matrix(u.tril_matrix_to_vec(m, k), k) for k in (-1, 0))]
    agree(ask(rushlight), oracle(ask))


def test_bounds_of_a_set():
    d = rushlight.distributions
    for c in (d.constraints.greater_than(2.0), d.constraints.interval(-1.0, 3.0), d.constraints.less_than(0.5)):
        assert c.check(d.biject_to(c)(rushlight.linspace(-3, 3, 7))).all()
    with pytest.raises(NotImplementedError, match="Cannot transform"):
        d.biject_to(d.constraints.boolean)


def test_bounds_are_classes(torch):
    expected = None
    for t in (rushlight, torch):
        d = importlib.import_module(f"{t.__name__}.distributions")
        c, x = d.constraints, t.tensor([-1.0, 0.0, 1.5, 2.0, 3.0, 4.0])
        kinds = [c.greater_than, c.greater_than_eq, c.less_than, c.interval, c.half_open_interval, c.integer_interval]
        made = [kind(0, 3) if "interval" in kind.__name__.lower() else kind(2) for kind in kinds]
        found = [(repr(one), one.event_dim, one.is_discrete, isinstance(one, kind), one.check(x).tolist(),
                  repr(pickle.loads(pickle.dumps(one)))) for one, kind in zip(made, kinds)]
        expected = found if t is rushlight else expected
        assert found == expected
        assert isinstance(d.Uniform(0.0, 1.0).support, c.interval)
        assert isinstance(c.positive, c.greater_than)


def test_transforms_are_registered_for_bounds():
    d = rushlight.distributions
    registry = type(d.transform_to)("own")
    registry.register(d.constraints.interval)(lambda constraint: d.transforms.identity_transform)
    assert registry(d.constraints.unit_interval) is d.transforms.identity_transform
    with pytest.raises(NotImplementedError, match="Cannot transform half_open_interval"):
        registry(d.constraints.half_open_interval(0, 1))


def test_a_cache_gives_back_the_very_input():
    d = rushlight.distributions
    f, x = d.TanhTransform(cache_size=1), rushlight.tensor([20.0])
    assert f.inv(f(x)) is x
    assert math.isinf(d.TanhTransform().inv(f(x)).item())


@pytest.mark.parametrize("name", ["Normal numbers", "Gamma", "Beta", "MultivariateNormal", "Independent",
                                  "Gumbel", "LogNormal", "Categorical probs", "LowRankMultivariateNormal", "StudentT"])
def test_reprs_are_torchs(oracle, name):
    assert repr(made(rushlight, name)) == oracle(lambda torch: repr(made(torch, name)))


WRONG = ["Normal(0.0, -1.0)", "Gamma(-1.0, 1.0)", "Beta(1.0, 0.0)", "Dirichlet(t.tensor([1.0, -1.0]))", "Poisson(-1.0)",
         "Dirichlet(t.tensor(1.0))", "Binomial(3, 1.5)", "Geometric(0.0)", "Categorical()", "Multinomial(2)",
         "Uniform(1.0, 0.0)", "MultivariateNormal(t.ones(2))", "MultivariateNormal(t.ones(2), -t.eye(2))",
         "Wishart(1.0, t.eye(3))", "LKJCholesky(1)", "Bernoulli(0.5).log_prob(t.tensor(2.0))", "HalfNormal(-1.0)",
         "Gamma(1.0, 1.0).log_prob(t.tensor(-1.0))", "Normal(t.zeros(3), 1.0).log_prob(t.zeros(2))",
         "Dirichlet(t.ones(3)).log_prob(t.ones(3))", "MultivariateNormal(t.ones(2), t.eye(2)).log_prob(t.ones(3))",
         "Pareto(1.0, 1.0).log_prob(t.tensor(0.5))", "Categorical(t.ones(3)).log_prob(t.tensor(3))",
         "Normal('a', 1.0)", "Independent(d.Normal(0.0, 1.0), 1)"]


@pytest.mark.parametrize("call", WRONG)
def test_refused_as_by_torch(oracle, call):
    def ask(torch):
        names = {name: getattr(torch.distributions, name) for name in call.replace("(", " ").split()[:1]}
        try:
            eval(call, {"t": torch, "d": torch.distributions, **names})
        except Exception as e:
            return [type(e).__name__, " ".join(str(e).split()[:3])]
        return None
    assert ask(rushlight) == oracle(ask)


def test_bad_arguments_and_values_are_named():
    d = rushlight.distributions
    with pytest.raises(ValueError, match="Expected parameter scale .* to satisfy the constraint GreaterThan"):
        d.Normal(0.0, -1.0)
    with pytest.raises(ValueError, match="to be within the support"):
        d.Bernoulli(0.5).log_prob(rushlight.tensor(2.0))
    with pytest.raises(NotImplementedError, match="No KL"):
        d.kl_divergence(d.Normal(0.0, 1.0), d.Bernoulli(0.5))
    assert d.Normal(0.0, -1.0, validate_args=False).mean == 0
    assert repr(d.Normal(0.0, 1.0)) == "Normal(loc: 0.0, scale: 1.0)"


@pytest.mark.parametrize("given", ["probs", "logits"])
def test_what_is_computed_is_kept_with_its_graph(oracle, given):
    """As torch's lazy properties: one tensor, which is shown from then on, and which a no_grad did not cut off."""
    def ask(torch):
        p = torch.tensor([[1.0, 3.0], [2.0, 2.0]], requires_grad=True)
        d = torch.distributions.Categorical(**{given: p})
        with torch.no_grad():
            d.sample(), d.log_prob(torch.tensor([0, 1]))
        d.log_prob(torch.tensor([0, 1])).sum().backward()
        return d.logits is d.logits and d.probs is d.probs, repr(d), p.grad.tolist()
    same, shown, gradient = ask(rushlight)
    expected = oracle(ask)
    assert same
    assert [same, shown] == [*expected[:2]]
    np.testing.assert_allclose(gradient, expected[2], rtol=1e-6)


def test_values_of_other_batches_than_the_distributions(oracle):
    def ask(torch):
        d = torch.distributions.Categorical(torch.tensor([[1.0, 3.0], [2.0, 2.0]]))
        return [d.log_prob(torch.tensor(v)).tolist() for v in (1, [0, 1], [[0], [1], [1]])]
    for ours, theirs in zip(ask(rushlight), oracle(ask)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_bases_are_torchs(torch):
    """isinstance(Normal(0, 1), ExponentialFamily) was False."""
    for name in torch.distributions.__all__:
        theirs, ours = getattr(torch.distributions, name), getattr(rushlight.distributions, name)
        if isinstance(theirs, type):
            bases = {base.__name__ for base in theirs.__mro__ if base.__module__.startswith("torch.")}
            assert bases <= {base.__name__ for base in ours.__mro__}, name
