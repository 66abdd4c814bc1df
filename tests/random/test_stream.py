"""rushlight.random against torch's CPU stream: every draw, and the state after it, to the last bit."""

from __future__ import annotations

import copy
import hashlib
import math
import pickle
import re
import subprocess
import sys
from fractions import Fraction
from threading import Thread

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rushlight
from rushlight import random
from rushlight.random import Generator, in_memory_order
from rushlight.random.bernoulli import intel_uniform
from rushlight.random.choose_loop import Loop
from rushlight.random.fma import fma32, fma64, near_halfway
from rushlight.random.stream import Stream

SEEDS = (0, 1, 42, 1234567, 2**32 - 1, 2**40 + 7, -7)
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
SINGLES = ("float32", "float64")
FLOATS = ("float16", "bfloat16", *SINGLES)
COMPLEX = ("complex64", "complex128")
INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
LENGTHS = (0, 1, 2, 15, 16, 17, 33, 700)
EVEN = np.linspace(0.0, 1.0, 200)  # as probabilities, and as weights with a zero
RATES = np.concatenate(([0.0], np.geomspace(0.01, 30.0, 199)))


def kind(name):
    return BFLOAT16 if name == "bfloat16" else np.dtype(name)


def generator(seed=0):
    return Generator().manual_seed(seed)


# -- the same bits as torch's ----------------------------------------------------------------------


def fingerprint(arrays, state):
    """A hash of all bytes, and the first numbers for those who look."""
    digest = hashlib.sha256(state.tobytes())
    for array in arrays:
        digest.update(f"{array.dtype.name} {array.shape}".encode() + array.tobytes())
    seen = np.concatenate([a.ravel()[:3] for a in arrays])[-3:]
    return f"{digest.hexdigest()[:12]} {[complex(v) if seen.dtype.kind == 'c' else float(v) for v in seen]}"


def to_array(tensor):
    """The tensor's array; NumPy knows bfloat16 from ml_dtypes only."""
    name = str(tensor.dtype).removeprefix("torch.")
    return tensor.view(type(tensor)([0]).short().dtype).numpy().view(BFLOAT16) if name == "bfloat16" else tensor.numpy()


@pytest.fixture
def same(oracle):
    """same(draws of a generator, draws of torch): lists of arrays and of tensors, compared for all seeds."""

    def answers(torch, draw):
        for seed in SEEDS:
            torch.manual_seed(seed)
            arrays = [to_array(t) for t in draw(torch)]
            yield fingerprint(arrays, torch.get_rng_state().numpy())

    def check(ours, theirs):
        expected = oracle(lambda torch: list(answers(torch, theirs)))
        for seed, answer in zip(SEEDS, expected):
            g = generator(seed)
            assert fingerprint(ours(g), g.get_state().numpy()) == answer, f"seed {seed}"

    return check


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("low", "high"), [(0, 1), (-0.3, 0.7), (-1 / 28, 1 / 28), (-3, 5), (2, 2)])
def test_uniform(same, dtype, low, high):
    same(
        lambda g: [g.uniform(n, kind(dtype), low, high) for n in LENGTHS],
        lambda t: [t.empty(n, dtype=getattr(t, dtype)).uniform_(low, high) for n in LENGTHS],
    )


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("mean", "std"), [(0, 1), (0.3, 0.02), (0, 0.02), (-1, 0)])
def test_normal(same, dtype, mean, std):
    same(
        lambda g: [g.normal(n, kind(dtype), mean, std) for n in LENGTHS],
        lambda t: [t.empty(n, dtype=getattr(t, dtype)).normal_(mean, std) for n in LENGTHS],
    )


@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex(same, dtype):
    same(
        lambda g: [draw(n, dtype) for n in LENGTHS for draw in (g.uniform, g.normal)],
        lambda t: [draw(n, dtype=getattr(t, dtype)) for n in LENGTHS for draw in (t.rand, t.randn)],
    )


