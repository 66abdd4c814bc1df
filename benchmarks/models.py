"""Training steps of whole models, as people bring them, against torch's in the same process, in turns; eager and
compiled.

    env -u OPENBLAS_CORETYPE OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 python benchmarks/models.py [name]

Prints a table in Markdown: milliseconds of the processor for a step of torch in eager (the least of several in turns),
and by what factor ours takes less, in eager and with `rushlight.compile` around the whole step. Last: whether the
losses of the first three steps agree to 1 in 1000, from the same seed.

One thread of a Xeon at 2.5 GHz (AVX-512), slow that evening (a Python loop took two to four times its usual time);
torch 2.13, loops in the cache folder, 22 November 2026, 18:05:

| model | torch ms | eager | compiled | same |
|---|--:|--:|--:|---|
| MLP on MNIST | 4.10 | 1.76 | 2.71 | yes |
| table with batch norm | 2.84 | 1.32 | 2.60 | yes |
| deep Q learning | 1.94 | 1.48 | 3.97 | yes |
| actor and critic | 3.16 | 1.43 | 7.98 | yes |
| variational autoencoder | 14.54 | 1.56 | 2.00 | yes |
| diffusion in the plane | 3.11 | 1.38 | 2.44 | yes |
| normalizing flow | 4.97 | 1.50 | 4.69 | yes |
| heat equation | 5.87 | 0.85 | 3.05 | yes |
| radiance field | 10.43 | 0.95 | 1.26 | yes |
| factors of ratings | 1.69 | 1.02 | 1.59 | yes |
| word vectors | 8.24 | 1.84 | 2.84 | yes |
| graph convolution | 3.84 | 1.20 | 2.13 | yes |
| CNN on MNIST | 54.56 | 1.62 | 1.75 | yes |
| ResNet on CIFAR | 92.07 | 1.35 | 1.46 | yes |
| ResNet one image | 3.85 | 0.98 | 1.50 | yes |
| MobileNet | 96.41 | 1.62 | 1.77 | yes |
| MobileNet one image | 4.29 | 0.90 | 1.48 | yes |
| UNet | 63.85 | 1.25 | 1.40 | yes |
| GAN of images | 45.52 | 1.29 | 1.81 | yes |
| vision transformer | 113.87 | 1.06 | 1.25 | yes |
| words by convolution | 43.95 | 1.05 | 1.13 | yes |
| words by LSTM | 15.96 | 1.29 | 1.56 | yes |
| translation with attention | 21.45 | 1.15 | 1.96 | yes |
| transformer encoder | 16.44 | 1.22 | 1.86 | yes |
| waves by dilated convolution | 22.94 | 1.02 | 1.34 | yes |

What falls short: single images and nets with derivatives in their loss are many small calls; of the radiance field half
is products, and the rest its waves and rays, op by op."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

import numpy as np
import torch

import rushlight

SECONDS, PAID, CALLS = (2.5, 4.0, 12)  # of each model: timed; before that, and in calls, for loops to be compiled
Step = Callable[[], Any]
MODELS: dict[str, Callable[[Any], Step]] = {}


def model(make: Callable[[Any], Step]) -> Callable[[Any], Step]:
    """A model by its function's name: given torch or rushlight, it makes a step, which gives the loss."""
    MODELS[make.__name__.replace("_", " ")] = make
    return make


def numbers(lib: Any, *shape: int, seed: int = 0) -> Any:
    return lib.tensor(np.random.default_rng([seed, *shape]).standard_normal(shape, dtype=np.float32))


def wholes(lib: Any, below: int, *shape: int, seed: int = 0) -> Any:
    return lib.tensor(np.random.default_rng([seed, *shape]).integers(0, below, shape))


def training(lib: Any, net: Any, loss: Callable[[], Any], kind: str = "Adam", **options: Any) -> Step:
    """Zero gradients, loss, backward, update."""
    optimizer = getattr(lib.optim, kind)(net.parameters(), **{"lr": 1e-3, **options})

    def step() -> Any:
        optimizer.zero_grad()
        found = loss()
        found.backward()
        optimizer.step()
        return found

    return step


