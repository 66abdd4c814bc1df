"""Programs are compared with eager step by step: strict where a step is wrong, patient where noise is magnified."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn, optim
from rushlight.compile import compile, programs
from rushlight.compile.capture.replay import Replay
from rushlight.compile.passes.decompose import PARTS
from rushlight.compile.run import verify
from rushlight.compile.run.tolerance import Noise
from rushlight.compile.run.verified_cache import Proof
from rushlight.nn import functional as F
from rushlight.ops.reduce import reduce

STEPS = 50


class Attention(nn.Module):
    """Keys have a bias: a softmax cancels it, so its gradient is nothing but rounding noise, which Adam makes large."""

    def __init__(self, width=16, heads=2, drop=0.0):
        super().__init__()
        self.qkv, self.out, self.heads = nn.Linear(width, 3 * width), nn.Linear(width, width), heads
        self.norm, self.drop = nn.LayerNorm(width), drop

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (z.view(b, t, self.heads, -1).transpose(1, 2) for z in self.qkv(self.norm(x)).split(c, 2))
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.drop if self.training else 0.0, is_causal=True)
        return x + self.out(y.transpose(1, 2).reshape(b, t, c))


class GPT(nn.Module):
    def __init__(self, drop=0.0):
        super().__init__()
        self.tokens, self.places = nn.Embedding(11, 16), nn.Embedding(8, 16)
        self.layers = nn.Sequential(Attention(drop=drop), Attention(drop=drop), nn.Dropout(drop))
        self.head = nn.Linear(16, 11)

    def forward(self, x):
        return self.head(self.layers(self.tokens(x) + self.places(torch.arange(x.shape[1]))))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 4, 3),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Dropout2d(0.2),
            nn.Flatten(),
            nn.Linear(36, 11),
        )

    def forward(self, x):
        return self.layers((x.float() / 11).view(-1, 1, 8, 8))


def train(make, backend, batch=(4, 8), steps=STEPS):
    """Losses of an AdamW run with clipping and a schedule, and the step."""
    torch.manual_seed(3)
    model = make()
    optimizer = optim.AdamW(model.parameters(), lr=1e-3)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    rng = np.random.default_rng(0)

    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x).view(-1, 11), y.reshape(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    f = compile(step, backend=backend) if backend else step
    losses = []
    for _ in range(steps):
        x = torch.tensor(rng.integers(0, 11, batch))
        losses.append(float(f(x, (x if batch[1] == 8 else x[:, :1]) * 3 % 11)))
        schedule.step()
    return losses, f, model


@pytest.mark.exhaustive(every=3)
@pytest.mark.parametrize("backend", ["numpy", "loops"])
@pytest.mark.parametrize(
    ("make", "batch"),
    [(GPT, (4, 8)), (lambda: GPT(0.2), (4, 8)), (Net, (4, 64))],
    ids=["gpt", "gpt with dropout", "convolutions"],
)
def test_fifty_steps_lose_what_eager_loses(make, batch, backend):
    if backend == "loops":
        pytest.importorskip("llvmlite")
    expected, _, _ = train(make, None, batch)
    after = torch.get_rng_state()
    losses, f, _ = train(make, backend, batch)
    assert len(programs(f)) == 1, f.given_up
    np.testing.assert_allclose(losses, expected, rtol=1e-4)
    assert torch.equal(torch.get_rng_state(), after)  # as many random numbers have been drawn


def test_dropout_draws_eagers_numbers():
    drop = nn.Dropout(0.5)
    f = compile(lambda x: (drop(x), drop(x), drop(x)[:0]), backend="numpy")
    for seed in range(6):
        torch.manual_seed(seed)
        got, later = f(torch.ones(3, 4)), torch.rand(2)
        torch.manual_seed(seed)
        want = drop(torch.ones(3, 4)), drop(torch.ones(3, 4)), drop(torch.ones(3, 4))[:0]
        assert [t.tolist() for t in got] == [t.tolist() for t in want]
        assert later.tolist() == torch.rand(2).tolist()
    assert programs(f)


# -- a wrong step is noticed -----------------------------------------------------------------------


def compiled(f, *args):
    g = compile(f, backend="loops")
    for _ in range(4):
        g(*args)
    return g


@pytest.mark.falls_back
@pytest.mark.parametrize(("name", "wrong"), [("exp", lambda x: x * 0 + 1), ("exp", lambda x: x + 1)])
def test_a_loop_that_gives_other_numbers(monkeypatch, name, wrong):
    """Also where the wrong numbers hardly change the result."""
    pytest.importorskip("llvmlite")
    from rushlight.fast import rule_text

    monkeypatch.setitem(rule_text.SPECIAL, name, wrong)
    rule_text.symbolic.cache_clear()
    with pytest.warns(UserWarning, match="other numbers as a program than as it is"):
        g = compiled(lambda x: x.exp() * 5e-5 + x, torch.linspace(-1, 1, 5000))
    assert not programs(g)


@pytest.mark.falls_back
def test_a_pass_that_gives_other_numbers(monkeypatch):
    _, suits = PARTS[reduce.mean.op]
    monkeypatch.setitem(PARTS, reduce.mean.op, (lambda b, x, *rest: b.reduce(reduce.sum, x, *rest), suits))
    with pytest.warns(UserWarning, match="its parts give"):
        g = compiled(lambda x: x.mean(), torch.linspace(-1, 2, 5000))
    assert not programs(g)


def test_noise_is_no_error_and_an_error_is_no_noise():
    b = np.array([1e-9, 1.0], np.float32)
    noise = [np.array([3e-9, 0], np.float32)] * 3
    assert not verify.difference(b + np.array([2e-8, 0], np.float32), b, lambda: iter(noise))
    assert verify.difference(b + np.array([2e-5, 0], np.float32), b, lambda: iter(noise))
    assert verify.difference(b[:1] * 2, b[:1], lambda: iter([b[:1] * 1e-7] * 3))
    assert "instead of" in verify.difference(b.astype(np.float64), b, lambda: iter(()))
    whole = np.arange(3)
    assert verify.difference(whole + 1, whole, lambda: iter([whole > 3] * 3))
    assert not verify.difference(whole, whole, lambda: iter(()))
    nans = np.array([np.nan, np.inf], np.float32)
    assert not verify.difference(nans.copy(), nans, lambda: iter([nans * 0]))
    assert verify.difference(nans[::-1].copy(), nans, lambda: iter([nans * 0]))


def test_memory_that_an_op_hands_on_is_not_given_away():
    """split() is no view for the table, but its parts lie in its argument's memory."""

    def f(x):
        a, b, c = (x * 2).split(2)
        d = (x + 1) * (x - 1)  # would like the memory of x * 2
        return a * b + c, d * 3

    g = compile(f, backend="numpy")
    for k in range(5):
        x = torch.arange(6.0) + k
        assert [t.tolist() for t in g(x)] == [t.tolist() for t in f(x)]
    assert programs(g)


