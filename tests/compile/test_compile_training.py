"""Training steps as users write them: eager's numbers in each call, and compiled where that can be."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn, optim
from rushlight.compile import compile, programs
from rushlight.nn import functional as F

pytestmark = pytest.mark.filterwarnings("ignore")


def played(make, arguments, **how):
    """What a step gives in each call, and the parameters it leaves, as it is and compiled; the compiled function."""
    found = []
    for c in (lambda f: f, lambda f: compile(f, backend="numpy", **how)):
        torch.manual_seed(0)
        step, params = make()
        run = c(step)
        results = [run(*a) for a in arguments()]
        found.append([np.asarray(r, np.float32) for r in results] + [p.detach().numpy() for p in params])
    for a, b in zip(*found):
        np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-6)
    return run


def batches(n, *more):
    numbers = np.random.default_rng(0)
    for i in range(n):
        yield (
            torch.tensor(numbers.standard_normal((8, 4)), dtype=torch.float32),
            torch.tensor(numbers.integers(0, 3, 8)),
            *(m(i) for m in more),
        )


class Counting(optim.Optimizer):
    """Adam's step as many write it: its counter is a Python number in `state`."""

    def __init__(self, params, lr=1e-2):
        super().__init__(params, {"lr": lr})

    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["step"], state["m"] = 0, torch.zeros_like(p.data)
                state["step"] += 1
                state["m"].mul_(0.9).add_(p.grad.data, alpha=0.1)
                p.data.add_(state["m"], alpha=-group["lr"] / (1 - 0.9 ** state["step"]))


def test_the_state_of_an_optimizer_counts_where_it_is_read():
    def make():
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        optimizer = Counting(model.parameters())

        def step(x, y):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step, [*model.parameters()]

    run = played(make, lambda: batches(30))
    assert any("backward" in "".join(item.places) for p in programs(run) for item in p.items)


def test_an_optimizers_own_names_lead_to_its_state():
    class Scaled(optim.SGD):
        def rescale(self):
            for p in self.param_groups[0]["params"]:
                p.grad.mul_(self.state["scale"])

    def make():
        model = nn.Linear(4, 3)
        optimizer = Scaled(model.parameters(), lr=0.1)
        optimizer.state["scale"] = 1.0

        def step(x, y, i):
            if i == 6:
                set_scale(optimizer, 3.0)
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.rescale()
            return model.weight.grad

        return step, [*model.parameters()]

    played(make, lambda: batches(9, lambda i: min(i, 6)))


def set_scale(optimizer, scale):
    optimizer.state["scale"] = scale


def test_a_weight_that_is_another_one_in_each_call():
    """mixup: the loss is mixed in Python, what stands before and after it is compiled."""

    def make():
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        optimizer = optim.SGD(model.parameters(), lr=0.1)

        def step(x, y, part):
            out = model(x)
            loss = part * F.cross_entropy(out, y) + (1 - part) * F.cross_entropy(out, y.flip(0))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step, [*model.parameters()]

    parts = np.random.default_rng(1).random(40).tolist()
    run = played(make, lambda: batches(24, lambda i: parts[i]))
    assert 2 <= len(programs(run)) <= 4


def test_a_number_of_a_schedule_that_comes_to_rest():
    def make():
        w = torch.ones(4)
        return (lambda x, y, beta: (x * beta * w).tanh().exp().sin().sum()), [w]

    played(make, lambda: batches(30, lambda i: min(1.0, i / 20)))


@pytest.mark.parametrize("context", [torch.no_grad(), torch.inference_mode(), torch.enable_grad()])
def test_decorated_functions_in_pieces(context):
    def make():
        model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 3))

        @context
        def evaluate(x, y):
            model.eval()
            out = model(x)
            loss = F.cross_entropy(out, y).item()
            right = (out.argmax(-1) == y).float().mean()
            model.train()
            return loss, right.item()

        return evaluate, []

    assert programs(played(make, lambda: batches(8)))


def test_functions_that_are_called_in_try_are_compiled_in_pieces():
    def make():
        model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))

        def losses(x, y):
            out = model(x)
            return F.cross_entropy(out, y).item()

        def evaluate(x, y):
            model.eval()
            try:
                return losses(x, y)
            finally:
                model.train()

        return evaluate, []

    assert programs(played(make, lambda: batches(8)))


