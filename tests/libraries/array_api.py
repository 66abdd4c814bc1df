"""Run the suite of the Python array API standard under torch and rushlight; writes docs/array-api.md.

python tests/libraries/array_api.py CHECKOUT                     both sides, the page
python tests/libraries/array_api.py CHECKOUT --engine rushlight  one side, its counts

CHECKOUT is a checkout of github.com/data-apis/array-api-tests at COMMIT, with the folder `array-api` (a submodule). It
runs in the environment of requirements.txt and suites.txt."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from suites import ENGINES, KINDS, Suite, add_options, alone, run, told

HERE = Path(__file__).parent
RESULTS = HERE / "array_api.json"
PAGE = HERE.parent.parent / "docs" / "array-api.md"
COMMIT, VERSION = "55fcc601", "2024.12"
OPTIONS = ("--max-examples=8", "--hypothesis-seed=1", "--disable-deadline")
SUITE = Suite("data-apis/array-api-tests", COMMIT, ("array_api_tests",), options=OPTIONS)
# why a test fails with rushlight alone
REASONS = {
    "test_signatures": "the standard has `axis`, torch has `dim`; Python cannot read signatures of torch's built-in "
    "functions, so the suite skips some of them"
}
HEAD = f"""# Array API

The [Python array API standard](https://data-apis.org/array-api/latest/) has a suite, array-api-tests. It ran through
`array_api_compat.torch`, at commit {COMMIT}, for version {VERSION} of the standard, with
`{" ".join(OPTIONS[:2])}`. `tests/libraries/array_api.py` runs it and writes this page.

| | passed | failed | skipped |
|---|--:|--:|--:|
"""


def page(results: dict[str, Any]) -> str:
    """The counts of both sides, and the tests that fail with rushlight alone."""
    lines = []
    for engine, name in zip(ENGINES, ("torch 2.13", "rushlight")):
        lines.append(f"| {name} | {' | '.join(str(results[engine][kind]) for kind in KINDS)} |")
    theirs = len(alone(results, "torch"))
    lines += ["", f"{theirs} tests fail with torch alone. Tests that fail with rushlight alone:", ""]
    lines += ["| tests | reason |", "|---|---|"]
    tests: dict[str, list[str]] = {}
    for test in alone(results, "rushlight"):
        why = next((reason for part, reason in REASONS.items() if part in test), "")
        tests.setdefault(why, []).append(f"`{test.rpartition('.test_')[2]}`".replace("|", "\\|"))
    lines += [f"| {', '.join(names)} | {why} |" for why, names in tests.items()]
    return HEAD + "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    add_options(parser)
    options = parser.parse_args()
    os.environ["ARRAY_API_TESTS_MODULE"] = "array_api_compat.torch"
    os.environ["ARRAY_API_TESTS_VERSION"] = VERSION
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for engine in options.engine or ENGINES:
        results[engine] = run(engine, SUITE, options.checkout, options)
        print(f"{engine:9} {told(results[engine])}", flush=True)
        RESULTS.write_text(json.dumps(results, indent=0, sort_keys=True) + "\n")
    if set(results) == set(ENGINES):
        PAGE.write_text(page(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
