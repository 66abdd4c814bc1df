"""torch's random numbers through rushlight's own functions and modules: each draw, and the state after it, to the
bit."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

import rushlight
import rushlight.nn
import rushlight.nn.functional
import rushlight.utils.data
from tests.support.programs import Programs, skip_other_stream

SEEDS = (0, 42, 2**32 - 1, 2**40 + 7, -7)
program = Programs()


def fingerprint(tensors, state):
    """A hash of the numbers and of the generator's 5056 bytes, and the last numbers for those who look."""
    digest = hashlib.sha256(state.numpy().tobytes())
    arrays = [t.detach().contiguous().numpy() for t in tensors]
    for array in arrays:
        digest.update(f"{array.dtype.name} {array.shape}".encode() + array.tobytes())
    return f"{digest.hexdigest()[:16]} {arrays[-1].ravel()[-2:].tolist()}"


@program
def creation(lib):
    return [
        lib.rand(3, 5),
        lib.randn(50),
        lib.randn(2, 3, dtype=lib.float64),
        lib.randn(50, dtype=lib.complex64),
        lib.randint(0, 10, (2000,)),
        lib.randint(-(2**40), 2**41, (50,)),
        lib.randperm(100),
        lib.randint(5, (3,)),
        lib.rand_like(lib.empty(4)),
        lib.randn_like(lib.empty(20)),
        lib.randint_like(lib.empty(4), 9),
        lib.normal(0.0, 2.0, (17,)),
        lib.normal(lib.full((100,), 0.5), lib.full((100,), 2.0)),
        lib.normal(lib.zeros(5), 3.0),
        lib.rand(5, generator=lib.Generator().manual_seed(3)),
    ]


@program
def in_place(lib):
    x = lib.empty(5, 8)
    return [
        t.clone()
        for t in (
            x.uniform_(-0.3, 0.7),
            x.normal_(0.1, 0.2),
            lib.empty(20, 40).t().normal_(0.1, 0.2),
            x.exponential_(2.5),
            x.cauchy_(1, 3),
            x.geometric_(0.3),
            x.log_normal_(0.3, 0.7),
            x.random_(),
            x.random_(3, 9),
            x.bernoulli_(lib.full((5, 8), 0.3)),
            lib.empty(30, dtype=lib.int64).random_(),
            lib.empty(7).normal_(generator=lib.Generator().manual_seed(1)),
        )
    ]


@program
def in_place_in_the_order_of_memory(lib):
    p = lib.linspace(0, 1, 120)
    last = lib.empty(2, 3, 5, 4, memory_format=lib.channels_last)
    return [
        lib.empty(8, 15).t().bernoulli_(0.3),
        lib.empty(5, 4, 6).permute(2, 0, 1).bernoulli_(0.6),
        lib.empty(9, 8)[:, ::2].t().bernoulli_(0.4),
        last.bernoulli_(0.5).contiguous(),
        last.bernoulli_(p.reshape(2, 3, 5, 4)).contiguous(),
        lib.empty(8, 15).t().bernoulli_(p.reshape(15, 8)),
        lib.empty(8, 15, dtype=lib.int64).t().bernoulli_(p[:8].double()),
        lib.rand(3),
    ]


@program
def distributions(lib):
    w, rates = lib.rand(5, 300), lib.rand(500) * 30
    return [
        *(lib.multinomial(w, k, replacement=r) for k in (1, 2, 50) for r in (False, True)),
        lib.poisson(rates),
        lib.binomial(lib.full((300,), 100.0), lib.full((300,), 0.3)),
        lib.bernoulli(lib.rand(200)),
        lib.bernoulli(lib.rand(200, dtype=lib.float64)),
    ]


@program
def dropout(lib):
    F, x = lib.nn.functional, lib.randn(4, 6, 3, 3)
    drop = lib.nn.Dropout(0.3, inplace=True)
    return [
        *(F.dropout(x, p) for p in (0.1, 0.3, 0.5, 0.0, 1.0)),
        F.dropout1d(x[0], 0.4),
        F.dropout2d(x, 0.4),
        F.dropout3d(x[None], 0.4),
        drop(x.clone()),
        lib.nn.Dropout2d(0.2)(x),
        lib.nn.Dropout(0.5).eval()(x),
        lib.dropout(x, 0.25, True),
        lib.empty(200, dtype=lib.bool).bernoulli_(0.3),
    ]


@program
def alpha_dropout(lib):
    """Which elements stay: the others are scaled by formulas that round in the last bit."""
    F, x = lib.nn.functional, lib.ones(4, 6, 5)
    return [(t == t.max()) for t in (F.alpha_dropout(x, 0.4, True), F.feature_alpha_dropout(x, 0.4, True))]


