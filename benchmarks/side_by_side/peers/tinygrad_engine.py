"""The workloads for tinygrad, each step under TinyJit."""

import common
import numpy as np
from common import Job
from tinygrad import Device, Tensor, TinyJit, nn
from workloads import w1_scalar, w7_elementwise, w8_reductions


def wait(_):
    Device[Device.DEFAULT].synchronize()


def number(t):
    return float(t.item())


class MLP:
    def __init__(self, sizes):
        self.params = []
        for k, (i, o) in enumerate(zip(sizes, sizes[1:])):
            self.params += [
                (Tensor(common.array_for(f"{2 * k}.weight", (o, i))).realize()),
                (Tensor(np.zeros(o, np.float32)).realize()),
            ]
        for p in self.params:
            p.requires_grad = True

    def __call__(self, x):
        for k in range(0, len(self.params), 2):
            x = x @ self.params[k].T + self.params[k + 1]
            if k + 2 < len(self.params):
                x = x.relu()
        return x


class LeNet:
    def __init__(self):
        self.params = []
        for n, s in (("0", (6, 1, 5, 5)), ("3", (16, 6, 5, 5)), ("7", (120, 256)), ("9", (84, 120)), ("11", (10, 84))):
            self.params += [
                Tensor(common.array_for(n + ".weight", s)).realize(),
                Tensor(np.zeros(s[0], np.float32)).realize(),
            ]
        for p in self.params:
            p.requires_grad = True

    def __call__(self, x):
        a, b, c, d, e, f, g, h, i, j = self.params
        x = x.conv2d(a, b).relu().max_pool2d((2, 2))
        x = x.conv2d(c, d).relu().max_pool2d((2, 2)).flatten(1)
        x = (x @ e.T + f).relu()
        x = (x @ g.T + h).relu()
        return x @ i.T + j


def training(model, loss, opt, batches):
    batches = [tuple(Tensor(a.astype(np.int32) if a.dtype == np.int64 else a).realize() for a in b) for b in batches]

    @TinyJit
    def jitted(*batch):
        opt.zero_grad()
        value = loss(*batch)
        value.backward()
        return value.realize(*opt.schedule_step())

    i = -1

    def step():
        nonlocal i
        i += 1
        return jitted(*batches[i % len(batches)])

    return Job(step, wait, number)


def w1():
    leaves = [Tensor(np.float32([v])).realize() for v in w1_scalar.LEAVES]
    for p in leaves:
        p.requires_grad = True

    @TinyJit
    def step(*leaves):
        y = w1_scalar.expression(*leaves, Tensor.relu)
        g = y.sum().gradient(*leaves)
        return (y + g[0]).sum().realize(*g)

    return Job(lambda: step(*leaves), wait, number)


def w2():
    model = MLP((2, 16, 16, 1))
    return training(
        model, lambda x, y: (1 - y * model(x)).relu().mean(), nn.optim.SGD(model.params, lr=0.05), [common.moons()]
    )


def w3(sizes=(784, 128, 64, 10), batch=64):
    model = MLP(sizes)
    return training(
        model,
        lambda x, y: model(x).sparse_categorical_crossentropy(y),
        nn.optim.Adam(model.params, lr=1e-3),
        common.classes(batch, (784,)),
    )


def w3b():
    return w3((784, 1024, 1024, 10), 1024)


def w4():
    model = LeNet()
    return training(
        model,
        lambda x, y: model(x).sparse_categorical_crossentropy(y),
        nn.optim.SGD(model.params, lr=0.01, momentum=0.9),
        common.classes(64, (1, 28, 28)),
    )


def w7():
    x = Tensor(w7_elementwise.data()).realize()
    x.requires_grad = True

    @TinyJit
    def step(x):
        y = (x * (1.702 * x).sigmoid() + x.tanh() * (-x * x).exp()).sum()
        g = y.gradient(x)[0]
        return y.realize(g), g

    return Job(lambda: step(x)[0], wait, lambda y: number(y) / w7_elementwise.SIZE)


def w8():
    x, t, gamma, beta = (Tensor(a).realize() for a in w8_reductions.data())
    for p in (x, gamma, beta):
        p.requires_grad = True

    @TinyJit
    def step(x, t, gamma, beta):
        h = x.layernorm(eps=1e-5) * gamma + beta
        y = (h.softmax(-1) * t).sum() / x.shape[0] + x.logsumexp(1).mean() + x.var(axis=0).mean()
        g = y.gradient(x, gamma, beta)
        return (y.realize(*g), *g)

    return Job(lambda: step(x, t, gamma, beta)[0], wait, number)


def w9():
    x, y = (Tensor(a).realize() for a in common.logistic())
    w, b = Tensor.zeros(10).contiguous().realize(), Tensor.zeros(1).contiguous().realize()
    w.requires_grad = b.requires_grad = True
    opt = nn.optim.SGD([w, b], lr=0.1)

    @TinyJit
    def step(x, y):
        opt.zero_grad()
        z = x @ w + b
        loss = (z.softplus() - y * z).mean()
        loss.backward()
        return loss.realize(*opt.schedule_step())

    return Job(lambda: step(x, y), wait, number)


WORKLOADS = {"W1": w1, "W2": w2, "W3": w3, "W3b": w3b, "W4": w4, "W7": w7, "W8": w8, "W9": w9}


def classifier(cnn):
    model = LeNet() if cnn else MLP((784, 128, 64, 10))
    opt = nn.optim.Adam(model.params, lr=1e-3)

    @TinyJit
    def train(x, y):
        opt.zero_grad()
        loss = model(x).sparse_categorical_crossentropy(y)
        loss.backward()
        return loss.realize(*opt.schedule_step())

    return (
        lambda x, y: train(Tensor(x).realize(), Tensor(y.astype(np.int32)).realize()),
        lambda x: model(Tensor(x)).argmax(1).numpy(),
    )
