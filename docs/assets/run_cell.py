"""Runs the cells of a page in the browser; run-worker.js loads this file into Pyodide.

A cell behaves as in a notebook: names stay for the next cells, the value of a last expression is
shown, figures are shown at the end of the cell.
"""

from __future__ import annotations

import ast
import io
import linecache
import sys
import traceback
import warnings
from collections.abc import Callable

INK, LIGHT_INK = "#1b1c1d", "#dcdde0"

names = {"__name__": "__main__"}
warnings.filterwarnings(
    "ignore", message=".*non-interactive"
)  # plt.show(): figures are shown below


class Shown(io.TextIOBase):
    """A stream whose text goes to the page."""

    def __init__(self, show: Callable[[str, str], None]):
        self.show = show

    def write(self, text: str) -> int:
        self.show("text", text)
        return len(text)


def run_cell(source: str, label: str, dark: bool, show: Callable[[str, str], None]) -> bool:
    """Runs a cell and calls `show(kind, content)` for each output: text, html, svg or error.

    `label`: the cell's name in error messages. Returns whether the cell ran to its end.
    """
    linecache.cache[label] = len(source), None, source.splitlines(True), label
    sys.stdout = sys.stderr = Shown(show)
    try:
        tree = ast.parse(source, label)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, label, "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), label, "eval"), names)
            show_value(value, show)
        show_figures(dark, show)
    except Exception as error:
        inside = error.__traceback__.tb_next if error.__traceback__ else None  # without this file
        show("error", "".join(traceback.format_exception(type(error), error, inside)))
        return False
    finally:
        sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
    return True


def show_value(value: object, show: Callable[[str, str], None]) -> None:
    if value is None:
        return
    for kind, method in [("svg", "_repr_svg_"), ("html", "_repr_html_")]:
        if hasattr(value, method):
            show(kind, getattr(value, method)())
            return
    show("text", f"{value!r}\n")


def show_figures(dark: bool, show: Callable[[str, str], None]) -> None:
    if "matplotlib.pyplot" not in sys.modules:
        return
    import matplotlib.pyplot as plt

    for number in plt.get_fignums():
        picture = io.StringIO()
        plt.figure(number).savefig(picture, format="svg")
        svg = picture.getvalue()
        show("svg", svg.replace(INK, LIGHT_INK) if dark else svg)
    plt.close("all")
