"""Attention: what to look at, by how well queries and keys agree."""
from __future__ import annotations

import math

import numpy as np

from rushlight.errors import explain
from rushlight.nn.functional.dropout import dropout
from rushlight.ops import elementwise as e
from rushlight.ops import reduce as r
from rushlight.ops.products import matmul
from rushlight.ops.shape import transpose
from rushlight.ops.shapes import repeat_interleave
from rushlight.tensor import Tensor, created, from_array


def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None,
                                 dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None,
                                 enable_gqa: bool = False) -> Tensor:
    """softmax(q k^T scale + mask) v: q (..., L, E), k (..., S, E), v (..., S, F) -> (..., L, F).

    `scale`: 1 / sqrt(E) unless told. `attn_mask`: booleans, true where a query may look, or numbers to add.
    `is_causal`: query i looks at keys up to i. `enable_gqa`: fewer heads (dimension -3) in k and v are shared by
    several of q. RuntimeError for a mask together with `is_causal`, and for shapes or dtypes that do not fit.

    >>> x = rushlight.ones(1, 3, 4)
    >>> rushlight.nn.functional.scaled_dot_product_attention(x, x, x).shape
    torch.Size([1, 3, 4])
    """
    check(query, key, value, attn_mask, is_causal)
    if enable_gqa:
        heads = query.array.shape[-3]
        key, value = (repeat_interleave(t, heads // t.array.shape[-3], -3) for t in (key, value))
    query = e.mul(query, 1 / math.sqrt(query.array.shape[-1]) if scale is None else scale)
    scores = matmul(query, transpose(key, -2, -1))
    somewhere = None
    if is_causal:
        scores = e.where(causal(scores), scores, -math.inf)
    elif attn_mask is not None:
        scores, somewhere = masked(scores, attn_mask)
    weights = r.softmax(scores, scores.array.ndim - 1)
    if dropout_p > 0:
        weights = dropout(weights, dropout_p)
    out = matmul(weights, value)
    return out if somewhere is None else e.where(somewhere, out, 0)


def masked(scores: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Scores (..., L, S) under a mask, and which queries (..., L, 1) may look anywhere.

    The others keep their scores, so that no softmax is nan; what they see must become 0.
    """
    is_bool = mask.array.dtype.kind == "b"
    somewhere = r.any(mask if is_bool else e.ne(mask, -math.inf), (mask.array.ndim - 1,), True)
    if is_bool:
        return e.where(e.logical_or(mask, e.logical_not(somewhere)), scores, -math.inf), somewhere
    return e.add(scores, e.where(somewhere, mask, 0)), somewhere


def causal(scores: Tensor) -> Tensor:
    """True on and below the diagonal."""
    return created(from_array(np.tri(*scores.array.shape[-2:], dtype=bool)))


def check(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, is_causal: bool) -> None:
    """Errors where the arguments do not go together."""
    shapes = [t.array.shape for t in (query, key, value)]
    if any(len(s) < 2 for s in shapes):
        raise RuntimeError(explain("scaled_dot_product_attention: Expected query, key, and value to all be  at least 2 "
                                   f"dimensional, but got Query dim: {len(shapes[0])}, Key dim: {len(shapes[1])} and "
                                   "Value "
                                   f"dim: {len(shapes[2])} instead."))
    if len({t.array.dtype for t in (query, key, value)}) > 1:
        raise RuntimeError(explain("Expected query, key, and value to have the same dtype, but got query.dtype: "
                                   f"{query.dtype} key.dtype: {key.dtype} and value.dtype: {value.dtype} instead."))
    if mask is not None and is_causal:
        raise RuntimeError(explain("scaled_dot_product_attention: Explicit attn_mask should not be set when "
                                   "is_causal=True", "leave one of them out"))
    if mask is not None and mask.array.dtype.kind != "b" and mask.array.dtype != query.array.dtype:
        raise RuntimeError(explain(f"Expected attn_mask dtype to be bool or float or to match query dtype, but got "
                                   f"attn_mask.dtype: {mask.dtype} and  query.dtype: {query.dtype} instead."))
