"""Random variables: samples, log-probabilities, entropies, and how far one is from another (KL)."""
from rushlight.distributions import categorical, kl, normal
from rushlight.distributions.composed import Independent, LogNormal, MultivariateNormal
from rushlight.distributions.continuous import Exponential, Laplace, Normal, Uniform
from rushlight.distributions.discrete import Bernoulli, Categorical, OneHotCategorical
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.kl import kl_divergence, register_kl

__all__ = ["Bernoulli", "Categorical", "Distribution", "Exponential", "Independent", "Laplace", "LogNormal",
           "MultivariateNormal", "Normal", "OneHotCategorical", "Uniform", "categorical", "kl", "kl_divergence", "normal",
           "register_kl"]
