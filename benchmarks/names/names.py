"""Character models of names, eager, as tutorials write them: bigram, mlp, rnn, gru, transformer.

    python names.py --model gru                    # torch
    rushlight run names.py --model gru             # rushlight

The program imports torch only. It trains, measures the loss of each split, and samples names. The last line is the
time after the imports."""

import argparse
import math
import random
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, RandomSampler

BLOCK = 16
STEPS = {"bigram": 1500, "mlp": 1500, "rnn": 200, "gru": 200, "transformer": 150}


def made_names(count, seed=5):
    """Names of one to four syllables."""
    r = random.Random(seed)
    first = ["b", "d", "k", "l", "m", "n", "r", "s", "t", "j", "ch", "sh", "", "v", "z"]
    middle = ["a", "e", "i", "o", "u", "ae", "ia", "ee"]
    last = ["", "", "", "n", "l", "r", "s", "h"]
    return ["".join(r.choice(first) + r.choice(middle) + r.choice(last) for _ in range(r.randint(1, 4)))[: BLOCK - 1]
            for _ in range(count)]  # fmt: skip


class Names(Dataset):
    """x: 0 and the name's letters; y: the letters and 0, then -1 (no loss)."""

    def __init__(self, words, letters):
        self.words = words
        self.number = {c: i + 1 for i, c in enumerate(letters)}

    def __len__(self):
        return len(self.words)

    def __getitem__(self, i):
        coded = torch.tensor([self.number[c] for c in self.words[i]], dtype=torch.long)
        x = torch.zeros(BLOCK, dtype=torch.long)
        y = torch.zeros(BLOCK, dtype=torch.long)
        x[1 : 1 + len(coded)] = coded
        y[: len(coded)] = coded
        y[len(coded) + 1 :] = -1
        return x, y


class Bigram(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(vocabulary, vocabulary))

    def forward(self, x):
        return self.table[x]


class Perceptron(nn.Module):
    """The embeddings of a letter and of the letters before it, joined, then layers with batch norm."""

    def __init__(self, vocabulary, before=3, width=16, hidden=100):
        super().__init__()
        self.before = before
        self.embedding = nn.Embedding(vocabulary + 1, width)
        self.none = vocabulary
        self.first, self.norm = nn.Linear(before * width, hidden, bias=False), nn.BatchNorm1d(hidden)
        self.second, self.again = nn.Linear(hidden, hidden, bias=False), nn.BatchNorm1d(hidden)
        self.head = nn.Linear(hidden, vocabulary)

    def forward(self, x):
        parts = []
        for _ in range(self.before):
            parts.append(self.embedding(x))
            x = torch.roll(x, 1, 1)
            x[:, 0] = self.none
        h = torch.cat(parts, -1)
        b, t, _ = h.shape
        h = torch.tanh(self.norm(self.first(h).view(b * t, -1)))
        h = torch.tanh(self.again(self.second(h)))
        return self.head(h).view(b, t, -1)


