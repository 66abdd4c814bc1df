"""The transformer of "Attention is all you need" (arXiv 1706.03762) and its parts."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable
from typing import Any

from rushlight.base import dtypes
from rushlight.base.device import present
from rushlight.base.errors import runtime_error
from rushlight.core.tensor import Tensor
from rushlight.creation.factories import full
from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.activation import GELU, ReLU
from rushlight.nn.containers import ModuleList
from rushlight.nn.dropout import Dropout
from rushlight.nn.functional.multihead import additive_mask
from rushlight.nn.linear import Linear
from rushlight.nn.module import Module
from rushlight.nn.multihead import MultiheadAttention
from rushlight.nn.normalization import LayerNorm
from rushlight.ops.grad_mode import is_grad_enabled
from rushlight.ops.shape.views import triu

Mask = Tensor | None
Activation = str | Callable[[Tensor], Tensor]


class Transformer(Module):
    """decoder(tgt, encoder(src)): src (S, N, E), tgt (T, N, E) -> (T, N, E), or (N, S, E) and so on if `batch_first`.

    E is `d_model`. Masks as in `TransformerEncoder` and `TransformerDecoder`. RuntimeError for sizes that do not fit.

    >>> model = rushlight.nn.Transformer(8, 2, 1, 1, 16, batch_first=True)
    >>> model(rushlight.ones(3, 5, 8), rushlight.ones(3, 4, 8)).shape
    torch.Size([3, 4, 8])
    """

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6,
        dim_feedforward: int = 2048, dropout: float = 0.1, activation: Activation = F.relu, custom_encoder: Any = None,
        custom_decoder: Any = None, layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False,
        bias: bool = True, device: Any = None, dtype: Any = None,
    ):  # fmt: skip
        super().__init__()
        made = {"device": device, "dtype": dtype}
        settings = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)
        if custom_encoder is None:
            layer = TransformerEncoderLayer(*settings, **made)
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
            self.encoder = TransformerEncoder(layer, num_encoder_layers, norm)
        else:
            self.encoder = custom_encoder
        if custom_decoder is None:
            block = TransformerDecoderLayer(*settings, **made)
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
            self.decoder = TransformerDecoder(block, num_decoder_layers, norm)
        else:
            self.decoder = custom_decoder
        self._reset_parameters()
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def _reset_parameters(self) -> None:
        """Draw every parameter of more than one dimension."""
        for parameter in self.parameters():
            if parameter.dim() > 1:
                init.xavier_uniform_(parameter)

    def forward(
        self, src: Tensor, tgt: Tensor, src_mask: Mask = None, tgt_mask: Mask = None, memory_mask: Mask = None,
        src_key_padding_mask: Mask = None, tgt_key_padding_mask: Mask = None, memory_key_padding_mask: Mask = None,
        src_is_causal: bool | None = None, tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        batch = 0 if self.batch_first else 1
        if src.dim() == 3 and src.size(batch) != tgt.size(batch):
            raise runtime_error("the batch number of src and tgt must be equal")
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise runtime_error("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )  # fmt: skip

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """The causal mask to add to scores: 0 on and below the diagonal, -inf above it.

        >>> rushlight.nn.Transformer.generate_square_subsequent_mask(2)
        tensor([[0., -inf],
                [0., 0.]])
        """
        if device is not None:
            present(device)
        return causal_mask(sz, dtypes.or_default(dtype))


# -- stacks of layers ------------------------------------------------------------------------------


class TransformerEncoder(Module):
    """out = norm(layer_n(...layer_1(src))), `num_layers` copies of a layer: src (S, N, E) -> the same shape.

    `mask` (S, S) and `src_key_padding_mask` (N, S) as in MultiheadAttention; `is_causal`: whether `mask` is the causal
    mask (None: compare). `enable_nested_tensor`: as in torch, outputs at padding are 0 in evaluation without gradients;
    with `mask_check`, only if all padding is at the end.

    >>> layer = rushlight.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    >>> rushlight.nn.TransformerEncoder(layer, num_layers=2)(rushlight.ones(3, 5, 8)).shape
    torch.Size([3, 5, 8])
    """

    def __init__(
        self, encoder_layer: Module, num_layers: int, norm: Module | None = None, enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ):  # fmt: skip
        super().__init__()
        self.layers = copies(encoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm
        self.enable_nested_tensor, self.mask_check = enable_nested_tensor, mask_check
        reason = why_not_nested(encoder_layer) if enable_nested_tensor else ""
        self.use_nested_tensor = enable_nested_tensor and not reason
        if reason:
            warnings.warn(
                f"enable_nested_tensor is True, but self.use_nested_tensor is False because encoder_layer{reason}",
                stacklevel=2,
            )

    def forward(
        self, src: Tensor, mask: Mask = None, src_key_padding_mask: Mask = None, is_causal: bool | None = None
    ) -> Tensor:
        padding = additive_mask(src_key_padding_mask, src, "src_key_padding_mask", mask, "mask")
        mask = additive_mask(mask, src, "mask")
        causal = looks_causal(mask, is_causal, length(src, self.layers[0].self_attn.batch_first))
        output = src
        for layer in self.layers:
            output = layer(output, src_mask=mask, is_causal=causal, src_key_padding_mask=padding)
        if padding is not None and self._drops_padding(src, mask, padding):
            output = output.masked_fill((padding != 0).unsqueeze(-1), 0.0)
        return output if self.norm is None else self.norm(output)

    def _drops_padding(self, src: Tensor, mask: Mask, padding: Tensor) -> bool:
        """Whether torch would compute with nested tensors, without the padding, and return 0 at the padding."""
        first = self.layers[0]
        if not self.use_nested_tensor or first.training or src.dim() != 3 or mask is not None:
            return False
        if is_grad_enabled() and (src.requires_grad or any(p.requires_grad for p in first.parameters())):
            return False
        hidden = padding != 0  # `mask_check`: padding must be at the end
        return not self.mask_check or not bool((hidden[:, :-1] & ~hidden[:, 1:]).any())


class TransformerDecoder(Module):
    """out = norm(layer_n(...layer_1(tgt, memory), memory)): tgt (T, N, E), memory (S, N, E) -> (T, N, E).

    The layers are `num_layers` copies of one. `tgt_mask` (T, T), `memory_mask` (T, S) and the padding masks (N, T) and
    (N, S) as in MultiheadAttention.

    >>> layer = rushlight.nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)
    >>> rushlight.nn.TransformerDecoder(layer, num_layers=2)(rushlight.ones(3, 4, 8), rushlight.ones(3, 5, 8)).shape
    torch.Size([3, 4, 8])
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None):
        super().__init__()
        self.layers = copies(decoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Mask = None, memory_mask: Mask = None,
        tgt_key_padding_mask: Mask = None, memory_key_padding_mask: Mask = None, tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        causal = looks_causal(tgt_mask, tgt_is_causal, length(tgt, self.layers[0].self_attn.batch_first))
        output = tgt
        for layer in self.layers:
            output = layer(
                output, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )  # fmt: skip
        return output if self.norm is None else self.norm(output)


# -- layers ----------------------------------------------------------------------------------------


class _Layer(Module):
    """Attentions and a small network. Each output is added to the input; the norm comes after the sum, or
    before the block if `norm_first`."""

    _attentions: tuple[str, ...] = ("self_attn",)

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: Activation = F.relu, layer_norm_eps: float = 1e-5, batch_first: bool = False,
        norm_first: bool = False, bias: bool = True, device: Any = None, dtype: Any = None,
    ):  # fmt: skip
        super().__init__()
        made = {"device": device, "dtype": dtype}
        for name in self._attentions:
            attention = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **made)
            setattr(self, name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **made)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **made)
        self.norm_first = norm_first
        blocks = range(1, len(self._attentions) + 2)
        for i in blocks:
            setattr(self, f"norm{i}", LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made))
        for i in blocks:
            setattr(self, f"dropout{i}", Dropout(dropout))
        self.activation = activation_of(activation)
        if len(blocks) == 2:  # torch's encoder layers have this attribute
            self.activation_relu_or_gelu = relu_or_gelu(self.activation)

    def __setstate__(self, state: dict) -> None:
        super().__setstate__(
            {"activation": F.relu, **state} if "activation" not in state.get("_modules", {}) else state
        )

    def _plus(self, i: int, x: Tensor, block: Callable[[Tensor], Tensor]) -> Tensor:
        """x plus the i-th block of x, with the norm before or after."""
        norm, dropout = getattr(self, f"norm{i}"), getattr(self, f"dropout{i}")
        if self.norm_first:
            return x + dropout(block(norm(x)))
        return norm(x + dropout(block(x)))

    def _feed(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_Layer):
    """norm(x + attention(x)), then norm(x + linear2(activation(linear1(x)))): src (S, N, E) -> the same shape.

    `activation`: "relu", "gelu" or a function. `norm_first`: x + attention(norm(x)) instead. Dropout after each part.

    >>> layer = rushlight.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    >>> layer(rushlight.ones(3, 5, 8)).shape
    torch.Size([3, 5, 8])
    """

    def forward(
        self, src: Tensor, src_mask: Mask = None, src_key_padding_mask: Mask = None, is_causal: bool = False
    ) -> Tensor:
        padding = additive_mask(src_key_padding_mask, src, "src_key_padding_mask", src_mask, "src_mask")
        mask = additive_mask(src_mask, src, "src_mask")
        x = self._plus(1, src, lambda x: self.self_attn(x, x, x, padding, False, mask, is_causal=is_causal)[0])
        return self._plus(2, x, self._feed)


