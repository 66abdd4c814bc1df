"""Distributions are torch's: samples of one stream, log-probabilities with gradients, moments, cdfs, KL, transforms."""

from __future__ import annotations

import importlib
import math
import pickle
import pkgutil
import sys
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rushlight
from rushlight import tensor
from rushlight.distributions.gamma import beta_slope, gamma_slope
from tests.support.programs import Programs, outcome

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
        d.Categorical(logits=leaf(t, [0.1, 0.9])), d.Independent(d.Normal(leaf(t, A), leaf(t, B)), 1)
    ),
    "Transformed": lambda t, d: d.TransformedDistribution(
        d.Normal(leaf(t, A), leaf(t, B)), [d.AffineTransform(leaf(t, [0.5]), leaf(t, [-2.0])), d.SigmoidTransform()]
    ),
    "Transformed vectors": lambda t, d: d.TransformedDistribution(
        d.Independent(d.Normal(leaf(t, A), leaf(t, B)), 1), [d.TanhTransform(), d.StickBreakingTransform()]
    ),
}
IMPLICIT = ("Gamma", "Chi2", "InverseGamma", "Beta", "Dirichlet", "StudentT", "FisherSnedecor", "Wishart")
FACTS = ("mean", "variance", "stddev", "mode", "entropy")
APART = [("Kumaraswamy", "mode")]  # torch takes a logarithm of a negative number


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
    found = [
        x,
        d.log_prob(x),
        list(d.batch_shape),
        list(d.event_shape),
        d.has_rsample,
        wider.log_prob(x[:2, None]),
        list(wider.sample().shape),
        type(d.support).__name__ == "x",
        d.support.event_dim,
        d.support.is_discrete,
        answer(d.enumerate_support) if d.has_enumerate_support else None,
        None if name == "Multinomial" else answer(wider.entropy),
        answer(lambda: d.cdf(x)),
        answer(lambda: d.icdf(torch.full((4, *d.batch_shape), 0.3))),
    ]
    found += [
        answer(lambda f=f: getattr(d, f)() if f == "entropy" else getattr(d, f))
        for f in FACTS
        if (name, f) not in APART
    ]
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

    agree(
        gradients(rushlight, name, monkeypatch, of),
        oracle(lambda torch: gradients(torch, name, monkeypatch, of)),
        2e-4,
        2e-5,
    )


@pytest.mark.parametrize(
    "name", [name for name in MAKE if "numbers" not in name and name != "Wishart" and made(rushlight, name).has_rsample]
)
def test_gradients_of_samples_are_torchs(oracle, name, monkeypatch):
    """torch's implicit gradients are approximations, ours are not: test_samples_move_with_quantiles."""

    def of(d):
        return d.rsample((4,)).sin().sum()

    exact = name not in IMPLICIT
    agree(
        gradients(rushlight, name, monkeypatch, of),
        oracle(lambda torch: gradients(torch, name, monkeypatch, of)),
        *((1e-4, 2e-5) if exact else (1e-3, 1e-3)),
    )


@pytest.mark.parametrize(
    "name",
    [
        "Normal",
        "Laplace",
        "Uniform",
        "Exponential",
        "LogNormal",
        "Cauchy",
        "Gumbel",
        "Weibull",
        "Pareto",
        "GeneralizedPareto",
        "Kumaraswamy",
        "HalfNormal",
        "HalfCauchy",
        "Transformed",
        "ContinuousBernoulli",
    ],
)
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
    pairs = [
        (d.Gamma(t(a), t(b)), stats.gamma(a, scale=1 / b)),
        (d.Beta(t(a), t(b)), stats.beta(a, b)),
        (d.StudentT(t(a), t(b)), stats.t(a, b)),
        (d.Weibull(t(a), t(b)), stats.weibull_min(b, scale=a)),
        (d.Gumbel(t(a), t(b)), stats.gumbel_r(a, b)),
        (d.InverseGamma(t(a), t(b)), stats.invgamma(a, scale=b)),
        (d.FisherSnedecor(t(a), t(b)), stats.f(a, b)),
        (d.VonMises(t(a), t(b)), stats.vonmises(b, a)),
        (d.Pareto(t(a), t(b)), stats.pareto(b, scale=a)),
        (d.Cauchy(t(a), t(b)), stats.cauchy(a, b)),
    ]
    rushlight.manual_seed(seed)
    for ours, theirs in pairs:
        x = ours.sample((3,))
        np.testing.assert_allclose(ours.log_prob(x), theirs.logpdf(x), rtol=1e-6, atol=1e-7)


