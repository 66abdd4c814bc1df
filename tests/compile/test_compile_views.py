"""Writes through views inside compiled functions: eager's numbers, in the caller's memory too."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as torch
from rushlight.compile import compile, programs

CALLS = 5


def one_place(x):
    y = x.clone()
    y[0] = 5
    return y


def a_view_older_than_the_write(x):
    y = x * 1
    v = y.reshape(6)
    y.add_(1)
    return v * 1


def views_of_one_memory(x):
    y = x * 2
    a, b = y[0], y[:, 1]
    a.mul_(3)
    b.add_(a[1])
    y[1, 0] = 7
    return y, a * 1, b + 0


def turned_and_flat(x):
    w = x.clone()
    w.t()[0] = w[0, 0] * 2
    w.view(-1)[2:4] = w.view(-1)[0:2]
    return (w * w).sum()


def whole_numbers_and_conditions(x):
    y = (x * 3).long()
    y[x > 0] = -1
    y[:, ::2] += 2
    return y


def an_argument(x):
    x[0] = x[1] * 2
    x[:, 1:].zero_()
    return x.sum()


def blocks(x):
    out = torch.zeros(2, 6)
    for i, part in enumerate((x, x * 2)):
        out[:, 3 * i : 3 * i + 3] = part
    return out


FUNCTIONS = (
    one_place,
    a_view_older_than_the_write,
    views_of_one_memory,
    turned_and_flat,
    whole_numbers_and_conditions,
    an_argument,
    blocks,
)


@pytest.mark.parametrize("backend", ["numpy", "loops"])
@pytest.mark.parametrize("f", FUNCTIONS)
def test_what_eager_gives(f, backend):
    if backend == "loops":
        pytest.importorskip("llvmlite")
    g, rng = compile(f, backend=backend, fullgraph=True), np.random.default_rng(0)
    for _ in range(CALLS):
        x = torch.tensor(rng.standard_normal((2, 3)).astype(np.float32))
        y = x.clone()
        for got, want in zip(torch.utils._pytree.tree_leaves(g(x)), torch.utils._pytree.tree_leaves(f(y))):
            np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-6)
        assert x.tolist() == y.tolist()
    assert len(programs(g)) == 1


def test_a_cache_that_the_function_fills():
    caches = torch.zeros(4, 3), torch.zeros(4, 3)

    def fill(cache, x):
        cache[1:3] = x
        cache[0].add_(1)
        return cache.sum()

    g = compile(lambda x: fill(caches[0], x), backend="numpy", fullgraph=True)
    for k in range(CALLS):
        x = torch.full((2, 3), float(k))
        assert g(x).item() == fill(caches[1], x).item()
        assert torch.equal(*caches)
    assert programs(g)


def test_gradients_through_written_regions():
    p = torch.ones(2, 3, requires_grad=True)

    def step(x):
        p.grad = None
        y = p * x
        y[0] = x[1] * p[1]
        y[:, 0].mul_(2)
        loss = (y * y).sum()
        loss.backward()
        return loss

    g = compile(step, backend="numpy", fullgraph=True)
    for k in range(CALLS):
        x = torch.arange(6.0).view(2, 3) + k
        want, grad = step(x).item(), p.grad.tolist()
        assert g(x).item() == want
        assert p.grad.tolist() == grad
    assert programs(g)


def test_a_view_of_written_memory_is_not_handed_out():
    def f(x):
        x[0] = 0
        return x.view(-1)

    g = compile(f, backend="numpy")
    with pytest.warns(UserWarning, match="returns a view of memory that it writes to"):
        view = g(x := torch.ones(2, 3))
    view[5] = 9
    assert x[1, 2].item() == 9


def test_results_that_share_memory_keep_their_history():
    """What a program returns knows nothing of other tensors: a write to a part of it would pass the whole by."""

    def f(x, w):
        c = w * x
        return c, c[0]

    def g(x, w):
        return w.view(-1), x * w

    for h in (f, g):
        compiled = compile(h, backend="numpy")
        for _ in range(5):
            found = []
            for k in (h, compiled):
                w = torch.linspace(0, 1, 4).view(2, 2).requires_grad_() * 1.0
                leaf = w.clone().detach().requires_grad_()
                first, second = k(torch.full((2, 2), 2.0), leaf * 1)
                (first if h is g else second).sigmoid_()
                (first.sum() + second.sum()).backward()
                found.append(leaf.grad)
            assert torch.equal(*found)


def test_steps_without_results_in_a_backward_for_some_results():
    def f(x, w, i):
        return w[i].sum(), (w * x).max(1)[0], x.gather(1, i[None]) * w[0]

    g = compile(f, backend="numpy")
    for used in ([0], [1], [1, 2]):
        for _ in range(4):
            found = []
            for h in (f, g):
                w = torch.linspace(0, 1, 9).view(3, 3).requires_grad_()
                outs = h(torch.arange(9.0).view(3, 3), w, torch.tensor([2, 0, 2]))
                sum([outs[k].sum() for k in used]).backward()
                found.append(w.grad)
            assert torch.allclose(*found)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.clone().view(-1),
        lambda x: (x * 1)[0],
        lambda x: x.float().clone()[1],
        lambda x: (x.exp(), x.exp().view(-1)),
        lambda x: (x * 2, (x * 2).clone().t()),
    ],
)
def test_results_show_no_memory_that_they_did_not_show(f):
    """Passes leave out copies; the views of a copy must not show the original, nor one result another."""
    g = compile(f, backend="numpy")
    for _ in range(5):
        found = []
        for h in (f, g):
            x = torch.ones(2, 2)
            made = h(x)
            made = made if isinstance(made, tuple) else (made,)
            found.append([t.add_(5).tolist() for t in made] + [t.tolist() for t in (x, *made)])
        assert found[0] == found[1]
    assert programs(g)


def test_gated_units_of_small_layers_are_computed_from_this_runs_numbers():
    """A view that a loop wants copied is looked at after the loop that writes there, both being parts of one
    function."""
    pytest.importorskip("llvmlite")
    x, w = torch.randn(2, 8), torch.randn(8, 8)

    def trained(compiled):
        weight = w.clone().requires_grad_()
        optimizer = torch.optim.SGD([weight], 0.1)

        def step(x):
            optimizer.zero_grad()
            loss = torch.nn.functional.glu(x @ weight).square().mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        step = torch.compile(step) if compiled else step
        return [step(x).item() for _ in range(6)]

    np.testing.assert_allclose(trained(True), trained(False), rtol=1e-5)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: torch.stack(x[:, :1].unbind(1)) * 2,  # a list of one
        lambda x: torch.einsum("ti,si->ts", x, x)[None] @ x[None].exp(),  # a small product of stacks
        lambda x: x.transpose(0, 0).exp() + x.transpose(-1, 1),  # nothing is turned
    ],
)
def test_what_compiles(f):
    x, g = torch.randn(5, 4), torch.compile(f)
    for _ in range(4):
        torch.testing.assert_close(g(x), f(x))
    assert not g.given_up


@pytest.mark.parametrize(
    "made", [lambda w: (w * 1).mT, lambda w: w.reshape(2, 1, 3).sum(1).mT, lambda w: (w * 1).T.clone()]
)
def test_gradients_go_on_to_what_an_argument_was_made_from(made):
    """They end in no program, nor are they lost: views have a history like others, also where nothing was saved."""
    held = []

    def given(v):
        loss = (v * 2).sum()
        loss.backward()
        return loss.detach()

    def reached():
        return given(held[0])

    for f in (given, reached):
        g = compile(f, backend="numpy")
        for _ in range(4):
            w = torch.ones(2, 3, requires_grad=True)
            held[:] = [made(w)]
            g(*held[: f is given])
            assert w.grad.tolist() == [[2.0] * 3] * 2


def test_modules_run_compiled_on_views_of_what_others_made():
    first, second = torch.nn.Linear(4, 6), torch.nn.Linear(6, 1)
    g = compile(second, backend="numpy")
    for _ in range(4):
        x, found = torch.randn(3, 2, 4), []
        for f in (g, second):
            first.zero_grad()
            f(first(x).view(6, 6)).tanh().sum().backward()
            found.append(first.weight.grad)
        assert torch.allclose(*found)
    assert programs(g)


def test_writes_before_a_watched_run():
    """What `exp_` keeps is no memory of what it was written to: to watch who is given that must not say so."""
    g = compile(lambda y: (y * 2).tanh().mean(), backend="numpy")
    for _ in range(4):
        w = torch.full((2, 3), 0.5, requires_grad=True)
        y = (w * 1).mul_(0.2).exp_()
        g(y).backward()
        assert w.grad is not None


@pytest.mark.parametrize("backend", ["numpy", "loops"])
def test_results_that_show_one_memory(backend):
    """A loop writes no copy of its own for a view: who writes to one result writes to the other."""

    def f(x):
        y = (x + 1).exp()
        return (y * 2).sum(), y, y.view(-1), y.sum(0, keepdim=True).expand(4)

    g = compile(f, backend=backend)
    for _ in range(4):
        _, y, same, repeated = g(torch.arange(4.0))
        y.add_(1)
        assert torch.equal(y, same)
        assert repeated.stride() == (0,)
    assert programs(g)


def test_views_of_what_is_written_later():
    """Windows share elements: nobody writes to them, also where their memory was written after they were made."""

    def f(x):
        y = x * 2
        windows = y.unfold(-1, 2, 1)
        y.data.mul_(0.5)
        return windows, y * 1

    g = compile(f, backend="numpy")
    for _ in range(4):
        windows = g(torch.arange(4.0))[0]
        assert windows.tolist() == [[0, 1], [1, 2], [2, 3]]
        with pytest.raises(RuntimeError, match="single memory location"):
            windows.add_(1)
    assert programs(g)


def test_second_derivatives_by_two_ways():
    """A parameter that the function reaches, and that its argument was made from, too: no way counts twice."""
    w = torch.tensor([2.0], requires_grad=True)
    g, found = compile(lambda y: (y * w).tanh().sum() + w.pow(3).sum(), backend="numpy"), []
    for f in (g, g, g, g.function):
        w.grad = None
        (first,) = torch.autograd.grad(f((w * 0.1).exp()), w, create_graph=True)
        first.pow(2).sum().backward()
        found.append((first.item(), w.grad.item()))
    assert programs(g)
    assert found[2] == pytest.approx(found[3], rel=1e-4)


def test_second_derivatives_ask_hooks_once():
    w = torch.tensor([2.0], requires_grad=True)
    w.register_hook(lambda g: g * 3)
    g, found = compile(lambda y: (y * w).tanh().sum(), backend="numpy"), []
    for f in (g, g, g, g.function):
        w.grad = None
        (first,) = torch.autograd.grad(f(torch.ones(3) * 0.3), w, create_graph=True)
        first.pow(2).sum().backward()
        found.append((first.item(), w.grad.item()))
    assert programs(g)
    assert found[2] == pytest.approx(found[3], rel=1e-4)


def test_parts_that_backward_reads_lie_with_gaps():
    """A loop that wants them in another shape is given copies; it could not be compiled."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GLU(), torch.nn.GroupNorm(2, 4)).double()
    g = compile(model, backend="loops")
    for _ in range(4):
        x, found = torch.randn(5, 4).double(), []
        for f in (g, model):
            model.zero_grad()
            f(x).pow(2).mean().backward()
            found.append(model[0].weight.grad)
        assert torch.allclose(*found)
    assert programs(g)


