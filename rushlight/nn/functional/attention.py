"""Scaled dot-product attention."""

from __future__ import annotations

import math

import numpy as np

from rushlight.base.errors import runtime_error
from rushlight.core.mode import mode
from rushlight.core.tensor import Tensor, created, from_array
from rushlight.nn.functional.dropout import dropout
from rushlight.ops.math import elementwise as e
from rushlight.ops.nn.attention import attention, seen, weights
from rushlight.ops.shape.view_functions import repeat_interleave


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    """softmax(q k^T scale + mask) v: q (..., L, E), k (..., S, E), v (..., S, F) -> (..., L, F).

    `scale`: default 1 / sqrt(E). `attn_mask`: booleans, true where a query may attend, or numbers to add. `is_causal`:
    query i attends to keys up to i. `enable_gqa`: k and v have fewer heads (dimension -3); several heads of q share
    one. RuntimeError for a mask together with `is_causal`, and for shapes or dtypes that do not match.

    >>> x = rushlight.ones(1, 3, 4)
    >>> rushlight.nn.functional.scaled_dot_product_attention(x, x, x).shape
    torch.Size([1, 3, 4])
    """
    plain = attn_mask is None and at_once(query, key, value, None)
    if not plain:  # skipped for calls without masks, dropout or options
        check(query, key, value, attn_mask, is_causal)
    if enable_gqa:
        heads = query._array.shape[-3]
        key, value = (repeat_interleave(t, heads // t._array.shape[-3], -3) for t in (key, value))
    scale = 1 / math.sqrt(max(1, query._array.shape[-1])) if scale is None else scale
    if dropout_p > 0 or not (plain or at_once(query, key, value, attn_mask)):
        p, somewhere = weights(query, key, attn_mask, is_causal, scale)
        return seen(dropout(p, dropout_p) if dropout_p > 0 else p, value, somewhere)
    if attn_mask is None:
        return attention([query, key, value], is_causal, scale)[0]
    if attn_mask._array.dtype.kind == "b":
        attn_mask = e.where(attn_mask, created(from_array(np.zeros((), query._array.dtype))), -math.inf)
    return attention([query, key, value, attn_mask], is_causal, scale)[0]


def at_once(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> bool:
    """Whether a single op computes the call: for plain tensors with equal leading dimensions, and a mask without a
    gradient."""
    q, k, v, m = query._array, key._array, value._array, mode()
    if q.__class__ is not np.ndarray or k.__class__ is not np.ndarray or v.__class__ is not np.ndarray:
        return False  # batched tensors of vmap
    q_shape, k_shape, v_shape = q.shape, k.shape, v.shape
    return (
        q.dtype is k.dtype is v.dtype
        and q.dtype.kind in "fV"
        and len(q_shape) > 1
        and q_shape[:-2] == k_shape[:-2] == v_shape[:-2]
        and q_shape[-1] == k_shape[-1]
        and k_shape[-2] == v_shape[-2]
        and q.size > 0 < v.size
        and (m.watch is None or not m.watch.differentiates)
        and (
            mask is None
            or (
                (mask._node is None or not m.grad)
                and mask._array.__class__ is np.ndarray
                and covers(mask._array.shape, (*q_shape[:-1], k_shape[-2]))
            )
        )
    )


def covers(mask: tuple, scores: tuple) -> bool:
    """Whether a mask of this shape broadcasts to the scores."""
    return len(mask) <= len(scores) and all([n in (1, m) for n, m in zip(mask[::-1], scores[::-1])])


def check(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, is_causal: bool) -> None:
    """Errors for arguments that do not match."""
    shapes = [t._array.shape for t in (query, key, value)]
    if any(len(s) < 2 for s in shapes):
        raise runtime_error(
            "scaled_dot_product_attention: Expected query, key, and value to all be  at least 2 dimensional, but "
            f"got Query dim: {len(shapes[0])}, Key dim: {len(shapes[1])} and Value dim: {len(shapes[2])} instead."
        )
    if len({t._array.dtype for t in (query, key, value)}) > 1:
        raise runtime_error(
            f"Expected query, key, and value to have the same dtype, but got query.dtype: {query.dtype} "
            f"key.dtype: {key.dtype} and value.dtype: {value.dtype} instead."
        )
    if mask is not None and is_causal:
        raise runtime_error(
            "scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True", "omit one of them"
        )
    if mask is not None and mask._array.dtype.kind != "b" and mask._array.dtype != query._array.dtype:
        raise runtime_error(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
            f"{mask.dtype} and  query.dtype: {query.dtype} instead."
        )
