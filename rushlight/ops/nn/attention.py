"""Attention as one op, and its backward as another, so that the scores of all queries and keys need not be stored."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.core.backward import grad
from rushlight.core.build import build, inner
from rushlight.core.tensor import Tensor, created, from_array
from rushlight.core.worlds import ARRAYS, TENSORS
from rushlight.kernels import attention as kernels
from rushlight.ops.grad_mode import enable_grad
from rushlight.ops.linalg.matmul import mm
from rushlight.ops.math import elementwise as e
from rushlight.ops.nn.recurrent import copy  # the module also defines `joined`, a name of rules
from rushlight.ops.reduce.reduce import any as any_of
from rushlight.ops.reduce.reduce import softmax
from rushlight.ops.shape.views import transpose

if TYPE_CHECKING:  # names in rules, provided by the rule's world (core/worlds.py)
    from rushlight.core.rule_names import attention_twice, joined

ARRAYS["attention"], ARRAYS["attention_back"] = kernels.attention, kernels.attention_back

# tensors: q k v [mask] -> out, and log sum exp of each query's scores
# fmt: off
attention = inner(lambda tensors, /, causal, scale: attention(tensors, causal, scale),
    tensors=lambda gs, tensors, out, lse, causal, scale: attention_back(
        joined(tensors, out, lse, gs[0]), causal, scale
    ),
    outputs="out lse", fixed=1, node="ScaledDotProductFlashAttentionForCpuBackward0", sizes="all")
attention_back = inner(lambda tensors, /, causal, scale: attention_back(tensors, causal, scale),
    tensors=lambda gs, tensors, causal, scale: attention_twice(gs, tensors, causal, scale), list=True)
# fmt: on


# -- attention composed of ops: for returned weights and second derivatives -------


def weights(q: Tensor, k: Tensor, mask: Tensor | None, causal: bool, scale: float) -> tuple[Tensor, Tensor | None]:
    """softmax(q k^T scale + mask) (..., L, S), and a mask (..., L, 1) of the queries that may attend to at least one
    key, None without a mask.

    A query without an allowed key keeps its scores: its softmax must not be nan. The caller sets the output to 0.
    """
    scores, somewhere = mm(e.mul(q, scale), transpose(k, -2, -1)), None
    if causal:
        below = created(from_array(np.tri(*scores._array.shape[-2:], dtype=bool))).to(scores.device)
        scores = e.where(below, scores, -math.inf)
    if mask is not None:
        is_bool = mask._array.dtype.kind == "b"
        somewhere = any_of(mask if is_bool else e.ne(mask, -math.inf), (mask._array.ndim - 1,), True)
        if is_bool:
            scores = e.where(e.logical_or(mask, e.logical_not(somewhere)), scores, -math.inf)
        else:
            scores = e.add(scores, e.where(somewhere, mask, 0))
    return softmax(scores, scores._array.ndim - 1), somewhere


def seen(p: Tensor, v: Tensor, somewhere: Tensor | None) -> Tensor:
    """p v; 0 for queries without an allowed key."""
    out = mm(p, v)
    return out if somewhere is None else e.where(somewhere, out, 0)


def derivative(gs: Sequence, tensors: Sequence[Tensor], causal: bool, scale: float, create_graph: bool) -> list:
    """The derivative of `attention_back`: attention composed of ops, differentiated twice."""
    q, k, v, *rest, _, _, g = tensors
    mask = rest[0] if rest else None
    with enable_grad():
        x, slope = [copy(t) for t in (q, k, v)], copy(g)
        p, somewhere = weights(x[0], x[1], mask, causal, scale)
        first = grad([seen(p, x[2], somewhere)], x, [slope], create_graph=True)
        found = grad(first, [*x, slope], gs[:3], create_graph=create_graph, allow_unused=True)
    return [*found[:3], *(None,) * (len(tensors) - 4), found[3]]


def of_arrays(gs: Sequence, given: Sequence, causal: bool, scale: float) -> list:
    gs, given = [None if g is None else from_array(g) for g in gs], [from_array(a) for a in given]
    return [None if t is None else t._array for t in derivative(gs, given, causal, scale, False)]


def of_tensors(gs: Sequence, given: Sequence[Tensor], causal: bool, scale: float) -> Any:
    return derivative(gs, given, causal, scale, True)


ARRAYS["attention_twice"], TENSORS["attention_twice"] = of_arrays, of_tensors

build(globals())
