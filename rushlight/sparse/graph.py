"""The graph of sparse tensors: nodes whose gradients are tensors, dense or sparse.

A rule of `linked` is a function of tensors: it takes the gradient of the result and the saved values, and returns the
gradient of one input, dense or sparse, as torch's rule does. If gradients are arrays (core/worlds.py), a
sparse gradient is a `SparseGradient`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from sys import _getframe as frame
from typing import Any, TypeVar
from weakref import ref

import numpy as np

from rushlight.base.errors import not_implemented_error, runtime_error
from rushlight.core.mode import mode
from rushlight.core.node import Node, Start, outside, tick, with_hooks
from rushlight.core.tensor import ADDING, TANGENTS, AccumulateGrad, Tensor, from_array
from rushlight.ops.grad_mode import no_grad

T = TypeVar("T", bound=Tensor)
Rule = Callable[..., Tensor]


def is_dense(t: Tensor) -> bool:
    """Whether the tensor has an array."""
    return t._dense


class SparseGradient:
    """A sparse tensor as a gradient among arrays. The engine adds it like an array."""

    __slots__ = ("of",)
    __array_ufunc__ = None  # array + gradient calls __radd__
    size = 0  # too small for the faster ways of a sum

    def __init__(self, of: Tensor):
        self.of = of

    shape = property(lambda self: tuple(self.of.shape))
    dtype = property(lambda self: self.of.dtype.numpy)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        dense = self.of._filled()._array  # type: ignore[attr-defined]
        return dense if dtype is None else dense.astype(dtype)

    def __add__(self, other: Any) -> Any:
        return as_gradient(plus(self.of, as_tensor(other)))

    __radd__ = __add__

    def copy(self) -> SparseGradient:
        return self

    def tensor(self, like: Tensor | None = None) -> Tensor:
        """The sparse tensor, in the dtype and the layout of `like`."""
        if like is None:
            return self.of
        return in_layout(self.of.to(like.dtype), like)


def in_layout(found: Tensor, like: Tensor) -> Tensor:
    """A sparse gradient in the layout of the sparse tensor `like`; COO for a dense one."""
    if is_dense(like) or found.layout is like.layout:
        return found
    return found.to_sparse(layout=like.layout, blocksize=getattr(like, "_block", None))


def first_gradient(t: Tensor, g: Tensor | None, i: int) -> Tensor:
    """The gradient with which backward starts at a sparse tensor `t`, after checks."""
    if hasattr(t, "_first_gradient") and (g is not None or t.numel() == 1):
        return t._first_gradient(g)
    if g is None:
        raise runtime_error(
            "grad can be implicitly created only for scalar outputs",
            "reduce it first (loss.sum()), or give backward(gradient)",
            shape=tuple(t.shape),
        )
    if g.shape != t.shape:
        raise runtime_error(
            f"Mismatch in shape: grad_output[{i}] has a shape of {g.shape} and output[{i}] has a shape of {t.shape}.",
            "give a gradient of the output's shape",
        )
    return getattr(g, "_coo", g).to(t.dtype)


def as_tensor(g: Any) -> Tensor:
    """A gradient among arrays as a tensor."""
    return g.tensor(None) if isinstance(g, SparseGradient) else from_array(np.asarray(g))


def as_gradient(t: Tensor) -> Any:
    """A tensor as a gradient among arrays."""
    return t._array if is_dense(t) else SparseGradient(t)


def plus(a: Tensor, b: Tensor) -> Tensor:
    """a + b for gradients: the sum of a dense and a sparse one is dense."""
    for one, other in ((a, b), (b, a)):
        if hasattr(one, "_plus"):
            return one._plus(other)
    return b + a if is_dense(b) and not is_dense(a) else a + b


class SparseNode(Node):
    """The node of an op with a sparse input or a sparse result. `rules`: a rule for each edge, with the dtype of the
    input."""

    __slots__ = ("rules",)
    rules: tuple[tuple[Rule, Any], ...]

    def arrays(self, g: Any) -> tuple:
        with no_grad():
            found = self.tensors(as_tensor(g))
        return tuple([None if h is None else as_gradient(h) for h in found])

    def tensors(self, g: Tensor) -> tuple:
        saved = self.saved or ()
        return tuple(
            [
                None if edge is None else self.fitted(rule(g, *saved), edge, dtype)
                for edge, (rule, dtype) in zip(self.edges, self.rules)
            ]
        )

    def fitted(self, h: Tensor, edge: Node, dtype: Any) -> Tensor:
        """A gradient in the dtype of the input; dense unless the input's node accepts a sparse one."""
        if h.is_complex() and not dtype.is_complex:
            h = h.real if is_dense(h) else h.holding(h.elements().real)  # type: ignore[attr-defined]
        if h.dtype is not dtype:
            h = h.to(dtype)
        fits = is_dense(h) or tuple(h.shape) == tuple(edge.shape or ()) and takes_sparse(edge)
        return h if fits else h._filled()  # type: ignore[attr-defined]


