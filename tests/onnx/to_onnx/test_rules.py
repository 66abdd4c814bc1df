"""Every op on its samples (tests/table/samples): what becomes an ONNX file agrees with onnxruntime."""

from __future__ import annotations

import collections
import warnings

import numpy as np
import pytest

from rushlight.base.lazy import complete
from rushlight.onnx.export import OnnxExporterError, export
from rushlight.onnx.to_onnx import conversion
from rushlight.onnx.to_onnx.rules import RULES
from tests.onnx.onnx_case import TOLERANCE, error_of, session
from tests.support.op_calls import arrays_in, fixed, put_into
from tests.table.samples import NAMES, SAMPLES, function_of, is_random

complete()
# runtimes have no rule for nan and infinities in maxima and sums
NOT_TESTED = "not finite"


class Noted(dict):
    """The rules. `read`: the ops whose rules were looked up; `expressed`: the ops whose rules wrote files that agree."""

    def __init__(self, rules):
        super().__init__(rules)
        self.read, self.expressed = set(), set()

    def __getitem__(self, op):
        self.read.add(op.name)
        return super().__getitem__(op)


def finite(arrays):
    return all(np.isfinite(a).all() for a in arrays if a.dtype.kind == "f")


def of_tensors(function, args, kwargs):
    """The function of its tensors alone; its results as a list."""

    def run(*tensors):
        rest = iter(tensors)
        given, named = (put_into(value, lambda _: next(rest)) for value in (args, kwargs))
        return arrays_in(function(*given, **named))

    return run


def outcome(name, sample, dtype, rules):
    """What happened to a sample: "agrees", or why it was not compared. AssertionError if onnxruntime disagrees."""
    args, kwargs = sample.make(dtype)
    given = [fixed(a) for a in arrays_in([args, kwargs])]
    run = of_tensors(function_of(name), args, kwargs)
    try:
        wanted = [t._array for t in run(*[fixed(t._array) for t in given])]
    except (RuntimeError, TypeError, IndexError, ValueError, NotImplementedError):
        return "raises"
    if not given or not wanted:
        return "no tensors"
    if not finite([t._array for t in given]):
        return NOT_TESTED
    rules.read.clear()
    try:
        program = export(run, tuple(given))
    except OnnxExporterError:
        return "refused"
    running = session(program)
    got = running.run(None, {i.name: t._array for i, t in zip(running.get_inputs(), given)})
    worst = max(map(error_of, got, wanted), default=0.0)
    assert worst <= TOLERANCE, f"{sample}: error {worst}"
    rules.expressed |= rules.read
    return "agrees"


def outcomes(name, rules):
    """The outcome of each sample of an op."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # float64 determinants are left out: onnxruntime has no Det for float64
        return [
            outcome(name, sample, "float32", rules)
            for sample in SAMPLES[name]
            if not (sample.name.startswith(("det/", "linalg_det/")) and sample.name[-1] in "34")
        ]


@pytest.fixture
def rules(monkeypatch):
    noted = Noted(RULES)
    monkeypatch.setattr(conversion, "RULES", noted)
    return noted


OPS = [name for name in NAMES if not is_random(name)]


@pytest.mark.parametrize("name", OPS)
def test_samples_agree(name, rules):
    outcomes(name, rules)


# Entries whose rules the samples do not reach, and where they are tested instead.
ELSEWHERE = {
    **dict.fromkeys(["region", "with_region"], "writes through views: test_dynamic_dims.py"),
    **dict.fromkeys(["lstm_layer", "gru_layer"], "samples read the array for backward: test_export_models.py"),
    "adaptive_max_pool": "samples read the places: test_dynamic_dims.py",
}


@pytest.mark.exhaustive
def test_most_samples_are_compared_and_every_rule_is_tested(rules):
    found = collections.Counter(one for name in OPS for one in outcomes(name, rules))
    assert found["agrees"] > 1700, found
    untested = {op.name for op in RULES} - rules.expressed - ELSEWHERE.keys()
    assert not untested, f"rules without a sample that is exported: {sorted(untested)}"
