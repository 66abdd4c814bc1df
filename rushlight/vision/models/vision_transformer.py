"""Vision transformers: an image as a sequence of patches (Dosovitskiy et al. 2020)."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from rushlight import nn
from rushlight.base.errors import value_error
from rushlight.core.tensor import Tensor
from rushlight.creation.factories import empty, zeros
from rushlight.ops.shape.view_functions import cat
from rushlight.ops.tensor.control_flow import _assert
from rushlight.vision.models.first import constant
from rushlight.vision.models.weights import Trained, imagenet, model, weights
from rushlight.vision.ops.misc import MLP, Conv2dNormActivation

__all__ = [
    "ViT_B_16_Weights", "ViT_B_32_Weights", "ViT_H_14_Weights", "ViT_L_16_Weights", "ViT_L_32_Weights",
    "VisionTransformer", "vit_b_16", "vit_b_32", "vit_h_14", "vit_l_16", "vit_l_32",
]  # fmt: skip

Norm = Callable[..., nn.Module]
EXACT = partial(nn.LayerNorm, eps=1e-6)


class MLPBlock(MLP):
    """Linear, GELU, linear, with dropout after each."""

    def __init__(self, in_dim: int, mlp_dim: int, dropout: float):
        super().__init__(in_dim, [mlp_dim, in_dim], activation_layer=nn.GELU, inplace=None, dropout=dropout)
        for m in self.modules():
            if isinstance(m, nn.Linear):
                nn.init.xavier_uniform_(m.weight)
                if m.bias is not None:
                    nn.init.normal_(m.bias, std=1e-6)


class EncoderBlock(nn.Module):
    """x + attention(norm(x)), then x + mlp(norm(x))."""

    def __init__(
        self, num_heads: int, hidden_dim: int, mlp_dim: int, dropout: float, attention_dropout: float,
        norm_layer: Norm = EXACT,
    ):  # fmt: skip
        super().__init__()
        self.num_heads = num_heads
        self.ln_1 = norm_layer(hidden_dim)
        self.self_attention = nn.MultiheadAttention(hidden_dim, num_heads, dropout=attention_dropout, batch_first=True)
        self.dropout = nn.Dropout(dropout)
        self.ln_2 = norm_layer(hidden_dim)
        self.mlp = MLPBlock(hidden_dim, mlp_dim, dropout)

    def forward(self, input: Tensor) -> Tensor:
        x = self.ln_1(input)
        x, _ = self.self_attention(x, x, x, need_weights=False)
        x = self.dropout(x) + input
        return x + self.mlp(self.ln_2(x))


class Encoder(nn.Module):
    """Add positions, run the blocks in order, normalize."""

    def __init__(
        self, seq_length: int, num_layers: int, num_heads: int, hidden_dim: int, mlp_dim: int, dropout: float,
        attention_dropout: float, norm_layer: Norm = EXACT,
    ):  # fmt: skip
        super().__init__()
        self.pos_embedding = nn.Parameter(empty(1, seq_length, hidden_dim).normal_(std=0.02))
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.Sequential(
            OrderedDict(
                (
                    f"encoder_layer_{i}",
                    EncoderBlock(num_heads, hidden_dim, mlp_dim, dropout, attention_dropout, norm_layer),
                )
                for i in range(num_layers)
            )
        )
        self.ln = norm_layer(hidden_dim)

    def forward(self, input: Tensor) -> Tensor:
        _assert(input.dim() == 3, f"Expected (batch_size, seq_length, hidden_dim) got {input.shape}")
        return self.ln(self.layers(self.dropout(input + self.pos_embedding)))


class ConvStemConfig(NamedTuple):
    """One convolution of a stem, with its normalization and activation."""

    out_channels: int
    kernel_size: int
    stride: int
    norm_layer: Callable[..., nn.Module] = nn.BatchNorm2d
    activation_layer: Callable[..., nn.Module] = nn.ReLU


def stem(configs: list[ConvStemConfig], hidden_dim: int) -> nn.Sequential:
    """Convolutions from 3 channels to `hidden_dim`, the last of size 1."""
    layers, channels = nn.Sequential(), 3
    for i, one in enumerate(configs):
        block = Conv2dNormActivation(
            channels, one.out_channels, one.kernel_size, one.stride, norm_layer=one.norm_layer,
            activation_layer=one.activation_layer,
        )  # fmt: skip
        layers.add_module(f"conv_bn_relu_{i}", block)
        channels = one.out_channels
    layers.add_module("conv_last", nn.Conv2d(channels, hidden_dim, kernel_size=1))
    return layers


class VisionTransformer(nn.Module):
    """(N, 3, H, W) to (N, classes), H = W = image_size. `representation_size`: size of an additional tanh layer before
    the last layer. `conv_stem_configs`: convolutions in place of the patch projection."""

    def __init__(
        self, image_size: int, patch_size: int, num_layers: int, num_heads: int, hidden_dim: int, mlp_dim: int,
        dropout: float = 0.0, attention_dropout: float = 0.0, num_classes: int = 1000,
        representation_size: int | None = None, norm_layer: Norm = EXACT,
        conv_stem_configs: list[ConvStemConfig] | None = None,
    ):  # fmt: skip
        super().__init__()
        if image_size % patch_size:
            raise value_error("Input shape indivisible by patch size!", given=(image_size, patch_size))
        self.image_size, self.patch_size, self.hidden_dim, self.mlp_dim = image_size, patch_size, hidden_dim, mlp_dim
        self.attention_dropout, self.dropout, self.num_classes = attention_dropout, dropout, num_classes
        self.representation_size, self.norm_layer = representation_size, norm_layer
        self.conv_proj: nn.Module = (
            nn.Conv2d(3, hidden_dim, kernel_size=patch_size, stride=patch_size)
            if conv_stem_configs is None
            else stem(conv_stem_configs, hidden_dim)
        )
        self.seq_length = (image_size // patch_size) ** 2 + 1
        self.class_token = nn.Parameter(zeros(1, 1, hidden_dim))
        self.encoder = Encoder(
            self.seq_length, num_layers, num_heads, hidden_dim, mlp_dim, dropout, attention_dropout, norm_layer
        )
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        if representation_size is not None:
            layers["pre_logits"], layers["act"] = nn.Linear(hidden_dim, representation_size), nn.Tanh()
        layers["head"] = nn.Linear(representation_size or hidden_dim, num_classes)
        self.heads = nn.Sequential(layers)
        self._start(layers.get("pre_logits"))

    def _start(self, before: Any) -> None:
        if isinstance(self.conv_proj, nn.Conv2d):
            fan_in = self.conv_proj.in_channels * self.patch_size**2
            nn.init.trunc_normal_(self.conv_proj.weight, std=math.sqrt(1 / fan_in))
            constant(self.conv_proj, None, 0)
        else:
            last: Any = self.conv_proj.conv_last
            nn.init.normal_(last.weight, mean=0.0, std=math.sqrt(2.0 / last.out_channels))
            constant(last, None, 0)
        if before is not None:
            nn.init.trunc_normal_(before.weight, std=math.sqrt(1 / before.in_features))
            nn.init.zeros_(before.bias)
        nn.init.zeros_(self.heads.head.weight)
        nn.init.zeros_(self.heads.head.bias)

    def _process_input(self, x: Tensor) -> Tensor:
        n, _, h, w = x.shape
        size = self.image_size
        # fx records the checks
        _assert(h == size, f"Wrong image height! Expected {size} but got {h}!")
        _assert(w == size, f"Wrong image width! Expected {size} but got {w}!")
        return self.conv_proj(x).reshape(n, self.hidden_dim, -1).permute(0, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        words = self._process_input(x)
        words = cat([self.class_token.expand(words.shape[0], -1, -1), words], 1)
        return self.heads(self.encoder(words)[:, 0])


def swag(kind: str, linear: str, end: str, crop: int) -> dict[str, Trained]:
    """Weights that were pretrained with weak supervision (SWAG)."""
    return {
        "IMAGENET1K_SWAG_E2E_V1": Trained(f"{kind}_swag-{end}.pth", crop, crop, "bicubic"),
        "IMAGENET1K_SWAG_LINEAR_V1": Trained(f"{kind}_lc_swag-{linear}.pth", 224, 224, "bicubic"),
    }


ViT_B_16_Weights = weights(
    "ViT_B_16", {"IMAGENET1K_V1": Trained("vit_b_16-c867db91.pth"), **swag("vit_b_16", "4e70ced5", "9ac1b537", 384)}
)
ViT_B_32_Weights = imagenet("ViT_B_32", "vit_b_32-d86f8d99")
ViT_L_16_Weights = weights(
    "ViT_L_16",
    {
        "IMAGENET1K_V1": Trained("vit_l_16-852ce7e3.pth", resize_size=242),
        **swag("vit_l_16", "4d563306", "4f3808c9", 512),
    },
)
ViT_L_32_Weights = imagenet("ViT_L_32", "vit_l_32-c7638314")
ViT_H_14_Weights = weights("ViT_H_14", swag("vit_h_14", "c1eb923e", "80465313", 518))


def vit(
    patch_size: int, num_layers: int, num_heads: int, hidden_dim: int, mlp_dim: int, *, image_size: int = 224,
    **kwargs: Any,
) -> VisionTransformer:  # fmt: skip
    return VisionTransformer(image_size, patch_size, num_layers, num_heads, hidden_dim, mlp_dim, **kwargs)


vit_b_16 = model(ViT_B_16_Weights, vit, 16, 12, 12, 768, 3072)
vit_b_32 = model(ViT_B_32_Weights, vit, 32, 12, 12, 768, 3072)
vit_l_16 = model(ViT_L_16_Weights, vit, 16, 24, 16, 1024, 4096)
vit_l_32 = model(ViT_L_32_Weights, vit, 32, 24, 16, 1024, 4096)
vit_h_14 = model(ViT_H_14_Weights, vit, 14, 32, 16, 1280, 5120)
