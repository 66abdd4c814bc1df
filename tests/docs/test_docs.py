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

import pytest
from public_api import NAMESPACES, members

import rushlight
from rushlight.base.printing import printoptions
from tests.support.paths import ROOT

MARK = "-- end of a block --"
EXAMPLE = re.compile(r"```python\n((?:(?!```).)*)```\n+```text\n(.*?)```", re.DOTALL)
EXAMPLES = {
    f"{path.relative_to(ROOT)}:{path.read_text()[: found.start()].count(chr(10)) + 1}": found.groups()
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
    for found in EXAMPLE.finditer(path.read_text())
}
MODULES = ["rushlight"] + [
    m.name for m in pkgutil.walk_packages(rushlight.__path__, "rushlight.") if not m.name.endswith("__main__")
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
    # torch.float is no function: examples of public functions see `rushlight` alone
    names = {} if module is rushlight else None
    for test in finder.find(module, name, globs=names, extraglobs={"rushlight": rushlight}):
        with printoptions():  # an example may set options; here they end with it
            runner.run(test, out=report.write)
    assert runner.failures == 0, report.getvalue()


def test_pages_are_written_in_a_new_process():
    """As mkdocs does: there nothing has asked for the parts of the library that are loaded later."""
    code = "import reference; print(*reference.pages().values()); print(*[text for _, text in reference.drawings()])"
    made = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT / "docs",
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stderr
    assert "## sin\n" in made.stdout
    assert made.stdout.count("\n## ") > 1600
    assert "<svg" in made.stdout
    assert "Forward and backward, step by step" in made.stdout
    assert "Training, step by step" in made.stdout


# -- what is public has an example, which needs nothing but `import rushlight`

PUBLIC = {name: value for namespace in NAMESPACES for name, value in members(namespace).items()}


@pytest.mark.filterwarnings("ignore:.*deprecated")
@pytest.mark.parametrize("name", PUBLIC)
def test_what_is_public_has_an_example(name):
    needs(name)
    test = doctest.DocTestParser().get_doctest(PUBLIC[name].__doc__ or "", {"rushlight": rushlight}, name, None, 0)
    assert test.examples, "show a learner one call, and what comes out"
    report = io.StringIO()
    with printoptions():
        failed = doctest.DocTestRunner(verbose=False).run(test, out=report.write).failed
    assert failed == 0, report.getvalue()


GUIDES = [p for p in sorted((ROOT / "docs" / "use").glob("*.md")) if "```python" in p.read_text()]
PARTS = re.compile(r"^```python\n(.*?)^```\n+(?:```text\n(.*?)^```)?", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", GUIDES, ids=[page.stem for page in GUIDES])
def test_a_guide_prints_what_it_shows(page, tmp_path):
    """Its blocks run in their order, in a new process."""
    parts = PARTS.findall(page.read_text())
    program = "\n".join(f"{code}\nprint({MARK!r})" for code, _ in parts)
    made = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stderr
    printed = made.stdout.split(f"{MARK}\n")
    assert printed[:-1] == [text for _, text in parts]


@pytest.mark.origin("newcomers")
@pytest.mark.parametrize("page", ["index", "viz", "transforms", "toolbox", "compile", "add-an-optimizer"])
def test_the_blocks_of_a_page_run_in_their_order(page, tmp_path, monkeypatch):
    """In one process, each with the names of those before it, as a reader does."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / f"{page}.md").read_text(), re.DOTALL | re.MULTILINE)
    scope = {"__name__": "reader"}
    for i, block in enumerate(blocks):
        file = tmp_path / f"block{i}.py"
        file.write_text(block)
        exec(compile(block, str(file), "exec"), scope)
    assert blocks


# -- what newcomers stumbled over

PAGES = {p.relative_to(ROOT / "docs").as_posix(): p.read_text() for p in sorted((ROOT / "docs").rglob("*.md"))}
TEXTS = {**PAGES, **{name: (ROOT / name).read_text() for name in ("README.md", "CONTRIBUTING.md")}}


@pytest.mark.origin("newcomers")
def test_the_menu_and_the_titles_agree():
    """A page has the name in the menu that it has at its top. The lessons and the command line are written by a hook."""
    menu = re.findall(r"^ +- (.+?): (\S+\.md)\b", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    titles = {page: re.search(r"^# (.+)$", text, re.MULTILINE) for page, text in PAGES.items()}
    pairs = [(name.strip("'\""), titles[page][1]) for name, page in menu if titles.get(page) and page != "index.md"]
    assert len(pairs) > 30
    assert [pair for pair in pairs if pair[0] != pair[1]] == []


@pytest.mark.origin("newcomers")
def test_the_file_formats_are_explained_once():
    assert [page for page, text in PAGES.items() if "save_npz(" in text] == ["use/save.md"]


@pytest.mark.origin("newcomers")
def test_what_to_install_can_be_installed_in_a_checkout():
    """rushlight is on no index: a hint names the package that is needed, or the checkout."""
    texts = {**TEXTS, **{p.name: p.read_text() for p in (ROOT / "rushlight").rglob("*.py")}}
    wanted = re.compile(r"pip install[^\n]*['\" ]rushlight\b")
    assert "index" in TEXTS["README.md"] or "not on PyPI" in TEXTS["README.md"]
    assert [name for name, text in texts.items() if wanted.search(text) and name != "project/releases.md"] == []
