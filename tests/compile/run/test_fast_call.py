"""The short way from a call to its program: whatever has changed since the last call, the result is eager's."""

from __future__ import annotations

import copy
import threading

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn, optim
from rushlight.compile import compile, programs
from rushlight.compile.run.fast_call import MISSED

pytest.importorskip("llvmlite")


def ready(f, *args):
    """f compiled, called until the short way is there."""
    g = compile(f)
    for _ in range(4):
        g(*args)
    assert g.enter is not None
    assert g.enter(args) is not MISSED
    return g


def same(g, f, *args, **kwargs):
    got, expected = g(*args, **kwargs), f(*args, **kwargs)
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(got.detach().numpy(), expected.detach().numpy(), rtol=1e-6)


def affine(x, y, k=2):
    return torch.tanh(x) * k + y


def test_other_arguments_than_those_that_it_was_written_for():
    x, y = torch.rand(3, 4), torch.rand(3, 4)
    g = ready(affine, x, y)
    for args in (
        (x, y),
        (y, x),
        (x, x),
        (x[:2], y[:2]),
        (x, torch.rand(4)),
        (x.double(), y),
        (x.T.contiguous().T, y),
        (x, 3.0),
        (x, y, 2),
        (x, y, 2.5),
        (x, y, True),
    ):
        same(g, affine, *args)
    same(g, affine, x, y=y)
    same(g, affine, x=x, y=y, k=3)
    with pytest.raises(TypeError):
        g(x)


def test_plain_values_count_by_type_and_value():
    x, y = torch.rand(3), torch.rand(3)
    g = ready(affine, x, y, 1)
    for k in (1, True, 1.0, 2, np.float64(1.0)):
        same(g, affine, x, y, k)
    assert g.enter((x, y, 7.5)) is MISSED


def test_two_arguments_that_are_one_array():
    x, y = torch.rand(3), torch.rand(3)
    g = ready(lambda a, b: a.mul_(2) + b, x, y)
    a = torch.ones(3)
    assert g(a, a).tolist() == [4, 4, 4]
    b = torch.ones(4)
    assert g(b[:3], b[1:]).tolist() == [4, 4, 3]


def test_surroundings_that_change():
    w = torch.rand(4, 4, requires_grad=True)

    def f(x):
        return x @ w

    x = torch.rand(2, 4)
    with torch.no_grad():
        g = ready(f, x)
        same(g, f, x)
    assert g(x).requires_grad
    with torch.no_grad():
        assert not g(x).requires_grad
    with torch.inference_mode():
        assert g(x).is_inference() is f(x).is_inference()
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        assert g(x).dtype == f(x).dtype == torch.bfloat16
    with torch.no_grad():
        same(g, f, x)
    torch.set_default_dtype(torch.float64)
    try:
        with torch.no_grad():
            assert g(x).dtype == f(x).dtype
    finally:
        torch.set_default_dtype(torch.float32)


def trained(change):
    """Parameters and losses after some steps; between them, `change(i, model, optimizer)`."""
    found = []
    for compiled in (True, False):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.0), nn.Linear(8, 1))
        optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.5)

        def step(x, y, model=model, optimizer=optimizer):
            optimizer.zero_grad()
            loss = ((model(x) - y) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        g = compile(step) if compiled else step
        x, y = torch.rand(6, 4), torch.rand(6, 1)
        losses = []
        for i in range(12):
            losses.append(float(g(x, y)))
            if i > 6:
                change(i, model, optimizer)
        found.append(
            [
                *losses,
                *(p.detach().numpy().copy() for p in model.parameters()),
                *(None if p.grad is None else p.grad.numpy().copy() for p in model.parameters()),
            ]
        )
    for a, b in zip(*found):
        assert (a is None) is (b is None)
        if a is not None:
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)


def rebind(i, model, optimizer):
    model[0].weight.data = torch.full((8, 4), 0.1 * i)


def replace(i, model, optimizer):
    model[3] = nn.Linear(8, 1)
    optimizer.param_groups[0]["params"][2:] = list(model[3].parameters())


def rate(i, model, optimizer):
    optimizer.param_groups[0]["lr"] *= 0.5


def freeze(i, model, optimizer):
    model[0].weight.requires_grad = i % 2 == 0


def write(i, model, optimizer):
    with torch.no_grad():
        model[0].weight.mul_(0.5)


