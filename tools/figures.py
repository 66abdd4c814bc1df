"""Measure the figures that README.md gives for size and start: a wheel and an empty environment beside torch.

    python tools/figures.py            needs pip, build and, for torch's figures, torch in this Python

Speed beside torch comes from benchmarks/side_by_side, operators from `make conformance ARGS=--full`, public programs
from benchmarks/programs."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
ROUNDS = 9


def megabytes(folder: Path) -> float:
    return sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) / 1e6


def seconds(python: str, program: str) -> float:
    """The median time of a process that runs the program, in rounds after one that warms the disk."""
    code = (
        "import subprocess, sys, time\n"
        "for _ in range(int(sys.argv[2]) + 1):\n"
        "    start = time.perf_counter()\n"
        "    subprocess.run([sys.executable, '-c', sys.argv[1]], check=True)\n"
        "    print(time.perf_counter() - start)\n"
    )
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")}
    made = subprocess.run(
        [python, "-c", code, program, str(ROUNDS)],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
        cwd=tempfile.gettempdir(),
    )
    return median(map(float, made.stdout.split()[1:]))


STEP = """
import {name} as torch
model = torch.nn.Linear(4, 2)
model(torch.ones(8, 4)).sum().backward()
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, ROOT], check=True)
        wheel = next(folder.glob("*.whl"))
        print(f"wheel                              {wheel.stat().st_size / 1e6:7.1f} MB")
        venv.create(folder / "env", with_pip=True)
        python = str(folder / "env" / ("Scripts" if os.name == "nt" else "bin") / "python")
        site = next((folder / "env").rglob("site-packages"))
        subprocess.run([python, "-m", "pip", "uninstall", "-qy", "setuptools"], check=True)
        empty = megabytes(site)
        subprocess.run([python, "-m", "pip", "install", "-q", wheel], check=True)
        print(f"rushlight and NumPy, installed     {megabytes(site) - empty:7.1f} MB")
        started = seconds(python, "pass")
        for what, program in (
            ("import numpy", "import numpy"),
            ("import rushlight", "import rushlight"),
            ("first backward", STEP.format(name="rushlight")),
        ):
            print(f"{what:<34} {1000 * (seconds(python, program) - started):7.0f} ms")
    found = importlib.util.find_spec("torch")
    if found is None or found.origin is None:
        print("torch is not installed: no figures of torch", file=sys.stderr)
        return
    print(f"torch alone, installed             {megabytes(Path(found.origin).parent):7.1f} MB")
    started = seconds(sys.executable, "pass")
    for what, program in (("import torch", "import torch"), ("first backward, torch", STEP.format(name="torch"))):
        print(f"{what:<34} {1000 * (seconds(sys.executable, program) - started):7.0f} ms")


if __name__ == "__main__":
    main()
