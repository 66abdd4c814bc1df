"""The check of anomaly detection: it tests the gradients of each node of backward for nan and inf, and finds their
origin.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import Any

import numpy as np
from numpy import generic, ndarray, vdot

from rushlight.base.errors import runtime_error
from rushlight.core.engine import reachable, tensors_in
from rushlight.core.node import Node
from rushlight.core.tensor import Tensor, numbers

NAN, BOTH = "nan", "nan or inf"  # the values of `mode().checks`, besides ""


def finite(array: np.ndarray) -> bool:
    """Whether all numbers are finite.

    A finite dot product of the array with itself proves that all numbers are finite, in one pass at BLAS's speed. If
    the product is not finite, it may have overflowed, and each number is checked.
    """
    kind = array.dtype.kind
    if kind == "f":
        # `vdot` copies arrays that are not C-contiguous
        flat = array if array.flags.c_contiguous else array.T
        if isfinite(vdot(flat, flat)):
            return True
    return kind in "biu" or bool(np.isfinite(array).all())


def check(node: Node, outgoing: Any, looks_for: str) -> None:
    """RuntimeError if a gradient from the node's rules is not finite; the message names the statement and the origin of
    nan or inf.
    """
    for i, g in enumerate(outgoing):
        array: Any = numbers(g) if isinstance(g, Tensor) else g if isinstance(g, (ndarray, generic)) else None
        # None: no gradient, or Parts, whose gradients have been checked already
        if array is None or finite(array):
            continue
        found = "nan" if np.isnan(array).any() else "inf"
        if found in looks_for:
            raise runtime_error(
                f"Function '{node.name()}' returned {found} values in its {i}th output.",
                "check this statement for 0 * inf, 0 / 0, sqrt or log at 0; clamp() or a small eps avoids them",
                made_at=node.made_at,
                began=beginning(node),
            )


def beginning(node: Node) -> str:
    """The oldest saved value of the forward pass that is not finite, in words. nan is named before inf."""
    known = [(maker, array) for below in reachable([node]) for maker, array in values(below) if not finite(array)]
    known = [(maker, array) for maker, array in known if np.isnan(array).any()] or known
    if not known:
        return "in backward: the values that the forward pass saved are finite"
    maker, array = min(known, key=lambda pair: 0 if pair[0] is None else pair[0].seq)
    bad = array[~np.isfinite(array)].reshape(-1)[0]
    if maker is None or maker.leaf:
        return f"in the forward pass: an input of shape {array.shape} contains {bad}"
    return f"in the forward pass: {maker.name()} made {bad} at {maker.made_at}"


def values(node: Node) -> Iterator[tuple[Node | None, np.ndarray]]:
    """(the node that made the array, the array) for each tensor of the forward pass that `node` has saved."""
    leaf = getattr(node, "variable", None)
    if leaf is not None:
        yield node, numbers(leaf)
    for tensor in tensors_in(node.saved or ()):
        yield tensor._node, numbers(tensor)
    op = node.op
    if op is None or not node.saved:
        return
    kept = dict(zip(op.saves, node.saved))
    if isinstance(kept.get("out"), np.ndarray):
        yield node, kept["out"]
    elif (
        op.elementwise
        and not op.settings
        and all(isinstance(getattr(kept.get(name), "_array", None), ndarray) for name in op.inputs)
    ):
        yield node, np.asarray(op.kernel(*[kept[name]._array for name in op.inputs]))
