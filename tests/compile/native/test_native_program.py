"""Native functions as Python calls them (compile/native/native_program.py): parameters that change, memory that NumPy
shares, threads, and graphs without a native function."""

from __future__ import annotations

import threading

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import rushlight as torch
from rushlight import nn
from rushlight.compile import compile, programs


def small():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(2, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(96, 5)
    ).eval()


def served(model, *args):
    """(the compiled model after four calls, its program)."""
    f = compile(model)
    for _ in range(4):
        f(*args)
    (program,) = programs(f)
    return f, program


@pytest.fixture(autouse=True)
def without_gradients():
    with torch.no_grad():
        yield


def test_a_model_is_one_function():
    model, x = small(), torch.randn(3, 2, 8, 8)
    f, program = served(model, x)
    assert program.native is not None, program.native_reason
    torch.testing.assert_close(f(x), model(x))


def written(model):
    model[0].weight.mul_(1.5)


def statistics(model):
    model[1].running_mean.add_(0.5)


def loaded(model):
    model.load_state_dict({k: v * 1.25 for k, v in model.state_dict().items()})


def replaced(model):
    model[5].bias = nn.Parameter(torch.ones(5))


def moved(model):
    model[5].weight.data = torch.ones(5, 96)


@pytest.mark.parametrize("change", [written, statistics, loaded, replaced, moved], ids=lambda f: f.__name__)
def test_parameters_that_change(change):
    model, x = small(), torch.randn(3, 2, 8, 8)
    f, _ = served(model, x)
    before = f(x)
    change(model)
    for _ in range(4):
        torch.testing.assert_close(f(x), model(x))
    assert not torch.equal(before, f(x))


def by_numpy(model):
    return model[5].weight.detach().numpy()


def by_dlpack(model):
    return np.from_dlpack(model[5].weight.detach())


def by_storage(model):
    return model[5].weight.untyped_storage()


def from_array(model):
    array = np.ones((5, 96), np.float32)
    model[5].weight.data = torch.from_numpy(array)
    return array


@pytest.mark.parametrize("share", [by_numpy, by_dlpack, from_array], ids=lambda f: f.__name__)
@pytest.mark.parametrize("first", [True, False])
def test_memory_that_numpy_shares(share, first):
    """`first`: before the model is compiled."""
    model, x = small(), torch.randn(3, 2, 8, 8)
    array = share(model) if first else None
    f, _ = served(model, x)
    if array is None:
        array = share(model)
        f(x)
    for k in range(4):
        array[...] = k
        torch.testing.assert_close(f(x), model(x))


def test_storage_that_changes():
    model, x = small(), torch.randn(3, 2, 8, 8)
    f, _ = served(model, x)
    cells = by_storage(model)
    for k in range(4):
        cells.fill_(k)
        torch.testing.assert_close(f(x), model(x))


def test_results_are_new_in_each_call():
    model, x = small(), torch.randn(3, 2, 8, 8)
    f, _ = served(model, x)
    first = f(x)
    kept = first.clone()
    f(x * 2)
    assert torch.equal(first, kept)


def test_threads_call_one_function():
    model = small()
    xs = [torch.randn(3, 2, 8, 8) for _ in range(4)]
    f, _ = served(model, xs[0])
    right, wrong = [model(x) for x in xs], []

    def work(k):
        with torch.no_grad():
            for _ in range(50):
                if not torch.allclose(f(xs[k]), right[k], atol=1e-5):
                    wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_two_cores_give_the_same_bits(monkeypatch):
    model = nn.Sequential(
        nn.Conv2d(8, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 24, 3), nn.Flatten(), nn.Linear(4704, 70)
    )
    x = torch.randn(2, 8, 16, 16)
    found = []
    for cores in (1, 2, 3):
        monkeypatch.setattr("rushlight.base.threads.chosen", cores)
        f, program = served(model, x)
        assert program.native.code.threads is (cores > 1)
        found += [f(x) for _ in range(20)]
    for y in found[1:]:
        assert torch.equal(found[0], y)


@pytest.mark.parametrize(
    ("f", "reason"),
    [
        (lambda x: x.detach(), "share memory"),
        (lambda x: (x * 2, x.add_(1)), "writes"),
        (lambda x: x + torch.rand(3), "random"),
        (lambda x: x.sort().values * 2, "not lowered"),
    ],
)
def test_graphs_without_a_native_function(f, reason):
    g = compile(f)
    x = torch.eye(3)
    for _ in range(4):
        g(x.clone())
    for program in programs(g):
        assert program.native is None
        assert reason in program.native_reason


def test_other_backends_have_no_native_function():
    f = compile(lambda x: x * 2 + 1, backend="loops")
    for _ in range(4):
        f(torch.ones(5))
    assert programs(f)[0].native_reason == "it is switched off"
