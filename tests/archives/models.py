"""Small models that torch and rushlight build alike: `models(library)` with the library torch or rushlight."""

from __future__ import annotations

from types import SimpleNamespace


def models(torch):
    """{name: (a function that makes the module, its arguments)}."""
    layers, shaped = layer_models(torch), shape_models(torch)
    normal = lambda *size: torch.randn(*size, generator=generator)
    whole = lambda below, *size: torch.randint(0, below, size, generator=generator)
    generator = torch.Generator().manual_seed(7)
    return {
        "perceptron": (layers.perceptron, (normal(3, 4),)),
        "convnet": (layers.convnet, (normal(2, 1, 12, 12),)),
        "residual": (layers.Residual, (normal(2, 4, 6, 6),)),
        "separable": (layers.separable, (normal(2, 4, 9, 9),)),
        "wave": (layers.Wave, (normal(2, 1, 40),)),
        "upsampling": (layers.Upsampling, (normal(1, 2, 5, 6),)),
        "volume": (layers.volume, (normal(1, 1, 6, 6, 6),)),
        "lstm": (layers.Lstm, (whole(20, 2, 5),)),
        "two_lstms": (layers.TwoLstms, (normal(4, 2, 3),)),
        "gru": (layers.Gru, (normal(2, 5, 3),)),
        "rnn": (layers.Rnn, (normal(5, 2, 3),)),
        "cells": (layers.Cells, (normal(4, 2, 3),)),
        "transformer": (layers.transformer, (normal(2, 5, 8),)),
        "gpt": (layers.Gpt, (whole(20, 2, 6),)),
        "attention": (layers.Attention, (normal(2, 4, 8), normal(2, 6, 8))),
        "bag": (layers.Bag, (whole(9, 3, 4),)),
        "norms": (layers.Norms, (normal(2, 4, 5, 5),)),
        "activations": (shaped.Activations, (normal(3, 8),)),
        "shapes": (shaped.Shapes, (normal(2, 3, 4),)),
        "reductions": (shaped.Reductions, (normal(3, 5),)),
        "outputs": (shaped.Outputs, (normal(2, 3), {"scale": normal(3), "pair": (normal(2, 3), normal(1))})),
        "integers": (shaped.Integers, (whole(9, 3, 4), normal(3, 4))),
    }


def built(torch, name):
    """(module in evaluation, arguments) of torch."""
    torch.manual_seed(0)
    make, args = models(torch)[name]
    return make().eval(), args