PAIRS = [
    ("Normal", "Normal numbers"),
    ("Laplace", "Laplace"),
    ("Exponential", "Exponential"),
    ("Uniform", "Uniform"),
    ("Bernoulli probs", "Bernoulli logits"),
    ("Categorical probs", "Categorical logits"),
    ("Independent", "Independent"),
    ("MultivariateNormal", "MultivariateNormal precision"),
    ("OneHotCategorical", "OneHotCategorical"),
    ("Gamma", "Gamma"),
    ("Gamma", "Chi2"),
    ("Beta", "Beta"),
    ("Dirichlet", "Dirichlet"),
    ("Poisson", "Poisson"),
    ("Geometric", "Geometric probs"),
    ("Gumbel", "Gumbel"),
    ("HalfNormal", "HalfNormal"),
    ("LogNormal", "LogNormal"),
    ("Cauchy", "Cauchy"),
    ("Pareto", "Pareto"),
    ("Binomial", "Binomial"),
    ("ContinuousBernoulli", "ContinuousBernoulli"),
    ("LowRankMultivariateNormal", "LowRankMultivariateNormal"),
    ("MultivariateNormal", "LowRankMultivariateNormal"),
    ("Normal", "Laplace"),
    ("Exponential", "Gamma"),
    ("Uniform", "Normal"),
    ("Laplace", "Normal"),
    ("Normal", "Gumbel"),
    ("Exponential", "Normal"),
    ("Gamma", "Normal"),
    ("Beta", "Normal"),
    ("Uniform", "Gumbel"),
    ("Gamma", "Exponential"),
    ("Exponential", "Gumbel"),
    ("Gumbel", "Normal"),
    ("Beta", "Uniform"),
    ("Beta", "Gamma"),
    ("Beta", "Exponential"),
    ("Uniform", "Exponential"),
    ("Uniform", "Gamma"),
    ("Gamma", "Gumbel"),
    ("Pareto", "Exponential"),
    ("Pareto", "Gamma"),
    ("Pareto", "Normal"),
    ("Uniform", "Beta"),
    ("Poisson", "Bernoulli logits"),
    ("Bernoulli probs", "Poisson"),
    ("Normal", "Gamma"),
    ("Wishart", "Wishart"),
]


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
    "Exp": lambda t, d: d.ExpTransform(),
    "Power": lambda t, d: d.PowerTransform(t.tensor([2.0, 0.5, -1.0])),
    "Sigmoid": lambda t, d: d.SigmoidTransform(),
    "Softplus": lambda t, d: d.SoftplusTransform(),
    "Tanh": lambda t, d: d.TanhTransform(),
    "Affine": lambda t, d: d.AffineTransform(t.tensor([1.0, 2.0, 3.0]), -2.0),
    "Affine vectors": lambda t, d: d.AffineTransform(0.5, t.tensor([1.0, 2.0, 3.0]), event_dim=1),
    "Compose": lambda t, d: d.ComposeTransform(
        [d.AffineTransform(1.0, 0.5), d.TanhTransform(), d.StickBreakingTransform()]
    ),
    "Independent": lambda t, d: d.IndependentTransform(d.ExpTransform(), 1),
    "Reshape": lambda t, d: d.transforms.ReshapeTransform((3,), (1, 3)),
    "StickBreaking": lambda t, d: d.StickBreakingTransform(),
    "CorrCholesky": lambda t, d: d.CorrCholeskyTransform(),
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
    return [
        y,
        f.inv(y),
        f.log_abs_det_jacobian(x, y),
        f.bijective,
        f.domain.event_dim,
        f.codomain.event_dim,
        answer(lambda: f.sign),
        *([] if name in shapes else [list(f.forward_shape((2, 3))), list(f.inverse_shape(y.shape))]),
    ]


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_are_torchs(oracle, name):
    agree(transformed(rushlight, name), oracle(lambda torch: transformed(torch, name)), atol=1e-5)


