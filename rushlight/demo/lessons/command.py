"""The command `rushlight lessons`: arguments and printed lines."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from rushlight.demo import BadInput
from rushlight.demo.lessons import check, source

DESCRIPTION = """\
The twelve lessons of the site (docs/learn) as notebooks, for a course.

  rushlight lessons [FOLDER]            write the notebooks and their data (default: ./lessons);
                                        existing files are left alone
  rushlight lessons check [N] [FOLDER]  run the notebook of lesson N and check its exercises;
                                        without N, each notebook in which an exercise was begun
  rushlight lessons class FOLDER...     write a page with the progress of a class, from the files
                                        progress.json in these folders and below

The notebooks hold no solutions. A check runs all cells of the notebook in order; what it finds
is also written to FOLDER/progress.json, with your name.
"""
PLACE = Path("lessons")
MARKS = {
    check.DONE: ("✓", "32"),
    check.WRONG: ("✗", "31"),
    check.NOT_TRIED: ("·", "90"),
    check.ON_PAPER: ("–", "90"),
}  # state -> its sign and its ANSI color


def add_lessons(commands: argparse._SubParsersAction) -> None:
    lessons = commands.add_parser(
        "lessons",
        help="write the lessons as notebooks, and check their exercises",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    lessons.add_argument("words", nargs="*", metavar="ARGUMENT", help="see above")
    lessons.add_argument(
        "--open", action="store_true", help="open the notebooks in JupyterLab, or the page in the browser"
    )
    lessons.add_argument("--name", help="check: the student's name in progress.json (default: the login)")
    lessons.add_argument(
        "--limit",
        metavar="SECONDS",
        type=float,
        default=300.0,
        help="check: time for a notebook (default: %(default)g)",
    )
    lessons.add_argument(
        "--out", metavar="FILE", type=Path, default=Path("class.html"), help="class: the page (default: %(default)s)"
    )
    lessons.set_defaults(run=run, command="lessons")


def run(arguments: argparse.Namespace) -> int:
    action, *rest = arguments.words or [""]
    if action == "check":
        return run_check(rest, arguments)
    if action == "class":
        return run_class(rest, arguments)
    if rest:
        raise BadInput(f"expected one folder, got {' '.join(arguments.words)}")
    return run_write(Path(action) if action else PLACE, arguments.open)


def run_write(place: Path, open_them: bool) -> int:
    written, kept = source.write(place)
    print(f"{len(written)} files written to {place}" + (f", {len(kept)} were there and are unchanged" if kept else ""))
    jupyter = shutil.which("jupyter-lab")
    if open_them and jupyter:
        return subprocess.run([jupyter, str(place)], check=False).returncode
    install = "" if jupyter else "     (pip install jupyterlab)"
    print(f"open them:       jupyter lab {place}{install}")
    print(f"check lesson 1:  rushlight lessons check 1{'' if place == PLACE else f' {place}'}")
    return 0


def run_check(words: list[str], arguments: argparse.Namespace) -> int:
    """Exit status 0 if no exercise is wrong, else 1."""
    number = int(words.pop(0)) if words and words[0].isdecimal() else None
    if len(words) > 1:
        raise BadInput(f"expected a lesson and a folder, got {' '.join(words)}")
    folder = Path(words[0]) if words else PLACE
    if not folder.is_dir():
        raise BadInput(f"no folder {folder}; `rushlight lessons {folder}` makes it")
    numbers = check.begun(folder) if number is None else [number]
    if not numbers:
        raise BadInput(f"no exercise is begun in {folder}; to check a lesson: rushlight lessons check 1")
    wrong = False
    for lesson in numbers:
        checked = check.check(lesson, folder, arguments.limit)
        check.save(checked, folder, arguments.name)
        show(checked)
        wrong |= bool(checked.lesson_error) or any(found["state"] == check.WRONG for found in checked.exercises)
    return int(wrong)


def show(checked: check.Checked) -> None:
    text = source.cells(check.source_of(checked.lesson).read_text(encoding="utf-8"))
    print(f"{source.title(text)}  ({checked.seconds:.1f} s)")
    for found in checked.exercises:
        sign, color = MARKS[found["state"]]
        print(colored(f"  {sign} exercise {found['number']}: {found['state']}", color))
        for line in found["message"].splitlines():
            print(f"      {line}")
    if checked.lesson_error:
        print(colored("  A cell of the lesson itself has an error; the checks may need it:", "31"))
        print(f"      {checked.lesson_error}")


def colored(text: str, color: str) -> str:
    if not sys.stdout.isatty() or "NO_COLOR" in os.environ:
        return text
    return f"\x1b[{color}m{text}\x1b[0m"


def run_class(words: list[str], arguments: argparse.Namespace) -> int:
    from rushlight.demo.lessons.class_page import page

    files = sorted({path for word in words for path in Path(word).rglob(check.PROGRESS)})
    if not files:
        raise BadInput("no progress.json in these folders; each student's `rushlight lessons check` writes one")
    arguments.out.write_text(page([check.load(path) for path in files]), encoding="utf-8")
    print(arguments.out)
    if arguments.open:
        import webbrowser

        webbrowser.open(arguments.out.resolve().as_uri())
    return 0
