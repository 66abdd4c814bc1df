"""Random variables: samples, log-probabilities, entropies, transforms, and how far one is from another (KL)."""
from rushlight.distributions import categorical, constraint_registry, constraints, kl, kl_mixed, normal, transforms
from rushlight.distributions.constraint_registry import biject_to, transform_to
from rushlight.distributions.continuous import Exponential, Laplace, Normal, Uniform
from rushlight.distributions.counts import Binomial, Geometric, Multinomial, NegativeBinomial, Poisson
from rushlight.distributions.discrete import (
    Bernoulli,
    Categorical,
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
)
from rushlight.distributions.distribution import Distribution, ExponentialFamily
from rushlight.distributions.gamma import Beta, Chi2, Dirichlet, FisherSnedecor, Gamma, StudentT
from rushlight.distributions.heavy import Cauchy, GeneralizedPareto, HalfCauchy, HalfNormal, InverseGamma
from rushlight.distributions.kl import kl_divergence, register_kl
from rushlight.distributions.matrices import LKJCholesky, LowRankMultivariateNormal, MultivariateNormal, Wishart
from rushlight.distributions.mixture import MixtureSameFamily, VonMises
from rushlight.distributions.relaxed import (
    ContinuousBernoulli,
    ExpRelaxedCategorical,
    LogitRelaxedBernoulli,
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

__all__ = ["Bernoulli", "Beta", "Binomial", "Categorical", "Cauchy", "Chi2", "ContinuousBernoulli", "Dirichlet",
           "Distribution", "ExpRelaxedCategorical", "Exponential", "ExponentialFamily", "FisherSnedecor", "Gamma",
           "GeneralizedPareto", "Geometric", "Gumbel", "HalfCauchy", "HalfNormal", "Independent", "InverseGamma",
           "Kumaraswamy", "LKJCholesky", "Laplace", "LogNormal", "LogisticNormal", "LogitRelaxedBernoulli",
           "LowRankMultivariateNormal", "MixtureSameFamily", "Multinomial", "MultivariateNormal", "NegativeBinomial",
           "Normal", "OneHotCategorical", "OneHotCategoricalStraightThrough", "Pareto", "Poisson", "RelaxedBernoulli",
           "RelaxedOneHotCategorical", "StudentT", "TransformedDistribution", "Uniform", "VonMises", "Weibull", "Wishart",
           "biject_to", "categorical", "constraint_registry", "constraints", "kl", "kl_divergence", "kl_mixed", "normal",
           "register_kl", "transform_to", "transforms", *transforms.__all__]
