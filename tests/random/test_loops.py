"""Compiled loops over random words give the bits of NumPy's, and are loaded only when it pays."""

from __future__ import annotations

import importlib
import importlib.util
import math
import subprocess
import sys

import numpy as np
import pytest

from rushlight.random import Generator, bernoulli, integers, normal, samplers, stream, uniform, vector_math
from rushlight.random.choose_loop import IMPORT_NUMBERS, LOAD_AFTER_NUMBERS, MIN_COUNTED_DRAW, Loop

needs_llvmlite = pytest.mark.skipif(importlib.util.find_spec("llvmlite") is None, reason="llvmlite compiles the loops")
LOOPS = [
    stream._LOOP,
    normal._LOOP,
    uniform._LOOP,
    bernoulli._LOOP,
    integers._LOOP,
    *vector_math._EACH.values(),
    *samplers._LOOPS.values(),
]


@pytest.fixture
def both(monkeypatch):
    """both(draw): draw(generator) by NumPy and by loops, with the states after it."""

    def run(draw, seed=3):
        results = []
        for compiled in (False, True):
            for loop in LOOPS:
                monkeypatch.setattr(loop, "compiled", getattr(loops(), loop.name) if compiled else None)
                monkeypatch.setattr(loop._spent, "left", math.inf)
            g = Generator().manual_seed(seed)
            results.append((draw(g).tobytes(), g.get_state().numpy().tobytes()))
        return results

    return run


def loops():
    pytest.importorskip("llvmlite")
    return importlib.import_module("rushlight.random.loops")


DRAWS = {
    "chances": lambda g: g.bernoulli_scalar(0.3, 30001, "float32"),
    "bits": lambda g: g.bernoulli_scalar(0.9, 1001),
    "certain": lambda g: g.bernoulli_scalar(1.0, 2000, "float32"),
    "integers": lambda g: g.randint(0, 2**40, 3000),
    "unit": lambda g: g.uniform(30001),
    "uniform": lambda g: g.uniform(30001, low=-0.3, high=0.7),
    "even": lambda g: g.uniform(64, low=-1 / 28, high=1 / 28),
    "few": lambda g: g.uniform(3, low=2.0, high=5.0),
    "normal": lambda g: g.normal(70001),
    "scaled": lambda g: g.normal(30000, "float32", 0.3, 0.02),
    "sixteen": lambda g: g.normal(16),
    "seventeen": lambda g: g.normal(17, "float32", -1.0, 2.0),
    "half": lambda g: g.normal(20001, "float16"),
    "complex": lambda g: g.normal(20001, "complex64"),
    "double": lambda g: g.normal(20001, "float64", 0.3, 0.7),
    "permutation": lambda g: g.randperm(5000),
    "permutation of one": lambda g: g.randperm(1),
    "exponential": lambda g: g.exponential(20001, "float64"),
    "cauchy": lambda g: g.cauchy(20001, "float64"),
    "geometric": lambda g: g.geometric(20001, 0.3),
    "choice": lambda g: g.multinomial(np.linspace(0, 1, 5000), 10),
    "a word before": lambda g: g.words(1) + g.normal(40),
    "poisson": lambda g: g.poisson(np.linspace(0, 60, 9001, dtype="f")),
    "one poisson": lambda g: g.poisson(np.ones(1)),
    "binomial": lambda g: g.binomial(np.arange(9000.0) % 97, np.linspace(0, 1, 9000)),
    "gamma": lambda g: g.standard_gamma(np.linspace(0, 3, 9001)),
    "gamma of float32": lambda g: g.standard_gamma(np.linspace(0, 3, 9001, dtype="f")),
}


@pytest.mark.exhaustive(every=3)
@needs_llvmlite
@pytest.mark.parametrize("draw", DRAWS)
def test_the_same_bits(both, draw):
    by_numpy, by_loops = both(DRAWS[draw])
    assert by_numpy == by_loops


@needs_llvmlite
def test_the_twister_goes_on_from_where_either_left_it(monkeypatch):
    """Blocks by NumPy, by the loop, from a restored state: one stream, however it is asked for."""
    expected, made, g = np.random.RandomState(9), [], Generator().manual_seed(9)
    for i, n in enumerate([700, 1, 2000, 624, 5000, 623, 1248]):
        monkeypatch.setattr(stream._LOOP, "compiled", loops().words if i % 2 else None)
        monkeypatch.setattr(stream._LOOP._spent, "left", math.inf)
        made.append(g.words(n))
        if i == 4:
            state, g = g.get_state(), Generator()
            g.set_state(state)
    assert (np.concatenate(made) == expected.randint(0, 2**32, sum(map(len, made)), np.uint32)).all()


@needs_llvmlite
def test_uniforms_of_all_sizes():
    """Radius and angle of every 16th of the 2^24 words (all were tried), 8 and 8 in turn, as `normals` wants them."""
    words = np.arange(5, 2**24, 16, dtype=np.uint32)
    for part in np.split(words, 8):
        twice = np.repeat(part.reshape(-1, 8), 2, 0).reshape(-1)  # each once as a radius and once as an angle
        out = np.empty(len(twice), np.float32)
        loops().normals(twice, out, np.float32(1), np.float32(0))
        uniforms = (twice * 2.0**-24).astype(np.float32)
        assert (normal._groups32(uniforms, 0.0, 1.0) == out).all()


def test_small_draws_load_nothing():
    loop = Loop("normals")
    for _ in range(10):
        assert loop(MIN_COUNTED_DRAW - 1) is None
    assert loop._spent.left == LOAD_AFTER_NUMBERS


@pytest.mark.faster
@needs_llvmlite
def test_large_draws_load_it_when_it_pays():
    loop = Loop("normals")
    loop._spent.loading = 0  # as if llvmlite were not there yet
    assert loop(LOAD_AFTER_NUMBERS - MIN_COUNTED_DRAW) is None
    assert loop(MIN_COUNTED_DRAW) is loops().normals is loop(1)


@pytest.mark.faster
@needs_llvmlite
def test_it_pays_sooner_where_llvmlite_is_loaded():
    loop = Loop("normals")
    assert loops() is not None
    assert loop(LOAD_AFTER_NUMBERS - IMPORT_NUMBERS - MIN_COUNTED_DRAW) is None
    assert loop(MIN_COUNTED_DRAW) is loops().normals


@pytest.mark.faster
def test_without_llvmlite():
    """Where llvmlite is not installed, NumPy draws all numbers, and the import is not tried again."""
    code = (
        "import sys; sys.modules['llvmlite'] = None; import rushlight; from rushlight.random import "
        "normal;rushlight.manual_seed(0); a = rushlight.randn(4_000_000); assert normal._LOOP.compiled is None;assert "
        "normal._LOOP._spent.left == float('inf'); print(a[-1].item())"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert float(printed) == Generator().manual_seed(0).normal(4_000_000)[-1]