def layer_models(torch):
    """Networks of layers."""
    nn, F = torch.nn, torch.nn.functional

    def perceptron():
        return nn.Sequential(
            nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 3), nn.Softmax(-1)
        )

    def convnet():
        return nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 6, 3), nn.GELU(),
            nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(24, 5), nn.LogSoftmax(1),
        )  # fmt: skip

    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.norm_a = nn.Conv2d(4, 8, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(8)
            self.b, self.norm_b = nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
            self.short = nn.Conv2d(4, 8, 1, stride=2)
            self.out = nn.Linear(8, 3)

        def forward(self, x):
            y = F.relu(self.norm_a(self.a(x)))
            y = F.relu(self.norm_b(self.b(y)) + self.short(x))
            return self.out(y.mean((2, 3)))

    def separable():
        return nn.Sequential(
            nn.Conv2d(4, 4, 3, padding=2, dilation=2, groups=4), nn.Conv2d(4, 8, 1), nn.ReLU6(), nn.AvgPool2d(2),
            nn.Hardswish(), nn.Conv2d(8, 4, 3, padding="same"), nn.SiLU(), nn.AdaptiveMaxPool2d(2),
        )  # fmt: skip

    class Wave(nn.Module):
        """Waves as frames: convolutions of one dimension, padding by reflection."""

        def __init__(self):
            super().__init__()
            self.down, self.up = (
                nn.Conv1d(1, 4, 5, stride=2, padding=2),
                nn.ConvTranspose1d(4, 1, 4, stride=2, padding=1),
            )

        def forward(self, x):
            y = F.leaky_relu(self.down(F.pad(x, (3, 3), mode="reflect")), 0.1)
            y = F.pad(F.elu(y), (0, 2))
            return torch.tanh(self.up(y))

    class Upsampling(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.ConvTranspose2d(2, 4, 3, stride=2, output_padding=1), nn.Conv2d(4, 4, 1)
            self.shuffle = nn.PixelShuffle(2)

        def forward(self, x):
            y = F.interpolate(self.a(x), scale_factor=2.0, mode="nearest")
            y = F.interpolate(self.b(y), size=(12, 14), mode="bilinear", align_corners=False)
            return self.shuffle(y)

    def volume():
        return nn.Sequential(
            nn.Conv3d(1, 2, 3), nn.InstanceNorm3d(2, affine=True), nn.PReLU(), nn.MaxPool3d(2), nn.Flatten(1)
        )

    class Lstm(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.lstm = (
                nn.Embedding(20, 6),
                nn.LSTM(6, 5, num_layers=2, batch_first=True, bidirectional=True),
            )
            self.out = nn.Linear(10, 2)

        def forward(self, ids):
            y, (h, c) = self.lstm(self.table(ids))
            return self.out(y[:, -1]), h, c

    class TwoLstms(nn.Module):
        """A state that the model makes, and an LSTM without biases."""

        def __init__(self):
            super().__init__()
            self.a, self.b = nn.LSTM(3, 4), nn.LSTM(4, 4, bias=False)

        def forward(self, x):
            h = torch.zeros(1, x.shape[1], 4)
            y, state = self.a(x, (h, h + 1.0))
            return self.b(y, state)[0]

    class Gru(nn.Module):
        def __init__(self):
            super().__init__()
            self.gru = nn.GRU(3, 4, num_layers=2, batch_first=True)

        def forward(self, x):
            y, h = self.gru(x)
            return y * 2, h

    class Rnn(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.RNN(3, 4), nn.RNN(4, 4, nonlinearity="relu", bidirectional=True)

        def forward(self, x):
            return self.b(self.a(x)[0])

    class Cells(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.gru = nn.LSTMCell(3, 4), nn.GRUCell(4, 4)

        def forward(self, x):
            h, c, g = torch.zeros(2, 4), torch.zeros(2, 4), torch.zeros(2, 4)
            for t in range(4):
                h, c = self.lstm(x[t], (h, c))
                g = self.gru(h, g)
            return g, c

    def transformer():
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True, activation="gelu")
        return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.LayerNorm(8), nn.LayerNorm(8)
            self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)
            self.mlp = nn.Sequential(nn.Linear(8, 16), nn.GELU(approximate="tanh"), nn.Linear(16, 8))

        def forward(self, x):
            q, k, v = self.qkv(self.a(x)).view(2, 6, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(2, 6, 8))
            return x + self.mlp(self.b(x))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(20, 8), nn.Embedding(6, 8)
            self.blocks, self.norm = nn.Sequential(Block(), Block()), nn.LayerNorm(8)

        def forward(self, ids):
            x = self.tokens(ids) + self.places(torch.arange(6))
            return self.norm(self.blocks(x)) @ self.tokens.weight.t()

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention, self.norm = nn.MultiheadAttention(8, 2, batch_first=True), nn.RMSNorm(8)

        def forward(self, x, memory):
            y, weights = self.attention(x, memory, memory)
            return self.norm(x + y), weights

    class Bag(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.out = nn.Embedding(9, 5, padding_idx=0), nn.Bilinear(5, 5, 2)

        def forward(self, ids):
            mask = (ids != 0).unsqueeze(-1)
            x = self.table(ids).masked_fill(~mask, 0.0)
            mean = x.sum(1) / mask.sum(1).clamp(min=1)
            return self.out(mean, x.amax(1))

    class Norms(nn.Module):
        def __init__(self):
            super().__init__()
            self.group, self.instance, self.layer = nn.GroupNorm(2, 4), nn.InstanceNorm2d(4), nn.LayerNorm([5, 5])
            self.register_buffer("scale", torch.arange(4.0).view(4, 1, 1))
            self.batch = nn.BatchNorm2d(4, affine=False)

        def forward(self, x):
            y = self.layer(self.instance(self.group(x))) * self.scale
            return F.normalize(self.batch(y), dim=1), F.cosine_similarity(x, y, dim=1)

    return SimpleNamespace(**locals())


def shape_models(torch):
    """Programs of functions: activations, shapes, reductions, integers, results in containers."""
    nn, F = torch.nn, torch.nn.functional

    class Activations(nn.Module):
        def forward(self, x):
            y = F.softplus(x) + F.hardtanh(x) + F.hardsigmoid(x) + F.mish(x) + F.selu(x) + F.celu(x) + F.softsign(x)
            y = (
                y
                + torch.erf(x)
                + torch.sin(x) * torch.cos(x)
                + torch.atan2(x, y)
                + F.logsigmoid(x)
                + torch.log1p(x.abs())
            )
            y = (
                y
                + torch.exp(-x)
                + torch.sqrt(x.abs())
                + torch.rsqrt(x.abs() + 1)
                + x.sigmoid()
                + x.pow(3)
                + 2 / (x + 9)
            )
            y = y + F.glu(torch.cat([x, y], 1), 1) + torch.sign(x) + torch.floor(x) + torch.round(y) + x.clamp(-1, 0.5)
            return (
                y + torch.where(x > 0, x, y) + torch.maximum(x, y) - torch.minimum(x, y * 2) + F.threshold(x, 0.1, 3.0)
            )

    class Shapes(nn.Module):
        def forward(self, x):
            a, b = x.split([1, 2], 1)
            y = torch.cat([a, b, x.flip(1)], 1).transpose(1, 2)
            z = torch.stack([y, y * 2], -1).flatten(1, 2).unsqueeze(1).expand(2, 3, 24, 2)
            first, second = z.chunk(2, 2)
            w = torch.roll(first, 2, 2)[:, :, ::3, 0] + second[:, :, 1::3, 1] + x.repeat(1, 1, 1)
            w = w + torch.tril(w) + w.triu(1) + w.gather(2, x.argsort(2)) + x[:, [2, 0, 1]]
            return (
                w.permute(2, 0, 1).contiguous().view(4, 6),
                torch.einsum("bij,bkj->bik", x, w),
                x.squeeze(0).select(1, 0),
            )

    class Reductions(nn.Module):
        def forward(self, x):
            top, places = x.topk(2, 1)
            best = x.max(1)
            y = (
                x.sum()
                + x.mean(0).sum()
                + x.var(1).sum()
                + x.std()
                + x.norm()
                + x.prod(1).sum()
                + torch.logsumexp(x, 1).sum()
            )
            return (
                y, top, places, best.values, best.indices, x.argmax(1), x.amin(0), x.cumsum(1), x.sort(1)[0],
                x.any(1), (x > 0).all(), x @ x.t(), torch.addmm(x[:, :3], x, x.t()), torch.bmm(x[None], x.t()[None]),
            )  # fmt: skip

    class Outputs(nn.Module):
        """A dict and a tuple as arguments and as results."""

        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 3)

        def forward(self, x, more):
            y = self.linear(x) * more["scale"]
            left, right = more["pair"]
            return {"y": y, "rest": (left + right, [y.sum(), y.mean()])}

    class Integers(nn.Module):
        def forward(self, ids, x):
            hot = F.one_hot(ids, 9).float().mean((0, 1))
            y = x + ids + ids.float() / 2 + (ids // 2) + (ids % 3) + (ids.to(torch.int32) * 2).double().float()
            keep = (ids > 2) & (ids < 7) | ~(x > 0)
            return y * keep, hot, torch.full((2, 3), 1.5) + torch.ones_like(x)[:2, :3], x.index_select(1, ids[0] % 4)

    return SimpleNamespace(**locals())
