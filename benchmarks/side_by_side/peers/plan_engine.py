"""Hand-written plans: what a step compiled to NumPy matmuls and fused Numba kernels can reach.

Static buffers, matmul into them, one fused kernel per elementwise group, one flat
Adam kernel; the tiny workloads are one single Numba function for the whole step.
"""

import math

import common
import numba
import numpy as np
from common import Job
from llvmlite import ir
from numba import njit, prange
from numba.extending import intrinsic
from workloads import w1_scalar, w7_elementwise, w8_reductions

F = np.float32
fast = {"fastmath": {"contract", "reassoc", "nsz", "arcp", "afn"}, "error_model": "numpy", "boundscheck": False}


@intrinsic
def as_float(typing, i):
    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.FloatType())

    return numba.float32(numba.int32), codegen


@njit(inline="always", **fast)
def exp(x):
    """float32 exp by range reduction and a degree-6 polynomial: LLVM turns it into AVX-512 code."""
    x = min(max(x, F(-87.3)), F(88.3))
    n = np.floor(x * F(1.44269504) + F(0.5))
    r = x - n * F(0.693359375) + n * F(2.12194440e-4)
    p = F(1.9875691500e-4)
    p = p * r + F(1.3981999507e-3)
    p = p * r + F(8.3334519073e-3)
    p = p * r + F(4.1665795894e-2)
    p = p * r + F(1.6666665459e-1)
    p = p * r + F(5.0000001201e-1)
    p = p * r * r + r + F(1)
    return p * as_float((np.int32(n) + np.int32(127)) << np.int32(23))


# ---------------------------------------------------------------- W1: a tape of opcodes, one kernel

ADD, MUL, RELU = 0, 1, 2


class Recorder:
    """Records an expression as (op, left, right) rows over a slot array."""

    def __init__(self, tape, slot):
        self.tape, self.slot = tape, slot

    def emit(self, op, a, b):
        self.tape.append((op, a, b))
        return Recorder(self.tape, len(self.tape) - 1)

    def __add__(self, o):
        return self.emit(ADD, self.slot, o.slot)

    def __mul__(self, o):
        return self.emit(MUL, self.slot, o.slot)

    def relu(self):
        return self.emit(RELU, self.slot, 0)


@njit(error_model="numpy")
def run_tape(tape, value, grad, leaves, out):
    n = len(tape)
    for k in range(leaves, n):
        op, a, b = tape[k]
        value[k] = value[a] + value[b] if op == 0 else value[a] * value[b] if op == 1 else max(value[a], F(0))
    grad[:] = 0
    grad[out] = 1
    for k in range(n - 1, leaves - 1, -1):
        op, a, b = tape[k]
        g = grad[k]
        if op == 0:
            grad[a] += g
            grad[b] += g
        elif op == 1:
            grad[a] += g * value[b]
            grad[b] += g * value[a]
        elif value[k] > 0:
            grad[a] += g
    return value[out]


def w1():
    """The expression is recorded once; the step replays it."""
    tape = [(-1, 0, 0)] * 4
    out = w1_scalar.expression(*(Recorder(tape, i) for i in range(4)), Recorder.relu).slot
    n = len(tape)
    ops, value, grad = np.array(tape, np.int32), np.zeros(n, F), np.zeros(n, F)
    value[:4] = w1_scalar.LEAVES
    return Job(lambda: run_tape(ops, value, grad, 4, out), value=lambda y: float(y + grad[0]))


# ---------------------------------------------------------------- W2, W9: one kernel for the whole step


@njit(inline="always", **fast)
def affine(x, w, b, o, act):
    """o = x @ w.T + b, w stored transposed so that the inner loop runs along the outputs."""
    for r in range(x.shape[0]):
        for j in range(o.shape[1]):
            o[r, j] = b[j]
        for i in range(x.shape[1]):
            v = x[r, i]
            for j in range(o.shape[1]):
                o[r, j] += v * w[i, j]
        if act:
            for j in range(o.shape[1]):
                o[r, j] = max(o[r, j], F(0))


