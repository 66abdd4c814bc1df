"""What changes between the calls of a compiled function in ways that are easy to overlook: eager's results each
time."""

from __future__ import annotations

import contextvars
import io
import operator
import random
import sys
import types
import weakref
from collections import OrderedDict, deque

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.compile import compile, programs

pytestmark = pytest.mark.filterwarnings("ignore")


class Settings:
    k = 1.0


class Named(dict):
    def twice(self):
        return SCALE[0] * 2


SCALE = [1.0]
MODULE = types.ModuleType("a_module_of_the_users")
MODULE.k, MODULE.inner = 1.0, types.ModuleType("a_module_of_the_users.inner")
MODULE.inner.k = 1.0
sys.modules[MODULE.__name__] = MODULE
VARIABLE = contextvars.ContextVar("VARIABLE", default=1.0)


def read_by_import(x):
    from a_module_of_the_users import k

    return x * k


def one(x):
    return x * 1


def seven(x):
    return x * 7


def state(kind):
    """(function of x, what changes between two of its calls)."""
    s = Settings()
    module = nn.Sequential(nn.Linear(2, 2))
    with torch.no_grad():
        module[0].weight.fill_(1)
        module[0].bias.fill_(0)
    t, numbers, ordered = torch.ones(2), {"k": 1.0}, OrderedDict(a=2.0, b=3.0)
    t.k, s.module, waiting, big = 1.0, MODULE, deque([1.0]), np.ones(5000)

    def in_order(x):
        for v in ordered.values():
            x = x * v + 1
        return x

    get, attribute, reference, named = numbers.get, operator.attrgetter("k"), weakref.ref(s), Named(k=1)
    return {
        "sign of a zero": (lambda x: 1 / (x * numbers["z"]), numbers.__setitem__, ("z", 0.0), ("z", -0.0)),
        "attribute of a tensor": (lambda x: x * t.k, setattr, (t, "k", 1.0), (t, "k", 5.0)),
        "number in a deque": (lambda x: x * waiting[0], waiting.__setitem__, (0, 1.0), (0, 5.0)),
        "length of a deque": (lambda x: x * len(waiting), waiting.append, (1.0,), (5.0,)),
        "large array": (lambda x: x * 2 if big[3] > 2 else x * 3, big.__setitem__, (3, 1.0), (3, 5.0)),
        "variable of the context": (lambda x: x * VARIABLE.get(), VARIABLE.set, (1.0,), (5.0,)),
        "weak reference": (lambda x: x * reference().k, setattr, (s, "k", 1.0), (s, "k", 5.0)),
        "method of a dict": (lambda x: x * get("k"), numbers.__setitem__, ("k", 1.0), ("k", 5.0)),
        "attrgetter": (lambda x: x * attribute(s), setattr, (s, "k", 1.0), (s, "k", 5.0)),
        "import inside": (read_by_import, setattr, (MODULE, "k", 1.0), (MODULE, "k", 5.0)),
        "module in an attribute": (lambda x: x * s.module.k, setattr, (MODULE, "k", 1.0), (MODULE, "k", 5.0)),
        "module in a module": (
            lambda x: x * MODULE.inner.k,
            setattr,
            (MODULE.inner, "k", 1.0),
            (MODULE.inner, "k", 5.0),
        ),
        "order of a dict": (in_order, ordered.move_to_end, ("b",), ("a",)),
        "class of a dict": (lambda x: x * named.twice(), SCALE.__setitem__, (0, 1.0), (0, 5.0)),
        "code of a function": (lambda x: one(x), setattr, *[(one, "__code__", f.__code__) for f in (one, seven)]),
        "hooks of all modules": (
            lambda x: module(x),
            lambda f: f(),
            (lambda: None,),
            (lambda: nn.modules.module.register_module_forward_hook(lambda m, i, o: o * 3),),
        ),
    }[kind], s


KINDS = (
    "sign of a zero",
    "attribute of a tensor",
    "number in a deque",
    "length of a deque",
    "large array",
    "variable of the context",
    "weak reference",
    "method of a dict",
    "attrgetter",
    "import inside",
    "module in an attribute",
    "module in a module",
    "order of a dict",
    "class of a dict",
    "code of a function",
    "hooks of all modules",
)