SETS = [
    "real",
    "positive",
    "nonnegative",
    "unit_interval",
    "simplex",
    "lower_cholesky",
    "corr_cholesky",
    "real_vector",
    "positive_definite",
]


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
        missing = [
            name for name in theirs.__all__ if not hasattr(ours, name) and name not in ("MixtureSameFamilyConstraint",)
        ]
        assert not missing, file.name
    assert not [name for name in torch.distributions.__all__ if not hasattr(home, name)]


def test_utils(oracle):
    def ask(torch):
        u, p = torch.distributions.utils, torch.tensor([0.0, 0.3, 0.7])
        m = torch.arange(9.0).reshape(3, 3)
        return [
            u.probs_to_logits(p),
            u.probs_to_logits(p, True),
            u.logits_to_probs(p),
            u.logits_to_probs(p, True),
            *(u.tril_matrix_to_vec(m, k) for k in (-1, 0, 1)),
            *(u.vec_to_tril_matrix(u.tril_matrix_to_vec(m, k), k) for k in (-1, 0)),
        ]

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
        found = [
            (
                repr(one),
                one.event_dim,
                one.is_discrete,
                isinstance(one, kind),
                one.check(x).tolist(),
                repr(pickle.loads(pickle.dumps(one))),
            )
            for one, kind in zip(made, kinds)
        ]
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


@pytest.mark.parametrize(
    "name",
    [
        "Normal numbers",
        "Gamma",
        "Beta",
        "MultivariateNormal",
        "Independent",
        "Gumbel",
        "LogNormal",
        "Categorical probs",
        "LowRankMultivariateNormal",
        "StudentT",
    ],
)
def test_reprs_are_torchs(oracle, name):
    assert repr(made(rushlight, name)) == oracle(lambda torch: repr(made(torch, name)))


WRONG = [
    "Normal(0.0, -1.0)",
    "Gamma(-1.0, 1.0)",
    "Beta(1.0, 0.0)",
    "Dirichlet(t.tensor([1.0, -1.0]))",
    "Poisson(-1.0)",
    "Dirichlet(t.tensor(1.0))",
    "Binomial(3, 1.5)",
    "Geometric(0.0)",
    "Categorical()",
    "Multinomial(2)",
    "Uniform(1.0, 0.0)",
    "MultivariateNormal(t.ones(2))",
    "MultivariateNormal(t.ones(2), -t.eye(2))",
    "Wishart(1.0, t.eye(3))",
    "LKJCholesky(1)",
    "Bernoulli(0.5).log_prob(t.tensor(2.0))",
    "HalfNormal(-1.0)",
    "Gamma(1.0, 1.0).log_prob(t.tensor(-1.0))",
    "Normal(t.zeros(3), 1.0).log_prob(t.zeros(2))",
    "Dirichlet(t.ones(3)).log_prob(t.ones(3))",
    "MultivariateNormal(t.ones(2), t.eye(2)).log_prob(t.ones(3))",
    "Pareto(1.0, 1.0).log_prob(t.tensor(0.5))",
    "Categorical(t.ones(3)).log_prob(t.tensor(3))",
    "Normal('a', 1.0)",
    "Independent(d.Normal(0.0, 1.0), 1)",
]


@pytest.mark.parametrize("call", WRONG)
def test_refused_as_by_torch(oracle, call):
    def ask(torch):
        # torch.compile, in a test before, sets False
        torch.distributions.Distribution.set_default_validate_args(True)
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


program = Programs()


@program.found_in("libraries")
def normal_vectors_keep_the_factor_that_was_given(torch):
    d = torch.distributions.MultivariateNormal(torch.zeros(3, 2), torch.eye(2) * 4)
    w = torch.distributions.Wishart(torch.tensor([3.0, 4.0]), torch.eye(2))
    more = d.expand((4, 3))
    return [
        d._unbroadcasted_scale_tril,
        d.scale_tril,
        d.variance,
        d.entropy(),
        d.precision_matrix,
        list(more.scale_tril.shape),
        more.entropy(),
        w._unbroadcasted_scale_tril,
        w.variance,
        w.entropy(),
        w.log_prob(torch.eye(2)),
        w.scale_tril,
    ]


