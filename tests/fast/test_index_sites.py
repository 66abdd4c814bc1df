"""Every faster way of a kernel (fast/index.py:SITES) against the reference kernel, each with its example."""

from __future__ import annotations

from importlib import import_module
from inspect import unwrap

import numpy as np
import pytest

from rushlight.base.dependencies import has_llvmlite
from rushlight.fast import equations, policy
from rushlight.fast.index import SITES
from rushlight.kernels.conv import plan
from rushlight.kernels.int8 import Int8Weight
from rushlight.kernels.pool import adaptive_pairs
from rushlight.loops import tiering

ONES, ZEROS = (1, 1), (0, 0)


def normal(*shape, dtype=np.float32):
    return np.random.default_rng(shape).standard_normal(shape).astype(dtype)


def below(n, *shape):
    return np.random.default_rng(shape).integers(0, n, shape)


def definite(batch, n):
    """Positive definite matrices, whose eigenvalues are 10 to 14."""
    x = normal(batch, n, n)
    return x @ x.mT / n + 10 * np.eye(n, dtype=np.float32)


def convolution(op):
    """A plan of 16 to 32 channels, and its operands."""
    x, w, g = normal(4, 16, 12, 12), normal(32, 16, 3, 3), normal(4, 32, 10, 10)
    p = plan(op, x.dtype, x.dtype, x.shape, w.shape, ONES, ZEROS, ONES, 1)
    return (p, *{"conv": (x, w), "conv_input_grad": (g, w), "conv_weight_grad": (g, x)}[op])


def layer(cell, back=False):
    """The tensors of a recurrent layer of 5 steps, 6 sequences and 20 states."""
    gates = {"lstm": 4, "gru": 3, "rnn": 1}[cell]
    states = [normal(6, 20) for _ in range(2 if cell == "lstm" else 1)]
    tensors = [normal(5, 6, gates * 20), *states, normal(gates * 20, 20) / 5, normal(gates * 20)]
    settings = (*[False] * (cell == "rnn"), None, False)
    if back:
        out, *_, saved = kernel_of(f"recurrent.{cell}")(tensors, *settings)
        kept = [out] if cell == "rnn" else [out, saved]
        tensors = [*tensors, *kept, normal(5, 6, 20), *[normal(*h.shape) for h in states]]
    return tensors, *settings


def heads(back=False):
    q, k, v = (normal(2, 3, 40, 16) for _ in range(3))
    out, lse = np.zeros_like(q), np.zeros((2, 3, 40), np.float32)
    if not back:
        return q, k, v, None, out, lse, True, 0.25
    kernel_of("attention.attend")(q, k, v, None, out, lse, True, 0.25)
    return q, k, v, None, out, lse, normal(2, 3, 40, 16), *map(np.zeros_like, (q, k, v)), True, 0.25


def taps():
    """Weights and places of 4 taps for 50 points in 2 images of 100 elements."""
    return normal(2, 4, 50), below(100, 2, 4, 50)


def int8_weight():
    """A weight (130, 70) with a scale for each output, and a bias."""
    values = (below(256, 130, 70) - 128).astype(np.int8)
    return Int8Weight(values, normal(130) / 100, None, normal(130))


