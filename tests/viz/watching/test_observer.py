"""What is recorded: the numbers are the training's, which stays as it is; nothing remains afterwards."""

import json

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn, viz
from rushlight.nn import functional as F
from rushlight.nn.hooks import Hooked
from rushlight.optim.optimizer import EVERYWHERE
from rushlight.profiler.clocks import RUNNING
from rushlight.viz.watching import observer, sample


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))


def steps(model, count, optimizer=None, known=None):
    """Train on random samples; `known` gets (loss, weight before, gradient, weight after) of each step."""
    torch.manual_seed(1)
    x, y = torch.randn(32, 4), torch.randint(0, 3, (32,))
    optimizer = optimizer or torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(count):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        weight = next(model.parameters())
        before, grad = weight.detach().clone(), weight.grad.clone()
        optimizer.step()
        if known is not None:
            known.append((loss.item(), before.numpy(), grad.numpy(), weight.detach().clone().numpy()))
    return x, y


@pytest.fixture
def often(monkeypatch):
    """Each step is recorded."""
    monkeypatch.setattr(observer, "INTERVAL", 0.0)
    monkeypatch.setattr(observer, "SHARE", 1e9)


def state(page, **query):
    return json.loads(page.state({name: str(value) for name, value in query.items()})[1])


def test_the_numbers_are_those_of_the_training(often):
    model, known = network(), []
    with viz.live(model, quiet=True) as page:
        x, y = steps(model, 5, known=known)
    found = state(page)
    page.close()
    assert [step for step, _, _ in found["losses"]] == [1, 2, 3, 4, 5]
    np.testing.assert_allclose([loss for _, loss, _ in found["losses"]], [loss for loss, *_ in known], rtol=1e-4)
    assert [layer["name"] for layer in found["meta"]["layers"]] == ["model[0]", "model[1]", "model[2]"]
    assert [layer["parameters"] for layer in found["meta"]["layers"]] == [[0, 1], [], [2, 3]]
    assert [record["step"] for record in found["records"]] == [1, 2, 3, 4, 5]
    for record, (_, before, grad, after) in zip(found["records"], known):
        values, gradient, ratio = record["p"]["0"]
        assert values[:2] == pytest.approx([after.min(), after.max()], rel=1e-4)
        assert gradient[:2] == pytest.approx([grad.min(), grad.max()], rel=1e-4)
        assert gradient[4] == pytest.approx(np.sqrt((grad**2).mean()), rel=1e-4)
        expected = np.sqrt(((after - before).astype(float) ** 2).mean() / (before**2).mean())
        assert ratio == pytest.approx(expected, rel=1e-3)
        assert set(record["a"]) == {"0", "1", "2"}
        assert record["a"]["1"][0] == 0  # of a ReLU
        assert record["a"]["1"][5] > 0


def test_predictions_are_the_models(often):
    model = network()
    with viz.live(model, quiet=True) as page:
        x, y = steps(model, 3)
        weights = model.state_dict()
        kept = {name: value.clone() for name, value in weights.items()}
        shown = None
    shown = state(page)["predictions"]
    page.close()
    assert shown["kind"] == "classes"
    assert [row["target"] for row in shown["rows"]] == y[:8].tolist()
    assert shown["of"] == 32
    assert kept.keys() == weights.keys()
    before = network()  # the predictions of the last step were made before its update
    steps(before, 2)
    chances = before(x).softmax(1)
    assert shown["right"] == pytest.approx((chances.argmax(1) == y).float().mean().item(), abs=1e-4)
    for row, expected in zip(shown["rows"], chances.tolist()):
        best = sorted(range(3), key=lambda c: -expected[c])
        assert [c for c, _ in row["best"]] == best
        assert [p for _, p in row["best"]] == pytest.approx([expected[c] for c in best], rel=1e-3)


def test_slow_ops_are_those_of_the_step(often, monkeypatch):
    monkeypatch.setattr(sample, "MAX_OPS", 100)
    model = network()
    with viz.live(model, quiet=True) as page:
        steps(model, 3)
    found = state(page)
    page.close()
    names = {name: count for name, _, count in found["ops"]}
    assert names["aten::linear"] == 2
    assert {"optimizer.step()", "Python between the ops", "ReluBackward0"} <= set(names)
    assert sum(ms for _, ms, _ in found["ops"]) == pytest.approx(found["ms"], rel=0.02)


def test_the_training_is_unchanged(often):
    model, plain = network(), network()
    with viz.live(model, quiet=True) as page:
        steps(model, 6)
        random = torch.rand(3)
    page.close()
    steps(plain, 6)
    assert torch.equal(random, torch.rand(3))
    for a, b in zip(model.parameters(), plain.parameters()):
        assert torch.equal(a, b)


