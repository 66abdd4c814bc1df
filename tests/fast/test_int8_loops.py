"""The loops of int8, for each kind of processor that this machine can stand for, against NumPy's kernels."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from inspect import unwrap

import numpy as np
import pytest

from rushlight.base import threads
from rushlight.fast import int8_loops
from rushlight.kernels import int8
from tests.support.paths import ROOT

pytestmark = [
    pytest.mark.skipif(find_spec("llvmlite") is None, reason="without llvmlite there are no loops"),
    pytest.mark.faster,
]
SHAPES = [(1, 64, 64), (1, 3, 5), (1, 37, 130), (4, 65, 64), (7, 130, 200), (13, 18, 1), (32, 96, 70)]
# features of a processor: (the needed one, the beginnings of those it lacks, numbers of a register)
KINDS = {
    "this machine": (None, (), 0),
    "AVX-512 without VNNI": ("+avx512bw", ("avx512vnni", "avxvnni"), 16),
    "AVX2 with VNNI": ("+avxvnni", ("avx512", "avx10", "amx"), 8),
    "AVX2": ("+avx2", ("avx512", "avx10", "amx", "avxvnni"), 8),
    "AVX": ("+avx", ("avx512", "avx10", "amx", "avxvnni", "avx2"), 8),
}


def target(kind):
    """This machine's processor, without the instructions of later ones."""
    from rushlight.loops.llvm import host

    known, (needed, unwanted, lanes) = host(), KINDS[kind]
    if needed is None:
        return known
    features = sorted(known.features.split(","))
    if needed not in features:
        pytest.skip(f"the processor has no {needed[1:]}")
    kept = [f"-{f[1:]}" if f[1:].startswith(unwanted) else f for f in features]
    return known._replace(cpu="x86-64", features=",".join(kept), lanes=lanes, registers=32 if lanes == 16 else 16)


@pytest.fixture(scope="module", params=KINDS)
def code(request):
    from rushlight.fast.int8_code import compiled

    return compiled(target(request.param))


def problem(rows, inputs, outputs, one_scale, seed):
    rng = np.random.default_rng(seed)
    values = rng.integers(-128, 128, (outputs, inputs)).astype(np.int8)
    scales = rng.random(1 if one_scale else outputs).astype(np.float32) + 0.1
    bias = rng.standard_normal(outputs).astype(np.float32) * 50 if seed % 2 else None
    return rng.standard_normal((rows, inputs)).astype(np.float32), int8.Int8Weight(values, scales, None, bias)


def check(name, x, weight, *more):
    """The loop's result beside the kernel's, with the same numbers in int32."""
    expected = unwrap(getattr(int8, name))(x, weight, *more)
    found = getattr(int8_loops, name)(x, weight, *more)
    assert found is not None
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6 * abs(expected).max())


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("one_scale", [True, False])
def test_loops_compute_as_the_kernels(code, monkeypatch, shape, one_scale):
    monkeypatch.setattr(int8_loops, "machine_code", lambda: code)
    for seed, (size, shift) in enumerate([(1, 0), (1, 3), (100, -300), (1e-5, 0), (1e-5, 1), (0, 0), (1e-42, 0)]):
        x, weight = problem(*shape, one_scale, seed)
        x = (x * size + shift).astype(np.float32)
        check("linear_by_tensor", x, weight, 127)
        check("linear_by_tensor", x, weight, 255)
        check("linear_by_rows", x * np.arange(len(x), dtype=np.float32)[:, None], weight, True)


@pytest.mark.parametrize("shape", SHAPES)
def test_weights_alone(code, monkeypatch, shape):
    monkeypatch.setattr(int8_loops, "machine_code", lambda: code)
    x, weight = problem(*shape, False, 1)
    expected = unwrap(int8.linear_of_floats)(x, weight)
    np.testing.assert_allclose(
        int8_loops.linear_of_floats(x, weight), expected, rtol=1e-4, atol=1e-5 * abs(expected).max()
    )


def test_sums_of_the_largest_numbers(code, monkeypatch):
    """255 times -128, where saturating instructions would cut."""
    monkeypatch.setattr(int8_loops, "machine_code", lambda: code)
    weight = int8.Int8Weight(np.full((70, 600), -128, np.int8), np.ones(1))
    x = np.full((5, 600), 255, np.float32)
    x[:, 1] = 0
    found = int8_loops.linear_by_tensor(x, weight, 255)
    assert (found == -255 * 128 * 599).all()


def test_all_cores_share_a_product(monkeypatch):
    monkeypatch.setattr(threads, "chosen", 3)
    monkeypatch.setattr(int8_loops, "PARALLEL_SECONDS", 0.0)
    for shape in ((1, 64, 64), (5, 70, 300)):
        x, weight = problem(*shape, False, 1)
        check("linear_by_tensor", x, weight, 127)
        check("linear_by_rows", x, weight, True)
        check("linear_of_floats", x, weight)


def test_another_bias_is_read():
    x, weight = problem(3, 8, 8, False, 1)
    before = int8_loops.linear_by_tensor(x, weight, 127)
    weight.bias = weight.bias + np.float32(1)
    np.testing.assert_allclose(int8_loops.linear_by_tensor(x, weight, 127), before + 1, rtol=1e-6)


def test_what_the_loops_leave_to_the_kernels():
    x, weight = problem(3, 8, 8, False, 1)
    assert int8_loops.linear_by_tensor(x[:, ::-1], weight, 127) is None
    assert int8_loops.linear_by_rows(x, weight, False) is None
    assert int8_loops.linear_by_tensor(x, int8.Int8Weight(weight.values(), np.ones(1), np.ones(1)), 127) is None


def test_arrays_by_address(monkeypatch):
    """Where the address is not in the object's memory, Python passes it."""
    from rushlight.fast import int8_code

    monkeypatch.setattr(int8_code, "offset_of_data", lambda: None)
    made = int8_code.compiled()
    monkeypatch.setattr(int8_loops, "machine_code", lambda: made)
    check("linear_by_tensor", *problem(3, 70, 65, False, 1), 127)


def test_without_llvmlite(monkeypatch):
    monkeypatch.setattr(int8_loops, "machine_code", lambda: None)
    x, weight = problem(3, 8, 8, False, 1)
    assert int8_loops.linear_by_tensor(x, weight, 127) is None
    assert int8_loops.linear_of_floats(x, weight) is None


def test_llvmlite_is_loaded_with_the_first_product():
    program = """
import sys, rushlight
model = rushlight.ao.quantization.quantize_dynamic(rushlight.nn.Sequential(rushlight.nn.Linear(4, 2)))
print("llvmlite" in sys.modules, end=" ")
model(rushlight.ones(1, 4))
print("llvmlite" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout == "False True\n"
