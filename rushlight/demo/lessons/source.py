"""A lesson's source in the percent format, as cells, as checks and as a notebook for students."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve()
HEADER = re.compile(r"# %%(?P<markdown> \[markdown\])?(?P<options>.*)")
OPTION = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|\[[^\]]*\])')
EXERCISE = re.compile(r"\*\*Exercise (\d+)\.\*\*")


class Cell(NamedTuple):
    """A cell of a source: `kind` is "markdown" or "code"; `options` are in the cell's first line."""

    kind: str
    text: str
    options: dict[str, Any]

    @property
    def tags(self) -> list[str]:
        return self.options.get("tags", [])


class Check(NamedTuple):
    """The check of an exercise: `define` names what a student must define, `program` has the asserts."""

    exercise: int
    define: list[str]
    program: str


def folder() -> Path:
    """The folder of the sources: in a wheel beside this file, in a checkout docs/learn."""
    installed = HERE.parent / "sources"
    return installed if installed.is_dir() else HERE.parents[3] / "docs" / "learn"


def sources() -> list[Path]:
    return sorted(folder().glob("[0-9][0-9]_*.py"))


def data_files() -> list[Path]:
    return sorted(folder().glob("*.txt"))


def cells(text: str) -> list[Cell]:
    """The cells of a source."""
    found: list[tuple[str, dict[str, Any], list[str]]] = []
    for line in text.splitlines():
        header = HEADER.fullmatch(line)
        if header:
            options = {name: json.loads(value) for name, value in OPTION.findall(header["options"])}
            found.append(("markdown" if header["markdown"] else "code", options, []))
        elif found:
            found[-1][2].append(line)
    return [Cell(kind, cell_text(kind, lines), options) for kind, options, lines in found]


def cell_text(kind: str, lines: list[str]) -> str:
    if kind == "markdown":
        lines = [line.removeprefix("#").removeprefix(" ") for line in lines]
    return "\n".join(lines).strip("\n")


def exercises(lesson: list[Cell]) -> list[int]:
    """The numbers of a lesson's exercises, in order."""
    texts = [cell.text for cell in lesson if cell.kind == "markdown" and "solution" not in cell.tags]
    return [int(number) for text in texts for number in EXERCISE.findall(text)]


def checks(lesson: list[Cell]) -> dict[int, Check]:
    """{exercise: its check}. An exercise without a check is one on paper."""
    found, exercise = {}, 0
    for cell in lesson:
        number = EXERCISE.search(cell.text) if cell.kind == "markdown" else None
        if number:
            exercise = int(number[1])
        if "check" in cell.tags:
            found[exercise] = Check(exercise, cell.options["define"], cell.text)
    return found


def title(lesson: list[Cell]) -> str:
    return lesson[0].text.partition("\n")[0].lstrip("# ")


def notebook(lesson: list[Cell]) -> dict[str, Any]:
    """The notebook for students: without solutions and checks, with an empty cell below each exercise."""
    made: list[dict[str, Any]] = []
    for cell in lesson:
        if {"solution", "check"} & set(cell.tags):
            continue
        made.append(
            notebook_cell(cell.kind, with_links(cell.text) if cell.kind == "markdown" else cell.text, len(made))
        )
        if cell.kind == "markdown" and EXERCISE.search(cell.text):
            made.append(notebook_cell("code", "", len(made)))
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def notebook_cell(kind: str, text: str, number: int) -> dict[str, Any]:
    made = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": text.splitlines(keepends=True)}
    return made if kind == "markdown" else {**made, "execution_count": None, "outputs": []}


def with_links(text: str) -> str:
    """Links to lessons lead to their notebooks; links to other pages of the site become plain text."""
    linked = re.sub(r"\((\d\d_\w+)\.md\)", r"(\1.ipynb)", text)
    return re.sub(r"\[([^\]]+)\]\([\w./-]+\.md\)", r"\1", linked)


def write(place: Path) -> tuple[list[Path], list[Path]]:
    """Writes the notebooks and their data. Returns (written files, files that existed and were left alone)."""
    place.mkdir(parents=True, exist_ok=True)
    texts = {f"{path.stem}.ipynb": notebook_text(path) for path in sources()}
    texts |= {path.name: path.read_text(encoding="utf-8") for path in data_files()}
    written, kept = [], []
    for name, text in texts.items():
        try:
            with (place / name).open("x", encoding="utf-8") as file:
                file.write(text)
            written.append(place / name)
        except FileExistsError:
            kept.append(place / name)
    return written, kept


def notebook_text(path: Path) -> str:
    return json.dumps(notebook(cells(path.read_text(encoding="utf-8"))), ensure_ascii=False, indent=1) + "\n"
