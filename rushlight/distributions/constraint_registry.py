"""From a set of values to a transform of unbounded numbers into this set."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from typing import Any

from rushlight.base.errors import not_implemented_error, type_error
from rushlight.distributions import constraints as c
from rushlight.distributions import transforms as t
from rushlight.distributions.constraints import Constraint


class ConstraintRegistry:
    """transform = registry(constraint): by the constraint itself, or else by its class.

    >>> d = rushlight.distributions
    >>> d.transform_to(d.constraints.positive)(rushlight.tensor(0.0))
    tensor(1.)
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.rules: dict[Any, Callable] = {}

    def register(self, constraint: Any, factory: Callable | None = None) -> Any:
        """Use `factory(constraint)` for a constraint, or for a class of constraints. Without `factory`: a decorator."""
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        if not isinstance(constraint, Constraint) and not (
            isinstance(constraint, type) and issubclass(constraint, Constraint)
        ):
            raise type_error(
                f"Expected constraint to be either a Constraint subclass or instance, but got {type(constraint)}"
            )
        self.rules[key(constraint)] = factory
        return factory

    def __call__(self, constraint: Constraint) -> t.Transform:
        factory = self.rules.get(key(constraint))
        if factory is None:
            raise not_implemented_error(f"Cannot transform {type(constraint).__name__} constraints ({constraint})")
        return factory(constraint)


def key(constraint: Any) -> Any:
    """The key of a constraint: its class."""
    return constraint if isinstance(constraint, type) else type(constraint)


def equals(bound: Any, number: float) -> bool:
    """Whether a bound is this number. False for a tensor, which holds a bound for each element."""
    return isinstance(bound, Number) and bound == number


def above(constraint: Any) -> t.Transform:
    return t.ComposeTransform([t.ExpTransform(), t.AffineTransform(constraint.lower_bound, 1)])


def below(constraint: Any) -> t.Transform:
    return t.ComposeTransform([t.ExpTransform(), t.AffineTransform(constraint.upper_bound, -1)])


def between(constraint: Any) -> t.Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    if equals(low, 0) and equals(high, 1):
        return t.SigmoidTransform()
    return t.ComposeTransform([t.SigmoidTransform(), t.AffineTransform(low, high - low)])


biject_to, transform_to = ConstraintRegistry("biject_to"), ConstraintRegistry("transform_to")

for registry in (biject_to, transform_to):
    registry.register(c.real, lambda constraint: t.identity_transform)
    registry.register(c.greater_than, above)
    registry.register(c.greater_than_eq, above)
    registry.register(c.less_than, below)
    registry.register(c.interval, between)
    registry.register(c.half_open_interval, between)
    registry.register(c.corr_cholesky, lambda constraint: t.CorrCholeskyTransform())
    registry.register(c.lower_cholesky, lambda constraint: t.LowerCholeskyTransform())
    registry.register(c.positive_definite, lambda constraint: t.PositiveDefiniteTransform())
    registry.register(c.positive_semidefinite, lambda constraint: t.PositiveDefiniteTransform())

biject_to.register(c.simplex, lambda constraint: t.StickBreakingTransform())
transform_to.register(c.simplex, lambda constraint: t.SoftmaxTransform())


def of_independent(registry: ConstraintRegistry) -> Callable:
    return lambda constraint: t.IndependentTransform(
        registry(constraint.base_constraint), constraint.reinterpreted_batch_ndims
    )


def of_cat(registry: ConstraintRegistry) -> Callable:
    return lambda constraint: t.CatTransform(
        [registry(one) for one in constraint.cseq], constraint.dim, constraint.lengths
    )


def of_stack(registry: ConstraintRegistry) -> Callable:
    return lambda constraint: t.StackTransform([registry(one) for one in constraint.cseq], constraint.dim)


for registry in (biject_to, transform_to):
    registry.register(c.independent, of_independent(registry))
    registry.register(c.cat, of_cat(registry))
    registry.register(c.stack, of_stack(registry))
