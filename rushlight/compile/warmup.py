"""Compile in advance the loops that eager ops compile on first use: `rushlight warmup`.

The loops of frequent ops on large arrays (fast/elementwise.py, fast/softmax_norm.py), of recurrent layers
(fast/recurrent_loops.py), of convolution (fast/conv), of attention (fast/attention_loops.py), of matrix products
(fast/matmul_loops.py), of optimizers, and of random numbers, in float32. They are kept in the cache folder
(loops/cache.py), so each version of rushlight, llvmlite and Python needs it once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from itertools import chain
from time import perf_counter
from typing import Any

import numpy as np

from rushlight import optim
from rushlight.core.table import TABLE, Op, parameters
from rushlight.creation.factories import tensor
from rushlight.fast import attention as attention_way
from rushlight.fast import pool_loops, recurrent_loops, reductions, resize_loops, scatter_loops, softmax_norm
from rushlight.fast.conv import batch_innermost, direct, indirect, winograd
from rushlight.fast.conv.batch_innermost_loops import tiles
from rushlight.fast.conv.tiling import lanes
from rushlight.fast.elementwise import loop_of
from rushlight.fast.matmul_loops import product
from rushlight.kernels.conv import plan
from rushlight.loops.cache import wait
from rushlight.loops.llvm import binding

TEXT = """
    relu leaky_relu elu gelu gelu_tanh silu sigmoid softplus mish log_sigmoid hardtanh hardswish hardsigmoid tanh
    exp log log1p sqrt rsqrt square abs erf pow maximum minimum clamp_min clamp_max where masked mul div sub
    mse_loss huber_loss smooth_l1_loss binary_cross_entropy_with_logits"""
FREQUENT = TEXT.split()  # ops whose loops are compiled
OPTIMIZERS: dict[str, list[dict[str, Any]]] = {
    "SGD": [{}, {"momentum": 0.9}, {"momentum": 0.9, "weight_decay": 1e-4}],
    **{name: [{}] for name in ("Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam")},
}
EACH, ONE, CONDITION = ("f4", "each"), ("f4", "one"), ("b1", "each")


def warmup(say: Callable[[str, float], None] | None = None, names: list[str] | None = None) -> int:
    """Compile all loops, or the loops of only those elementwise ops in `names`. Returns the number of loops.
    ImportError without llvmlite.

    `say(name, seconds)` is called after each loop.
    """
    binding()
    wait.told, count = True, 0  # no message about slow compilation: the user started it
    for name, build in chain(
        elementwise(FREQUENT if names is None else names),
        rows(),
        recurrent(),
        convolutions(),
        attention(),
        products(),
        optimizers(),
        random_numbers(),
    ):
        start = perf_counter()
        build()
        if say is not None:
            say(name, perf_counter() - start)
        count += 1
    return count


def elementwise(names: list[str]) -> Iterator[tuple[str, Callable[[], object]]]:
    """The loops of forward and derivatives, also for a gradient of one repeated number, as `sum` and `mean` give it."""
    import_module("rushlight.nn.functional")  # fills the table of ops

    for name in names:
        op = TABLE[name]
        for of, kinds in kinds_of(op):
            loop = loop_of(name, of, kinds)
            if loop is not None:
                yield titled(name, of), loop.build


def titled(name: str, of: str) -> str:
    return f"{name}, derivative by {of}" if of else name


def kinds_of(op: Op) -> Iterator[tuple[str, tuple]]:
    known: dict[str, Any] = {name: CONDITION if name == "condition" else EACH for name in (*op.inputs, "out")}
    known |= {name: ("value", op.defaults.get(name)) for name in op.settings}
    yield "", tuple(known[name] for name in (*op.inputs, *op.settings))
    for of, rule in op.rules.items():
        if rule is not None and all(name in known for name in parameters(rule)[1:]):
            for g in (EACH, ONE):
                yield of, (g, *(known[name] for name in parameters(rule)[1:]))


def rows() -> Iterator[tuple[str, Callable[[], object]]]:
    """The loops over rows, called with small arrays."""
    x, z = np.ones((2, 8), np.float32), np.ones((1, 2, 16), np.float32)
    for module in (softmax_norm, reductions):
        for (name, of), arguments in module.examples().items():
            yield titled(name, of), partial(run_example, module.run, TABLE[name], of, arguments)
    for (name, of), function in softmax_norm.FUNCTIONS.items():
        if function.__name__ == "along_a_dimension":
            yield (f"{name} along another dimension than the last", partial(function, *[z] * (1 + len(of)), 1))
    for name, text, at in (
        ("index_add", scatter_loops.SLICES, (1,)),
        ("scatter_add", scatter_loops.EACH, (1, 1, x.shape[1])),
    ):
        loop = scatter_loops.loop_of(text, "sum", False)
        yield name, partial(loop, x[None].copy(), np.zeros(at, np.int64), x[None, :1])


def run_example(run: Callable, op: Op, of: str, arguments: Callable[[], tuple]) -> None:
    run(op, of, op.kernel, *arguments())


def recurrent() -> Iterator[tuple[str, Callable[[], object]]]:
    """The loops of one step of each kind of cell, forward and backward."""
    for name, cell, gates in (
        ("LSTM", recurrent_loops.LSTM, 4),
        ("GRU", recurrent_loops.GRU, 3),
        ("RNN", recurrent_loops.TANH, 1),
        ("RNN of relus", recurrent_loops.RELU, 1),
    ):
        x, h, weight = np.ones((1, gates), np.float32), np.ones((1, 1), np.float32), np.ones((gates, 1), np.float32)
        yield name, partial(recurrent_loops.build, cell, x, h, weight)


def convolutions() -> Iterator[tuple[str, Callable[[], object]]]:
    """The loops of convolution: direct, with 1 to 8 filters; winograd and indirect, with 16 to 64; batch-innermost; and
    the loops of pooling.
    """
    for filters in (8, 6, 4, 2, 1):
        yield (f"convolution of {filters} filters", convolution(direct, (1, 1, 4, 4), (filters, 1, 3, 3), "conv"))
    for filters in (4, 3, 2, 1):
        run = convolution(direct, (1, 1, 4, 4), (filters, 1, 3, 3), "conv_weight_grad")
        yield f"convolution, gradient of {filters} filters", run
    for many in (16, 32, 48, 64):
        for name, way in (("winograd", winograd), ("indirect", indirect)):
            run = convolution(way, (1, many, 4, 4), (many, many, 3, 3), "conv", "conv_weight_grad")
            yield f"{name} convolution of {many} filters", run
    for height, width in tiles():
        shapes = (lanes(), 1, 1, width + 1), (height, 1, 1, width)
        run = convolution(batch_innermost, *shapes, "conv", "conv_weight_grad")
        yield f"convolution with the batch innermost, {height} filters", run
    for how in (((), ()), *pool_loops.FREQUENT):
        yield f"max_pool {how[0]}", pool_loops.maxima(*how).build
    yield "max_pool, derivative", pool_loops.scatter().build
    for flat in (True, False):
        yield "resizing, " + ("of rows" if flat else "of columns"), resize_loops.loop_of(flat).build


def convolution(way: Any, x_shape: tuple, w_shape: tuple, *ops: str) -> Callable[[], object]:
    """A function that runs ops of a way of convolution, for shapes (N, C, H, W) and (O, C, kh, kw), padding 0 or 1."""

    def run() -> None:
        for op in ops:
            x, w = np.ones(x_shape, np.float32), np.ones(w_shape, np.float32)
            padding = (0, 0) if 1 in w_shape[2:] else (1, 1)
            p = plan(op, x.dtype, w.dtype, x_shape, w_shape, (1, 1), padding, (1, 1), 1)
            g = np.ones((p.images, p.filters, *p.out), np.float32)
            getattr(way, op)(p, *((x, w) if op == "conv" else (g, x)))

    return run


def attention() -> Iterator[tuple[str, Callable[[], object]]]:
    """The loops of attention, forward and backward."""
    x, lse = np.ones((1, 1, 8, 8), np.float32), np.ones((1, 1, 8), np.float32)
    for name, more in (("forward", ()), ("back", (x, *np.empty((3, *x.shape), np.float32)))):
        arrays = (x, x, x, None, np.empty_like(x), lse, *more)
        yield f"attention, {name}", partial(attention_way.run, name, arrays, True, 1.0)


def products() -> Iterator[tuple[str, Callable[[], object]]]:
    """The loop for products of matrices."""
    x = np.ones((32, 32), np.float32)
    yield "products of matrices", lambda: product(x, x, np.empty_like(x))


def optimizers() -> Iterator[tuple[str, Callable[[], object]]]:
    """The loops of optimizers with their default settings, and with other common settings."""
    for name, many in OPTIMIZERS.items():
        for settings in many:
            p = tensor([1.0], requires_grad=True)
            p.grad = tensor([1.0])
            optimizer = getattr(optim, name)([p], **settings)
            yield (f"{name}({', '.join(f'{k}={v}' for k, v in settings.items())})", optimizer._loop(p).build)


def random_numbers() -> Iterator[tuple[str, Callable[[], object]]]:
    """The loops used by `rand`, `randn`, initial values and dropout."""
    from rushlight.random import loops  # needs llvmlite

    words, out, one = np.zeros(624, np.uint32), np.empty(64, np.float32), np.float32(1)
    yield "random words", lambda: loops.words(words.copy(), words)
    yield "uniform numbers", lambda: loops.uniforms(words[:64], out, one, one)
    yield "normal numbers", lambda: loops.normals(words[:64], out, one, one)
    yield "dropout's zeros and ones", lambda: loops.chances(words[:128], out, np.uint64(1))
