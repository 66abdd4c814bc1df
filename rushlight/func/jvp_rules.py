"""The forward-mode derivative of an op, J t, from its backward rules, g -> J' g.

J' g is linear in g, so the derivative of g -> J' g in the direction t is J t
(http://j-towns.github.io/2017/06/12/A-new-trick.html). Three short cuts: J of an elementwise op is diagonal, so the
rule with t in place of g gives J t; the tangent of a view is the same view of the tangent; an op that its entry
declares `linear` in an input is its own derivative."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import prod
from typing import Any

import numpy as np

from rushlight.core import families
from rushlight.core.backward import grad
from rushlight.core.mode import within
from rushlight.core.node import Hooks, Parts, Start, with_hooks
from rushlight.core.table import ruled_inputs
from rushlight.core.tensor import Tensor, created, from_array
from rushlight.core.worlds import TENSORS, sum_to_tensor
from rushlight.func import batching
from rushlight.func.batching import several
from rushlight.ops.index.along_dim import embedding, index_copy, scatter, without_gradient
from rushlight.ops.index.index_tensors import write_at

Given = Sequence[Tensor | None]


@cache
def places(op: Any) -> tuple[int | None, ...]:
    """For each edge of the op's nodes, the position of its input among the arguments; None for an input without a
    rule."""
    return tuple([op.inputs.index(name) if op.rules[name] else None for name in ruled_inputs(op)])


@cache
def linear_edges(op: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(edges of inputs in each of which the op is linear, edges of inputs in which the op is jointly linear)."""
    separately = op.inputs if op.family is families.view else op.options.get("linear", "").split()
    edges = ruled_inputs(op)
    return tuple(map(edges.index, separately)), tuple(map(edges.index, op.options.get("jointly", "").split()))


def differentiated(op: Any, args: tuple) -> Sequence:
    """The inputs that have an edge in the op's nodes, in the order of the edges."""
    if op.inputs == ("tensors",):
        return args[0] if op.rules["tensors"] else ()
    return [None if at is None else args[at] for at in places(op)]


def derivative(op: Any, args: tuple, outs: list, tangents: Given, record: bool, linear: bool = False) -> Sequence:
    """The tangent of each output; None for a constant output.

    `record`: whether the tangents are recorded. `linear`: the tangents are transposed later, and must be exact for
    that."""
    found: Sequence = [None] * len(outs)
    separately, jointly = linear_edges(op)
    left = list(tangents)
    if separately and op.inputs == ("tensors",):
        moved = tuple([zeros(x) if t is None else t for x, t in zip(args[0], tangents)])
        return as_list(TENSORS[op.name](moved, *args[1:]))
    if jointly and any([left[i] is not None for i in jointly]):
        given = list(args)
        for i in jointly:
            at: Any = places(op)[i]
            given[at], left[i] = zeros(args[at]) if left[i] is None else left[i], None
        found = [by_gather(op, given)] if linear and may_overwrite(op, args) else as_list(TENSORS[op.name](*given))
    for i in separately:
        if (t := left[i]) is not None:
            left[i] = None
            passed = with_exact_transpose(op, args) if linear else args
            found = added(found, linearly(op, passed, places(op)[i], t))
    if any([t is not None for t in left]):
        diagonal = op.elementwise and not any(
            x._array.dtype.kind == "c" for x in (*outs, *args) if isinstance(x, Tensor)
        )
        how = diagonally if diagonal else transposed
        found = added(found, how(op, args, outs, left, record))
    return found


def may_overwrite(op: Any, args: tuple) -> bool:
    """Whether the op writes at indices that may repeat, so that only the last write counts.

    The op's backward rule gives every written value a gradient, as torch's does; so the rule is not the exact
    transpose."""
    if op is write_at.op:
        *_, accumulate = args
        return not accumulate
    return op in (scatter.op, index_copy.op)


def with_exact_transpose(op: Any, args: tuple) -> tuple:
    """The arguments for which the op's backward rule is exact: the rule of `embedding` omits the row `padding_idx` (in
    a batch: `without_gradient`), although its tangent counts.
    """
    if op is embedding.op:
        return (*args[:-1], None)
    return (args[0], zeros(args[1])) if op is without_gradient.op else args


