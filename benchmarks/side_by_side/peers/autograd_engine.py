"""The workloads for autograd (HIPS): NumPy with gradients."""

import autograd.numpy as np
import common
import numpy
from autograd import grad, hessian, value_and_grad
from autograd.scipy.special import logsumexp
from common import Job
from workloads import w1_scalar, w7_elementwise, w8_reductions, w9b_lbfgs, w10_hessian

from peers.hand import Adam, sgd


def relu(x):
    return np.maximum(x, 0)


def training(loss, shapes, update, batches):
    names = list(shapes)
    params = [common.array_for(n, s) for n, s in shapes.items()]
    f = value_and_grad(lambda params, *batch: loss(dict(zip(names, params)), *batch))
    i = -1

    def step():
        nonlocal i
        i += 1
        value, grads = f(params, *batches[i % len(batches)])
        update(params, grads)
        return value

    return Job(step)


def mlp(p, x):
    for i in (0, 2, 4):
        x = np.dot(x, p[f"{i}.weight"].T) + p[f"{i}.bias"]
        if i < 4:
            x = relu(x)
    return x


def mlp_shapes(sizes):
    shapes = {}
    for k, (i, o) in enumerate(zip(sizes, sizes[1:])):
        shapes[f"{2 * k}.weight"], shapes[f"{2 * k}.bias"] = (o, i), (o,)
    return shapes


def cross_entropy(z, y):
    return (logsumexp(z, axis=1) - z[np.arange(len(y)), y]).mean()


def w1():
    f = value_and_grad(lambda a: w1_scalar.expression(a[0], a[1], a[2], a[3], relu))
    return Job(lambda: f(tuple(w1_scalar.LEAVES)), value=lambda r: float(r[0] + r[1][0]))


def w2():
    return training(
        lambda p, x, y: relu(1 - y * mlp(p, x)).mean(), mlp_shapes((2, 16, 16, 1)), sgd(0.05), [common.moons()]
    )


def w3(sizes=(784, 128, 64, 10), batch=64):
    return training(
        lambda p, x, y: cross_entropy(mlp(p, x), y), mlp_shapes(sizes), Adam(1e-3), common.classes(batch, (784,))
    )


def w3b():
    return w3((784, 1024, 1024, 10), 1024)


def w7():
    x = w7_elementwise.data()

    def f(x):
        return np.sum(x * (1 / (1 + np.exp(-1.702 * x))) + np.tanh(x) * np.exp(-x * x))

    g = value_and_grad(f)
    return Job(lambda: g(x), value=lambda r: float(r[0]) / w7_elementwise.SIZE)


def w8():
    data = w8_reductions.data()

    def f(x, t, gamma, beta):
        d = x - np.mean(x, axis=1, keepdims=True)
        h = d / np.sqrt(np.mean(d * d, axis=1, keepdims=True) + 1e-5) * gamma + beta
        e = np.exp(h - np.max(h, axis=1, keepdims=True))
        p = e / np.sum(e, axis=1, keepdims=True)
        return np.sum(p * t) / x.shape[0] + np.mean(logsumexp(x, axis=1)) + np.mean(np.var(x, axis=0, ddof=1))

    g = value_and_grad(f, argnum=(0, 2, 3))
    return Job(lambda: g(*data), value=lambda r: float(r[0]))


def logistic_loss(x, y):
    return lambda w: np.mean(np.logaddexp(0, x @ w[:10] + w[10]) - y * (x @ w[:10] + w[10]))


def w9():
    x, y = common.logistic()

    def loss(p):
        z = np.dot(x, p[0]) + p[1]
        return np.mean(np.logaddexp(0, z) - y * z)

    f = value_and_grad(loss)
    p = [numpy.zeros(10, numpy.float32), numpy.zeros(1, numpy.float32)]

    def step():
        v, (a, b) = f(p)
        p[0] -= 0.1 * a
        p[1] -= 0.1 * b
        return v

    return Job(step)


def w9b():
    from scipy.optimize import minimize

    f = logistic_loss(*common.logistic())
    g = value_and_grad(lambda w: f(w) + w9b_lbfgs.PENALTY * np.sum(w * w))
    return Job(
        lambda: minimize(g, numpy.zeros(11), jac=True, method="L-BFGS-B", options={"maxiter": w9b_lbfgs.ITERATIONS}).fun
    )


def w10():
    x = w10_hessian.point()
    h = hessian(lambda x: np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2))
    return Job(lambda: h(x), value=lambda h: float(numpy.abs(h).sum()) / 1e5)


WORKLOADS = {
    "W1": w1,
    "W2": w2,
    "W3": w3,
    "W3b": w3b,
    "W7": w7,
    "W8": w8,
    "W9": w9,
    "W9b": w9b,
    "W10": w10,
    "W10b": w10,
}


def classifier(cnn):
    if cnn:
        raise NotImplementedError("autograd has no fast convolution")
    shapes = mlp_shapes((784, 128, 64, 10))
    names, params, update = list(shapes), [common.array_for(n, s) for n, s in shapes.items()], Adam(1e-3)
    g = grad(lambda params, x, y: cross_entropy(mlp(dict(zip(names, params)), x), y))
    return (lambda x, y: update(params, g(params, x, y)), lambda x: mlp(dict(zip(names, params)), x).argmax(1))