def test_penalties_on_gradients_of_what_draws_random_numbers():
    """No program can be run again for a second derivative: who is differentiated twice while it is watched has none."""
    w = torch.ones(3, requires_grad=True)

    def f(x):
        return torch.nn.functional.dropout(x * w, 0.5).tanh().sum()

    g, found = compile(f, backend="numpy"), {}
    for h in (f, g):
        torch.manual_seed(0)
        for _ in range(5):
            w.grad = None
            (first,) = torch.autograd.grad(h(torch.arange(3.0)), w, create_graph=True)
            first.pow(2).sum().backward()
            found.setdefault(h, []).append(w.grad.tolist())
    assert found[f] == found[g]
    assert not programs(g)
    g = compile(f, backend="numpy")
    for _ in range(4):
        g(torch.arange(3.0)).backward()
        torch.autograd.grad(f(torch.arange(3.0)), w, create_graph=True)  # of something else
    assert programs(g)


def test_errors_of_layouts_do_not_depend_on_numbers():
    """They come in each call: who catches them is compiled."""

    def f(x):
        y = x.mT * 2
        try:
            return y.view(-1) + 1
        except RuntimeError:
            return y.reshape(-1) + 2

    g = compile(f, backend="numpy")
    for _ in range(4):
        x = torch.randn(2, 3)
        assert torch.equal(g(x), f(x))
    assert programs(g)


