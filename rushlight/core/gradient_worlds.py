"""What gradients are while backward runs: arrays, or tensors whose computation is recorded.

The engine is written once. What differs between the two worlds stands here, as methods. A faster
world plugs in from outside: `rushlight.fast.backward_chains.Deferred`."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from operator import add
from typing import Any

import numpy as np

from rushlight.base import dtypes
from rushlight.core.faster import Site, dispatching
from rushlight.core.node import Node
from rushlight.core.tensor import Tensor, from_array
from rushlight.kernels.summation import added


@lru_cache(maxsize=1024)
def broadcast_axes(shape: tuple, to: tuple) -> tuple[int, ...]:
    """The dimensions along which `to` was repeated to make `shape`."""
    extra = len(shape) - len(to)
    return (*range(extra), *(i + extra for i, n in enumerate(to) if n == 1 != shape[i + extra]))


def sum_to_array(g: np.ndarray, shape: tuple) -> np.ndarray:
    axes = broadcast_axes(g.shape, shape)
    r = added(g, axes) if axes else g
    return r if r.shape == shape else r.reshape(shape)


def sum_to_tensor(g: Any, shape: tuple) -> Any:
    axes = broadcast_axes(g.shape, shape)
    return g.sum(axes).reshape(shape) if axes else g.reshape(shape)


class Arrays:
    """Gradients are arrays; nothing is recorded."""

    __slots__ = ()
    records = False  # whether backward is recorded itself, for higher derivatives
    # (g, node) -> the gradient as the node's rules take it; None: as it is
    arriving: Callable[[Any, Node], Any] | None = None

    def over(self, order: list[Node]) -> Arrays:
        """The world in which backward goes through these nodes."""
        return self

    @staticmethod
    def run(node: Node, g: Any) -> Any:
        """The gradients of the node's inputs."""
        return node.arrays(g)

    @staticmethod
    def fit(g: Any, shape: tuple) -> Any:
        """The gradient of an input of this shape, which the forward has broadcast."""
        return sum_to_array(g, shape)

    # (a, b) -> the sum of two gradients of one node
    add = staticmethod(dispatching(Site("sum of gradients"), add))

    @staticmethod
    def own(g: Any) -> Any:
        """A copy, for a leaf that keeps it."""
        return g.copy()

    @staticmethod
    def as_tensor(g: Any) -> Tensor:
        """The gradient as hooks see it."""
        return from_array(np.asarray(g))

    @staticmethod
    def from_tensor(t: Tensor, copy: bool = False) -> Any:
        """The gradient that a hook or the user gave; `copy`: for a leaf that keeps it."""
        return t._array.copy() if copy else t._array

    @staticmethod
    def cast(t: Tensor, dtype: np.dtype) -> Tensor:
        """The gradient in NumPy's dtype."""
        return from_array(t._array.astype(dtype))

    @staticmethod
    def retained(t: Tensor) -> Tensor:
        """The gradient as `.grad` of a tensor with `retain_grad()`."""
        return from_array(t._array.copy())


class Tensors:
    """Gradients are tensors; the rules run as ops, which may be recorded."""

    __slots__ = ()
    records = True
    arriving = None

    def over(self, order: list[Node]) -> Tensors:
        return self

    @staticmethod
    def run(node: Node, g: Any) -> Any:
        return node.tensors(g)

    @staticmethod
    def fit(g: Any, shape: tuple) -> Any:
        return sum_to_tensor(g, shape)

    add = staticmethod(add)

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
        return t.to(dtypes.of(dtype))  # type: ignore[attr-defined]

    @staticmethod
    def retained(t: Tensor) -> Tensor:
        return t


World = Arrays | Tensors
AS_ARRAYS, AS_TENSORS = Arrays(), Tensors()
