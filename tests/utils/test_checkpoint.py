"""Checkpoints: the same gradients, random numbers and runs as torch's, and its errors."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pytest

import rushlight
from rushlight.utils import checkpoint as module
from tests.support.programs import like_torch

both = pytest.mark.parametrize("reentrant", [True, False])


def tool(lib):
    return module if lib is rushlight else __import__("torch.utils.checkpoint").utils.checkpoint


def same(oracle, ask):
    ours, theirs = ask(rushlight), oracle(ask)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=5e-5)


def network(lib, x, w):
    return (x @ w).tanh().exp().sin() * x.sum()


@both
def test_gradients(oracle, reentrant):
    def ask(lib):
        x = (lib.arange(6.0).reshape(2, 3) / 5).requires_grad_()
        w = (lib.arange(9.0).reshape(3, 3) / 7).requires_grad_()
        y = tool(lib).checkpoint(lambda x, n, w: network(lib, x * n, w), x.sin(), 2, w, use_reentrant=reentrant)
        (y.cos() * w.sum()).sum().backward()
        return y.tolist(), x.grad.tolist(), w.grad.tolist()

    same(oracle, ask)


@both
def test_runs_and_memory(oracle, reentrant):
    """Once forward, once in backward; and backward again gives the same."""

    def ask(lib):
        runs = []

        def part(x):
            runs.append(lib.is_grad_enabled())
            return x.exp().sin().exp()

        x = lib.ones(3, requires_grad=True)
        y = tool(lib).checkpoint(part, x, use_reentrant=reentrant).sum()
        y.backward(retain_graph=True)
        first = list(runs)
        y.backward()
        return [first], x.grad.tolist()

    same(oracle, ask)


@both
@pytest.mark.parametrize("preserve", [True, False])
def test_random_numbers(oracle, reentrant, preserve):
    def ask(lib):
        lib.manual_seed(3)
        drawn = []

        def part(x):
            noise = lib.rand(4)
            drawn.append(noise.tolist())
            return x * noise * noise.exp()

        x = lib.ones(4, requires_grad=True)
        y = tool(lib).checkpoint(part, x, use_reentrant=reentrant, preserve_rng_state=preserve)
        drawn.append(lib.rand(1).tolist() * 4)
        y.sum().backward()
        return [*drawn, lib.rand(2).tolist(), x.grad.tolist()]

    same(oracle, ask)


@both
def test_autocast_in_both_runs(oracle, reentrant):
    def ask(lib):
        seen = []

        def part(x):
            y = x @ x
            seen.append(str(y.dtype))
            return y.float().sin()

        x = lib.ones(2, 2, requires_grad=True)
        with lib.autocast("cpu"):
            y = tool(lib).checkpoint(part, x, use_reentrant=reentrant, **({} if reentrant else {"early_stop": False}))
        y.sum().backward()
        return seen

    assert ask(rushlight) == oracle(ask)


def test_keywords_containers_and_second_derivatives(oracle):
    def ask(lib):
        x, w = (lib.ones(2) * n for n in (0.5, 2.0))
        x.requires_grad_()
        w.requires_grad_()
        found = tool(lib).checkpoint(
            lambda d, *, w: {"y": [d["x"].exp() * w.sin()]}, {"x": x}, w=w, use_reentrant=False
        )
        g = lib.autograd.grad(found["y"][0].sum(), [x, w], create_graph=True)
        second = lib.autograd.grad((g[0] * g[1]).sum(), [x, w])
        return [t.tolist() for t in (*g, *second)]

    same(oracle, ask)


def test_nested_and_modules(oracle):
    def ask(lib):
        lib.manual_seed(0)
        model = lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.Tanh(), lib.nn.Dropout(0.5), lib.nn.Linear(4, 2))
        x = lib.ones(2, 3)
        c = tool(lib).checkpoint
        y = c(lambda x: c(model, x, use_reentrant=False).sin(), x, use_reentrant=False)
        y.sum().backward()
        return [p.grad.tolist() for p in model.parameters()]

    same(oracle, ask)


@both
@pytest.mark.parametrize("segments", [1, 2, 3])
def test_sequential(oracle, reentrant, segments):
    def ask(lib):
        lib.manual_seed(1)
        layers = [lib.nn.Linear(3, 3), lib.nn.Tanh(), lib.nn.Linear(3, 3), lib.nn.Sigmoid(), lib.nn.Linear(3, 1)]
        x = lib.ones(2, 3, requires_grad=True)
        runs = []
        layers[0].register_forward_hook(lambda *_: runs.append(1.0))
        y = tool(lib).checkpoint_sequential(lib.nn.Sequential(*layers), segments, x, use_reentrant=reentrant)
        y.sum().backward()
        return y.tolist(), x.grad.tolist(), runs, layers[0].weight.grad.tolist()

    same(oracle, ask)


def test_early_stop():
    ran = []

    def part(x):
        y = x.exp()
        ran.append("begun")
        y = y.sin().clone()
        ran.append("ended")
        return y

    for early, expected in ((True, 3), (False, 4)):
        ran.clear()
        x = rushlight.ones(2, requires_grad=True)
        module.checkpoint(part, x, use_reentrant=False, early_stop=early).sum().backward()
        assert len(ran) == expected
    with module.set_checkpoint_early_stop(False):
        ran.clear()
        module.checkpoint(part, x, use_reentrant=False).sum().backward()
        assert len(ran) == 4


def test_contexts_for_the_runs():
    entered = []

    class Note:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            entered.append(self.name)

        def __exit__(self, *exc):
            entered.append(f"not {self.name}")

    x = rushlight.ones(2, requires_grad=True)
    y = module.checkpoint(lambda x: x.exp(), x, use_reentrant=False, context_fn=lambda: (Note("first"), Note("second")))
    y.sum().backward()
    assert entered == ["first", "not first", "second", "not second"]


REFUSED = ["use_reentrant=True, a=1", "use_reentrant=True, debug=True", "use_reentrant=False, determinism_check='x'"]


@pytest.mark.parametrize("options", REFUSED)
def test_refusals(oracle, options):
    def ask(lib):
        try:
            eval(f"check(abs, x, {options})", {"check": tool(lib).checkpoint, "x": lib.ones(1, requires_grad=True)})
        except ValueError as error:
            return str(error).split("\n")[0][:60]

    assert ask(rushlight) == oracle(ask)


def test_runs_that_differ(oracle):
    def ask(lib):
        found = []
        for second in (lambda x: x.sin(), lambda x: x[:1].exp().sin()):
            runs = []

            def part(x, runs=runs, second=second):
                runs.append(1)
                return x.exp().sin() if len(runs) == 1 else second(x)

            y = tool(lib).checkpoint(part, lib.ones(2, requires_grad=True), use_reentrant=False)
            try:
                y.sum().backward()
            except tool(lib).CheckpointError as error:
                found.append([isinstance(error, RuntimeError), str(error).split(".")[2][:50]])
        return found

    assert ask(rushlight) == oracle(ask)


def test_warnings():
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed explicitly"):
        module.checkpoint(lambda x: x.exp(), rushlight.ones(1, requires_grad=True))
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad"):
        assert not module.checkpoint(lambda x: x.exp(), rushlight.ones(1), use_reentrant=True).requires_grad
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module.checkpoint(lambda x: x.exp(), rushlight.ones(1, requires_grad=True), use_reentrant=False)


def test_gradients_of_some_inputs_alone_go_with_the_other_kind():
    """The backward inside the backward would add to the gradients of everyone."""
    layer, x = rushlight.nn.Linear(2, 2), rushlight.ones(1, 2, requires_grad=True)
    for compute in (lambda y: rushlight.autograd.grad(y, x), lambda y: y.backward(inputs=[x])):
        with pytest.raises(RuntimeError, match="incompatible with .grad\\(\\) or passing an `inputs`"):
            compute(module.checkpoint(layer, x, use_reentrant=True).sum())
    assert layer.weight.grad is None


@pytest.mark.parametrize("early_stop", [True, False])
def test_functions_that_differentiate_themselves(early_stop):
    def checked(function):
        return lambda x: module.checkpoint(function, x, use_reentrant=False)

    def slope(function):
        return lambda x: rushlight.autograd.grad(function(x), x, create_graph=True)[0]

    def function(x):
        return x.sin().exp().sin()

    x = rushlight.tensor(0.7, requires_grad=True)
    pairs = [
        (slope(function), checked(slope(function))),
        (slope(slope(function)), slope(checked(slope(function)))),
        (slope(slope(function)), checked(slope(slope(checked(function))))),
        (slope(slope(slope(function))), slope(checked(slope(checked(slope(checked(function))))))),
    ]
    with module.set_checkpoint_early_stop(early_stop):
        for plain, parts in pairs:
            ours, expected = parts(x), plain(x)
            assert rushlight.allclose(ours, expected)
            assert rushlight.allclose(*(rushlight.autograd.grad(y, x)[0] for y in (ours, expected)))


def test_a_write_to_a_saved_output_is_an_error_as_without_a_checkpoint():
    """The second run's outputs are checked, too: torch uses the new numbers, a wrong gradient."""

    def f(x):
        y = x.exp()
        y.add_(1)
        return y * y

    x = rushlight.arange(2.0, requires_grad=True)
    for run in (f, lambda x: module.checkpoint(f, x, use_reentrant=False)):
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            run(x).sum().backward()


@pytest.mark.parametrize("tail", [False, True])
def test_a_checkpoint_inside_a_checkpoint_with_a_norm_that_writes_buffers(oracle, tail):
    """The hooks of both wait until the norm has written its statistics: the outer one took the norm's inputs for its
    own."""

    def program(t):
        t.manual_seed(0)
        again = partial(tool(t).checkpoint, use_reentrant=False)
        inner = t.nn.Sequential(t.nn.BatchNorm1d(3), t.nn.GELU(), t.nn.Linear(3, 3)).double()
        last = t.nn.Linear(3, 3).double() if tail else t.nn.Identity()
        x = t.randn(4, 3, dtype=t.float64, requires_grad=True)
        (again(lambda x: last(again(inner, x)), x) ** 3).sum().backward()
        return [x.grad, inner[2].weight.grad, inner[0].running_mean, inner[0].num_batches_tracked]

    like_torch(oracle, program)