@njit(inline="always", **fast)
def affine_back(x, w, d, gw, gb, dx, h, need):
    """gw = x.T @ d, gb = sum d, dx = (d @ w.T) * (h > 0)."""
    gw[:] = 0
    gb[:] = 0
    for r in range(x.shape[0]):
        for j in range(d.shape[1]):
            gb[j] += d[r, j]
        for i in range(x.shape[1]):
            v, s = x[r, i], F(0)
            for j in range(d.shape[1]):
                gw[i, j] += v * d[r, j]
                s += d[r, j] * w[i, j]
            if need:
                dx[r, i] = s if h[r, i] > 0 else F(0)


@njit(**fast)
def moons_step(x, y, w0, b0, w1, b1, w2, b2, h0, h1, z, d0, d1, dz, g0, c0, g1, c1, g2, c2, lr):
    affine(x, w0, b0, h0, True)
    affine(h0, w1, b1, h1, True)
    affine(h1, w2, b2, z, False)
    n, total = x.shape[0], F(0)
    for r in range(n):
        m = F(1) - y[r, 0] * z[r, 0]
        total += max(m, F(0))
        dz[r, 0] = -y[r, 0] / n if m > 0 else F(0)
    affine_back(h1, w2, dz, g2, c2, d1, h1, True)
    affine_back(h0, w1, d1, g1, c1, d0, h0, True)
    affine_back(x, w0, d0, g0, c0, d0, h0, False)
    for w, g in ((w0, g0), (w1, g1), (w2, g2)):
        for i in range(w.shape[0]):
            for j in range(w.shape[1]):
                w[i, j] -= lr * g[i, j]
    for b, g in ((b0, c0), (b1, c1), (b2, c2)):
        for j in range(b.shape[0]):
            b[j] -= lr * g[j]
    return total / n


def w2():
    (x, y), e = common.moons(), lambda *s: np.zeros(s, F)
    ws = [
        np.ascontiguousarray(common.array_for(f"{2 * k}.weight", s).T)
        for k, s in enumerate(((16, 2), (16, 16), (1, 16)))
    ]
    args = (
        x,
        y,
        ws[0],
        e(16),
        ws[1],
        e(16),
        ws[2],
        e(1),
        e(100, 16),
        e(100, 16),
        e(100, 1),
        e(100, 16),
        e(100, 16),
        e(100, 1),
        e(2, 16),
        e(16),
        e(16, 16),
        e(16),
        e(16, 1),
        e(1),
        F(0.05),
    )
    return Job(lambda: moons_step(*args))


@njit(**fast)
def logistic_step(x, y, w, b, g):
    n, total, gb = x.shape[0], F(0), F(0)
    g[:] = 0
    for r in range(n):
        z = b[0]
        for i in range(x.shape[1]):
            z += x[r, i] * w[i]
        e = exp(-abs(z))
        total += max(z, F(0)) - y[r] * z + F(math.log1p(e))
        s = F(1) / (F(1) + e)
        d = ((s if z > 0 else F(1) - s) - y[r]) / n
        gb += d
        for i in range(x.shape[1]):
            g[i] += d * x[r, i]
    for i in range(w.shape[0]):
        w[i] -= F(0.1) * g[i]
    b[0] -= F(0.1) * gb
    return total / n


def w9():
    (x, y), w, b, g = common.logistic(), np.zeros(10, F), np.zeros(1, F), np.zeros(10, F)
    return Job(lambda: logistic_step(x, y, w, b, g))


# ---------------------------------------------------------------- W3, W3b: matmuls into static buffers + fused kernels


@njit(**fast)
def bias_relu(z, b):
    for i in range(z.shape[0]):
        for j in range(z.shape[1]):
            z[i, j] = max(z[i, j] + b[j], F(0))


