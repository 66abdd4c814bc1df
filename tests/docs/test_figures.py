"""The figures of README.md are those that can be measured now: `make figures` writes them."""

import figures  # tools/figures.py
import pytest

TOLERANCE = 0.05  # of sizes and lines, which grow with each change
EXACT = ("mistakes", "programs", "operator tests")
README = figures.README.read_text(encoding="utf-8")
CLAIMED = figures.written(README)


@pytest.mark.parametrize(("name", "value"), figures.counted().items())
def test_a_counted_figure_is_true(name, value):
    allowed = 0 if name in EXACT else TOLERANCE
    assert CLAIMED[name] == pytest.approx(value, rel=allowed, abs=0), "run `make figures`"


@pytest.mark.parametrize(("name", "value"), figures.estimated().items())
def test_a_size_is_true(name, value):
    if not value:
        pytest.skip(f"{name} is not installed")
    assert CLAIMED[name] == pytest.approx(value, rel=TOLERANCE), "run `make figures`"


def test_each_figure_has_a_source():
    assert set(CLAIMED) == {*figures.counted(), "wheel", "installed", "torch"}


def test_figures_are_written_into_their_sentences():
    made = figures.replaced(README, {"wheel": 7.25, "lines": 1234567, "mistakes": 5})
    again = figures.written(made)
    assert (again["wheel"], again["lines"], again["mistakes"]) == (7.2, 1234567, 5)
    assert {name: again[name] for name in CLAIMED if again[name] != CLAIMED[name]}.keys() == {
        "wheel",
        "lines",
        "mistakes",
    }
    with pytest.raises(KeyError, match="The wheel is"):
        figures.written(README.replace("The wheel is", "A wheel has"))