def test_nothing_remains_after_the_block_or_an_error():
    call, loss, engine = Hooked.__call__, F.cross_entropy, torch.core.backward.add_gradients
    hooks = {kind: dict(found) for kind, found in EVERYWHERE.kinds.items()}
    model = network()
    page = viz.live(model, quiet=True)

    def fails():
        with page:
            steps(model, 2)
            1 / 0

    with pytest.raises(ZeroDivisionError):
        fails()
    page.close()
    assert Hooked.__call__ is call
    assert F.cross_entropy is loss
    assert torch.core.backward.add_gradients is engine
    assert EVERYWHERE.kinds == hooks
    assert not RUNNING
    with torch.profiler.profile() as profile:
        steps(model, 1)
    assert "aten::linear" in {row.key for row in profile.key_averages()}


def test_beside_another_profile(often):
    model = network()
    with torch.profiler.profile() as profile, viz.live(model, quiet=True) as page:
        steps(model, 2)
    found = state(page)
    page.close()
    assert found["ops"] == []
    assert len(found["records"]) == 2
    assert "aten::linear" in {row.key for row in profile.key_averages()}


def test_news_alone_are_sent(often):
    model = network()
    with viz.live(model, quiet=True) as page:
        steps(model, 4)
        first = state(page)
        last = state(page, since=first["records"][1]["number"], losses=3, version=first["meta"]["version"])
    page.close()
    assert [record["number"] for record in last["records"]] == [3, 4]
    assert [step for step, *_ in last["losses"]] == [4]
    assert last["meta"] is None
    assert last["count"] == 4


def test_a_long_training_is_thinned(often, monkeypatch):
    monkeypatch.setattr(observer, "MAX_RECORDS", 10)
    monkeypatch.setattr(observer, "MAX_LOSSES", 20)
    model = network()
    with viz.live(model, quiet=True) as page:
        steps(model, 60)
    found = state(page)
    page.close()
    assert len(found["records"]) <= 10
    assert len(found["losses"]) <= 20
    for points in ([record["step"] for record in found["records"]], [step for step, *_ in found["losses"]]):
        assert (points[0], points[-1]) == (1, 60)
        assert points == sorted(points)


def test_two_optimizers_are_found(often):
    torch.manual_seed(0)
    first, second = network(), nn.Linear(4, 1)
    optimizers = [torch.optim.SGD(first.parameters(), lr=0.1), torch.optim.SGD(second.parameters(), lr=0.2)]
    x = torch.randn(8, 4)
    with viz.live(quiet=True) as page:
        for _ in range(3):
            for model, optimizer in zip((first, second), optimizers):
                optimizer.zero_grad()
                (model(x).square().mean() * optimizer.param_groups[0]["lr"]).backward()
                optimizer.step()
    found = state(page)
    page.close()
    assert [layer["name"] for layer in found["meta"]["layers"]] == ["first[0]", "first[1]", "first[2]", "second"]
    assert set(found["records"][-1]["p"]) == {"0", "1", "2", "3", "4", "5"}
    assert {which for *_, which in found["losses"]} == {0, 1}


def test_tensors_of_no_module_are_shown(often):
    w = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)
    with viz.live(quiet=True) as page:
        for _ in range(2):
            optimizer.zero_grad()
            w.square().sum().backward()
            optimizer.step()
    found = state(page)
    page.close()
    assert found["meta"]["layers"][0]["name"] == "tensors"
    assert [loss for _, loss, _ in found["losses"]] == pytest.approx([3.0, 1.92], rel=1e-4)
    assert found["records"][-1]["p"]["0"][2] == pytest.approx(0.2, rel=1e-3)


def test_other_optimizers_are_not_counted():
    model, other = network(), nn.Linear(1, 1)
    with viz.live(model, quiet=True) as page:
        optimizer = torch.optim.SGD(other.parameters(), lr=0.1)
        other(torch.ones(1, 1)).sum().backward()
        optimizer.step()
        assert page.count == 0
    page.close()


def test_losses_of_accumulated_gradients_are_averaged():
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with viz.live(model, quiet=True) as page:
        for value in (1.0, 3.0):
            (model(torch.ones(1, 1)).sum() * 0 + value).backward()
        torch.autograd.grad(model(torch.ones(1, 1)).sum(), list(model.parameters()))  # no loss
        optimizer.step()
    assert state(page)["losses"] == [[1, 2.0, 0]]
    page.close()


def test_nan_is_sent_as_text(often):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.param_groups[0]["lr"] = float("nan")
    with viz.live(model, quiet=True) as page:
        steps(model, 2, optimizer)
    found = state(page)
    page.close()
    assert found["losses"][1][1] == "nan"
    assert found["records"][1]["p"]["0"][0][6] == 1


def test_a_compiled_model_keeps_its_program(often):
    pytest.importorskip("llvmlite")
    model = network()
    fast = torch.compile(model)
    plain = network()
    steps(fast, 3)
    programs = torch.compiler.programs(fast)
    with viz.live(model, quiet=True) as page:
        steps(fast, 4)
    found = state(page)
    page.close()
    assert len(found["records"]) == 4
    assert found["records"][-1]["p"]["0"][1] is not None
    assert programs
    assert torch.compiler.programs(fast) == programs
    steps(plain, 3)
    steps(plain, 4)
    for a, b in zip(model.parameters(), plain.parameters()):
        torch.testing.assert_close(a, b)