class SparseStart(Start):
    """The node of a sparse input of a function that a transform differentiates."""

    __slots__ = ()


def takes_sparse(node: Node) -> bool:
    """Whether the node accepts a sparse gradient: nodes of sparse tensors, and leaves, whose node is changed to accept
    one.
    """
    if isinstance(node, (SparseNode, SparseStart, AccumulateSparse)):
        return True
    if not isinstance(node, AccumulateGrad):
        return False
    accumulates_sparse(node)
    return True


@cache
def node_class(name: str) -> type[SparseNode]:
    return type(name, (SparseNode,), {"__slots__": ()})


def linked(result: T, name: str, sources: list[tuple[Tensor, Rule]], *saved: Tensor | None) -> T:
    """The result of an op, with a node if an input has one. `sources`: (input, its rule). NotImplementedError in
    forward mode where the result has lost the tangents."""
    if any([TANGENTS in t.__dict__ for t, _ in sources]) and TANGENTS not in result.__dict__:
        raise not_implemented_error(
            f"Trying to use forward AD with {name.removesuffix('Backward')} of sparse tensors that does not "
            "support it because it has not been implemented yet.",
            "differentiate it backward: torch.func.grad, torch.func.jacrev",
        )
    if mode().grad and any([t._node is not None for t, _ in sources]):
        node = object.__new__(node_class(name + "0"))
        node.edges = tuple([t._node for t, _ in sources])
        node.rules = tuple([(rule, t.dtype) for t, rule in sources])
        node.saved = tuple([t if t is None else own(t) for t in saved])
        node.shape, node.seq = tuple(result.shape), tick()
        node.where = outside(frame(1))
        result._node = node
    return result


# -- leaves ----------------------------------------------------------------------------------------


class AccumulateSparse(AccumulateGrad):
    """The node of a leaf whose gradient may be sparse: a sparse leaf, or a dense leaf that received a sparse
    gradient.
    """

    __slots__ = ()

    def __init__(self, tensor: Tensor):
        self.tensor = ref(tensor)
        self.edges, self.saved, self.seq = (), (), 0
        self.shape, self.where = tuple(tensor.shape), None

    def name(self) -> str:
        return "AccumulateGrad"

    def arrays(self, g: Any) -> tuple:
        leaf = self.tensor()
        if leaf is None or leaf._node is None:
            return ()
        sparse = hasattr(g, "tensor")
        if not sparse and is_dense(leaf) and (leaf._grad is None or is_dense(leaf._grad)):
            return super().arrays(g)
        found = g.tensor(leaf) if sparse else from_array(np.array(g, leaf.dtype.numpy))
        with no_grad(), ADDING:
            known = leaf._grad
            if known is not None and is_dense(known) and known._node is None:
                known.add_(found)
            else:
                leaf._grad = own(found) if known is None else plus(known, found)
        return ()

    def tensors(self, g: Tensor) -> tuple:
        leaf = self.tensor()
        if leaf is not None and leaf._node is not None:
            g = g.to(leaf.dtype)
            g = own(g) if g._viewing is None else g.clone()
            with ADDING:
                leaf._grad = g if leaf._grad is None else plus(leaf._grad, g)
        return ()


def own(found: Tensor) -> Tensor:
    """An alias of a sparse tensor, so that in-place writes leave the given tensor object alone. A dense tensor is
    returned itself.
    """
    return found if is_dense(found) else found.alias()  # type: ignore[attr-defined]


def accumulates_sparse(node: Any) -> None:
    """Make the node of a dense leaf take sparse gradients."""
    if type(node) is AccumulateGrad:
        node.__class__ = AccumulateSparse
    elif type(node) is with_hooks(AccumulateGrad):
        node.__class__ = with_hooks(AccumulateSparse)
