"""The fallback of vmap for functions that need the numbers of their tensors: run each sample, stack the results.

The gradient (v' J of each sample) runs by the same fallback, so gradients nest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from rushlight.base.errors import runtime_error
from rushlight.base.pytree import TreeSpec, tree_flatten, tree_unflatten
from rushlight.core.mode import innermost as innermost_watcher
from rushlight.core.mode import mode
from rushlight.core.node import Node, Output, tick
from rushlight.core.tensor import Tensor, from_array
from rushlight.core.worlds import TENSORS
from rushlight.func import forward_ad
from rushlight.func.batching import Batch, Level, Part, innermost, slow, wrap
from rushlight.func.jvp_transform import jvp
from rushlight.func.vjp_transform import vjp


class OneByOne(Node):
    """The node of a function that ran sample by sample."""

    __slots__ = ("call", "varied", "smooth")
    call: Callable  # list of leaves -> (leaves of the results, their tree)
    varied: list[int]  # indices of the leaves that have a gradient
    smooth: dict[int, tuple]  # index of a differentiable output -> (shape, dtype)

    def tensors(self, g: Any) -> tuple:
        leaves = list(self.saved)  # type: ignore[arg-type]
        count, varied, smooth = len(leaves), self.varied, self.smooth
        given = [g[i] if i in g else from_array(np.zeros(*facts)) for i, facts in smooth.items()]

        def pull(*both: Any) -> tuple:
            outputs = restricted(self.call, varied, smooth, both[:count])
            return vjp(outputs, *[both[i] for i in varied])[1](both[count:])

        return one_by_one(pull, (*leaves, *given), {})

    arrays = tensors


def one_by_one(function: Callable, args: tuple, kwargs: dict) -> Any:
    """Run the function on each sample of the innermost level among its arguments; returns the stacked results,
    batched."""
    leaves, spec = tree_flatten((args, kwargs))
    level = innermost(leaves)
    slow(getattr(function, "__name__", "a function"))

    def call(given: list) -> tuple[list, TreeSpec]:
        a, k = tree_unflatten(given, spec)
        return tree_flatten(function(*a, **k))

    flat, tree = level.call_outside(stacked, call, leaves, level)
    outs = [wrap(t, level) if isinstance(t, Tensor) else t for t in flat]
    record(call, leaves, outs, level)
    push(call, leaves, outs, level)
    return tree_unflatten(outs, tree)


def stacked(call: Callable, leaves: list, level: Level) -> tuple[list, TreeSpec]:
    """(stacked results of all samples, tree of the results). RuntimeError without samples, or if shapes differ."""
    parts = [Part(a, level) if isinstance(a, Tensor) else a for a in leaves]
    made = [
        call([a if not isinstance(a, Part) else a.value.select(0, i) if a.mapped else a.value for a in parts])
        for i in range(level.size)
    ]
    if not made:
        raise runtime_error("vmap: this function runs sample by sample, so its output shape is unknown for 0 samples")
    columns = list(zip(*(flat for flat, _ in made)))
    if any(isinstance(t, Tensor) and t._array.shape != ts[0]._array.shape for ts in columns for t in ts):
        raise runtime_error(
            "vmap: We do not support batching operators that can output dynamic shape: the results of the samples "
            "differ in shape"
        )
    return [TENSORS["stack"](list(ts), 0) if isinstance(ts[0], Tensor) else ts[0] for ts in columns], made[0][1]


def push(call: Callable, leaves: list, outs: list, level: Level) -> None:
    """Compute the outputs' tangents, sample by sample, at each level of forward mode opened inside the vmap."""
    forward = innermost_watcher(forward_ad.Level, mode().watch)
    while forward is not None and forward.depth >= level.depth:
        tangents = [forward.tangent(a) if isinstance(a, Tensor) else None for a in leaves]
        varied = [i for i, t in enumerate(tangents) if t is not None]
        smooth = differentiable(outs)
        if varied and smooth:
            with forward.computing():
                found = one_by_one(
                    partial(pushed, call, varied, list(smooth)),
                    (forward.below(leaves), [tangents[i] for i in varied]),
                    {},
                )
            forward.give_all([outs[i] for i in smooth], found)
        forward = innermost_watcher(forward_ad.Level, forward.outer)


def pushed(call: Callable, varied: list[int], smooth: list[int], leaves: list, tangents: list) -> tuple:
    """The tangents of the outputs `smooth`, from the tangents of the inputs `varied`."""
    outputs = restricted(call, varied, smooth, leaves)
    return jvp(outputs, tuple(leaves[i] for i in varied), tuple(tangents))[1]


def restricted(call: Callable, varied: list[int], smooth: Iterable[int], leaves: Sequence) -> Callable:
    """The function from the inputs `varied` to the outputs `smooth`; the other inputs are constant."""

    def outputs(*xs: Tensor) -> tuple:
        whole = list(leaves)
        for i, x in zip(varied, xs):
            whole[i] = x
        made = call(whole)[0]
        return tuple(made[i] for i in smooth)

    return outputs


def differentiable(outs: list) -> dict[int, tuple]:
    """{index: (shape, dtype)} of the floating-point and complex outputs."""
    return {
        i: (t._array.shape, t._array.dtype)
        for i, t in enumerate(outs)
        if isinstance(t, Tensor) and (t.is_floating_point() or t.is_complex())
    }


def record(call: Callable, leaves: list, outs: list, level: Level) -> None:
    """Make the node of the outputs, if a batched argument is recorded."""
    nodes = [Part(a, level)._node if isinstance(a, Tensor) else None for a in leaves]
    varied = [i for i, node in enumerate(nodes) if node is not None]
    smooth = differentiable(outs)
    if not (mode().grad and varied and smooth):
        return
    node = OneByOne()
    node.call, node.varied, node.smooth, node.saved = call, varied, smooth, tuple(leaves)
    node.edges, node.seq, node.shape, node.where = tuple(nodes[i] for i in varied), tick(), None, None
    for i in smooth:
        outs[i]._node = Output(node, i, tick(), outs[i]._array.shape)


Batch.one_by_one = staticmethod(one_by_one)
