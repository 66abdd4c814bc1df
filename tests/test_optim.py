"""Optimizers against closed forms, torch, and themselves: in place, recorded, in blocks, saved and loaded."""

from __future__ import annotations

import copy
import gc
import math
import pickle
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rushlight
from rushlight import optim
from rushlight.autograd.grad_mode import Watcher, current, mode
from rushlight.ops.worlds import ARRAYS, rebind
from rushlight.optim.program import BLOCK, names_of, program, run

CASES = [
    ("SGD", {}), ("SGD", {"lr": 0.01, "weight_decay": 0.5}), ("SGD", {"momentum": 0.9}),
    ("SGD", {"momentum": 0.9, "dampening": 0.5, "weight_decay": 0.1, "maximize": True}),
    ("SGD", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("Adam", {}), ("Adam", {"lr": 0.01, "weight_decay": 0.1, "maximize": True}),
    ("Adam", {"amsgrad": True, "betas": (0.5, 0.6), "eps": 1e-3}), ("AdamW", {"lr": 0.1}),
    ("AdamW", {"amsgrad": True, "weight_decay": 0.2}),
    ("Adagrad", {}), ("Adagrad", {"lr_decay": 0.5, "weight_decay": 0.1, "initial_accumulator_value": 0.1}),
    ("Adadelta", {}), ("Adadelta", {"rho": 0.95, "weight_decay": 0.9, "maximize": True}),
    ("RMSprop", {}), ("RMSprop", {"weight_decay": 0.1, "centered": True}),
    ("RMSprop", {"centered": True, "momentum": 0.1, "maximize": True}),
    ("Adamax", {"lr": 0.1}), ("Adamax", {"weight_decay": 0.1, "maximize": True}),
    ("NAdam", {}), ("NAdam", {"weight_decay": 0.1, "momentum_decay": 6e-3, "decoupled_weight_decay": True}),
    ("RAdam", {"betas": (0.9, 0.6)}), ("RAdam", {"lr": 0.01, "weight_decay": 0.1}),
    ("RAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("ASGD", {}), ("ASGD", {"t0": 2, "lambd": 0.1, "weight_decay": 0.1}),
    ("Rprop", {}), ("Rprop", {"etas": (0.5, 1.5), "step_sizes": (2e-3, 0.02), "maximize": True}),
    ("Adafactor", {"weight_decay": 0.1}), ("Adafactor", {"beta2_decay": -1.0, "d": 1.5, "eps": (1e-3, 0.1)}),
    ("LBFGS", {"lr": 0.1}), ("LBFGS", {"line_search_fn": "strong_wolfe", "max_iter": 4, "history_size": 2}),
]  # fmt: skip
IDS = [f"{name}-{'-'.join(settings)}" for name, settings in CASES]
ELEMENTWISE = [(n, s) for n, s in CASES if n not in ("Adafactor", "LBFGS")]
SHAPES = ((4, 3), (5,), ())


class Problem:
    """sum of w (p - 1)^2 with weights w, whose gradient NumPy computes: only the optimizer is tested."""

    def __init__(self, torch, dtype="float64", shapes=SHAPES):
        random = np.random.RandomState(0)
        parts = [(np.array(random.randn(*s)), np.array(random.uniform(0.5, 2, s))) for s in shapes]
        if dtype.startswith("complex"):
            parts = [(p + 1j * p[..., ::-1] if p.ndim else p + 1j, w) for p, w in parts]
        self.torch, self.weights = torch, [w for _, w in parts]
        self.params = [torch.tensor(np.array(p).tolist(), dtype=getattr(torch, dtype)) for p, _ in parts]
        for p in self.params:
            p.requires_grad_()

    def closure(self):
        loss = 0.0
        for p, w in zip(self.params, self.weights):
            q = p.detach()
            error = q - 1
            w = self.torch.tensor(w.tolist(), dtype=self.torch.float64).to(p.dtype)
            p.grad = (2 * w * error).to(p.dtype)
            loss += float((w * abs(error) * abs(error)).sum().real)
        return self.torch.tensor(loss)

    def train(self, name, settings, steps=5):
        optimizer = getattr(self.torch.optim, name)(self.params, **settings)
        advance(self, optimizer, steps)
        return optimizer

    def values(self):
        return [p.detach() for p in self.params]


def advance(problem, optimizer, steps):
    for _ in range(steps):
        if type(optimizer).__name__ == "LBFGS":
            optimizer.step(problem.closure)
        else:
            problem.closure()
            optimizer.step()


def arrays(values):
    return [np.array(v.tolist()) for v in values]


def close(ours, expected, tolerance):
    for a, b in zip(ours, expected, strict=True):
        a = np.array(a.tolist()) if isinstance(a, rushlight.Tensor) else a
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


class Recorder(Watcher):
    """What a tracer sees, in numbers."""

    records = True

    def __init__(self):
        self.ops, self.writes, self.reads = [], 0, 0

    def ran(self, op, args, out):
        self.ops.append(op.name)

    def wrote(self, tensor, value):
        self.writes += 1

    def read(self, tensor):
        self.reads += 1


def recorded(step):
    recorder = Recorder()
    token = current.set(mode().but(watch=recorder))
    try:
        step()
    finally:
        current.reset(token)
    return recorder


# -- values --------------------------------------------------------------------------------------------------


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
    plain.train("Adam", {"lr": 0.5, "betas": (0.5, 0.25)})
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


# -- one rule, two ways --------------------------------------------------------------------------------------


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
        assert recorder.writes >= len(shapes)
    close(one.values(), arrays(other.values()), 1e-12)
    for a, b in zip(first.state.values(), second.state.values()):
        assert a.keys() == b.keys()
        for key in a:
            assert a[key].dtype is b[key].dtype
            np.testing.assert_allclose(a[key].array, b[key].array, rtol=1e-6)


@pytest.mark.parametrize(("name", "options"), ELEMENTWISE)
def test_program_equals_the_rule_on_arrays(name, options):
    """The buffers and places of a program change nothing: the rule itself, on arrays, gives the same."""
    problem = Problem(rushlight)
    optimizer = problem.train(name, options, steps=2)
    rule, group = type(optimizer).rule, optimizer.param_groups[0]
    names, values = names_of(rule)
    state = optimizer.state.get(problem.params[0], {})
    numbers = [state[n].item() if n in state else group[n] for n in values]
    given = [problem.params[0].array, problem.params[0].grad.array,
             *(state[n].array if n in state else None for n in names[2:])]  # fmt: skip
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
    assert "return (mu, lr,), ()" in text


def test_rules_may_not_look_at_numbers():
    def bad(p, g, /, lr):
        return p - g if g > 0 else p

    with pytest.raises(TypeError, match="only of a setting"):
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
@given(st.sampled_from(["flat", "fortran", "strided", "plain"]), st.sampled_from([0, 1, 3, 130]),
       st.sampled_from([1, 7, 127]), st.sampled_from(["C", "F"]))  # fmt: skip
def test_any_size_and_layout(kind, rows, columns, order):
    """Long arrays go in blocks, others at once; views and transposed memory are written to where they are."""
    a = laid_out(kind, rows, columns)
    a[...] = np.random.RandomState(0).randn(*a.shape)
    p, q = rushlight.from_numpy(a), rushlight.tensor(a)
    for t in (p, q):
        t.requires_grad_()
    for optimizer, t in ((optim.Adam([p], lr=0.1), p), (optim.Adam([q], lr=0.1), q)):
        for _ in range(2):
            t.grad = rushlight.from_numpy(np.array(t.detach().array * 2, order=order))
            optimizer.step()
    assert p.array is a
    np.testing.assert_allclose(a, q.array, rtol=1e-12)


def test_blocks_end_where_they_should():
    for n in (BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 5):
        p = rushlight.ones(n, requires_grad=True)
        p.grad = rushlight.ones(n)
        optim.SGD([p], lr=0.5, momentum=0.9).step()
        assert np.all(p.array == 0.5)


def test_threads_do_not_share_buffers():
    def work(seed, results):
        p = rushlight.full((300,), float(seed), requires_grad=True)
        optimizer = optim.Adam([p], lr=0.1)
        for _ in range(200):
            p.grad = p.detach() * 1
            optimizer.step()
        results[seed] = p.detach().array.copy()

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


# -- its place in autograd -----------------------------------------------------------------------------------


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


def test_steps_leave_nothing_behind():
    w = rushlight.ones(10, requires_grad=True)
    optimizer = optim.Adam([w], lr=0.1)

    def step():
        optimizer.zero_grad()
        (w * w).sum().backward()
        optimizer.step()

    step()
    gc.collect()
    gc.disable()
    try:
        before = len(gc.get_objects())
        for _ in range(300):
            step()
        assert len(gc.get_objects()) - before < 300
        assert gc.collect() == 0  # no cycles
    finally:
        gc.enable()


# -- groups, saving, hooks -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "settings"), CASES, ids=IDS)
def test_saved_format_is_torchs(torch, name, settings):
    ours, theirs = Problem(rushlight).train(name, settings), Problem(torch).train(name, settings)
    ours, theirs = ours.state_dict(), theirs.state_dict()
    assert {k: set(v) for k, v in ours["state"].items()} == {k: set(v) for k, v in theirs["state"].items()}
    for one, other in zip(ours["param_groups"], theirs["param_groups"], strict=True):
        assert one == other
    for key, one in ours["state"].items():
        for k, v in one.items():
            other = theirs["state"][key][k]
            assert type(v).__name__ == type(other).__name__
            if isinstance(v, rushlight.Tensor):
                assert str(v.dtype) == str(other.dtype)
                assert tuple(v.shape) == tuple(other.shape)


@pytest.mark.parametrize(("name", "settings"), CASES, ids=IDS)
def test_saved_and_loaded_goes_on_alike(name, settings):
    one, other = Problem(rushlight), Problem(rushlight)
    optimizer = one.train(name, settings, 3)
    saved = pickle.loads(pickle.dumps(optimizer.state_dict()))
    for p, q in zip(other.params, one.params):
        p.detach().copy_(q.detach())
    fresh = getattr(optim, name)(other.params, **settings)
    fresh.load_state_dict(saved)
    advance(one, optimizer, 2)
    advance(other, fresh, 2)
    exact = name not in ("NAdam", "ASGD")  # whose counters are loaded in the parameter's dtype, as in torch
    close(one.values(), arrays(other.values()), 0 if exact else 1e-8)


@pytest.mark.parametrize("how", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copied_with_its_parameters(how):
    problem = Problem(rushlight)
    optimizer = problem.train("Adam", {}, 2)
    twin = how(optimizer)
    assert repr(twin) == repr(optimizer)
    params = twin.param_groups[0]["params"]
    assert params[0] is not problem.params[0]
    assert set(map(id, params)) == set(map(id, twin.state))
    problem.closure()
    for p, q in zip(params, problem.params):
        p.grad = q.grad.clone()
    optimizer.step()
    twin.step()
    close(problem.values(), [p.detach().array for p in params], 0)


def test_loaded_state_takes_the_parameters_dtype():
    saved = Problem(rushlight, "float32").train("Adam", {}).state_dict()
    wide = optim.Adam(Problem(rushlight, "float64").params)
    wide.load_state_dict(saved)
    state = wide.state_dict()["state"][0]
    assert state["exp_avg"].dtype is rushlight.float64
    assert state["step"].dtype is rushlight.float32
    saved["state"][0]["exp_avg"].zero_()
    assert state["exp_avg"].abs().sum().item() > 0  # a copy


def test_old_checkpoints():
    optimizer = Problem(rushlight).train("Adam", {})
    saved = optimizer.state_dict()
    saved["state"] = {k: {**v, "step": 5} for k, v in saved["state"].items()}
    del saved["param_groups"][0]["decoupled_weight_decay"]
    optimizer.load_state_dict(saved)
    assert optimizer.param_groups[0]["decoupled_weight_decay"] is False
    optimizer.step()
    assert optimizer.state_dict()["state"][0]["step"].item() == 6


def test_groups_have_settings_of_their_own():
    p, q, r = (rushlight.ones(2, requires_grad=True) for _ in range(3))
    optimizer = optim.SGD([{"params": p, "lr": 0.5}, {"params": [q]}], lr=0.1)
    optimizer.add_param_group({"params": [r], "momentum": 0.9})
    for t in (p, q, r):
        t.grad = rushlight.ones(2)
    optimizer.step()
    assert [t[0].item() for t in (p, q, r)] == pytest.approx([0.5, 0.9, 0.9])
    assert list(optimizer.state) == [r]
    assert [g["params"] for g in optimizer.state_dict()["param_groups"]] == [[0], [1], [2]]


def test_named_parameters():
    p, q = (rushlight.ones(2, requires_grad=True) for _ in range(2))
    optimizer = optim.SGD([("w", p), ("b", q)])
    assert optimizer.param_groups[0]["param_names"] == ["w", "b"]
    assert optimizer.param_groups[0]["params"] == [p, q]


def test_repr(oracle):
    def text(torch):
        ps = [torch.ones(2, requires_grad=True) for _ in range(2)]
        return repr(torch.optim.Adam([{"params": ps[:1]}, {"params": ps[1:], "lr": 0.5}]))

    assert text(rushlight) == oracle(text)


def test_hooks():
    seen = []
    w = rushlight.ones(1, requires_grad=True)
    optimizer = optim.SGD([w])
    first = optimizer.register_step_pre_hook(lambda o, args, kwargs: seen.append("pre"))
    optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append("post"))
    everywhere = optim.optimizer.register_optimizer_step_pre_hook(lambda o, args, kwargs: seen.append("all"))
    optimizer.step()
    everywhere.remove()
    first.remove()
    optimizer.step()
    assert seen == ["all", "pre", "post", "post"]
    optimizer.register_step_pre_hook(lambda o, args, kwargs: ((o, lambda: 5), {}))
    assert optimizer.step() == 5
    optimizer.register_state_dict_post_hook(lambda o, d: {**d, "more": 1})
    optimizer.register_load_state_dict_pre_hook(lambda o, d: seen.append(d["more"]))
    optimizer.register_load_state_dict_post_hook(lambda o: seen.append("loaded"))
    optimizer.load_state_dict(optimizer.state_dict())
    assert seen[-2:] == [1, "loaded"]


def test_optimizers_of_ones_own():
    class Sign(optim.Optimizer):
        def __init__(self, params, lr=0.1):
            super().__init__(params, {"lr": lr})

        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    p.data.add_(p.grad.sign(), alpha=-group["lr"])

    w = rushlight.ones(2, requires_grad=True)
    optimizer, seen = Sign([w]), []
    optimizer.register_step_post_hook(lambda *args: seen.append(1))
    scheduler = optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    w.grad = rushlight.tensor([3.0, -3.0])
    for _ in range(2):
        optimizer.step()
        scheduler.step()
    assert w.tolist() == pytest.approx([0.85, 1.15])
    assert seen == [1, 1]


def test_weight_decay_of_an_unused_momentum_starts_later():
    """Momentum that a schedule turns on later starts with the gradient of that step, as in torch."""
    w = rushlight.ones(1, requires_grad=True)
    optimizer = optim.SGD([w], lr=0.1)
    for momentum in (0, 0.5, 0.5):
        optimizer.param_groups[0]["momentum"] = momentum
        w.grad = rushlight.ones(1)
        optimizer.step()
    assert w.item() == pytest.approx(1 - 0.1 - 0.1 - 0.15)


# -- errors --------------------------------------------------------------------------------------------------


def leaf(*shape):
    return rushlight.ones(*shape, requires_grad=True)


@pytest.mark.parametrize(
    ("error", "words", "make"),
    [
        (TypeError, "iterable of Tensors or dicts, but got torch.FloatTensor", lambda: optim.SGD(leaf(1))),
        (ValueError, "empty parameter list", lambda: optim.SGD([])),
        (TypeError, "one of the params is int", lambda: optim.SGD([3])),
        (TypeError, "sets will change between runs", lambda: optim.SGD([{"params": {leaf(1)}}])),
        (ValueError, "can't optimize a non-leaf Tensor", lambda: optim.SGD([leaf(1) * 2])),
        (ValueError, "Invalid learning rate: -1", lambda: optim.SGD([leaf(1)], lr=-1)),
        (ValueError, "Tensor lr must be 1-element", lambda: optim.Adam([leaf(1)], lr=rushlight.ones(2))),
        (ValueError, "Invalid beta parameter at index 1: 1.0", lambda: optim.NAdam([leaf(1)], betas=(0, 1.0))),
        (ValueError, "Invalid epsilon value: -1", lambda: optim.Adagrad([leaf(1)], eps=-1)),
        (ValueError, "Nesterov momentum requires", lambda: optim.SGD([leaf(1)], nesterov=True)),
        (ValueError, "Invalid eta values: 1.0, 0.5", lambda: optim.Rprop([leaf(1)], etas=(1.0, 0.5))),
        (ValueError, "Invalid rho value: 1.1", lambda: optim.Adadelta([leaf(1)], rho=1.1)),
        (ValueError, "Muon only supports 2D", lambda: optim.Muon([leaf(3)])),
        (ValueError, "LBFGS doesn't support per-parameter",
         lambda: optim.LBFGS([{"params": leaf(1)}, {"params": leaf(1)}])),
        (RuntimeError, "cannot be `True` together", lambda: optim.Adam([leaf(1)], fused=True, foreach=True)),
        (ValueError, "with/without names", lambda: optim.SGD([("w", leaf(1)), leaf(1)])),
        (AttributeError, "no sparse tensors", lambda: optim.SparseAdam),
    ],
)  # fmt: skip
def test_refusals(error, words, make):
    with pytest.raises(error, match=words):
        make()


def test_one_parameter_in_two_groups():
    w = leaf(1)
    with pytest.raises(ValueError, match="more than one parameter group"):
        optim.SGD([{"params": w}, {"params": w}])
    with pytest.warns(UserWarning, match="duplicate parameters"):
        optim.SGD([w, w])


def test_loading_what_does_not_fit_changes_nothing():
    saved = optim.SGD([leaf(1), leaf(1)], momentum=0.5).state_dict()
    optimizer = optim.SGD([leaf(1)], lr=0.25)
    with pytest.raises(ValueError, match="doesn't match the size"):
        optimizer.load_state_dict(saved)
    assert optimizer.param_groups[0]["lr"] == 0.25
    assert optimizer.param_groups[0]["momentum"] == 0


# -- LBFGS ---------------------------------------------------------------------------------------------------


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
