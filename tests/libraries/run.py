"""Run a small real use of each library under rushlight, and compare the printed numbers with torch's.

python tests/libraries/run.py                 all of uses/, a table, docs/libraries.md
python tests/libraries/run.py einops zuko     some of them, a table
python tests/libraries/run.py --record        torch's numbers into torch.json (torch must be installed)

Runs in the environment of requirements.txt (`make libraries`)."""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from suites import section

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
RECORDED = HERE / "torch.json"
PAGE = ROOT / "docs" / "libraries.md"
SECONDS = 300  # for one library
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|inf|nan)(?![\w])")
SAME, CLOSE = 1e-4, 1e-2  # relative to the larger of the number and 1
CHILD = """
import random, runpy, sys
engine, script = sys.argv[1:3]
if engine == "rushlight":
    import rushlight.compat
    rushlight.compat.install()
else:
    import torch
    # a torchvision built for CUDA registers none of its ops beside a torch for the CPU
    for op in ("nms", "qnms"):
        torch.library.define(f"torchvision::{op}", "(Tensor dets, Tensor scores, float t) -> Tensor")
import torch
sys.argv = [script]
torch.manual_seed(0)
random.seed(0)
try:
    import numpy
    numpy.random.seed(0)
except ImportError:
    pass
runpy.run_path(script, run_name="__main__")
"""
HEAD = """# Third-party libraries

A small real use of each library, with `import torch` as rushlight. The table compares the numbers
printed by each use with torch 2.13's numbers.

- same: within 1e-4. close: within 1e-2. runs: ends without an error, with other numbers.
- crash: ends with an error.

`make libraries` builds the environment and writes this page; the uses are in `tests/libraries/uses`.
The suite of the [Array API](array-api.md) has a page of its own.

"""


def ran(engine: str, script: Path) -> tuple[str, str]:
    """(standard output, "") of a use, or ("", the last line of its error)."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CHILD, engine, str(script)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "CUDA_VISIBLE_DEVICES": "",
            "HF_HUB_OFFLINE": "1",
            "OPENBLAS_NUM_THREADS": "1",
        },
    )
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line and not line.startswith(" ")]
        return "", lines[-1] if lines else f"exit status {done.returncode}"
    return done.stdout, ""


def numbers(text: str) -> list[float]:
    return [float(found) for found in NUMBER.findall(text)]


def verdict(made: list[float], right: list[float]) -> tuple[str, float]:
    """(same, close or runs, the largest difference)."""
    if len(made) != len(right):
        return "runs", math.inf
    worst = max((difference(a, b) for a, b in zip(made, right)), default=math.inf)
    return ("same" if worst <= SAME else "close" if worst <= CLOSE else "runs"), worst


def difference(a: float, b: float) -> float:
    """The difference, relative to numbers above 1."""
    if a == b or math.isnan(a) and math.isnan(b):
        return 0.0
    d = abs(a - b) / max(1.0, abs(b))
    return math.inf if math.isnan(d) else d


def installed(library: str) -> str:
    """The version of a library, from requirements.txt's name of it."""
    for line in (HERE / "requirements.txt").read_text().splitlines():
        name, _, pinned = line.partition("==")
        if name.replace("-", "_").lower() in (library, f"{library}_ppl", f"pytorch_{library}"):
            try:
                return version(name)
            except PackageNotFoundError:
                return pinned
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("libraries", nargs="*")
    parser.add_argument("--record", action="store_true", help="write torch's numbers")
    options = parser.parse_args()
    uses = sorted((HERE / "uses").glob("*.py"))
    if options.libraries:
        uses = [use for use in uses if use.stem in options.libraries]
    recorded = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    rows = []
    for use in uses:
        try:
            text, error = ran("torch" if options.record else "rushlight", use)
        except subprocess.TimeoutExpired:
            text, error = "", f"no end in {SECONDS} s"
        if options.record:
            if error:
                print(f"{use.stem}: {error}", file=sys.stderr)
            else:
                recorded[use.stem] = numbers(text)
            continue
        kind, worst = "crash", math.inf
        if not error:
            kind, worst = verdict(numbers(text), recorded.get(use.stem, []))
        rows.append((use.stem, kind, worst, error))
        print(f"{use.stem:28} {kind:6} {worst:9.1e} {error}", flush=True)
    if options.record:
        RECORDED.write_text(json.dumps(recorded, indent=0, sort_keys=True) + "\n")
        return 0
    kinds = [kind for _, kind, _, _ in rows]
    line = ", ".join(f"{kinds.count(kind)} {kind}" for kind in ("same", "close", "runs", "crash"))
    print(line)
    if not options.libraries:
        PAGE.write_text(page(rows, line))
    return int("crash" in kinds)


def page(rows: list[tuple[str, str, float, str]], line: str) -> str:
    """The page of the table."""
    table = ["| library | version | result |", "|---|---|---|"]
    for name, kind, _, error in rows:
        cause = re.sub(r" \(/.*\)$", "", error)  # without the path of the module
        why = f": {cause}".replace("|", "\\|") if error else ""
        table.append(f"| {name.replace('_', '-')} | {installed(name)} | {kind}{why} |")
    return f"{HEAD}{len(rows)} libraries: {line}.\n\n" + "\n".join(table) + f"\n\n{section()}"


if __name__ == "__main__":
    sys.exit(main())
