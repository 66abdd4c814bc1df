"""Fixtures of all tests, above all `oracle`: what torch answers, from torch itself or from a golden file."""

from __future__ import annotations

import gc
import json
import os
import random
import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import rushlight
from rushlight.compile import paying
from rushlight.compile.function import Compiled
from rushlight.fast import index, policy
from rushlight.ops.kernels import matmul

# The same examples each time, however slow the machine; `pytest --hypothesis-profile=search` looks for new ones.
ANY_TIME = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("same", derandomize=True, database=None, **ANY_TIME)
settings.register_profile("search", **ANY_TIME)
settings.load_profile("same")

GOLDEN = Path(__file__).parent / "golden"
EXAMPLES = Path(__file__).parent.parent / "examples"


def pytest_addoption(parser):
    parser.addoption(
        "--golden",
        choices=["read", "write"],
        default="read",
        help="write: ask torch and write tests/golden anew (`make golden`)",
    )


def pytest_configure(config):
    if config.getoption("--golden") == "write":
        if getattr(config.option, "numprocesses", None):
            raise pytest.UsageError("--golden=write runs in one process: leave -n out")
        if torch_or_none() is None:
            raise pytest.UsageError(
                "--golden=write asks torch, and torch is not installed: pip install torch==2.13.0"
            )


def torch_or_none():
    """torch, or None where it is missing or RUSHLIGHT_NO_TORCH is set (to try the golden files)."""
    if os.environ.get("RUSHLIGHT_NO_TORCH"):
        return None
    try:
        import torch
    except ImportError:
        return None
    return torch


@pytest.fixture(scope="session")
def torch():
    """torch itself, for what a golden file cannot hold; the test is skipped without it."""
    return torch_or_none() or pytest.skip("torch is not installed")


@pytest.fixture(autouse=True)
def as_if_alone(monkeypatch):
    """Each test begins as the first of a process, whichever ran before it: the random numbers that a seed gives, and NumPy
    until a test's own work has paid for loops (rushlight/fast/policy.py)."""
    monkeypatch.setattr(policy.small_arrays, "left", index.LOADING_SECONDS)
    monkeypatch.setattr(policy.small_arrays, "loading", 0)           # as if Numba were not there yet
    monkeypatch.setattr(matmul.spent, "left", matmul.PAID)
    monkeypatch.setattr(matmul.spent, "loading", 0)
    monkeypatch.setattr(policy.large_arrays, "left", 0.0)             # large arrays go through loops
    random.seed(0), np.random.seed(0), rushlight.manual_seed(0)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)


@pytest.fixture(autouse=True)
def programs_like_eager(request, monkeypatch):
    """Fail a test in which a program gave other numbers than eager, or the compiler met a limit, whatever becomes of
    warnings: the function then runs as it is, gives right results, and nobody would notice. Tests about that are marked."""
    faults, stop = [], Compiled.stop

    def noted(self, why):
        if "please report this" in why or "a limit of the compiler" in why:
            faults.append(f"{self.name} {why}")
        return stop(self, why)
    monkeypatch.setattr(Compiled, "stop", noted)
    yield
    if faults and request.node.get_closest_marker("falls_back") is None:
        pytest.fail("\n".join(["compiled functions that run as they are:", *faults]))


@pytest.fixture
def nothing_paid(monkeypatch):
    """No loop is compiled because this test is the one with which it was paid for: Numba takes memory, and leaves cycles."""
    monkeypatch.setattr(paying.Loop, "pay", lambda self, elements: None)