def classifier(lib: Any, net: Any, x: Any, classes: int, **options: Any) -> Step:
    y = wholes(lib, classes, x.shape[0])
    return training(lib, net, lambda: lib.nn.functional.cross_entropy(net(x), y), **options)


def inference(lib: Any, net: Any, x: Any) -> Step:
    net.eval()

    def step() -> Any:
        with lib.no_grad():
            return net(x).sum()

    return step


# -- rows ------------------------------------------------------------------------------------------


@model
def MLP_on_MNIST(lib: Any) -> Step:
    nn = lib.nn
    net = nn.Sequential(
        nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10)
    )
    return classifier(lib, net, numbers(lib, 64, 1, 28, 28), 10)


@model
def table_with_batch_norm(lib: Any) -> Step:
    nn = lib.nn
    net = nn.Sequential(
        nn.Linear(30, 128),
        nn.BatchNorm1d(128),
        nn.ReLU(),
        nn.Linear(128, 64),
        nn.BatchNorm1d(64),
        nn.ReLU(),
        nn.Linear(64, 1),
    )
    x, y = numbers(lib, 256, 30), numbers(lib, 256, 1)
    return training(lib, net, lambda: nn.functional.mse_loss(net(x), y), "AdamW")


@model
def deep_Q_learning(lib: Any) -> Step:
    nn, F = lib.nn, lib.nn.functional
    q, target = [
        nn.Sequential(nn.Linear(4, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 2)) for _ in range(2)
    ]
    state, then, action, reward = (
        numbers(lib, 64, 4),
        numbers(lib, 64, 4, seed=1),
        wholes(lib, 2, 64, 1),
        numbers(lib, 64),
    )

    def loss() -> Any:
        with lib.no_grad():
            best = target(then).max(1)[0]
        return F.smooth_l1_loss(q(state).gather(1, action).squeeze(1), reward + 0.99 * best)

    return training(lib, q, loss)


@model
def actor_and_critic(lib: Any) -> Step:
    nn = lib.nn
    net = nn.ModuleDict(
        {
            "body": nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh()),
            "policy": nn.Linear(64, 4),
            "value": nn.Linear(64, 1),
        }
    )
    x, action, gain, old = (
        numbers(lib, 64, 8),
        wholes(lib, 4, 64),
        numbers(lib, 64),
        numbers(lib, 64, seed=1) / 10 - 1.4,
    )

    def loss() -> Any:
        h = net["body"](x)
        chosen = lib.distributions.Categorical(logits=net["policy"](h))
        ratio = (chosen.log_prob(action) - old).exp()
        clipped = lib.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()
        return -clipped + 0.5 * (net["value"](h).squeeze(1) - gain).pow(2).mean() - 0.01 * chosen.entropy().mean()

    return training(lib, net, loss)


@model
def variational_autoencoder(lib: Any) -> Step:
    nn, F = lib.nn, lib.nn.functional
    net = nn.ModuleList([nn.Linear(*size) for size in ((784, 400), (400, 20), (400, 20), (20, 400), (400, 784))])
    x, noise = numbers(lib, 128, 784).sigmoid(), numbers(lib, 128, 20)

    def loss() -> Any:
        h = F.relu(net[0](x))
        mean, log_var = net[1](h), net[2](h)
        z = mean + noise * lib.exp(0.5 * log_var)
        again = lib.sigmoid(net[4](F.relu(net[3](z))))
        kl = -0.5 * lib.sum(1 + log_var - mean.pow(2) - log_var.exp())
        return (F.binary_cross_entropy(again, x, reduction="sum") + kl) / 128

    return training(lib, net, loss)


@model
def diffusion_in_the_plane(lib: Any) -> Step:
    nn = lib.nn
    net = nn.Sequential(
        nn.Linear(2 + 32, 128),
        nn.SiLU(),
        nn.Linear(128, 128),
        nn.SiLU(),
        nn.Linear(128, 128),
        nn.SiLU(),
        nn.Linear(128, 2),
    )
    x, noise, t = numbers(lib, 256, 2), numbers(lib, 256, 2, seed=1), wholes(lib, 100, 256)
    alpha = lib.cumprod(1 - lib.linspace(1e-4, 0.02, 100), 0)
    waves = lib.exp(lib.arange(16) * -0.3)

    def loss() -> Any:
        a = alpha[t][:, None]
        angle = t[:, None] * waves
        noisy = a.sqrt() * x + (1 - a).sqrt() * noise
        return (net(lib.cat([noisy, angle.sin(), angle.cos()], 1)) - noise).pow(2).mean()

    return training(lib, net, loss)


