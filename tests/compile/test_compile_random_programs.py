"""Random programs, compiled: ops, shapes, views, writes in place, random numbers, gradients; eager's numbers each time.

A program is a list of moves on a pool of tensors; a move that eager refuses is left out.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import rushlight as torch
from rushlight.compile import compile, programs
from rushlight.nn import functional as F

CALLS = 4  # two watched, two by the program
POOL = 6

UNARY = {
    "exp": lambda x: (x * 0.3).exp(),
    "tanh": lambda x: x.tanh(),
    "relu": lambda x: x.relu(),
    "neg": lambda x: -x,
    "gelu": F.gelu,
    "sigmoid": lambda x: x.sigmoid(),
    "abs": lambda x: x.abs() + 0.5,
    "square": lambda x: x * x,
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(0),
    "sum": lambda x: x.sum(-1),
    "mean": lambda x: x.mean(0, keepdim=True),
    "total": lambda x: x.sum(),
    "amax": lambda x: x.amax(-1, keepdim=True),
    "norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "var": lambda x: x.var(-1, correction=0, keepdim=True),
    "t": lambda x: x.mT,
    "flat": lambda x: x.reshape(-1),
    "rows": lambda x: x.reshape(x.shape[0], -1),
    "first": lambda x: x[0],
    "step": lambda x: x[..., ::2],
    "split": lambda x: x.chunk(2, -1)[1],
    "flip": lambda x: x.flip(0),
    "cumsum": lambda x: x.cumsum(-1),
    "detach": lambda x: x.detach(),
    "clone": lambda x: x.clone(),
    "unsqueeze": lambda x: x.unsqueeze(0),
    "squeeze": lambda x: x.squeeze(),
    "half": lambda x: x.double().float(),
    "dropout": lambda x: F.dropout(x, 0.4),
    "where": lambda x: torch.where(x > 0.1, x, 0.2 * x),
    "gated": lambda x: x.chunk(2, -1)[0] * x.chunk(2, -1)[1].tanh(),
    "halves": lambda x: x[..., ::2] * x[..., 1::2].cos(),
    "apart": lambda x: torch.stack(x.unbind(-1)).exp().mT,
    "column": lambda x: x[..., 1:2] * x.mT[1:2].mT.sigmoid(),
    "sorted": lambda x: x.sort(-1)[0],
    "index": lambda x: x[torch.tensor([0, -1])],
    "roll": lambda x: x.roll(1, -1),
}
BINARY = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - 2 * y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / (y * y + 1),
    "mm": lambda x, y: x @ y,
    "linear": lambda x, y: F.linear(x, y),
    "maximum": torch.maximum,
    "cat": lambda x, y: torch.cat((x, y), -1),
    "pow": lambda x, y: (x.abs() + 1) ** y.tanh(),
    "outer": lambda x, y: x.reshape(-1)[:3].unsqueeze(1) * y.reshape(-1)[:4],
}
WRITES = {
    "add_": lambda x, y: x.add_(y),
    "mul_": lambda x, y: x.mul_(y.tanh()),
    "copy_": lambda x, y: x.copy_(y),
    "first_": lambda x, y: x[0].add_(y.sum()),
    "column_": lambda x, y: x.select(-1, 0).mul_(2),
    "zero_": lambda x, y: x.zero_(),
    "set": lambda x, y: x.__setitem__((..., slice(1, 3)), y.mean()),
    "flat_": lambda x, y: x.view(-1)[1:].sub_(0.5),
    "masked": lambda x, y: x.__setitem__(x > 1, 0.3),
    "turned_": lambda x, y: x.mT.mul_(y.mean()),
}
MOVES = {**UNARY, **BINARY, **WRITES}
MOVE = st.tuples(st.sampled_from(sorted(MOVES)), st.integers(0, POOL - 1), st.integers(0, POOL - 1))
SHAPES = st.sampled_from(
    [((3, 4), (4, 4)), ((2, 3, 4), (4,)), ((4,), (3, 1)), ((5, 2), (2, 6)), ((1, 70), (70,)), ((2, 2), ())]
)


def run(moves, x, w):
    """The pool after all moves; what cannot be done is left out, with the same verdict each time."""
    pool = [x, w, x * 1, w + 0, x.sum() * 0.1, torch.ones(3, 4)]
    for k, (name, i, j) in enumerate(moves):
        a, b = pool[i % len(pool)], pool[j % len(pool)]
        try:
            if name in WRITES:
                WRITES[name](a, b)
                continue
            made = UNARY[name](a) if name in UNARY else BINARY[name](a, b)
        except (RuntimeError, IndexError, ValueError):
            continue
        if made._array.size and made._array.size < 2000:
            pool[k % POOL] = made
    return pool


def step(moves):
    def f(x, w):
        w.grad = None
        pool = run(moves, x.clone(), w)
        loss = sum(p.tanh().mean() for p in pool if p.dtype.is_floating_point)
        if loss.requires_grad:
            loss.backward()
        return [p.detach().clone() for p in pool], loss.detach()

    return f


def numbers(tensors, w):
    return (
        [t.detach().numpy() for t in tensors[0]] + [tensors[1].numpy()] + ([] if w.grad is None else [w.grad.numpy()])
    )


@pytest.mark.exhaustive(every=2)
@pytest.mark.parametrize("backend", ["numpy", "loops"])
def test_random_programs(backend):
    if backend == "loops":
        pytest.importorskip("llvmlite")

    @settings(
        max_examples=60 if backend == "numpy" else 8,
        deadline=None,
        derandomize=True,
        phases=(Phase.explicit, Phase.generate),  # to find a smaller one takes minutes: loops are compiled
        suppress_health_check=list(HealthCheck),
    )
    @given(SHAPES, st.lists(MOVE, min_size=1, max_size=14))
    def check(shapes, moves):
        agree(backend, shapes, moves)

    check()


def agree(backend, shapes, moves):
    f, rng = step(moves), np.random.default_rng(0)
    g = compile(f, backend=backend)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i in range(CALLS):
            x, w = (rng.standard_normal(s).astype(np.float32) for s in shapes)
            got, want = [], []
            for h, into in ((f, want), (g, got)):
                torch.manual_seed(i)
                a, b = torch.tensor(x), torch.tensor(w, requires_grad=True)
                try:
                    into += numbers(h(a, b), b)
                except RuntimeError as error:  # backward after a write: eager's error is the program's
                    into.append(np.array(str(error).split("\n")[0]))
            assert len(got) == len(want)
            for p, q in zip(got, want):
                if p.dtype.kind == "U":
                    assert p == q
                    continue
                assert p.dtype == q.dtype
                np.testing.assert_allclose(
                    p, q, rtol=2e-4, atol=2e-4 * max(1, np.abs(q[np.isfinite(q)]).max(initial=0))
                )
    assert not g.given_up.startswith(("gave", "meets")), g.given_up
    return programs(g)


def test_most_random_programs_compile():
    """Falling back is safe, but not what the compiler is for."""
    rng = np.random.default_rng(1)
    names = sorted(MOVES.keys() - {"sorted", "masked"})
    made = 0
    for _ in range(20):
        moves = [(names[rng.integers(len(names))], int(rng.integers(POOL)), int(rng.integers(POOL))) for _ in range(8)]
        made += bool(agree("numpy", ((3, 4), (4, 4)), moves))
    assert made >= 14


@pytest.mark.parametrize(
    ("shapes", "moves"),
    [
        # a view that a loop writes down in memory of its own, read after its origin is no longer needed
        (((3, 4), (4, 4)), [("flat", 3, 1), ("cat", 1, 5), ("step", 0, 1), ("outer", 4, 2)]),
        # a total that is spread over the loop that makes it
        (((1, 70), (70,)), [("relu", 2, 5), ("mean", 1, 5)]),
        # 1 - tanh(x)^2 at 4.25: what is left of the last places of tanh
        (((1, 70), (70,)), [("mean", 3, 4), ("total", 3, 3), ("masked", 0, 1)]),
        # a total in a loop whose rows are known only then
        (((3, 4), (4, 4)), [("log_softmax", 0, 0)]),
        # what is spread from a number of its row, in the second loop over the columns
        (
            ((5, 2), (2, 6)),
            [
                ("sum", 4, 0),
                ("unsqueeze", 1, 1),
                ("div", 1, 3),
                ("softmax", 2, 4),
                ("half", 5, 4),
                ("sum", 3, 3),
                ("neg", 1, 0),
                ("linear", 0, 5),
                ("copy_", 0, 1),
                ("half", 5, 4),
                ("exp", 3, 2),
                ("half", 3, 5),
                ("sigmoid", 5, 4),
                ("first", 5, 4),
            ],
        ),
        # constants inside a list of indices
        (((3, 4), (4, 4)), [("mul", 0, 0), ("index", 5, 3), ("div", 3, 3), ("index", 5, 3), ("first_", 3, 5)]),
        # dropout of what lies transposed in memory
        (
            ((4,), (3, 1)),
            [("t", 5, 2), ("t", 5, 2), ("cumsum", 2, 3), ("dropout", 1, 1), ("dropout", 0, 2), ("dropout", 2, 4)],
        ),
        # views of a product that a loop of the same part makes, which another loop wants in order
        (((3, 4), (4, 4)), [("mm", 0, 1), ("gated", 0, 0), ("mm", 0, 1), ("halves", 2, 0), ("tanh", 1, 0)]),
        # parts of what was computed several times, and is then computed once
        (((5, 2), (2, 6)), [("outer", 5, 1), ("outer", 5, 1), ("unsqueeze", 0, 3), ("split", 1, 1), ("outer", 5, 1)]),
    ],
)
def test_programs_that_were_wrong_once(shapes, moves):
    pytest.importorskip("llvmlite")
    assert agree("loops", shapes, moves)
