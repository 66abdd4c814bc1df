"""Optimizers against closed forms and torch; in place and recorded; in blocks and layouts; in autograd."""

from __future__ import annotations

import gc
import math
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rushlight
from rushlight import optim
from rushlight.core.mode import Watcher, current, mode
from rushlight.core.worlds import ARRAYS, rebind
from rushlight.optim.program import BLOCK_ELEMENTS, names_of, program, run
from tests.optim.problem import CASES, ELEMENTWISE, IDS, SHAPES, Problem, advance, arrays, close


class Recorder(Watcher):
    """What a tracer sees, in numbers."""

    records = True

    def __init__(self):
        self.ops, self._writes, self.reads = [], 0, 0

    def on_op(self, op, args, out):
        self.ops.append(op.name)

    def on_write(self, tensor, value):
        self._writes += 1

    def on_read(self, tensor):
        self.reads += 1


def recorded(step):
    recorder = Recorder()
    token = current.set(mode().but(watch=recorder))
    try:
        step()
    finally:
        current.reset(token)
    return recorder


# -- values ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "settings", "g", "steps", "expected"),
    [
        ("SGD", {"lr": 0.1}, 1.0, 2, 0.8),
        ("SGD", {"lr": 0.1, "momentum": 0.9}, 1.0, 2, 0.71),
        ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}, 1.0, 2, 0.539),
        ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.5}, 1.0, 2, 1 - 0.1 - 0.14),
        ("Adam", {"lr": 0.1}, 0.5, 1, 0.900000002),
        ("Adam", {"lr": 0.1}, 0.5, 2, 0.800000004),
        ("AdamW", {"lr": 0.1, "weight_decay": 0.5, "eps": 0}, 0.5, 1, 0.95 - 0.1),
        ("Adagrad", {"lr": 0.1}, 2.0, 2, 0.9 - 0.1 / math.sqrt(2)),
        ("Adadelta", {"lr": 1.0}, 1.0, 1, 1 - math.sqrt(1e-6) / math.sqrt(0.1 + 1e-6)),
        ("RMSprop", {"lr": 0.1}, 1.0, 1, 0.0),
        ("Adamax", {"lr": 0.1}, -1.0, 1, 1.1),
        ("RAdam", {"lr": 0.1}, 1.0, 1, 0.9),
        ("ASGD", {"lr": 0.1, "lambd": 0.5}, 1.0, 1, 0.95 - 0.1),
        ("Rprop", {"lr": 0.1}, 7.0, 3, 1 - 0.1 - 0.12 - 0.144),
        ("Adafactor", {"lr": 0.1}, 3.0, 1, 0.9),
    ],
)
def test_closed_forms(name, settings, g, steps, expected):
    p = rushlight.tensor([1.0], dtype=rushlight.float64, requires_grad=True)
    untouched = rushlight.tensor([1.0], requires_grad=True)
    optimizer = getattr(optim, name)([p, untouched], **settings)
    for _ in range(steps):
        p.grad = rushlight.tensor([g], dtype=rushlight.float64)
        optimizer.step()
    assert p.item() == pytest.approx(expected, abs=1e-7)
    assert untouched.item() == 1.0
    assert p.grad.item() == g


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("name", "settings"), CASES, ids=IDS)
def test_like_torch(oracle, name, settings, dtype):
    def trained(torch):
        problem = Problem(torch, dtype)
        problem.train(name, settings)
        return problem.values()

    close(trained(rushlight), oracle(trained), {"float64": 1e-9, "float32": 2e-6}[dtype])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "complex128"])
@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "Rprop", "Adadelta"])
def test_other_dtypes_like_torch(oracle, name, dtype):
    def trained(torch):
        problem = Problem(torch, dtype)
        problem.train(name, {"lr": 0.1})
        values = problem.values()
        return values if dtype.startswith("complex") else [v.to(torch.float64) for v in values]

    close(trained(rushlight), oracle(trained), {"bfloat16": 2e-2, "float16": 2e-3, "complex128": 1e-9}[dtype])


def test_muon_orthogonalizes(torch):
    for kwargs in ({}, {"nesterov": False, "adjust_lr_fn": "match_rms_adamw"}):
        theirs, ours = Problem(torch, shapes=((6, 4), (3, 5))), Problem(rushlight, shapes=((6, 4), (3, 5)))
        start = arrays(ours.values())
        theirs.train("Muon", {"lr": 0.1, **kwargs})
        ours.train("Muon", {"lr": 0.1, **kwargs})
        for a, b, p in zip(arrays(ours.values()), arrays(theirs.values()), start):
            assert np.linalg.norm(a - b) < 0.03 * np.linalg.norm(b - p)  # torch's steps are in bfloat16