class RecurrentCell(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.step = nn.Linear(inputs + hidden, hidden)

    def forward(self, x, h):
        return torch.tanh(self.step(torch.cat([x, h], dim=1)))


class GatedCell(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.update = nn.Linear(inputs + hidden, hidden)
        self.reset = nn.Linear(inputs + hidden, hidden)
        self.new = nn.Linear(inputs + hidden, hidden)

    def forward(self, x, h):
        both = torch.cat([x, h], dim=1)
        z = torch.sigmoid(self.update(both))
        r = torch.sigmoid(self.reset(both))
        new = torch.tanh(self.new(torch.cat([x, r * h], dim=1)))
        return (1 - z) * h + z * new


class Recurrent(nn.Module):
    def __init__(self, vocabulary, cell, width=64):
        super().__init__()
        self.begin = nn.Parameter(torch.zeros(1, width))
        self.embedding = nn.Embedding(vocabulary, width)
        self.cell = cell(width, width)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, x):
        b, t = x.size()
        e = self.embedding(x)
        h = self.begin.expand(b, -1)
        states = []
        for i in range(t):
            h = self.cell(e[:, i, :], h)
            states.append(h)
        return self.head(torch.stack(states, 1))


class Gelu(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.joined, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.register_buffer("past", torch.tril(torch.ones(BLOCK, BLOCK)).view(1, 1, BLOCK, BLOCK))

    def forward(self, x):
        b, t, c = x.size()
        q, k, v = self.joined(x).split(c, dim=2)
        q, k, v = (u.view(b, t, self.heads, c // self.heads).transpose(1, 2) for u in (q, k, v))
        score = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        score = score.masked_fill(self.past[:, :, :t, :t] == 0, float("-inf"))
        y = F.softmax(score, dim=-1) @ v
        return self.out(y.transpose(1, 2).contiguous().view(b, t, c))


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), Gelu(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.before(x))
        return x + self.mlp(self.after(x))


class Transformer(nn.Module):
    def __init__(self, vocabulary, width=64, heads=4, layers=4):
        super().__init__()
        self.letters, self.places = nn.Embedding(vocabulary, width), nn.Embedding(BLOCK, width)
        self.layers = nn.ModuleList([Layer(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, x):
        place = torch.arange(0, x.size(1), dtype=torch.long, device=x.device).unsqueeze(0)
        h = self.letters(x) + self.places(place)
        for layer in self.layers:
            h = layer(h)
        return self.head(self.norm(h))


MODELS = {
    "bigram": Bigram,
    "mlp": Perceptron,
    "rnn": lambda n: Recurrent(n, RecurrentCell),
    "gru": lambda n: Recurrent(n, GatedCell),
    "transformer": Transformer,
}


def loss_of(model, x, y):
    out = model(x)
    return F.cross_entropy(out.view(-1, out.size(-1)), y.view(-1), ignore_index=-1)


@torch.inference_mode()
def split_loss(model, data, batches=10):
    model.eval()
    losses = []
    for i, (x, y) in enumerate(DataLoader(data, batch_size=50)):
        losses.append(loss_of(model, x, y).item())
        if i + 1 >= batches:
            break
    model.train()
    return torch.tensor(losses).mean().item()


@torch.no_grad()
def sampled(model, count, letters):
    """Names drawn letter by letter."""
    model.eval()
    x = torch.zeros(count, 1, dtype=torch.long)
    for _ in range(BLOCK - 1):
        shares = F.softmax(model(x)[:, -1, :], dim=-1)
        x = torch.cat((x, torch.multinomial(shares, num_samples=1)), dim=1)
    model.train()
    names = []
    for i in range(count):
        row = x[i, 1:].tolist()
        row = row[: row.index(0)] if 0 in row else row
        names.append("".join(letters[k - 1] for k in row))
    return names


def endless(data, batch):
    """Batches of samples drawn with replacement."""
    sampler = RandomSampler(data, replacement=True, num_samples=int(1e10))
    return iter(DataLoader(data, sampler=sampler, batch_size=batch))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--model", default="bigram", choices=sorted(MODELS))
    p.add_argument("--steps", type=int)
    a = p.parse_args()
    start = time.time()
    random.seed(3407)
    torch.manual_seed(3407)
    words = made_names(4000)
    letters = sorted(set("".join(words)))
    order = torch.randperm(len(words)).tolist()
    train = Names([words[i] for i in order[:-400]], letters)
    test = Names([words[i] for i in order[-400:]], letters)
    model = MODELS[a.model](len(letters) + 1)
    print("parameters", sum(q.numel() for q in model.parameters()))
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.01, betas=(0.9, 0.99), eps=1e-8)
    steps = a.steps or STEPS[a.model]
    batches = endless(train, 32)
    for step in range(steps):
        x, y = next(batches)
        loss = loss_of(model, x, y)
        model.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if (step + 1) % (steps // 3) == 0:
            print(f"step {step + 1} loss {loss.item():.4f} train {split_loss(model, train):.4f} "
                  f"test {split_loss(model, test):.4f}")  # fmt: skip
            print(*sampled(model, 10, letters))
    print(f"time {time.time() - start:.2f}")


if __name__ == "__main__":
    main()
