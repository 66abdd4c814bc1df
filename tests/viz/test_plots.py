"""Plots of functions beside their derivatives, and the formulas that people type."""

import re

import numpy as np
import pytest

import rushlight as torch
from rushlight import viz
from rushlight.cli import main
from rushlight.viz.expression_parser import read


def value(text, x=2.0):
    return read(text)(torch.tensor([x])).item()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x**3 + x", 10),
        ("-x**2", -4),
        ("(1 - x)/2", -0.5),
        ("2*pi*e", 2 * np.pi * np.e),
        ("7 // x % 2", 1),
        ("sin(x)", np.sin(2)),
        ("log(exp(x))", 2),
        ("maximum(x, 3)", 3),
        ("+x", 2),
        ("3", 3),
        ("1e2*x", 200),
        ("abs(-x)", 2),
        ("2**-x", 0.25),
        ("9**9**9**9", np.inf),
        ("x" + "+x" * 150, 302),
        ("sigmoid(0*x)", 0.5),
    ],
)
def test_formulas(text, expected):
    assert value(text) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x^2", "a power is **"),
        ("2x", "2*x"),
        ("y + 1", "the variable is x"),
        ("sinn(x)", "did you mean sin"),
        ("", "cannot read"),
        ("sin", "needs brackets"),
        ("sin(x, x)", "1 argument, not 2"),
        ("maximum(x)", "2 arguments"),
        ("x.grad", "cannot read"),
        ("__import__('os').system('true')", "not a function"),
        ("x if x > 0 else 0", "cannot read"),
        ("[x]", "cannot read"),
        ("'a'", "cannot read"),
        ("True", "cannot read"),
        ("1j", "cannot read"),
        ("lambda: 0", "cannot read"),
        ("x; x", "cannot read"),
        ("(x := 3)", "cannot read"),
        ("f'{x}'", "cannot read"),
        ("sin(*x)", "argument"),
        ("sin(x=x)", "argument"),
        ("open(x)", "not a function"),
        ("x" + "+x" * 400, "at most 500"),
        ("-" * 499 + "x", "too deeply nested"),
        ("1" + "0" * 400, "too large"),
        ("x\0", "cannot read"),
    ],
)
def test_what_is_no_formula_is_refused(text, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        read(text)


def test_curves_are_the_derivatives():
    drawn = viz.plot(lambda x: x.sin() * x, -2, 2, derivatives=3)
    x = drawn.x
    expected = [np.sin(x) * x, np.cos(x) * x + np.sin(x), 2 * np.cos(x) - np.sin(x) * x, -3 * np.sin(x) - np.cos(x) * x]
    for curve, exact in zip(drawn.curves, expected):
        np.testing.assert_allclose(curve, exact, atol=1e-13)
    lines = [line for line in drawn.axes.get_lines() if len(line.get_xdata()) == len(x)]
    assert len(lines) == 4
    np.testing.assert_array_equal(lines[1].get_ydata(), drawn.curves[1])
    marks = [text.get_text() for text in drawn.axes.get_legend().get_texts()]
    assert marks == ["$f(x)$", "$f'(x)$", "$f''(x)$", "$f'''(x)$"]


def test_constants_and_lines_have_derivatives_too():
    assert not viz.plot("3").curves[1].any()
    assert (viz.plot("2*x").curves[1] == 2).all()
    assert not viz.plot("2*x").curves[2].any()
    with torch.no_grad():
        assert (viz.plot("x").curves[1] == 1).all()


def test_it_is_saved_and_shown(tmp_path):
    viz.plot("x**3 + x", path=tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert viz.plot("x")._repr_png_().startswith(b"\x89PNG")


def test_on_axes_of_ones_own():
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    assert viz.plot(torch.tanh, ax=axes).axes is axes


def test_poles_do_not_flatten_the_rest():
    low, high = viz.plot("1/x", -3, 3).axes.get_ylim()
    assert -2000 < low < -1
    assert 1 < high < 2000


def test_a_pole_is_a_gap_and_not_a_line():
    drawn = viz.plot("1/x", -3, 3, points=600)
    line = drawn.axes.get_lines()[0]
    (gap,) = np.flatnonzero(np.isnan(line.get_ydata()))
    assert gap == 300
    assert len(line.get_ydata()) == 601
    assert not np.isnan(viz.plot("x**3 + x").axes.get_lines()[0].get_ydata()).any()


def test_errors():
    with pytest.raises(ValueError, match="must increase"):
        viz.plot("x", 3, -3)
    with pytest.raises(ValueError, match="x's shape"):
        viz.plot(lambda x: x.sum())
    with pytest.raises(ValueError, match="it returned float"):
        viz.plot(lambda x: 3.0)


def test_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["plot", "x**3 + x", "--from", "-3", "--to", "3", "--out", "plot.png"]) == 0
    assert capsys.readouterr().out == "plot.png\n"
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["x^2"], "a power is **"),
        (["x", "--from", "3", "--to", "-3"], "must increase"),
        (["x", "--out", "a.xyz"], "xyz"),
        (["x", "--from", "nan"], "expected a finite number"),
        (["x", "--derivatives", "9"], "the maximum is 6"),
    ],
)
def test_the_command_refuses_in_one_line(arguments, word, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    try:
        status = main(["plot", *arguments])
    except SystemExit as leaving:
        status = leaving.code
    told = capsys.readouterr().err
    assert status == 2
    assert told.startswith("rushlight plot: ")
    assert word in told
    assert told.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
