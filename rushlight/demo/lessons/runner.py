"""The program that runs a student's notebook: `python -m rushlight.demo.lessons.runner NOTEBOOK SOURCE RESULTS`.

All cells run in one process, in order. The check of an exercise runs behind the cells of this exercise. RESULTS is
written before each cell, because the time limit may end the process at any time.
"""

from __future__ import annotations

import json
import linecache
import sys
import types
from pathlib import Path
from typing import Any

from rushlight.demo.lessons.source import EXERCISE, Check, cells, checks

Result = dict[str, str]  # {"state": "done", "wrong" or "not tried", "message": "..."}


class Run:
    """A notebook while it runs."""

    def __init__(self, checks: dict[int, Check]) -> None:
        self.checks = checks
        self.module = types.ModuleType("__main__")
        self.names = self.module.__dict__
        self.names["display"] = lambda *shown, **options: None  # IPython has this name in each notebook
        self.tried: set[int] = set()
        self.errors: dict[int, str] = {}  # exercise (0: the lesson's own cells) -> the first error of its cells
        self.results: dict[int, Result] = {}

    def run_cell(self, text: str, exercise: int, name: str) -> None:
        text = "\n".join("" if line.lstrip().startswith(("%", "!")) else line for line in text.splitlines())
        if text.strip():
            self.tried.add(exercise)
        try:
            execute(text, name, self.names)
        except (Exception, SystemExit) as error:
            self.errors.setdefault(exercise, f"{name}: {described(error)}")

    def judge(self, exercise: int) -> None:
        """Runs the check of an exercise, on a copy of the names."""
        check = self.checks.get(exercise)
        if check is None or self.results.get(exercise, {}).get("state") == "done":
            return
        missing = [name for name in check.define if name not in self.names]
        if missing and exercise not in self.tried:
            self.results[exercise] = {"state": "not tried", "message": ""}
            return
        try:
            if missing:
                raise AssertionError(self.errors.get(exercise) or f"Nothing has the name `{missing[0]}` yet.")
            execute(check.program, f"check {exercise}", dict(self.names))
            self.results[exercise] = {"state": "done", "message": ""}
        except AssertionError as error:
            self.results[exercise] = {"state": "wrong", "message": str(error)}
        except (Exception, SystemExit) as error:
            self.results[exercise] = {"state": "wrong", "message": f"The check ended with {described(error)}"}


def execute(text: str, name: str, names: dict[str, Any]) -> None:
    """Runs a cell. Its lines are known to `inspect` and to error messages."""
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    exec(compile(text, name, "exec"), names)


def described(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}".rstrip(": ")


def run(notebook: dict[str, Any], checks: dict[int, Check], results: Path) -> Run:
    """Runs all cells. Exercises whose names are still missing are judged once more at the end."""
    done = Run(checks)
    sys.modules["__main__"] = done.module
    exercise = 0
    for number, cell in enumerate(notebook["cells"], 1):
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            found = EXERCISE.search(text)
            if found or text.startswith("## "):
                done.judge(exercise)
                exercise = int(found[1]) if found else 0
        elif cell["cell_type"] == "code":
            save(done, results, number, exercise)
            done.run_cell(text, exercise, f"cell {number}")
    for exercise in checks:
        done.judge(exercise)
    save(done, results, 0, 0)
    return done


def save(done: Run, results: Path, cell: int, exercise: int) -> None:
    """`cell`: the number of the running cell; 0 after the last cell."""
    stand = {"cell": cell, "exercise": exercise, "lesson_error": done.errors.get(0, ""), "results": done.results}
    results.write_text(json.dumps(stand), encoding="utf-8")


def main(notebook: str, source: str, results: str) -> int:
    lesson = checks(cells(Path(source).read_text(encoding="utf-8")))
    sys.path.insert(0, "")
    run(json.loads(Path(notebook).read_text(encoding="utf-8")), lesson, Path(results))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
