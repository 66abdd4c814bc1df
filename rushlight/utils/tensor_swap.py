"""torch.utils.swap_tensors: two tensors exchange their content, for all references to them."""

from __future__ import annotations

from typing import Any
from weakref import ref

from rushlight.base.errors import runtime_error
from rushlight.core.node import Node
from rushlight.core.tensor import AccumulateGrad, Tensor

SLOTS = ("_array", "_node", "_grad", "_viewing", "_writes")


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Exchange elements, dtype, gradient, node, attributes and class of two tensors.

    RuntimeError for a tensor with views, since the views would show the other tensor.

    >>> x, y = rushlight.ones(2), rushlight.tensor([3])
    >>> rushlight.utils.swap_tensors(x, y)
    >>> x, y
    (tensor([3]), tensor([1., 1.]))
    """
    for t in (t1, t2):
        if any(view() is not None for view in getattr(t, "_views", ())):
            raise runtime_error(
                "swap_tensors: a tensor that has views cannot be swapped", "drop the views first", shape=tuple(t.shape)
            )
    first, second = content(t1), content(t2)
    fill(t1, *second)
    fill(t2, *first)


def content(t: Tensor) -> tuple[type, dict[str, Any], dict[str, Any]]:
    """(class, values of the slots, other attributes) of a tensor."""
    return type(t), {name: getattr(t, name) for name in SLOTS}, dict(vars(t))


def fill(t: Tensor, kind: type, held: dict[str, Any], attributes: dict[str, Any]) -> None:
    """Give a tensor the content of another."""
    t.__class__ = kind
    for name, value in held.items():
        setattr(t, name, value)
    vars(t).clear()
    vars(t).update(attributes)
    node: Node | None = t._node
    if isinstance(node, AccumulateGrad):  # the leaf's gradient is now accumulated in this tensor
        node.tensor = ref(t)
