"""Run the test suites of third-party libraries under torch and under rushlight.

python tests/libraries/suites.py CHECKOUTS               all suites, suites.json, docs/libraries.md
python tests/libraries/suites.py CHECKOUTS einops zuko   some of them
python tests/libraries/suites.py CHECKOUTS einops --engine rushlight --anew    one side anew

CHECKOUTS is a folder with a checkout of each library's repository, named as in `SUITES`. The suites run in the
environment of requirements.txt and suites.txt."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
RESULTS = HERE / "suites.json"
LEFT = HERE / "suites_left.md"  # what fails with rushlight alone, and why
PAGE = ROOT / "docs" / "libraries.md"
ENGINES = ("torch", "rushlight")
TEST_SECONDS = 300  # for one test
FILE_SECONDS = 3600  # for one file of tests
REPORTS = Path(tempfile.gettempdir()) / "rushlight-suites"
KINDS = ("passed", "failed", "skipped")
Results = dict[str, list[str]]  # {test: [passed, failed or skipped, the first line of its error]}
SECTION = """## Their own test suites

The suites of these repositories ran with the libraries' sources at the commits that the links name, under torch 2.13
and under `rushlight run -m pytest`, on one core (`tests/libraries/suites.py`). A test that takes over 300 s fails.
Cells: passed / failed / skipped. The last two columns count the tests that fail with one of the two alone.

| suite | part | torch | rushlight | fail with rushlight alone | with torch alone |
|---|---|--:|--:|--:|--:|
"""


class Suite(NamedTuple):
    """A suite: the repository at GitHub, its commit, folders or files of tests, and pytest's options."""

    repository: str
    commit: str
    tests: tuple[str, ...]
    part: str = "all"
    files: tuple[str, ...] = ("test_*.py", "*_test.py")
    options: tuple[str, ...] = ()


METRIC_LEARNING = ("distances", "losses", "miners", "reducers", "regularizers")
SUITES = {
    "einops": Suite("arogozhnikov/einops", "ccb89f2", ("einops/tests",)),
    "zuko": Suite("probabilists/zuko", "1063ae4", ("tests",)),
    "torchdiffeq": Suite("rtqichen/torchdiffeq", "657943a", ("tests",), files=("*_tests.py",)),
    "pytorch-metric-learning": Suite(
        "KevinMusgrave/pytorch-metric-learning",
        "216a792",
        tuple(f"tests/{part}" for part in METRIC_LEARNING),
        "without what needs faiss or downloads",
    ),
    "linear_operator": Suite("cornellius-gp/linear_operator", "386cff7", ("test",)),
    "gpytorch": Suite("cornellius-gp/gpytorch", "7c4ec80", ("test",)),
    "opacus": Suite("meta-pytorch/opacus", "88919b6", ("opacus/tests",)),
    "botorch": Suite("pytorch/botorch", "e390e13", ("test",)),
}


def outcomes(engine: str, suite: Suite, checkout: Path, jobs: int = 1) -> Results:
    """The outcomes of a suite. Each file of tests runs alone, and its report is kept: a run that was cut off goes
    on."""
    reports = REPORTS / f"{checkout.name}-{engine}"
    reports.mkdir(parents=True, exist_ok=True)
    files = files_of(suite, checkout)
    with ThreadPoolExecutor(jobs) as pool:
        found = pool.map(lambda file: outcomes_of(engine, suite, checkout, file, reports), files)
        return {test: result for part in found for test, result in part.items()}


def files_of(suite: Suite, checkout: Path) -> list[str]:
    """The files of tests in the folders and files that `suite` names, relative to the checkout."""
    found = []
    for argument in suite.tests:
        path = checkout / argument
        paths = [path] if path.is_file() else sorted(path.rglob("*.py"))
        for file in paths:
            if file == path or any(fnmatch(file.name, form) for form in suite.files):
                found.append(str(file.relative_to(checkout)))
    return found


