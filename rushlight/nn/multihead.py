"""Attention by several heads, as a module."""

from __future__ import annotations

from typing import Any

from rushlight.base.errors import assertion_error, value_error
from rushlight.core.tensor import Tensor
from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.layer_settings import uninitialized
from rushlight.nn.linear import Linear
from rushlight.nn.module import Module
from rushlight.nn.parameter import Parameter


class NonDynamicallyQuantizableLinear(Linear):
    """out = x w^T + b: Linear, by the name of the class that torch uses for attention's last projection.

    >>> type(rushlight.nn.MultiheadAttention(4, 2).out_proj).__name__
    'NonDynamicallyQuantizableLinear'
    """


class MultiheadAttention(Module):
    """softmax(q_h k_h^T / sqrt(D)) v_h for each head h, D = embed_dim / num_heads; concatenated and projected.

    query (L, N, E), key (S, N, kdim), value (S, N, vdim), or (N, L, E) and so on if `batch_first`; without N for one
    sequence -> (output like query, weights (N, L, S) or None). Masks as in
    `nn.functional.multi_head_attention_forward`.

    The projections of q, k and v share the weight `in_proj_weight` (3 E, E) unless `kdim` or `vdim` differ from E.
    AssertionError unless num_heads divides embed_dim.

    >>> attention = rushlight.nn.MultiheadAttention(8, 2, batch_first=True)
    >>> x = rushlight.ones(3, 5, 8)
    >>> output, weights = attention(x, x, x)
    >>> output.shape, weights.shape
    (torch.Size([3, 5, 8]), torch.Size([3, 5, 5]))
    """

    in_proj_weight: Parameter | None
    in_proj_bias: Parameter | None
    bias_k: Parameter | None
    bias_v: Parameter | None

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False,
        add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None, batch_first: bool = False,
        device: Any = None, dtype: Any = None,
    ):  # fmt: skip
        if embed_dim <= 0 or num_heads <= 0:
            raise value_error(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and "
                f"num_heads={num_heads} instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim, self.vdim = (embed_dim if n is None else n for n in (kdim, vdim))
        self._qkv_same_embed_dim = self.kdim == embed_dim == self.vdim
        self.num_heads, self.dropout, self.batch_first = num_heads, dropout, batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise assertion_error(
                "embed_dim must be divisible by num_heads",
                "choose num_heads from the divisors of embed_dim",
                embed_dim=embed_dim,
                num_heads=num_heads,
            )
        made = {"device": device, "dtype": dtype}
        self._add_projections(bias, made)
        if add_bias_kv:
            self.bias_k, self.bias_v = uninitialized(1, 1, embed_dim, **made), uninitialized(1, 1, embed_dim, **made)
        else:
            self.bias_k = self.bias_v = None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _add_projections(self, bias: bool, made: dict) -> None:
        """The weights, in torch's order: one weight for q, k and v together, or three; the unused ones are None."""
        size, one = self.embed_dim, self._qkv_same_embed_dim
        shapes = {"q_proj_weight": (size, size), "k_proj_weight": (size, self.kdim), "v_proj_weight": (size, self.vdim)}
        if one:
            self.in_proj_weight = uninitialized(3 * size, size, **made)
        for name, shape in shapes.items():
            self.register_parameter(name, None if one else uninitialized(*shape, **made))
        if not one:
            self.register_parameter("in_proj_weight", None)
        self.register_parameter("in_proj_bias", uninitialized(3 * size, **made) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(size, size, bias=bias, **made)

    def _reset_parameters(self) -> None:
        """Draw the weights, then the biases of k and v; the other biases become 0."""
        weights: tuple[Any, ...] = (
            (self.in_proj_weight,)
            if self._qkv_same_embed_dim
            else (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        )
        for weight in weights:
            init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)  # type: ignore[arg-type]  # it has a bias, too
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def __setstate__(self, state: dict) -> None:
        super().__setstate__({"_qkv_same_embed_dim": True, **state})

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None,
        need_weights: bool = True, attn_mask: Tensor | None = None, average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        turned = self.batch_first and query.dim() == 3
        if turned:
            query, key, value = steps_first(query, key, value)
        output, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k,
            self.bias_v, self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias, self.training,
            key_padding_mask, need_weights, attn_mask, not self._qkv_same_embed_dim, self.q_proj_weight,
            self.k_proj_weight, self.v_proj_weight, average_attn_weights=average_attn_weights, is_causal=is_causal,
        )  # fmt: skip
        return output.transpose(0, 1) if turned else output, weights


def steps_first(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(N, L, E) -> (L, N, E); tensors that were the same object stay the same object."""
    q = query.transpose(0, 1)
    k = q if key is query else key.transpose(0, 1)
    v = k if value is key else q if value is query else value.transpose(0, 1)
    return q, k, v
