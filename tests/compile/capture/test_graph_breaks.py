"""Functions in pieces: numbers read, printed and branched on stay Python; results and side effects are eager's."""

from __future__ import annotations

import contextlib
import warnings

import pytest

import rushlight as torch
from rushlight import nn, optim
from rushlight.compile import CannotCompile, compile, explain, programs
from rushlight.nn import functional as F

CALLS = 7
X, Y = torch.linspace(-1, 1, 20).reshape(5, 4), torch.linspace(0, 1, 15).reshape(5, 3)
held = []


class Work:
    """A model, its optimizer, and what a training loop keeps beside them."""

    def __init__(self):
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.2), nn.Tanh(), nn.Linear(8, 3))
        self.optimizer = optim.Adam(self.model.parameters(), lr=0.05)
        self.count, self.losses, self.best, self.history, self.hidden = 0, [], 9e9, {}, None

    def loss(self, x, y):
        return F.mse_loss(self.model(x), y)

    def update(self, loss):
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


def returns_a_number(w, x, y):
    w.optimizer.zero_grad()
    loss = F.mse_loss(w.model(x), y)
    loss.backward()
    w.optimizer.step()
    return loss.item()


def keeps_a_list(w, x, y):
    loss = F.mse_loss(w.model(x), y)
    w.optimizer.zero_grad()
    loss.backward()
    w.optimizer.step()
    w.losses.append(loss.item())
    w.count += 1
    return loss


def branches_in_the_middle(w, x, y):
    loss = F.mse_loss(w.model(x), y)
    if loss.item() < w.best:
        w.best = loss.item()
    elif torch.isnan(loss):
        return None
    w.optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(w.model.parameters(), 0.1)
    if norm > 0.05:
        w.optimizer.step()
    return loss, norm


def counts_calls(w, x, y):
    loss = F.mse_loss(w.model(x), y) / 2
    loss.backward()
    w.count += 1
    if w.count % 2 == 0:
        w.optimizer.step()
        w.optimizer.zero_grad()
    w.history["loss"] = float(loss)
    return loss


def loops_over_batches(w, x, y):
    total, seen = 0.0, 0
    for i, (a, b) in enumerate(zip(x.split(2), y.split(2))):
        if i == 2:
            continue
        loss = F.mse_loss(w.model(a), b)
        w.optimizer.zero_grad()
        loss.backward()
        w.optimizer.step()
        total += loss.item() * len(a)
        seen += len(a)
    return total / seen


def calls_others(w, x, y):
    loss = w.loss(x, y)
    w.update(loss)
    report(w, loss)
    return loss


def report(w, loss):
    scaled = (loss * 3 + 1).sqrt().exp().log()
    w.losses.append(scaled.item())


def inside_contexts(w, x, y):
    with torch.no_grad():
        before = F.mse_loss(w.model(x), y)
        w.losses.append(before.item())
        after = (before * 2).exp().log().sqrt()
    with torch.enable_grad(), contextlib.suppress(KeyError):
        loss = F.mse_loss(w.model(x), y)
        w.update(loss)
        raise KeyError(loss.item())
    return before, after, loss.detach()


def keeps_a_state(w, x, y):
    h = torch.tanh(w.model(x) + (0 if w.hidden is None else w.hidden))
    w.hidden = h.detach()
    loss = ((h - y) ** 2).mean()
    w.update(loss)
    print(loss.item())
    return loss.item(), [h], {"loss": loss}


STEPS = [
    returns_a_number,
    keeps_a_list,
    branches_in_the_middle,
    counts_calls,
    loops_over_batches,
    calls_others,
    inside_contexts,
    keeps_a_state,
]


def plain(value):
    """What a step returns, comparable."""
    if isinstance(value, torch.Tensor):
        return value.detach().reshape(-1).tolist()
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    return {k: plain(v) for k, v in value.items()} if isinstance(value, dict) else value


