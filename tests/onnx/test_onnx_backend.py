"""The backend tests of the onnx package: as many pass as in floor.json (tests/onnx/backend.py prints the others)."""

from __future__ import annotations

import json

import pytest

from tests.onnx import backend

pytest.importorskip("onnx")
QUICK = 12  # each 12th test


def test_some_backend_tests():
    """All failing tests are of known kinds: refused operators, other random numbers, rounding of half types."""
    passed, failed = backend.results(backend.rushlight_runner, QUICK)
    assert sum(passed.values()) > 150
    known = ("refused: ", "random numbers", "rounding in")
    assert {name: why for name, why in failed.items() if not why.startswith(known)} == {}


@pytest.mark.exhaustive
def test_all_backend_tests():
    floor = json.loads(backend.FLOOR.read_text())
    passed, failed = backend.results(backend.rushlight_runner)
    assert sum(passed.values()) + len(failed) >= 2024
    assert {kind: passed[kind] for kind in floor if passed[kind] < floor[kind]} == {}, failed


def test_a_wrong_result_is_seen():
    case = next(backend.packed(*pair) for pair in backend.cases() if pair[1].name == "test_add")
    assert backend.failure(case, backend.rushlight_runner) == ""
    assert backend.failure(case, lambda model: lambda x, y: x + y + 1) == "numbers"
    assert backend.failure(case, lambda model: lambda x, y: (x + y).astype("f8")).startswith("dtype or shape")
