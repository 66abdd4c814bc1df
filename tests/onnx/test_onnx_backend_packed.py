"""The backend tests of the onnx package without this package: in the browser (tests/browser), and a few of them here."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.onnx import backend

PACKED = Path(__file__).with_name("packed")  # tests/browser writes this folder
LEAST = 1780  # tests that pass in the browser
KNOWN = ("refused: ", "random numbers", "rounding in", "needs ml_dtypes")
ROUNDED = {"test_basic_deform_conv_with_padding"}  # 2e-7 where 0 is expected, with a tolerance of 1e-7


@pytest.mark.skipif(not PACKED.exists(), reason="tests/browser packs the tests of the onnx package")
def test_packed_backend_tests():
    passed, failed = backend.results_of_packed(PACKED, backend.rushlight_runner)
    print(f"{sum(passed.values())} pass, {len(failed)} do not: {dict(passed)}", file=sys.__stdout__)
    unknown = {name: why for name, why in failed.items() if not why.startswith(KNOWN) and name not in ROUNDED}
    assert sum(passed.values()) >= LEAST
    assert unknown == {}


def test_tests_are_packed_and_read(tmp_path):
    """Two tests of the onnx package, one of them with a wrong expected result."""
    pytest.importorskip("onnx")
    wanted = {"test_add", "test_relu"}
    tests = [backend.packed(*pair) for pair in backend.cases() if pair[1].name in wanted]
    assert len(tests) == 2
    for case in tests:
        if case.name == "test_relu":
            case.sets[0][1][0] = case.sets[0][1][0] + 1
        (tmp_path / f"{case.name}.pickle").write_bytes(backend.pickle.dumps(tuple(case)))
    passed, failed = backend.results_of_packed(tmp_path, backend.rushlight_runner)
    assert (dict(passed), failed) == ({"node": 1}, {"test_relu": "numbers"})
