"""Measure rushlight against torch, and hold the counts to a floor that only rises: tests/conformance/floor.json.

    python tools/conformance_floor.py             quick: minutes; exit 1 where a column passes less than its floor
    python tools/conformance_floor.py --full      everything
    python tools/conformance_floor.py --write     raise the floor to what was measured; it never sinks
    python tools/conformance_floor.py --report FILE   compare a report that was made before (conformance.py --json FILE)

The harness is tests/conformance/harness. It needs torch: without torch nothing is measured, and the exit status is
2."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from rushlight.version import torch_version

ROOT = Path(__file__).resolve().parent.parent
FLOOR = ROOT / "tests" / "conformance" / "floor.json"
HARNESS = ROOT / "tests" / "conformance" / "harness"
REFERENCE = torch_version.partition("+")[0]  # the torch whose behaviour rushlight has

Counts = dict[str, list[int]]  # 'ops float32': [passed, applicable]


def counts_of(report: dict[str, Any]) -> Counts:
    """The numbers of passed and of applicable tests, for each suite and column of a report."""
    return {
        f"{row['suite']} {row['column']}": [row["pass"], row["applicable"]]
        for row in report["summary"]
        if row["applicable"]
    }


def fallen(counts: Counts, floor: Counts) -> list[str]:
    """A line for each column that passes less than its floor, or is measured no more."""
    lines = []
    for column, (least, of) in floor.items():
        passed = counts.get(column, [0, 0])[0]
        if passed < least:
            lines.append(f"{column}: {passed} of {of} pass, the floor is {least}")
    return lines


def raised(counts: Counts, floor: Counts) -> Counts:
    """The floor, raised to the measured counts; no count falls."""
    best = {column: [max(passed, floor.get(column, [0])[0]), of] for column, (passed, of) in counts.items()}
    return {**floor, **best}


def measure(full: bool) -> dict[str, Any]:
    """Run the harness and read its report."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, str(HARNESS / "conformance.py"), "--json", str(report), "--show", "0"]
        paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        subprocess.run(command + ([] if full else ["--quick"]), cwd=ROOT, env={**os.environ, "PYTHONPATH": paths})
        return json.loads(report.read_text())


def kind_of(report: dict[str, Any]) -> str:
    """The name of a report's floor: quick or full, with the torch if it is another than the tests' reference."""
    kind, version = "quick" if report["quick"] else "full", report["torch"].partition("+")[0]
    return kind if version == REFERENCE else f"{kind}, torch {version}"


def write(floors: dict[str, Counts]) -> None:
    """One line per column, so that a diff shows the changed columns."""
    parts = [
        f'"{kind}": {{\n' + ",\n".join(f"  {json.dumps(c)}: {json.dumps(n)}" for c, n in floors[kind].items()) + "\n}"
        for kind in sorted(floors)
    ]
    FLOOR.write_text("{\n" + ",\n".join(parts) + "\n}\n")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="everything, not the quick part")
    parser.add_argument("--write", action="store_true", help="raise the floor")
    parser.add_argument("--report", type=Path, metavar="FILE", help="a report that exists, instead of a run")
    options = parser.parse_args(arguments)
    if options.report is None and importlib.util.find_spec("torch") is None:
        print("not measured: torch is not installed (make .venv/has-test,oracle)", file=sys.stderr)
        return 2
    report = json.loads(options.report.read_text()) if options.report else measure(options.full)
    kind, counts = kind_of(report), counts_of(report)
    floors = json.loads(FLOOR.read_text()) if FLOOR.exists() else {}
    sunk = fallen(counts, floors.get(kind, {}))
    print("\n".join(sunk) or f"{len(counts)} columns, none below its floor ({kind})")
    if options.write:
        write({**floors, kind: raised(counts, floors.get(kind, {}))})
    return 1 if sunk else 0


if __name__ == "__main__":
    sys.exit(main())
