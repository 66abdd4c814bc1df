"""An exported model beside onnxruntime: the file is checked by the onnx package and run for several sizes."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from rushlight.onnx.export import export
from tests.support.op_calls import arrays_in

TOLERANCE = 1e-5  # of the largest element


def session(program):
    """An onnxruntime session of a program, whose file onnx.checker has accepted."""
    onnx = pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    data = program.model_proto.SerializeToString()
    onnx.checker.check_model(data, full_check=True)
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    return runtime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def error_of(got, wanted):
    """The largest difference, by the largest element; inf for other shapes or dtypes, or if only one is nan."""
    got = np.asarray(got)
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return np.inf
    if wanted.dtype.kind not in "fc":
        return 0.0 if np.array_equal(got, wanted) else np.inf
    finite = np.isfinite(wanted)
    if not np.array_equal(got[~finite], wanted[~finite], equal_nan=True):
        return np.inf
    scale = np.abs(wanted[finite]).max(initial=0)
    away = np.abs(got[finite].astype(np.float64) - wanted[finite]).max(initial=0)
    return float(away / scale) if scale else float(away)


def largest_error(running, model, args, kwargs=None):
    """The largest error of a session's results."""
    with rushlight.no_grad():
        wanted = [t._array for t in arrays_in(model(*args, **(kwargs or {})))]
    given = [t._array for t in arrays_in([args, kwargs or {}])]
    got = running.run(None, dict(zip([i.name for i in running.get_inputs()], given)))
    assert len(got) == len(wanted)
    return max(map(error_of, got, wanted), default=0.0)


def check(model, examples, *, kwargs=None, **options):
    """Export `model` for the first example and compare it with onnxruntime for all; the program."""
    if hasattr(model, "eval"):
        model.eval()
    program = export(model, examples[0], kwargs=kwargs and kwargs[0], **options)
    running = session(program)
    for k, args in enumerate(examples):
        assert largest_error(running, model, args, kwargs and kwargs[k]) <= TOLERANCE, f"example {k}"
    return program
