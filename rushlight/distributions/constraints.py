"""Constraints: sets of allowed values for arguments and samples, with torch's names and texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import rushlight
from rushlight.base.errors import not_implemented_error
from rushlight.core.tensor import Tensor


class Constraint:
    """x in a set of values: `check(x)` is, for each value of `event_dim` dimensions, whether the set contains it.

    >>> rushlight.distributions.constraints.positive.check(rushlight.tensor([-1., 2.]))
    tensor([False,  True])
    """

    event_dim = 0  # a class attribute, because a user's `__init__` may not call this class's
    is_discrete = False
    _name = ""

    def __init__(
        self,
        name: str = "",
        check: Callable[[Tensor], Tensor] | None = None,
        event_dim: int | None = None,
        is_discrete: bool | None = None,
    ):
        given = {"_name": name or None, "check": check, "event_dim": event_dim, "is_discrete": is_discrete}
        self.__dict__.update({key: value for key, value in given.items() if value is not None})

    def check(self, value: Tensor) -> Tensor:
        raise not_implemented_error(f"{self} cannot be checked: it depends on other arguments")

    def __repr__(self) -> str:
        name = self._name or type(self).__name__.removeprefix("_") + "()"
        return name.format_map(self.__dict__)  # tensors as bounds are read only when shown


class Dependent(Constraint):
    """A constraint that depends on other arguments; it is not checked."""


def is_dependent(constraint: Any) -> bool:
    """True if the set depends on other arguments.

    >>> c = rushlight.distributions.constraints
    >>> c.is_dependent(c.dependent), c.is_dependent(c.real)
    (True, False)
    """
    return isinstance(constraint, Dependent)


class dependent_property(property, Dependent):
    """x in support(self): a property. On an object, its value is a set; on the class, a set that is not checked.

    >>> Uniform = rushlight.distributions.Uniform
    >>> Uniform(0.0, 2.0).support, rushlight.distributions.constraints.is_dependent(Uniform.support)
    (Interval(lower_bound=0.0, upper_bound=2.0), True)
    """

    def __init__(self, fn: Callable | None = None, *, is_discrete: bool = False, event_dim: int | None = 0):
        property.__init__(self, fn)
        self._name, self.is_discrete, self.options = "Dependent()", is_discrete, (is_discrete, event_dim)

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        """The common value of an attribute of all objects. NotImplementedError if the objects differ."""
        if self.options[1] is None:
            raise not_implemented_error(".event_dim cannot be determined statically")
        return self.options[1]

    def __call__(self, fn: Callable) -> dependent_property:
        return dependent_property(fn, is_discrete=self.options[0], event_dim=self.options[1])


class From(Constraint):
    """Numbers above a bound."""

    def __init__(self, lower_bound: Any):
        self.lower_bound = lower_bound


class UpTo(Constraint):
    """Numbers below a bound."""

    def __init__(self, upper_bound: Any):
        self.upper_bound = upper_bound


class Between(Constraint):
    """Numbers between two bounds."""

    def __init__(self, lower_bound: Any, upper_bound: Any):
        self.lower_bound, self.upper_bound = lower_bound, upper_bound


class greater_than(From):
    """x > lower_bound.

    >>> rushlight.distributions.constraints.greater_than(1.0).check(rushlight.tensor([1., 2.]))
    tensor([False,  True])
    """

    _name = "GreaterThan(lower_bound={lower_bound})"

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound < value


class greater_than_eq(From):
    """x >= lower_bound.

    >>> rushlight.distributions.constraints.greater_than_eq(1.0).check(rushlight.tensor([0., 1.]))
    tensor([False,  True])
    """

    _name = "GreaterThanEq(lower_bound={lower_bound})"

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound <= value


class integers_from(From):
    """Whole numbers from lower_bound on."""

    _name = "IntegerGreaterThan(lower_bound={lower_bound})"
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return whole(value) & (self.lower_bound <= value)


class less_than(UpTo):
    """x < upper_bound.

    >>> rushlight.distributions.constraints.less_than(1.0).check(rushlight.tensor([0., 1.]))
    tensor([ True, False])
    """

    _name = "LessThan(upper_bound={upper_bound})"

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound


class interval(Between):
    """lower_bound <= x <= upper_bound.

    >>> rushlight.distributions.constraints.interval(0.0, 1.0).check(rushlight.tensor([-1., 0., 1.]))
    tensor([False,  True,  True])
    """

    _name = "Interval(lower_bound={lower_bound}, upper_bound={upper_bound})"

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class half_open_interval(Between):
    """lower_bound <= x < upper_bound.

    >>> rushlight.distributions.constraints.half_open_interval(0.0, 1.0).check(rushlight.tensor([0., 1.]))
    tensor([ True, False])
    """

    _name = "HalfOpenInterval(lower_bound={lower_bound}, upper_bound={upper_bound})"

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value < self.upper_bound)


class integer_interval(Between):
    """x = lower_bound, lower_bound + 1, ..., upper_bound.

    >>> rushlight.distributions.constraints.integer_interval(0, 2).check(rushlight.tensor([0., 0.5, 2., 3.]))
    tensor([ True, False,  True, False])
    """

    _name = "IntegerInterval(lower_bound={lower_bound}, upper_bound={upper_bound})"
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        inside = (self.lower_bound <= value) & (value <= self.upper_bound)
        return whole(value) & inside if value.is_floating_point() else inside


class multinomial(UpTo):
    """x_i >= 0, sum of x_i <= upper_bound, in the last dimension: counts.

    >>> rushlight.distributions.constraints.multinomial(3).check(rushlight.tensor([[1., 2.], [2., 2.]]))
    tensor([ True, False])
    """

    _name = "Multinomial()"
    is_discrete, event_dim = True, 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


class independent(Constraint):
    """x_1, x_2, ... in a set: one value has `reinterpreted_batch_ndims` more dimensions than a value of
    `base_constraint`.

    >>> c = rushlight.distributions.constraints
    >>> c.independent(c.positive, 1).check(rushlight.tensor([[1., 2.], [-1., 2.]]))
    tensor([ True, False])
    """

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int):
        super().__init__(
            "IndependentConstraint({base_constraint}, {reinterpreted_batch_ndims})",
            None,
            base_constraint.event_dim + reinterpreted_batch_ndims,
            base_constraint.is_discrete,
        )
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        found = self.base_constraint.check(value)
        n = self.reinterpreted_batch_ndims
        return found.reshape(*found.shape[: found.ndim - n], -1).all(-1) if n else found


class cat(Constraint):
    """x_i in set i, for parts of given `lengths` along `dim`.

    >>> c = rushlight.distributions.constraints
    >>> c.cat([c.positive, c.real], lengths=[1, 2]).check(rushlight.tensor([-1., -1., 2.]))
    tensor([False,  True,  True])
    """

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None):
        super().__init__("Cat()", None, max(c.event_dim for c in cseq), any(c.is_discrete for c in cseq))
        self.cseq, self.dim, self.lengths = list(cseq), dim, list(lengths or [1] * len(cseq))

    def check(self, value: Tensor) -> Tensor:
        parts = rushlight.split(value, self.lengths, self.dim)
        return rushlight.cat([c.check(part) for c, part in zip(self.cseq, parts)], self.dim)


class stack(Constraint):
    """x[i] in set i, for the slices along `dim`.

    >>> c = rushlight.distributions.constraints
    >>> c.stack([c.positive, c.real]).check(rushlight.tensor([-1., -1.]))
    tensor([False,  True])
    """

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0):
        super().__init__("Stack()", None, max(c.event_dim for c in cseq), any(c.is_discrete for c in cseq))
        self.cseq, self.dim = list(cseq), dim

    def check(self, value: Tensor) -> Tensor:
        slices = rushlight.unbind(value, self.dim)
        return rushlight.stack([c.check(one) for c, one in zip(self.cseq, slices)], self.dim)


def whole(x: Tensor) -> Tensor:
    return x % 1 == 0


def is_square(x: Tensor) -> Tensor:
    return rushlight.full(x.shape[:-2], x.shape[-2] == x.shape[-1], dtype=rushlight.bool)


def is_symmetric(x: Tensor) -> Tensor:
    if x.shape[-2] != x.shape[-1]:
        return is_square(x)
    return rushlight.isclose(x, x.mT, atol=1e-6).all(-2).all(-1)


def is_lower(x: Tensor) -> Tensor:
    return (x.tril() == x).all(-1).all(-1)


def has_positive_diagonal(x: Tensor) -> Tensor:
    return (x.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


def has_unit_rows(x: Tensor) -> Tensor:
    tolerance = rushlight.finfo(x.dtype).eps * x.shape[-1] * 10
    return ((x.norm(dim=-1) - 1).abs() < tolerance).all(-1)


def is_definite(x: Tensor) -> Tensor:
    if x.shape[-2] != x.shape[-1]:
        return is_square(x)
    return is_symmetric(x) & (rushlight.linalg.cholesky_ex(x).info == 0)


def is_semidefinite(x: Tensor) -> Tensor:
    symmetric = is_symmetric(x)
    return (rushlight.linalg.eigvalsh(x) >= 0).all(-1) if symmetric.all() else symmetric


def single(name: str, check: Callable[[Tensor], Tensor], event_dim: int = 0, is_discrete: bool = False) -> Constraint:
    """The only instance of a new class, which gets torch's name: _Real for "Real"."""
    made = type(
        f"_{name}",
        (Constraint,),
        {
            "__module__": __name__,
            "check": lambda self, value: check(value),
            "event_dim": event_dim,
            "is_discrete": is_discrete,
        },
    )
    globals()[made.__name__] = made
    return made()