def test_a_kernel_that_hands_on_memory_unexpectedly_is_noticed():
    a, out = np.zeros(3), np.zeros(2)
    x, y = verify.Value(a), verify.Value(out)
    call = verify.Call("cat", ([x],), (y,))
    graph = verify.Graph([call])
    checker = verify.Checker(graph, [call], [[y]], {}, [], verify.Replay(graph))
    checker.places[x] = a
    checker.apart(call, {y: np.ones(2)})
    with pytest.raises(verify.Mismatch, match="gives its argument's memory"):
        checker.apart(call, {y: a[:2]})


def test_the_mean_of_what_cancels_is_noise(monkeypatch):
    """What goes through two layer norms has the mean 0 but for rounding: another one in each order of the sum, which no
    op of the run has made, and which backward is handed by forward."""
    monkeypatch.setattr(Proof, "there", lambda self: False)
    layers = nn.Sequential(nn.LayerNorm(128), nn.LayerNorm(128), nn.LayerNorm(128))
    assert programs(compiled_by_numpy(lambda x: layers(x).sum(), torch.randn(64, 128) * 5))


def compiled_by_numpy(f, *args):
    g = compile(f, backend="numpy")
    for _ in range(4):
        g(*args)
    return g


@pytest.mark.falls_back
@pytest.mark.parametrize("far", [1e5, 1])
def test_a_gradient_that_is_noise_may_be_another_noise(monkeypatch, far):
    """The ops may round otherwise when they run once more, beside the program; but not by far."""
    run = Replay.run

    def otherwise(self, step):
        run(self, step)
        for v in step.outs:
            if self.noise is None and v.traced in self.known and step.op == "exp":
                a = self.known[v.traced]
                self.known[v.traced] = (a + far * (Noise(1).on(a) - a)).astype(a.dtype)

    monkeypatch.setattr(Replay, "run", otherwise)
    monkeypatch.setattr(Proof, "there", lambda self: False)
    key, query = nn.Linear(8, 8), torch.randn(5, 8)

    def step(x):
        key.zero_grad()
        y = torch.exp(query @ key(x).T)
        (y / y.sum(1, keepdim=True) @ x).square().sum().backward()  # the gradient of key.bias is 0
        return y

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert len(programs(compiled_by_numpy(step, torch.randn(6, 8)))) == (far == 1)