def test_settings_as_tensors():
    plain, tensors = Problem(rushlight), Problem(rushlight)
    plain.train("Adam", {"lr": 0.5, "betas": [0.5, 0.25]})
    t = rushlight.tensor
    optimizer = tensors.train("Adam", {"lr": t(0.5), "betas": (t(0.5), t(0.25))})
    close(tensors.values(), arrays(plain.values()), 1e-12)
    optimizer.param_groups[0]["lr"].fill_(0.0)
    before = arrays(tensors.values())
    advance(tensors, optimizer, 1)
    close(tensors.values(), before, 0)


def test_closure_runs_with_grad_and_its_loss_is_returned():
    w = rushlight.tensor([3.0], requires_grad=True)
    optimizer = optim.SGD([w], lr=0.5)

    def closure():
        optimizer.zero_grad()
        loss = (w * w).sum()
        loss.backward()
        return loss

    with rushlight.no_grad():
        assert optimizer.step(closure).item() == 9.0
    assert w.item() == 0.0


# -- one rule, two ways ----------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "settings"), ELEMENTWISE + [("Adafactor", {}), ("Muon", {})])
def test_recorded_equals_in_place(name, settings):
    shapes = ((4, 3), (3, 4)) if name == "Muon" else SHAPES
    one, other = Problem(rushlight, shapes=shapes), Problem(rushlight, shapes=shapes)
    first = getattr(optim, name)(one.params, **settings)
    second = getattr(optim, name)(other.params, **settings)
    for _ in range(7):
        one.closure()
        other.closure()
        first.step()
        recorder = recorded(second.step)
        assert recorder.reads == 0
        assert recorder._writes >= len(shapes)
    close(one.values(), arrays(other.values()), 1e-12)
    for a, b in zip(first.state.values(), second.state.values()):
        assert a.keys() == b.keys()
        for key in a:
            assert a[key].dtype is b[key].dtype
            np.testing.assert_allclose(a[key]._array, b[key]._array, rtol=1e-6)


@pytest.mark.parametrize(("name", "options"), ELEMENTWISE)
def test_program_equals_the_rule_on_arrays(name, options):
    """The buffers and places of a program change nothing: the rule itself, on arrays, gives the same."""
    problem = Problem(rushlight)
    optimizer = problem.train(name, options, steps=2)
    rule, group = type(optimizer)._rule, optimizer.param_groups[0]
    names, values = names_of(rule)
    state = optimizer.state.get(problem.params[0], {})
    numbers = [state[n].item() if n in state else group[n] for n in values]
    given = [
        problem.params[0]._array,
        problem.params[0].grad._array,
        *(state[n]._array if n in state else None for n in names[2:]),
    ]
    expected = rebind(rule, ARRAYS)(*given, *numbers)
    expected = expected if isinstance(expected, tuple) else (expected,)
    there = [a.copy() for a in given if a is not None]
    one = program(rule, tuple(a is not None for a in given), tuple(map(bool, numbers)))
    ks, after = one.numbers(*numbers)
    run(one, there, [np.array(k) for k in ks])
    written = [there[0], *there[2:]]
    for a, b in zip(written, [e for t, e in zip([given[0], *given[2:]], expected) if t is not None], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    assert np.array_equal(there[1], given[1])  # the gradient is only read
    assert list(after) == list(expected[len(names) - 1 :])


def test_a_program_can_be_read():
    def momentum(p, g, buf, /, lr, mu):
        buf = mu * buf + g
        return p - lr * buf, buf

    text = program(momentum, (True,) * 3, (True, True)).source
    assert "add(b0, g, out=buf)" in text
    assert "sub(p, b0, out=p)" in text
    assert "used = (mu, lr)\n" in text


def test_rules_may_not_look_at_numbers():
    def bad(p, g, /, lr):
        return p - g if g > 0 else p

    with pytest.raises(TypeError, match="only whether a setting"):
        program(bad, (True, True), (True,))


def test_rules_may_not_swap_state():
    def swap(p, g, a, b, /, lr):
        return p, b, a

    with pytest.raises(TypeError, match="overwritten"):
        program(swap, (True,) * 4, (True,))


def laid_out(kind, rows, columns):
    if kind == "flat":
        return np.zeros(rows * columns)
    if kind == "fortran":
        return np.zeros((rows, columns), order="F")
    if kind == "strided":
        return np.zeros((rows, 2 * columns))[:, ::2]
    return np.zeros((rows, columns))


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(["flat", "fortran", "strided", "plain"]),
    st.sampled_from([0, 1, 3, 130]),
    st.sampled_from([1, 7, 127]),
    st.sampled_from(["C", "F"]),
)
def test_any_size_and_layout(kind, rows, columns, order):
    """Long arrays go in blocks, others at once; views and transposed memory are written to where they are."""
    a = laid_out(kind, rows, columns)
    a[...] = np.random.RandomState(0).randn(*a.shape)
    p, q = rushlight.from_numpy(a), rushlight.tensor(a)
    for t in (p, q):
        t.requires_grad_()
    for optimizer, t in ((optim.Adam([p], lr=0.1), p), (optim.Adam([q], lr=0.1), q)):
        for _ in range(2):
            t.grad = rushlight.from_numpy(np.array(t.detach()._array * 2, order=order))
            optimizer.step()
    assert p._array is a
    np.testing.assert_allclose(a, q._array, rtol=1e-12)