@model
def normalizing_flow(lib: Any) -> Step:
    nn = lib.nn
    nets = nn.ModuleList([nn.Sequential(nn.Linear(1, 64), nn.ReLU(), nn.Linear(64, 2)) for _ in range(6)])
    x = numbers(lib, 256, 2)

    def loss() -> Any:
        a, b = x[:, :1], x[:, 1:]
        total = 0
        for net in nets:
            s, t = net(a).chunk(2, 1)
            s = lib.tanh(s)
            a, b = b * lib.exp(s) + t, a
            total = total + s.sum(1)
        return (0.5 * (a.pow(2) + b.pow(2)).sum(1) - total).mean()

    return training(lib, nets, loss)


@model
def heat_equation(lib: Any) -> Step:
    """A net that learns u with du/dt = d2u/dx2: derivatives of the net are in the loss."""
    nn = lib.nn
    net = nn.Sequential(
        nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1)
    )
    x, t = numbers(lib, 500, 1).requires_grad_(), numbers(lib, 500, 1, seed=1).requires_grad_()

    def slope(y: Any, of: Any) -> Any:
        return lib.autograd.grad(y, of, lib.ones_like(y), create_graph=True)[0]

    def loss() -> Any:
        u = net(lib.cat([x, t], 1))
        return (slope(u, t) - slope(slope(u, x), x)).pow(2).mean() + (u - lib.sin(x)).pow(2).mean()

    return training(lib, net, loss)


@model
def radiance_field(lib: Any) -> Step:
    nn = lib.nn
    net = nn.Sequential(
        nn.Linear(39, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 4)
    )
    points, color = numbers(lib, 64, 32, 3), numbers(lib, 64, 3, seed=1).sigmoid()
    powers = 2.0 ** lib.arange(6)

    def loss() -> Any:
        angle = (points[..., None] * powers).flatten(2)
        out = net(lib.cat([points, angle.sin(), angle.cos()], -1))
        alpha = 1 - lib.exp(-lib.relu(out[..., 3]) * 0.1)
        left = lib.cumprod(lib.cat([lib.ones(64, 1), 1 - alpha + 1e-10], -1), -1)[:, :-1]
        return (((alpha * left)[..., None] * lib.sigmoid(out[..., :3])).sum(1) - color).pow(2).mean()

    return training(lib, net, loss)


@model
def factors_of_ratings(lib: Any) -> Step:
    nn = lib.nn
    net = nn.ModuleList([nn.Embedding(2000, 32), nn.Embedding(5000, 32)])
    user, item, y = wholes(lib, 2000, 512), wholes(lib, 5000, 512), numbers(lib, 512)
    return training(lib, net, lambda: ((net[0](user) * net[1](item)).sum(1) - y).pow(2).mean(), "SGD", momentum=0.9)


@model
def word_vectors(lib: Any) -> Step:
    nn, F = lib.nn, lib.nn.functional
    net = nn.ModuleList([nn.Embedding(3000, 100), nn.Embedding(3000, 100)])
    center, context, wrong = wholes(lib, 3000, 128), wholes(lib, 3000, 128, seed=1), wholes(lib, 3000, 128, 5)

    def loss() -> Any:
        v = net[0](center)
        good = F.logsigmoid((v * net[1](context)).sum(1))
        bad = F.logsigmoid(-lib.bmm(net[1](wrong), v.unsqueeze(2)).squeeze(2)).sum(1)
        return -(good + bad).mean()

    return training(lib, net, loss)


@model
def graph_convolution(lib: Any) -> Step:
    nn, F = lib.nn, lib.nn.functional
    net = nn.ModuleList([nn.Linear(128, 16), nn.Linear(16, 7)])
    x, y, edges = numbers(lib, 1000, 128), wholes(lib, 7, 1000), wholes(lib, 1000, 2, 5000)
    scale = lib.ones(1000).index_add_(0, edges[1], lib.ones(5000)).rsqrt()
    weight = (scale[edges[0]] * scale[edges[1]])[:, None]

    def passed(h: Any) -> Any:
        return lib.zeros(1000, h.shape[1]).index_add(0, edges[1], h[edges[0]] * weight)

    def loss() -> Any:
        return F.cross_entropy(passed(net[1](F.relu(passed(net[0](x))))), y)

    return training(lib, net, loss, weight_decay=5e-4)


