"""Twelve models as servers run them, for torch and rushlight: each function builds a model of a library's `nn`.

    python benchmarks/served_models.py          the models with their inputs and numbers of parameters

`MODELS` has the models with a function that draws inputs; `pair` builds a model in both libraries with equal weights.
Batch norms and layer norms get random statistics and factors, so an error in folding them changes the output."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from first_steps import lstm, transformer

Arrays = tuple[np.ndarray, ...]
Draw = Callable[[np.random.Generator, int], Arrays]
TOKENS, CACHED, BLOCKS, HEADS, WIDTH = 1000, 64, 4, 8, 256  # of `gpt`
WORDS, BERT_WIDTH, BERT_HEADS = 30522, 128, 2  # of `bert`
TABLES, ROWS, FEATURES = 26, 1000, 16  # of `dlrm`
# of `mobilenet`: kernel size, channels inside, channels out, squeeze and excite, hardswish, stride
BOTTLENECKS = (
    (3, 16, 16, True, False, 2),
    (3, 72, 24, False, False, 2),
    (3, 88, 24, False, False, 1),
    (5, 96, 40, True, True, 2),
    (5, 240, 40, True, True, 1),
    (5, 240, 40, True, True, 1),
    (5, 120, 48, True, True, 1),
    (5, 144, 48, True, True, 1),
    (5, 288, 96, True, True, 2),
    (5, 576, 96, True, True, 1),
    (5, 576, 96, True, True, 1),
)


def library(nn: Any) -> Any:
    """torch or rushlight, of its `nn`."""
    return sys.modules[nn.__name__.partition(".")[0]]


def mlp(nn: Any) -> Any:
    """784-256-128-10; 235,146 parameters."""
    return nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))


def lenet(nn: Any) -> Any:
    """Two convolutions with pooling, three linear layers, for 28 x 28 pixels; 61,706 parameters."""
    convolutions = [
        part
        for channels, filters, padding in ((1, 6, 2), (6, 16, 0))
        for part in (nn.Conv2d(channels, filters, 5, padding=padding), nn.ReLU(), nn.MaxPool2d(2))
    ]
    head = nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU()
    return nn.Sequential(*convolutions, *head, nn.Linear(84, 10))


def residual(nn: Any, channels: int, filters: int, stride: int) -> Any:
    """Two 3 x 3 convolutions with batch norms, and a shortcut."""

    class Residual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Sequential(
                nn.Conv2d(channels, filters, 3, stride, 1, bias=False),
                nn.BatchNorm2d(filters),
                nn.ReLU(),
                nn.Conv2d(filters, filters, 3, 1, 1, bias=False),
                nn.BatchNorm2d(filters),
            )
            same = stride == 1 and channels == filters
            narrow = nn.Conv2d(channels, filters, 1, stride, bias=False), nn.BatchNorm2d(filters)
            self.shortcut = nn.Identity() if same else nn.Sequential(*narrow)

        def forward(self, x: Any) -> Any:
            return nn.functional.relu(self.body(x) + self.shortcut(x))

    return Residual()


def resnet18(nn: Any) -> Any:
    """ResNet-18 for 3 x 64 x 64 pixels (of 224, a batch of 64 would take seconds), 1000 classes; 11,689,512 parameters."""
    parts = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for filters, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        parts += [residual(nn, channels, filters, stride), residual(nn, filters, filters, 1)]
        channels = filters
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


def squeeze_excite(nn: Any, channels: int) -> Any:
    """Scale each channel by a factor that two linear layers compute of the channels' means."""
    squeezed = max(8, (channels // 4 + 4) // 8 * 8)  # the multiple of 8 that is nearest to a quarter

    class SqueezeExcite(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layers = nn.Conv2d(channels, squeezed, 1), nn.ReLU(), nn.Conv2d(squeezed, channels, 1), nn.Hardsigmoid()
            self.factors = nn.Sequential(nn.AdaptiveAvgPool2d(1), *layers)

        def forward(self, x: Any) -> Any:
            return x * self.factors(x)

    return SqueezeExcite()


def bottleneck(
    nn: Any, channels: int, size: int, wide: int, filters: int, excite: bool, hard: bool, stride: int
) -> Any:
    """A 1 x 1 convolution to `wide` channels, a depthwise convolution, a 1 x 1 convolution to `filters` channels."""

    def activation() -> Any:
        return nn.Hardswish() if hard else nn.ReLU()

    parts: list[Any] = []
    if wide != channels:
        parts += [nn.Conv2d(channels, wide, 1, bias=False), nn.BatchNorm2d(wide, 1e-3), activation()]
    depthwise = nn.Conv2d(wide, wide, size, stride, size // 2, groups=wide, bias=False)
    parts += [depthwise, nn.BatchNorm2d(wide, 1e-3), activation()]
    parts += [squeeze_excite(nn, wide)] * excite
    parts += [nn.Conv2d(wide, filters, 1, bias=False), nn.BatchNorm2d(filters, 1e-3)]

    class Bottleneck(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Sequential(*parts)

        def forward(self, x: Any) -> Any:
            found = self.body(x)
            return x + found if stride == 1 and channels == filters else found

    return Bottleneck()


def mobilenet(nn: Any) -> Any:
    """MobileNetV3-small for 3 x 64 x 64 pixels, 1000 classes; 2,542,856 parameters."""
    parts = [nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16, 1e-3), nn.Hardswish()]
    channels = 16
    for size, wide, filters, excite, hard, stride in BOTTLENECKS:
        parts.append(bottleneck(nn, channels, size, wide, filters, excite, hard, stride))
        channels = filters
    parts += [nn.Conv2d(channels, 576, 1, bias=False), nn.BatchNorm2d(576, 1e-3), nn.Hardswish()]
    head = nn.Linear(576, 1024), nn.Hardswish(), nn.Dropout(0.2), nn.Linear(1024, 1000)
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), *head)


def two_convolutions(nn: Any, channels: int, filters: int) -> Any:
    """Two 3 x 3 convolutions, each with batch norm and ReLU."""
    return nn.Sequential(
        *(nn.Conv2d(channels, filters, 3, padding=1), nn.BatchNorm2d(filters), nn.ReLU()),
        *(nn.Conv2d(filters, filters, 3, padding=1), nn.BatchNorm2d(filters), nn.ReLU()),
    )


def unet(nn: Any) -> Any:
    """A U-Net for 3 x 64 x 64 pixels: 16, 32, 64 channels down, transposed convolutions up; 117,681 parameters."""
    cat = library(nn).cat

    class UNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.down1, self.down2 = two_convolutions(nn, 3, 16), two_convolutions(nn, 16, 32)
            self.bottom, self.pool = two_convolutions(nn, 32, 64), nn.MaxPool2d(2)
            self.up2, self.up1 = nn.ConvTranspose2d(64, 32, 2, 2), nn.ConvTranspose2d(32, 16, 2, 2)
            self.join2, self.join1 = two_convolutions(nn, 64, 32), two_convolutions(nn, 32, 16)
            self.head = nn.Conv2d(16, 1, 1)

        def forward(self, x: Any) -> Any:
            fine = self.down1(x)
            middle = self.down2(self.pool(fine))
            coarse = self.bottom(self.pool(middle))
            middle = self.join2(cat([middle, self.up2(coarse)], 1))
            return self.head(self.join1(cat([fine, self.up1(middle)], 1)))

    return UNet()


def decoder_block(nn: Any) -> Any:
    """A block of `gpt`: attention to the cached positions and the new one, and a feed-forward net."""
    cat = library(nn).cat

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.project, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.feed = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

        def forward(self, x: Any, keys: Any, values: Any) -> Any:
            # x: (batch, 1, WIDTH); keys, values: (batch, HEADS, cached, WIDTH // HEADS)
            heads = [
                part.reshape(-1, 1, HEADS, WIDTH // HEADS).transpose(1, 2)
                for part in self.project(self.norm1(x)).split(WIDTH, -1)
            ]
            keys, values = cat([keys, heads[1]], 2), cat([values, heads[2]], 2)
            found = nn.functional.scaled_dot_product_attention(heads[0], keys, values)
            x = x + self.out(found.transpose(1, 2).reshape(-1, 1, WIDTH))
            return x + self.feed(self.norm2(x)), keys, values

    return Block()


def gpt(nn: Any) -> Any:
    """One token of a GPT: 4 blocks, width 256, 8 heads, 64 tokens in the caches, 1000 tokens; 3,704,320 parameters."""

    class GPT(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.positions = nn.Embedding(TOKENS, WIDTH), nn.Embedding(2 * CACHED, WIDTH)
            self.blocks = nn.ModuleList([decoder_block(nn) for _ in range(BLOCKS)])
            self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, TOKENS, bias=False)

        def forward(self, token: Any, position: Any, *caches: Any) -> Any:
            # token, position: (batch, 1); caches: keys and values of each block. Returns logits and longer caches
            x, longer = self.tokens(token) + self.positions(position), []
            for k, block in enumerate(self.blocks):
                x, keys, values = block(x, caches[2 * k], caches[2 * k + 1])
                longer += [keys, values]
            return self.head(self.norm(x))[:, 0], *longer

    return GPT()


def encoder_block(nn: Any) -> Any:
    """A block of `bert`: attention with a mask, a feed-forward net, and a layer norm after each."""
    size = BERT_WIDTH // BERT_HEADS

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.query, self.key = nn.Linear(BERT_WIDTH, BERT_WIDTH), nn.Linear(BERT_WIDTH, BERT_WIDTH)
            self.value, self.out = nn.Linear(BERT_WIDTH, BERT_WIDTH), nn.Linear(BERT_WIDTH, BERT_WIDTH)
            self.wide, self.narrow = nn.Linear(BERT_WIDTH, 4 * BERT_WIDTH), nn.Linear(4 * BERT_WIDTH, BERT_WIDTH)
            self.norm1, self.norm2 = nn.LayerNorm(BERT_WIDTH, 1e-12), nn.LayerNorm(BERT_WIDTH, 1e-12)

        def forward(self, x: Any, mask: Any) -> Any:
            # x: (batch, words, BERT_WIDTH); mask: (batch, 1, 1, words), added to the scores
            batch, words, _ = x.shape
            query, key, value = (
                layer(x).reshape(batch, words, BERT_HEADS, size).transpose(1, 2)
                for layer in (self.query, self.key, self.value)
            )
            weights = (query @ key.transpose(-1, -2) / size**0.5 + mask).softmax(-1)
            found = (weights @ value).transpose(1, 2).reshape(batch, words, BERT_WIDTH)
            x = self.norm1(x + self.out(found))
            return self.norm2(x + self.narrow(nn.functional.gelu(self.wide(x))))

    return Block()


def bert(nn: Any) -> Any:
    """BERT-tiny: 2 layers, width 128, 2 heads, 30522 words, 64 words with a mask, pooler; 4,385,920 parameters."""

    class Bert(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.positions = nn.Embedding(WORDS, BERT_WIDTH), nn.Embedding(512, BERT_WIDTH)
            self.types, self.norm = nn.Embedding(2, BERT_WIDTH), nn.LayerNorm(BERT_WIDTH, 1e-12)
            self.blocks = nn.ModuleList([encoder_block(nn) for _ in range(2)])
            self.pooler = nn.Linear(BERT_WIDTH, BERT_WIDTH)
            self.register_buffer("places", library(nn).arange(512), persistent=False)

        def forward(self, words: Any, types: Any, mask: Any) -> Any:
            # words, types, mask: (batch, words). Returns the last states and the pooled first state
            x = self.words(words) + self.types(types) + self.positions(self.places[: words.shape[1]])
            x, added = self.norm(x), (1.0 - mask[:, None, None, :].float()) * -10000.0
            for block in self.blocks:
                x = block(x, added)
            return x, self.pooler(x[:, 0]).tanh()

    return Bert()


def gru(nn: Any) -> Any:
    """Two layers of GRU, width 64, over 50 frames of 40 numbers, 12 classes; 46,092 parameters."""

    class Frames(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gru, self.head = nn.GRU(40, 64, 2, batch_first=True), nn.Linear(64, 12)

        def forward(self, x: Any) -> Any:
            return self.head(self.gru(x)[0][:, -1])

    return Frames()


def causal_block(nn: Any, channels: int, filters: int, dilation: int) -> Any:
    """Two convolutions over the past, each with ReLU, and a shortcut."""

    class Causal(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Conv1d(channels, filters, 3, dilation=dilation)
            self.second = nn.Conv1d(filters, filters, 3, dilation=dilation)
            self.shortcut = nn.Identity() if channels == filters else nn.Conv1d(channels, filters, 1)

        def forward(self, x: Any) -> Any:
            found = x
            for layer in (self.first, self.second):
                found = nn.functional.relu(layer(nn.functional.pad(found, (2 * dilation, 0))))
            return nn.functional.relu(found + self.shortcut(x))

    return Causal()


def tcn(nn: Any) -> Any:
    """Dilated causal convolutions: 8 channels of 128 numbers, 5 blocks of width 32, 10 classes; 29,354 parameters."""
    blocks = [causal_block(nn, 8 if k == 0 else 32, 32, 2**k) for k in range(5)]

    class TCN(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.blocks, self.head = nn.Sequential(*blocks), nn.Linear(32, 10)

        def forward(self, x: Any) -> Any:
            return self.head(self.blocks(x)[:, :, -1])

    return TCN()


def layers(nn: Any, *sizes: int) -> list[Any]:
    """Linear layers of these sizes, each with ReLU."""
    return [part for a, b in zip(sizes, sizes[1:]) for part in (nn.Linear(a, b), nn.ReLU())]


def dlrm(nn: Any) -> Any:
    """DLRM: 13 numbers, 26 tables of 1000 x 16, products of all pairs, MLPs to 512 and 256; 891,985 parameters.

    Each table is an Embedding: an EmbeddingBag of one row computes the same, and ONNX would need a loop for it."""
    lib = library(nn)
    above, below = np.tril_indices(TABLES + 1, -1)  # the pairs

    class DLRM(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tables = nn.ModuleList([nn.Embedding(ROWS, FEATURES) for _ in range(TABLES)])
            self.bottom = nn.Sequential(*layers(nn, 13, 512, 256, 64, FEATURES))
            self.top = nn.Sequential(*layers(nn, FEATURES + len(above), 512, 256), nn.Linear(256, 1), nn.Sigmoid())
            self.register_buffer("pairs", lib.tensor(above * (TABLES + 1) + below), persistent=False)

        def forward(self, numbers: Any, ids: Any) -> Any:
            # numbers: (batch, 13); ids: (batch, TABLES), a row of each table
            dense = self.bottom(numbers)
            rows = [table(ids[:, k]) for k, table in enumerate(self.tables)]
            features = lib.stack([dense, *rows], 1)
            products = (features @ features.transpose(1, 2)).flatten(1)
            return self.top(lib.cat([dense, products.index_select(1, self.pairs)], 1))

    return DLRM()


def normal(*shape: int) -> Draw:
    """Draws one float input of this shape after the batch."""
    return lambda rng, batch: (rng.standard_normal((batch, *shape), np.float32),)


def whole(below: int, *shape: int) -> Draw:
    """Draws one input of numbers under `below`."""
    return lambda rng, batch: (rng.integers(0, below, (batch, *shape)),)


def token_and_caches(rng: np.random.Generator, batch: int) -> Arrays:
    shape = batch, HEADS, CACHED, WIDTH // HEADS
    caches = [rng.standard_normal(shape, np.float32) for _ in range(2 * BLOCKS)]
    return rng.integers(0, TOKENS, (batch, 1)), np.full((batch, 1), CACHED), *caches


def sentences(rng: np.random.Generator, batch: int) -> Arrays:
    """Two sentences in a row of 64 words, of random lengths."""
    first, length = rng.integers(8, 32, (batch, 1)), rng.integers(32, 65, (batch, 1))
    places = np.arange(64)
    return rng.integers(0, WORDS, (batch, 64)), (places >= first).astype(np.int64), (places < length).astype(np.int64)


def clicks(rng: np.random.Generator, batch: int) -> Arrays:
    return rng.standard_normal((batch, 13), np.float32), rng.integers(0, ROWS, (batch, TABLES))


@dataclass(frozen=True)
class Served:
    """`make`: builds the model of a library's nn. `draw`: draws the inputs for a size of the batch."""

    make: Callable[[Any], Any]
    draw: Draw


MODELS = {
    "mlp": Served(mlp, normal(784)),
    "lenet": Served(lenet, normal(1, 28, 28)),
    "resnet18": Served(resnet18, normal(3, 64, 64)),
    "mobilenet": Served(mobilenet, normal(3, 64, 64)),
    "unet": Served(unet, normal(3, 64, 64)),
    "transformer": Served(transformer, whole(65, 32)),
    "gpt": Served(gpt, token_and_caches),
    "bert": Served(bert, sentences),
    "lstm": Served(lstm, whole(65, 32)),
    "gru": Served(gru, normal(50, 40)),
    "tcn": Served(tcn, normal(8, 128)),
    "dlrm": Served(dlrm, clicks),
}


def random_norms(state: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The weights, with random statistics and factors of the norms: the layers whose weight has one dimension."""
    rng, found = np.random.default_rng(0), dict(state)
    for key, weight in state.items():
        layer = key.removesuffix("weight")
        if layer == key or weight.ndim > 1:
            continue
        found[key] = rng.uniform(0.5, 1.5, weight.shape).astype(weight.dtype)
        if layer + "running_var" in state:  # about the variance of a new convolution's output, so signals stay large
            found[layer + "running_var"] = rng.uniform(0.05, 0.25, weight.shape).astype(weight.dtype)
        for part in ("bias", "running_mean"):
            found[layer + part] = rng.normal(0.0, 0.2, weight.shape).astype(weight.dtype)
    return {key: found[key] for key in state}


def pair(name: str) -> tuple[Any, Any]:
    """The model of torch and rushlight's with the same weights, both in eval mode."""
    import torch

    import rushlight

    torch.manual_seed(0)
    theirs, ours = (MODELS[name].make(lib.nn).eval() for lib in (torch, rushlight))
    state = random_norms({key: value.numpy() for key, value in theirs.state_dict().items()})
    theirs.load_state_dict({key: torch.tensor(value) for key, value in state.items()})
    ours.load_state_dict({key: rushlight.tensor(value) for key, value in state.items()})
    return theirs, ours


def main() -> None:
    import rushlight

    for name, served in MODELS.items():
        model = served.make(rushlight.nn)
        count = sum(p.numel() for p in model.parameters())
        shapes = {f"{a.dtype} {a.shape}": None for a in served.draw(np.random.default_rng(0), 1)}
        print(f"{name:12}{count:12,} parameters; {', '.join(shapes)}")


if __name__ == "__main__":
    main()
