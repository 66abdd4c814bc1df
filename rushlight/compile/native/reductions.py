"""Rows that become one number: sums, means, extremes and their places, norms, variances, and products with vectors."""

from __future__ import annotations

import math
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from rushlight.compile.graph import Call
from rushlight.compile.native.errors import NotNative
from rushlight.compile.native.loop_nest import Lanes, Pieces
from rushlight.compile.native.lowering import Lowering, anchor
from rushlight.compile.native.places import row_major
from rushlight.compile.native.row_loops import F32, LARGEST, PRODUCT, SMALLEST, SQUARES, SUM, TOP, Fold, Row, Rows
from rushlight.compile.native.rows import SINGLE, begun, dims_of
from rushlight.compile.native.schedule import Group
from rushlight.compile.native.sizes import new_value
from rushlight.loops import llvm
from rushlight.loops.llvm import INT64, Number, call_intrinsic
from rushlight.ops.linalg import matmul
from rushlight.ops.math import elementwise as E
from rushlight.ops.reduce import reduce
from rushlight.ops.reduce.vector_norm import vector_norm

MAGNITUDES = Fold(0.0, llvm.Value.__add__, abs)
LARGEST_MAGNITUDE = Fold(0.0, F32["maximum"], abs)
FIRST = np.inf  # where the place of the first of some numbers starts


@anchor(reduce.sum)
def sum_(low: Lowering, group: Group) -> None:
    folded(low, group, SUM)


@anchor(reduce.nansum)
def nansum(low: Lowering, group: Group) -> None:
    folded(low, group, Fold(0.0, llvm.Value.__add__, lambda x: llvm.select(x == x, x, 0.0)))


@anchor(reduce.mean)
def mean(low: Lowering, group: Group) -> None:
    folded(low, group, SUM, lambda total, n: total / float(n))


@anchor(reduce.prod)
def prod_(low: Lowering, group: Group) -> None:
    folded(low, group, PRODUCT)


@anchor(reduce.amax)
def amax(low: Lowering, group: Group) -> None:
    folded(low, group, LARGEST)


@anchor(reduce.amin)
def amin(low: Lowering, group: Group) -> None:
    folded(low, group, SMALLEST)


@anchor(reduce.logsumexp)
def logsumexp(low: Lowering, group: Group) -> None:
    """The largest number is subtracted unless it is infinite."""

    def number(row: Row, _: int) -> llvm.Value:
        (top,) = row.sweep(None, TOP)
        top = llvm.select(abs(top) < np.inf, top, 0.0)
        (total,) = row.sweep(lambda x: F32["exp"](x - top), SUM)
        return F32["log"](total) + top

    x, dim, keepdim = group.anchor.args
    Reduction(low, group, dim, keepdim).write(number)


@anchor(reduce.var_core)
def var_core(low: Lowering, group: Group) -> None:
    """The mean square of deviations. The row's first number is subtracted before: differences of neighbouring numbers
    have no rounding error, and equal numbers give 0."""
    _, axes, correction = group.anchor.args

    def number(row: Row, n: int) -> llvm.Value:
        first = row.first()
        mean_ = row.sweep(lambda x: x - first, SUM)[0] / float(n)
        return row.sweep(lambda x: x - mean_, SQUARES)[0] / float(n - correction)

    reduction = Reduction(low, group, axes, True)
    if reduction.numbers <= correction:
        raise NotNative("a variance of too few numbers")
    reduction.write(number)


@anchor(vector_norm)
def norm(low: Lowering, group: Group) -> None:
    _, p, axes, keepdim = group.anchor.args
    root = lambda total: call_intrinsic("sqrt", total)
    known: dict[float, tuple[Fold, Callable]] = {
        2: (SQUARES, root), 1: (MAGNITUDES, lambda x: x), math.inf: (LARGEST_MAGNITUDE, lambda x: x)
    }  # fmt: skip
    if p not in known:
        raise NotNative(f"a norm of order {p}")
    fold, after = known[p]
    Reduction(low, group, axes, keepdim).write(lambda row, n: after(row.sweep(None, fold)[0]), fold)


@anchor(reduce.argmax, reduce.max_dim)
def argmax(low: Lowering, group: Group) -> None:
    placed(low, group, LARGEST)


