"""viz.steps: the recorded numbers are those of the training, the page is bounded, and it works in a browser."""

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn, viz
from rushlight.viz import training_page
from tests.viz.test_page import LONG, SIZES, array_at, browser, data_of

__all__ = ["browser"]  # a fixture


def train(steps=6, every=2, page=None):
    """Train, on a page or without one. Returns (page, model, [weights before, gradient, loss])."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    inputs, known = torch.randn(8, 2), []
    with viz.steps(model, optimizer, every=every) as page:
        for _ in range(steps):
            optimizer.zero_grad()
            loss = model(inputs).square().mean()
            loss.backward()
            weight = model[0].weight
            known.append((weight.detach().clone(), weight.grad.clone(), loss.item()))
            optimizer.step()
    return page, model, known


def test_the_numbers_are_those_of_the_training():
    page, model, known = train()
    data = data_of(page.html())
    assert [record["step"] for record in data["records"]] == [2, 4, 6]
    assert [p["name"] for p in data["parameters"]][:2] == ["model[0].weight", "model[0].bias"]
    for record, (weight, gradient, loss) in zip(data["records"], known[1::2]):
        np.testing.assert_array_equal(array_at(data, record["values"][0]), weight.numpy())
        np.testing.assert_array_equal(array_at(data, record["grads"][0]), gradient.numpy())
        assert record["loss"] == pytest.approx(loss)
        update = (0.1 * gradient).numpy()
        expected = np.sqrt(np.mean(update**2)) / np.sqrt(np.mean(weight.numpy() ** 2))
        assert record["updates"][0] == pytest.approx(expected, rel=1e-3)
    assert [step for step, _ in data["losses"]] == [1, 2, 3, 4, 5, 6]


def test_the_training_is_unchanged(monkeypatch):
    _, model, _ = train()
    monkeypatch.setattr(training_page.TrainingPage, "__enter__", lambda self: self)
    _, other, _ = train()
    for a, b in zip(model.parameters(), other.parameters()):
        assert torch.equal(a, b)


def test_no_hook_stays():
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(ZeroDivisionError), viz.steps(model, optimizer) as page:
        raise ZeroDivisionError
    optimizer.step()
    assert page.count == 0


def test_a_loop_of_ones_own_records_itself():
    model = nn.Linear(1, 1)
    with viz.steps(model) as page:
        for value in (3.0, 2.0):
            (model(torch.ones(1, 1)) * value).sum().backward()
            page.record(value)
    data = data_of(page.html())
    assert data["losses"] == [[1, 3.0], [2, 2.0]]
    assert data["records"][1]["updates"] is None


def test_a_long_training_is_thinned(monkeypatch):
    monkeypatch.setattr(training_page, "MAX_PICTURES", 40)
    monkeypatch.setattr(training_page, "MAX_LOSSES", 10)
    page, _, _ = train(steps=30, every=1)
    data = data_of(page.html())
    assert 2 * len(data["records"]) * 4 <= 40
    assert [record["step"] % data["every"] for record in data["records"]] == [0] * len(data["records"])
    assert len(data["losses"]) <= 10


def test_many_parameters_are_left_out(monkeypatch):
    monkeypatch.setattr(training_page, "MAX_PARAMETERS", 1)
    page, _, _ = train()
    data = data_of(page.html())
    assert (len(data["parameters"]), data["leftOut"]) == (1, 3)


def test_errors():
    model = nn.Linear(1, 1)
    with pytest.raises(ValueError, match="every must be a positive int"):
        viz.steps(model, every=0)
    with pytest.raises(TypeError, match="give the model, then the optimizer"):
        viz.steps([model])
    with pytest.raises(ValueError, match="no step was recorded"):
        viz.steps(model).html()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_in_a_browser(browser, tmp_path, size, scheme):
    page, _, known = train()
    page.save(tmp_path / "training.html")
    width, height = SIZES[size]
    tab = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    tab.set_default_timeout(LONG)
    said = []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.goto((tmp_path / "training.html").as_uri())
    shown = []
    while True:
        shown.append(tab.inner_text("#said").split(".  ")[0])
        if tab.is_disabled("#next"):
            break
        tab.click("#next")
    assert [text.split(":")[0] for text in shown] == [f"Step {n} of 6" for n in (2, 4, 6)]
    assert f"loss = {known[5][2]:.5g}" in shown[-1]
    cells = "[...document.querySelectorAll('[data-parameter=\"model[0].weight\"] td')].map(c => +c.title)"
    weight, gradient, _ = known[5]
    numbers = [*weight.flatten().tolist(), *gradient.flatten().tolist()]
    np.testing.assert_allclose(tab.evaluate(cells), numbers, rtol=1e-6)
    tab.keyboard.press("Home")
    tab.keyboard.press("ArrowRight")
    assert tab.inner_text("#count") == "step 4 / 6"
    tab.click("#losses svg", position={"x": width - 60, "y": 60})  # near the last step
    assert tab.inner_text("#count") == "step 6 / 6"
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert said == []
    tab.close()