def test_more_than_a_block(same):
    same(
        lambda g: [
            g.uniform(30001),
            g.uniform(30001, low=-0.1, high=0.1),
            g.normal(70001),
            g.randperm(5000),
            g.normal(20001, np.float64),
            g.bernoulli_scalar(0.4, 30001),
            g.randint(0, 7, 30001),
        ],
        lambda t: [
            t.rand(30001),
            t.empty(30001).uniform_(-0.1, 0.1),
            t.randn(70001),
            t.randperm(5000),
            t.randn(20001, dtype=t.float64),
            t.empty(30001, dtype=t.bool).bernoulli_(0.4),
            t.randint(0, 7, (30001,)),
        ],
    )


def test_a_spare_normal_outlives_other_draws(same):
    same(
        lambda g: [g.normal(3), g.uniform(2), g.normal(4), g.normal(20), g.normal(1), g.log_normal(2)],
        lambda t: [t.randn(3), t.rand(2), t.randn(4), t.randn(20), t.randn(1), t.empty(2).log_normal_()],
    )


@pytest.mark.parametrize("dtype", FLOATS)
def test_transformed(same, dtype):
    same(
        lambda g: [
            a
            for n in LENGTHS
            for a in (
                g.exponential(n, kind(dtype), 2.5),
                g.cauchy(n, kind(dtype), 1, 3),
                g.geometric(n, 0.3, kind(dtype)),
                g.log_normal(n, kind(dtype), 0.3, 0.7),
            )
        ],
        lambda t: [
            a
            for n in LENGTHS
            for x in [t.empty(n, dtype=getattr(t, dtype))]
            for a in (
                x.clone().exponential_(2.5),
                x.clone().cauchy_(1, 3),
                x.clone().geometric_(0.3),
                x.clone().log_normal_(0.3, 0.7),
            )
        ],
    )


@pytest.mark.parametrize(("mean", "std"), [(1.0, 2.0), (0.0, 40.0), (-85.0, 9.0)])
def test_log_normal_has_the_librarys_bits(same, mean, std):
    """Pairs of normals of all at once; exponentials that are infinite, 0 or subnormal in float32, too."""
    same(
        lambda g: [g.log_normal(n, np.float32, mean, std) for n in (31, 3, 40001, 16, 33, 1, 2)],
        lambda t: [t.empty(n).log_normal_(mean, std) for n in (31, 3, 40001, 16, 33, 1, 2)],
    )


@pytest.mark.parametrize("lambd", [1.0, 0.3, 7.0, 1e-31])
def test_exponential_has_the_librarys_bits(lambd, monkeypatch):
    """Also where NumPy's logarithm is off by an ulp or two, which shows halfway between two float32."""
    u = 2.0**-53 * np.random.default_rng(0).integers(0, 2**53, 20_000)
    u[:1000] = -np.expm1(-lambd * (0.5 + 2.0**-25 + np.arange(1000) * 2.0**-24))
    monkeypatch.setattr(Stream, "uniform53", lambda stream, n: u.copy())
    expected = np.float32([-1.0 / lambd * math.log1p(-v) for v in u])
    log1p, rng = np.log1p, np.random.default_rng(1)
    monkeypatch.setattr(np, "log1p", lambda v: log1p(v) * (1 + 2.0**-52 * rng.integers(-2, 3, v.shape)))
    assert (Generator().exponential(20_000, lambd=lambd) == expected).all()


def test_normals_made_ahead_are_those_of_the_stream(monkeypatch):
    """Whatever is drawn between small draws, and wherever the stream is set back to."""
    from rushlight.random import normal

    monkeypatch.setattr(normal, "_LOOP", Loop("normals"))  # which has not paid

    def draws(ahead):
        monkeypatch.setattr(normal, "MAX_AHEAD", ahead)
        g, rng, made, state = Generator().manual_seed(7), np.random.default_rng(0), [], None
        for k in range(200):
            n = int(rng.choice([3, 16, 30, 32, 48, 64, 128, 160, 640]))
            how = [{}, {"dtype": np.float16}, {"dtype": np.complex64}, {"mean": 2.0, "std": 0.5}][k % 7 % 4]
            made.append(g.normal(n, **how) if k % 5 else g.uniform(n))
            made[-1] += 1  # nobody else has it
            if k % 20 == 10:
                state = g.get_state()
            if k % 20 == 15:
                g.set_state(state)
        return made

    for ours, expected in zip(draws(156), draws(0)):
        np.testing.assert_array_equal(ours, expected)


