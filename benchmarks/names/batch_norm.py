"""An MLP over three letters with batch norm written by hand, plain tensors, updates by hand; as a lecture writes it.

python batch_norm.py; rushlight run batch_norm.py"""

import argparse
import random
import time

import torch
import torch.nn.functional as F
from names import made_names

g = torch.Generator().manual_seed(2147483647)


class Linear:
    def __init__(self, inputs, outputs, bias=True):
        self.weight = torch.randn((inputs, outputs), generator=g) / inputs**0.5
        self.bias = torch.zeros(outputs) if bias else None

    def __call__(self, x):
        self.out = x @ self.weight
        if self.bias is not None:
            self.out += self.bias
        return self.out

    def parameters(self):
        return [self.weight] + ([] if self.bias is None else [self.bias])


class BatchNorm:
    def __init__(self, width, eps=1e-5, momentum=0.1):
        self.eps, self.momentum, self.training = eps, momentum, True
        self.gamma, self.beta = torch.ones(width), torch.zeros(width)
        self.running_mean, self.running_var = torch.zeros(width), torch.ones(width)

    def __call__(self, x):
        if self.training:
            mean, var = x.mean(0, keepdim=True), x.var(0, keepdim=True)
        else:
            mean, var = self.running_mean, self.running_var
        unit = (x - mean) / torch.sqrt(var + self.eps)
        self.out = self.gamma * unit + self.beta
        if self.training:
            with torch.no_grad():
                self.running_mean = (1 - self.momentum) * self.running_mean + self.momentum * mean
                self.running_var = (1 - self.momentum) * self.running_var + self.momentum * var
        return self.out

    def parameters(self):
        return [self.gamma, self.beta]


class Tanh:
    def __call__(self, x):
        self.out = torch.tanh(x)
        return self.out

    def parameters(self):
        return []


def windows(words, number):
    xs, ys = [], []
    for w in words:
        past = [0] * 3
        for c in w + ".":
            k = number[c]
            xs.append(past)
            ys.append(k)
            past = past[1:] + [k]
    return torch.tensor(xs), torch.tensor(ys)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=3000)
    a = p.parse_args()
    start = time.time()
    words = made_names(4000)
    random.Random(42).shuffle(words)
    letters = sorted(set("".join(words)))
    number = {c: i + 1 for i, c in enumerate(letters)} | {".": 0}
    text = {i: c for c, i in number.items()}
    x_train, y_train = windows(words[:3600], number)
    x_test, y_test = windows(words[3600:], number)
    v, width, hidden = len(number), 10, 100
    table = torch.randn((v, width), generator=g)
    layers = [Linear(3 * width, hidden, bias=False), BatchNorm(hidden), Tanh()]
    layers += [Linear(hidden, hidden, bias=False), BatchNorm(hidden), Tanh()]
    layers += [Linear(hidden, v, bias=False), BatchNorm(v)]
    with torch.no_grad():
        layers[-1].gamma *= 0.1
    parameters = [table] + [q for layer in layers for q in layer.parameters()]
    print("parameters", sum(q.nelement() for q in parameters))
    for q in parameters:
        q.requires_grad = True
    losses = []
    for step in range(a.steps):
        rows = torch.randint(0, x_train.shape[0], (32,), generator=g)
        x, y = x_train[rows], y_train[rows]
        h = table[x].view(x.shape[0], -1)
        for layer in layers:
            h = layer(h)
        loss = F.cross_entropy(h, y)
        for q in parameters:
            q.grad = None
        loss.backward()
        rate = 0.1 if step < a.steps // 2 else 0.01
        for q in parameters:
            q.data += -rate * q.grad
        losses.append(loss.log10().item())
        if (step + 1) % (a.steps // 3) == 0:
            print(f"step {step + 1} loss {loss.item():.4f} mean {torch.tensor(losses).view(-1, 50).mean(1)[-1]:.4f}")
    for layer in layers:
        layer.training = False
    with torch.no_grad():
        h = table[x_test].view(x_test.shape[0], -1)
        for layer in layers:
            h = layer(h)
        print(f"test {F.cross_entropy(h, y_test).item():.4f}")
        for _ in range(20):
            out, past = [], [0] * 3
            while len(out) < 20:
                h = table[torch.tensor([past])].view(1, -1)
                for layer in layers:
                    h = layer(h)
                k = torch.multinomial(F.softmax(h, dim=1), num_samples=1, generator=g).item()
                past = past[1:] + [k]
                if k == 0:
                    break
                out.append(text[k])
            print("".join(out), end=" ")
    print(f"\ntime {time.time() - start:.2f}")


if __name__ == "__main__":
    main()