class Remembering(nn.Module):
    """Keeps what its layers gave last: as attributes, in a list, in a dict, the batch itself, with and without
    history."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 3)
        self.last, self.given, self.seen, self.parts = None, None, {}, [None, None]
        self.a.register_forward_hook(lambda module, args, out: self.seen.__setitem__("a", out.detach()))

    def forward(self, x):
        self.given = x
        hidden = self.a(x).tanh()
        self.last = self.parts[1] = hidden.detach() * 2
        self.parts[0] = hidden.sum()
        return self.b(hidden)


@pytest.mark.parametrize("whole", [True, False])
def test_tensors_that_are_left_in_attributes_lists_and_dicts(whole):
    def run(c):
        torch.manual_seed(0)
        model, found = Remembering(), []
        optimizer = optim.SGD(model.parameters(), lr=0.1)

        def step(x, y):
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss.detach()

        def forward(x, y):
            return model(x)

        f, kept = c(step if whole else forward), []
        for i, (x, y) in enumerate(batches(12)):
            if i == 6:
                model.last, model.seen["a"] = None, torch.ones(1)
            if i == 9:
                model.eval()
            out = f(x, y)
            if not whole:
                (out.sum() + model.parts[0]).backward()
            assert model.given is x
            assert model.last is model.parts[1]
            assert model.parts[0].requires_grad
            assert not model.last.requires_grad
            kept += [model.last, model.seen["a"]]
            found += [
                out.detach().numpy(),
                model.last.numpy().copy(),
                model.seen["a"].numpy().copy(),
                model.parts[0].detach().numpy().copy(),
                model.a.weight.grad.numpy().copy(),
            ]
        return [*found, *[t.numpy() for t in kept]], f

    (expected, _), (found, f) = run(lambda f: f), run(lambda f: compile(f, backend="numpy"))
    for a, b in zip(expected, found):
        np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-6)
    assert programs(f)
    assert not f.given_up


def test_a_state_that_is_read_and_replaced_goes_on():
    def make():
        cell, memory = nn.GRUCell(4, 4), {"h": torch.zeros(8, 4), "mean": torch.zeros(4)}

        def step(x, y):
            with torch.no_grad():
                memory["h"] = cell(x, memory["h"])
                memory["mean"] = memory["h"].mean(0)
            return memory["mean"] * 1

        return step, []

    played(make, lambda: batches(12))


def test_a_tensor_that_is_looked_at_before_it_is_replaced():
    def make():
        memory = [torch.zeros(8, 4)]

        def step(x, y):
            grows = memory[0].shape == x.shape and memory[0].requires_grad
            memory[0] = (x * 2)[:4] if x.sum() > 1e9 else x * 2
            return memory[0] + grows

        return step, []

    played(make, lambda: batches(12))

    def shapes():
        memory = [torch.zeros(8, 4)]

        def step(x, y):
            longer = memory[0].shape[0]
            memory[0] = x * 2
            return x * longer

        return step, []

    played(shapes, lambda: ((x[:n], y) for n, (x, y) in zip((8, 8, 8, 8, 4, 8, 4, 4, 4, 4, 8, 8), batches(12))))


def test_a_learning_rate_is_read_once_for_all_parameters():
    models = [nn.Sequential(*[nn.Linear(4, 4) for _ in range(4)]) for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    optimizers = [optim.SGD(m.parameters(), lr=0.1, momentum=0.9) for m in models]

    def step(k, x, y):
        optimizers[k].zero_grad()
        loss = F.cross_entropy(models[k](x), y)
        loss.backward()
        optimizers[k].step()
        return loss.detach()

    run = compile(lambda x, y: step(0, x, y), backend="numpy")
    for i, (x, y) in enumerate(batches(8)):
        for optimizer in optimizers:
            optimizer.param_groups[0]["lr"] = 0.1 * 0.9**i
        assert torch.allclose(run(x, y), step(1, x, y))
    [program] = programs(run)
    assert [kind for kind, _ in program.forward.sources].count("number") == 1


def test_a_gradient_of_zeros_is_one():
    """Backward from one of two results, whose slope is zero everywhere, gives a leaf zeros, as in eager."""

    def f(x, w):
        return (x * w).exp(), w.sign(), x * 2

    g = compile(f, backend="numpy")
    for h in (f, g):
        for i in range(6):
            w = torch.ones(3, requires_grad=True)
            h(torch.ones(3), w)[i % 2].sum().backward()
            assert w.grad.tolist() == pytest.approx([0.0, 0.0, 0.0] if i % 2 else [np.e] * 3)
    assert programs(g)


@pytest.mark.parametrize(
    "op",
    [
        lambda x, i: x.gather(0, i),
        lambda x, i: x[i],
        lambda x, i: F.embedding(i, x.reshape(4, 1)),
        lambda x, i: x.take(i),
        lambda x, i: F.cross_entropy(x.reshape(1, -1), i),
        lambda x, i: x.scatter(0, i, 1.0),
        lambda x, i: F.one_hot(i, 4),
        lambda x, i: F.binary_cross_entropy(i.float() / 4, torch.ones(1)),
    ],
)
def test_an_error_that_is_caught_may_not_come_again(op):
    def f(x, i):
        try:
            return op(x, i) * 2
        except (RuntimeError, IndexError, ValueError):
            return x.sum() + 3

    g, x = compile(f, backend="numpy"), torch.arange(4.0)
    for i in (7, 7, 7, 7, 1, 2):
        assert torch.equal(g(x, torch.tensor([i])), f(x, torch.tensor([i])))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_every_precision_is_trained_compiled(dtype):
    layer = torch.nn.Linear(4, 3).to(getattr(torch, dtype))
    alike, x = copy.deepcopy(layer), torch.rand(2, 4).to(getattr(torch, dtype))

    def stepping(model):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def step(x):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        return step

    compiled, plain = torch.compile(stepping(layer), fullgraph=True), stepping(alike)
    for _ in range(5):
        assert torch.allclose(compiled(x), plain(x), rtol=1e-2)
    assert all(torch.allclose(a, b, rtol=2e-2, atol=1e-2) for a, b in zip(layer.parameters(), alike.parameters()))
    assert not compiled.given_up
