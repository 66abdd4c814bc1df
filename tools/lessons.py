"""Lessons: `docs/learn/NN_name.py` (jupytext's percent format) as executed notebooks and as pages.

    python tools/lessons.py             run all lessons, print the seconds of each
    python tools/lessons.py 03 09       only these

A source is run by nbclient in docs/learn, so that it finds its data. An executed notebook is kept in .cache/lessons;
the name of its file holds a hash of all that can change its outputs. The site's hook (docs/learn_hook.py) and
tests/docs/test_lessons.py use this file.

Cells of a source may have these options in their first line:

    # %% alt="Loss by step"          alternative text of the cell's picture
    # %% tags=["solution"]           an exercise's solution: folded on the page, hidden in the notebook
    # %% tags=["check"] define=["f"]  the check of an exercise, for which a student defines f: on no page and in no
                                     notebook; `rushlight lessons check` runs it
"""

from __future__ import annotations

import hashlib
import html
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import jupytext
import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parents[1]
LEARN = ROOT / "docs" / "learn"
CACHE = ROOT / ".cache" / "lessons"
STYLE = ROOT / "docs" / "assets" / "lessons.mplstyle"
INK = "#1b1c1d"  # the color of text and axes in STYLE; LIGHT_INK takes its place for dark pages
LIGHT_INK = "#dcdde0"
KERNEL_OPTIONS = ["--InlineBackend.figure_formats={'svg'}", "--IPKernelApp.log_level=ERROR"]
CELL_SECONDS = 300
CELL_FILE = re.compile(r"\S*/ipykernel_\d+/\d+\.py")  # the file name that IPython gives a cell


class Page(NamedTuple):
    """A lesson's page in Markdown, and the files that it shows, by name."""

    text: str
    files: dict[str, str]


def sources() -> list[Path]:
    return sorted(LEARN.glob("[0-9][0-9]_*.py"))


def read(source: Path) -> NotebookNode:
    """The notebook of a source, not run. Solutions are hidden, checks are left out."""
    notebook = jupytext.read(source, fmt="py:percent")
    notebook.cells = [cell for cell in notebook.cells if "check" not in cell.metadata.get("tags", [])]
    for cell in notebook.cells:
        if is_solution(cell):
            cell.metadata["jupyter"] = {"source_hidden": True, "outputs_hidden": True}
    notebook.metadata = {
        "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
        "language_info": {"name": "python"},
    }
    return notebook


def executed(source: Path) -> NotebookNode:
    """The notebook of a source with its outputs: from the cache, or run now."""
    kept = CACHE / f"{source.stem}-{key(source)}.ipynb"
    if kept.exists():
        return nbformat.read(kept, as_version=4)
    notebook = run(source)
    CACHE.mkdir(parents=True, exist_ok=True)
    for old in CACHE.glob(f"{source.stem}-*"):
        old.unlink()
    nbformat.write(notebook, kept)
    return notebook


def key(source: Path) -> str:
    """A hash of the lesson, its data, this file and the library."""
    parts = [source, Path(__file__), STYLE, *sorted(LEARN.glob("*.txt"))]
    parts += sorted((ROOT / "rushlight").rglob("*.py"))
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.read_bytes())
    return digest.hexdigest()[:16]


def run(source: Path) -> NotebookNode:
    """Runs a lesson in a new kernel. Raises nbclient's CellExecutionError if a cell raises an error."""
    notebook = read(source)
    client = NotebookClient(
        notebook,
        timeout=CELL_SECONDS,
        kernel_name="python3",
        coalesce_streams=True,
        extra_arguments=KERNEL_OPTIONS,
        resources={"metadata": {"path": str(LEARN)}},
    )
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    env = {"PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1", "MATPLOTLIBRC": str(STYLE)}
    with client.setup_kernel(env={**os.environ, **env}):
        for i, cell in enumerate(notebook.cells):
            client.execute_cell(cell, i)
            cell.metadata.pop("execution", None)  # when it ran
            for output in cell.get("outputs", []):
                if output.output_type == "stream":
                    output.text = CELL_FILE.sub("cell", output.text)
    return notebook


# -- notebook for download


