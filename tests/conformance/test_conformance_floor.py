"""The floor under the conformance counts: it rises, it never sinks, and a fall is reported."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys

import pytest

from tests.support.paths import ROOT

spec = importlib.util.spec_from_file_location("conformance_floor", ROOT / "tools" / "conformance_floor.py")
tool = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tool)


def report(passed, quick=True, torch=f"{tool.REFERENCE}+cpu"):
    return {
        "torch": torch,
        "quick": quick,
        "summary": [
            {"suite": "ops", "column": "float32", "pass": passed, "applicable": 10},
            {"suite": "ops", "column": "bool", "pass": 0, "applicable": 0},
        ],
    }


@pytest.fixture
def floor(tmp_path, monkeypatch):
    path = tmp_path / "floor.json"
    monkeypatch.setattr(tool, "FLOOR", path)
    return path


def run(tmp_path, passed, *options, quick=True):
    made = tmp_path / "report.json"
    made.write_text(json.dumps(report(passed, quick)))
    return tool.main(["--report", str(made), *options])


def test_the_floor_rises_and_never_sinks(floor, tmp_path):
    assert run(tmp_path, 5, "--write") == 0
    assert run(tmp_path, 7, "--write") == 0
    assert json.loads(floor.read_text()) == {"quick": {"ops float32": [7, 10]}}
    assert run(tmp_path, 6, "--write") == 1
    assert json.loads(floor.read_text()) == {"quick": {"ops float32": [7, 10]}}


def test_quick_and_full_counts_have_floors_of_their_own(floor, tmp_path):
    run(tmp_path, 5, "--write")
    run(tmp_path, 3, "--write", quick=False)
    assert json.loads(floor.read_text()) == {"full": {"ops float32": [3, 10]}, "quick": {"ops float32": [5, 10]}}


def test_another_torch_has_floors_of_its_own():
    kinds = [tool.kind_of(report(5, quick, torch)) for quick in (True, False) for torch in ("2.13.0+cpu", "2.15.0")]
    assert kinds == ["quick", "quick, torch 2.15.0", "full", "full, torch 2.15.0"]


def test_a_fall_is_told(floor, tmp_path, capsys):
    run(tmp_path, 5, "--write")
    assert run(tmp_path, 4) == 1
    assert "ops float32: 4 of 10 pass, the floor is 5" in capsys.readouterr().out


def test_a_column_that_is_gone_has_fallen():
    assert tool.fallen({}, {"ops float32": [1, 10]}) == ["ops float32: 0 of 10 pass, the floor is 1"]


def test_without_torch_nothing_is_measured_and_that_is_an_error(monkeypatch, capsys):
    monkeypatch.setattr(tool.importlib.util, "find_spec", lambda name: None)
    assert tool.main([]) == 2
    assert "not measured" in capsys.readouterr().err


@pytest.mark.exhaustive
def test_the_harness_finds_planted_faults_and_none_in_torch():
    """The harness tests itself, with torch as the candidate, in a process of its own."""
    pytest.importorskip("torch")
    made = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-c", os.devnull, "."],
        cwd=tool.HARNESS,
        env={**os.environ, "PYTHONPATH": str(tool.HARNESS)},
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stdout
