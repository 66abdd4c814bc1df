"""Multi-head attention with its projections: the function behind nn.MultiheadAttention."""

from __future__ import annotations

import math
from typing import Any

from rushlight.base.errors import assertion_error, runtime_error, warn
from rushlight.core.tensor import Tensor
from rushlight.creation.factories import full, zeros
from rushlight.nn.functional.attention import scaled_dot_product_attention
from rushlight.nn.functional.dropout import dropout
from rushlight.nn.functional.padding import pad
from rushlight.ops.linalg.matmul import linear
from rushlight.ops.linalg.matmul_api import matmul
from rushlight.ops.math import elementwise as e
from rushlight.ops.reduce import reduce as r
from rushlight.ops.shape.view_functions import chunk, split
from rushlight.ops.shape.views import cat, expand, permute, reshape, squeeze, transpose, unbind, unsqueeze

Qkv = tuple[Tensor, Tensor, Tensor]


def multi_head_attention_forward(
    query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int, in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None, bias_k: Tensor | None, bias_v: Tensor | None, add_zero_attn: bool, dropout_p: float,
    out_proj_weight: Tensor, out_proj_bias: Tensor | None, training: bool = True,
    key_padding_mask: Tensor | None = None, need_weights: bool = True, attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False, q_proj_weight: Tensor | None = None, k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None, static_k: Tensor | None = None, static_v: Tensor | None = None,
    average_attn_weights: bool = True, is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """concat over heads h of softmax(q_h k_h^T / sqrt(D) + mask) v_h, projected; q, k, v are projections of the inputs.

    query (L, N, E), key and value (S, N, *), without N for one sequence. `in_proj_weight` (3 E, E), or three weights
    with `use_separate_proj_weight`; `in_proj_bias` (3 E). Returns the output (L, N, E), and with `need_weights` the
    weights: (N, L, S), their mean over the heads, or (N, num_heads, L, S).

    `attn_mask` (L, S) or (N num_heads, L, S), `key_padding_mask` (N, S): booleans, true where a query may *not* attend,
    or numbers to add. `is_causal`: `attn_mask` is the causal mask. `bias_k`, `bias_v` (1, 1, E) and, with
    `add_zero_attn`, zeros are one more key and value. `static_k`, `static_v` (N num_heads, S, D) replace the
    projections. AssertionError or RuntimeError for shapes that do not fit.

    >>> from rushlight.nn import functional as F
    >>> x, eye = rushlight.ones(3, 1, 2), rushlight.eye(2)
    >>> settings = 2, 1, eye.repeat(3, 1), rushlight.zeros(6), None, None, False, 0.0, eye, rushlight.zeros(2)
    >>> F.multi_head_attention_forward(x, x, x, *settings)[1][0, 0]  # weights: all keys are alike
    tensor([0.3333, 0.3333, 0.3333])
    """
    is_batched = check_shapes(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not is_batched:
        # the projections depend on whether query, key and value are the same object
        same = (key is query, value is key)
        query = unsqueeze(query, 1)
        key = query if same[0] else unsqueeze(key, 1)
        value = key if same[1] else unsqueeze(value, 1)
        key_padding_mask = None if key_padding_mask is None else unsqueeze(key_padding_mask, 0)
    key_padding_mask = additive_mask(key_padding_mask, query, "key_padding_mask", attn_mask, "attn_mask")
    if is_causal and attn_mask is None:
        raise runtime_error(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    causal_alone = is_causal and key_padding_mask is None and not need_weights
    attn_mask = None if causal_alone else additive_mask(attn_mask, query, "attn_mask")
    check_sizes(query, key, value, embed_dim_to_check, num_heads, use_separate_proj_weight)
    if use_separate_proj_weight:
        q, k, v = projected_separately(query, key, value, (q_proj_weight, k_proj_weight, v_proj_weight), in_proj_bias)
    else:
        q, k, v = projected(query, key, value, in_proj_weight, in_proj_bias)
    q, k, v = split_heads(q, k, v, num_heads, bias_k, bias_v, static_k, static_v)
    mask = None if attn_mask is None else check_mask(attn_mask, query, key, num_heads)
    extra = (bias_k is not None) + add_zero_attn
    if add_zero_attn:
        k, v = (cat([t, zeros_after(t)], -2) for t in (k, v))
    mask = merged_masks(mask, key_padding_mask, extra, k)
    p = dropout_p if training else 0.0
    weights = None
    if need_weights:
        o, weights = attention_with_weights(q, k, v, mask, p)
        weights = r.mean(weights, (1,)) if average_attn_weights else weights
        weights = weights if is_batched else squeeze(weights, 0)
    else:
        o = scaled_dot_product_attention(q, k, v, mask, p, causal_alone)
    out = linear(reshape(permute(o, (2, 0, 1, 3)), query._array.shape), out_proj_weight, out_proj_bias)  # (L, N, E)
    return (out if is_batched else squeeze(out, 1)), weights


# -- projections -----------------------------------------------------------------------------------


def projected(q: Tensor, k: Tensor, v: Tensor, weight: Tensor | None, bias: Tensor | None = None) -> Qkv:
    """q, k, v (..., E) times the three parts of a weight (3 E, E): in one product if q, k and v are the same tensor."""
    if weight is None:
        raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
    size = q._array.shape[-1]
    if q is k and k is v:
        return unbind(reshape(linear(q, weight, bias), (*q._array.shape[:-1], 3, size)), -2)
    if k is v:
        weights, biases = (
            split(weight, [size, 2 * size]),
            (None, None) if bias is None else split(bias, [size, 2 * size]),
        )
        both = linear(k, weights[1], biases[1])
        return (linear(q, weights[0], biases[0]), *unbind(reshape(both, (*k._array.shape[:-1], 2, size)), -2))
    return projected_separately(q, k, v, chunk(weight, 3), bias)


def projected_separately(q: Tensor, k: Tensor, v: Tensor, weights: tuple, bias: Tensor | None) -> Qkv:
    """Projections of q, k and v, each with its own weight; bias (3 E) or None."""
    for name, weight in zip("qkv", weights):
        if weight is None:
            raise AssertionError(f"use_separate_proj_weight is True but {name}_proj_weight is None")
    biases = (None,) * 3 if bias is None else chunk(bias, 3)
    one, two, three = (linear(x, w, b) for x, w, b in zip((q, k, v), weights, biases))
    return one, two, three


def split_heads(
    q: Tensor, k: Tensor, v: Tensor, heads: int, bias_k: Tensor | None, bias_v: Tensor | None, static_k: Tensor | None,
    static_v: Tensor | None,
) -> Qkv:  # fmt: skip
    """(L, N, E) -> (N, heads, L, D). The biases, if present, are first added as one more key and value."""
    if (bias_k is None) != (bias_v is None):
        given, missing = ("bias_k", "bias_v") if bias_v is None else ("bias_v", "bias_k")
        raise AssertionError(f"{given} is set but {missing} is None")
    if bias_k is not None and bias_v is not None:
        for name, static in (("key", static_k), ("value", static_v)):
            if static is not None:
                raise AssertionError(f"bias cannot be added to static {name}.")
        row = (1, *k._array.shape[1:])
        k, v = cat([k, expand(bias_k, row)]), cat([v, expand(bias_v, row)])
    q = one_in_heads(q, heads)
    k = one_in_heads(k, heads) if static_k is None else given_in_heads(static_k, q, "static_k")
    v = one_in_heads(v, heads) if static_v is None else given_in_heads(static_v, q, "static_v")
    return q, k, v


def one_in_heads(x: Tensor, heads: int) -> Tensor:
    """(L, N, E) -> (N, heads, L, D)."""
    length, batch, size = x._array.shape
    return permute(reshape(x, (length, batch, heads, size // heads)), (1, 2, 0, 3))


def given_in_heads(x: Tensor, q: Tensor, name: str) -> Tensor:
    """(N heads, S, D) -> (N, heads, S, D), the shape of q."""
    batch, heads, _, size = q._array.shape
    shape = x._array.shape
    for place, wanted in ((0, batch * heads), (2, size)):
        if shape[place] != wanted:
            raise AssertionError(f"expecting {name}.size({place}) of {wanted}, but got {shape[place]}")
    return reshape(x, (batch, heads, *shape[1:]))


def zeros_after(x: Tensor) -> Tensor:
    """One more key of zeros for (N, heads, S, D)."""
    return zeros(*x._array.shape[:2], 1, x._array.shape[3], dtype=x.dtype)


# -- masks -----------------------------------------------------------------------------------------


def additive_mask(
    mask: Tensor | None, like: Tensor, name: str, other: Tensor | None = None, other_name: str = ""
) -> Tensor | None:
    """A mask as numbers to add to scores: -inf where booleans are true. AssertionError for integers."""
    if mask is None:
        return None
    if not mask.is_floating_point() and mask._array.dtype.kind != "b":
        raise AssertionError(f"only bool and floating types of {name} are supported")
    if other is not None and other.dtype != mask.dtype:
        warn(f"Support for mismatched {name} and {other_name} is deprecated. Use same type for both instead.")
    if mask._array.dtype.kind != "b":
        return mask
    return e.where(mask, full((), -math.inf, dtype=like.dtype), full((), 0.0, dtype=like.dtype))


def merged_masks(mask: Tensor | None, padding: Tensor | None, extra: int, k: Tensor) -> Tensor | None:
    """Mask (N or 1, heads or 1, L, S) plus padding (N, S), for k (N, heads, S, D). `extra`: the number of further keys,
    which are not masked."""
    mask = pad(mask, (0, extra)) if mask is not None and extra else mask
    if padding is None:
        return mask
    padding = pad(padding, (0, extra)) if extra else padding
    for place, wanted in ((0, k._array.shape[0]), (1, k._array.shape[2])):
        if padding._array.shape[place] != wanted:
            raise AssertionError(
                f"Expected key_padded_mask.shape[{place}] to be {wanted}, but got {padding._array.shape[place]}"
            )
    padding = reshape(padding, (padding._array.shape[0], 1, 1, -1))
    return padding if mask is None else e.add(mask, padding)


def check_mask(mask: Tensor, query: Tensor, key: Tensor, heads: int) -> Tensor:
    """(L, S) or (N heads, L, S), reshaped to broadcast against scores (N, heads, L, S). RuntimeError for other
    shapes."""
    length, batch, source = query._array.shape[0], query._array.shape[1], key._array.shape[0]
    wanted = (length, source) if mask._array.ndim == 2 else (batch * heads, length, source)
    if mask._array.shape != wanted:
        raise runtime_error(f"The shape of the {mask._array.ndim}D attn_mask is {mask.shape}, but should be {wanted}.")
    return reshape(mask, (1, 1, *wanted) if len(wanted) == 2 else (batch, heads, length, source))


# -- the rest --------------------------------------------------------------------------------------


def attention_with_weights(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, p: float) -> tuple[Tensor, Tensor]:
    """(softmax(q k^T / sqrt(D) + mask) v, the softmax)."""
    scores = matmul(e.mul(q, math.sqrt(1 / q._array.shape[-1])), transpose(k, -2, -1))
    weights = r.softmax(scores if mask is None else e.add(scores, mask), 3)
    weights = dropout(weights, p) if p > 0 else weights
    return matmul(weights, v), weights


def check_shapes(
    query: Tensor, key: Tensor, value: Tensor, padding: Tensor | None, mask: Tensor | None, heads: int
) -> bool:
    """Whether there is a batch dimension. AssertionError for numbers of dimensions that do not match."""
    dims = query._array.ndim
    if dims not in (2, 3):
        raise AssertionError(f"query should be unbatched 2D or batched 3D tensor but received {dims}-D query tensor")
    what = f"For {'batched' if dims == 3 else 'unbatched'} ({dims}-D) `query`, expected "
    if key._array.ndim != dims or value._array.ndim != dims:
        raise AssertionError(
            f"{what}`key` and `value` to be {dims}-D but found {key._array.ndim}-D and {value._array.ndim}-D tensors "
            "respectively"
        )
    if padding is not None and padding._array.ndim != dims - 1:
        raise AssertionError(
            f"{what}`key_padding_mask` to be `None` or {dims - 1}-D but found {padding._array.ndim}-D tensor instead"
        )
    if mask is not None and mask._array.ndim not in (2, 3):
        raise AssertionError(
            f"{what}`attn_mask` to be `None`, 2-D or 3-D but found {mask._array.ndim}-D tensor instead"
        )
    if mask is not None and dims == 2 and mask._array.ndim == 3:
        wanted = (heads, query._array.shape[0], key._array.shape[0])
        if mask._array.shape != wanted:
            raise AssertionError(f"Expected `attn_mask` shape to be {wanted} but got {mask.shape}")
    return dims == 3


def check_sizes(query: Tensor, key: Tensor, value: Tensor, embed_dim: Any, heads: int, separate: bool) -> None:
    """AssertionError for sizes that do not match."""
    size = query._array.shape[-1]
    if size != embed_dim:
        raise assertion_error(
            f"was expecting embedding dimension of {embed_dim}, but got {size}",
            f"use embed_dim={size}",
            query=tuple(query.shape),
        )
    if size % heads:
        raise AssertionError(f"embed_dim {size} not divisible by num_heads {heads}")
    if separate and key.shape[:2] != value.shape[:2]:
        raise AssertionError(f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}")
    if not separate and key.shape != value.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