@program
def first_values(lib):
    init, shapes = lib.nn.init, ((64, 33), (8, 3, 5, 5), (3, 2))
    fills = (
        init.kaiming_uniform_, init.kaiming_normal_, init.xavier_uniform_, init.xavier_normal_, init.uniform_,
        init.normal_,
    )  # fmt: skip
    return [
        *(fill(lib.empty(*s)) for fill in fills for s in shapes),
        init.sparse_(lib.empty(20, 5), 0.3),
        *(
            init.trunc_normal_(lib.empty(n), **k)
            for n in (10, 2000)
            for k in ({}, {"std": 0.02}, {"mean": 0.5, "std": 0.5, "a": -1, "b": 1})
        ),
    ]


@program
def modules(lib):
    """In the order in which their constructors draw."""
    nn = lib.nn
    net = nn.Sequential(
        nn.Linear(28, 16),
        nn.ReLU(),
        nn.Conv2d(3, 16, 5),
        nn.BatchNorm2d(16),
        nn.ConvTranspose1d(4, 2, 3),
        nn.Embedding(100, 17),
        nn.LSTM(5, 7, 2),
        nn.GRU(4, 3, bidirectional=True),
        nn.RNNCell(3, 4),
        nn.MultiheadAttention(8, 2),
        nn.MultiheadAttention(8, 2, kdim=4, vdim=6),
        nn.Bilinear(2, 3, 4),
        nn.TransformerEncoderLayer(8, 2, 16),
        nn.TransformerDecoderLayer(8, 2, 16),
        nn.LayerNorm(4),
        nn.PReLU(),
        nn.EmbeddingBag(9, 4),
    )
    return list(net.state_dict().values())


@program
def orders(lib):
    data = lib.utils.data
    loader = data.DataLoader(data.TensorDataset(lib.arange(100)), 10, shuffle=True)
    epochs = [lib.cat([batch for (batch,) in loader]) for _ in range(3)]
    parts = [p.indices for p in data.random_split(range(100), [80, 20])]
    own = data.DataLoader(range(30), 7, shuffle=True, generator=lib.Generator().manual_seed(5))
    weighted = list(data.WeightedRandomSampler([0.1, 0.2, 0.7], 20))
    return [*epochs, *map(lib.tensor, (*parts, weighted, list(data.RandomSampler(range(9), True)))), *own]


@program
def states(lib):
    """Kept, put back, forked; a generator's own."""
    before = lib.get_rng_state()
    first = lib.randn(5)
    lib.set_rng_state(before)
    again = lib.randn(700)
    with lib.random.fork_rng():
        lib.manual_seed(9)
        inside = lib.rand(5)
    g = lib.Generator()
    g.set_state(before)
    seed = lib.tensor([lib.initial_seed() % 2**62, g.initial_seed() % 2**62])
    return [first, again, inside, lib.randn(15, generator=g), before, lib.rand(3), seed]


@program
def many(lib):
    """4 million: more than a block of whatever is computed in blocks."""
    return [lib.randn(2**22)]


@pytest.mark.parametrize("name", program)
def test_the_same_bits(oracle, name):
    def ask(lib):
        if lib is not rushlight and "dropout" in name:
            skip_other_stream(lib)
        return [after(lib, seed, program[name]) for seed in (SEEDS[:1] if name == "many" else SEEDS)]

    assert ask(rushlight) == oracle(ask)


def after(lib, seed, draw):
    lib.manual_seed(seed)
    tensors = draw(lib)
    return fingerprint(tensors, lib.get_rng_state())


def test_known_answers():
    """What tutorials print after seed 42."""
    rushlight.manual_seed(42)
    assert np.allclose(rushlight.rand(3).numpy(), [0.8822692633, 0.9150039554, 0.3828637600], 0, 1e-9)


LAYOUTS = {
    "expanded rows": lambda p: p[:1].expand(8, 3),
    "expanded columns": lambda p: p[:, :1].expand(8, 3),
    "a number": lambda p: p[0, 0].expand(8, 3),
    "transposed": lambda p: p.t().contiguous().t(),
    "sliced": lambda p: p.repeat(2, 1)[::2],
    "columns of more": lambda p: p.repeat(1, 2)[:, ::2],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("how", ["one", "without replacement"])
def test_multinomial_draws_in_the_order_of_a_copy(oracle, layout, how):
    def run(torch):
        torch.manual_seed(0)
        weights = LAYOUTS[layout](torch.arange(1.0, 25.0).reshape(8, 3))
        made = torch.multinomial(weights, 1 if how == "one" else 2, how == "one")
        return [made, torch.tensor(made.stride()), torch.rand(2)]

    for ours, theirs in zip(run(rushlight), oracle(run)):
        assert np.array_equal(ours.numpy(), theirs)


def test_samples_of_expanded_categories(oracle):
    def run(torch):
        torch.manual_seed(0)
        d = torch.distributions.Categorical(torch.tensor([0.3, 0.7])).expand((8,))
        return [d.sample(), d.sample((3,))]

    for ours, theirs in zip(run(rushlight), oracle(run)):
        assert np.array_equal(ours.numpy(), theirs)
