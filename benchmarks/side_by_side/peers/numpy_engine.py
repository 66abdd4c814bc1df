"""Hand-derived NumPy steps: the natural floor of a NumPy-only library (no graph, no allocator tricks)."""

import common
import numpy as np
from common import Job
from workloads import w7_elementwise

from peers.hand import Adam, sgd


def mlp(sizes, loss, update):
    """(train(x, y) -> loss, forward(x) -> activations) of a ReLU network with hand-written gradients."""
    params = []
    for k, (i, o) in enumerate(zip(sizes, sizes[1:])):
        params += [common.array_for(f"{2 * k}.weight", (o, i)), np.zeros(o, np.float32)]
    n = len(params) // 2

    def forward(x):
        hs = [x]
        for k in range(n):
            z = hs[-1] @ params[2 * k].T + params[2 * k + 1]
            hs.append(np.maximum(z, 0) if k + 1 < n else z)
        return hs

    def train(x, y):
        hs = forward(x)
        value, d = loss(hs.pop(), y)
        grads = []
        for k in reversed(range(n)):
            grads = [d.T @ hs[k], d.sum(0)] + grads
            if k:
                d = (d @ params[2 * k]) * (hs[k] > 0)
        update(params, grads)
        return value

    return train, forward


def mlp_job(sizes, batches, loss, update):
    train, _ = mlp(sizes, loss, update)
    i = -1

    def step():
        nonlocal i
        i += 1
        return train(*batches[i % len(batches)])

    return Job(step)


def hinge(z, y):
    m = 1 - y * z
    return np.maximum(m, 0).mean(), np.where(m > 0, -y / np.float32(len(y)), np.float32(0))


def cross_entropy(z, y):
    rows = np.arange(len(y))
    z = z - z.max(1, keepdims=True)
    e = np.exp(z)
    s = e.sum(1, keepdims=True)
    value = (np.log(s[:, 0]) - z[rows, y]).mean()
    d = e / s
    d[rows, y] -= 1
    d /= np.float32(len(y))
    return value, d


def w2():
    return mlp_job((2, 16, 16, 1), [common.moons()], hinge, sgd(0.05))


def w3():
    return mlp_job((784, 128, 64, 10), common.classes(64, (784,)), cross_entropy, Adam(1e-3))


def w3b():
    return mlp_job((784, 1024, 1024, 10), common.classes(1024, (784,)), cross_entropy, Adam(1e-3))


def w7():
    x = w7_elementwise.data()

    def step():
        s = 1 / (1 + np.exp(np.float32(-1.702) * x))
        t, e = np.tanh(x), np.exp(-x * x)
        value = (x * s + t * e).sum()
        step.grad = s + np.float32(1.702) * x * s * (1 - s) + (1 - t * t) * e - 2 * x * t * e
        return value

    return Job(step, value=lambda v: float(v) / w7_elementwise.SIZE)


def w9():
    x, y = common.logistic()
    w, b = np.zeros(10, np.float32), np.zeros(1, np.float32)

    def step():
        z = x @ w + b
        d = (1 / (1 + np.exp(-z)) - y) / np.float32(len(y))
        value = (np.logaddexp(0, z) - y * z).mean()
        w.__isub__(np.float32(0.1) * (d @ x))
        b.__isub__(np.float32(0.1) * d.sum())
        return value

    return Job(step)


WORKLOADS = {"W2": w2, "W3": w3, "W3b": w3b, "W7": w7, "W9": w9}


def classifier(cnn):
    if cnn:
        raise NotImplementedError
    train, forward = mlp((784, 128, 64, 10), cross_entropy, Adam(1e-3))
    return train, lambda x: forward(x)[-1].argmax(1)
