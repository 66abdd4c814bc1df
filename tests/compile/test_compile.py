"""Compiled equals eager: whole steps, functions, backward; and never yesterday's numbers."""

from __future__ import annotations

import functools
import gc
import threading
import warnings

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn, optim
from rushlight.compile import CannotCompile, compile, programs, source
from rushlight.core.tensor import from_array
from rushlight.nn import functional as F

CALLS = 5  # two watched, one that compiles, two more


def quick(f, **options):
    """Compiled without loops: what is tested is the tracing."""
    return compile(f, backend="numpy", **options)


def batches(n, features=12, classes=4, size=8):
    rng = np.random.default_rng(0)
    return [
        (
            torch.tensor(rng.standard_normal((size, features)).astype(np.float32)),
            torch.tensor(rng.integers(0, classes, size)),
        )
        for _ in range(n)
    ]


def mlp(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 8), nn.Tanh(), nn.Linear(8, 4))


def training(make, model):
    optimizer = make(model.parameters())

    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step, optimizer


def same(a, b, tolerance=1e-5):
    for p, q in zip(a, b):
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=tolerance, atol=tolerance)


def both(make, backend, n=8):
    """Two equal models trained n steps, one of them compiled: (losses, models, compiled step)."""
    eager, compiled = mlp(), mlp()
    (step, _), (other, _) = training(make, eager), training(make, compiled)
    fast = compile(other, backend=backend)
    losses = [(float(step(x, y)), float(fast(x, y))) for x, y in batches(n)]
    return losses, (eager, compiled), fast


OPTIMIZERS = {
    "SGD": lambda p: optim.SGD(p, lr=0.1),
    "momentum": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01, nesterov=True),
    "Adam": lambda p: optim.Adam(p, lr=0.01),
    "AdamW": lambda p: optim.AdamW(p, lr=0.01, amsgrad=True),
}


def test_fullgraph_waits_for_the_optimizers_state():
    step, _ = training(OPTIMIZERS["Adam"], mlp())
    f = quick(step, fullgraph=True)
    for x, y in batches(CALLS):
        f(x, y)
    assert programs(f)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_steps_equal_eager(name):
    losses, models, fast = both(OPTIMIZERS[name], "numpy")
    assert programs(fast), fast.given_up
    np.testing.assert_allclose(*zip(*losses), rtol=1e-5)
    same(*(m.parameters() for m in models))
    same(*([p.grad for p in m.parameters()] for m in models))


def test_training_step_in_loops_equals_eager():
    pytest.importorskip("llvmlite")
    losses, models, fast = both(OPTIMIZERS["Adam"], "loops")
    np.testing.assert_allclose(*zip(*losses), rtol=1e-5)
    same(*(m.parameters() for m in models))
    same(*([p.grad for p in m.parameters()] for m in models))
    text = source(fast, full=True)
    assert "\ndef loop_0(" in text
    assert "matmul(" in text
    assert "test_compile.py" in text  # the user's lines are named
    assert text.count("# ") > 5


# -- never stale -----------------------------------------------------------------------------------


def test_new_numbers_and_new_shapes():
    f = quick(lambda x: (x * 2.0 + 0.0 * x).sum() * 1.0)
    for _ in range(CALLS):
        assert float(f(torch.tensor([1.0, 2.0]))) == 6
        assert float(f(torch.tensor([10.0, 20.0]))) == 60
        assert float(f(torch.tensor([1.0, 2.0, 3.0]))) == 12
        assert float(f(torch.tensor([1.0, 2.0], dtype=torch.float64))) == 6
    assert len(programs(f)) == 3
    assert "def " in source(f, full=True)


def test_python_values_in_arguments_and_closures():
    factor = 2.0

    def scaled(x, power=1):
        return x**power * factor

    f, x = quick(scaled), torch.tensor([1.0, 2.0])
    for _ in range(CALLS):
        assert f(x).tolist() == [2.0, 4.0]
        assert f(x, power=2).tolist() == [2.0, 8.0]
    factor = 3.0
    for _ in range(CALLS):
        assert f(x).tolist() == [3.0, 6.0]