def test_near_halfway():
    bits = (1 + 2.0**-24 + np.arange(100) * 2.0**-23).view(np.int64)
    for off in (-8, -1, 0, 7):
        assert near_halfway((bits + off).view(np.float64)).all()
    assert not near_halfway((bits + 8).view(np.float64)).any()
    assert not near_halfway(np.arange(100.0)).any()


@pytest.mark.parametrize("dtype", ["bool", *INTEGERS, *FLOATS])
def test_bernoulli_of_one_probability(same, dtype):
    chances = (0, 1e-9, 0.3, 1 / 3, 1)
    same(
        lambda g: [g.bernoulli_scalar(p, (3, 100), kind(dtype)) for p in chances],
        lambda t: [t.empty(3, 100, dtype=getattr(t, dtype)).bernoulli_(p) for p in chances],
    )


@pytest.mark.parametrize("dtype", FLOATS)
def test_bernoulli_of_each_probability(same, dtype):
    def theirs(t):
        p = t.from_numpy(EVEN).to(getattr(t, dtype))
        return [t.bernoulli(p), t.empty(200, dtype=t.int8).bernoulli_(p)]

    same(lambda g: [g.bernoulli(EVEN.astype(kind(dtype))), g.bernoulli(EVEN.astype(kind(dtype)), np.int8)], theirs)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_geometric_integers(same, dtype):
    same(lambda g: [g.geometric(300, 0.3, dtype)], lambda t: [t.empty(300, dtype=getattr(t, dtype)).geometric_(0.3)])


WIDE = [(0, 2**28 - 1), (0, 2**28), (-(2**40), 3 * 2**40 + 12345), (-(2**63), 2**63 - 1), (2**24 + 1, 2**25)]
RANGES = {
    "bool": [(0, 1), (0, 2)],
    "int32": [(0, 2**30)],
    "float16": [(-65504, 65504), (2049, 2051)],
    **dict.fromkeys(("int64", "bfloat16", *SINGLES), WIDE),
}


@pytest.mark.filterwarnings("ignore:.*out of bounds:UserWarning")  # torch's, of integers that floats round
@pytest.mark.parametrize("dtype", ["bool", *INTEGERS, "uint16", "uint32", "uint64", *FLOATS])
def test_randint(same, dtype):
    ranges = RANGES.get(dtype, []) + ([] if dtype == "bool" else [(3, 100)])
    same(
        lambda g: [g.randint(low, high, (3, 100), kind(dtype)) for low, high in ranges],
        lambda t: [t.randint(low, high, (3, 100), dtype=getattr(t, dtype)) for low, high in ranges],
    )


@pytest.mark.parametrize("dtype", ["bool", *INTEGERS, *FLOATS])
def test_random_(same, dtype):
    same(lambda g: [g.random_(300, kind(dtype))], lambda t: [t.empty(300, dtype=getattr(t, dtype)).random_()])


@pytest.mark.parametrize("dtype", [*INTEGERS, "uint16", "uint32", *FLOATS])
def test_random_from(same, dtype):
    lows = [2] + [-(2**63)] * (dtype in ("int64", "bfloat16", *SINGLES))
    same(
        lambda g: [g.random_(300, kind(dtype), low) for low in lows],
        lambda t: [t.empty(300, dtype=getattr(t, dtype)).random_(low, None) for low in lows],
    )


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
def test_randperm(same, dtype):
    same(
        lambda g: [g.randperm(n, kind(dtype)) for n in (0, 1, 2, 3, 100)],
        lambda t: [t.randperm(n, dtype=getattr(t, dtype)) for n in (0, 1, 2, 3, 100)],
    )


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("samples", "replacement"), [(1, False), (1, True), (40, True), (40, False)])
def test_multinomial(same, dtype, samples, replacement):
    if dtype not in SINGLES and not replacement:
        # many ranks are equal in half precision, and torch's order of those is its partial sort's
        samples = 1

    def theirs(t):
        weights = t.from_numpy(np.roll(EVEN, 100)).to(getattr(t, dtype))
        return [t.multinomial(w, samples, replacement) for w in (weights, weights.view(4, 50))]

    weights = np.roll(EVEN, 100).astype(kind(dtype))
    same(lambda g: [g.multinomial(w, samples, replacement) for w in (weights, weights.reshape(4, 50))], theirs)


