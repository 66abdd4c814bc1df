"""`make check`: which tests a changed file has."""

from __future__ import annotations

import subprocess
import sys

import check  # tools/check.py
import pytest

from tests.support.paths import ROOT

FILES = {
    "rushlight/core/views.py": ["tests/core/test_views.py", "tests/core/test_views_out.py"],
    "rushlight/ops/math/elementwise.py": ["tests/ops/math/test_elementwise.py"],
    "rushlight/ops/user_ops.py": ["tests/ops/test_user_ops.py"],
    "rushlight/fast/dispatch.py": ["tests/fast"],
    "rushlight/introspect/op_docstrings.py": ["tests/introspect/test_op_docstrings.py"],
    "rushlight/func/__init__.py": ["tests/func/test_func.py"],
    "rushlight/ops/README.md": [],
    "tests/core/test_views.py": ["tests/core/test_views.py"],
    "tests/table/samples/__init__.py": ["tests/table/samples"],
    "tools/walk.py": ["tests/tools/test_walk.py"],
    "tests/conftest.py": [],
    "LICENSE": [],
}


@pytest.mark.parametrize("file", FILES)
def test_tests_of_a_file(file):
    assert check.targets_of(file) == FILES[file]


def test_a_name_may_have_several_test_files(tmp_path):
    for name in ("tests/nn/test_conv.py", "tests/nn/test_conv_gradients.py", "tests/nn/test_convert.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    assert check.targets_of("rushlight/nn/conv.py", tmp_path) == [
        "tests/nn/test_conv.py",
        "tests/nn/test_conv_gradients.py",
    ]
    assert check.targets_of("rushlight/nn/conv_api.py", tmp_path)[0] == "tests/nn/test_conv.py"
    assert check.targets_of("rushlight/nn/pool.py", tmp_path) == ["tests/nn"]
    assert check.targets_of("rushlight/nn/deep/pool.py", tmp_path) == ["tests/nn"]


def test_entries_of_changed_lines(tmp_path):
    file = "rushlight/ops/math/some.py"
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text(
        "import x\n\nexp = op(lambda x, /: x,\n    x=lambda g: g)\nlog = op(1)\nN = 3\n\ndef sin(x):\n    return x\n"
    )
    assert check.entries(file, {4}, tmp_path) == ["exp"]
    assert check.entries(file, {5, 6, 9}, tmp_path) == ["log", "sin"]
    assert check.entries("rushlight/nn/some.py", {1}, tmp_path) == []


def test_the_expression_picks_one_entry():
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "--quick", "tests/table/test_ops.py"]
    done = subprocess.run([*command, "-k", check.of_table(["tanh"])], cwd=ROOT, capture_output=True, text=True)
    names = [line.partition("[")[2] for line in done.stdout.splitlines() if "::" in line]
    assert names
    assert all(name.startswith(("tanh]", "tanh-")) for name in names)


def test_inner_tests_are_left_out():
    assert check.without_inner({"tests/core": None, "tests/core/test_views.py": None}) == ["tests/core"]


def test_commands():
    found = check.commands(["rushlight/ops/math/elementwise.py", "README.md"], "HEAD")
    assert [command[1:3] for command in found[:1]] == [["check", "rushlight/ops/math/elementwise.py"]]
    assert "tests/test_layers.py" in found[2]
    assert "tests/ops/math/test_elementwise.py" in found[3]
    assert found[4][-1] == "tests/table/test_ops.py"  # nothing differs from HEAD: the whole file counts
