"""An exported folder: NumPy answers first, then machine code, which is kept on disk for other processes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import rushlight as torch

pytest.importorskip("llvmlite")

RUN = """
import sys
import numpy as np
sys.modules["rushlight"] = None
import small
x = np.linspace(-1, 1, 8, dtype=np.float32)
want = np.maximum(x * 2 + 1, 0)
def right(n=1):
    for _ in range(n):
        assert np.array_equal(small.model(x), want)
def hits():
    return sum(sum(f._cache_hits.values()) for f in vars(small.program).values() if hasattr(f, "_cache_hits"))
"""
READY = "assert 'numba' not in sys.modules; small.ready(); right(); assert small.numba is not None; "


@pytest.fixture
def small(tmp_path):
    return torch.compiler.export(lambda x: (x * 2 + 1).relu(), torch.ones(8), tmp_path / "small", kind="numba")


def process(place, what, **env):
    script = f"{RUN}\n{what.replace('; ', chr(10))}"
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", script],
        cwd=place.parent,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PATH": "", "RUSHLIGHT_CACHE": str(place.parent / "user"), **env},
    )


def run(place, what, **env):
    started = process(place, what, **env)
    out, err = started.communicate()
    assert started.returncode == 0, err
    return out


def codes(place):
    return sorted(place.rglob("*.code"))


def test_numpy_answers_until_machine_code_pays(small):
    """Ten times as many calls where none is on disk yet; Numba is not even imported before."""
    run(
        small,
        "small.CALLS = 3; right(30); assert 'numba' not in sys.modules; right(2); assert small.numba; assert hits() "
        "== 0",
    )
    assert len(codes(small)) == 1
    run(
        small,
        "small.CALLS = 3; right(2); assert 'numba' not in sys.modules; right(2); assert small.numba; assert hits() == "
        "1",
    )
    run(small, "small.CALLS = float('inf'); right(99); assert small.numba is None")
    run(small, "small.CALLS = 0; right(); assert hits() == 1")


def test_ready_makes_machine_code_at_once(small):
    run(small, READY + "assert hits() == 0")
    before = codes(small)
    run(small, READY + "small.ready(); small.ready(x); assert hits() == 1")
    assert codes(small) == before
    assert not (small.parent / "user").exists()


def test_a_folder_that_cannot_be_written_leaves_machine_code_with_the_user(small):
    (small / "__pycache__").touch()  # root may write anywhere, but not below a file
    run(small, READY)
    assert len(codes(small.parent / "user" / "exports")) == 1
    run(small, READY + "assert hits() == 1")
    run(small, READY + "assert hits() == 0", RUSHLIGHT_CACHE="/dev/null")


def test_machine_code_that_is_no_longer_whole_is_made_anew(small):
    run(small, READY)
    (code,) = codes(small)
    whole = code.read_bytes()
    for damaged in (whole[:-100], whole[:999] + bytes(9) + whole[1008:], b""):
        code.write_bytes(damaged)
        run(small, READY + "assert hits() == 0")
        assert len(code.read_bytes()) > 1000
        run(small, READY + "assert hits() == 1")


def test_a_full_disk_leaves_nothing(small):
    """Writing fails in the middle, as it does there."""
    limit = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000)); import signal; "
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
    )
    run(small, limit + READY, PYTHONDONTWRITEBYTECODE="1")
    assert not [f for f in small.parent.rglob("*") if f.is_file() and "small-" in f.parent.name]


def test_processes_that_start_together(small):
    for started in [process(small, READY) for _ in range(3)]:
        _, err = started.communicate()
        assert started.returncode == 0, err
    assert len(codes(small)) == 1
    assert {f.suffix for f in codes(small)[0].parent.iterdir()} == {".code"}


def test_without_numba_numpy_goes_on(small):
    blocked = "sys.modules['numba'] = sys.modules['llvmlite'] = None; "
    run(small, blocked + "small.CALLS = 0; right(3); assert small.numba is None")
    run(
        small,
        blocked + "import pytest; \nwith pytest.raises(ImportError): small.ready()\nright()",
        PYTHONPATH=os.pathsep.join(sys.path),
    )


def test_a_numba_that_fails_is_left_alone(small):
    """With a warning, once."""
    run(
        small,
        "import types, pytest; sys.modules['numba'] = types.ModuleType('numba'); small.CALLS = 0; \nwith "
        "pytest.warns(UserWarning, match='NumPy goes on'): small.model(x)\nright(3)",
        PYTHONPATH=os.pathsep.join(sys.path),
    )


def test_overwriting_a_folder_drops_its_machine_code(small):
    run(small, READY)
    torch.compiler.export(lambda x: (x * 2 + 1).relu(), torch.ones(8), small, kind="numba", overwrite=True)
    assert not codes(small)
