"""Models in onnxruntime: each agrees for three sizes of its dynamic dimensions."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import rushlight
from rushlight import nn
from tests.onnx.onnx_case import check

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import served_models

BATCHES = 2, 1, 5
IMAGES = "lenet", "resnet18", "mobilenet"


def served(name):
    """A model of benchmarks/served_models.py with random norms."""
    rushlight.manual_seed(0)
    model = served_models.MODELS[name].make(nn)
    state = {key: t.numpy() for key, t in model.state_dict().items()}
    changed = served_models.random_norms(state)
    model.load_state_dict({key: rushlight.tensor(a) for key, a in changed.items()})
    return model


@pytest.mark.parametrize("name", served_models.MODELS)
def test_served_models_of_any_batch(name):
    rng = np.random.default_rng(0)
    draws = [served_models.MODELS[name].draw(rng, n) for n in BATCHES]
    examples = [tuple(map(rushlight.from_numpy, arrays)) for arrays in draws]
    check(served(name), examples, dynamic_shapes=tuple({0: "batch"} for _ in examples[0]))


def test_unet_of_any_image():
    examples = [(rushlight.randn(n, 3, h, w),) for n, h, w in ((1, 32, 48), (2, 64, 16), (3, 4, 20))]
    check(served("unet"), examples, dynamic_shapes={"x": {0: "batch", 2: "height", 3: "width"}})


def test_resnet_of_any_image():
    examples = [(rushlight.randn(n, 3, h, w),) for n, h, w in ((1, 64, 64), (2, 33, 70), (1, 90, 51))]
    check(served("resnet18"), examples, dynamic_shapes=({0: "batch", 2: "height", 3: "width"},))


def test_bert_of_any_length():
    examples = [
        tuple(rushlight.ones(n, t, dtype=rushlight.int64) for _ in range(3)) for n, t in ((1, 8), (3, 20), (2, 1))
    ]
    check(served("bert"), examples, dynamic_shapes=({0: "batch", 1: "words"},) * 3)


def test_gpt_with_caches_of_any_length():
    examples = []
    for batch, cached in ((1, 4), (3, 9), (2, 1)):
        caches = [rushlight.randn(batch, 8, cached, 32) for _ in range(8)]
        examples.append((rushlight.randint(0, 9, (batch, 1)), rushlight.full((batch, 1), cached), *caches))
    dynamic = {"token": {0: "batch"}, "position": {0: "batch"}, "caches": ({0: "batch", 2: "cached"},) * 8}
    program = check(served("gpt"), examples, dynamic_shapes=dynamic)
    assert [i.name for i in program.model_proto.graph.input][:3] == ["token", "position", "caches_0"]


# -- models written for this test ----------------------------------------------------------------------


class ViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 32, 8, 8)
        self.cls = nn.Parameter(rushlight.randn(1, 1, 32))
        self.positions = nn.Parameter(rushlight.randn(1, 17, 32))
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, activation="gelu", norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = rushlight.cat([self.cls.expand(x.shape[0], -1, -1), x], 1) + self.positions
        return self.head(self.encoder(x)[:, 0])


class GPTWithMask(nn.Module):
    """Sinusoidal positions, and a causal mask made in forward."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(50, 32)
        self.attention = nn.MultiheadAttention(32, 4, batch_first=True)
        self.norm, self.head = nn.LayerNorm(32), nn.Linear(32, 50)

    def forward(self, ids):
        time = ids.shape[1]
        at = rushlight.arange(time).unsqueeze(1) * rushlight.exp(rushlight.arange(0, 32, 2) * -0.3)
        places = rushlight.stack([at.sin(), at.cos()], -1).flatten(1)
        x = self.tokens(ids) * 32**0.5 + places
        mask = rushlight.triu(rushlight.full((time, time), float("-inf")), 1)
        x = x + self.attention(x, x, x, attn_mask=mask, need_weights=False)[0]
        return self.head(self.norm(x))


class CausalAttention(nn.Module):
    """scaled_dot_product_attention with is_causal, split heads, tied weights."""

    def __init__(self):
        super().__init__()
        self.tokens, self.project = nn.Embedding(40, 24), nn.Linear(24, 72)

    def forward(self, ids):
        batch, time = ids.shape
        x = self.tokens(ids)
        q, k, v = [part.view(batch, time, 4, 6).transpose(1, 2) for part in self.project(x).chunk(3, -1)]
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return (x + y.transpose(1, 2).reshape(batch, time, 24)) @ self.tokens.weight.T


class BiLSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(30, 12)
        self.lstm = nn.LSTM(12, 16, 2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(32, 5)

    def forward(self, ids):
        out, (h, c) = self.lstm(self.tokens(ids))
        return self.head(out), h, c


class Recurrent(nn.Module):
    """GRU, RNN with ReLU and with tanh, and a cell, with given states."""

    def __init__(self):
        super().__init__()
        self.gru, self.relu = nn.GRU(6, 8), nn.RNN(8, 8, nonlinearity="relu", bias=False)
        self.tanh, self.cell = nn.RNN(8, 8, bidirectional=True), nn.LSTMCell(16, 4)

    def forward(self, x, h):
        x, last = self.gru(x, h)
        x = self.tanh(self.relu(x)[0])[0]
        return self.cell(x[-1]), last


class Upsampling(nn.Module):
    """A U-Net with interpolate in place of transposed convolutions, and group norm."""

    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.GroupNorm(4, 8), nn.SiLU())
        self.deep = nn.Sequential(nn.Conv2d(8, 16, 3, 2, 1), nn.InstanceNorm2d(16, affine=True), nn.LeakyReLU(0.2))
        self.up, self.out = nn.Conv2d(24, 8, 3, padding=1), nn.Conv2d(11, 1, 1)

    def forward(self, x):
        fine = self.down(x)
        deep = self.deep(fine)
        up = nn.functional.interpolate(deep, fine.shape[2:], mode="bilinear", align_corners=False)
        y = self.up(rushlight.cat([fine, up], 1)).relu()
        y = nn.functional.interpolate(y, size=x.shape[2:], mode="nearest")
        return self.out(rushlight.cat([x, y], 1))