# -- images ----------------------------------------------------------------------------------------


@model
def CNN_on_MNIST(lib: Any) -> Step:
    nn = lib.nn
    net = nn.Sequential(
        nn.Conv2d(1, 32, 3),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(9216, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
        nn.LogSoftmax(1),
    )
    x, y = numbers(lib, 32, 1, 28, 28), wholes(lib, 10, 32)
    return training(lib, net, lambda: nn.functional.nll_loss(net(x), y), "Adadelta", lr=1.0)


def residual(lib: Any, width: int, then: int, stride: int) -> Any:
    nn = lib.nn

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.norm = nn.Conv2d(width, then, 3, stride, 1, bias=False), nn.BatchNorm2d(then)
            self.second, self.norm2 = nn.Conv2d(then, then, 3, 1, 1, bias=False), nn.BatchNorm2d(then)
            self.past = (
                nn.Identity()
                if width == then
                else nn.Sequential(nn.Conv2d(width, then, 1, stride, bias=False), nn.BatchNorm2d(then))
            )

        def forward(self, x: Any) -> Any:
            h = nn.functional.relu(self.norm(self.first(x)))
            return nn.functional.relu(self.norm2(self.second(h)) + self.past(x))

    return Block()


def resnet(lib: Any) -> Any:
    nn = lib.nn
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1, bias=False),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        residual(lib, 32, 32, 1),
        residual(lib, 32, 64, 2),
        residual(lib, 64, 128, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(128, 10),
    )


@model
def ResNet_on_CIFAR(lib: Any) -> Step:
    return classifier(lib, resnet(lib), numbers(lib, 16, 3, 32, 32), 10, kind="SGD", momentum=0.9, weight_decay=5e-4)


@model
def ResNet_one_image(lib: Any) -> Step:
    return inference(lib, resnet(lib), numbers(lib, 1, 3, 32, 32))


