"""The pictures of README and documentation show what the programs show today: `make pictures` writes them."""

import json
import re
import shutil

import demo_pictures  # tools/
import error_pictures
import mistakes
import numpy as np
import pytest
import speed_chart
import step_page_picture
import training_pictures

from tests.support.paths import ROOT

ASSETS = ROOT / "docs" / "assets"
DIFFERENCE = (
    8.0  # levels of 255, in the mean over a picture: fonts, and the last digits of a training, differ between machines
)


@pytest.mark.origin("newcomers")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_moving_picture_shows_the_page_of_today(tmp_path, scheme):
    image = pytest.importorskip("PIL.Image")
    pytest.importorskip("playwright.sync_api")
    if shutil.which("chromium") is None:
        pytest.skip("Chromium is not installed")
    step_page_picture.neuron(tmp_path / "neuron.html")
    _, words = step_page_picture.frames(tmp_path / "neuron.html", scheme)
    with image.open(ASSETS / f"neuron-{scheme}.gif") as picture:
        shown = json.loads(picture.info["comment"])
        assert picture.n_frames == len(words)
    assert shown == words, "run `make pictures`"


@pytest.mark.origin("newcomers")
@pytest.mark.parametrize("kind", ["terminal", "notebook"])
@pytest.mark.parametrize(("title", "name"), error_pictures.SHOWN.items())
def test_a_picture_of_an_error_shows_the_message_of_today(title, name, kind):
    image = pytest.importorskip("PIL.Image")
    if kind == "notebook":
        pytest.importorskip("nbclient")
        pytest.importorskip("ipykernel")
    (program,) = [m.program for m in mistakes.mistakes(mistakes.PAGE.read_text()) if m.title == title]
    text = error_pictures.in_terminal(program) if kind == "terminal" else error_pictures.in_notebook(program)
    for scheme in error_pictures.SCHEMES:
        with image.open(error_pictures.FOLDER / f"{name}-{kind}-{scheme}.png") as picture:
            picture.load()
            assert picture.text["shown"] == error_pictures.plain(text), "run `make pictures`"


def pixels(path):
    from PIL import Image

    with Image.open(path) as picture:
        return np.asarray(picture.convert("RGB")).astype(float)


def compare(folder, kept):
    for path in sorted(folder.glob("*.png")):
        new, old = pixels(path), pixels(kept / path.name)
        assert new.shape == old.shape, f"{path.name}: run `make pictures`"
        assert np.abs(new - old).mean() < DIFFERENCE, f"{path.name}: run `make pictures`"


@pytest.mark.exhaustive
def test_pictures_of_training_are_those_of_today(tmp_path):
    pytest.importorskip("PIL")
    training_pictures.main(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} < {path.name for path in training_pictures.FOLDER.iterdir()}
    compare(tmp_path, training_pictures.FOLDER)


@pytest.mark.exhaustive
def test_pictures_of_the_demo_are_those_of_today(tmp_path):
    pytest.importorskip("PIL")
    demo_pictures.write(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(demo_pictures.NAMES)
    compare(tmp_path, ASSETS)


def test_a_changed_picture_is_found(tmp_path):
    image = pytest.importorskip("PIL.Image")
    with image.open(ASSETS / "demo-digits.png") as picture:
        changed = picture.convert("RGB")
    changed.paste((0, 0, 0), (0, 0, changed.width, changed.height // 10))
    changed.save(tmp_path / "demo-digits.png")
    with pytest.raises(AssertionError, match="make pictures"):
        compare(tmp_path, ASSETS)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_chart_shows_the_report(tmp_path, scheme):
    pytest.importorskip("matplotlib")
    report = json.loads((ROOT / "benchmarks" / "speed.json").read_text())
    speed_chart.draw(speed_chart.ratios(report), scheme, tmp_path / "chart.svg")
    texts = [
        re.findall(r"<text.*?>(.*?)</text>", path.read_text(), re.DOTALL)
        for path in (tmp_path / "chart.svg", ASSETS / f"speed-{scheme}.svg")
    ]
    assert texts[0] == texts[1], "run `make pictures`"
    assert len(texts[0]) > 20
