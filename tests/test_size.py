"""Small files, short functions: CI watches the size."""

from __future__ import annotations

import ast
import statistics

from tests.support.paths import PACKAGE

FILE, FUNCTION, MEDIAN = 450, 60, 12  # lines


def file_sizes(root):
    return {
        str(path.relative_to(root)): path.read_text().count("\n") for path in root.rglob("*.py")
    }


def function_sizes(root):
    """{place: lines from def to end, docstring and all}; decorators are not counted."""
    return {
        f"{path.relative_to(root)}:{node.lineno} {node.name}": node.end_lineno - node.lineno + 1
        for path in root.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }


def over(sizes, limit):
    return {place: lines for place, lines in sizes.items() if lines > limit}


def test_files_are_small():
    assert over(file_sizes(PACKAGE), FILE) == {}


def test_functions_are_short():
    assert over(function_sizes(PACKAGE), FUNCTION) == {}


def test_the_median_function_is_shorter():
    assert statistics.median(function_sizes(PACKAGE).values()) < MEDIAN


def test_a_long_function_is_seen(tmp_path):
    body = "    pass\n" * FUNCTION
    (tmp_path / "a.py").write_text(
        f"class A:\n  async def f():\n{body}\ndef g():\n    pass\n" + "\n" * FILE
    )
    assert over(function_sizes(tmp_path), FUNCTION) == {"a.py:2 f": FUNCTION + 1}
    assert list(over(file_sizes(tmp_path), FILE)) == ["a.py"]