@pytest.fixture
def uncollected(nothing_paid):
    """No garbage collector while the test runs; what it leaves behind is counted by the test."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def encode(value):
    """Tensors, arrays, numbers, text and nests of them -> JSON. Floats go as text with all their digits."""
    if hasattr(value, "detach"):
        return encode_tensor(value)
    if isinstance(value, np.ndarray):
        return {"dtype": value.dtype.name, "shape": list(value.shape), "data": flat(value)}
    if isinstance(value, dict):
        return {"dict": {k: encode(v) for k, v in value.items()}}
    if isinstance(value, (list, tuple)):
        return {"list": [encode(v) for v in value]}
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(
        f"oracle: cannot write {type(value).__name__} to a golden file; return tensors, numbers or text"
    )


def encode_tensor(tensor):
    tensor = tensor.detach().resolve_conj().resolve_neg()
    name = str(tensor.dtype).removeprefix("torch.")
    array = (tensor.float() if name == "bfloat16" else tensor).numpy()
    return {"dtype": name, "shape": list(array.shape), "data": flat(array)}


def flat(array):
    if array.dtype.kind == "c":
        return [[z.real, z.imag] for z in array.ravel().tolist()]
    if array.dtype == np.float32:
        return [float(str(x)) for x in array.ravel()]  # the fewest digits that name it: half as many
    return array.ravel().tolist()


def decode(value):
    """The inverse: tensors come back as NumPy arrays (bfloat16 as float32 with the same values)."""
    if isinstance(value, dict):
        if "dtype" in value:
            name = {"bfloat16": "float32"}.get(value["dtype"], value["dtype"])
            data = [complex(*z) for z in value["data"]] if name.startswith("complex") else value["data"]
            return np.array(data, dtype=name).reshape(value["shape"])
        if "complex" in value:
            return complex(*value["complex"])
        if "list" in value:
            return [decode(v) for v in value["list"]]
        return {k: decode(v) for k, v in value["dict"].items()}
    return value


PRINTED = re.compile(r" *-?\d+\.\d*(?:e[-+]?\d+)?")          # a number with a point, and the spaces that align it


def outline(value):
    """What of an encoded answer is the same on every machine: all but the digits of its numbers."""
    if isinstance(value, float):
        return "a float"
    if isinstance(value, str):                    # what a program printed; another processor rounds otherwise
        return PRINTED.sub(" #", value)
    if isinstance(value, (list, tuple)):
        return [outline(v) for v in value]
    if isinstance(value, dict):
        return {k: v if k in ("dtype", "shape") else None if k == "data" else outline(v) for k, v in value.items()}
    return value


class Oracle:
    """`oracle(lambda torch: ...)` -> the answer as NumPy arrays, numbers or text, in lists and dicts.

    With torch the function runs; without it the answer is read from tests/golden/<file>.json, under the
    test's name and the call's place in the test. So a test asks its questions in a fixed order."""

    def __init__(self, store, test, write):
        self.store, self.test, self.write, self.calls = store, test, write, 0

    def __call__(self, ask):
        key = f"{self.test}/{self.calls}"
        self.calls += 1
        torch = torch_or_none()
        if torch is None:
            if key not in self.store:
                pytest.skip("torch is not installed and no golden answer was written (`make golden`)")
            return decode(self.store[key])
        answer = encode(ask(torch))
        if self.write:
            self.store[key] = answer
        else:
            assert outline(self.store.get(key)) == outline(answer), f"{key}: no golden answer, or an old one (`make golden`)"
        return decode(answer)


@pytest.fixture(scope="module")
def golden_store(request):
    """The golden answers of this test file; written back at its end under --golden=write."""
    path = GOLDEN / f"{request.path.stem}.json"
    write = request.config.getoption("--golden") == "write"
    store = json.loads(path.read_text()) if path.exists() and not write else {}
    yield store
    if write and store:
        GOLDEN.mkdir(exist_ok=True)
        lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(store.items()))
        path.write_text("{\n" + lines + "\n}\n")


@pytest.fixture
def oracle(request, golden_store):
    return Oracle(golden_store, request.node.name, request.config.getoption("--golden") == "write")


@pytest.fixture
def run_example(monkeypatch, capsys):
    """run_example(example, *arguments) -> exit status, standard output, standard error."""

    def call(example, *arguments):
        monkeypatch.setattr(sys, "argv", [example, *map(str, arguments)])
        with pytest.raises(SystemExit) as leaving:
            runpy.run_path(str(EXAMPLES / example), run_name="__main__")
        return leaving.value.code, *capsys.readouterr()

    return call