def gradient(i, model, optimizer):
    model[0].weight.grad = None if i % 2 else torch.ones(8, 4)


KEPT: list = []


def keep(i, model, optimizer):
    KEPT.extend((p.grad, p.grad.clone()) for p in model.parameters())


def hook(i, model, optimizer):
    model[1].register_forward_hook(lambda m, args, out: out * 0.5)


def evaluate(i, model, optimizer):
    model[2].p = 0.5
    model.train(i % 2 == 0)


CHANGES = [rebind, replace, rate, freeze, write, gradient, keep, hook, evaluate]


@pytest.mark.parametrize("change", CHANGES, ids=lambda f: f.__name__)
def test_a_step_between_whose_calls_things_change(change):
    trained(change)


def test_gradients_that_were_handed_out_stay_as_they_are():
    KEPT.clear()
    trained(keep)
    assert len(KEPT) == 40
    assert all(torch.equal(g, then) for g, then in KEPT)


def test_writes_are_counted():
    w = torch.ones(3, requires_grad=True)

    def step(x):
        with torch.no_grad():
            w.add_(x)
        return x * 2

    g = ready(step, torch.ones(3))
    before = w._version
    g(torch.ones(3))
    assert w._version == before + 1
    y = (w * w).sum()
    g(torch.ones(3))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_a_program_runs_in_one_thread_at_a_time():
    x, y = torch.rand(30, 40), torch.rand(30, 40)
    g = ready(affine, x, y)
    expected, wrong = affine(x, y).numpy(), []

    def work():
        for _ in range(200):
            if not np.allclose(g(x, y).numpy(), expected, rtol=1e-6):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_an_error_leaves_the_way_open():
    def f(x, i):
        return nn.functional.cross_entropy(x, i)

    x, i = torch.rand(4, 3), torch.tensor([0, 1, 2, 0])
    g = ready(f, x, i)
    with pytest.raises(IndexError):
        g(x, torch.tensor([0, 1, 5, 0]))
    same(g, f, x, i)
    assert len(programs(g)) == 1


def test_it_forgets_with_its_programs():
    x, y = torch.rand(3), torch.rand(3)
    g = ready(affine, x, y)
    g.forget()
    assert g.enter is None
    same(g, affine, x, y)


def test_modes_are_torchs():
    for mode in (None, "default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune"):
        f = compile(affine, mode=mode)
        same(f, affine, torch.ones(2), torch.ones(2))
    with pytest.raises(RuntimeError, match="Unrecognized mode=fast, should be one of: default, lite"):
        compile(affine, mode="fast")
    with pytest.raises(RuntimeError, match="Either mode or options can be specified"):
        compile(affine, mode="default", options={"fuse": False})


def test_memory_that_may_not_be_written_is_not():
    """Loops are called without being asked what they are given: by then somebody has looked."""

    def f(x, y):
        x.mul_(2).add_(y)
        z = x * 3 + y
        return (z * z + 1).sum()

    x, y = torch.rand(10), torch.rand(10)
    g = ready(f, x, y)
    for fixed in (torch.rand(10), x):
        before = fixed._array.copy()
        fixed._array.flags.writeable = False
        with pytest.raises(RuntimeError):
            g(fixed, y)
        assert (fixed._array == before).all()


def test_gradients_that_are_others_in_each_call_go_the_short_way():
    """A step of its own, as after a backward outside: unless a gradient shares memory with what is written."""
    model = nn.Linear(3, 3)
    twin = copy.deepcopy(model)
    pairs = [(m, optim.SGD(m.parameters(), lr=0.1, momentum=0.9)) for m in (model, twin)]
    step = torch.compile(lambda: pairs[0][1].step(), backend="numpy")
    ways = []
    kept = step.long_way
    step.long_way = lambda *given: ways.append(i) or kept(*given)
    for i in range(12):
        for m, optimizer in pairs:
            if i == 8:  # the weight is its own gradient
                m.weight.grad = m.weight.detach()[:]
            else:
                optimizer.zero_grad()
                m(torch.ones(2, 3)).pow(2).sum().backward()
            step() if m is model else optimizer.step()
        assert torch.equal(model.weight, twin.weight)
        assert torch.equal(model.bias, twin.bias)
    assert 8 in ways
    assert not {5, 6, 7, 10, 11} & {*ways}