def test_noise_that_cancels_in_the_first_tries_is_asked_for_again():
    """float32 inside of float64: one last place of the former is many of the latter, and of a single number the noise
    of two ops may cancel in a few tries. Then their mean counts, which many tries make no larger."""
    right, tries = np.full(3, 0.25), []

    def changes(*found):
        for change in (found * verify.MAX_RUNS)[: verify.MAX_RUNS]:
            tries.append(change)
            yield np.full(3, change)

    assert verify.difference(right + 1e-16, right, lambda: changes(1)) == ""
    assert not tries  # near enough without noise
    assert verify.difference(right + 1e-8, right, lambda: changes(1e-7)) == ""
    assert len(tries) == verify.MIN_RUNS
    assert verify.difference(right + 1e-8, right, lambda: changes(0, 0, 0, 1e-8)) == ""
    assert "of 3 elements" in verify.difference(right + 1e-8, right, lambda: changes(0, 0, 0, 1e-9))
    assert "of 3 elements" in verify.difference(right + 1e-4, right, lambda: changes(0, 1e-8))


def test_a_single_number_of_single_precision_that_becomes_double():
    """Sums of float32 inside a statement that ends in float64, 40 of them: each is a program of its own."""
    for seed in range(40):
        torch.manual_seed(seed)
        x = torch.randn(384, dtype=torch.float64)
        f = compile(lambda x: (-x.float()).mean().double() + (x.float() * 3).mean().double(), backend="numpy")
        for _ in range(3):
            f(x)
        assert len(programs(f)) == 1


# -- half precision: a last place of float32 decides which of two neighbours a number becomes ------


def half_steps(model, loss):
    """A compiled training step under autocast to bfloat16."""
    optimizer = optim.SGD(model.parameters(), lr=1e-2)

    def step(x, y):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            total = loss(model(x), y)
        total.backward()
        optimizer.step()
        return total

    return step


MODELS = {
    "products": (
        lambda: nn.Sequential(
            nn.Linear(784, 400), nn.ReLU(), nn.Linear(400, 20), nn.Linear(20, 400), nn.ReLU(), nn.Linear(400, 784)
        ),
        (32, 784),
    ),
    "convolutions": (
        lambda: nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(4, 8), nn.SiLU(), nn.Conv2d(8, 3, 3, padding=1)
        ),
        (4, 3, 16, 16),
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_roundings_to_half_precision_that_come_out_otherwise_are_no_error(name, monkeypatch):
    """The replay differs from eager in last places of float32, and so in some whole units of bfloat16."""
    monkeypatch.setattr(Proof, "there", lambda self: False)
    run, rng = Replay.run, np.random.default_rng(0)

    def otherwise(self, step):
        run(self, step)
        for v in step.outs:
            if self.noise is None and v.traced in self.known and step.op in ("linear", "conv2d", "convolution"):
                near = Noise(1, halves=True).on(self.known[v.traced], False)
                self.known[v.traced] = np.where(rng.random(near.shape) < 1e-3, near, self.known[v.traced])

    monkeypatch.setattr(Replay, "run", otherwise)
    make, shape = MODELS[name]

    def train(f_of):
        torch.manual_seed(0)
        model = make()
        f = f_of(half_steps(model, lambda y, t: F.binary_cross_entropy_with_logits(y, t, reduction="sum") / 100))
        x = torch.randn(shape)
        return [f(x, x.sigmoid()).item() for _ in range(4)], f

    losses, f = train(lambda step: compile(step, backend="numpy"))
    assert len(programs(f)) == 1, f.given_up
    np.testing.assert_allclose(losses, train(lambda step: step)[0], rtol=2e-3)


@pytest.mark.falls_back
@pytest.mark.parametrize(
    ("op", "dtype"), [("linear", "bfloat16"), ("mm", "bfloat16"), ("where", "bfloat16"), ("to", "float32")]
)
def test_one_hundredth_more_in_half_precision_is_noticed(monkeypatch, op, dtype):
    """bfloat16 has 2 to 3 decimal digits: it is one to three units."""
    monkeypatch.setattr(Proof, "there", lambda self: False)
    call = verify.Checker.__call__

    def more(self, i, *arrays):
        if getattr(self.items[i], "op", "") == op or [s.op for s in getattr(self.items[i], "steps", ())] == [op]:
            for a in arrays:
                if a.dtype.name == dtype:
                    a[...] = (a.astype(np.float32) * np.float32(1.01)).astype(a.dtype)
        return call(self, i, *arrays)

    monkeypatch.setattr(verify.Checker, "__call__", more)
    torch.manual_seed(0)
    step = half_steps(
        nn.Sequential(nn.Linear(48, 32), nn.ReLU(), nn.Linear(32, 48)), lambda y, t: ((y - t) ** 2).mean()
    )
    x = torch.randn(32, 48)
    with pytest.warns(UserWarning, match=f"{op}.* gives? "):
        assert not programs(compiled_by_numpy(step, x, x))