def test_blocks_end_where_they_should():
    for n in (BLOCK_ELEMENTS - 1, BLOCK_ELEMENTS, BLOCK_ELEMENTS + 1, 2 * BLOCK_ELEMENTS + 5):
        p = rushlight.ones(n, requires_grad=True)
        p.grad = rushlight.ones(n)
        optim.SGD([p], lr=0.5, momentum=0.9).step()
        assert np.all(p._array == 0.5)


def test_threads_do_not_share_buffers():
    def work(seed, results):
        p = rushlight.full((300,), float(seed), requires_grad=True)
        optimizer = optim.Adam([p], lr=0.1)
        for _ in range(200):
            p.grad = p.detach() * 1
            optimizer.step()
        results[seed] = p.detach()._array.copy()

    alone, together = {}, {}
    for seed in range(1, 5):
        work(seed, alone)
    threads = [threading.Thread(target=work, args=(seed, together)) for seed in range(1, 5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for seed in alone:
        assert np.array_equal(alone[seed], together[seed])


# -- its place in autograd -------------------------------------------------------------------------


def test_a_step_is_noticed_by_backward():
    w = rushlight.tensor([2.0], requires_grad=True)
    optimizer = optim.SGD([w], lr=0.1)
    w.grad = rushlight.tensor([1.0])
    loss = (w * w).sum()
    version = w._version
    optimizer.step()
    assert w._version == version + 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize(
    ("name", "expected"), [("SGD", (1 - 0.2) ** 2), ("Adam", None), ("RMSprop", None), ("NAdam", None)]
)
def test_a_differentiable_step(name, expected):
    """d(p after two steps) / d(p before), by backward through the steps and by differences."""

    def after(start):
        p = start.clone()
        optimizer = getattr(optim, name)([p], lr=0.1, differentiable=True)
        for _ in range(2):
            p.grad = 2 * p
            optimizer.step()
        return p

    start = rushlight.tensor([0.7], dtype=rushlight.float64, requires_grad=True)
    after(start).sum().backward()
    if expected is None:
        h = 1e-6
        with rushlight.no_grad():
            expected = ((after(start + h) - after(start - h)) / (2 * h)).item()
    assert start.grad.item() == pytest.approx(expected, rel=1e-5)


def test_differentiable_leaf_is_an_error():
    p = rushlight.tensor([1.0], requires_grad=True)
    p.grad = rushlight.tensor([1.0])
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        optim.SGD([p], differentiable=True).step()


def test_zero_grad():
    w = rushlight.tensor([2.0], requires_grad=True)
    optimizer = optim.SGD([w], lr=0.1)
    (g,) = rushlight.autograd.grad((w**3).sum(), [w], create_graph=True)
    w.grad = g
    optimizer.zero_grad(set_to_none=False)
    assert w.grad is g
    assert not g.requires_grad
    assert g.item() == 0
    optimizer.zero_grad()
    assert w.grad is None


def test_steps_leave_nothing_behind(uncollected):
    w = rushlight.ones(10, requires_grad=True)
    optimizer = optim.Adam([w], lr=0.1)

    def step():
        optimizer.zero_grad()
        (w * w).sum().backward()
        optimizer.step()

    step()
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(300):
        step()
    assert len(gc.get_objects()) - before < 300
    assert gc.collect() == 0  # no cycles


# -- LBFGS -----------------------------------------------------------------------------------------


def rosenbrock(torch, settings, steps):
    w = torch.tensor([-1.5, 2.0], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([w], **settings)

    def closure():
        optimizer.zero_grad()
        loss = (1 - w[0]) ** 2 + 100 * (w[1] - w[0] ** 2) ** 2
        loss.backward()
        return loss

    losses = [optimizer.step(closure).item() for _ in range(steps)]
    state = optimizer.state_dict()["state"][0]
    return [w.detach().tolist(), losses, [state["func_evals"], state["n_iter"]]]


@pytest.mark.parametrize(
    ("settings", "steps"),
    [
        ({"line_search_fn": "strong_wolfe"}, 3),
        ({"line_search_fn": "strong_wolfe", "history_size": 3, "max_iter": 5}, 4),
        ({"lr": 1e-3, "max_iter": 8}, 3),
        ({"line_search_fn": "strong_wolfe", "max_eval": 4}, 3),
    ],
)
def test_lbfgs_on_rosenbrocks_valley(oracle, settings, steps):
    ours, theirs = rosenbrock(rushlight, settings, steps), oracle(lambda torch: rosenbrock(torch, settings, steps))
    assert ours[2] == theirs[2]
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-6)
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-5, atol=1e-12)


def test_lbfgs_on_a_straight_line_ends():
    w = rushlight.tensor([1.0], requires_grad=True)
    optimizer = optim.LBFGS([w], line_search_fn="strong_wolfe", max_iter=3)

    def closure():
        w.grad = rushlight.tensor([1.0])
        return w.detach().sum()

    optimizer.step(closure)
    assert w.item() < 1.0


# -- compiled --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["SGD", "Adam", "RAdam", "NAdam", "ASGD", "Rprop", "Adafactor"])
def test_a_compiled_step_counts_and_follows_a_rate_in_a_tensor(name):
    """One program for all steps: neither the number of the step nor the rate is held fast in it."""
    rate = rushlight.tensor(0.05)

    def trained(wrap):
        rate.fill_(0.05)
        w = rushlight.from_numpy(np.random.RandomState(0).randn(3, 2)).requires_grad_()
        options = {"momentum": 0.9, "dampening": 0.5} if name == "SGD" else {}
        optimizer = getattr(optim, name)([w], lr=rate, **options)

        def step(x):
            optimizer.zero_grad()
            loss = ((x @ w).tanh() ** 2).sum()
            loss.backward()
            optimizer.step()
            return loss

        run_step, losses = wrap(step), []
        for i in range(9):
            if i == 6:
                rate.fill_(0.5)
            losses.append(run_step(rushlight.from_numpy(np.ones((4, 3)))).item())
        return losses, run_step

    eager, _ = trained(lambda f: f)
    compiled, f = trained(lambda f: rushlight.compile(f, backend="numpy"))
    np.testing.assert_allclose(compiled, eager, rtol=1e-12)
    assert len(f.programs) == 1
    assert not f.given_up


@pytest.mark.origin("sizes in use")
@pytest.mark.parametrize("slope", [0.0, 1e-6])
def test_first_steps_of_radam_in_float16(oracle, slope):
    """Their step has no divisor; there is no 1e-8 in float16, and 0 times infinity was no number."""

    def stepped(t):
        w = t.ones(600, dtype=t.float16, requires_grad=True)
        optimizer = t.optim.RAdam([w], lr=0.1)
        for _ in range(5):
            w.grad = t.full_like(w, slope)
            optimizer.step()
        return w.detach().float()

    np.testing.assert_allclose(stepped(rushlight).numpy(), oracle(stepped), rtol=1e-3)


@pytest.mark.origin("suites")
@pytest.mark.parametrize(
    "kind", ["ASGD", "Adadelta", "Adagrad", "Adam", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD"]
)
def test_two_steps_of_each_optimizer_can_be_differentiated(kind):
    def trained(p, g):
        p = p.clone()
        optimizer = getattr(rushlight.optim, kind)([p], lr=0.1, differentiable=True)
        for _ in range(2):
            p.grad = g * p.clone()
            optimizer.step()
        return p

    p, g = (rushlight.rand(3, dtype=rushlight.float64) + 0.5 for _ in range(2))
    assert rushlight.autograd.gradcheck(trained, (p.requires_grad_(), g.requires_grad_()))