@njit(**fast)
def mask_and_sum(d, h, gb):
    gb[:] = 0
    for i in range(d.shape[0]):
        for j in range(d.shape[1]):
            v = d[i, j] if h[i, j] > 0 else F(0)
            d[i, j] = v
            gb[j] += v


@njit(**fast)
def cross_entropy(z, b, y, d, gb):
    total, n = F(0), F(z.shape[0])
    gb[:] = 0
    for i in range(z.shape[0]):
        m = F(-1e30)
        for j in range(z.shape[1]):
            d[i, j] = z[i, j] + b[j]
            m = max(m, d[i, j])
        t, s = d[i, y[i]] - m, F(0)
        for j in range(z.shape[1]):
            d[i, j] = exp(d[i, j] - m)
            s += d[i, j]
        total += F(math.log(s)) - t
        k = F(1) / (s * n)
        for j in range(z.shape[1]):
            d[i, j] *= k
        d[i, y[i]] -= F(1) / n
        for j in range(z.shape[1]):
            gb[j] += d[i, j]
    return total / n


def adam_kernel(p, g, m, v, lr, c1, c2):
    for i in prange(p.size):
        m[i] = F(0.9) * m[i] + F(0.1) * g[i]
        v[i] = F(0.999) * v[i] + F(0.001) * g[i] * g[i]
        p[i] -= lr / c1 * m[i] / (np.sqrt(v[i]) / c2 + F(1e-8))


adam_serial, adam_parallel = njit(**fast)(adam_kernel), njit(parallel=True, **fast)(adam_kernel)


def w3(sizes=(784, 128, 64, 10), batch=64):
    batches = common.classes(batch, (784,))
    shapes = []
    for i, o in zip(sizes, sizes[1:]):
        shapes += [(o, i), (o,)]
    flat = [np.zeros(sum(math.prod(s) for s in shapes), F) for _ in range(4)]  # parameters, gradients, two moments
    views, at = ([], []), 0
    for k, s in enumerate(shapes):
        n = math.prod(s)
        for q in (0, 1):
            views[q].append(flat[q][at : at + n].reshape(s))
        at += n
        views[0][-1][:] = common.array_for(f"{k // 2 * 2}." + ("bias" if k % 2 else "weight"), s)
    (w0, b0, w1, b1, w2, b2), (g0, c0, g1, c1, g2, c2) = views
    h0, h1, z = (np.empty((batch, n), F) for n in sizes[1:])
    d0, d1, dz = (np.empty((batch, n), F) for n in sizes[1:])
    w0t, w1t, w2t, d0t, d1t, dzt = w0.T, w1.T, w2.T, d0.T, d1.T, dz.T
    mm, adam = np.matmul, adam_parallel if flat[0].size > 500_000 else adam_serial
    t = 0

    def step():
        nonlocal t
        x, y = batches[t % len(batches)]
        t += 1
        mm(x, w0t, h0)
        bias_relu(h0, b0)
        mm(h0, w1t, h1)
        bias_relu(h1, b1)
        mm(h1, w2t, z)
        value = cross_entropy(z, b2, y, dz, c2)
        mm(dzt, h1, g2)
        mm(dz, w2, d1)
        mask_and_sum(d1, h1, c1)
        mm(d1t, h0, g1)
        mm(d1, w1, d0)
        mask_and_sum(d0, h0, c0)
        mm(d0t, x, g0)
        adam(flat[0], flat[1], flat[2], flat[3], F(1e-3), F(1 - 0.9**t), F((1 - 0.999**t) ** 0.5))
        return value

    return Job(step)


def w3b():
    return w3((784, 1024, 1024, 10), 1024)


# ---------------------------------------------------------------- W7, W8: fused parallel kernels