class TransformerDecoderLayer(_Layer):
    """norm(x + attention(x)), norm(x + attention(x, memory)), norm(x + linear2(activation(linear1(x)))).

    tgt (T, N, E), memory (S, N, E) -> (T, N, E); settings as for `TransformerEncoderLayer`.

    >>> layer = rushlight.nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)
    >>> layer(rushlight.ones(3, 4, 8), rushlight.ones(3, 5, 8)).shape
    torch.Size([3, 4, 8])
    """

    _attentions = ("self_attn", "multihead_attn")

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Mask = None, memory_mask: Mask = None,
        tgt_key_padding_mask: Mask = None, memory_key_padding_mask: Mask = None, tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        x = self._plus(
            1, tgt, lambda x: self.self_attn(x, x, x, tgt_key_padding_mask, False, tgt_mask, is_causal=tgt_is_causal)[0]
        )
        x = self._plus(
            2,
            x,
            lambda x: self.multihead_attn(
                x, memory, memory, memory_key_padding_mask, False, memory_mask, is_causal=memory_is_causal
            )[0],
        )
        return self._plus(3, x, self._feed)


# -- helpers ---------------------------------------------------------------------------------------


def copies(module: Module, n: int) -> ModuleList:
    return ModuleList([copy.deepcopy(module) for _ in range(n)])


