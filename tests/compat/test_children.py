"""Processes that a program under `rushlight run` starts: `torch` is rushlight there, too."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from rushlight.compat import children
from tests.support.paths import ROOT

METHODS = ["spawn", "forkserver"] if hasattr(os, "fork") else ["spawn"]

LOADER = """
import torch
from torch.utils.data import DataLoader, Dataset

class Numbers(Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, i):
        return torch.tensor([float(i)])

if __name__ == "__main__":
    loader = DataLoader(Numbers(), 2, num_workers=1, multiprocessing_context=METHOD)
    print([batch.tolist() for batch in loader], torch.__version__)
"""
PROCESS = """
import multiprocessing

def where(queue):
    import torch
    queue.put([torch.__version__, torch.ones(2).sum().item()])

if __name__ == "__main__":
    context = multiprocessing.get_context(METHOD)
    queue = context.Queue()
    process = context.Process(target=where, args=(queue,))
    process.start()
    print(queue.get(timeout=60))
    process.join()
"""
EXECUTABLE = """
import os, subprocess, sys
import torch
def child(text, **variables):
    subprocess.run([sys.executable, "-c", text], env={**os.environ, **variables}, check=True)
child("import torch, sys; print(torch.__version__, sys.modules['torch'] is torch)")
child("import importlib.metadata as m; print(m.version('torch'))")
child("import importlib.util as u; print(u.find_spec('torch.nn') is not None)")
child("import sys; print('rushlight' in sys.modules, sorted(n for n in sys.modules if 'numpy' in n))")
child("import rushlight.compat as c; c.install(); import torch; print(torch.__version__)")
child("import sys; print([type(f).__name__ for f in sys.meta_path if 'Waiting' in str(f)])", RUSHLIGHT_TORCH="0")
"""


def run(tmp_path, text, *path, **variables):
    """What the program prints under `rushlight run`."""
    program = tmp_path / "program.py"
    program.write_text(text, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *map(str, path)])}
    done = subprocess.run(
        [sys.executable, "-m", "rushlight", "run", str(program)],
        cwd=tmp_path,
        env={**environment, **variables},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("method", METHODS)
def test_workers_that_are_spawned(tmp_path, method):
    [line] = run(tmp_path, LOADER.replace("METHOD", repr(method)))
    assert line == "[[[0.0], [1.0]], [[2.0], [3.0]]] 2.13.0+rushlight"


@pytest.mark.parametrize("method", METHODS)
def test_processes_of_multiprocessing(tmp_path, method):
    [line] = run(tmp_path, PROCESS.replace("METHOD", repr(method)))
    assert line == "['2.13.0+rushlight', 2.0]"


def test_programs_started_by_the_executable(tmp_path):
    version, of_metadata, spec, loaded, installed, without = run(tmp_path, EXECUTABLE)
    assert version == "2.13.0+rushlight True"
    assert of_metadata == "2.13.0+rushlight"
    assert spec == "True"
    assert loaded == "False []"  # a child that does not import torch loads nothing
    assert installed == "2.13.0+rushlight"
    assert without == "[]"


def test_the_users_sitecustomize_runs(tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import sys; sys.told = __name__, __file__\n")
    text = """
import subprocess, sys
import torch
subprocess.run([sys.executable, "-c", "import sys, torch; print(torch.__version__, sys.told)"])
"""
    [line] = run(tmp_path, text, own)
    assert line == f"2.13.0+rushlight ('sitecustomize', {str(own / 'sitecustomize.py')!r})"


def test_the_environment_is_put_back(monkeypatch):
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.delenv(children.VARIABLE, raising=False)
    children.tell()
    children.tell()
    assert os.environ["PYTHONPATH"] == children.STARTUP
    assert children.told()
    children.untell()
    assert "PYTHONPATH" not in os.environ
    assert not children.told()
    monkeypatch.setenv("PYTHONPATH", "a" + os.pathsep + "b")
    children.tell()
    assert os.environ["PYTHONPATH"].split(os.pathsep) == [children.STARTUP, "a", "b"]
    children.untell()
    assert os.environ["PYTHONPATH"] == "a" + os.pathsep + "b"