@program.found_in("libraries")
def what_a_distribution_computes_is_there_for_classes_made_of_it(torch):
    class Shifted(torch.distributions.Bernoulli):
        @torch.distributions.utils.lazy_property
        def logits(self):
            return super().logits + 1

    class Lazy(torch.distributions.MultivariateNormal):
        @property
        def asked(self):
            return self.missing

        @torch.distributions.utils.lazy_property
        def covariance_matrix(self):
            return super().covariance_matrix * 2

    class Own(torch.distributions.MultivariateNormal):
        def __init__(self, loc):  # as gpytorch's, which keeps the covariance in a way of its own
            self.loc, self._validate_args = loc, False
            super(torch.distributions.MultivariateNormal, self).__init__(
                loc.shape[:-1], loc.shape[-1:], validate_args=False
            )

    lazy = Lazy(torch.zeros(2), scale_tril=torch.eye(2))
    try:
        message = lazy.asked
    except AttributeError as error:
        message = "missing" in str(error)
    return [
        Shifted(probs=torch.tensor(0.25)).logits,
        lazy.covariance_matrix,
        message,
        list(Own(torch.zeros(3, 2)).batch_shape),
    ]


@program.found_in("libraries")
def sets_of_the_users_own_have_attributes_of_the_class(torch):
    class _Below(torch.distributions.constraints.Constraint):
        event_dim, is_discrete = 1, True

        def __init__(self, bound):
            self.bound = bound

        def check(self, value):
            return (value < self.bound).all(-1)

    c = _Below(3)
    both = torch.distributions.constraints.independent(c, 1)
    return [repr(c), c.event_dim, c.is_discrete, c.check(torch.ones(2)), both.event_dim, both.check(torch.ones(2, 2))]


@program.found_in("libraries")
def distributions_of_the_users_own_expand_as_torchs_notes_say(torch):
    dist = torch.distributions

    class Shifted(dist.Normal):
        def __init__(self, loc, scale, shift):
            self.shift = torch.as_tensor(shift)
            super().__init__(loc, scale)

        def expand(self, batch_shape, _instance=None):
            new = self._get_checked_instance(Shifted, _instance)
            new.shift = self.shift.expand(batch_shape)
            return super().expand(batch_shape, _instance=new)

    class Plain(dist.Normal):
        def __init__(self, loc):
            super().__init__(loc, 1.0)

        def expand(self, batch_shape, _instance=None):
            new = self._get_checked_instance(dist.Normal, _instance)
            return super().expand(batch_shape, _instance=new)

    class Log(dist.TransformedDistribution):
        def __init__(self, loc):
            super().__init__(dist.Normal(loc, 1.0), [dist.ExpTransform()])
            self.loc = torch.as_tensor(loc)

        def expand(self, batch_shape, _instance=None):
            return super().expand(batch_shape, _instance=self._get_checked_instance(Log, _instance))

    s = Shifted(torch.zeros(3), 1.0, 2.0).expand((2, 3))
    log = Log(torch.tensor(0.5)).expand((4,))
    none = dist.Normal(torch.tensor(0.0), 1.0).expand(())
    return [
        type(s).__name__,
        list(s.batch_shape),
        s.loc,
        s.shift,
        s.log_prob(torch.zeros(3)),
        outcome(Plain(torch.tensor(0.0)).expand, (2,)),
        list(log.batch_shape),
        log.log_prob(torch.ones(4)),
        list(none.batch_shape),
        none.log_prob(torch.tensor(1.0)),
    ]