@pytest.mark.parametrize("backend", ["numpy", "loops"])
def test_results_and_gradients_lie_as_in_eager(backend):
    def f(x, w):
        w.grad = None
        ((x.sum(1)[:, 0] @ w) * 2).sum().backward()
        made = torch.nn.functional.conv2d(x, w.new_ones(4, 3, 3, 3))
        return torch.cat([x, x], 1), x * 2 + 1, (x[0, 0] + 1).t(), x.mean(1), made

    def strides(g):
        x, w = torch.randn(2, 3, 5, 5).to(memory_format=torch.channels_last), torch.randn(6, 5).t().requires_grad_()
        return [*(t.stride() for t in g(x, w)), w.grad.stride()]

    g = compile(f, backend=backend)
    found = [strides(g) for _ in range(CALLS)]
    assert found[2:] == [strides(f)] * (CALLS - 2)
    assert programs(g)


def in_a_copy(x):
    y = x.clone()
    y[0] = x[1] * 2
    return y.clamp_(max=0.5)


@pytest.mark.parametrize(
    "f",
    [
        torch.vmap(in_a_copy),
        torch.vmap(lambda x: x.mul_(2) + 1),
        torch.vmap(torch.func.grad(lambda x: (in_a_copy(x) * x).sum())),
        torch.vmap(lambda rows: torch.vmap(lambda x: x.clone().add_(rows.sum()))(rows)),
    ],
)
def test_writes_to_samples_of_a_batch(f):
    """The compiler sees the write to all of them, and nothing of the one that the function means."""

    def called(x):
        return f(x)

    g, x = compile(called, backend="numpy"), torch.randn(3, 2, 2)
    for _ in range(CALLS):
        a, b = x.clone(), x.clone()
        assert [g(a).tolist(), a.tolist()] == [f(b).tolist(), b.tolist()]
    assert programs(g)


@pytest.mark.parametrize("write", ["fill_", "zero_", "conj_physical_"])
@pytest.mark.parametrize("backend", ["numpy", "inductor"])
def test_a_write_to_an_expanded_tensor_is_eager(write, backend):
    def f(x):
        wide = x.expand(2, 3)
        getattr(wide, write)(*[2.0] * (write == "fill_"))
        return wide * 2

    g = torch.compile(f, backend=backend)
    for _ in range(3):
        x = torch.randn(3)
        y = x.clone()
        torch.testing.assert_close(g(x), f(y))
        torch.testing.assert_close(x, y)


def test_strides_of_a_result_that_lies_in_another_order():
    f = lambda x: (x * 2).as_strided((2, 2), (1, 2))
    g = torch.compile(f)
    for _ in range(3):
        x = torch.randn(3).expand(2, 3)
        torch.testing.assert_close(g(x), f(x))
