"""The loss landscape: its values are losses of the model at these places, the parameters stay, the page turns."""

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn, viz
from tests.viz.test_page import LONG, SIZES, browser, data_of

__all__ = ["browser"]  # a fixture


def trained(count=30):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Dropout(0.2), nn.Linear(8, 1))
    x = torch.randn(40, 2)
    y = x.prod(1, keepdim=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    with viz.Path(model) as path:
        for _ in range(count):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
    return model, path, lambda: nn.functional.mse_loss(model(x), y)


def test_values_are_losses_at_their_places():
    model, path, loss = trained()
    before = [p.detach().clone() for p in model.parameters()]
    found = viz.landscape(path, loss, points=7, model=model)
    assert model.training
    assert model[2].training
    for p, old in zip(model.parameters(), before):
        assert torch.equal(p, old)
    places, directions, shares = path.plane()
    np.testing.assert_array_equal(found.path, places)
    assert found.shares == shares
    model.eval()
    assert found.path_losses[-1] == pytest.approx(loss().item(), rel=1e-6)
    for j, i in ((0, 0), (3, 5), (6, 2)):
        vector = path.found[-1] + found.xs[i] * directions[0] + found.ys[j] * directions[1]
        with torch.no_grad():
            nn.utils.vector_to_parameters(torch.tensor(vector.astype(np.float32)), model.parameters())
        assert found.values[j, i] == pytest.approx(loss().item(), rel=1e-4)
    assert found.xs[0] < found.path[:, 0].min() < found.path[:, 0].max() < found.xs[-1]
    assert found.ys[0] < found.path[:, 1].min() < found.path[:, 1].max() < found.ys[-1]


def test_an_error_of_the_loss_leaves_the_parameters():
    model, path, _ = trained(5)
    before = [p.detach().clone() for p in model.parameters()]
    with pytest.raises(ValueError, match="return the loss"):
        viz.landscape(path, lambda: model(torch.ones(3, 2)))
    for p, old in zip(model.parameters(), before):
        assert torch.equal(p, old)


def test_errors():
    model, path, loss = trained(3)
    with pytest.raises(ValueError, match="points must be"):
        viz.landscape(path, loss, points=2)
    with pytest.raises(ValueError, match="has 0 vectors"):
        viz.landscape(viz.Path(model), loss)


def test_pictures(tmp_path):
    pytest.importorskip("matplotlib")
    _, path, loss = trained()
    found = viz.landscape(path, loss, points=9)
    figure = found.figure()
    [line] = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    np.testing.assert_allclose(line.get_xydata(), found.path)
    for name in ("land.png", "land.svg", "land.html"):
        found.save(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 5000
    found.values[0, 0] = np.nan
    found.figure()
    assert data_of(found.html())["values"][0][0] == "nan"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_the_page_turns(browser, tmp_path, size, scheme):
    _, path, loss = trained()
    found = viz.landscape(path, loss, points=9)
    found.save(tmp_path / "land.html")
    width, height = SIZES[size]
    tab = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    tab.set_default_timeout(LONG)
    said = []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("request", lambda request: said.append(request.url) if request.url.startswith("http") else None)
    tab.goto((tmp_path / "land.html").as_uri())
    picture = "document.getElementById('land').toDataURL()"
    first = tab.evaluate(picture)
    assert f"step 30: loss {found.path_losses[-1]:.4g}" == tab.inner_text("#said")
    tab.mouse.move(width / 2, height / 2)
    tab.mouse.down()
    tab.mouse.move(width / 2 + 90, height / 2 - 30, steps=3)
    tab.mouse.up()
    turned = tab.evaluate(picture)
    assert turned != first
    tab.click("#home")
    assert tab.evaluate(picture) == first
    tab.focus("#land")
    tab.keyboard.press("ArrowLeft")
    assert tab.evaluate(picture) != first
    tab.keyboard.press("0")
    tab.mouse.move(width / 2, height / 2)
    tab.mouse.wheel(0, -300)
    tab.wait_for_timeout(50)
    assert tab.evaluate(picture) != first
    tab.focus("#slider")
    tab.keyboard.press("Home")
    assert f"step 0: loss {found.path_losses[0]:.4g}" == tab.inner_text("#said")
    tab.click("#turn")
    moving = tab.evaluate(picture)
    tab.wait_for_timeout(200)
    assert tab.evaluate(picture) != moving
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert said == []
    tab.close()