@anchor(reduce.argmin, reduce.min_dim)
def argmin(low: Lowering, group: Group) -> None:
    placed(low, group, SMALLEST)


def placed(low: Lowering, group: Group, fold: Fold) -> None:
    """The extreme of each row and its first place, or the place alone. A nan is the extreme."""
    x, dim, keepdim = group.anchor.args
    outs = group.anchor.outs
    if dim is None and low.place(x).strides != row_major(x.shape):
        raise NotNative("the place of an extreme in other orders")
    if group.before:
        raise NotNative("the place of an extreme of computed numbers")

    def numbers(row: Row, _: int) -> list[llvm.Value]:
        (best,) = row.sweep(None, fold)
        here = lambda v, place: llvm.select((v == best) | (v != v), place, FIRST)
        (place,) = row.sweep(None, Fold(FIRST, F32["minimum"], here, placed=True))
        place = llvm.converted(place, INT64)
        return [best, place] if len(outs) == 2 else [place]

    Reduction(low, group, dim, keepdim).write(numbers)


@anchor(matmul.mv, matmul.dot)
def vector_product(low: Lowering, group: Group) -> None:
    """x (..., K), y (K,): the sum of the products."""
    x, y = group.anchor.args
    both = new_value(x.shape, x.dtype)
    product = Call(E.mul.op.name, (x, y), (both,))
    total = Call(reduce.sum.op.name, (both, (len(x.shape) - 1,), False), group.anchor.outs)
    folded(low, Group(total, group.steps, group.out, [product]), SUM)


def folded(
    low: Lowering, group: Group, fold: Fold, after: Callable[[llvm.Value, int], llvm.Value] = lambda total, n: total
) -> None:
    """out = after(the folded row, its length). args: x, dim, keepdim."""
    _, dim, keepdim = group.anchor.args
    Reduction(low, group, dim, keepdim).write(lambda row, n: after(row.sweep(None, fold)[0], n), fold)


class Reduction:
    """The arrays of a group whose anchor makes a number of each row of x. A second result of the anchor is stored
    without elementwise steps."""

    def __init__(self, low: Lowering, group: Group, dim: Any, keepdim: bool):
        x, outs = group.anchor.args[0], group.anchor.outs
        n = len(x.shape)
        if x.dtype != SINGLE or any(v.dtype.name not in ("float32", "int64") for v in outs):
            raise NotNative("a reduction of other dtypes")
        self.outs, self.dims = outs, dims_of(dim, n)
        kept = [d for d in range(n) if d not in self.dims]
        self.numbers = prod([x.shape[d] for d in self.dims])
        more = [v for v in outs[1:] if low.schedule.uses.get(v)]
        for v in more:
            low.make(v)
        self.step, self.source = begun(low, group, [*range(n)] if keepdim else kept)
        self.shape = group.out.shape
        merge = None if self.shape else [()]
        groups = [group, *[Group(None, [], v) for v in more]]
        self.pieces = [Pieces(self.step, g, self.shape, merge) for g in groups]
        # for each dimension of x the result's dimension
        self.own = [(d if keepdim else kept.index(d)) if d in kept else None for d in range(n)]

    def write(self, number: Callable[[Row, int], Any], fold: Fold | None = None) -> None:
        """number(row, its length): a number for each result. `fold`: the only sweep of `number`."""
        arrays = [s for p in self.pieces for s in (p.out_strides, *p.strides.values())]
        spread = [tuple([0 if k is None else s[k] for k in self.own]) for s in arrays]

        def body(row: Row) -> None:
            found = number(row, self.numbers)
            made = dict(zip(self.outs, found if isinstance(found, list) else [found]))
            lanes = self.lanes(rows, row.valid)
            for pieces in self.pieces:
                pieces.finish(made, lanes)

        rows = Rows(self.step, self.source, self.dims, spread, body, fold)
        rows.write()

    def lanes(self, rows: Rows, valid: int) -> Lanes:
        """The place of the present rows in the result."""
        at: list[Number] = [0] * max(len(self.shape), 1)
        for d, k in enumerate(self.own):
            if k is not None:
                at[k] = rows.at[d]
        if rows.in_row or not rows.count:
            return Lanes(at, 0, 0, 1)
        return Lanes(at, self.own[rows.along] or 0, rows.width, valid)