def outcomes_of(engine: str, suite: Suite, checkout: Path, file: str, reports: Path) -> Results:
    """The outcomes of one file of tests, from its report if there is one."""
    name = file.replace("/", ".").removesuffix(".py")
    report, log = reports / f"{name}.xml", reports / f"{name}.log"
    if report.exists():
        return read(report)
    command = [sys.executable, "-W", "ignore", "-m"]
    command += {"rushlight": ["rushlight", "run", "-m", "pytest"], "torch": ["pytest", "-p", "torchvision_ops"]}[engine]
    command += [file, *suite.options, f"--junitxml={report}", f"--timeout={TEST_SECONDS}"]
    command += ["-q", "-p", "no:cacheprovider", "--tb=short", "--continue-on-collection-errors"]
    with log.open("w") as output:
        try:
            subprocess.run(
                command,
                cwd=checkout,
                env=environment(checkout),
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=FILE_SECONDS,
            )
        except subprocess.TimeoutExpired:
            return {name: ["failed", f"no end in {FILE_SECONDS} s"]}
    return read(report) if report.exists() else {name: ["failed", "the process ended early"]}


def environment(checkout: Path) -> dict[str, str]:
    """The variables of a process that runs tests."""
    return {
        **os.environ,
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
        "PYTHONPATH": os.pathsep.join((str(ROOT), str(HERE), str(checkout), str(checkout / "src"))),
        "CUDA_VISIBLE_DEVICES": "",
        "EINOPS_TEST_BACKENDS": "numpy,torch",
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "TEST_DEVICE": "cpu",
    }


def read(report: Path) -> Results:
    """The outcomes in a report of pytest."""
    found: Results = {}
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        kind, message = "passed", ""
        for part in case:
            if part.tag in ("failure", "error"):
                kind, message = "failed", (part.get("message") or "").partition("\n")[0]
            elif part.tag == "skipped" and kind == "passed":
                kind = "skipped"
        found[name] = [kind, message] if message else [kind]
    return found


def summary(results: Results) -> dict[str, Any]:
    """The numbers of outcomes, and the tests that failed with their errors."""
    kinds = [result[0] for result in results.values()]
    failures = {test: result[-1] for test, result in results.items() if result[0] == "failed"}
    return {kind: kinds.count(kind) for kind in KINDS} | {"failures": failures}


def told(found: dict[str, Any]) -> str:
    """3 passed, 1 failed, 0 skipped"""
    return ", ".join(f"{found[kind]} {kind}" for kind in KINDS)


def alone(results: dict[str, Any], engine: str) -> dict[str, str]:
    """The tests that fail with one engine and not with the other, and their errors."""
    other = ENGINES[1 - ENGINES.index(engine)]
    return {
        test: error
        for test, error in sorted(results[engine]["failures"].items())
        if test not in results[other]["failures"]
    }


def section() -> str:
    """The part of the page about the suites that have run under both."""
    everything = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    rows = []
    for name, suite in SUITES.items():
        results = everything.get(name, {})
        if set(results) != set(ENGINES):
            continue
        cells = [f"[{name}](https://github.com/{suite.repository}/tree/{suite.commit})", suite.part]
        for engine in ENGINES:
            found = results[engine]
            cells.append(" / ".join(str(found[kind]) for kind in KINDS))
        cells += [str(len(alone(results, engine))) for engine in reversed(ENGINES)]
        rows.append(f"| {' | '.join(cells)} |")
    return SECTION + "\n".join(rows) + "\n\n" + LEFT.read_text()


def write_section() -> None:
    """Put the part about the suites at the end of the page."""
    text = PAGE.read_text().partition(SECTION.partition("\n")[0])[0]
    PAGE.write_text(f"{text.rstrip()}\n\n{section()}")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--engine", choices=ENGINES, nargs=1, help="one side only")
    parser.add_argument("--jobs", type=int, default=1, help="so many files of tests at once")
    parser.add_argument("--anew", action="store_true", help="do not go on from kept reports")


def run(engine: str, suite: Suite, checkout: Path, options: argparse.Namespace) -> dict[str, Any]:
    """The summary of a suite's outcomes."""
    if options.anew:
        shutil.rmtree(REPORTS / f"{checkout.name}-{engine}", ignore_errors=True)
    return summary(outcomes(engine, suite, checkout, options.jobs))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("suites", nargs="*")
    add_options(parser)
    options = parser.parse_args()
    for name in options.suites or SUITES:
        for engine in options.engine or ENGINES:
            found = run(engine, SUITES[name], options.checkouts / name, options)
            print(f"{name:24} {engine:9} {told(found)}", flush=True)
            everything = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
            everything.setdefault(name, {})[engine] = found
            RESULTS.write_text(json.dumps(everything, indent=0, sort_keys=True) + "\n")
    write_section()
    return 0


if __name__ == "__main__":
    sys.exit(main())
