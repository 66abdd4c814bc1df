"""The workloads as a JAX user would write them: pure functions, value_and_grad, one jit per step, donated state."""

import functools
import os

import common
import jax
import jax.numpy as jnp
import numpy as np
from common import Job
from workloads import w1_scalar, w5_gpt, w5b_generate, w6_lstm, w7_elementwise, w8_reductions, w9b_lbfgs, w10_hessian

lax = jax.lax


def limit_threads():
    """XLA sizes its pool by the CPUs it may run on when the client starts; no option does it reliably."""
    cpus, n = os.sched_getaffinity(0), int(os.environ.get("BENCH_THREADS", "0"))
    if 0 < n < len(cpus):
        os.sched_setaffinity(0, set(sorted(cpus)[:n]))
        jax.block_until_ready(jnp.zeros(1) + 1)
        os.sched_setaffinity(0, cpus)


limit_threads()


def cross_entropy(logits, y):
    logp = jax.nn.log_softmax(logits)
    return -jnp.take_along_axis(logp, y[:, None], axis=1).mean()


# ------------------------------------------------------------ optimizers


def sgd(lr, momentum=0.0):
    def init(params):
        return jax.tree.map(jnp.zeros_like, params) if momentum else ()

    def update(params, grads, state):
        if momentum:
            state = jax.tree.map(lambda m, g: momentum * m + g, state, grads)
            grads = state
        return jax.tree.map(lambda p, g: p - lr * g, params, grads), state

    return init, update


def adam(lr, b1=0.9, b2=0.999, eps=1e-8, decay=lambda p: 0.0):
    def init(params):
        zeros = functools.partial(jax.tree.map, jnp.zeros_like)
        return zeros(params), zeros(params), jnp.zeros((), jnp.float32)

    def update(params, grads, state):
        m, v, t = state
        t = t + 1
        m = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, m, grads)
        v = jax.tree.map(lambda v, g: b2 * v + (1 - b2) * g * g, v, grads)
        c1, c2 = 1 - b1**t, 1 - b2**t

        def new(p, m, v):
            return p * (1 - lr * decay(p)) - lr / c1 * m / (jnp.sqrt(v) / jnp.sqrt(c2) + eps)

        return jax.tree.map(new, params, m, v), (m, v, t)

    return init, update


def clip(grads, limit):
    norm = jnp.sqrt(sum(jnp.sum(g * g) for g in jax.tree.leaves(grads)))
    scale = jnp.minimum(1.0, limit / (norm + 1e-6))
    return jax.tree.map(lambda g: g * scale, grads)


def training(loss_fn, shapes, optimizer, batches, clip_at=None, extra=None):
    """A Job whose step is one jitted update. `extra` is non-gradient state (batch-norm statistics)."""
    init, update = optimizer
    params = {k: jnp.asarray(v) for k, v in common.arrays(shapes).items()}
    state = (params, init(params), extra)
    batches = [tuple(jnp.asarray(a, jnp.int32 if a.dtype == np.int64 else None) for a in b) for b in batches]

    @functools.partial(jax.jit, donate_argnums=0)
    def step(state, *batch):
        params, opt, extra = state
        if extra is None:
            loss, grads = jax.value_and_grad(loss_fn)(params, *batch)
        else:
            (loss, extra), grads = jax.value_and_grad(loss_fn, has_aux=True)(params, extra, *batch)
        if clip_at:
            grads = clip(grads, clip_at)
        params, opt = update(params, grads, opt)
        return (params, opt, extra), loss

    i = -1

    def one():
        nonlocal state, i
        i += 1
        state, loss = step(state, *batches[i % len(batches)])
        return loss

    return Job(one, sync=lambda r: jax.block_until_ready(state))


# ------------------------------------------------------------ models


def w1():
    f = jax.jit(
        jax.value_and_grad(lambda a, b, c, d: w1_scalar.expression(a, b, c, d, jax.nn.relu), argnums=(0, 1, 2, 3))
    )
    leaves = [jnp.float32(v) for v in w1_scalar.LEAVES]

    def step():
        y, g = f(*leaves)
        return y, g[0]

    return Job(step, jax.block_until_ready, lambda r: float(r[0] + r[1]))


def mlp(params, x, n):
    for i in range(0, 2 * n, 2):
        x = x @ params[f"{i}.weight"].T + params[f"{i}.bias"]
        if i < 2 * n - 2:
            x = jax.nn.relu(x)
    return x