@pytest.mark.parametrize("kind", KINDS)
def test_state_that_changes(kind, monkeypatch):
    monkeypatch.setattr("rushlight.nn.hooks.EVERYWHERE", everywhere := sys.modules["rushlight.nn.hooks"].EVERYWHERE)
    (f, change, first, second), _ = state(kind)
    g, code, x = compile(f, backend="numpy"), one.__code__, torch.ones(2)
    try:
        change(*first)
        for _ in range(3):
            assert g(x).tolist() == f(x).tolist()
        change(*second)
        for _ in range(3):
            assert g(x).tolist() == f(x).tolist()
    finally:
        everywhere.clear()
        one.__code__ = code


def both(make, calls):
    """What `calls` (a function of the function that is called) gives as it is and compiled; `make` makes the
    function."""
    return [calls(how(make())) for how in (lambda f: f, lambda f: compile(f, backend="numpy"))]


def drawing(kind):
    random.seed(0)
    np.random.seed(0)
    return {
        "python": random.random,
        "numpy": np.random.rand,
        "own": random.Random(0).random,
        "generator": np.random.default_rng(0).random,
        "iterator": iter([0.1] * 6 + [0.95] * 34).__next__,
    }[kind]


@pytest.mark.parametrize("kind", ["python", "numpy", "own", "generator", "iterator"])
def test_a_branch_that_python_draws(kind):
    def make():
        draw = drawing(kind)
        return lambda x: x * 2 if draw() < 0.9 else x * 3

    want, got = both(make, lambda f: [f(torch.ones(1)).item() for _ in range(40)])
    assert got == want


def test_arguments_that_differ_in_the_sign_of_a_zero_and_slices():
    want, got = both(
        lambda: lambda x, k: 1 / (x * k), lambda f: [f(torch.ones(1), k).item() for k in (0.0, 0.0, 0.0, -0.0)]
    )
    assert got == want
    slices = [slice(0, 2)] * 3 + [slice(1, 3), slice(torch.tensor(2), None)]
    want, got = both(lambda: lambda x, k: x[k] * 2, lambda f: [f(torch.arange(3.0), k).tolist() for k in slices])
    assert got == want


def test_arguments_with_attributes():
    def calls(f):
        found = []
        for k in (1.0, 1.0, 1.0, 5.0, 5.0):
            x = torch.ones(1)
            x.k = k
            found += [f(x).item(), x.seen]
        return found

    def f(x):
        x.seen = x.k + 1
        return x * x.k

    want, got = both(lambda: f, calls)
    assert got == want


@pytest.mark.parametrize("kind", ["tensor", "done"])
def test_hooks_on_parameters(kind):
    def calls(make):
        p = nn.Parameter(torch.ones(2))
        optimizer = torch.optim.SGD([p], lr=0.1)

        def step(x):
            optimizer.zero_grad()
            (p * x).sum().backward()
            optimizer.step()
            return p.sum().detach()

        def thrice(p):
            p.grad.mul_(3)

        f, found = make(step), []
        for i in range(8):
            if i == 3:
                handle = (
                    p.register_hook(lambda g: g * 10)
                    if kind == "tensor"
                    else p.register_post_accumulate_grad_hook(thrice)
                )
            if i == 6:
                handle.remove()
            found.append(f(torch.ones(2)).item())
        return found

    assert calls(lambda f: compile(f, backend="numpy")) == calls(lambda f: f)


def test_hooks_on_arguments():
    def step(x):
        (x * 2).sum().backward()
        return x.grad * 1

    def calls(f):
        found = []
        for i in range(6):
            x = torch.ones(1, requires_grad=True)
            if i > 2:
                x.register_hook(lambda g: g * 10)
            found += [f(x).item(), x.grad.item()]
        return found

    want, got = both(lambda: step, calls)
    assert got == want


