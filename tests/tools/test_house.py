"""tools/house.py: what it counts, and what it leaves alone."""

from __future__ import annotations

import ast

import house
import pytest

FILES = {
    "rushlight/__init__.py": 'NAMES = ["softmax"]\n',
    "rushlight/base/text.py": "def define(text):\n    exec(text)\n",
    "rushlight/core/table.py": (
        "import numpy\n\n\ndef run(a, size):\n"
        "    from rushlight.base import text\n    import scipy\n\n"
        "    if a.size > 4096 or a.size > size or a.size > 0:  # type: ignore\n"
        '        return eval("a.itemsize")  # no llvmlite\n'
        '    if op.name == "mul":\n'
        "        return [1, 2]\n"
    ),
    "rushlight/ops/reduce.py": (
        '__all__ = ["layer_norm"]\nsoftmax = inner(lambda x: x)\n'
        'if op.name == "mul":\n    pass\n' + "# " + 119 * "-" + "\n"
    ),
    "rushlight/func/rules.py": "@rule(reduce.softmax)\ndef f():\n    return softmax(x)\n",
    "rushlight/nn/softmax.py": '"""The softmax of x."""\n\n\ndef g():\n    return softmax(x)\n',
}


@pytest.fixture
def counted(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return house.measures(tmp_path)


def test_measures(counted):
    expected = {
        "files in the root": 1,
        "folders": 5,
        "files": 6,
        "lines": sum(text.count("\n") for text in FILES.values()),
        "lines over 120 columns": 1,
        "`type: ignore`": 1,
        "late imports of the package": 1,
        "late imports of others": 1,
        "exec, eval outside base/text.py": 1,
        "comparisons with op names": 1,
        "functions over 40 lines": 0,
        "functions over 15 branches": 0,
        "files that describe softmax": 2,
        "files that describe layer_norm": 0,
        "files that describe convolution": 0,
        "core: files": 1,
        "core: lines": 11,
        "core: `llvmlite`": 1,
        "core: thresholds": 1,
        "core: `itemsize`": 1,
    }
    assert {what: int(counted[what]) for what in expected} == expected


def test_tokens_of_a_line(tmp_path):
    path = tmp_path / "a.py"
    path.write_text('"""A docstring\nof two lines."""\n\nx = 1  # one\ny = f(x)\n')
    lines = house.Source(path, tmp_path).code_lines()
    assert (len(lines), set(lines)) == (9, {4, 5})


def test_branches_are_counted():
    text = "def f(x):\n    for i in x:\n        if i and x or [j for j in i]:\n            pass\n"
    [(function, name)] = house.named_functions(ast.parse(text))
    assert (name, house.branches(function)) == ("f", 6)


def test_a_table_has_a_column_for_each_checkout():
    assert house.table({"before": {"files": "618"}, "now": {"files": "12"}}) == (
        "|       | before | now |\n| ----- | -----: | --: |\n| files |    618 |  12 |"
    )