@pytest.mark.parametrize("dtype", FLOATS)
def test_poisson(same, dtype):
    same(
        lambda g: [g.poisson(RATES.astype(kind(dtype)))],
        lambda t: [t.poisson(t.from_numpy(RATES).to(getattr(t, dtype)))],
    )


@pytest.mark.parametrize("dtype", SINGLES)
def test_binomial(same, dtype):
    counts, p = (0, 5, 100, 1000), EVEN.astype(dtype)
    same(
        lambda g: [g.binomial(np.full(200, n, dtype), p) for n in counts],
        lambda t: [t.binomial(t.full((200,), n, dtype=getattr(t, dtype)), t.from_numpy(p)) for n in counts],
    )


@pytest.mark.parametrize("dtype", SINGLES)
def test_gamma_and_dirichlet(same, dtype):
    alphas = [np.full((20, 3), a, dtype) for a in (0.1, 1.0, 5.0)]  # of more than 3, torch's sum depends on the CPU
    same(
        lambda g: [g.standard_gamma(RATES.astype(dtype)), *map(g.dirichlet, alphas)],
        lambda t: [
            t._standard_gamma(t.from_numpy(RATES.astype(dtype))),
            *(t._sample_dirichlet(t.from_numpy(a)) for a in alphas),
        ],
    )


@pytest.mark.parametrize(("shape", "axes"), [((6, 8), (1, 0)), ((3, 4, 5), (1, 2, 0)), ((2, 5, 5, 3), (0, 3, 1, 2))])
def test_in_memory_order(same, shape, axes):
    def filled(draw):
        x = np.empty(shape, np.float32).transpose(axes)
        target = in_memory_order(x)
        target[...] = draw(target.shape)
        return np.ascontiguousarray(x)

    def theirs(t):
        x = t.empty(shape).permute(axes)
        return [x.uniform_().contiguous(), x.normal_().contiguous()]

    same(lambda g: [filled(g.uniform), filled(lambda s: g.normal(s, contiguous=False))], theirs)


def test_multinomial_of_a_transpose(same):
    weights = np.roll(EVEN, 9).reshape(4, 50)
    same(
        lambda g: [g.multinomial(np.asfortranarray(weights), 5)],
        lambda t: [t.multinomial(t.from_numpy(weights).t().contiguous().t(), 5)],
    )


REFUSED = """
    normal(3, std=-1.0)                           normal(3, std=math.nan)
    uniform(3, low=1.0, high=0.0)                 uniform(3, high=1e39)
    uniform(3, low=-3e38, high=3e38)              uniform(3, "float16", high=1e5)
    uniform(3, high=math.nan)                     exponential(3, lambd=0.0)
    cauchy(3, sigma=0.0)                          log_normal(3, std=0.0)
    geometric(3, 0.0)                             geometric(3, 1.0)
    bernoulli_scalar(1.5, 3)                      bernoulli(np.array([math.nan]))
    randint(5, 5, 3)                              randint(0, 257, 3, np.uint8)
    randint(-1, 3, 3, np.uint8)                   randint(0, 2**17, 3, "float16")
    randint(2**24 + 1, 2**24 + 3, 3, BFLOAT16)    random_(3, np.uint8, 256)
    randperm(-1)                                  randperm(257, np.uint8)
    randperm(2050, "float16")                     randperm(2**28)
    multinomial(np.array([1.0, -1.0]), 1)         multinomial(np.zeros(2), 1)
    multinomial(np.ones(2), 3)                    multinomial(np.ones(2), 0)
    multinomial(np.array(1.0), 1)                 multinomial(np.array([1, 2]), 1)
    multinomial(np.array([1.0, math.inf]), 1)     multinomial(np.ones((2, 2, 2)), 1)
    poisson(np.array([-1.0]))                     poisson(np.array([math.inf]))
    binomial(np.array([3.0]), np.array([1.5]))    binomial(np.array([-3.0]), np.array([0.5]))
    standard_gamma(np.array([-1.0]))              dirichlet(np.array(1.0))
    set_state(np.zeros(5056, np.uint8))           set_state(np.zeros(50, np.uint8))
    manual_seed(1.5)                              manual_seed(True)
"""
REFUSED_DTYPES = """
    uniform(3, np.int64)                          normal(3, np.int32)
    exponential(3, "complex64")                   randint(0, 5, 3, "complex64")
    random_(3, np.uint64)                         randperm(3, "bool")
    bernoulli(np.array([0, 1]))                   poisson(np.array([1]))
    standard_gamma(np.ones(1, "float16"))         binomial(np.ones(1), np.ones(1, np.float32))
    set_state(np.zeros(5056))                     uniform(3, "U3")
"""


