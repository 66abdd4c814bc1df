"""Attention in its variants, and rotary embeddings."""

from __future__ import annotations

import math

import rushlight as torch
from rushlight import Tensor
from rushlight.nn import functional as F

from .casts import torch_type
from .control import Body
from .table import PREVIEW, Fixed, operator


def heads(x: Tensor, count: int | None) -> Tensor:
    """[N, T, heads * D] as [N, heads, T, D]; four dimensions stay."""
    if x.ndim == 4:
        return x
    return x.reshape(x.shape[0], x.shape[1], count, -1).transpose(1, 2)


def repeated_heads(x: Tensor, count: int) -> Tensor:
    """Keys or values with a head for each of `count` heads of queries."""
    return x if x.shape[1] == count else x.repeat_interleave(count // x.shape[1], 1)


def allowed(rows: int, columns: int, offset: Tensor, is_causal: int, left: int, right: int) -> Tensor | None:
    """Which keys each query attends, by position [N, 1, rows, columns]; None for all."""
    place = torch.arange(rows).reshape(1, 1, -1, 1) + offset.reshape(-1, 1, 1, 1)
    key = torch.arange(columns)
    found = key <= place if is_causal else None
    for limit in ([key >= place - left] if left >= 0 else []) + ([key <= place + right] if right >= 0 else []):
        found = limit if found is None else found & limit
    return found


def bias_of(mask: Tensor | None, seen: Tensor | None, columns: int, like: Tensor) -> Tensor | None:
    """The summand of the scores: a mask of floats, -inf where a mask of booleans or `seen` is False."""
    if mask is not None and mask.shape[-1] < columns:
        fill = False if mask.dtype == torch.bool else -math.inf
        mask = F.pad(mask, (0, columns - mask.shape[-1]), "constant", fill)
    if mask is not None and mask.dtype == torch.bool:
        seen, mask = (mask if seen is None else seen & mask), None
    if seen is not None:
        zero = torch.zeros((), dtype=like.dtype)
        seen = torch.where(seen, zero, zero - math.inf)
        return seen if mask is None else mask + seen
    return mask


@operator("Attention")
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    past_key: Tensor | None = None,
    past_value: Tensor | None = None,
    lengths: Fixed | None = None,
    *,
    is_causal: int = 0,
    scale: float | None = None,
    softcap: float = 0.0,
    q_num_heads: int | None = None,
    kv_num_heads: int | None = None,
    qk_matmul_output_mode: int = 0,
    softmax_precision: int | None = None,
    left_window_size: int = -1,
    right_window_size: int = -1,
    n_outputs: int,
) -> Tensor | tuple[Tensor, ...]:
    """(softmax(q @ k.T * scale + mask) @ v, keys and values with the past, scores at a stage)."""
    flat = q.ndim == 3
    q, k, v = heads(q, q_num_heads), heads(k, kv_num_heads), heads(v, kv_num_heads)
    before = 0 if past_key is None else past_key.shape[2]
    if past_key is not None and past_value is not None:
        k, v = torch.cat([past_key, k], 2), torch.cat([past_value, v], 2)
    keys, values = repeated_heads(k, q.shape[1]), repeated_heads(v, q.shape[1])
    rows, columns = q.shape[2], k.shape[2]
    offset = torch.tensor([before]) if lengths is None else lengths - rows
    seen = allowed(rows, columns, offset, is_causal, left_window_size, right_window_size)
    if lengths is not None:
        inside = torch.arange(columns) < lengths.reshape(-1, 1, 1, 1)
        seen = inside if seen is None else seen & inside
    root = math.sqrt(1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    bias = bias_of(mask, seen, columns, q)
    stages = scored((q * root) @ (keys * root).transpose(2, 3), bias, softcap, softmax_precision)
    y = stages[3].to(v.dtype) @ values
    y = y.transpose(1, 2).reshape(y.shape[0], rows, -1) if flat else y
    return (y, k, v, stages[qk_matmul_output_mode]) if n_outputs > 1 else y


def scored(scores: Tensor, bias: Tensor | None, softcap: float, precision: int | None) -> list[Tensor]:
    """The scores, with softcap, with bias, and as probabilities; a row without keys is 0."""
    capped = softcap * torch.tanh(scores / softcap) if softcap else scores
    biased = capped if bias is None else capped + bias
    wide = biased if precision is None else biased.to(torch_type(precision))
    if bias is None:
        return [scores, capped, biased, torch.softmax(wide, -1).to(scores.dtype)]
    empty = (biased == -math.inf).all(-1, keepdim=True)
    shares = torch.softmax(torch.where(empty, torch.zeros_like(wide), wide), -1).to(scores.dtype)
    return [scores, capped, biased, torch.where(empty, torch.zeros_like(shares), shares)]


@operator("FlexAttention", domain=PREVIEW)
def flex_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    scale: float | None = None,
    softmax_precision: int | None = None,
    score_mod: Body | None = None,
    prob_mod: Body | None = None,
) -> Tensor:
    """Attention whose scores and probabilities are changed by graphs."""
    keys, values = repeated_heads(k, q.shape[1]), repeated_heads(v, q.shape[1])
    factor = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    usual = torch.float64 if q.dtype == torch.float64 else torch.float32
    precision = usual if softmax_precision is None else torch_type(softmax_precision)
    scores = (q.to(precision) @ keys.to(precision).transpose(2, 3)) * factor
    scores = scores if score_mod is None else score_mod(scores)[0]
    shares = torch.softmax(scores, -1)
    shares = shares if prob_mod is None else prob_mod(shares)[0]
    return (shares @ values.to(precision)).to(q.dtype)