def mobile(lib: Any) -> Any:
    nn = lib.nn

    def block(a: int, b: int, stride: int) -> list:
        return [
            nn.Conv2d(a, 4 * a, 1, bias=False),
            nn.BatchNorm2d(4 * a),
            nn.ReLU6(),
            nn.Conv2d(4 * a, 4 * a, 3, stride, 1, groups=4 * a, bias=False),
            nn.BatchNorm2d(4 * a),
            nn.ReLU6(),
            nn.Conv2d(4 * a, b, 1, bias=False),
            nn.BatchNorm2d(b),
        ]

    return nn.Sequential(
        nn.Conv2d(3, 16, 3, 2, 1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU6(),
        *block(16, 24, 1),
        *block(24, 32, 2),
        *block(32, 64, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 10),
    )


@model
def MobileNet(lib: Any) -> Step:
    return classifier(lib, mobile(lib), numbers(lib, 16, 3, 64, 64), 10, kind="SGD", momentum=0.9)


@model
def MobileNet_one_image(lib: Any) -> Step:
    return inference(lib, mobile(lib), numbers(lib, 1, 3, 96, 96))


@model
def UNet(lib: Any) -> Step:
    nn, F = lib.nn, lib.nn.functional

    def twice(a: int, b: int) -> Any:
        return nn.Sequential(
            nn.Conv2d(a, b, 3, padding=1),
            nn.BatchNorm2d(b),
            nn.ReLU(),
            nn.Conv2d(b, b, 3, padding=1),
            nn.BatchNorm2d(b),
            nn.ReLU(),
        )

    class Net(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.down, self.below, self.deep = twice(1, 16), twice(16, 32), twice(32, 64)
            self.rise, self.up = nn.ConvTranspose2d(64, 32, 2, 2), twice(64, 32)
            self.rise2, self.up2, self.out = nn.ConvTranspose2d(32, 16, 2, 2), twice(32, 16), nn.Conv2d(16, 1, 1)

        def forward(self, x: Any) -> Any:
            a = self.down(x)
            b = self.below(F.max_pool2d(a, 2))
            c = self.up(lib.cat([self.rise(self.deep(F.max_pool2d(b, 2))), b], 1))
            return self.out(self.up2(lib.cat([self.rise2(c), a], 1)))

    net = Net()
    x, y = numbers(lib, 4, 1, 64, 64), (numbers(lib, 4, 1, 64, 64, seed=1) > 0).float()
    return training(lib, net, lambda: F.binary_cross_entropy_with_logits(net(x), y))


@model
def GAN_of_images(lib: Any) -> Step:
    nn, F = lib.nn, lib.nn.functional
    maker = nn.Sequential(
        nn.ConvTranspose2d(64, 64, 4),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.ConvTranspose2d(64, 32, 4, 2, 1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.ConvTranspose2d(32, 16, 4, 2, 1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.ConvTranspose2d(16, 1, 4, 2, 1),
        nn.Tanh(),
    )
    judge = nn.Sequential(
        nn.Conv2d(1, 16, 4, 2, 1),
        nn.LeakyReLU(0.2),
        nn.Conv2d(16, 32, 4, 2, 1),
        nn.BatchNorm2d(32),
        nn.LeakyReLU(0.2),
        nn.Conv2d(32, 64, 4, 2, 1),
        nn.BatchNorm2d(64),
        nn.LeakyReLU(0.2),
        nn.Conv2d(64, 1, 4),
        nn.Flatten(0),
    )
    makes, judges = [lib.optim.Adam(net.parameters(), lr=2e-4, betas=(0.5, 0.999)) for net in (maker, judge)]
    real, noise, yes, no = numbers(lib, 32, 1, 32, 32), numbers(lib, 32, 64, 1, 1), lib.ones(32), lib.zeros(32)

    def step() -> Any:
        image, right = maker(noise), F.binary_cross_entropy_with_logits
        judges.zero_grad()
        loss = right(judge(real), yes) + right(judge(image.detach()), no)
        loss.backward()
        judges.step()
        makes.zero_grad()
        fooled = right(judge(image), yes)
        fooled.backward()
        makes.step()
        return loss.detach() + fooled.detach()

    return step


def encoder(lib: Any, width: int, heads: int, layers: int) -> Any:
    layer = lib.nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True)
    return lib.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)


@model
def vision_transformer(lib: Any) -> Step:
    nn = lib.nn

    class Net(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.patches, self.body, self.head = nn.Conv2d(3, 96, 4, 4), encoder(lib, 96, 4, 4), nn.Linear(96, 10)
            self.first, self.places = nn.Parameter(lib.zeros(1, 1, 96)), nn.Parameter(lib.zeros(1, 65, 96))

        def forward(self, x: Any) -> Any:
            h = self.patches(x).flatten(2).transpose(1, 2)
            h = lib.cat([self.first.expand(len(x), -1, -1), h], 1) + self.places
            return self.head(self.body(h)[:, 0])

    return classifier(lib, Net(), numbers(lib, 16, 3, 32, 32), 10, kind="AdamW")


# -- sequences -------------------------------------------------------------------------------------


@model
def words_by_convolution(lib: Any) -> Step:
    nn, F = lib.nn, lib.nn.functional

    class Net(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.words, self.head = nn.Embedding(5000, 100), nn.Linear(300, 2)
            self.windows = nn.ModuleList([nn.Conv1d(100, 100, k) for k in (3, 4, 5)])

        def forward(self, x: Any) -> Any:
            h = self.words(x).transpose(1, 2)
            return self.head(lib.cat([F.relu(c(h)).max(2)[0] for c in self.windows], 1))

    return classifier(lib, Net(), wholes(lib, 5000, 32, 40), 2)


@model
def words_by_LSTM(lib: Any) -> Step:
    nn = lib.nn

    class Net(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.words, self.head = nn.Embedding(5000, 64), nn.Linear(128, 2)
            self.body = nn.LSTM(64, 64, 1, batch_first=True, bidirectional=True)

        def forward(self, x: Any) -> Any:
            return self.head(self.body(self.words(x))[0].mean(1))

    return classifier(lib, Net(), wholes(lib, 5000, 32, 40), 2)


@model
def translation_with_attention(lib: Any) -> Step:
    """GRU cells in a Python loop, with attention over what the encoder has read."""
    nn, F = lib.nn, lib.nn.functional
    net = nn.ModuleDict(
        {
            "words": nn.Embedding(1000, 64),
            "read": nn.GRU(64, 64, batch_first=True),
            "cell": nn.GRUCell(128, 64),
            "head": nn.Linear(64, 1000),
        }
    )
    x, y = wholes(lib, 1000, 16, 12), wholes(lib, 1000, 16, 12, seed=1)

    def loss() -> Any:
        keys, h = net["read"](net["words"](x))
        h, total = h[0], 0
        for t in range(11):
            weights = F.softmax(lib.bmm(keys, h.unsqueeze(2)).squeeze(2), 1)
            seen = lib.bmm(weights.unsqueeze(1), keys).squeeze(1)
            h = net["cell"](lib.cat([net["words"](y[:, t]), seen], 1), h)
            total = total + F.cross_entropy(net["head"](h), y[:, t + 1])
        return total / 11

    return training(lib, net, loss)


@model
def transformer_encoder(lib: Any) -> Step:
    nn = lib.nn

    class Net(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.words, self.body, self.head = nn.Embedding(2000, 64), encoder(lib, 64, 4, 2), nn.Linear(64, 2)

        def forward(self, x: Any) -> Any:
            return self.head(self.body(self.words(x), src_key_padding_mask=x == 0).mean(1))

    return classifier(lib, Net(), wholes(lib, 2000, 16, 32), 2)


@model
def waves_by_dilated_convolution(lib: Any) -> Step:
    nn, F = lib.nn, lib.nn.functional

    class Net(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Conv1d(1, 32, 1), nn.Conv1d(32, 64, 1)
            self.gates = nn.ModuleList([nn.Conv1d(32, 64, 2, dilation=2**k) for k in range(6)])
            self.mix = nn.ModuleList([nn.Conv1d(32, 32, 1) for _ in range(6)])

        def forward(self, x: Any) -> Any:
            h = self.first(x)
            for k, (gate, mix) in enumerate(zip(self.gates, self.mix)):
                a, b = gate(F.pad(h, (2**k, 0))).chunk(2, 1)
                h = h + mix(lib.tanh(a) * lib.sigmoid(b))
            return self.last(F.relu(h))

    net = Net()
    x, y = numbers(lib, 4, 1, 512), wholes(lib, 64, 4, 512)
    return training(lib, net, lambda: F.cross_entropy(net(x), y))


# -- the comparison --------------------------------------------------------------------------------


def seeded(make: Callable[[Any], Step], lib: Any) -> Step:
    """The model with its own initial weights: ours are torch's numbers."""
    lib.manual_seed(0)
    return make(lib)


def timed(step: Step) -> float:
    start = process_time()
    step()
    return 1e3 * (process_time() - start)


def compare(make: Callable[[Any], Step]) -> tuple[list[float], bool]:
    """ms of torch, ours, ours compiled; and whether losses agree."""
    steps = [seeded(make, torch), seeded(make, rushlight), rushlight.compile(seeded(make, rushlight))]
    losses = np.array([[step().item() for _ in range(3)] for step in steps])
    for step in steps:
        for _ in range(CALLS):
            step()
        start = perf_counter()
        while perf_counter() - start < PAID:
            step()
    least, start = [np.inf] * 3, perf_counter()
    while perf_counter() - start < SECONDS:
        least = [min(known, timed(step)) for known, step in zip(least, steps)]
    return least, np.allclose(losses[1:], losses[:1], rtol=1e-3)


def main() -> None:
    torch.set_num_threads(1)
    rushlight.set_num_threads(1)
    warnings.simplefilter("ignore")
    print("| model | torch ms | eager | compiled | same |\n|---|--:|--:|--:|---|")
    for name, make in MODELS.items():
        if not sys.argv[1:] or sys.argv[1] in name:
            (theirs, ours, compiled), same = compare(make)
            print(
                f"| {name} | {theirs:.2f} | {theirs / ours:.2f} | {theirs / compiled:.2f} | {'yes' if same else 'NO'} "
                "|",
                flush=True,
            )


if __name__ == "__main__":
    main()