def mlp_shapes(sizes):
    shapes = {}
    for k, (i, o) in enumerate(zip(sizes, sizes[1:])):
        shapes[f"{2 * k}.weight"], shapes[f"{2 * k}.bias"] = (o, i), (o,)
    return shapes


def w2():
    def loss(p, x, y):
        return jax.nn.relu(1 - y * mlp(p, x, 3)).mean()

    return training(loss, mlp_shapes((2, 16, 16, 1)), sgd(0.05), [common.moons()])


def w3(sizes=(784, 128, 64, 10), batch=64):
    def loss(p, x, y):
        return cross_entropy(mlp(p, x, 3), y)

    return training(loss, mlp_shapes(sizes), adam(1e-3), common.classes(batch, (784,)))


def w3b():
    return w3((784, 1024, 1024, 10), 1024)


def conv(x, w, stride=1, pad=0):
    return lax.conv_general_dilated(
        x, w, (stride, stride), [(pad, pad)] * 2, dimension_numbers=("NCHW", "OIHW", "NCHW")
    )


def max_pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")


LENET = {
    "0.weight": (6, 1, 5, 5),
    "0.bias": (6,),
    "3.weight": (16, 6, 5, 5),
    "3.bias": (16,),
    "7.weight": (120, 256),
    "7.bias": (120,),
    "9.weight": (84, 120),
    "9.bias": (84,),
    "11.weight": (10, 84),
    "11.bias": (10,),
}


def lenet(p, x):
    x = max_pool(jax.nn.relu(conv(x, p["0.weight"]) + p["0.bias"][:, None, None]))
    x = max_pool(jax.nn.relu(conv(x, p["3.weight"]) + p["3.bias"][:, None, None]))
    x = x.reshape(x.shape[0], -1)
    x = jax.nn.relu(x @ p["7.weight"].T + p["7.bias"])
    x = jax.nn.relu(x @ p["9.weight"].T + p["9.bias"])
    return x @ p["11.weight"].T + p["11.bias"]


def w4():
    return training(
        lambda p, x, y: cross_entropy(lenet(p, x), y), LENET, sgd(0.01, 0.9), common.classes(64, (1, 28, 28))
    )


def resnet_shapes():
    s = {"stem.weight": (32, 3, 3, 3), "bn.weight": (32,), "bn.bias": (32,)}
    for name, i, o, skip in (("b1", 32, 32, False), ("b2", 32, 64, True), ("b3", 64, 64, False)):
        s[f"{name}.conv1.weight"], s[f"{name}.conv2.weight"] = (o, i, 3, 3), (o, o, 3, 3)
        for bn in ("bn1", "bn2"):
            s[f"{name}.{bn}.weight"], s[f"{name}.{bn}.bias"] = (o,), (o,)
        if skip:
            s[f"{name}.skip.weight"] = (o, i, 1, 1)
    return s | {"fc.weight": (10, 64), "fc.bias": (10,)}


def w4b():
    shapes = resnet_shapes()
    stats = {k[:-7]: (jnp.zeros(v), jnp.ones(v)) for k, v in shapes.items() if "bn" in k and k.endswith("weight")}

    def forward(p, stats, x):
        new = {}

        def bn(name, x):
            mean = x.mean((0, 2, 3))
            var = ((x - mean[:, None, None]) ** 2).mean((0, 2, 3))
            n = x.size // x.shape[1]
            rm, rv = stats[name]
            new[name] = (0.9 * rm + 0.1 * mean, 0.9 * rv + 0.1 * var * n / (n - 1))
            scale = p[f"{name}.weight"] * lax.rsqrt(var + 1e-5)
            return (x - mean[:, None, None]) * scale[:, None, None] + p[f"{name}.bias"][:, None, None]

        def block(name, x, stride):
            h = jax.nn.relu(bn(f"{name}.bn1", conv(x, p[f"{name}.conv1.weight"], stride, 1)))
            h = bn(f"{name}.bn2", conv(h, p[f"{name}.conv2.weight"], 1, 1))
            skip = f"{name}.skip.weight"
            return jax.nn.relu(h + (conv(x, p[skip], stride) if skip in p else x))

        x = jax.nn.relu(bn("bn", conv(x, p["stem.weight"], 1, 1)))
        x = block("b3", block("b2", block("b1", x, 1), 2), 1)
        return x.mean((2, 3)) @ p["fc.weight"].T + p["fc.bias"], lax.stop_gradient(new)

    def loss(p, stats, x, y):
        logits, stats = forward(p, stats, x)
        return cross_entropy(logits, y), stats

    return training(loss, shapes, sgd(0.05, 0.9), common.classes(32, (3, 32, 32)), extra=stats)