SCALE = {"by": 1.0}


class Settings:
    offset = 0.0


def test_python_values_in_globals_attributes_and_lists():
    holder, layers = Settings(), [1.0, 2.0]

    def f(x):
        return x * SCALE["by"] + holder.offset + sum(layers)

    g, x = quick(f), torch.tensor([1.0])
    try:
        for SCALE["by"] in (1.0, 2.0):
            for Settings.offset in (0.0, 5.0):
                for _ in range(CALLS):
                    assert g(x).item() == f(x).item()
        layers.append(4.0)
        assert g(x).item() == f(x).item()
        holder.offset = 7.0
        assert g(x).item() == f(x).item()
    finally:
        SCALE["by"], Settings.offset = 1.0, 0.0


def test_learning_rate_of_a_scheduler():
    eager, compiled = mlp(), mlp()
    (step, a), (other, b) = training(OPTIMIZERS["SGD"], eager), training(OPTIMIZERS["SGD"], compiled)
    fast = quick(other)
    for i, (x, y) in enumerate(batches(15)):
        a.param_groups[0]["lr"] = b.param_groups[0]["lr"] = 0.1 / (1 + i // 5)
        assert float(step(x, y)) == pytest.approx(float(fast(x, y)), rel=1e-5)
    assert len(programs(fast)) == 2  # the second one reads the rate
    same(eager.parameters(), compiled.parameters())


def test_parameters_changed_and_replaced_from_outside():
    model = nn.Linear(3, 2)
    f, x = quick(lambda x: model(x)), torch.ones(1, 3)
    with torch.no_grad():
        for change in (
            lambda: None,
            lambda: model.weight.fill_(2),
            lambda: setattr(model.weight, "data", torch.ones(2, 3)),
            lambda: setattr(model, "weight", nn.Parameter(torch.zeros(2, 3))),
            lambda: setattr(model, "bias", None),
        ):
            change()
            for _ in range(CALLS):
                same([f(x)], [model(x)])


def test_gradients_set_none_or_accumulated():
    w = torch.tensor([1.0, 2.0], requires_grad=True)

    def step(x):
        loss = (w * x).sum()
        loss.backward()
        return loss

    f = quick(step)
    for _ in range(CALLS):  # from nothing: set
        w.grad = None
        f(torch.tensor([1.0, 10.0]))
        assert w.grad.tolist() == [1.0, 10.0]
    for k in range(2, 2 + CALLS):  # on top of what is there: added
        f(torch.tensor([1.0, 10.0]))
        assert w.grad.tolist() == [k, 10.0 * k]
    w.grad = torch.tensor([100.0, 100.0])
    f(torch.tensor([1.0, 10.0]))
    assert w.grad.tolist() == [101.0, 110.0]


def test_training_and_evaluation_mode():
    class Net(nn.Module):
        def forward(self, x):
            return x * 2 if self.training else x * 3

    net = Net()
    f, x = quick(net), torch.ones(2)
    for _ in range(CALLS):
        net.train()
        assert f(x).tolist() == [2.0, 2.0]
        net.eval()
        assert f(x).tolist() == [3.0, 3.0]


def test_requires_grad_switched_off():
    w, v = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)

    def step():
        w.grad = v.grad = None
        (w * v * 2).sum().backward()

    f = quick(step)
    for _ in range(CALLS):
        f()
        assert w.grad is not None
    w.requires_grad_(False)
    for _ in range(CALLS):
        f()
        assert w.grad is None
        assert v.grad.tolist() == [2.0, 2.0]


# -- what cannot be compiled runs as it is ---------------------------------------------------------


def stays(f, *args, calls=CALLS):
    """A compiled function that must give up: its results, checked against eager."""
    g = quick(f)
    with pytest.warns(UserWarning, match="runs as it is, not compiled") as caught:  # noqa: PT031
        for _ in range(calls + 3):
            got, want = g(*args), f(*args)
            if isinstance(want, torch.Tensor):
                assert got.tolist() == want.tolist()
    assert not programs(g)
    return str(caught[0].message)