@operator("LinearAttention")
def linear_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    past: Tensor | None = None,
    decay: Tensor | None = None,
    beta: Tensor | None = None,
    *,
    q_num_heads: int,
    kv_num_heads: int,
    update_rule: str = "gated_delta",
    scale: float = 0.0,
    chunk_size: int = 64,
) -> tuple[Tensor, Tensor]:
    """(outputs, last state) of a recurrence: the state [D, E] forgets by decay, and learns each key's value."""
    q, k, v = heads(q, q_num_heads), heads(k, kv_num_heads), heads(v, kv_num_heads)
    state = k.new_zeros(*k.shape[:2], k.shape[3], v.shape[3]) if past is None else past.to(k.dtype)
    factor = scale or 1 / math.sqrt(q.shape[-1])
    each, out = q_num_heads // kv_num_heads, []
    for t in range(q.shape[2]):
        key, value = k[:, :, t].unsqueeze(-1), v[:, :, t].unsqueeze(-2)
        if "gated" in update_rule and decay is not None:
            state = state * torch.exp(decay[:, t].reshape(*k.shape[:2], -1, 1))
        if "delta" in update_rule and beta is not None:
            rate = beta[:, t].reshape(k.shape[0], -1, 1, 1)
            value = rate * (value - key.transpose(-1, -2) @ state)
        state = state + key * value
        query = q[:, :, t].unsqueeze(-2)
        out.append(factor * (query @ state.repeat_interleave(each, 1)).squeeze(-2))
    y = torch.stack(out, 1)
    return y.reshape(*y.shape[:2], -1), state if past is None else state.to(past.dtype)


@operator("RotaryEmbedding")
def rotary_embedding(
    x: Tensor,
    cos: Fixed,
    sin: Fixed,
    positions: Fixed | None = None,
    *,
    interleaved: int = 0,
    rotary_embedding_dim: int = 0,
    num_heads: int = 0,
) -> Tensor:
    """x with pairs of elements turned by the angle of their position."""
    y = x if x.ndim == 4 else heads(x, num_heads)
    dim = rotary_embedding_dim or y.shape[-1]
    turned, rest = y[..., :dim], y[..., dim:]
    if positions is not None:
        cos, sin = cos[positions], sin[positions]
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    a, b = (turned[..., 0::2], turned[..., 1::2]) if interleaved else turned.chunk(2, -1)
    real, imaginary = cos * a - sin * b, sin * a + cos * b
    if interleaved:
        turned = torch.stack([real, imaginary], -1).reshape(turned.shape)
    else:
        turned = torch.cat([real, imaginary], -1)
    y = torch.cat([turned, rest], -1)
    return y if x.ndim == 4 else y.transpose(1, 2).reshape(x.shape)
