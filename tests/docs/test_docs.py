"""What the documentation shows is what comes out: examples in Markdown with their output, and
docstrings' examples."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import inspect
import io
import os
import pkgutil
import re
import subprocess
import sys
import warnings

import pytest

import rushlight
from rushlight.base.printing import printoptions
from tests.support.paths import ROOT

EXAMPLE = re.compile(r"```python\n((?:(?!```).)*)```\n+```text\n(.*?)```", re.DOTALL)
EXAMPLES = {
    f"{path.relative_to(ROOT)}:{path.read_text()[: found.start()].count(chr(10)) + 1}": found.groups()
    for path in [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *sorted((ROOT / "docs").glob("*.md")),
    ]
    for found in EXAMPLE.finditer(path.read_text())
}
MODULES = ["rushlight"] + [
    m.name
    for m in pkgutil.walk_packages(rushlight.__path__, "rushlight.")
    if not m.name.endswith("__main__")
]


@pytest.fixture(autouse=True)
def the_folder_of_models_stays(monkeypatch):
    """Which the example of `hub.set_dir` leaves chosen."""
    monkeypatch.setattr("rushlight.serialization.hub.chosen", None)


@pytest.mark.parametrize("place", EXAMPLES)
def test_examples_print_what_they_show(place):
    code, shown = EXAMPLES[place]
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, place, "exec"), {"__name__": "example"})
    assert out.getvalue() == shown


def needs(name):
    """Skip the examples of images where Pillow, which reads and draws them, is not installed."""
    if "vision" in name:
        pytest.importorskip("PIL")


@pytest.mark.filterwarnings("ignore:.*deprecated")
@pytest.mark.parametrize("name", MODULES)
def test_docstrings_examples_run(name):
    needs(name)
    module = importlib.import_module(name)
    finder = doctest.DocTestFinder(exclude_empty=True)
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    report = io.StringIO()
    for test in finder.find(module, name, extraglobs={"rushlight": rushlight}):
        with printoptions():  # an example may set options; here they end with it
            runner.run(test, out=report.write)
    assert runner.failures == 0, report.getvalue()


def test_pages_are_written_in_a_new_process():
    """As mkdocs does: there nothing has asked for the parts of the library that are loaded
    later."""
    code = (
        "import reference; print(reference.operators()); print(*[text for _, text in "
        "reference.drawings()])"
    )
    made = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT / "docs",
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stderr
    assert "### sin\n" in made.stdout
    assert made.stdout.count("\n### ") > 600
    assert "<svg" in made.stdout
    assert "Backward, step by step" in made.stdout


# -- what is public has an example, which needs nothing but `import rushlight`

NAMESPACES = [
    "",
    "amp",
    "autograd",
    "autograd.forward_ad",
    "autograd.functional",
    "autograd.graph",
    "compile",
    "compiler",
    "distributions",
    "distributions.constraints",
    "distributions.transforms",
    "distributions.utils",
    "fft",
    "func",
    "futures",
    "fx",
    "hub",
    "jit",
    "library",
    "linalg",
    "masked",
    "nn",
    "nn.attention",
    "nn.attention.flex_attention",
    "nn.functional",
    "nn.grad",
    "nn.init",
    "nn.modules",
    "nn.utils",
    "nn.utils.parametrizations",
    "nn.utils.parametrize",
    "nn.utils.prune",
    "nn.utils.rnn",
    "nn.utils.stateless",
    "optim",
    "optim.lr_scheduler",
    "optim.swa_utils",
    "profiler",
    "random",
    "serialization",
    "signal.windows",
    "sparse",
    "special",
    "storage",
    "testing",
    "utils.checkpoint",
    "utils.data",
    "vision.io",
    "vision.ops",
    "vision.transforms",
    "vision.transforms.functional",
    "vision.utils",
    "viz",
]


def members(namespace):
    """{name: function or class} of what is public in a namespace, once each: its list, or else what
    comes from its files."""
    home = importlib.import_module(f"rushlight.{namespace}".rstrip("."))
    names = getattr(home, "__all__", None) or [
        name for name in dir(home) if not name.startswith("_")
    ]
    found = {}
    for name in names:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some names warn that torch will drop them
            value = getattr(home, name)
        if (inspect.isclass(value) or inspect.isroutine(value)) and value.__module__.startswith(
            "rushlight"
        ):
            found.setdefault(id(value), (f"{namespace}.{name}".lstrip("."), value))
    return dict(found.values())


PUBLIC = {name: value for namespace in NAMESPACES for name, value in members(namespace).items()}


@pytest.mark.filterwarnings("ignore:.*deprecated")
@pytest.mark.parametrize("name", PUBLIC)
def test_what_is_public_has_an_example(name):
    needs(name)
    test = doctest.DocTestParser().get_doctest(
        PUBLIC[name].__doc__ or "", {"rushlight": rushlight}, name, None, 0
    )
    assert test.examples, "show a learner one call, and what comes out"
    report = io.StringIO()
    with printoptions():
        failed = doctest.DocTestRunner(verbose=False).run(test, out=report.write).failed
    assert failed == 0, report.getvalue()


@pytest.mark.origin("newcomers")
@pytest.mark.parametrize("page", ["index", "viz", "transforms", "toolbox", "compile"])
def test_the_blocks_of_a_page_run_in_their_order(page, tmp_path, monkeypatch):
    """In one process, each with the names of those before it, as a reader does."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    blocks = re.findall(
        r"^```python\n(.*?)^```",
        (ROOT / "docs" / f"{page}.md").read_text(),
        re.DOTALL | re.MULTILINE,
    )
    scope = {"__name__": "reader"}
    for i, block in enumerate(blocks):
        file = tmp_path / f"block{i}.py"
        file.write_text(block)
        exec(compile(block, str(file), "exec"), scope)
    assert blocks
