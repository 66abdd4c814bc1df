"""The files of compiled loops: damaged, on a full disk, read by one that calls another."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("llvmlite")

RUN = r"""
import numpy as np
from rushlight.loops import cache
from rushlight.loops.cache import calling, compiled
found, load = [], cache.load
cache.load = lambda symbol: found.append(load(symbol) is not None) or load(symbol)
inner = compiled("def kernel(x):\n    for i in range(x.shape[0]):\n        x[i] = x[i] * f32(2)\n")
outer = calling("def kernel(x):\n    inner(x)\n    inner(x)\n", inner=inner)
x = np.ones(3, np.float32)
inner(x)
outer(x)
assert x.tolist() == [8, 8, 8]
print(*found)
"""
FULL = """
import resource, signal
resource.setrlimit(resource.RLIMIT_FSIZE, ({0}, {0}))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
"""


def run(folder, before=""):
    """Whether each of the two loops was found on disk."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", before + RUN],
        capture_output=True,
        text=True,
        env={**os.environ, "RUSHLIGHT_CACHE": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.exhaustive(every=2)
@pytest.mark.parametrize(
    "damage", [lambda whole: whole[: len(whole) // 2], lambda whole: bytes(len(whole))], ids=["cut", "zeros"]
)
def test_files_that_are_no_longer_whole_are_made_anew(tmp_path, damage):
    """As after a power cut."""
    run(tmp_path)
    assert run(tmp_path) == ["True", "True"]
    files = [*tmp_path.rglob("*.o")]
    assert len(files) == 2
    for file in files:
        file.write_bytes(damage(file.read_bytes()))
    assert run(tmp_path)[:2] == ["False", "False"]
    assert run(tmp_path) == ["True", "True"]


@pytest.mark.parametrize("room", [0, 500])
def test_a_full_disk_leaves_loops_in_memory(tmp_path, room):
    assert run(tmp_path, FULL.format(room))[:2] == ["False", "False"]
    assert not [f for f in tmp_path.rglob("*") if f.is_file()]
    run(tmp_path)
    assert run(tmp_path) == ["True", "True"]


def test_a_long_wait_is_explained_once(tmp_path):
    """By the logger "rushlight", so that it can be switched off; nothing where loops come from the folder."""
    said = "from rushlight.loops import cache\ncache.NOTICE_SECONDS = -1.0\n"
    for before, lines in ((said, 1), (said, 0), ("", 0)):
        done = subprocess.run(
            [sys.executable, "-c", before + RUN],
            capture_output=True,
            text=True,
            env={**os.environ, "RUSHLIGHT_CACHE": str(tmp_path)},
        )
        assert done.returncode == 0, done.stderr
        assert len(done.stderr.splitlines()) == lines
        assert not lines or str(tmp_path) in done.stderr
