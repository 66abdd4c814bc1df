"""Names of nodes (grad_fn) for cases in which torch has several ops and the table has one: each is a function of the
node, called when the name is shown. For the reverse case, see `called`.
"""

from __future__ import annotations

from collections.abc import Callable
from types import EllipsisType
from typing import Any

from rushlight.core.families import POINTS
from rushlight.core.node import Node
from rushlight.core.tensor import Tensor


def of_product(node: Any) -> str:
    """torch's last op in a product: for two matrices the product; for stacks, which are folded, the unfolding."""
    return "MmBackward0" if len(node.shape) == 2 else "UnsafeViewBackward0"


def of_linear(node: Any) -> str:
    """torch's last op in `linear`: addmm with a bias, otherwise a product; for inputs that are folded into a matrix,
    the unfolding.
    """
    if node.edges[2] is not None:
        return "AddmmBackward0" if len(node.shape) == 2 else "ViewBackward0"
    return "SqueezeBackward4" if len(node.shape) == 1 else of_product(node)


def of_index(node: Any) -> str:
    """The name for the last part of an index that has an effect: x[0] selects, x[:, None] unsqueezes, x[1:] slices."""
    key = node.saved[-1] if node.saved else ()  # freed by backward
    for part in reversed(key):
        if part is None or part is True:
            return "UnsqueezeBackward0"
        if not isinstance(part, (slice, EllipsisType)):
            return "SelectBackward0"
        if isinstance(part, slice) and part != slice(None):
            break
    return "SliceBackward0"


def of_pool(kind: str, indices: str = "") -> Callable[[Any], str]:
    """`kind`, the number of spatial dimensions, `indices`: MaxPool2DWithIndicesBackward0. One spatial dimension is two
    with a dimension squeezed.
    """

    def name(node: Any) -> str:
        # a pool with indices has two outputs: take the shape of the first
        shape = node.shape or (node.saved[-1][0][0] if node.saved else (1, 1, 1, 1))
        n = len(shape) - 2
        return "SqueezeBackward1" if n == 1 else f"{kind}{n}D{indices}Backward0"

    return name


def of_reduction(kind: str) -> Callable[[Any], str]:
    """`kind`, followed by 0 for a reduction of all elements, by 1 for a reduction along dimensions."""

    def name(node: Any) -> str:
        kept = node.saved[-1] if node.saved else None  # freed by backward
        whole = not node.shape if kept is None else kept is POINTS[len(kept)]
        return f"{kind}Backward{0 if whole else 1}"

    return name


def of_power(node: Any) -> str:
    """Names for a power with a number as exponent, a tensor as exponent, and a number as base."""
    base, exponent = node.edges
    return f"PowBackward{0 if exponent is None else 1 if base is not None else 2}"


def beyond(node: Any) -> tuple:
    """`next_functions` of a node, skipping the nodes that torch shows as one with this node."""
    found = Node.next_functions.fget(node)  # type: ignore[attr-defined]
    for part, _ in found:
        if part is not None and part.name() == node.name() and "next_functions" not in vars(type(part)):
            return tuple(part.next_functions)
    return found


RENAMED: dict[tuple[type, str], type] = {}  # a cache; its size is bounded by the ops and names in this package


def called(t: Tensor, name: str) -> Tensor:
    """The tensor, whose `grad_fn` shows under torch's name: `tensor(0.5, grad_fn=<MseLossBackward0>)`."""
    node = t._node
    if node is not None and not node.leaf:
        kind = type(node)
        if (kind, name) not in RENAMED:
            RENAMED[kind, name] = type(
                name,
                (kind,),
                {"__slots__": (), "__module__": Node.__module__, "name": Node.name, "next_functions": property(beyond)},
            )
        node.__class__ = RENAMED[kind, name]
    return t
