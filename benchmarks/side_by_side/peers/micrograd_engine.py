"""The workloads for micrograd: scalars only."""

import common
from common import Job
from micrograd.engine import Value
from micrograd.nn import MLP
from workloads import w1_scalar


def w1():
    leaves = [Value(v) for v in w1_scalar.LEAVES]

    def step():
        for p in leaves:
            p.grad = 0
        y = w1_scalar.expression(*leaves, Value.relu)
        y.backward()
        return y

    return Job(step, value=lambda y: float(y.data + leaves[0].grad))


def w2():
    model = MLP(2, [16, 16, 1])
    for k, layer in enumerate(model.layers):
        w = common.array_for(f"{2 * k}.weight", (len(layer.neurons), len(layer.neurons[0].w)))
        for neuron, row in zip(layer.neurons, w):
            for p, v in zip(neuron.w, row):
                p.data = float(v)
    xs, ys = common.moons()
    xs, ys = xs.tolist(), ys[:, 0].tolist()

    def step():
        scores = [model([Value(a), Value(b)]) for a, b in xs]
        loss = sum((1 + -y * s).relu() for y, s in zip(ys, scores)) * (1.0 / len(ys))
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.data -= 0.05 * p.grad
        return loss

    return Job(step, value=lambda loss: float(loss.data))


WORKLOADS = {"W1": w1, "W2": w2}