@pytest.mark.parametrize("where", ["file", "output", "inside"])
def test_files_and_what_is_printed(capsys, where):
    """Each call writes, also where nothing else changes."""

    def inside(x):
        print("c")
        return x

    def calls(how):
        text = io.StringIO()

        def in_file(x):
            y = x * 2
            text.write("a")
            return y + 1

        def printed(x):
            y = x * 2
            print("b")
            return y + 1

        f = how({"file": in_file, "output": printed, "inside": lambda x: inside(x * 2) + 1}[where])
        assert [f(torch.ones(1)).item() for _ in range(8)] == [3] * 8
        return text.getvalue() + capsys.readouterr().out

    want = calls(lambda f: f)
    assert len(want.split() or want) in (1, 8)
    assert calls(lambda f: compile(f, backend="numpy")) == want


def test_a_class_that_counts():
    class Counting:
        n = 0

        def __call__(self, x):
            Counting.n += 1
            return x * 2

    f = compile(Counting(), backend="numpy")
    for _ in range(6):
        f(torch.ones(1))
    assert Counting.n == 6


def test_a_setting_is_not_another_number_that_changed_with_it():
    def calls(how):
        p, s = nn.Parameter(torch.ones(1)), {"k": 0.1}
        optimizer = torch.optim.SGD([p], lr=0.1)

        def step():
            optimizer.zero_grad()
            (p * s["k"]).sum().backward()
            optimizer.step()
            return p.detach().clone()

        f, found = how(step), []
        for k, lr in ((0.1, 0.1), (0.1, 0.1), (0.2, 0.2), (0.3, 0.3), (0.3, 0.3), (0.3, 0.4), (0.3, 0.5)):
            s["k"] = optimizer.param_groups[0]["lr"] = k
            optimizer.param_groups[0]["lr"] = lr
            found.append(f().item())
        return found

    assert calls(lambda f: compile(f, backend="numpy")) == pytest.approx(calls(lambda f: f))


def test_a_result_that_shows_written_memory_goes_on_showing_it():
    def calls(how):
        s = torch.ones(3)

        def f(x):
            s.mul_(2)
            return s.detach(), x + 1

        f = how(f)
        for _ in range(4):
            f(torch.ones(1))[0].add_(1)
        return s.tolist()

    assert calls(lambda f: compile(f, backend="numpy")) == calls(lambda f: f)


def test_a_constant_that_is_written():
    s = torch.ones(3)

    def f(x):
        s.zero_()
        return s.sum() + x

    g = compile(f, backend="numpy")
    for _ in range(4):
        s.fill_(5)
        assert g(torch.ones(1)).item() == 1
        assert s.tolist() == [0, 0, 0]
    assert programs(g)


@pytest.mark.parametrize(
    ("f", "first", "second"),
    [
        (lambda r: torch.arange(2.0).repeat_interleave(r), torch.tensor([1, 2]), torch.tensor([2, 1])),
        (lambda x: torch.tensor(x), torch.ones(2), torch.zeros(2)),
        (lambda x: torch.tensor([x[0], x[1]]), torch.ones(2), torch.zeros(2)),
        (lambda x: torch.ones(1) * (1.0 in x), torch.ones(2), torch.zeros(2)),
        (lambda x: torch.ones(1) * x.storage()[0], torch.ones(2), torch.zeros(2)),
        (lambda i: torch.zeros(3).index_fill(0, i, 1.0), torch.tensor([0]), torch.tensor([5])),
        (lambda i: torch.unravel_index(i, (2, 2))[0] * 1, torch.tensor([0]), torch.tensor([3])),
        (torch.linalg.cholesky, torch.eye(2), -torch.eye(2)),
        (torch.linalg.inv, torch.eye(2), torch.ones(2, 2)),
        (lambda a: torch.linalg.solve(a, torch.ones(2)), torch.eye(2), torch.ones(2, 2)),
        (lambda m: torch.arange(3.0)[m] * 2 + 1, torch.tensor([True, False, True]), torch.tensor([False, True, False])),
        (lambda x: x.masked_select(x > 1) * 2 + 1, torch.tensor([1, 2, 3]), torch.tensor([0, 1, 2])),
        (lambda x: x.unique() * 2 + 1, torch.tensor([1, 2, 3]), torch.tensor([1, 2, 1])),
        (lambda x: x.unique_consecutive() * 2 + 1, torch.tensor([1, 2, 1]), torch.tensor([1, 1, 2])),
        (lambda x: torch.bincount(x, minlength=3) * 2 + 1, torch.tensor([1, 2]), torch.tensor([4, 2])),
    ],
)
def test_numbers_that_decide(f, first, second):
    g = compile(f, backend="numpy")
    for x in (first, first, first, second, first):
        found = []
        for h in (f, g):
            try:
                found.append(h(x).tolist())
            except (RuntimeError, IndexError) as error:
                found.append(type(error))
        assert found[0] == found[1]


