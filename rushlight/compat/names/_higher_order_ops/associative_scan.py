"""torch._higher_order_ops.associative_scan: prefixes of an associative function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.base.pytree import tree_flatten, tree_unflatten
from rushlight.ops.shape.view_functions import cat


def associative_scan(
    combine_fn: Callable, xs: Any, dim: int, reverse: bool = False, combine_mode: str = "pointwise"
) -> Any:
    """out_i = combine_fn(out_{i-1}, x_i), out_0 = x_0, along `dim`: prefixes, in log2(n) steps on whole tensors. From
    the end if `reverse`.

    `xs`: a tensor or a tree of tensors of one length along `dim`. `combine_fn(a, b)` takes and returns such trees; it
    must be associative. ValueError for no tensors.

    >>> from rushlight._higher_order_ops.associative_scan import associative_scan
    >>> associative_scan(lambda a, b: a * b, rushlight.tensor([1.0, 2.0, 3.0, 4.0]), 0)
    tensor([ 1.,  2.,  6., 24.])
    """
    leaves, spec = tree_flatten(xs)
    if not leaves:
        raise ValueError("Expected at least 1 xs leaf")
    leaves = [x.flip(dim) if reverse else x for x in leaves]
    length, step = leaves[0].shape[dim], 1
    while step < length:  # leaves[i] covers the last `step` elements up to i
        before = tree_unflatten([x.narrow(dim, 0, length - step) for x in leaves], spec)
        after = tree_unflatten([x.narrow(dim, step, length - step) for x in leaves], spec)
        combined = tree_flatten(combine_fn(before, after))[0]
        leaves = [cat([x.narrow(dim, 0, step), c], dim) for x, c in zip(leaves, combined)]
        step *= 2
    return tree_unflatten([x.flip(dim) if reverse else x for x in leaves], spec)


__all__ = ["associative_scan"]
