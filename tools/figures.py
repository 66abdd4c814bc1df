"""Measure the figures that README.md gives, and write them into README.md.

    make figures                       a wheel and an empty environment beside torch; needs pip, and torch for its size
    python tools/figures.py            prints the figures, and the time of the first import; writes nothing

`FIGURES` has each figure of README.md: the sentence, and its source. tests/docs/test_figures.py compares README.md with
`counted` and `estimated`, which take seconds. Speed beside torch comes from benchmarks/side_by_side (tools/speed_chart.py),
counts of tests and of served models from tests/conformance/floor.json and
benchmarks/serving.md."""

from __future__ import annotations

import importlib.util
import io
import json
import marshal
import os
import re
import subprocess
import sys
import tempfile
import venv
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
PACKAGE = ROOT / "rushlight"
NEEDS = ("numpy", "ml_dtypes", "threadpoolctl")  # what `pip install .` installs
ROUNDS = 9
# name -> (the sentence of README.md, the format of the figure)
FIGURES = {
    "wheel": (r"The wheel is ([\d.]+) MB", "{:.1f}"),
    "installed": (r"With NumPy it takes ([\d.]+) MB on disk", "{:.0f}"),
    "torch": (r"torch for CPU takes ([\d.]+) MB", "{:.0f}"),
    "core lines": (r"has ([\d,]+) of the package's", "{:,.0f}"),
    "lines": (r"of the package's ([\d,]+) lines", "{:,.0f}"),
    "mistakes": (r"See \[(\d+) common mistakes\]", "{:.0f}"),
    "programs": (r"All (\d+) \[public programs\]", "{:.0f}"),
    "operator tests": (r"all (\d+) operator tests of torch pass", "{:.0f}"),
    "served, least": (r"twelve served models take ([\d.]+) to", "{:.2g}"),
    "served, most": (r"twelve served models take [\d.]+ to\s+([\d.]+) of onnxruntime", "{:.2g}"),
}


def written(text: str) -> dict[str, float]:
    """{name: figure} as README.md gives it. KeyError for a sentence that is no longer there."""
    found = {}
    for name, (sentence, _) in FIGURES.items():
        match = re.search(sentence, text)
        if match is None:
            raise KeyError(f"README.md has no sentence {sentence!r}; adapt tools/figures.py")
        found[name] = float(match[1].replace(",", ""))
    return found


def replaced(text: str, figures: dict[str, float]) -> str:
    """README.md with these figures."""
    for name, value in figures.items():
        sentence, form = FIGURES[name]
        match = re.search(sentence, text)
        assert match is not None, sentence
        text = text[: match.start(1)] + form.format(value) + text[match.end(1) :]
    return text


def sources() -> list[Path]:
    """The files of a wheel: the package's files, and the lessons with their data."""
    learn = ROOT / "docs" / "learn"
    package = [f for f in PACKAGE.rglob("*") if f.is_file() and "__pycache__" not in f.parts]
    return [*package, *learn.glob("[0-9]*.py"), *learn.glob("*.txt")]


def counted() -> dict[str, float]:
    """The figures that files of this repository hold. Lines are rounded to two digits, as in README.md."""
    lines = {f: len(f.read_text(encoding="utf-8").splitlines()) for f in PACKAGE.rglob("*.py")}
    page = (ROOT / "docs" / "mistakes.md").read_text(encoding="utf-8")
    programs = (ROOT / "benchmarks" / "programs" / "manifest.toml").read_text(encoding="utf-8")
    floor = json.loads((ROOT / "tests" / "conformance" / "floor.json").read_text())
    passed, known = floor["full"]["ops float32"]
    table = (ROOT / "benchmarks" / "serving.md").read_text(encoding="utf-8")
    shares = [1 / float(row) for row in re.findall(r"^\|(?: [^|]+\|){5} ([\d.]+) \|$", table, re.MULTILINE)]
    return {
        "core lines": round(sum(n for f, n in lines.items() if f.parent == PACKAGE / "core"), -2),
        "lines": round(sum(lines.values()), -3),
        "mistakes": page.count("\n### "),
        "programs": programs.count("[[program]]"),
        "operator tests": passed if passed == known else 0,  # "all": 0 if one fails
        "served, least": min(shares),
        "served, most": max(shares),
    }


def estimated() -> dict[str, float]:
    """The sizes in megabytes without a new environment: of a zip of the wheel's files, and of the installed files."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sources():
            archive.write(file)
    own = sum(f.stat().st_size for f in sources())
    own += sum(len(marshal.dumps(compile(f.read_bytes(), "f", "exec"))) for f in sources() if f.suffix == ".py")
    return {
        "wheel": len(held.getvalue()) / 1e6,
        "installed": own / 1e6 + sum(map(installed, NEEDS)),
        "torch": installed("torch"),
    }


def installed(name: str) -> float:
    """Megabytes of an installed distribution; 0 if there is none."""
    try:
        found = distribution(name)
    except PackageNotFoundError:
        return 0.0
    paths = [Path(str(found.locate_file(file))) for file in found.files or ()]
    return sum(path.stat().st_size for path in paths if path.is_file()) / 1e6


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
    figures = measured()
    if "--write" in sys.argv[1:]:
        README.write_text(replaced(README.read_text(encoding="utf-8"), figures), encoding="utf-8")
        print("README.md is written")


def measured() -> dict[str, float]:
    """All figures of README.md, measured and printed; of torch's only those that can be measured here."""
    figures = counted()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, ROOT], check=True)
        wheel = next(folder.glob("*.whl"))
        figures["wheel"] = wheel.stat().st_size / 1e6
        venv.create(folder / "env", with_pip=True)
        python = str(folder / "env" / ("Scripts" if os.name == "nt" else "bin") / "python")
        site = next((folder / "env").rglob("site-packages"))
        subprocess.run([python, "-m", "pip", "uninstall", "-qy", "setuptools"], check=True)
        empty = megabytes(site)
        subprocess.run([python, "-m", "pip", "install", "-q", wheel], check=True)
        figures["installed"] = megabytes(site) - empty
        show_start(python, {"import numpy": "import numpy", "import rushlight": "import rushlight"}, "rushlight")
    found = importlib.util.find_spec("torch")
    if found is None or found.origin is None:
        print("torch is not installed: no figures of torch", file=sys.stderr)
    else:
        figures["torch"] = round(megabytes(Path(found.origin).parent), -1)
        show_start(sys.executable, {"import torch": "import torch"}, "torch")
    for name, value in figures.items():
        print(f"{name:<34} {FIGURES[name][1].format(value):>7}")
    return figures


def show_start(python: str, imports: dict[str, str], name: str) -> None:
    """Print the time of imports, and of a process that runs a first backward."""
    started = seconds(python, "pass")
    for what, program in {**imports, f"first backward, {name}": STEP.format(name=name)}.items():
        print(f"{what:<34} {1000 * (seconds(python, program) - started):7.0f} ms")


if __name__ == "__main__":
    main()
