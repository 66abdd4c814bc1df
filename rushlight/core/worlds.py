"""What the names in a rule mean, and what gradients are while backward runs.

The text of a rule is written once; its world decides. `ARRAYS`: kernels (the fast backward); `TENSORS`: the ops
themselves (`create_graph`, tracing); formulas: symbols that print themselves (introspect/formulas.py); scalars: the
body of a compiled loop (loops/scalar_math.py).

The engine is written once, too. `Arrays` and `Tensors` have what differs between gradients that are arrays and
gradients that are tensors. A faster kind plugs in from outside: `rushlight.fast.backward_chains.Deferred`."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from functools import lru_cache
from operator import add
from types import ModuleType
from typing import Any

import numpy as np

from rushlight.base import dtypes
from rushlight.base.faster import Site, dispatching, least
from rushlight.base.higher import Higher
from rushlight.base.lazy import next_part
from rushlight.core.node import Node
from rushlight.core.table import SHARED, Op, rebind
from rushlight.core.tensor import Tensor, created, from_array
from rushlight.kernels.summation import added

# The names of each world. `__name__`: the filter of NumPy's warnings goes by it.
ARRAYS: dict[str, Any] = {"__builtins__": builtins, "__name__": __name__}
TENSORS: dict[str, Any] = {"__builtins__": builtins, "__name__": __name__}


def adopt(kernels: ModuleType) -> None:
    """Add the public functions of a module of kernels to the world of arrays, without Python's own (math.prod).

    Names of helpers of rules are not replaced, in whatever order the tables are loaded.
    """
    ARRAYS.update(
        (name, value)
        for name, value in vars(kernels).items()
        if not name.startswith("_")
        and callable(value)
        and name not in SHARED
        and getattr(value, "__module__", None) not in ("math", "itertools")
    )


def shared(function: Callable, own: bool = False) -> Callable:
    """Register a helper of rules in all worlds. It is written once, in names of ops. `own`: it is in a user's file."""
    (SHARED.own if own else SHARED)[function.__name__] = function
    for world in (ARRAYS, TENSORS):
        world[function.__name__] = rebind(function, world)
    return function


@shared
def not_differentiable(function, argument):
    """The rule of an input by which neither torch nor this library differentiates the function."""
    raise RuntimeError(
        f"The function '{function}' is not differentiable with respect to argument '{argument}'. This input cannot "
        "have requires_grad True.; hint: detach() it"
    )


@shared
def not_implemented(function):
    """The rule of an input whose derivative torch does not implement: backward raises."""
    raise NotImplementedError(f"the derivative for '{function}' is not implemented.; hint: detach() its input")


def present(op: Op) -> None:
    """Load parts of the library until all names in the op's rules exist. A rule that reads an attribute such as `shape`
    loads all parts, because `co_names` has names of attributes, too."""
    names = {name for rule in op.rules.values() if rule is not None for name in rule.__code__.co_names}
    while not names <= TENSORS.keys() | vars(builtins).keys() and next_part():
        pass


# -- gradients while backward runs: arrays, or tensors whose computation is recorded ----------------

sparse_graph = Higher()  # sparse gradients: rushlight/sparse/graph.py


@lru_cache(maxsize=1024)
def broadcast_axes(shape: tuple, to: tuple) -> tuple[int, ...]:
    """The dimensions along which `to` was repeated to make `shape`."""
    extra = len(shape) - len(to)
    return (*range(extra), *(i + extra for i, n in enumerate(to) if n == 1 != shape[i + extra]))


def sum_to_array(g: np.ndarray, shape: tuple) -> np.ndarray:
    """The gradient of an operand of this shape that the op broadcast."""
    axes = broadcast_axes(g.shape, shape)
    r = added(g, axes) if axes else g
    return r if r.shape == shape else r.reshape(shape)