def calls(text):
    return re.split(r"\s{2,}", text.strip())


@pytest.mark.parametrize("call", calls(REFUSED))
def test_refused_and_nothing_drawn(call):
    g = generator()
    before = g.get_state()
    with pytest.raises(RuntimeError, match="[a-z]"):
        eval("g." + call)
    assert (g.get_state() == before).all()


@pytest.mark.parametrize("call", calls(REFUSED_DTYPES))
def test_dtypes_refused(call):
    with pytest.raises((TypeError, NotImplementedError), match=r"float|int|bool|ByteTensor"):
        eval("generator()." + call)


# -- seed and state --------------------------------------------------------------------------------


def test_seeds(oracle):
    seeds = (0, 5, -7, -(2**63), 2**64 - 1)
    expected = oracle(
        lambda torch: (
            [str(torch.Generator().manual_seed(s).initial_seed()) for s in seeds]
            + [str(torch.Generator().initial_seed())]
        )
    )
    assert [str(generator(s).initial_seed()) for s in seeds] + [str(Generator().initial_seed())] == expected
    for seed in (2**64, -(2**63) - 1):
        with pytest.raises(ValueError, match="Overflow"):
            generator(seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_states_go_both_ways(torch, seed):
    torch.manual_seed(seed)
    g = generator(seed)
    for n in (0, 3, 700, 629, 1247, 15, 16, 624, 1, 623):
        torch.randn(n)
        g.normal(n)
        assert (torch.get_rng_state().numpy() == g.get_state().numpy()).all()
    ours, theirs = Generator(), torch.Generator()
    assert ours.set_state(torch.get_rng_state()) is ours
    theirs.set_state(torch.from_numpy(g.get_state().numpy()))
    for n in (15, 700):
        assert (ours.normal(n) == torch.randn(n, generator=theirs).numpy()).all()


@given(st.lists(st.integers(0, 1400), max_size=6), st.integers(0, 1400))
@settings(max_examples=60, deadline=None)
def test_words_do_not_depend_on_how_they_are_asked_for(draws, last):
    stream, whole = Stream(5), Stream(5).words(sum(draws) + last)
    parts = [stream.words(n) for n in draws]
    restored = Stream(0)
    restored.restore(stream.state())
    assert (np.concatenate([*parts, stream.words(last)]) == whole).all()
    assert (restored.words(last) == whole[len(whole) - last :]).all()
    assert (restored.state() == stream.state()).all()


@pytest.mark.parametrize("twin", [lambda g: pickle.loads(pickle.dumps(g)), copy.deepcopy, Generator.clone_state])
def test_copies_go_on_alike_and_apart(twin):
    g = generator(3)
    g.stream = "intel"
    g.normal(5)
    other = twin(g)
    assert (other.initial_seed(), other.stream, other.device) == (3, "intel", g.device)
    assert (other.normal(700) == g.normal(700)).all()
    g.uniform(1)
    assert (other.get_state() != g.get_state()).any()


def test_the_state_is_a_tensor_of_bytes():
    g = generator(4)
    state = g.get_state()
    assert (state.dtype, tuple(state.shape)) == (rushlight.uint8, (5056,))
    first = g.uniform(3)
    assert (g.set_state(state), g.uniform(3).tolist()) == (g, first.tolist())
    assert (random.get_rng_state().dtype, rushlight.get_rng_state().dtype) == (rushlight.uint8,) * 2


def test_a_new_seed_each_time():
    g = Generator()
    assert g.seed() != g.seed() == g.initial_seed()


def test_the_default_generator():
    assert random.manual_seed(42) is random.default_generator
    assert random.initial_seed() == 42
    first = random.default_generator.uniform(3)
    assert first.tolist() == pytest.approx([0.8822693, 0.9150040, 0.3828638], abs=1e-7)
    random.manual_seed(42.9)  # as torch: int() of it
    assert (random.default_generator.uniform(3) == first).all()
    assert random.seed() == random.initial_seed() != 42


@pytest.mark.parametrize("enabled", [True, False])
def test_fork_rng(enabled):
    random.manual_seed(0)
    first = random.default_generator.normal(3)
    random.manual_seed(0)

    def draw_and_fail():
        with random.fork_rng(devices=[], enabled=enabled):
            random.manual_seed(9).normal(5)
            raise KeyError

    with pytest.raises(KeyError):
        draw_and_fail()
    assert (random.default_generator.normal(3) == first).all() == enabled


def test_unseeded_until_used_and_different_in_each_process():
    code = (
        "from rushlight import random; import sys; assert random.default_generator._twister is None;assert not "
        "{'llvmlite', 'scipy', 'ml_dtypes'} & set(sys.modules); print(random.default_generator.uniform(4))"
    )
    one, other = (subprocess.check_output([sys.executable, "-c", code], text=True) for _ in range(2))
    assert one != other


def test_no_other_device():
    with pytest.raises(RuntimeError, match="cpu"):
        Generator("cuda")


# -- the two streams of dropout --------------------------------------------------------------------


def bits(array):
    return "".join(map(str, array.astype(int)))


def test_both_streams_against_what_was_published():
    """On macOS and on Linux with an Intel CPU. rasbt/LLMs-from-scratch, chapter 3 and issue 57: dropout(ones(6, 6))
    after seed 123; pytorch/pytorch#15714: zeros(5).bernoulli_() after seed 0."""
    published = {
        ("portable", 123): "110110000101111101011001010101011110",
        ("portable", 0): "00100",
        ("intel", 123): "111111010000001010110001100001010000",
        ("intel", 0): "10011",
    }
    for (stream, seed), expected in published.items():
        g = generator(seed)
        g.stream = stream
        assert bits(g.bernoulli_scalar(0.5, len(expected))) == expected


def test_intel_numbers_one_by_one():
    """x <- 1132489760 x mod (2^31 - 1), written as it is defined."""
    for seed in (0, 1, 2**31 - 1, 2**32 - 1):
        x, expected = seed % (2**31 - 1) or 1, []
        for _ in range(100):
            expected.append(x / (2**31 - 1))
            x = 1132489760 * x % (2**31 - 1)
        assert intel_uniform(seed, 100).tolist() == expected
        assert intel_uniform(seed, 37).tolist() == expected[:37]


def test_there_are_two_streams():
    with pytest.raises(ValueError, match="'portable', 'intel'"):
        Generator().stream = "amd"


# -- roundings -------------------------------------------------------------------------------------


def exactly(value: Fraction, digits: int, least: int) -> float:
    """The value rounded to so many binary digits, half to even, and to multiples of 2^least."""
    if not value:
        return 0.0
    place = abs(value.numerator).bit_length() - value.denominator.bit_length() - digits
    place += abs(value) >= Fraction(2) ** (place + digits)  # now 2^(digits-1) <= |value| / 2^place < 2^digits
    unit = Fraction(2) ** max(place, least)
    return float(round(value / unit) * unit)


@given(st.integers(0, 2**24 - 1), st.floats(-(2.0**99), 2.0**99, width=32), st.floats(-(2.0**99), 2.0**99, width=32))
@settings(max_examples=300, deadline=None)
def test_fma32_is_exact(u, b, c):
    a = np.array([u * 2.0**-24, 1 - 2.0**-24], np.float32)
    assert fma32(a, b, c).tolist() == [exactly(Fraction(float(x)) * Fraction(b) + Fraction(c), 24, -149) for x in a]


@pytest.mark.parametrize("k", [1, 3, 300])
def test_fma32_next_to_halfway(k):
    """c plus nearly half its last place, nearer than a float64 can tell: where two roundings go wrong."""
    a = np.array([1 - k * 2.0**-23, 1 + k * 2.0**-23], np.float32)
    b, c = 2.0**-24 * (1 + k * 2.0**-23), 1 + 2.0**-23
    for sign in (1, -1):
        expected = [exactly(Fraction(float(x)) * Fraction(b) * sign + Fraction(c) * sign, 24, -149) for x in a]
        assert fma32(a, b * sign, c * sign).tolist() == expected
    twice = (a.astype(np.float64) * b + c).astype(np.float32)
    assert (twice != fma32(a, b, c)).any()  # so the test has teeth


@given(st.floats(0, 1, exclude_max=True), st.floats(-1e9, 1e9), st.floats(-1e9, 1e9))
@settings(max_examples=300, deadline=None)
def test_fma64_is_exact(a, b, c):
    a, b, c = (x if abs(x) > 1e-100 else 0.0 for x in (a, b, c))
    assert fma64(np.array([a]), b, c).tolist() == [exactly(Fraction(a) * Fraction(b) + Fraction(c), 53, -1074)]


# -- properties ------------------------------------------------------------------------------------

SHAPES = st.lists(st.integers(0, 6), max_size=3).map(tuple)


@given(SHAPES, st.sampled_from(FLOATS), st.integers(0, 2**64 - 1), st.floats(-100, 100), st.floats(0.01, 100))
@settings(max_examples=100, deadline=None)
def test_uniform_lies_in_its_range(shape, dtype, seed, low, width):
    x = generator(seed).uniform(shape, kind(dtype), low, low + width)
    assert (x.shape, x.dtype) == (shape, kind(dtype))
    least, most = np.array([low, low + width]).astype(np.float32 if dtype != "float64" else dtype).astype(kind(dtype))
    if dtype in SINGLES:  # low + width * u may round up to the bound, and the width may have been rounded up before
        assert ((x >= least) & (x <= np.nextafter(most, np.array(np.inf, dtype)))).all()
    else:
        assert ((x >= least) & ((x < most) | (x == least))).all()


@given(SHAPES, st.sampled_from([*INTEGERS, "uint16", "uint32"]), st.data())
@settings(max_examples=100, deadline=None)
def test_randint_lies_in_its_range(shape, dtype, data):
    info = np.iinfo(dtype)
    low = data.draw(st.integers(int(info.min), int(info.max) - 1))
    high = data.draw(st.integers(low + 1, min(int(info.max) + 1, 2**63 - 1)))
    x = generator(data.draw(st.integers(0, 99))).randint(low, high, shape, dtype)
    assert x.shape == shape
    assert all(low <= v < high for v in x.ravel().tolist())


@given(st.integers(0, 300), st.integers(0, 2**32))
@settings(max_examples=50, deadline=None)
def test_randperm_permutes_as_exchanges_do(n, seed):
    words = generator(seed)
    order = list(range(n))
    for i, w in enumerate(words.words(max(n - 1, 0)).tolist()):
        j = i + w % (n - i)
        order[i], order[j] = order[j], order[i]
    assert generator(seed).randperm(n).tolist() == order


@given(st.integers(1, 60), st.integers(0, 99))
@settings(max_examples=50, deadline=None)
def test_multinomial_draws_what_has_weight_and_nothing_twice(n, seed):
    g = generator(seed)
    weights = g.uniform(n) * (g.uniform(n) < 0.7)
    weights[seed % n] = 1.0
    k = int((weights > 0).sum())
    chosen = g.multinomial(weights, k)
    assert sorted(chosen.tolist()) == np.flatnonzero(weights).tolist()
    assert (weights[g.multinomial(weights, 30, replacement=True)] > 0).all()


def moments(x):
    return float(x.mean(dtype=np.float64)), float(x.var(dtype=np.float64))


N = 60_000
DISTRIBUTIONS = {  # name: (draw, mean, variance, fourth central moment)
    "uniform": (lambda g: g.uniform(N, low=-1.0, high=3.0), 1.0, 4 / 3, 3.2),
    "normal": (lambda g: g.normal(N, mean=2.0, std=3.0), 2.0, 9.0, 243.0),
    "serial normal": (lambda g: g.normal(N, contiguous=False), 0.0, 1.0, 3.0),
    "double normal": (lambda g: g.normal(N, np.float64), 0.0, 1.0, 3.0),
    "bernoulli": (lambda g: g.bernoulli_scalar(0.3, N, np.float32), 0.3, 0.21, 0.0777),
    "intel uniform": (lambda g: intel_uniform(g.initial_seed(), N), 0.5, 1 / 12, 1 / 80),
    "exponential": (lambda g: g.exponential(N, lambd=2.0), 0.5, 0.25, 9 / 16),
    "geometric": (lambda g: g.geometric(N, 0.5), 2.0, 2.0, 38.0),
    "randint": (lambda g: g.randint(-2, 3, N), 0.0, 2.0, 6.8),
    "poisson": (lambda g: g.poisson(np.full(N, 3.0)), 3.0, 3.0, 30.0),
    "large poisson": (lambda g: g.poisson(np.full(N, 20.0)), 20.0, 20.0, 1220.0),
    "binomial": (lambda g: g.binomial(np.full(N, 8.0), np.full(N, 0.5)), 4.0, 2.0, 11.0),
    "large binomial": (lambda g: g.binomial(np.full(N, 40.0), np.full(N, 0.5)), 20.0, 10.0, 295.0),
    "gamma": (lambda g: g.standard_gamma(np.full(N, 2.5)), 2.5, 2.5, 33.75),
    "small gamma": (lambda g: g.standard_gamma(np.full(N, 0.5)), 0.5, 0.5, 3.75),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_mean_and_variance(name):
    """Within 5 standard deviations of what N numbers must have."""
    draw, mean, variance, fourth = DISTRIBUTIONS[name]
    m, v = moments(draw(generator(2024)))
    assert abs(m - mean) < 5 * math.sqrt(variance / N)
    assert abs(v - variance) < 5 * math.sqrt((fourth - variance**2) / N)


def test_a_wrong_variance_would_be_seen():
    m, v = moments(generator(2024).normal(N) * np.float32(1.03))
    assert abs(v - 1.0) > 5 * math.sqrt(2 / N)


def test_permutations_are_equally_likely():
    g = generator(7)
    counts: dict[tuple, int] = {}
    for _ in range(6000):
        order = tuple(g.randperm(3).tolist())
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 6
    assert sum((c - 1000) ** 2 / 1000 for c in counts.values()) < 20.5  # chi squared, 5 degrees: 1 in 1000


def test_multinomial_follows_the_weights():
    weights = np.array([1.0, 2.0, 3.0, 4.0])
    counts = np.bincount(generator(1).multinomial(weights, 20_000, replacement=True), minlength=4)
    expected = weights * 2000
    assert ((counts - expected) ** 2 / expected).sum() < 16.3  # 3 degrees: 1 in 1000


# -- threads ---------------------------------------------------------------------------------------


def test_threads_share_a_generator_and_no_number_twice():
    """8 threads draw rows; together they are the rows of one thread, each whole, in some order."""
    g, rows = generator(11), []

    def work():
        for _ in range(150):
            rows.append(g.uniform(13, np.float64).tobytes())

    threads = [Thread(target=work) for _ in range(8)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    alone = generator(11)
    assert sorted(rows) == sorted(alone.uniform(13, np.float64).tobytes() for _ in range(1200))
    assert (g.get_state() == alone.get_state()).all()