dependent = Dependent("Dependent()")
real: Constraint = single("Real", lambda x: x == x)
positive, nonnegative = greater_than(0.0), greater_than_eq(0.0)
unit_interval = interval(0.0, 1.0)
boolean = single("Boolean", lambda x: (x == 0) | (x == 1), is_discrete=True)
nonnegative_integer, positive_integer = integers_from(0), integers_from(1)
real_vector = independent(real, 1)
simplex = single("Simplex", lambda x: (x >= 0).all(-1) & ((x.sum(-1) - 1).abs() < 1e-6), 1)
one_hot = single("OneHot", lambda x: ((x == 0) | (x == 1)).all(-1) & (x.sum(-1) == 1), 1, True)
square = single("Square", is_square, 2)
symmetric = single("Symmetric", is_symmetric, 2)
lower_triangular = single("LowerTriangular", is_lower, 2)
lower_cholesky = single("LowerCholesky", lambda x: is_lower(x) & has_positive_diagonal(x), 2)
corr_cholesky = single("CorrCholesky", lambda x: is_lower(x) & has_positive_diagonal(x) & has_unit_rows(x), 2)
positive_definite = single("PositiveDefinite", is_definite, 2)
positive_semidefinite = single("PositiveSemidefinite", is_semidefinite, 2)
# torch's names of the classes
_Dependent, _DependentProperty, _IndependentConstraint = Dependent, dependent_property, independent
_GreaterThan, _GreaterThanEq, _LessThan = greater_than, greater_than_eq, less_than
_Interval, _HalfOpenInterval, _IntegerInterval = interval, half_open_interval, integer_interval
_Cat, _Stack, _Multinomial = cat, stack, multinomial

__all__ = [
    "Constraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property", "greater_than",
    "greater_than_eq", "half_open_interval", "independent", "integer_interval", "interval", "is_dependent", "less_than",
    "lower_cholesky", "lower_triangular", "multinomial", "nonnegative", "nonnegative_integer", "one_hot", "positive",
    "positive_definite", "positive_integer", "positive_semidefinite", "real", "real_vector", "simplex", "square",
    "stack", "symmetric", "unit_interval",
]  # fmt: skip
