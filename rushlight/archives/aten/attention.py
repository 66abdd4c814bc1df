"""Attention, and torch's fused layers of transformers, which scripted models call in evaluation."""

from __future__ import annotations

from typing import Any

import rushlight as torch
from rushlight.core.tensor import Tensor

from .table import operator

F = torch.nn.functional


@operator("scaled_dot_product_attention")
def attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Any = None, dropout: float = 0.0, causal: bool = False,
    scale: float | None = None, enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    return F.scaled_dot_product_attention(q, k, v, mask, dropout, causal, scale=scale, enable_gqa=enable_gqa)


@operator("_scaled_dot_product_flash_attention_for_cpu")
def flash_attention(
    q: Tensor, k: Tensor, v: Tensor, dropout: float = 0.0, causal: bool = False, attn_mask: Any = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    out = F.scaled_dot_product_attention(q, k, v, attn_mask, dropout, causal, scale=scale)
    return out, torch.zeros(0)


@operator("_native_multi_head_attention")
def multi_head(
    q: Tensor, k: Tensor, v: Tensor, size: int, heads: int, weight: Tensor, bias: Tensor, out_weight: Tensor,
    out_bias: Tensor, mask: Any = None, need_weights: bool = True, average: bool = True, mask_type: int | None = None,
) -> tuple[Tensor, Any]:  # fmt: skip
    """(out [N, T, size], weights or an empty tensor). mask_type: 0 for a mask of queries and keys, 1 for keys that are
    padding, 2 for a mask of all four dimensions."""
    if mask_type == 2:
        raise NotImplementedError("_native_multi_head_attention with a mask of four dimensions is not supported")
    padding, scores = (mask, None) if mask_type == 1 else (None, mask)
    q, k, v = q.transpose(0, 1), k.transpose(0, 1), v.transpose(0, 1)
    out, weights = F.multi_head_attention_forward(
        q, k, v, size, heads, weight, bias, None, None, False, 0.0, out_weight, out_bias, False, padding, need_weights,
        scores, average_attn_weights=average,
    )  # fmt: skip
    return out.transpose(0, 1), torch.zeros(0) if weights is None else weights


@operator("_transformer_encoder_layer_fwd")
def encoder_layer(
    x: Tensor, size: int, heads: int, weight: Tensor, bias: Tensor, out_weight: Tensor, out_bias: Tensor,
    use_gelu: bool, norm_first: bool, eps: float, norm_weight_1: Tensor, norm_bias_1: Tensor, norm_weight_2: Tensor,
    norm_bias_2: Tensor, weight_1: Tensor, bias_1: Tensor, weight_2: Tensor, bias_2: Tensor, mask: Any = None,
    mask_type: int | None = None,
) -> Tensor:  # fmt: skip
    """nn.TransformerEncoderLayer in evaluation."""

    def attend(y: Tensor) -> Tensor:
        return multi_head(y, y, y, size, heads, weight, bias, out_weight, out_bias, mask, False, True, mask_type)[0]

    def feed(y: Tensor) -> Tensor:
        inner = F.linear(y, weight_1, bias_1)
        return F.linear(F.gelu(inner) if use_gelu else F.relu(inner), weight_2, bias_2)

    first = lambda y: F.layer_norm(y, (size,), norm_weight_1, norm_bias_1, eps)
    second = lambda y: F.layer_norm(y, (size,), norm_weight_2, norm_bias_2, eps)
    if norm_first:
        x = x + attend(first(x))
        return x + feed(second(x))
    x = first(x + attend(x))
    return second(x + feed(x))
