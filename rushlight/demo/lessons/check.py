"""Checks of a student's notebook, and the file progress.json that keeps their results."""

from __future__ import annotations

import datetime
import getpass
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import rushlight
from rushlight.demo import BadInput
from rushlight.demo.lessons.source import EXERCISE, cells, checks, exercises, sources

DONE, WRONG, NOT_TRIED, ON_PAPER = "done", "wrong", "not tried", "on paper"
PROGRESS = "progress.json"


class Checked(NamedTuple):
    """A checked lesson. `exercises` has a dict with number, state and message for each exercise."""

    lesson: int
    seconds: float
    exercises: list[dict[str, Any]]
    lesson_error: str


def source_of(lesson: int) -> Path:
    found = [path for path in sources() if int(path.stem[:2]) == lesson]
    if not found:
        raise BadInput(f"no lesson {lesson}; the lessons are 1 to {len(sources())}")
    return found[0]


def notebook_of(lesson: int, folder: Path) -> Path:
    path = folder / f"{source_of(lesson).stem}.ipynb"
    if not path.is_file():
        raise BadInput(f"no file {path}; `rushlight lessons {folder}` writes the notebooks")
    return path


def read(path: Path) -> dict[str, Any]:
    """A notebook, with the fields that the checks need."""
    try:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        if all("cell_type" in cell and "source" in cell for cell in notebook["cells"]):
            return notebook
    except (ValueError, KeyError, TypeError):
        pass
    raise BadInput(f"{path} is not a notebook")


def begun(folder: Path) -> list[int]:
    """The lessons in whose notebooks something is written below an exercise."""
    numbers = [int(path.stem[:2]) for path in sources() if (folder / f"{path.stem}.ipynb").is_file()]
    return [number for number in numbers if has_answers(read(notebook_of(number, folder)))]


def has_answers(notebook: dict[str, Any]) -> bool:
    inside = False
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown" and (text.startswith("## ") or EXERCISE.search(text)):
            inside = bool(EXERCISE.search(text))
        elif cell["cell_type"] == "code" and inside and text.strip():
            return True
    return False


def check(lesson: int, folder: Path, limit: float) -> Checked:
    """Runs the notebook of a lesson in a process of its own, for at most `limit` seconds."""
    source, notebook = source_of(lesson), notebook_of(lesson, folder)
    read(notebook)
    start = time.perf_counter()
    stand = run(notebook, source, limit)
    text = cells(source.read_text(encoding="utf-8"))
    found = [result(number, number in checks(text), stand) for number in exercises(text)]
    return Checked(lesson, time.perf_counter() - start, found, stand["lesson_error"])


def run(notebook: Path, source: Path, limit: float) -> dict[str, Any]:
    """What runner.py has written. If the runner was ended, its last exercise, or else the lesson, has an error."""
    root = str(Path(rushlight.__file__).parents[1])
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    env = {**os.environ, "PYTHONPATH": path, "MPLBACKEND": "agg", "OPENBLAS_NUM_THREADS": "1"}
    with TemporaryDirectory() as place:
        results = Path(place) / "results.json"
        program = [sys.executable, "-W", "ignore", "-m", "rushlight.demo.lessons.runner"]
        command = [*program, str(notebook.resolve()), str(source), str(results)]
        try:
            none = subprocess.DEVNULL
            subprocess.run(command, cwd=notebook.parent, env=env, timeout=limit, stdin=none, stdout=none, stderr=none)
            ended = "the process ended"
        except subprocess.TimeoutExpired:
            ended = f"it took more than {limit:g} s"
        text = results.read_text(encoding="utf-8") if results.exists() else NO_RESULTS
    stand = json.loads(text)
    if stand["cell"] and stand["exercise"]:
        stand["results"][str(stand["exercise"])] = {"state": WRONG, "message": f"cell {stand['cell']}: {ended}"}
    elif stand["cell"]:
        stand["lesson_error"] = f"cell {stand['cell']}: {ended}".replace("cell -1", "first cell")
    return stand


NO_RESULTS = '{"cell": -1, "exercise": 0, "lesson_error": "", "results": {}}'


def result(number: int, has_check: bool, stand: dict[str, Any]) -> dict[str, Any]:
    if not has_check:
        return {"number": number, "state": ON_PAPER, "message": ""}
    found = stand["results"].get(str(number), {"state": NOT_TRIED, "message": ""})
    return {"number": number, **found}


def save(checked: Checked, folder: Path, name: str | None) -> Path:
    """Writes the results into progress.json: states, times, and when an exercise was done for the first time."""
    path = folder / PROGRESS
    progress: dict[str, Any] = load(path) if path.exists() else {"name": name or login(), "lessons": {}}
    progress["name"] = name or progress["name"]
    lessons: dict[str, Any] = progress["lessons"]
    before = lessons.get(str(checked.lesson), {"exercises": {}, "checks": 0})
    now = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    states = {}
    for exercise in checked.exercises:
        first = before["exercises"].get(str(exercise["number"]), {}).get("done_at")
        done_at = first or (now if exercise["state"] == DONE else None)
        states[str(exercise["number"])] = {
            "state": exercise["state"],
            "message": exercise["message"],
            "done_at": done_at,
        }
    lessons[str(checked.lesson)] = {
        "checked_at": now,
        "seconds": round(checked.seconds, 1),
        "checks": before["checks"] + 1,
        "exercises": states,
    }
    path.write_text(json.dumps(progress, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return path


def load(path: Path) -> dict[str, Any]:
    """A progress.json; refused if it has another form, since students' files come from anywhere."""
    try:
        progress = json.loads(path.read_text(encoding="utf-8"))
        states = [e["state"] for lesson in progress["lessons"].values() for e in lesson["exercises"].values()]
        if isinstance(progress["name"], str) and all(isinstance(state, str) for state in states):
            return progress
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    raise BadInput(f"{path} is not a file of `rushlight lessons check`")


def login() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a process without a user
        return "student"
