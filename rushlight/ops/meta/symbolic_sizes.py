"""Small arrays in place of meta tensors (ops/meta/meta_tensors.py), on which an op runs to determine the shapes of its
results.

Most ops pass sizes on and do not compute with them: the shape of a product of 4096 x 11008 follows from the shape of a
product of 2 x 3. For such ops the distinct sizes, smallest first, become 2, 3, 4, ..., and are replaced by the true
sizes in the result. So the op itself determines broadcasting, dtypes and memory layout, for any sizes. A view runs on
an array of the true shape with one element of memory. An op that computes with sizes has a `sizes` function in its
entry, or runs on zeros of the true shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from rushlight.core.families import reduction, view
from rushlight.core.table import Op
from rushlight.kernels.layout import lie


class Unknown(Exception):
    """The result has a size that none of the inputs has."""


def passed_on(op: Op, args: tuple) -> int:
    """The number of leading sizes that the op passes on without computing with them."""
    passed = op.options.get("sizes", "all" if op.elementwise or op.family is reduction else None)
    if passed == "all":
        return 64
    groups = args[len(op.inputs) + op.settings.index("groups")] if "groups" in op.settings else 1
    return 2 if passed == "leading" and groups == 1 else 0


def ways(op: Op | None, args: tuple, metas: list) -> Iterable[tuple[Callable, Callable]]:
    """Pairs of functions to run the op with, the cheapest pair first: (`Meta` -> array, array of the result -> shape
    and strides).
    """
    if op is not None and metas:
        if op.family is view and (not op.options.get("copies") or args[0]._array.flags.c_contiguous):
            yield lambda a: a.seen(), layout_of
        elif front := passed_on(op, args):
            yield renamed(metas, front)
    yield lambda a: zeros(a.shape, a.dtype, a.strides), layout_of


def layout_of(array: np.ndarray) -> tuple[tuple, tuple | None]:
    """Shape and strides of an array; the strides are None for C order."""
    return array.shape, None if array.flags.c_contiguous else array.strides


def zeros(shape: tuple, dtype: np.dtype, strides: tuple) -> np.ndarray:
    """Zeros with these strides. np.zeros reserves memory that is not used until it is written."""
    steps = tuple(s // dtype.itemsize for s in strides)
    n = 0 if 0 in shape else 1 + sum((k - 1) * step for k, step in zip(shape, steps))
    return lie(np.zeros(n, dtype), shape, steps, 0)


def dense(shape: tuple, strides: tuple, itemsize: int) -> tuple:
    """Strides without gaps, in the order of the given strides; 0 stays 0."""
    steps, step = [0] * len(shape), itemsize
    for d in sorted(range(len(shape)), key=lambda d: (strides[d], shape[d], -d)):
        if strides[d]:
            steps[d], step = step, step * max(shape[d], 1)
    return tuple(steps)


def renamed(metas: list, front: int) -> tuple[Callable, Callable]:
    """Functions that replace the sizes of the first `front` dimensions by 2, 3, ..., and back."""
    sizes = sorted({n for a in metas for n in a.shape[:front] if n > 1})
    small = {0: 0, 1: 1, **{n: i for i, n in enumerate(sizes, 2)}}
    large = {i: n for n, i in small.items()}

    def stand_in(a: Any) -> np.ndarray:
        shape = (*[small[n] for n in a.shape[:front]], *a.shape[front:])
        return zeros(shape, a.dtype, dense(shape, a.strides, a.itemsize))

    def put_back(array: np.ndarray) -> tuple[tuple, tuple | None]:
        if not all([n in large for n in array.shape[:front]]):
            raise Unknown
        shape = (*[large[n] for n in array.shape[:front]], *array.shape[front:])
        return shape, None if array.flags.c_contiguous else dense(shape, array.strides, array.itemsize)

    return stand_in, put_back