def test_masks_of_the_functions_own():
    """Their numbers decide shapes: a program is for these."""
    mask, x = torch.tensor([True, False, True]), torch.arange(6.0).reshape(3, 2)

    def f(x):
        return (x[mask & torch.tensor([True, True, True])] + 1) * 2

    def turning(x):
        mask.logical_not_()
        return (x[mask] + 1) * 2

    g = compile(f, backend="numpy")
    for i in range(9):
        if i in (3, 7):
            mask.logical_not_()
        assert g(x).tolist() == f(x).tolist()
    assert len(programs(g)) == 2
    g = compile(turning, backend="numpy")
    assert [g(x).tolist() for _ in range(4)] == [[[6, 8]], [[2, 4], [10, 12]]] * 2
    assert not programs(g)


@pytest.mark.parametrize("zeroed", [False, True])
def test_gradients_of_arguments_add_up(zeroed):
    """The short way into a program looks at arguments as they were given, without the gradient that the program
    made."""

    def f(x, w):
        if zeroed:
            w.grad = None
        loss = (x * w).sum()
        loss.backward()
        return loss.detach()

    run, x, found = torch.compile(f), torch.arange(3.0), []
    for calls in (1, 1, 1, 1, 3, 2, 1, 4, 4):
        w = torch.ones(3).requires_grad_()
        for _ in range(calls):
            run(x, w)
        found.append((w.grad / (1 if zeroed else calls)).tolist())
    assert found == [[0.0, 1.0, 2.0]] * 9


@pytest.mark.parametrize("name", ["Rprop", "Adafactor", "Adadelta"])
def test_a_schedule_of_a_setting_that_steps_do_not_read(name):
    """Rprop reads its rate in its first step alone: a program serves all the others."""

    def run(wrapped):
        torch.manual_seed(0)
        w = torch.randn(5).requires_grad_()
        optimizer = getattr(torch.optim, name)([w], lr=0.1)
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)

        def step(x):
            optimizer.zero_grad()
            loss = (w * x).square().sum()
            loss.backward()
            optimizer.step()
            return loss.detach()

        f = wrapped(step)
        found = [f(torch.randn(5)).item() for _ in range(14) if schedule.step() is None]
        return found + w.tolist(), f

    want, _ = run(lambda f: f)
    got, f = run(lambda f: compile(f, backend="numpy"))
    assert got == pytest.approx(want, rel=1e-5)
    assert len(programs(f)) <= 2, len(programs(f))


@pytest.mark.parametrize("name", ["fill_diagonal_", "vander", "addmm", "addr"])
def test_constants_that_functions_make_for_themselves(name):
    calls = {
        "fill_diagonal_": lambda x: x.clone().fill_diagonal_(2.0) * x,
        "vander": lambda x: torch.vander(x[0], 3) * x,
        "addmm": lambda x: torch.addmm(x, x, x, beta=0),
        "addr": lambda x: torch.addr(x, x[0], x[1], beta=0),
    }
    f = compile(lambda x: calls[name](x).sin().sum().backward(), backend="numpy", fullgraph=True)
    for k in range(5):
        x, y = [(torch.arange(9.0).view(3, 3) / 7 + k).requires_grad_() for _ in "xy"]
        f(x)
        calls[name](y).sin().sum().backward()
        torch.testing.assert_close(x.grad, y.grad)
    assert len(programs(f)) == 1