def sum_to_tensor(g: Any, shape: tuple) -> Any:
    axes = broadcast_axes(g.shape, shape)
    return g.sum(axes).reshape(shape) if axes else g.reshape(shape)


# elements from which a sum has a faster way; smaller sums skip the hook, 3 % of scalars' backward
sum_from = least(Site("sum of gradients"))
large_sum = dispatching(Site("sum of gradients"), add)


class Arrays:
    """Gradients are arrays; nothing is recorded."""

    __slots__ = ()
    method = "arrays"  # the node's method that runs the rules on such gradients
    names = ARRAYS  # what the names in rules mean
    records = False  # whether backward is recorded itself, for higher derivatives
    # (g, node) -> the gradient as the node's rules take it; None: unchanged
    arriving: Callable[[Any, Node], Any] | None = None

    def over(self, order: list[Node]) -> Arrays:
        """The kind of gradients for a backward through these nodes; `Deferred` plans its loops here."""
        return self

    @staticmethod
    def fit(g: Any, shape: tuple) -> Any:
        """The gradient of an input of this shape, which the forward has broadcast."""
        return sum_to_array(g, shape)

    @staticmethod
    def add(a: Any, b: Any) -> Any:
        """The sum of two gradients of one node."""
        return a + b if a.size < sum_from else large_sum(a, b)

    @staticmethod
    def own(g: Any) -> Any:
        """A copy, for a leaf that keeps it."""
        return g.copy()

    @staticmethod
    def as_tensor(g: Any) -> Tensor:
        """The gradient as hooks see it."""
        return g.tensor() if hasattr(g, "tensor") else from_array(np.asarray(g))

    @staticmethod
    def from_tensor(t: Tensor, copy: bool = False) -> Any:
        """The gradient that a hook or the user gave; `copy`: for a leaf that keeps it."""
        if not t._dense:
            return sparse_graph().as_gradient(t)
        return t._array.copy() if copy else t._array

    @staticmethod
    def cast(t: Tensor, dtype: np.dtype) -> Tensor:
        """The gradient in NumPy's dtype."""
        return t.to(dtypes.of(dtype))

    @staticmethod
    def retained(t: Tensor) -> Tensor:
        """The gradient as `.grad` of a tensor with `retain_grad()`."""
        return t.clone()

    @staticmethod
    def parts(g: dict, facts: tuple) -> list:
        """The gradient of each output as a list: zeros where no gradient arrived, None for an output that is not
        differentiable, such as indices."""
        return [g[i] if i in g else fact if fact is None else np.zeros(*fact) for i, fact in enumerate(facts)]


class Tensors:
    """Gradients are tensors; the rules run as ops, which may be recorded."""

    __slots__ = ()
    method = "tensors"
    names = TENSORS
    records = True
    arriving = None

    def over(self, order: list[Node]) -> Tensors:
        return self

    @staticmethod
    def fit(g: Any, shape: tuple) -> Any:
        return sum_to_tensor(g, shape)

    @staticmethod
    def add(a: Tensor, b: Tensor) -> Tensor:
        return b + a if a.is_sparse else a + b  # dense + sparse is dense; there is no op sparse + dense

    @staticmethod
    def own(g: Any) -> Any:
        return g.clone()

    @staticmethod
    def as_tensor(g: Any) -> Tensor:
        return g

    @staticmethod
    def from_tensor(t: Tensor, copy: bool = False) -> Any:
        return t

    @staticmethod
    def cast(t: Tensor, dtype: np.dtype) -> Tensor:
        return t.to(dtypes.of(dtype))

    @staticmethod
    def retained(t: Tensor) -> Tensor:
        return t

    @staticmethod
    def parts(g: dict, facts: tuple) -> list:
        return [
            g[i] if i in g else fact if fact is None else created(from_array(np.zeros(*fact)))
            for i, fact in enumerate(facts)
        ]


GradientKind = Arrays | Tensors
AS_ARRAYS, AS_TENSORS = Arrays(), Tensors()
