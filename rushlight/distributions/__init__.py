"""Random variables: samples, log-probabilities, entropies, transforms, and KL divergences."""

import sys as _sys

from rushlight.base.missing_names import tell as _tell
from rushlight.distributions import (
    constraint_registry,
    constraints,
    continuous,
    count_distributions,
    discrete,
    distribution,
    gamma,
    heavy_tailed,
    kl,
    kl_mixed,
    matrices,
    mixture,
    relaxed,
    transformed,
    transforms,
    utils,
)
from rushlight.distributions.constraint_registry import biject_to, transform_to
from rushlight.distributions.continuous import Exponential, Laplace, Normal, Uniform
from rushlight.distributions.count_distributions import Binomial, Geometric, Multinomial, NegativeBinomial, Poisson
from rushlight.distributions.discrete import Bernoulli, Categorical, OneHotCategorical, OneHotCategoricalStraightThrough
from rushlight.distributions.distribution import Distribution, ExponentialFamily
from rushlight.distributions.gamma import Beta, Chi2, Dirichlet, FisherSnedecor, Gamma, StudentT
from rushlight.distributions.heavy_tailed import Cauchy, GeneralizedPareto, HalfCauchy, HalfNormal, InverseGamma
from rushlight.distributions.kl import kl_divergence, register_kl
from rushlight.distributions.matrices import LKJCholesky, LowRankMultivariateNormal, MultivariateNormal, Wishart
from rushlight.distributions.mixture import MixtureSameFamily, VonMises
from rushlight.distributions.relaxed import (
    ContinuousBernoulli,
    ExpRelaxedCategorical,
    RelaxedBernoulli,
    RelaxedOneHotCategorical,
)
from rushlight.distributions.transformed import (
    Gumbel,
    Independent,
    Kumaraswamy,
    LogisticNormal,
    LogNormal,
    Pareto,
    TransformedDistribution,
    Weibull,
)
from rushlight.distributions.transforms import *  # noqa: F403

# torch's file: ours
_FILES = {
    **dict.fromkeys(("exponential", "laplace", "normal", "uniform"), continuous),
    **dict.fromkeys(("binomial", "geometric", "multinomial", "negative_binomial", "poisson"), count_distributions),
    **dict.fromkeys(("bernoulli", "categorical", "one_hot_categorical"), discrete),
    "exp_family": distribution,
    **dict.fromkeys(("beta", "chi2", "dirichlet", "fishersnedecor", "studentT"), gamma),
    **dict.fromkeys(("cauchy", "generalized_pareto", "half_cauchy", "half_normal", "inverse_gamma"), heavy_tailed),
    **dict.fromkeys(("lkj_cholesky", "lowrank_multivariate_normal", "multivariate_normal", "wishart"), matrices),
    **dict.fromkeys(("mixture_same_family", "von_mises"), mixture),
    **dict.fromkeys(("continuous_bernoulli", "relaxed_bernoulli", "relaxed_categorical"), relaxed),
    **dict.fromkeys(
        (
            "gumbel",
            "independent",
            "kumaraswamy",
            "log_normal",
            "logistic_normal",
            "pareto",
            "transformed_distribution",
            "weibull",
        ),
        transformed,
    ),
}
for _name, _found in _FILES.items():
    globals()[_name] = _sys.modules[f"{__name__}.{_name}"] = _found

__all__ = [
    "Bernoulli", "Beta", "Binomial", "Categorical", "Cauchy", "Chi2", "ContinuousBernoulli", "Dirichlet",
    "Distribution", "ExpRelaxedCategorical", "Exponential", "ExponentialFamily", "FisherSnedecor", "Gamma",
    "GeneralizedPareto", "Geometric", "Gumbel", "HalfCauchy", "HalfNormal", "Independent", "InverseGamma",
    "Kumaraswamy", "LKJCholesky", "Laplace", "LogNormal", "LogisticNormal", "LowRankMultivariateNormal",
    "MixtureSameFamily", "Multinomial", "MultivariateNormal", "NegativeBinomial", "Normal", "OneHotCategorical",
    "OneHotCategoricalStraightThrough", "Pareto", "Poisson", "RelaxedBernoulli", "RelaxedOneHotCategorical", "StudentT",
    "TransformedDistribution", "Uniform", "VonMises", "Weibull", "Wishart", "biject_to", "constraint_registry",
    "constraints", "kl", "kl_divergence", "kl_mixed", "register_kl", "transform_to", "transforms", "utils",
    *transforms.__all__,
]  # fmt: skip

_tell(__name__)