@pytest.mark.parametrize(
    ("f", "why"),
    [
        (lambda x: from_array(np.sort(x._array)) + 1, "numbers that no op of the table has made"),
        (lambda x: (repr(x), x + 1)[1], "looks at the numbers"),
        (lambda x: (f"{x}", x + 1)[1], "looks at the numbers"),
        (lambda x: (repr(nn.Parameter(x)), x + 1)[1], "looks at the numbers"),
    ],
)
def test_what_goes_round_the_ops_is_never_a_constant(f, why):
    compiled = quick(f)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for i in range(CALLS):
            x = torch.tensor([3.0, i, 1.0])
            assert compiled(x).tolist() == f(x).tolist()
    assert why in str(caught[0].message)


def test_numbers_read_by_python_break_the_graph_and_name_the_line():
    message = stays(lambda x: x * x.sum().item(), torch.ones(2))
    assert "looks at the numbers" in message
    assert "test_compile.py" in message
    assert "x.sum().item()" in message
    stays(lambda x: x + 1 if x.sum() > 0 else x - 1, torch.ones(2))
    with pytest.raises(CannotCompile, match="looks at the numbers"):
        quick(lambda x: x * float(x.sum()), fullgraph=True)(torch.ones(2))


def test_an_if_on_data_takes_the_right_branch():
    f = quick(lambda x: x + 1 if x.sum() > 0 else x - 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(CALLS):
            assert f(torch.tensor([1.0])).item() == 2
            assert f(torch.tensor([-1.0])).item() == -2


def test_python_state_that_goes_on_changing():
    seen = []

    def f(x):
        seen.append(len(seen))
        return x * len(seen)

    g = quick(f)
    with pytest.warns(UserWarning, match="Python state"):
        assert [g(torch.ones(1)).item() for _ in range(30)] == list(range(1, 31))
    assert len(seen) == 30


def test_errors_pass_through_and_leave_the_state_alone():
    model = mlp()
    step, _ = training(OPTIMIZERS["SGD"], model)
    f = quick(step)
    for x, y in batches(CALLS):
        f(x, y)
    assert programs(f)
    before = [p.tolist() for p in model.parameters()]
    with pytest.raises(IndexError, match="out of bounds"):
        f(batches(1)[0][0], torch.full((8,), 99))
    assert before == [p.tolist() for p in model.parameters()]
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        f(torch.ones(8, 5), batches(1)[0][1])


# -- memory ----------------------------------------------------------------------------------------


def test_results_and_gradients_belong_to_the_caller():
    w = torch.ones(5000, requires_grad=True)

    def step(x):
        w.grad = None
        y = w * x
        y.sum().backward()
        return y.detach()

    f = quick(step)
    kept = [(f(torch.full((5000,), float(k))), w.grad) for k in range(10)]
    for k, (y, g) in enumerate(kept):
        assert y[0].item() == y[-1].item() == k
        assert g[0].item() == g[-1].item() == k


def test_results_that_are_arguments_copies_and_views():
    def f(x, y):
        return x, x.clone(), [x + y, x + y], {"view": x.reshape(-1), "same": y}

    g = quick(f)
    for _ in range(CALLS):
        x, y = torch.ones(2, 2), torch.ones(2, 2)
        a, copy, (c, d), rest = g(x, y)
        assert a is x
        assert rest["same"] is y
        copy.add_(1)
        c.add_(1)
        assert x.tolist() == [[1.0, 1.0], [1.0, 1.0]]
        assert d.tolist() == [[2.0, 2.0], [2.0, 2.0]]
        rest["view"][0] = 9
        assert x[0, 0].item() == 9


def test_writes_into_arguments():
    def f(x, y):
        x.mul_(2).add_(y)
        return x.sum()

    g = quick(f)
    for _ in range(CALLS):
        x = torch.ones(3)
        version = x._version
        assert g(x, torch.ones(3)).item() == 9
        assert x.tolist() == [3.0, 3.0, 3.0]
        assert x._version > version


def test_old_values_are_read_before_they_are_overwritten():
    p = torch.arange(4.0)

    def f(x):
        old = p.clone()
        p.sub_(x)
        return old - p, old.reshape(2, 2).T.reshape(-1) * 1

    g = quick(f)
    for k in range(CALLS):
        change, turned = g(torch.ones(4))
        assert change.tolist() == [1.0] * 4
        assert turned.tolist() == [0.0 - k, 2.0 - k, 1.0 - k, 3.0 - k]


def test_arguments_that_share_memory_with_parameters():
    p = torch.ones(4)

    def f(x):
        p.add_(x)
        return p.sum()

    g = quick(f)
    for _ in range(CALLS):
        g(torch.ones(4))
    before = p.tolist()
    g(p.detach().reshape(2, 2).reshape(4))  # a view of what is written
    assert p.tolist() == [2 * v for v in before]


def test_nothing_grows(nothing_paid):
    model = mlp()
    step, _ = training(OPTIMIZERS["Adam"], model)
    f = quick(step)
    data = batches(CALLS)
    for x, y in data:
        f(x, y)
    gc.collect()
    gc.disable()
    try:
        before = len(gc.get_objects())
        for _ in range(50):
            for x, y in data:
                f(x, y)
        assert len(gc.get_objects()) < before + 50
    finally:
        gc.enable()


def test_programs_are_bounded():
    f = quick(lambda x, k: x * k)
    with pytest.warns(UserWarning, match="is called"):  # noqa: PT031
        for k in range(140):
            for _ in range(2):
                assert f(torch.ones(1), k).item() == k


def test_each_length_of_a_text_that_grows_has_its_program():
    """As a model is called that writes, token by token: no length twice in a row."""
    f = quick(lambda x: x.cumsum(0)[-1:] * 2)
    text = torch.ones(40)
    for _ in range(3):
        assert [f(text[:n]).item() for n in range(1, 41)] == [2.0 * n for n in range(1, 41)]
    assert len(programs(f)) == 40, f.given_up


# -- backward by the caller ------------------------------------------------------------------------


def test_backward_goes_through_a_compiled_function():
    eager, compiled = mlp(), mlp()
    f = quick(compiled)
    for x, y in batches(CALLS):
        for model, call in ((eager, eager), (compiled, f)):
            for p in model.parameters():
                p.grad = None
            F.cross_entropy(call(x), y).backward()
        same(*([p.grad for p in m.parameters()] for m in (eager, compiled)))
    assert programs(f)
    assert "def back_call(" in source(f, full=True)


def test_gradients_of_arguments_and_of_several_results():
    def f(x, y):
        return x.exp() * y, (x - y).tanh(), x.detach() * 2

    g = quick(f)
    for _ in range(CALLS):
        grads = []
        for call in (f, g):
            x = torch.tensor([[0.5, -1.0], [2.0, 0.0]], requires_grad=True)
            y = torch.tensor([1.0, 3.0], requires_grad=True)
            a, b, c = call(x, y)
            assert not c.requires_grad
            (a.sum() * 2 + (b * b).sum()).backward()
            grads.append((x.grad, y.grad))
            x.grad = y.grad = None
            call(x, y)[1].sum().backward()
            grads[-1] += x.grad, y.grad
        same(*grads)
    assert programs(g)


def test_a_gradient_that_is_always_zero_from_one_of_several_results():
    x, y = (torch.ones(3, requires_grad=True) for _ in range(2))
    f = quick(lambda: ((x * 2).sum(), y.floor().sum()))
    for _ in range(CALLS):
        x.grad = y.grad = None
        f()[1].backward()
        assert x.grad is None
        assert y.grad.tolist() == [0, 0, 0]
        y.grad = None
        f()[0].backward()
        assert x.grad.tolist() == [2, 2, 2]
        assert y.grad is None
    assert programs(f)


def test_backward_twice_and_after_a_write():
    w = torch.ones(3, requires_grad=True)
    f = quick(lambda x: (w * w * x).sum())
    for _ in range(CALLS):
        y = f(torch.ones(3))
        y.backward(retain_graph=True)
        y.backward()
        with pytest.raises(RuntimeError, match="second time"):
            y.backward()
        y = f(torch.ones(3))
        with torch.no_grad():
            w.mul_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.backward()


def test_a_whole_step_leaves_nothing_for_a_second_backward():
    w = torch.ones(3, requires_grad=True)

    def step():
        loss = (w * w).sum()
        loss.backward()
        return loss

    f = quick(step)
    for _ in range(CALLS):
        loss = f()
        assert loss.requires_grad
        with pytest.raises(RuntimeError, match="second time"):
            loss.backward()


def test_no_grad_and_grad_are_different_programs():
    w = torch.ones(3, requires_grad=True)
    f = quick(lambda x: w * x)
    for _ in range(CALLS):
        assert f(torch.ones(3)).requires_grad
        with torch.no_grad():
            assert not f(torch.ones(3)).requires_grad


# -- the rest --------------------------------------------------------------------------------------


def test_used_as_a_decorator_and_inside_another():
    @torch.compile(backend="numpy")
    def double(x):
        return x * 2

    outer = quick(lambda x: double(x) + 1)
    for _ in range(CALLS):
        assert outer(torch.ones(1)).item() == 3
        assert double(torch.ones(1)).item() == 2
    assert double.__name__ == "double"


def test_threads_at_once():
    f, wrong = quick(lambda x: (x * 2 + 1).sum()), []

    def work(k):
        for _ in range(50):
            if f(torch.full((100,), float(k))).item() != 100 * (2 * k + 1):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_without_llvmlite_programs_call_numpy(monkeypatch):
    monkeypatch.setattr("rushlight.compile.has_llvmlite", lambda: False)
    with pytest.warns(UserWarning, match="llvmlite is not installed"):
        f = compile(lambda x: (x * 2).exp())
    for _ in range(CALLS):
        same([f(torch.ones(3))], [torch.ones(3).mul(2).exp()])
    assert "@loop" not in source(f, full=True)


def test_bad_arguments():
    with pytest.raises(TypeError, match="function or a module"):
        compile(3)
    with pytest.raises(ValueError, match="unknown backend"):
        compile(abs, backend="xla")
    with pytest.raises(RuntimeError, match="no program yet"):
        source(compile(lambda x: x))
    assert compile(abs, backend="eager") is abs


def test_the_compiler_namespace():
    @torch.compiler.disable
    def apart(x):
        return x + 1

    f = quick(lambda x: apart(x * 2))
    with pytest.warns(UserWarning, match="compiler.disable"):
        assert [f(torch.ones(1)).item() for _ in range(CALLS)] == [3] * CALLS
    inside = []

    def g(x):
        inside.append(torch.compiler.is_compiling())
        return x

    h = quick(lambda x: x * 2)
    for _ in range(CALLS):
        h(torch.ones(1))
    assert torch.compiler.programs(h)
    torch.compiler.reset()
    assert not torch.compiler.programs(h)
    assert not torch.compiler.is_compiling()
    quick(g)(torch.ones(1))
    assert inside == [True]


def test_an_argument_that_is_a_parameter():
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    f = quick(lambda x: w * x)
    for _ in range(CALLS):
        assert f(torch.ones(2)).tolist() == [1.0, 2.0]
        assert f(w).tolist() == [1.0, 4.0]
    g = quick(lambda x: w * x)
    for _ in range(CALLS):
        assert g(w).tolist() == [1.0, 4.0]
    for _ in range(CALLS):
        assert g(torch.ones(2, requires_grad=True)).tolist() == [1.0, 2.0]
        assert g(w.detach()).tolist() == [1.0, 4.0]


def test_a_detached_alias_does_not_hide_a_parameter():
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    alias = w.detach()
    f = quick(lambda x: (w * x + alias).sum())
    for _ in range(CALLS):
        w.grad = None
        f(torch.tensor([3.0, 4.0])).backward()
        assert w.grad.tolist() == [3.0, 4.0]


def test_default_dtype_counts():
    f = quick(lambda x: x / 2)
    try:
        for _ in range(CALLS):
            torch.set_default_dtype(torch.float32)
            assert f(torch.tensor([1])).dtype is torch.float32
            torch.set_default_dtype(torch.float64)
            assert f(torch.tensor([1])).dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_a_learning_rate_that_changes_at_each_step(name):
    eager, compiled = mlp(), mlp()
    (step, a), (other, b) = training(OPTIMIZERS[name], eager), training(OPTIMIZERS[name], compiled)
    fast = quick(other)
    schedules = [optim.lr_scheduler.CosineAnnealingLR(o, 30) for o in (a, b)]
    for x, y in batches(20):
        assert float(step(x, y)) == pytest.approx(float(fast(x, y)), rel=1e-4)
        for schedule in schedules:
            schedule.step()
    assert len(programs(fast)) == 1
    same(eager.parameters(), compiled.parameters(), 1e-4)


def test_two_groups_whose_learning_rates_part():
    p, q = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    optimizer = optim.SGD([{"params": [p]}, {"params": [q]}], lr=0.5)

    def step():
        optimizer.zero_grad()
        (p + 2 * q).sum().backward()
        optimizer.step()

    f = quick(step)
    expected = [1.0, 1.0]
    for k in range(12):
        rates = (0.5 / (k + 1), 0.5 / (k + 1)) if k < 6 else (0.1 + k, 0.7 + k)
        for group, rate in zip(optimizer.param_groups, rates):
            group["lr"] = rate
        f()
        expected = [e - rate * g for e, rate, g in zip(expected, rates, (1, 2))]
        assert p.tolist() == pytest.approx([expected[0]] * 2, rel=1e-5)
        assert q.tolist() == pytest.approx([expected[1]] * 2, rel=1e-5)
    assert programs(f)


def test_a_compiled_module_is_used_like_the_module():
    model = mlp()
    fast = quick(model)
    optimizer = optim.SGD(fast.parameters(), lr=0.1)
    assert list(fast.state_dict()) == [f"_orig_mod.{name}" for name in model.state_dict()]
    for x, y in batches(CALLS):
        optimizer.zero_grad()
        F.cross_entropy(fast(x), y).backward()
        optimizer.step()
    assert programs(fast)
    fast.eval()
    assert not model.training
    with pytest.raises(AttributeError):
        _ = fast.no_such_thing


def test_methods_and_objects_as_arguments():
    class Scaler:
        def __init__(self, by):
            self.by, self.w = by, torch.ones(2)

        @torch.compile(backend="numpy")
        def scale(self, x):
            return x * self.by + self.w

    two, three, f = Scaler(2.0), Scaler(3.0), quick(lambda s, x: x * s.by + s.w)
    for _ in range(CALLS):
        for call in (lambda s, x: s.scale(x), f):
            assert call(two, torch.ones(2)).tolist() == (2 + two.w).tolist()
            assert call(three, torch.ones(2)).tolist() == (3 + three.w).tolist()
            two.w.add_(1)
    two.by = 10.0
    assert two.scale(torch.zeros(2)).tolist() == two.w.tolist()
    assert f(two, torch.ones(2)).tolist() == (10 + two.w).tolist()


def test_arrays_and_iterators_that_change():
    small, large = np.zeros(3, np.float32), np.zeros(5000, np.float32)
    numbers = iter(range(1000))
    f = quick(lambda: torch.tensor(small) * 1)
    for k in range(3):
        small[:] = k
        for _ in range(CALLS):
            assert f().tolist() == [k] * 3
    g = quick(lambda: torch.tensor(large) * 1)
    with pytest.warns(UserWarning, match="ndarray"):
        g()
    for large[1] in range(8):
        assert g()[1].item() == large[1]
    h = quick(lambda x: x + torch.tensor(float(next(numbers))))
    with pytest.warns(UserWarning, match="iterator"):
        h(torch.zeros(1))
    assert [h(torch.zeros(1)).item() for _ in range(8)] == list(range(1, 9))
    k = quick(lambda x: x + next(numbers))  # numbers that nothing explains
    assert [k(torch.zeros(1)).item() for _ in range(8)] == list(range(9, 17))


def test_slots_and_partials():
    class Slotted:
        __slots__ = ("by",)

    s = Slotted()
    s.by = 2.0
    f = quick(functools.partial(lambda k, x: x * k.by, s))
    for s.by in (2.0, 5.0):
        for _ in range(CALLS):
            assert f(torch.ones(1)).item() == s.by


def test_a_watched_run_leaves_no_cycle(monkeypatch, tmp_path):
    """All arrays of the run would stay until the garbage collector comes. Nor does a program that is looked at step by
    step, as it is where no folder vouches for it."""
    monkeypatch.setenv("RUSHLIGHT_CACHE", str(tmp_path))
    layer, x = nn.Linear(4, 2), torch.randn(3, 4)
    g = compile(lambda x: layer(x).relu().sum())
    gc.collect()
    gc.freeze()  # what earlier tests have made, and a thread of theirs may still drop, does not count
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        for _ in range(5):
            g(x)
        gc.collect()
        kinds = [type(o) for o in gc.garbage]
        assert not {kind for kind in kinds if kind.__module__.startswith("rushlight")}
        assert programs(g)
    finally:
        gc.set_debug(0)
        gc.unfreeze()
        gc.garbage.clear()


def test_results_and_gradients_are_nobody_elses_memory():
    """What a program gives may be written to: also what is the same number in each run, or spread from one number."""
    w = torch.zeros(3, requires_grad=True)

    def f(x):
        w.grad = None
        (w.sum() + x.sum()).backward()
        y, z = x * 2, x + 1
        y.fill_(x.sum())
        return (w.grad, torch.zeros(3).clone(), torch.full((3,), 2.0), torch.arange(3.0), y, z.zero_())

    g = compile(f, backend="numpy")
    for _ in range(5):
        want, got = ([t.tolist() for t in h(torch.ones(3)) if t.add_(10) is t] for h in (f, g))
        assert got == want
    assert programs(g)


def test_a_result_without_a_gradient_does_not_count():
    """Zeros for it would be wrong: 0 times the slope of sqrt at 0 is nan, and what only it reads may have changed."""

    def f(x, y):
        return (x * 3).sqrt() * y, x * 2, (x + 1) * y.exp()

    g = compile(f, backend="numpy")
    for used in ([1], [2], [1, 2], [0, 1, 2]):
        for _ in range(5):
            found = []
            for h in (f, g):
                x = torch.full((3,), float(0 in used), requires_grad=True)
                y = torch.ones(3, requires_grad=True)
                outs = h(x, y)
                if used == [1]:
                    with torch.no_grad():
                        y.add_(1)
                sum([outs[i].sum() for i in used]).backward()
                found.append([None if t.grad is None else t.grad.tolist() for t in (x, y)])
            assert found[0] == found[1]
    assert programs(g)


@pytest.mark.parametrize(("shape", "dim"), [((5,), 0), ((3, 4), 1), ((2, 3, 9), -3), ((16, 33), 1)])
def test_gradients_of_products_are_programs(shape, dim):
    """Eager divides where nothing is 0; a program does what is right for any numbers, and takes no look at them."""

    def f(x):
        x.grad = None
        (torch.cumprod(x, dim).sin().sum() + x.prod(dim).sum()).backward()
        return x.grad.clone()

    g = compile(f, backend="numpy")
    for k in (0, 0, 0, 1, 3):
        x = torch.randn(shape)
        x.view(-1)[torch.randperm(x.numel())[:k]] = 0
        x.requires_grad_()
        assert torch.allclose(g(x), f(x), rtol=1e-5, atol=1e-6)
    assert len(programs(g)) == 1
    assert not g.given_up


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.int8, torch.complex64], ids=str)
def test_a_number_is_written_into_a_tensor_of_any_dtype(dtype):
    """A loop copied the number, also into dtypes that loops do not take."""
    f = compile(lambda x: x.fill_(2))
    for _ in range(4):
        x = torch.zeros((), dtype=dtype)
        f(x)
        assert x == 2
    assert len(programs(f)) == 1