def by_gather(op: Any, given: list) -> Tensor:
    """The op as a gather from its concatenated inputs, whose backward rule is exact.

    The op itself, run on the positions of the elements, gives the index of the gather.
    """
    numbers, flat, start = list(given), [], 0
    for i in linear_edges(op)[1]:
        at: Any = places(op)[i]
        x = given[at]
        count = prod(x._array.shape)
        numbers[at] = created(from_array(np.arange(start, start + count).reshape(x._array.shape)))
        flat.append(TENSORS["reshape"](x, (count,)))
        start += count
    return TENSORS["cat"](flat, 0)[TENSORS[op.name](*numbers)]


def linearly(op: Any, args: tuple, at: Any, t: Tensor) -> list:
    """The tangents of an op that is linear in the input at position `at`: the op on the tangent, with added terms (a
    bias) left out."""
    given = list(args)
    for name in op.options.get("added", "").split():
        given[op.inputs.index(name)] = None
    given[at] = lying_as(t, args[at]) if "strides" in op.options else t
    return as_list(TENSORS[op.name](*given))


def as_list(made: Any) -> list:
    return list(made) if isinstance(made, (tuple, list)) else [made]


def added(found: Sequence, more: Sequence) -> list:
    return [b if a is None else a if b is None else a + b for a, b in zip(found, more)]


def diagonally(op: Any, args: tuple, outs: list, tangents: Given, record: bool) -> list:
    """The tangent of an elementwise op: the sum of its rules, each with the input's tangent in place of the
    gradient."""
    out, total = outs[0], None
    for i, t in enumerate(tangents):
        if t is not None:
            edges = tuple([True if i == j else None for j in range(len(tangents))])
            part = node_like(op, args, outs, edges).tensors(fitted(t, out))[i]
            total = part if total is None else total if part is None else total + part
    return [zeros(out) if total is None else fitted(total, out)]


def transposed(op: Any, args: tuple, outs: list, tangents: Given, record: bool) -> list:
    """The tangents of any op: the derivative of g -> J' g by g, in the direction of the inputs' tangents."""
    node = node_like(op, args, outs, tuple([None if t is None else True for t in tangents]))
    gs = {i: start(outs[i]) for i in batching.smooth(op, [x._array for x in outs])}
    with within(grad=True):
        with within(transposes=True):
            gradients = node.tensors(Parts(gs) if several(op) else gs[0]) if gs else ()
        pairs = [
            (sum_to_tensor(h, t._array.shape) if h._array.shape != t._array.shape else h, t)
            for h, t in zip(gradients, tangents)
            if h is not None and t is not None
        ]
        pairs = [(h, t) for h, t in pairs if h._node is not None]
        found = (
            grad(
                [h for h, _ in pairs], list(gs.values()), [t for _, t in pairs], create_graph=record, allow_unused=True
            )
            if pairs
            else (None,) * len(gs)
        )
    by_place = dict(zip(gs, found))
    return [(zeros(x) if by_place[i] is None else by_place[i]) if i in by_place else None for i, x in enumerate(outs)]


def start(out: Tensor) -> Tensor:
    """A gradient of an output, all 0 and a leaf; the rule is differentiated with respect to it."""
    g = zeros(out)
    g._node = Start(None, out._array.shape)
    return g


def node_like(op: Any, args: tuple, outs: list, edges: tuple) -> Any:
    """A node of the op outside any graph, with the saved values that the rules of `edges` need."""
    node: Any = object.__new__(with_hooks(op.node_class))
    node.extra, node.edges, node.seq, node.where, node.shape = Hooks(), edges, 0, None, outs[0]._array.shape
    # rules that read an output get the output itself, with its node
    node.extra.dual = lambda t, i: outs[i]
    node.saved = batching.saved(op, args, edges, [x._array for x in outs])
    return node


def zeros(x: Tensor) -> Tensor:
    return created(from_array(np.zeros(x._array.shape, x._array.dtype)))


def lying_as(t: Tensor, x: Tensor) -> Tensor:
    """The tangent t with the strides of x, so that as_strided views of both have the same elements."""
    return t if t.stride() == x.stride() else t._placed(x.stride())  # type: ignore[attr-defined]


def fitted(t: Tensor, x: Tensor) -> Tensor:
    """The tangent t in x's dtype, expanded to x's shape."""
    t = t if t._array.dtype == x._array.dtype else t.to(x.dtype)
    return t if t._array.shape == x._array.shape else t.expand(x._array.shape)