def download(notebook: NotebookNode) -> str:
    """The text of the .ipynb file. Links to lessons lead to their notebooks; links to other pages of the site become
    plain text."""
    copy = nbformat.from_dict(notebook)
    for cell in copy.cells:
        if cell.cell_type == "markdown":
            linked = re.sub(r"\((\d\d_\w+)\.md\)", r"(\1.ipynb)", cell.source)
            cell.source = re.sub(r"\[([^\]]+)\]\([\w./-]+\.md\)", r"\1", linked)
    return nbformat.writes(copy)


# -- page


def page(notebook: NotebookNode, name: str, folder: str = "") -> Page:
    """`name` is the source's, without `.py`: it begins the names of the page's files. `folder`: the way from the page
    to its files, for HTML, whose links mkdocs does not adapt."""
    parts, files = [], {}
    for is_solved, cells in groups(notebook.cells):
        texts = [cell_text(cell, name, folder, files) for cell in cells]
        if is_solved:
            body = "\n\n".join(texts)
            texts = ['??? note "Solution"\n' + indented(body)]
        parts += texts
    title, _, rest = parts[0].partition("\n")
    bar = (
        f'<div class="lesson-bar" data-lesson="{name}" markdown>\n'
        f"[Download as a notebook]({name}.ipynb){{ download }}\n</div>"
    )
    return Page("\n\n".join([title, bar, rest.strip(), *parts[1:]]) + "\n", files)


def groups(cells: list[NotebookNode]) -> Iterator[tuple[bool, list[NotebookNode]]]:
    """Neighbouring cells of a solution together, other cells one by one."""
    solution: list[NotebookNode] = []
    for cell in cells:
        if is_solution(cell):
            solution.append(cell)
            continue
        if solution:
            yield True, solution
            solution = []
        yield False, [cell]
    if solution:
        yield True, solution


def is_solution(cell: NotebookNode) -> bool:
    return "solution" in cell.metadata.get("tags", [])


def cell_text(cell: NotebookNode, name: str, folder: str, files: dict[str, str]) -> str:
    if cell.cell_type == "markdown":
        return cell.source
    text = fenced(cell.source, "python", "cell")
    alt = cell.metadata.get("alt", "")
    shown = [output_text(output, alt, name, folder, files) for output in cell.outputs]
    if not any(shown):
        return text
    return f'{text}\n\n<div class="outputs" markdown>\n\n' + "\n\n".join(shown) + "\n\n</div>"


def output_text(output: NotebookNode, alt: str, name: str, folder: str, files: dict[str, str]) -> str:
    """An output of a cell as Markdown; pictures and pages go to `files`."""
    if output.output_type == "stream":
        return fenced(output.text.rstrip("\n"), "text", "output")
    data = output.data
    if "image/svg+xml" in data:
        return picture(data["image/svg+xml"], alt, name, files)
    if "srcdoc=" in data.get("text/html", ""):
        file = next_name(name, files) + ".html"
        files[file] = html.unescape(re.search('srcdoc="(.*?)"', data["text/html"], re.DOTALL)[1])
        return f'<iframe src="{folder}{file}" title="{html.escape(alt)}"></iframe>'
    return fenced(data["text/plain"], "text", "output")


def picture(svg: str, alt: str, name: str, files: dict[str, str]) -> str:
    """A figure twice, with dark and with light ink; a picture without our ink once."""
    assert alt, f"{name}: a picture needs an alt text: # %% alt=..."
    svg = svg[svg.index("<svg") :]
    start = next_name(name, files)
    files[f"{start}.svg"] = svg
    if INK not in svg:
        graph = "" if "matplotlib" in svg else "{ .graph }"  # a graph has light boxes: on white
        return f"![{alt}]({start}.svg){graph}"
    files[f"{start}-dark.svg"] = svg.replace(INK, LIGHT_INK)
    return f"![{alt}]({start}.svg#only-light)\n![{alt}]({start}-dark.svg#only-dark)"


def next_name(name: str, files: dict[str, str]) -> str:
    return f"{name}-{1 + sum(not file.endswith('-dark.svg') for file in files)}"


def fenced(text: str, language: str, label: str) -> str:
    return f"```` {{.{language} .{label}}}\n{text}\n````"


def indented(text: str) -> str:
    return "".join(f"    {line}" if line.strip() else line for line in text.splitlines(True))


def main(chosen: list[str]) -> int:
    for source in sources():
        if chosen and not source.stem.startswith(tuple(chosen)):
            continue
        start = time.perf_counter()
        page(run(source), source.stem)
        print(f"{source.stem}: {time.perf_counter() - start:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
