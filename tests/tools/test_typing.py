"""mypy --strict and pyright accept ordinary programs and see their types: tests/typing/*.py."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support.paths import ROOT

PROGRAMS = ROOT / "tests" / "typing"
WRONG = """
import rushlight as torch
from rushlight import nn

x = torch.randn(3)
x.summ()
nn.Linear(2, biass=False)
nn.ELU(alphaa=2.0)
"""


def checked(tool, *arguments):
    """What a type checker prints; the environment finds this checkout's package."""
    return subprocess.run(
        [sys.executable, "-m", tool, *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "MYPYPATH": ""},
    )


def mypy(*files):
    pytest.importorskip("mypy")
    return checked("mypy", "--strict", "--config-file=", "--follow-imports=silent", "--no-incremental", *files)


def pyright(*files):
    pytest.importorskip("pyright")
    return checked("pyright", "--pythonpath", sys.executable, *files)


@pytest.mark.parametrize("check", [mypy, pyright])
def test_ordinary_programs_are_accepted(check):
    found = check(*sorted(PROGRAMS.glob("*.py")))
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.parametrize("check", [mypy, pyright])
def test_mistakes_are_found(check, tmp_path):
    (tmp_path / "wrong.py").write_text(WRONG)
    found = check(tmp_path / "wrong.py")
    assert found.returncode == 1
    assert "summ" in found.stdout
    assert "biass" in found.stdout
    assert "alphaa" in found.stdout