def close(a, b):
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(close, a, b))
    return all(close(a[k], b[k]) for k in a) if isinstance(a, dict) else a == pytest.approx(b, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("how", ["with the object", "a closure", "a lambda"])
@pytest.mark.parametrize("step", STEPS, ids=lambda f: f.__name__)
def test_steps_that_look_at_numbers(step, how, capsys):
    eager, fast = Work(), Work()
    torch.manual_seed(1)
    expected = [plain(step(eager, X + k / 9, Y)) for k in range(CALLS)]
    printed = capsys.readouterr().out
    f = {
        "with the object": lambda: compile(step, backend="numpy"),
        "a closure": lambda: closing(step, fast),
        "a lambda": lambda: compile(lambda *b: step(*b), backend="numpy"),
    }[how]()
    torch.manual_seed(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = [plain(f(*([] if how == "a closure" else [fast]), X + k / 9, Y)) for k in range(CALLS)]
    assert close(got, expected)
    assert [line[:6] for line in capsys.readouterr().out.split()] == [line[:6] for line in printed.split()]
    for p, q in zip(eager.model.parameters(), fast.model.parameters()):
        assert torch.allclose(p, q, rtol=1e-3, atol=1e-5)
        assert (p.grad is None) == (q.grad is None)
    assert eager.count == fast.count
    assert close(fast.losses, eager.losses)
    assert close(fast.history, eager.history)
    assert eager.best == pytest.approx(fast.best, rel=1e-4)
    assert 1 <= len(programs(f)) < 8


def closing(step, w):
    """The step as a function of the closure, which begins with another statement."""

    def inside(x, y):
        scale = x * 1.0
        return step(w, scale, y)

    return compile(inside, backend="numpy")


def test_explain_names_each_statement_and_counts_programs():
    found = explain(branches_in_the_middle, Work(), X, Y)
    text = str(found)
    assert found.graph_count >= 2
    assert found.graph_break_count >= 3
    assert text.startswith("compiled in pieces: ")
    assert "if loss.item() < w.best:" in text
    assert "looks at the numbers" in text
    assert "in place of" not in text
    assert explain(returns_a_number, Work(), X, Y).graph_count == 1


def test_fullgraph_wants_one_program():
    with pytest.raises(CannotCompile, match="looks at the numbers"):
        compile(returns_a_number, backend="numpy", fullgraph=True)(Work(), X, Y)


def test_branches_not_taken_so_far_and_variables_without_a_value():
    def f(x, flag):
        y = (x * 2).exp().log() + x.sin().cos() - 1
        if y.sum() > 0:
            z = (y + 1).exp().log() + y.sin().cos() - 1
        if flag:
            return z * 2 + y.tan() - z.sin() * 3 + 1
        del y
        return (x * 3).exp().log() + x.sin().cos() - 1

    g = compile(f, backend="numpy")
    for x in (torch.ones(3), -torch.ones(3)) * 3:
        for flag in (False, True):
            if flag and x[0] < 0:
                with pytest.raises(UnboundLocalError, match="'z'"):
                    g(x, flag)
            else:
                assert torch.allclose(g(x, flag), f(x, flag), rtol=1e-5)
    assert programs(g)


def test_errors_have_the_users_lines_and_leave_what_was_done():
    w = Work()

    def step(x, y):
        loss = F.mse_loss(w.model(x), y)
        w.losses.append(loss.item())
        w.update(loss)
        if len(w.losses) % 2 == 0:
            raise ValueError("too good")  # the line
        return loss

    f = compile(step, backend="numpy")
    for k in range(CALLS):
        if k % 2 == 0:
            assert f(X, Y).shape == ()
            continue
        with pytest.raises(ValueError, match="too good") as caught:
            f(X, Y)
        assert "the line" in str(caught.traceback[-1].statement)
        assert len(w.losses) == k + 1
    assert programs(f)


def test_global_and_nonlocal_variables():
    count = 0

    def f(x):
        nonlocal count
        global held
        y = (x * 2).exp().log() + x.sin().cos() - 1
        count += 1
        held = [count, y.sum().item()]
        return y * count

    g = compile(f, backend="numpy")
    for k in range(CALLS):
        assert torch.allclose(g(X), ((X * 2).exp().log() + X.sin().cos() - 1) * (k + 1), atol=1e-5)
        assert count == k + 1
        assert held[0] == k + 1
    assert programs(g)


def test_second_derivatives_through_pieces():
    def f(x):
        y = (x**3).exp().log() + x.sin() * 2
        print(end=f"{y.sum().item():.0f}"[:0])
        (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        return torch.autograd.grad(first.sum(), x)[0]

    x = torch.tensor([0.5, 1.0], requires_grad=True)
    g = compile(f, backend="numpy")
    for _ in range(CALLS):
        assert torch.allclose(g(x), f(x), rtol=1e-4)


def test_gradients_through_results_of_an_earlier_piece():
    def f(x, w):
        y = (x * w).exp().log() + (x * w).sin().cos()
        if y.sum() > 1e9:
            return x
        return (y * w).exp().log() + (y * x).sin().cos()

    g = compile(f, backend="numpy")
    for _ in range(CALLS):
        ours, theirs = ([torch.tensor([0.5, 1.0], requires_grad=True) for _ in range(2)] for _ in range(2))
        g(*ours).sum().backward()
        f(*theirs).sum().backward()
        for a, b in zip(ours, theirs):
            assert torch.allclose(a.grad, b.grad, rtol=1e-4)
    assert len(programs(g)) == 2


def test_views_handed_from_piece_to_piece():
    def f(x):
        y = (x + 1).exp().log() - x.sin() * 2
        row = y[0]
        if row.sum() > 1e9:
            return x
        row += 10
        y[1] = y[0] * 2 + row.sin().cos().exp()
        return y

    g = compile(f, backend="numpy")
    for k in range(CALLS):
        assert torch.allclose(g(X + k), f(X + k), rtol=1e-5)


class Gate(nn.Module):
    """A module that looks at numbers, inside another one."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.calls = nn.Linear(4, 4), nn.Linear(4, 4), 0

    def forward(self, x):
        h = torch.tanh(self.a(x)).exp().log()
        self.calls += 1
        return self.b(h) if h.mean() > 0 else h


def test_modules_whose_forward_looks_at_numbers():
    torch.manual_seed(0)
    model = nn.Sequential(Gate(), nn.ReLU(), nn.Linear(4, 3))
    fast = compile(model, backend="numpy")
    for k in range(CALLS):
        x = X * (-1) ** k
        assert torch.allclose(fast(x), model(x), rtol=1e-4, atol=1e-6)
    assert model[0].calls == 2 * CALLS
    gate = compile(model[0], backend="numpy")
    for k in range(CALLS):
        x = X * (-1) ** k
        assert torch.allclose(gate(x), model[0](x), rtol=1e-4, atol=1e-6)
    assert len(programs(gate)) >= 1
    seen = []
    model[0].register_forward_hook(lambda *a: seen.append(1))
    gate(X)
    assert seen == [1]


def test_source_that_is_not_there():
    names = {"torch": torch}
    exec("def f(x):\n    y = x * 2 + 1\n    return y * y.sum().item()", names)
    f = compile(names["f"], backend="numpy")
    with pytest.warns(UserWarning, match="looks at the numbers"):
        assert [f(torch.ones(1)).item() for _ in range(CALLS)] == [9.0] * CALLS


def test_variables_that_functions_made_inside_see():
    """A lambda sees what its variable holds when it is called, not what a piece was given."""

    def step(x):
        h = x * 2
        f = lambda q: h + q
        h = h + 1
        a = report_of(f(x))
        h = a * h
        return f(report_of(h))

    def report_of(z):
        return z / 2 if z.max().item() > 2 else z + 1

    fast = compile(step, backend="numpy")
    for k in range(CALLS):
        assert torch.allclose(fast(X * k), step(X * k), rtol=1e-4, atol=1e-6)


def test_writes_into_what_an_earlier_piece_has_made():
    def f(x, w):
        b = (x * w).tanh() + x.sin() * w
        if b.sum() > 1e9:
            return x
        b *= (b * 0.1).cos() + x.exp().log()
        if b.sum() > 1e9:
            return x
        return (b * w).tanh() + x.sin().cos()

    g = compile(f, backend="numpy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(CALLS):
            ours, theirs = (torch.tensor([0.5, 1.0], requires_grad=True) for _ in range(2))
            g(torch.tensor([1.0, 2.0]), ours).sum().backward()
            f(torch.tensor([1.0, 2.0]), theirs).sum().backward()
            assert torch.allclose(ours.grad, theirs.grad, rtol=1e-4)


def test_variables_that_are_only_deleted_after_their_last_use():
    def f(x, flag):
        for _ in range(2):
            scale = (x * 2).exp().log() + x.sin().cos()
            x = (x * scale).tanh() + x.cos() - scale
            if x.sum() > 1e9:
                return x
            del scale
        y = (x * 2).exp().log() + x.sin().cos()
        for _ in range(int(flag)):
            del y
        if not flag:
            x = (y + 1).exp().log() + y.sin().cos()  # noqa: F821 - ruff takes the loop for run
        return (x * 3).exp().log() + x.sin().cos() - 1

    g = compile(f, backend="numpy")
    for k in range(CALLS):
        assert torch.allclose(g(X, k % 3 == 0), f(X, k % 3 == 0), rtol=1e-4)
    assert programs(g)


def test_variables_written_in_a_try_may_have_no_value():
    def f(x, flag):
        y = (x * 2).exp().log() + x.sin().cos()
        try:
            if flag:
                e = y * 2
        except ValueError:
            pass
        if y.sum() > 1e9:
            return x
        if flag:
            y = (e * 0.5).exp().log() + e.sin().cos()
        return y

    g = compile(f, backend="numpy")
    for k in range(CALLS):
        assert torch.allclose(g(X, k % 3 == 0), f(X, k % 3 == 0), rtol=1e-4)


def test_a_result_that_backward_needs_must_not_be_written_to():
    f, g = (compile(h, backend="numpy") for h in (lambda x: x.exp(), lambda x: x.sin() * 3))
    for _ in range(CALLS):
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        y = f(x)
        y.mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()
        z = g(x)
        z.mul_(2)
        z.sum().backward()
        assert torch.allclose(x.grad, 6 * x.detach().cos())


def test_what_eagers_backward_does_not_read_may_be_written_to():
    """The program would compute `x + 1` again, from an x that has changed since."""

    def f(x, w):
        h = (x + 1) * 2
        return (h * w).tanh(), h + w

    g = compile(f, backend="numpy")
    for written in range(3):  # x, w, the second result
        for _ in range(CALLS):
            found = []
            for h in (f, g):
                x, w = torch.tensor([0.5, 1.0]), torch.tensor([1.0, 2.0], requires_grad=True)
                first, second = h(x, w)
                with torch.no_grad():
                    (x, w, second)[written].add_(5)
                (first.sum() + (second * second).sum()).backward()
                found.append(w.grad.tolist())
            assert found[0] == pytest.approx(found[1], rel=1e-5)
    assert programs(g)


def test_a_write_between_pieces_to_what_backward_reads_is_noticed():
    """Also in watched runs, in which an argument's history begins anew (a gradient was wrong in silence)."""

    def f(x, w):
        b = (w * x).sigmoid()
        if b.sum() > 1e9:
            return b
        with torch.no_grad():
            b.mul_(0.5)
        return (b + 1).sum()

    for h in (f, compile(f, backend="numpy")):
        for _ in range(CALLS):
            w = torch.ones(2, requires_grad=True)
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                h(torch.ones(2), w).backward()


def test_backward_goes_on_beyond_the_arguments_of_a_piece():
    """A piece runs backward, and a gradient ends at a leaf that it does not know."""

    def step(x, w):
        y = w + 0
        seen.append(x.sum().item())
        loss = (y * x).sum()
        loss.backward()
        return loss.detach()

    def beyond(x, y):
        (y * x).sum().backward()
        return x * 2

    run, later, seen = torch.compile(step), torch.compile(beyond), []
    for i in range(8):
        x, w, v = torch.full((4,), float(i)), torch.ones(4).requires_grad_(), torch.ones(4).requires_grad_()
        run(x, w)
        later(x, v.exp())
        assert w.grad.tolist() == [i] * 4
        torch.testing.assert_close(v.grad, x * v.exp().detach())
    assert len(seen) == 8


@pytest.mark.parametrize("back", [False, True])
def test_memory_that_is_handed_over(back):
    """`p.data = x` stays Python, and what stands around it is compiled; given back, it is nothing to a program."""

    def ran(make):
        torch.manual_seed(0)
        model, mean = nn.Linear(6, 6), nn.Linear(6, 6)
        optimizer = optim.Adam(model.parameters(), 0.01)

        def average(x):
            optimizer.zero_grad()
            loss = (model(x) - mean(x)).square().mean()
            loss.backward()
            optimizer.step()
            mean.weight.data = mean.weight.data * 0.9 + model.weight.data * 0.1
            return loss.detach()

        def quantized(x):
            own = model.weight.data
            model.weight.data = own.sign()
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            model.weight.data = own
            optimizer.step()
            return loss.detach()

        f = make(quantized if back else average)
        losses = [f(torch.arange(24.0).view(4, 6) / 24).item() for _ in range(8)]
        return [*losses, *model.weight.flatten().tolist(), *mean.weight.flatten().tolist()], f

    expected, _ = ran(lambda f: f)
    found, f = ran(lambda f: compile(f, backend="numpy"))
    assert found == pytest.approx(expected, rel=1e-5, abs=1e-7)
    assert len(programs(f)) == 1
    assert (f.pieces is None) == back


class Counting(torch.nn.Module):
    """A module whose forward counts its calls."""

    def __init__(self):
        super().__init__()
        self.inner, self.calls = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)), 0

    def forward(self, x):
        self.calls += 1
        return self.inner(x)


class OneThatCounts:
    """A trainer that calls it in a method of its own, amid other things."""

    def __init__(self):
        torch.manual_seed(0)
        self.model = Counting()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def predicted(self, x):
        return self.model(x)

    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = ((self.predicted(x) - y) ** 2).mean()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def test_methods_around_modules_that_count():
    """What such a module computes is compiled, and nobody is watched for ever."""
    plain, own = OneThatCounts(), OneThatCounts()
    g, x = compile(own.step, backend="numpy"), torch.randn(8, 4)
    for _ in range(40):
        assert g(x, x[:, :1]) == pytest.approx(plain.step(x, x[:, :1]), rel=1e-3)
    assert own.model.calls == 40
    forward = [p for p in g.whole() if p.name.startswith("Counting.forward (")]
    assert [sum(map(len, p.programs.values())) for p in forward] == [1]