class Decoder(nn.Module):
    """Transposed convolutions with output padding and dilation, and PixelShuffle."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.ConvTranspose2d(4, 8, 3, 2, 1, output_padding=1), nn.ELU(), nn.ConvTranspose2d(8, 8, 3, dilation=2),
            nn.PReLU(8), nn.Conv2d(8, 12, 1), nn.PixelShuffle(2), nn.Tanh(),
        )  # fmt: skip

    def forward(self, x):
        return self.layers(x)


class TwoTowers(nn.Module):
    """Two inputs of different lengths; a dict as the result."""

    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Linear(8, 16), nn.Sequential(nn.Linear(5, 16), nn.GELU("tanh"))

    def forward(self, queries, items):
        a, b = nn.functional.normalize(self.left(queries), dim=-1), nn.functional.normalize(self.right(items), dim=-1)
        scores = a @ b.T
        best = scores.topk(2, 1)
        return {"scores": scores, "best": best.values, "places": best.indices, "mean": scores.mean(1, keepdim=True)}


class Pooled(nn.Module):
    """Masked mean and maximum over time, one-hot ids, cumulative sums, where and einsum."""

    def forward(self, x, lengths):
        time = x.shape[1]
        mask = rushlight.arange(time) < lengths.unsqueeze(1)
        total = rushlight.where(mask.unsqueeze(-1), x, 0.0).sum(1) / lengths.unsqueeze(1)
        top = x.masked_fill(~mask.unsqueeze(-1), -1e9).amax(1)
        gram = rushlight.einsum("btc,bsc->bts", x, x).softmax(-1)
        hot = nn.functional.one_hot(x.argmax(-1), 6)
        return total, top, gram @ x.cumsum(1), hot


class Spectral(nn.Module):
    """Reflection padding, frames by unfold, a fixed window."""

    def __init__(self):
        super().__init__()
        self.register_buffer("window", rushlight.hann_window(16))
        self.conv = nn.Conv1d(16, 8, 1)

    def forward(self, wave):
        padded = nn.functional.pad(wave.unsqueeze(1), (8, 8), mode="reflect").squeeze(1)
        frames = padded.unfold(1, 16, 4) * self.window
        return self.conv(frames.transpose(1, 2)).abs().clamp(min=0.1).log()


class MixtureOfExperts(nn.Module):
    def __init__(self):
        super().__init__()
        self.experts, self.gate = nn.ModuleList([nn.Linear(8, 8) for _ in range(4)]), nn.Linear(8, 4)

    def forward(self, x):
        weights, chosen = self.gate(x).softmax(-1).topk(2, -1)
        dense = rushlight.zeros(x.shape[0], 4).scatter(1, chosen, weights / weights.sum(-1, keepdim=True))
        return sum(dense[:, k : k + 1] * expert(x) for k, expert in enumerate(self.experts))


class Llama(nn.Module):
    """RMS norm, rotary positions, grouped keys, SwiGLU."""

    def __init__(self):
        super().__init__()
        self.norm = nn.RMSNorm(32)
        self.q, self.kv, self.out = nn.Linear(32, 32, False), nn.Linear(32, 32, False), nn.Linear(32, 32, False)
        self.gate, self.up, self.down = nn.Linear(32, 64, False), nn.Linear(32, 64, False), nn.Linear(64, 32, False)

    def rotated(self, x):
        time, half = x.shape[2], x.shape[3] // 2
        angles = rushlight.outer(rushlight.arange(time).float(), 1e4 ** (-rushlight.arange(half) / half))
        a, b = x[..., :half], x[..., half:]
        return rushlight.cat([a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()], -1)

    def forward(self, x):
        batch, time, _ = x.shape
        y = self.norm(x)
        q = self.rotated(self.q(y).view(batch, time, 4, 8).transpose(1, 2))
        k, v = self.kv(y).view(batch, time, 2, 16).transpose(1, 2).split(8, -1)
        k, v = self.rotated(k).repeat_interleave(2, 1), v.repeat_interleave(2, 1)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, time, 32))
        return x + self.down(nn.functional.silu(self.gate(x)) * self.up(x))


class Swin(nn.Module):
    """Windows of 4 x 4, rolled by 2."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x):
        batch, height, width, c = x.shape
        y = rushlight.roll(x, (-2, -2), (1, 2)).view(batch, height // 4, 4, width // 4, 4, c)
        y = y.permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, c)
        y = self.attention(y, y, y, need_weights=False)[0]
        y = y.view(batch, height // 4, width // 4, 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(batch, height, width, c)
        return x + rushlight.roll(y, (2, 2), (1, 2))


def ints(below, *shape):
    return rushlight.randint(0, below, shape)


rushlight.manual_seed(0)
EXAMPLES = {  # model, examples, dynamic dimensions
    "vit": (ViT, [(rushlight.randn(n, 3, 32, 32),) for n in (2, 1, 5)], ({0: "batch"},)),
    "gpt with mask": (GPTWithMask, [(ints(50, *s),) for s in ((2, 6), (1, 1), (3, 11))], ({0: "batch", 1: "time"},)),
    "causal attention": (CausalAttention, [(ints(40, *s),) for s in ((1, 6), (2, 1), (3, 9))], ({0: "b", 1: "t"},)),
    "bi-lstm": (BiLSTM, [(ints(30, *s),) for s in ((2, 5), (1, 1), (4, 8))], ({0: "batch", 1: "time"},)),
    "recurrent": (
        Recurrent,
        [(rushlight.randn(t, n, 6), rushlight.randn(1, n, 8)) for t, n in ((4, 2), (1, 3), (7, 1))],
        ({0: "time", 1: "batch"}, {1: "batch"}),
    ),
    "upsampling": (
        Upsampling,
        [(rushlight.randn(n, 3, *s),) for n, s in ((1, (16, 20)), (2, (17, 31)), (3, (9, 8)))],
        ({0: "batch", 2: "height", 3: "width"},),
    ),
    "decoder": (
        Decoder,
        [(rushlight.randn(n, 4, *s),) for n, s in ((1, (5, 6)), (2, (1, 4)), (3, (7, 2)))],
        ({0: "batch", 2: "height", 3: "width"},),
    ),
    "two towers": (
        TwoTowers,
        [(rushlight.randn(a, 8), rushlight.randn(b, 5)) for a, b in ((2, 3), (1, 7), (5, 2))],
        {"queries": {0: "queries"}, "items": {0: "items"}},
    ),
    "pooled": (
        Pooled,
        [(rushlight.randn(n, t, 6), ints(t, n) + 1) for n, t in ((2, 5), (3, 1), (1, 9))],
        ({0: "batch", 1: "time"}, {0: "batch"}),
    ),
    "spectral": (Spectral, [(rushlight.randn(n, t),) for n, t in ((2, 64), (1, 100), (3, 41))], ({0: "b", 1: "t"},)),
    "experts": (MixtureOfExperts, [(rushlight.randn(n, 8),) for n in (3, 1, 8)], ({0: "tokens"},)),
    "llama": (Llama, [(rushlight.randn(*s, 32),) for s in ((2, 5), (1, 1), (3, 9))], ({0: "batch", 1: "time"},)),
    "swin": (
        Swin,
        [(rushlight.randn(n, *s, 8),) for n, s in ((1, (8, 8)), (2, (4, 12)), (3, (16, 4)))],
        ({0: "batch", 1: "height", 2: "width"},),
    ),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_other_models_of_any_size(name):
    rushlight.manual_seed(0)
    make, examples, dynamic = EXAMPLES[name]
    check(make(), examples, dynamic_shapes=dynamic)
