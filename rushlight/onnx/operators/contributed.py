"""Operators of com.microsoft, the domain of onnxruntime: fused ones, which onnxruntime's optimizer writes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import rushlight as torch
from rushlight import Tensor
from rushlight.nn import functional as F

from .attention import heads, rotary_embedding
from .conv import AUTO_PAD, conv
from .table import MICROSOFT, Fixed, Floats, Ints, operator

MASKED = -10000.0  # what onnxruntime adds to the scores of keys that are masked
# the activations that onnxruntime fuses
ACTIVATIONS: dict[str, Callable[..., Tensor]] = {
    "Relu": F.relu, "Tanh": torch.tanh, "Sigmoid": torch.sigmoid, "LeakyRelu": F.leaky_relu,
    "Clip": lambda x, low, high: x.clamp(low, high), "HardSigmoid": lambda x, a, b: (a * x + b).clamp(0, 1),
}  # fmt: skip


@operator("Gelu", domain=MICROSOFT, text="F.gelu")
def gelu(x: Tensor) -> Tensor:
    """x times the probability that a standard normal number is below x."""
    return F.gelu(x)


@operator("BiasGelu", domain=MICROSOFT)
def bias_gelu(x: Tensor, bias: Tensor) -> Tensor:
    """gelu(x + bias)."""
    return F.gelu(x + bias)


@operator("FastGelu", domain=MICROSOFT)
def fast_gelu(x: Tensor, bias: Tensor | None = None) -> Tensor:
    """gelu(x + bias), by tanh."""
    return F.gelu(x if bias is None else x + bias, approximate="tanh")


@operator("QuickGelu", domain=MICROSOFT)
def quick_gelu(x: Tensor, *, alpha: float = 1.702) -> Tensor:
    """x sigmoid(alpha x)."""
    return x * torch.sigmoid(alpha * x)


# -- products ----------------------------------------------------------------------------------------


@operator("FusedMatMul", domain=MICROSOFT)
def fused_matmul(
    a: Tensor,
    b: Tensor,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    transBatchA: int = 0,
    transBatchB: int = 0,
) -> Tensor:
    """alpha a @ b, of transposed matrices. With transBatch, the first dimension of the batch stands before the last."""
    if transBatchA:
        a = a.movedim(0, -2)
    if transBatchB:
        b = b.movedim(0, -2)
    a = a.transpose(-1, -2) if transA and a.ndim > 1 else a
    b = b.transpose(-1, -2) if transB and b.ndim > 1 else b
    return torch.matmul(a, b) * alpha if alpha != 1 else torch.matmul(a, b)


def activated(x: Tensor, name: str, numbers: Floats | None) -> Tensor:
    """An activation by its name in ONNX, with its numbers."""
    if not name:
        return x
    if name not in ACTIVATIONS:
        raise NotImplementedError(f"the fused activation {name} is not supported")
    return ACTIVATIONS[name](x, *(numbers or ()))


@operator("FusedGemm", domain=MICROSOFT)
def fused_gemm(
    a: Tensor,
    b: Tensor,
    c: Tensor | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    activation: str = "",
    activation_alpha: float = 0.01,
    activation_beta: float = 0.0,
    activation_gamma: float = 0.0,
) -> Tensor:
    """activation(alpha a @ b + beta c)."""
    y = alpha * ((a.T if transA else a) @ (b.T if transB else b))
    y = y if c is None else y + beta * c
    return activated(y, activation, [activation_alpha] if activation == "LeakyRelu" else None)


@operator("FusedConv", domain=MICROSOFT)
def fused_conv(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    summand: Tensor | None = None,
    *,
    activation: str = "",
    activation_params: Floats | None = None,
    strides: Ints | None = None,
    pads: Ints | None = None,
    dilations: Ints | None = None,
    group: int = 1,
    auto_pad: str = AUTO_PAD,
    kernel_shape: Ints | None = None,
) -> Tensor:
    """activation(convolution of x + summand)."""
    settings: dict[str, Any] = {"strides": strides, "pads": pads, "dilations": dilations, "auto_pad": auto_pad}
    y = conv(x, weight, bias, group=group, **settings)
    return activated(y if summand is None else y + summand, activation, activation_params)


# -- normalization -----------------------------------------------------------------------------------


@operator("SimplifiedLayerNormalization")
def simplified_layer_norm(
    x: Tensor, scale: Tensor, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1, n_outputs: int
) -> Any:
    """x / sqrt(mean(x ** 2)) over the dimensions from `axis` on; the second output is 1 / sqrt(mean(x ** 2))."""
    dims = list(range(axis % x.ndim, x.ndim))
    rstd = torch.rsqrt((x * x).mean(dims, keepdim=True) + epsilon)
    return (x * rstd * scale, rstd) if n_outputs > 1 else x * rstd * scale


@operator("SkipLayerNormalization", domain=MICROSOFT)
def skip_layer_norm(
    x: Tensor,
    skip: Tensor,
    gamma: Tensor,
    beta: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    epsilon: float = 1e-12,
    n_outputs: int,
) -> Any:
    """x + skip + bias, normalized over the last dimension; further outputs are statistics and the sum."""
    total = x + skip if bias is None else x + skip + bias
    y = F.layer_norm(total, gamma.shape, gamma, beta, epsilon)
    if n_outputs == 1:
        return y
    mean = total.mean(-1, keepdim=True)
    return y, mean, torch.rsqrt(total.var(-1, unbiased=False, keepdim=True) + epsilon), total


@operator("SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def skip_simplified_layer_norm(
    x: Tensor, skip: Tensor, gamma: Tensor, bias: Tensor | None = None, *, epsilon: float = 1e-5, n_outputs: int
) -> Any:
    """x + skip + bias, divided by the root of its mean square; further outputs are statistics and the sum."""
    total = x + skip if bias is None else x + skip + bias
    rstd = torch.rsqrt((total * total).mean(-1, keepdim=True) + epsilon)
    y = total * rstd * gamma
    return y if n_outputs == 1 else (y, total.mean(-1, keepdim=True), rstd, total)


@operator("EmbedLayerNormalization", domain=MICROSOFT)
def embed_layer_norm(
    ids: Tensor,
    segments: Tensor | None,
    words: Tensor,
    places: Tensor,
    kinds: Tensor | None = None,
    gamma: Tensor | None = None,
    beta: Tensor | None = None,
    mask: Tensor | None = None,
    positions: Tensor | None = None,
    *,
    epsilon: float = 1e-12,
    mask_index_type: int = 0,
    n_outputs: int,
) -> Any:
    """Embeddings of words, positions and segments, added and normalized; the lengths of the sequences; the sum."""
    at = torch.arange(ids.shape[1]) if positions is None else positions.long()
    total = F.embedding(ids.long(), words) + F.embedding(at, places)
    if kinds is not None and segments is not None:
        total = total + F.embedding(segments.long(), kinds)
    y = F.layer_norm(total, total.shape[-1:], gamma, beta, epsilon)
    if n_outputs == 1:
        return y
    lengths = torch.zeros(ids.shape[0], dtype=torch.int32) if mask is None else mask.sum(1).to(torch.int32)
    return y, lengths, total


# -- attention ---------------------------------------------------------------------------------------


def summand(mask: Tensor | None, columns: int, low: float) -> Tensor | None:
    """What a mask adds to the scores. `mask`: lengths [N]; [N, keys], [N, queries, keys], or four dimensions."""
    if mask is None:
        return None
    if mask.ndim == 1:
        mask = (torch.arange(columns) < mask.unsqueeze(-1)).to(torch.int32)
    while mask.ndim < 4:
        mask = mask.unsqueeze(1)
    return torch.where(mask != 0, torch.zeros(()), torch.full((), low))


def attended(
    q: Tensor, k: Tensor, v: Tensor, added: list[Tensor | None], causal: int, scale: float | None, low: float
) -> Tensor:
    """softmax(q k^T scale + summands) v of heads, [N, T, heads * D]."""
    scores = q @ k.transpose(2, 3) * (scale or 1 / math.sqrt(q.shape[-1]))
    for part in added:
        scores = scores if part is None else scores + part
    if causal:
        rows, columns = scores.shape[2:]
        seen = torch.ones(rows, columns, dtype=torch.bool).tril(columns - rows)
        scores = torch.where(seen, scores, torch.full((), low, dtype=scores.dtype))
    y = torch.softmax(scores, -1) @ v
    return y.transpose(1, 2).reshape(y.shape[0], y.shape[2], -1)


@operator("Attention", domain=MICROSOFT)
def packed_attention(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    mask: Fixed | None = None,
    past: Tensor | None = None,
    attention_bias: Tensor | None = None,
    past_length: Fixed | None = None,
    *,
    num_heads: int,
    unidirectional: int = 0,
    scale: float | None = None,
    mask_filter_value: float = MASKED,
    qkv_hidden_sizes: Ints | None = None,
    do_rotary: int = 0,
    rotary_embedding_dim: int = 0,
    past_present_share_buffer: int = 0,
    n_outputs: int,
) -> Any:
    """Self-attention whose queries, keys and values are one product of x; with past keys and values [2, N, H, T, D]."""
    if do_rotary or past_present_share_buffer:
        raise NotImplementedError("Attention with do_rotary or past_present_share_buffer is not supported")
    whole = x @ weight if bias is None else x @ weight + bias
    sizes = qkv_hidden_sizes or [whole.shape[-1] // 3] * 3
    q, k, v = [heads(part, num_heads) for part in whole.split(sizes, -1)]
    if past is not None:
        k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
    added = [summand(mask, k.shape[2], mask_filter_value), attention_bias]
    y = attended(q, k, v, added, unidirectional, scale, torch.finfo(q.dtype).min)
    return y if n_outputs == 1 else (y, torch.stack([k, v]))


@operator("MultiHeadAttention", domain=MICROSOFT)
def multi_head_attention(
    query: Tensor,
    key: Tensor | None = None,
    value: Tensor | None = None,
    bias: Tensor | None = None,
    mask: Fixed | None = None,
    attention_bias: Tensor | None = None,
    past_key: Tensor | None = None,
    past_value: Tensor | None = None,
    past_length: Fixed | None = None,
    cache_indirection: Fixed | None = None,
    *,
    num_heads: int,
    mask_filter_value: float = MASKED,
    scale: float | None = None,
    unidirectional: int = 0,
    n_outputs: int,
) -> Any:
    """Attention of queries [N, T, heads * D] to keys and values, also with four dimensions; with the past."""
    if key is None or value is None or past_length is not None or cache_indirection is not None:
        raise NotImplementedError("MultiHeadAttention of packed tensors, or with shared buffers, is not supported")
    if bias is not None:
        size = query.shape[-1]
        query = query + bias[:size]
        key = key + bias[size : 2 * size] if key.ndim == 3 else key
        value = value + bias[2 * size :] if value.ndim == 3 else value
    q, k, v = [heads(part, num_heads) for part in (query, key, value)]
    if past_key is not None and past_value is not None:
        k, v = torch.cat([past_key, k], 2), torch.cat([past_value, v], 2)
    added = [summand(mask, k.shape[2], mask_filter_value), attention_bias]
    y = attended(q, k, v, added, unidirectional, scale, torch.finfo(q.dtype).min)
    return y if n_outputs == 1 else (y, k, v)


@operator("RotaryEmbedding", domain=MICROSOFT)
def rotary(
    x: Tensor,
    positions: Fixed,
    cos: Fixed,
    sin: Fixed,
    *,
    interleaved: int = 0,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
    scale: float = 1.0,
    is_packed_batching: int = 0,
) -> Tensor:
    """x with pairs of elements turned by the angle of their position; `positions`: [N, T], or the first of [T]."""
    if positions.ndim == 1 or positions.shape[1] == 1 and x.shape[-2 if x.ndim == 4 else 1] > 1:
        time = x.shape[2 if x.ndim == 4 else 1]
        positions = positions.reshape(-1, 1) + torch.arange(time).expand(x.shape[0], time)
    count = num_heads or (x.shape[-1] // (2 * cos.shape[-1]) if x.ndim == 3 else 0)
    return rotary_embedding(
        x, cos, sin, positions, interleaved=interleaved, rotary_embedding_dim=rotary_embedding_dim, num_heads=count
    )
