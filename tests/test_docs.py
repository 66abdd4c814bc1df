"""What the documentation shows is what comes out: examples in Markdown with their output, and docstrings' examples."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rushlight
from rushlight.printing import printoptions

ROOT = Path(__file__).parent.parent
EXAMPLE = re.compile(r"```python\n((?:(?!```).)*)```\n+```text\n(.*?)```", re.DOTALL)
EXAMPLES = {
    f"{path.relative_to(ROOT)}:{path.read_text()[: found.start()].count(chr(10)) + 1}": found.groups()
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
    for found in EXAMPLE.finditer(path.read_text())
}
MODULES = ["rushlight"] + [
    m.name for m in pkgutil.walk_packages(rushlight.__path__, "rushlight.") if not m.name.endswith("__main__")
]


@pytest.mark.parametrize("place", EXAMPLES)
def test_examples_print_what_they_show(place):
    code, shown = EXAMPLES[place]
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, place, "exec"), {"__name__": "example"})
    assert out.getvalue() == shown


@pytest.mark.parametrize("name", MODULES)
def test_docstrings_examples_run(name):
    module = importlib.import_module(name)
    finder = doctest.DocTestFinder(exclude_empty=True)
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    report = io.StringIO()
    for test in finder.find(module, name, extraglobs={"rushlight": rushlight}):
        with printoptions():  # an example may set options; here they end with it
            runner.run(test, out=report.write)
    assert runner.failures == 0, report.getvalue()


def test_pages_are_written_in_a_new_process():
    """As mkdocs does: there nothing has asked for the parts of the library that are loaded later."""
    code = "import reference; print(reference.operators()); print(*[text for _, text in reference.drawings()])"
    made = subprocess.run([sys.executable, "-c", code], cwd=ROOT / "docs", env={**os.environ, "PYTHONPATH": str(ROOT)},
                          capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    assert "### sin\n" in made.stdout
    assert made.stdout.count("\n### ") > 600
    assert "<svg" in made.stdout
    assert "Backward, step by step" in made.stdout
