"""What every workload file shares: the Work record, deterministic data, deterministic weights.

All engines start from the same numbers, so the driver can check that they also
compute the same losses before it compares their speed.
"""

import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class Work:
    """One workload, written once against the torch API.

    forward(*batch) -> loss           pure model + loss; what `compile(model)` users compile
    step(forward, *batch) -> loss     the whole training step; what whole-step compilers compile
    batches                           list of argument tuples, cycled
    """

    forward: Callable
    step: Callable
    batches: list = field(default_factory=lambda: [()])
    value: Callable[[Any], float] = float


class Job:
    """A running workload: step() does one step, sync(result) waits for it, value(result) is a check number."""

    def __init__(self, step, sync=lambda r: None, value=float):
        self.step, self.sync, self.value = step, sync, value


def rng(seed):
    return np.random.default_rng(seed)


def array_for(name, shape):
    """The initial value of parameter `name`; depends on the name and the shape only."""
    if len(shape) >= 2:
        fan_in = math.prod(shape[1:])
        g = rng(zlib.crc32(name.encode()))
        return (g.uniform(-1, 1, shape) / math.sqrt(fan_in)).astype(np.float32)
    return (np.ones if name.endswith("weight") else np.zeros)(shape, np.float32)


def arrays(shapes):
    return {name: array_for(name, shape) for name, shape in shapes.items()}


def fill(torch, model):
    """Overwrite a torch-API module's parameters with `array_for` values."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(torch.tensor(array_for(name, tuple(p.shape))))
    return model


def tensors(torch, batches):
    return [tuple(torch.tensor(a) for a in batch) for batch in batches]


# ---------------------------------------------------------------- data


def moons(n=100, seed=0):
    g = rng(seed)
    t = g.uniform(0, math.pi, n)
    y = g.integers(0, 2, n)
    x = np.stack([np.where(y, 1 - np.cos(t), np.cos(t)), np.where(y, 0.5 - np.sin(t), np.sin(t))], 1)
    x += 0.1 * g.standard_normal(x.shape)
    return x.astype(np.float32), (2 * y - 1).astype(np.float32).reshape(n, 1)


def classes(batch, shape, n_classes=10, n_batches=8, seed=1):
    """Batches of (image-like float32, int64 label); labels are learnable from the pixels."""
    g = rng(seed)
    means = g.standard_normal((n_classes, *shape)).astype(np.float32)
    out = []
    for _ in range(n_batches):
        y = g.integers(0, n_classes, batch)
        x = 0.3 * means[y] + g.standard_normal((batch, *shape)).astype(np.float32)
        out.append((x.astype(np.float32), y.astype(np.int64)))
    return out


def chars(batch, length, vocab=65, n_batches=8, seed=2):
    """Batches of (tokens, next tokens) from a noisy periodic sequence."""
    g = rng(seed)
    text = (np.cumsum(g.integers(1, 4, 20000)) % vocab).astype(np.int64)
    out = []
    for _ in range(n_batches):
        at = g.integers(0, len(text) - length - 1, batch)
        x = np.stack([text[i : i + length] for i in at])
        y = np.stack([text[i + 1 : i + length + 1] for i in at])
        out.append((x, y))
    return out


def logistic(n=100, d=10, seed=3):
    g = rng(seed)
    x = g.standard_normal((n, d)).astype(np.float32)
    y = (x @ g.standard_normal(d) + 0.5 * g.standard_normal(n) > 0).astype(np.float32)
    return x, y


# A 5x7 dot font for the digits, one string per digit, 7 rows of 5.
_FONT = [
    "01110 10001 10011 10101 11001 10001 01110",
    "00100 01100 00100 00100 00100 00100 01110",
    "01110 10001 00001 00110 01000 10000 11111",
    "11111 00010 00100 00010 00001 10001 01110",
    "00010 00110 01010 10010 11111 00010 00010",
    "11111 10000 11110 00001 00001 10001 01110",
    "00110 01000 10000 11110 10001 10001 01110",
    "11111 00001 00010 00100 01000 01000 01000",
    "01110 10001 10001 01110 10001 10001 01110",
    "01110 10001 10001 01111 00001 00010 01100",
]


def digits(n, seed):
    """n synthetic 28x28 digits: the dot font under a random affine map, plus noise (MNIST-like)."""
    g = rng(seed)
    glyphs = np.array([[[int(c) for c in row] for row in d.split()] for d in _FONT], np.float32)
    glyphs = np.pad(glyphs, ((0, 0), (2, 2), (2, 2)))  # 11 x 9
    y = g.integers(0, 10, n)
    angle, scale = g.uniform(-0.35, 0.35, n), g.uniform(0.8, 1.25, (n, 2))
    shear, shift = g.uniform(-0.3, 0.3, n), g.uniform(-2.9, 2.9, (n, 2))
    r, c = np.meshgrid(np.arange(28) - 13.5, np.arange(28) - 13.5, indexing="ij")
    r, c = r[None] - shift[:, :1, None], c[None] - shift[:, 1:, None]
    cos, sin = np.cos(angle)[:, None, None], np.sin(angle)[:, None, None]
    u = (cos * r + sin * c) / scale[:, :1, None] / 2.9 + 5.0  # font row
    v = (-sin * r + cos * c + shear[:, None, None] * r) / scale[:, 1:, None] / 2.9 + 4.0
    u, v = np.clip(u, 0, 9.999), np.clip(v, 0, 7.999)
    i, j = u.astype(int), v.astype(int)
    fu, fv, k = u - i, v - j, y[:, None, None]
    img = (
        glyphs[k, i, j] * (1 - fu) * (1 - fv)
        + glyphs[k, i + 1, j] * fu * (1 - fv)
        + glyphs[k, i, j + 1] * (1 - fu) * fv
        + glyphs[k, i + 1, j + 1] * fu * fv
    )
    img = np.clip(1.4 * img, 0, 1) + 0.25 * g.standard_normal(img.shape)
    return img.astype(np.float32), y.astype(np.int64)
