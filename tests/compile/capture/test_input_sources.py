"""Arguments that a compiled function also reaches by itself: the caller's batches are the trainer's attribute."""

from __future__ import annotations

import warnings
from collections import OrderedDict, namedtuple
from dataclasses import dataclass

import pytest

import rushlight as torch
from rushlight import nn, optim
from rushlight.compile import compile, programs


class Trainer:
    """What holds the model, the optimizer and the data."""

    def __init__(self, batches=4):
        torch.manual_seed(0)
        self.model = nn.Linear(4, 3)
        self.optimizer = optim.Adam(self.model.parameters(), lr=0.1)
        self.batches = [(torch.randn(5, 4), torch.randn(5, 3)) for _ in range(batches)]

    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = ((self.model(x) - y) ** 2).mean()
        loss.backward()
        self.optimizer.step()
        return loss


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [0, 0, 0, 1, 1, 2, 3, 0]], ids=["in turn", "one first"])
@pytest.mark.parametrize("how", ["a closure", "a method"])
def test_batches_of_the_object_that_is_called(order, how):
    eager, fast = Trainer(), Trainer()
    f = compile(fast.step if how == "a method" else lambda *b: fast.step(*b), backend="numpy")
    for i in order * 3:
        assert torch.allclose(f(*fast.batches[i]), eager.step(*eager.batches[i]), rtol=1e-5)
    assert len(programs(f)) == 1
    assert not f.given_up


def test_batches_and_a_learning_rate_that_changes():
    fast = Trainer()
    f = compile(fast.step, backend="numpy")
    for i in range(12):
        fast.optimizer.param_groups[0]["lr"] *= 0.9
        f(*fast.batches[i % 4])
    assert len(programs(f)) == 1
    assert not f.given_up


def test_what_else_is_reached_is_not_the_argument():
    held = [torch.tensor([float(i + 1)]) for i in range(4)]
    f = compile(lambda x: x * held[0] + held[1], backend="numpy")
    for i in (0, 0, 0, 0, 1, 1, 1, 2, 3, 2, 3, 0, 1, 2):
        assert f(held[i]).item() == (i + 1) * 1 + 2, i
    assert not f.given_up


def test_python_state_that_tells_which_tensor_is_meant():
    held, which = [torch.tensor([2.0]), torch.tensor([3.0])], [0]
    f = compile(lambda x: x * held[which[0]], backend="numpy")
    for i, k in ((0, 0), (1, 1), (0, 1), (1, 0), (0, 1), (1, 1), (0, 0), (1, 0)) * 2:
        which[0] = k
        assert f(held[i]).item() == (2, 3)[i] * (2, 3)[k], (i, k)


def test_lists_dicts_and_objects_that_are_given_and_changed():
    def into_dict(d):
        d["loss"] = d["x"] * 2
        return d["x"] * 3

    def into_list(items):
        items.append(items[0] * 2)
        return items[0] * 3

    for f, make in ((into_dict, lambda x: {"x": x}), (into_list, lambda x: [x])):
        g = compile(f, backend="numpy")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for i in range(6):
                ours, theirs = make(torch.ones(2) * i), make(torch.ones(2) * i)
                assert g(ours).tolist() == f(theirs).tolist()
                assert str(ours) == str(theirs)
    h = compile(lambda d: d["x"] * 3, backend="numpy")
    for _ in range(6):
        h({"x": torch.ones(2)})
    assert len(programs(h)) == 1


def test_results_in_named_tuples_ordered_dicts_and_dataclasses():
    Pair = namedtuple("Pair", "a b")

    @dataclass(frozen=True)
    class Frozen:
        a: torch.Tensor
        b: int = 3

    class Filled(OrderedDict):
        pass

    @dataclass
    class Output(Filled):
        """As those of Hugging Face: what is not None is also in the dict."""

        loss: torch.Tensor | None = None
        logits: torch.Tensor | None = None

        def __post_init__(self):
            self.update((k, v) for k, v in (("loss", self.loss), ("logits", self.logits)) if v is not None)

    def f(x):
        y = (x * 2).exp().log()
        return (Pair(y, [x]), Frozen(y + 1), OrderedDict(u=y, v=None), Output(logits=y * 3), x.max(1), torch.nn)

    g = compile(f, backend="numpy")
    x = torch.rand(3, 4)
    for _ in range(5):
        for a, b in zip(g(x), f(x)):
            assert type(a) is type(b)
            assert str(a).replace(" ", "")[:30] == str(b).replace(" ", "")[:30]
    assert len(programs(g)) == 1
    found = g(x)
    assert found[0].b[0] is x
    assert torch.allclose(found[3]["logits"], found[3].logits)
    assert found[4].indices.tolist() == x.max(1).indices.tolist()


def test_a_tensor_that_is_returned_twice_is_one():
    def f(x):
        a = (x * 2).exp().log() + 1
        return a, [a], {"a": a}

    g = compile(f, backend="numpy")
    for _ in range(5):
        a, b, c = g(torch.ones(3, requires_grad=True))
        assert a is b[0] is c["a"]
    (a.sum() + b[0].sum()).backward()
    assert len(programs(g)) == 1


def test_requires_grad_that_a_function_changes():
    w = torch.ones(3)

    def f(x):
        (w if x.sum() is None else x).requires_grad_()
        return torch.autograd.grad((x**2).sum(), x)[0]

    def g(x):
        w.requires_grad_()
        return (w * x).sum()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        f, g = compile(f, backend="numpy"), compile(g, backend="numpy")
        for _ in range(5):
            x = torch.ones(3)
            w.requires_grad_(False)
            assert f(x).tolist() == [2, 2, 2]
            assert x.requires_grad
            assert not w.requires_grad
            assert g(torch.ones(3)).requires_grad
            assert w.requires_grad