WINDOWS = (2, 2), (2, 2), (0, 0), (1, 1)  # kernel, stride, padding, dilation
EXAMPLES = {
    "grid_sample.moved": lambda: (normal(2, 5000, 2), np.array([3, 4], np.float32)),
    "rare_functions.crossed": lambda: (normal(5000, 3), normal(5000, 3), 0),
    "grid_sample.sampled": lambda: (normal(2, 3, 100), *taps()),
    "grid_sample.sampled_back": lambda: (normal(2, 3, 50), *taps(), 100),
    "grid_sample.sampled_slope": lambda: (normal(2, 3, 50), normal(2, 3, 100), taps()[1]),
    "norms.euclidean": lambda: (normal(70, 100), normal(80, 100)),
    "float16.converted": lambda: (normal(1000), np.dtype(np.float16)),
    "summation.add_to": lambda: (normal(600, dtype=np.float16), normal(600, dtype=np.float16)),
    "attention.attend": heads,
    "attention.attend_back": lambda: heads(back=True),
    "elementwise.of_angle": lambda: (normal(700, dtype=np.float64), np.sin, None),
    "elementwise.divided": lambda: (normal(1 << 16), np.array(0.75, np.float32), np.remainder),
    "elementwise.add_multiple": lambda: (normal(90, 100), normal(90, 100), 0.3),
    "index.gathered_many": lambda: (normal(90, 80), below(90, 50, 80), 0),
    "index.placed_many": lambda: (normal(90, 80), below(80, 90, 50), normal(90, 50), 1),
    "index.taken": lambda: (normal(90, 80), below(80, 100), 1),
    "shape.flip": lambda: (normal(90, 80), (1,)),
    "ufunc_at.each_at": lambda: (normal(50, 8), below(50, 90, 8), normal(90, 8), 0, "sum"),
    "index.rows_summed": lambda: (normal(50, 8), below(50, 90), below(40, 90), 40),
    "ufunc_at.slices_at": lambda: (normal(50, 8), below(50, 90), normal(90, 8), 0, "sum"),
    **{f"conv.{op}_of_plan": lambda op=op: convolution(op) for op in ("conv", "conv_input_grad", "conv_weight_grad")},
    "conv.conv_bias_grad": lambda: (normal(16, 8, 16, 16),),
    **{
        f"recurrent.{cell}{back}": lambda cell=cell, back=back: layer(cell, bool(back))
        for cell in ("lstm", "gru", "rnn")
        for back in ("", "_back")
    },
    "solving.solution": lambda: (definite(2, 130), normal(2, 130, 7)),
    "solving.linalg_inv_ex": lambda: (definite(2, 130),),
    "solving.linalg_det": lambda: (definite(2, 130) / 13,),
    "factorizations.linalg_cholesky_ex": lambda: (definite(2, 130),),
    "matmul.large": lambda: (normal(100, 80), normal(90, 80).T, normal(90)),
    "matmul.few_rows": lambda: (normal(8, 70), normal(200, 70).T),
    "pad_modes.bordered": lambda: (normal(2, 3, 5, 6), "reflect", ((0, 0), (0, 0), (1, 2), (4, 0))),
    "pool.max_values": lambda: (normal(2, 3, 8, 8), *WINDOWS, False),
    "pool.best_of_windows": lambda: (normal(6, 8, 8), *WINDOWS, (4, 4)),
    "pool.best_of_parts": lambda: (normal(6, 7, 8), (3, 3)),
    "pool.best_of_taps": lambda: (normal(6, 40, 40), *WINDOWS, (20, 20)),
    "pool.scattered": lambda: (normal(2, 3, 300), below(100, 2, 3, 300), (10, 10)),
    "pool.window_sums": lambda: (normal(2, 3, 7, 8), (3, 3), adaptive_pairs, (7, 8), (3, 3)),
    "pool.window_spread": lambda: (normal(2, 3, 3, 3), (7, 8), adaptive_pairs, (7, 8), (3, 3)),
    "pool.means_of_rows": lambda: (normal(6, 50),),
    "index.gathered": lambda: (normal(3, 5, 4), below(5, 3, 7, 4), 1),
    "index.placed": lambda: (normal(3, 5, 4), below(5, 3, 2, 4), normal(3, 2, 4), 1),
    "index.added": lambda: (normal(3, 5, 4), below(5, 3, 7, 4), normal(3, 7, 4), 1),
    "reduce.ordered": lambda: (np.round(normal(3, 5, 4)), 1, True),
    "sorting.most_frequent": lambda: (np.round(normal(3, 5, 4)), 1),
    "resize.mixed": lambda: (normal(2, 3, 8, 8), 2, ("linear", 8, 16, 0.5, False), False),
    "int8.linear_by_tensor": lambda: (normal(5, 70), int8_weight(), 127),
    "int8.linear_by_rows": lambda: (normal(5, 70), int8_weight(), True),
    "int8.linear_of_floats": lambda: (normal(5, 70), int8_weight()),
}


def test_every_way_has_an_example():
    assert EXAMPLES.keys() == SITES.keys()


def kernel_of(name):
    """The reference kernel, without its way."""
    module, function = name.split(".")
    home = "ops.nn" if function == "conv_bias_grad" else "kernels"
    return unwrap(getattr(import_module(f"rushlight.{home}.{module}"), function))


def arrays(results):
    """The arrays in a result, or in arguments; others are left out."""
    for a in results if isinstance(results, (tuple, list)) else [results]:
        if isinstance(a, (tuple, list)):
            yield from arrays(a)
        elif isinstance(a, np.ndarray):
            yield a


@pytest.mark.skipif(not has_llvmlite(), reason="without llvmlite there are no loops")
@pytest.mark.faster
@pytest.mark.parametrize("name", SITES)
def test_a_way_gives_what_the_reference_gives(name, monkeypatch):
    """Results, and what is written into arguments."""
    for account in (policy.small_arrays, policy.large_arrays, policy.products):
        monkeypatch.setattr(account, "left", 0.0)
    monkeypatch.setattr(tiering.Loop, "pay", lambda loop, elements: loop.build())
    monkeypatch.setattr(equations, "SCIPY_SECONDS", 0.0)
    way = getattr(import_module(SITES[name].module), name.split(".")[1])
    given = EXAMPLES[name]()
    assert next(arrays(given)).size >= SITES[name].elements
    way(*EXAMPLES[name]())  # loops that give the same bits are compiled by what they cost before
    found = way(*given)
    assert found is not None, "the way leaves its own example to NumPy"
    reference = EXAMPLES[name]()
    expected = kernel_of(name)(*reference)
    made = list(arrays(given)) if found is True else list(arrays(found))
    wanted = list(arrays(reference)) if found is True else list(arrays(expected))
    assert made
    for one, other in zip(made, wanted, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5)