def activation_of(activation: Activation) -> Callable[[Tensor], Tensor]:
    """The function of that name, or the function itself. RuntimeError for an unknown name."""
    if not isinstance(activation, str):
        return activation
    if activation not in ("relu", "gelu"):
        raise runtime_error(f"activation should be relu/gelu, not {activation}")
    return F.relu if activation == "relu" else F.gelu


def relu_or_gelu(activation: Any) -> int:
    """torch's code of an activation: 1 for relu, 2 for gelu, 0 for others."""
    kinds = (F.relu, ReLU), (F.gelu, GELU)
    return next((n for n, (f, m) in enumerate(kinds, 1) if activation is f or isinstance(activation, m)), 0)


# users' layers import them under these names
_get_clones, _get_activation_fn = copies, activation_of


def causal_mask(n: int, dtype: dtypes.dtype) -> Tensor:
    """0 on and below the diagonal, -inf above."""
    return triu(full((n, n), -math.inf, dtype=dtype), 1)


def length(x: Tensor, batch_first: bool) -> int:
    """The number of steps."""
    return x._array.shape[1 if batch_first and x._array.ndim == 3 else 0]


def looks_causal(mask: Mask, said: bool | None, n: int) -> bool:
    """The argument `is_causal`; if it is None, whether the mask is the causal mask."""
    if said is not None or mask is None:
        return said is True
    if mask._array.shape != (n, n):
        return False
    return bool((mask == causal_mask(n, mask.dtype)).all())


def why_not_nested(layer: Module) -> str:
    """Why torch would not use nested tensors for copies of this layer; nothing if it would."""
    if not isinstance(layer, TransformerEncoderLayer):
        return " was not TransformerEncoderLayer"
    attention = layer.self_attn
    reasons = {
        ".norm_first was True": layer.norm_first,
        ".self_attn.batch_first was not True"
        "(use batch_first for better inference performance)": not attention.batch_first,
        ".self_attn._qkv_same_embed_dim was not True": not attention._qkv_same_embed_dim,
        ".self_attn was passed bias=False": attention.in_proj_bias is None,
        ".activation_relu_or_gelu was not True": not layer.activation_relu_or_gelu,
        ".norm1.eps was not equal to encoder_layer.norm2.eps": layer.norm1.eps != layer.norm2.eps,
        ".self_attn.num_heads is odd": attention.num_heads % 2 == 1,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")
