"""Fifty steps of what people train, small: compiled as a whole, in one program, they lose what eager loses (rtol
1e-4)."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn, optim
from rushlight.compile import compile, programs
from rushlight.nn import functional as F

pytest.importorskip("llvmlite")
STEPS, WORDS = 50, 17


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.Sequential(
            nn.Conv2d(1, 4, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(4, 8, 3),
            nn.ReLU(),
            nn.AvgPool2d(2),
            nn.Flatten(),
            nn.Linear(32, 20),
            nn.ReLU(),
            nn.Linear(20, 10),
        )

    def forward(self, x):
        return self.parts(x)


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv2d(1, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6)
        self.second, self.head = nn.Conv2d(6, 6, 3, padding=1, bias=False), nn.Linear(6, 10)

    def forward(self, x):
        x = F.relu(self.norm(self.first(x)))
        return self.head(F.adaptive_avg_pool2d(F.relu(x + self.second(x)), 1).flatten(1))


class Recurrent(nn.Module):
    def __init__(self, kind=nn.LSTM):
        super().__init__()
        self.table, self.cells, self.head = (
            nn.Embedding(WORDS, 8),
            kind(8, 12, batch_first=True),
            nn.Linear(12, WORDS),
        )

    def forward(self, x):
        return self.head(self.cells(self.table(x))[0])


class Block(nn.Module):
    def __init__(self, width=16, heads=2):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.qkv, self.out, self.heads = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width), heads
        self.mlp = nn.Sequential(nn.Linear(width, 32), nn.GELU(), nn.Linear(32, width))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (z.view(b, t, self.heads, -1).transpose(1, 2) for z in self.qkv(self.norms[0](x)).split(c, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.norms[1](x))


class GPT(nn.Module):
    """With the table of words as its last layer's weight."""

    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, 16), nn.Embedding(9, 16)
        self.blocks, self.head = nn.Sequential(Block(), Block()), nn.Linear(16, WORDS, bias=False)
        self.words.weight = self.head.weight

    def forward(self, x):
        return self.head(self.blocks(self.words(x) + self.places(torch.arange(x.shape[1]))))


def images(rng):
    y = rng.integers(0, 10, 6)
    x = rng.standard_normal((6, 1, 12, 12)) + y[:, None, None, None] / 5
    return torch.tensor(x.astype(np.float32)), torch.tensor(y)


def rows(rng):
    x = rng.standard_normal((10, 12)).astype(np.float32)
    return torch.tensor(x), torch.tensor(x[:, :4].argmax(1))


def texts(rng):
    x = (rng.integers(0, WORDS, (3, 1)) + np.arange(10) * 3) % WORDS
    return torch.tensor(x[:, :-1]), torch.tensor(x[:, 1:])


def answers(rng):
    x = rng.standard_normal((20, 5)).astype(np.float32)
    return torch.tensor(x), torch.tensor((x.sum(1) > 0).astype(np.float32))


def mlp():
    return nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 16), nn.Tanh(), nn.Linear(16, 4))


def momentum(p):
    return optim.SGD(p, lr=0.02, momentum=0.9, weight_decay=1e-4)


WORK = {
    "MLP": (mlp, lambda p: optim.SGD(p, lr=0.1), rows, F.cross_entropy, False),
    "MLP, Adam": (mlp, lambda p: optim.Adam(p, lr=0.01), rows, F.cross_entropy, False),
    "LeNet": (LeNet, momentum, images, F.cross_entropy, False),
    "residual, batch norm": (Residual, momentum, images, F.cross_entropy, False),
    "GPT": (GPT, lambda p: optim.AdamW(p, lr=3e-3, betas=(0.9, 0.99)), texts, F.cross_entropy, True),
    "LSTM": (Recurrent, lambda p: optim.Adam(p, lr=0.01), texts, F.cross_entropy, True),
    "GRU": (lambda: Recurrent(nn.GRU), lambda p: optim.RMSprop(p, lr=0.005), texts, F.cross_entropy, True),
    "logistic": (
        lambda: nn.Sequential(nn.Linear(5, 1), nn.Flatten(0)),
        lambda p: optim.SGD(p, lr=0.5),
        answers,
        F.binary_cross_entropy_with_logits,
        False,
    ),
}


def train(name, compiled):
    """The losses, the parameters and the step."""
    make, optimizer_of, batch, loss_of, clipped = WORK[name]
    torch.manual_seed(7)
    model, rng = make(), np.random.default_rng(1)
    optimizer = optimizer_of(model.parameters())

    def step(x, y):
        optimizer.zero_grad()
        out = model(x)
        loss = loss_of(out.flatten(0, -2) if out.ndim == 3 else out, y.flatten())
        loss.backward()
        if clipped:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.detach()

    run = compile(step) if compiled else step
    return [float(run(*batch(rng))) for _ in range(STEPS)], list(model.parameters()), run


@pytest.mark.exhaustive(every=4)
@pytest.mark.parametrize("name", WORK)
def test_fifty_steps(name):
    want, parameters, _ = train(name, False)
    got, compiled, run = train(name, True)
    assert len(programs(run)) == 1, run.given_up
    np.testing.assert_allclose(got, want, rtol=1e-4)
    assert np.mean(want[-5:]) < 0.9 * np.mean(want[:5])  # it learns
    for p, q in zip(parameters, compiled, strict=True):
        np.testing.assert_allclose(q.detach().numpy(), p.detach().numpy(), rtol=1e-2, atol=1e-4)


def test_a_compiled_gpt_writes_what_eager_writes():
    """A program for each length, then for the whole window."""
    torch.manual_seed(2)
    model = GPT().eval()
    fast = compile(model, backend="numpy")

    def written(f):
        text = torch.tensor([[3]])
        with torch.no_grad():
            for _ in range(14):
                text = torch.cat((text, f(text[:, -9:])[:, -1].argmax(-1, keepdim=True)), 1)
        return text.tolist()

    want = written(model)
    assert [written(fast) for _ in range(4)] == [want] * 4
    assert len(programs(fast)) == 9, fast.given_up
