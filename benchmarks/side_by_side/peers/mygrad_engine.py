"""The workloads for mygrad."""

import common
import mygrad as mg
import numpy as np
from common import Job
from mygrad.nnet.activations import relu, sigmoid, softmax
from mygrad.nnet.losses import softmax_crossentropy
from workloads import w1_scalar, w7_elementwise, w8_reductions

from peers.hand import Adam, sgd


def w1():
    leaves = [mg.tensor(v, dtype=np.float32) for v in w1_scalar.LEAVES]

    def step():
        for p in leaves:
            p.null_grad()
        y = w1_scalar.expression(*leaves, relu)
        y.backward()
        return y

    return Job(step, value=lambda y: float(y.data + leaves[0].grad))


class Model:
    def __init__(self, sizes):
        self.layers = [
            (mg.tensor(common.array_for(f"{2 * k}.weight", (o, i))), mg.tensor(np.zeros(o, np.float32)))
            for k, (i, o) in enumerate(zip(sizes, sizes[1:]))
        ]
        self.params = [p for layer in self.layers for p in layer]

    def __call__(self, x):
        for k, (w, b) in enumerate(self.layers):
            x = mg.matmul(x, w.T) + b
            if k + 1 < len(self.layers):
                x = relu(x)
        return x


def training(model, loss, update, batches):
    i = -1

    def step():
        nonlocal i
        i += 1
        value = loss(*batches[i % len(batches)])
        value.backward()
        update([p.data for p in model.params], [p.grad for p in model.params])
        return value

    return Job(step, value=lambda v: float(v.data))


def w2():
    model = Model((2, 16, 16, 1))
    return training(model, lambda x, y: relu(1 - y * model(x)).mean(), sgd(0.05), [common.moons()])


def w3(sizes=(784, 128, 64, 10), batch=64):
    model = Model(sizes)
    return training(model, lambda x, y: softmax_crossentropy(model(x), y), Adam(1e-3), common.classes(batch, (784,)))


def w3b():
    return w3((784, 1024, 1024, 10), 1024)


def w7():
    x = mg.tensor(w7_elementwise.data())

    def step():
        x.null_grad()
        y = (x * sigmoid(1.702 * x) + mg.tanh(x) * mg.exp(-x * x)).sum()
        y.backward()
        return y

    return Job(step, value=lambda y: float(y.data) / w7_elementwise.SIZE)


def w8():
    x0, t, g0, b0 = w8_reductions.data()
    x, gamma, beta = mg.tensor(x0), mg.tensor(g0), mg.tensor(b0)

    def step():
        for p in (x, gamma, beta):
            p.null_grad()
        d = x - x.mean(axis=1, keepdims=True)
        h = d / mg.sqrt((d * d).mean(axis=1, keepdims=True) + np.float32(1e-5)) * gamma + beta
        y = (softmax(h) * t).sum() / len(x0) + mg.log(mg.exp(x).sum(axis=1)).mean() + mg.var(x, axis=0, ddof=1).mean()
        y.backward()
        return y

    return Job(step, value=lambda y: float(y.data))


def w9():
    x, y = common.logistic()
    w, b = mg.tensor(np.zeros(10, np.float32)), mg.tensor(np.zeros(1, np.float32))

    def step():
        z = mg.matmul(x, w) + b
        loss = (mg.logaddexp(np.float32(0), z) - y * z).mean()
        loss.backward()
        w.data[...] -= 0.1 * w.grad
        b.data[...] -= 0.1 * b.grad
        return loss

    return Job(step, value=lambda v: float(v.data))


WORKLOADS = {"W1": w1, "W2": w2, "W3": w3, "W3b": w3b, "W7": w7, "W8": w8, "W9": w9}


def classifier(cnn):
    if cnn:
        raise NotImplementedError
    model, update = Model((784, 128, 64, 10)), Adam(1e-3)

    def step(x, y):
        softmax_crossentropy(model(x), y).backward()
        update([p.data for p in model.params], [p.grad for p in model.params])

    def predict(x):
        with mg.no_autodiff:
            return model(x).data.argmax(1)

    return step, predict