@program.found_in("suites")
def wishart_draws_as_torch(torch):
    torch.manual_seed(0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        one = torch.distributions.Wishart(torch.tensor(5.0), torch.eye(3))
        many = torch.distributions.Wishart(torch.tensor([5.0, 6.0]), torch.eye(3))
        drawn = [one.sample(), one.sample((2, 2)), many.sample(), many.sample((2,)), torch.rand(1)]
    return [*drawn, sorted({str(w.message) for w in caught})]


@pytest.mark.origin("suites")
def test_counts_of_even_chances_have_a_slope():
    from rushlight.distributions import Binomial

    for k in (0.0, 1.0, 2.0):
        logits = tensor(0.0, requires_grad=True)
        Binomial(2, logits=logits).log_prob(tensor(k)).backward()
        assert logits.grad.item() == k - 1.0
    assert Binomial(2, logits=tensor([-100.0, 100.0])).log_prob(tensor([0.0, 2.0])).tolist() == [0.0, 0.0]


def two_ones(*shape):
    return rushlight.ones(*shape or (2,), requires_grad=True)


@pytest.mark.origin("suites")
def test_lazy_properties_are_part_of_the_graph():
    x = two_ones()

    class Lazy:
        @rushlight.distributions.utils.lazy_property
        def doubled(self):
            return x * 2

    one = Lazy()
    with rushlight.no_grad():
        assert one.doubled.requires_grad
    assert one.doubled is one.doubled


@pytest.mark.origin("suites")
def test_gammas_take_numbers():
    assert rushlight.distributions.Gamma(tensor(1.0), tensor(2.0)).log_prob(0) == rushlight.log(tensor(2.0))


@pytest.mark.origin("suites")
def test_densities_of_wisharts_have_gradients_in_whole_matrices():
    from rushlight.distributions import Wishart

    x = (3 * rushlight.eye(3) + 0.1).double().requires_grad_()
    d = Wishart(tensor(7.0).double(), covariance_matrix=rushlight.eye(3).double(), validate_args=False)
    assert rushlight.autograd.gradcheck(d.log_prob, (x,))


@pytest.mark.origin("suites")
def test_transforms_to_intervals_of_tensors():
    from rushlight.distributions import biject_to, constraints, transform_to

    low, high = tensor([0.0, 1.0]), tensor([1.0, 3.0])
    for registry in (biject_to, transform_to):
        assert registry(constraints.interval(low, high))(rushlight.zeros(2)).tolist() == [0.5, 2.0]
        assert registry(constraints.greater_than(low))(rushlight.zeros(2)).tolist() == [1.0, 2.0]


@program.found_in("torch tests")
def distributions_far_from_the_middle_and_of_no_sense(torch):
    d = torch.distributions

    def continuous(logit, x):
        logits = torch.tensor([logit], dtype=torch.float64, requires_grad=True)
        found = d.ContinuousBernoulli(logits=logits).log_prob(torch.tensor([x], dtype=torch.float64))
        found.sum().backward()
        return [found.detach(), logits.grad]

    kinds = [d.Binomial, d.Categorical, d.Multinomial, d.Uniform, d.Pareto, d.GeneralizedPareto]
    return [
        *[continuous(sign * size, x) for size in (1e308, 800.0, 30.0) for sign in (1, -1) for x in (0.0, 0.25, 1.0)],
        *[outcome(lambda x: d.Chi2(x, validate_args=True), torch.tensor(df)) for df in ([0.0, 0.0], [-2.0, 1.0])],
        *[[kind.support.event_dim, kind.support.is_discrete] for kind in kinds],
        *[outcome(getattr, kind.support, "event_dim") for kind in (d.Independent, d.MixtureSameFamily)],
    ]


test_program = program.test()


def test_a_distribution_that_is_also_a_module():
    """As GPyTorch's priors: the constructor of Distribution calls the Module's."""

    class Prior(rushlight.distributions.Distribution, rushlight.nn.Module):
        arg_constraints = {}

    prior = Prior()
    assert list(prior.modules()) == [prior]


@pytest.mark.parametrize("alpha", [0.8, 1.0, 2.0])
@pytest.mark.parametrize("name", ["Exponential", "Gamma", "Normal"])
def test_infinite_divergences_have_gradient_zero(name, alpha):
    d = rushlight.distributions
    given = [rushlight.tensor(v, requires_grad=True) for v in (1.2, alpha, 0.7, 0.4)]
    q = getattr(d, name)(*given[2 : 3 if name == "Exponential" else 4])
    found = d.kl_divergence(d.Pareto(given[0], given[1]), q)
    infinite = alpha <= (2 if name == "Normal" else 1)
    assert found.isinf().item() == infinite
    found.backward()
    if infinite:
        assert [t.grad.item() for t in given if t.grad is not None] == [0.0] * (3 if name == "Exponential" else 4)