@njit(parallel=True, **fast)
def chain(x, g):
    total = F(0)
    for i in prange(x.size):
        v = x[i]
        s = F(1) / (F(1) + exp(F(-1.702) * v))
        t = F(1) - F(2) / (F(1) + exp(F(2) * v))
        e = exp(-v * v)
        total += v * s + t * e
        g[i] = s + F(1.702) * v * s * (F(1) - s) + (F(1) - t * t) * e - F(2) * v * t * e
    return total


def w7():
    x = w7_elementwise.data()
    g = np.empty_like(x)
    return Job(lambda: chain(x, g), value=lambda y: float(y) / w7_elementwise.SIZE)


@njit(parallel=True, **fast)
def reductions(x, t, gamma, beta, gx, gg, gb, part, mu):
    rows, cols = x.shape
    n = part.shape[0]
    size = (rows + n - 1) // n
    for q in prange(n):  # column sums, for the column variance
        for j in range(cols):
            part[q, 2, j] = 0
            part[q, 3, j] = 0
        for r in range(q * size, min(rows, (q + 1) * size)):
            for j in range(cols):
                part[q, 2, j] += x[r, j]
                part[q, 3, j] += x[r, j] * x[r, j]
    var = F(0)
    for j in range(cols):
        s, s2 = F(0), F(0)
        for q in range(n):
            s += part[q, 2, j]
            s2 += part[q, 3, j]
        mu[j] = s / rows
        var += (s2 - s * mu[j]) / F(rows - 1)
    inv, k = F(1) / rows, F(2) / F(F(rows - 1) * cols)
    total = np.zeros(n, np.float32)
    for q in prange(n):
        h, e = np.empty(cols, np.float32), np.empty(cols, np.float32)
        for j in range(cols):
            part[q, 0, j] = 0
            part[q, 1, j] = 0
        for r in range(q * size, min(rows, (q + 1) * size)):
            m, m2, top = F(0), F(0), F(-1e30)
            for j in range(cols):
                m += x[r, j]
                top = max(top, x[r, j])
            m /= cols
            z = F(0)
            for j in range(cols):
                d = x[r, j] - m
                m2 += d * d
                e[j] = exp(x[r, j] - top)
                z += e[j]
            rs = F(1) / np.sqrt(m2 / cols + F(1e-5))
            hm = F(-1e30)
            for j in range(cols):
                h[j] = (x[r, j] - m) * rs * gamma[j] + beta[j]
                hm = max(hm, h[j])
            s, st = F(0), F(0)
            for j in range(cols):
                h[j] = exp(h[j] - hm)
                s += h[j]
                st += h[j] * t[r, j]
            st /= s
            total[q] += st * inv + (top + F(math.log(z))) * inv
            sg, sgx = F(0), F(0)
            for j in range(cols):
                xh = (x[r, j] - m) * rs
                dh = h[j] / s * (t[r, j] - st) * inv
                part[q, 0, j] += dh * xh
                part[q, 1, j] += dh
                dg = dh * gamma[j]
                h[j] = dg
                sg += dg
                sgx += dg * xh
            sg /= cols
            sgx /= cols
            for j in range(cols):
                xh = (x[r, j] - m) * rs
                gx[r, j] = rs * (h[j] - sg - xh * sgx) + e[j] / z * inv + k * (x[r, j] - mu[j])
    for j in range(cols):
        a, b = F(0), F(0)
        for q in range(n):
            a += part[q, 0, j]
            b += part[q, 1, j]
        gg[j], gb[j] = a, b
    return total.sum() + var / cols


def w8():
    x, t, gamma, beta = w8_reductions.data()
    gx, gg, gb = np.empty_like(x), np.empty_like(gamma), np.empty_like(beta)
    part, mu = np.empty((numba.get_num_threads(), 4, x.shape[1]), F), np.empty(x.shape[1], F)
    return Job(lambda: reductions(x, t, gamma, beta, gx, gg, gb, part, mu))


WORKLOADS = {"W1": w1, "W2": w2, "W3": w3, "W3b": w3b, "W7": w7, "W8": w8, "W9": w9}
