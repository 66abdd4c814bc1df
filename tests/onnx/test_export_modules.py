"""Modules of torch.nn in onnxruntime, for three sizes of the batch."""

from __future__ import annotations

import warnings

import pytest

import rushlight
from rushlight import nn
from rushlight.nn import functional as F
from tests.onnx.onnx_case import check

R = rushlight.randn
ACTIVATIONS = """
    CELU ELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid Mish PReLU ReLU ReLU6 RReLU SELU
    SiLU Sigmoid Softplus Softshrink Softsign Tanh Tanhshrink
""".split()


class Of(nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def spectral():
    return nn.utils.parametrizations.spectral_norm(nn.Linear(3, 4))


def decoder():
    return nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, batch_first=True), 2)


def borders():
    pads = nn.ReflectionPad2d((1, 2, 0, 1)), nn.ReplicationPad2d(1), nn.ZeroPad2d(2), nn.CircularPad2d(1)
    return nn.Sequential(*pads, nn.ConstantPad2d((1, -1, 0, 2), 3.0))


def image(*size):
    return lambda n: (R(n, *size),)


MODULES = {
    **{name: (getattr(nn, name), image(4, 6)) for name in ACTIVATIONS},
    **{name: (lambda name=name: getattr(nn, name)(-1), image(4, 6)) for name in ("Softmax", "LogSoftmax", "Softmin")},
    "Softmax2d": (nn.Softmax2d, image(2, 3, 3)),
    "Threshold": (lambda: nn.Threshold(0.1, 2.0), image(4)),
    "AvgPool1d": (lambda: nn.AvgPool1d(2), image(2, 9)),
    "AvgPool2d, ceil": (lambda: nn.AvgPool2d(3, 2, 1, ceil_mode=True), image(2, 8, 9)),
    "AvgPool2d, without padding": (
        lambda: nn.AvgPool2d(3, 2, 1, ceil_mode=True, count_include_pad=False),
        image(2, 8, 9),
    ),
    "AvgPool3d, divisor": (lambda: nn.AvgPool3d(2, divisor_override=3), image(2, 4, 4, 4)),
    "MaxPool1d": (lambda: nn.MaxPool1d(3, 2, 1, dilation=2), image(2, 19)),
    "MaxPool2d, places": (lambda: nn.MaxPool2d(2, return_indices=True), image(2, 6, 6)),
    "MaxPool3d": (lambda: nn.MaxPool3d(2, ceil_mode=True), image(2, 5, 4, 5)),
    "MaxUnpool2d": (lambda: Of(lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2)), image(2, 4, 4)),
    "LPPool2d": (lambda: nn.LPPool2d(2, 3), image(2, 9, 9)),
    "AdaptiveAvgPool1d": (lambda: nn.AdaptiveAvgPool1d(4), image(2, 8)),
    "AdaptiveAvgPool2d": (lambda: nn.AdaptiveAvgPool2d((3, 5)), image(2, 7, 11)),
    "AdaptiveMaxPool2d": (lambda: nn.AdaptiveMaxPool2d((2, 3)), image(2, 7, 11)),
    "LocalResponseNorm": (lambda: nn.LocalResponseNorm(3), image(4, 5, 5)),
    "RMSNorm": (lambda: nn.RMSNorm(6), image(4, 6)),
    "InstanceNorm1d, statistics": (lambda: nn.InstanceNorm1d(4, track_running_stats=True), image(4, 6)),
    "InstanceNorm2d": (lambda: nn.InstanceNorm2d(4), image(4, 6, 3)),
    "BatchNorm1d": (lambda: nn.BatchNorm1d(4, affine=False), image(4)),
    "BatchNorm2d of the batch": (lambda: nn.BatchNorm2d(4, track_running_stats=False), image(4, 5, 5)),
    "BatchNorm3d": (lambda: nn.BatchNorm3d(4), image(4, 2, 2, 2)),
    "LayerNorm of two": (lambda: nn.LayerNorm((4, 6), elementwise_affine=False), image(4, 6)),
    "LayerNorm without bias": (lambda: nn.LayerNorm(6, bias=False), image(4, 6)),
    "GroupNorm": (lambda: nn.GroupNorm(2, 6, affine=False), image(6, 3)),
    "Bilinear": (lambda: nn.Bilinear(3, 4, 5), lambda n: (R(n, 3), R(n, 4))),
    "CosineSimilarity": (lambda: nn.CosineSimilarity(1), lambda n: (R(n, 3), R(n, 3))),
    "PairwiseDistance": (nn.PairwiseDistance, lambda n: (R(n, 3), R(n, 3))),
    "Unfold": (lambda: nn.Unfold(3, dilation=2, padding=1, stride=2), image(2, 9, 9)),
    "Fold": (lambda: nn.Fold((6, 6), 2, stride=2), image(8, 9)),
    "PixelShuffle": (lambda: nn.PixelShuffle(2), image(8, 3, 3)),
    "PixelUnshuffle": (lambda: nn.PixelUnshuffle(2), image(2, 6, 6)),
    "ChannelShuffle": (lambda: nn.ChannelShuffle(2), image(4, 3, 3)),
    "Upsample, linear": (lambda: nn.Upsample(scale_factor=2, mode="linear", align_corners=True), image(2, 5)),
    "Upsample, bicubic": (lambda: nn.Upsample(size=(7, 9), mode="bicubic"), image(2, 5, 4)),
    "Upsample, trilinear": (lambda: nn.Upsample(scale_factor=2, mode="trilinear"), image(2, 3, 4, 5)),
    "Upsample, area": (lambda: nn.Upsample(size=(3, 2), mode="area"), image(2, 6, 6)),
    "Upsample, nearest-exact": (lambda: nn.Upsample(scale_factor=1.5, mode="nearest-exact"), image(2, 6, 5)),
    "interpolate, antialias": (
        lambda: Of(lambda x: F.interpolate(x, size=(3, 5), mode="bicubic", antialias=True)),
        image(2, 9, 11),
    ),
    "Conv2d, same": (lambda: nn.Conv2d(2, 4, (2, 3), padding="same", groups=2), image(2, 5, 5)),
    "Conv2d, reflect": (lambda: nn.Conv2d(2, 4, 3, padding=1, padding_mode="reflect"), image(2, 5, 5)),
    "Conv3d": (lambda: nn.Conv3d(2, 3, 3, stride=2, padding=1), image(2, 5, 5, 5)),
    "ConvTranspose1d": (lambda: nn.ConvTranspose1d(4, 6, 5, 3, 2, output_padding=2, groups=2), image(4, 7)),
    "ConvTranspose3d": (lambda: nn.ConvTranspose3d(2, 3, 2, 2), image(2, 3, 3, 3)),
    "MultiheadAttention, weights": (
        lambda: nn.MultiheadAttention(8, 2, batch_first=True, add_bias_kv=True),
        lambda n: (R(n, 5, 8), R(n, 4, 8), R(n, 4, 8)),
    ),
    "TransformerDecoder": (decoder, lambda n: (R(n, 5, 8), R(n, 4, 8))),
    "Transformer": (lambda: nn.Transformer(8, 2, 1, 1, 16, batch_first=True), lambda n: (R(n, 5, 8), R(n, 4, 8))),
    "GRUCell": (lambda: nn.GRUCell(4, 6), lambda n: (R(n, 4), R(n, 6))),
    "RNNCell": (lambda: nn.RNNCell(4, 6), lambda n: (R(n, 4), R(n, 6))),
    "GRU, both directions": (lambda: nn.GRU(4, 6, 2, bidirectional=True, bias=False, batch_first=True), image(5, 4)),
    "LSTM without bias": (lambda: nn.LSTM(4, 6, bias=False, batch_first=True), image(5, 4)),
    "Embedding": (lambda: nn.Embedding(9, 4, padding_idx=0), lambda n: (rushlight.randint(0, 9, (n, 3)),)),
    "EmbeddingBag, mean": (lambda: nn.EmbeddingBag(9, 4), lambda n: (rushlight.randint(0, 9, (n, 3)),)),
    "EmbeddingBag, max": (lambda: nn.EmbeddingBag(9, 4, mode="max"), lambda n: (rushlight.randint(0, 9, (n, 3)),)),
    "Unflatten": (lambda: nn.Unflatten(1, (2, 3)), image(6)),
    "pads": (borders, image(2, 4, 5)),
    "ReflectionPad3d": (lambda: nn.ReflectionPad3d(1), image(2, 3, 3, 3)),
    "Dropout": (lambda: nn.Sequential(nn.Dropout(0.5), nn.AlphaDropout(0.5)), image(2)),
    "weight_norm": (lambda: nn.utils.parametrizations.weight_norm(nn.Linear(3, 4)), image(3)),
    "spectral_norm": (spectral, image(3)),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules_of_any_batch(name):
    rushlight.manual_seed(0)
    make, draw = MODULES[name]
    examples = [draw(n) for n in (3, 2 if "of the batch" in name else 1, 5)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(make(), examples, dynamic_shapes=tuple({0: "n"} for _ in examples[0]))
