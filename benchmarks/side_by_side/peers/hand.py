"""Plain NumPy optimizers for the engines that bring none."""

import numpy as np


def sgd(lr):
    def update(params, grads):
        for p, g in zip(params, grads):
            p -= lr * g

    return update


class Adam:
    def __init__(self, lr, b1=0.9, b2=0.999, eps=1e-8):
        self.lr, self.b1, self.b2, self.eps, self.t, self.state = lr, b1, b2, eps, 0, None

    def __call__(self, params, grads):
        if self.state is None:
            self.state = [(np.zeros_like(p), np.zeros_like(p)) for p in params]
        self.t += 1
        c1, c2 = 1 - self.b1**self.t, (1 - self.b2**self.t) ** 0.5
        for p, g, (m, v) in zip(params, grads, self.state):
            m *= self.b1
            m += (1 - self.b1) * g
            v *= self.b2
            v += (1 - self.b2) * (g * g)
            p -= (self.lr / c1) * m / (np.sqrt(v) / c2 + self.eps)