def gpt_shapes():
    c = w5_gpt.WIDTH
    s = {"wte.weight": (w5_gpt.VOCAB, c), "wpe.weight": (w5_gpt.CONTEXT, c)}
    for i in range(w5_gpt.LAYERS):
        b = f"blocks.{i}."
        s |= {
            b + "ln1.weight": (c,),
            b + "attn.qkv.weight": (3 * c, c),
            b + "attn.proj.weight": (c, c),
            b + "ln2.weight": (c,),
            b + "mlp.fc.weight": (4 * c, c),
            b + "mlp.proj.weight": (c, 4 * c),
        }
    return s | {"ln_f.weight": (c,)}


def layer_norm(x, w):
    mean = x.mean(-1, keepdims=True)
    var = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(var + 1e-5) * w


def gpt(p, idx):
    b, t = idx.shape
    heads, c = w5_gpt.HEADS, w5_gpt.WIDTH
    x = p["wte.weight"][idx] + p["wpe.weight"][:t]
    mask = jnp.tril(jnp.ones((t, t), bool))
    for i in range(w5_gpt.LAYERS):
        n = f"blocks.{i}."
        q, k, v = jnp.split(layer_norm(x, p[n + "ln1.weight"]) @ p[n + "attn.qkv.weight"].T, 3, -1)
        q, k, v = (z.reshape(b, t, heads, c // heads).transpose(0, 2, 1, 3) for z in (q, k, v))
        s = q @ k.swapaxes(-1, -2) / np.sqrt(c // heads).astype(np.float32)
        a = jax.nn.softmax(jnp.where(mask, s, -jnp.inf), -1) @ v
        x = x + a.transpose(0, 2, 1, 3).reshape(b, t, c) @ p[n + "attn.proj.weight"].T
        h = jax.nn.gelu(layer_norm(x, p[n + "ln2.weight"]) @ p[n + "mlp.fc.weight"].T, approximate=False)
        x = x + h @ p[n + "mlp.proj.weight"].T
    return layer_norm(x, p["ln_f.weight"]) @ p["wte.weight"].T


def w5():
    def loss(p, x, y):
        return cross_entropy(gpt(p, x).reshape(-1, w5_gpt.VOCAB), y.reshape(-1))

    optimizer = adam(1e-3, 0.9, 0.99, decay=lambda p: 0.1 if p.ndim >= 2 else 0.0)
    return training(loss, gpt_shapes(), optimizer, common.chars(w5_gpt.BATCH, w5_gpt.CONTEXT), clip_at=1.0)


def w5b():
    p = {k: jnp.asarray(v) for k, v in common.arrays(gpt_shapes()).items()}
    size = w5_gpt.CONTEXT

    @functools.partial(jax.jit, donate_argnums=1)
    def next_token(p, window, n):
        """window: the last tokens, left-aligned in a fixed buffer of `size`; n: how many are valid."""
        logits = gpt(p, window)[0, n - 1] / 0.8
        token = jnp.argmax(jax.nn.softmax(logits)).astype(jnp.int32)
        full = n == size
        window = jnp.where(full, jnp.roll(window, -1, 1), window)
        n = jnp.where(full, n, n + 1)
        return window.at[0, n - 1].set(token), n, token

    def step():
        window, n, tokens = jnp.zeros((1, size), jnp.int32), jnp.int32(1), [0]
        for _ in range(w5b_generate.TOKENS):
            window, n, token = next_token(p, window, n)
            tokens.append(token)
        return tokens

    return Job(step, jax.block_until_ready, lambda r: sum(int(t) for t in r) / len(r))


def w6():
    h = w6_lstm.HIDDEN
    shapes = {
        "embed.weight": (w6_lstm.VOCAB, h),
        "lstm.weight_ih_l0": (4 * h, h),
        "lstm.weight_hh_l0": (4 * h, h),
        "lstm.bias_ih_l0": (4 * h,),
        "lstm.bias_hh_l0": (4 * h,),
        "head.weight": (w6_lstm.VOCAB, h),
        "head.bias": (w6_lstm.VOCAB,),
    }

    def loss(p, x, y):
        x = p["embed.weight"][x]
        gates_x = x @ p["lstm.weight_ih_l0"].T + (p["lstm.bias_ih_l0"] + p["lstm.bias_hh_l0"])
        w = p["lstm.weight_hh_l0"].T

        def cell(carry, gx):
            hid, c = carry
            i, f, g, o = jnp.split(gx + hid @ w, 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            hid = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (hid, c), hid

        zero = jnp.zeros((x.shape[0], h))
        _, hs = lax.scan(cell, (zero, zero), gates_x.swapaxes(0, 1))
        logits = hs.swapaxes(0, 1) @ p["head.weight"].T + p["head.bias"]
        return cross_entropy(logits.reshape(-1, w6_lstm.VOCAB), y.reshape(-1))

    return training(loss, shapes, adam(2e-3), common.chars(w6_lstm.BATCH, w6_lstm.LENGTH), clip_at=0.25)


def w7():
    x = jnp.asarray(w7_elementwise.data())
    f = jax.jit(jax.value_and_grad(lambda x: (x * jax.nn.sigmoid(1.702 * x) + jnp.tanh(x) * jnp.exp(-x * x)).sum()))
    return Job(lambda: f(x), jax.block_until_ready, lambda r: float(r[0]) / w7_elementwise.SIZE)


def w8():
    x, t, gamma, beta = (jnp.asarray(a) for a in w8_reductions.data())

    def loss(x, t, gamma, beta):
        h = layer_norm(x, gamma) + beta
        return (
            (jax.nn.softmax(h, -1) * t).sum() / x.shape[0]
            + jax.nn.logsumexp(x, 1).mean()
            + jnp.var(x, axis=0, ddof=1).mean()
        )

    f = jax.jit(jax.value_and_grad(loss, argnums=(0, 2, 3)))
    return Job(lambda: f(x, t, gamma, beta), jax.block_until_ready, lambda r: float(r[0]))


def binary_cross_entropy(z, y):
    return (jax.nn.softplus(z) - y * z).mean()


def w9():
    x, y = (jnp.asarray(a) for a in common.logistic())

    @jax.jit
    def update(p, x, y):
        loss, (gw, gb) = jax.value_and_grad(lambda p: binary_cross_entropy(x @ p[0] + p[1], y))(p)
        return (p[0] - 0.1 * gw, p[1] - 0.1 * gb), loss

    p = (jnp.zeros(10), jnp.zeros(1))

    def step():
        nonlocal p
        p, loss = update(p, x, y)
        return loss

    return Job(step, lambda r: jax.block_until_ready(p))


def w9b():
    from scipy.optimize import minimize

    x, y = (jnp.asarray(a) for a in common.logistic())

    @jax.jit
    def f(w):
        return jax.value_and_grad(
            lambda w: binary_cross_entropy(x @ w[:10] + w[10], y) + w9b_lbfgs.PENALTY * (w * w).sum()
        )(w)

    def step():
        return minimize(
            lambda w: tuple(np.asarray(a, np.float64) for a in f(w.astype(np.float32))),
            np.zeros(11),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": w9b_lbfgs.ITERATIONS},
        ).fun

    return Job(step)


def w10():
    x = jnp.asarray(w10_hessian.point())
    f = jax.jit(jax.jacfwd(jax.jacrev(w10_hessian.rosenbrock)))
    return Job(lambda: f(x), jax.block_until_ready, lambda h: float(jnp.abs(h).sum()) / 1e5)


WORKLOADS = {
    "W1": w1,
    "W2": w2,
    "W3": w3,
    "W3b": w3b,
    "W4": w4,
    "W4b": w4b,
    "W5": w5,
    "W5b": w5b,
    "W6": w6,
    "W7": w7,
    "W8": w8,
    "W9": w9,
    "W9b": w9b,
    "W10": w10,
    "W10b": w10,
}


def classifier(cnn):
    """The cold-start workloads W12 and W12b."""
    model = lenet if cnn else lambda p, x: mlp(p, x, 3)
    params = {k: jnp.asarray(v) for k, v in common.arrays(LENET if cnn else mlp_shapes((784, 128, 64, 10))).items()}
    init, update = adam(1e-3)
    state = params, init(params)

    @functools.partial(jax.jit, donate_argnums=0)
    def train(state, x, y):
        params, opt = state
        grads = jax.grad(lambda p: cross_entropy(model(p, x), y))(params)
        return update(params, grads, opt)

    predict = jax.jit(lambda p, x: model(p, x).argmax(1))

    def step(x, y):
        nonlocal state
        state = train(state, x, y.astype(np.int32))

    return step, lambda x: np.asarray(predict(state[0], x))
