"""The teacher's page: students, exercises, and the exercises at which most students fail."""

from __future__ import annotations

import datetime
import html
from collections import Counter
from pathlib import Path
from typing import Any

from rushlight.demo.lessons.check import DONE, NOT_TRIED, ON_PAPER, WRONG
from rushlight.demo.lessons.source import Cell, cells, checks, exercises, sources, title

SIGNS = {DONE: ("done", "✓"), WRONG: ("wrong", "✗"), NOT_TRIED: ("open", "·"), ON_PAPER: ("paper", "–")}
MOST = 8  # rows of the list of failed exercises
Progress = dict[str, Any]  # what progress.json holds


def page(students: list[Progress]) -> str:
    """The page as one file: no scripts, nothing from elsewhere."""
    lessons = [cells(path.read_text(encoding="utf-8")) for path in sources()]
    kinds = {n: without_results(lesson) for n, lesson in enumerate(lessons, 1)}
    titles = {n: title(lesson) for n, lesson in enumerate(lessons, 1)}
    students = sorted(students, key=lambda progress: progress["name"].casefold())
    template = (Path(__file__).parent / "class.html").read_text(encoding="utf-8")
    parts = {
        "COUNT": f"{len(students)} student{'s' if len(students) != 1 else ''}",
        "DATE": datetime.date.today().isoformat(),
        "HARDEST": hardest(students, titles),
        "STUDENTS": "\n".join(student(progress, kinds, titles) for progress in students),
    }
    for name, text in parts.items():
        template = template.replace(f"<!--{name}-->", text)
    return template


def without_results(lesson: list[Cell]) -> dict[int, str]:
    """{exercise: its state before any check}"""
    with_check = checks(lesson)
    return {exercise: NOT_TRIED if exercise in with_check else ON_PAPER for exercise in exercises(lesson)}


def state(progress: Progress, lesson: int, exercise: int, start: str = NOT_TRIED) -> tuple[str, str]:
    """(state, message) of an exercise; `start` is the state before any check, which stands for unknown states, too."""
    found = progress["lessons"].get(str(lesson), {}).get("exercises", {}).get(str(exercise), {})
    known = found.get("state", start)
    return (known if known in SIGNS else start), str(found.get("message", ""))


def hardest(students: list[Progress], titles: dict[int, str]) -> str:
    """A list of the exercises that most students have wrong, with the most frequent message of each."""
    wrong: dict[tuple[int, int], list[str]] = {}
    done: Counter[tuple[int, int]] = Counter()
    for progress in students:
        for lesson in titles:
            for exercise in (1, 2, 3):
                found, message = state(progress, lesson, exercise)
                done[lesson, exercise] += found == DONE
                if found == WRONG:
                    wrong.setdefault((lesson, exercise), []).append(message)
    if not wrong:
        return "<p>No exercise is wrong now.</p>"
    most = sorted(wrong.items(), key=lambda item: (-len(item[1]), item[0]))[:MOST]
    rows = [hard_row(place, messages, done[place], titles) for place, messages in most]
    return "<ol class=hard>\n" + "\n".join(rows) + "\n</ol>"


def hard_row(place: tuple[int, int], messages: list[str], done: int, titles: dict[int, str]) -> str:
    lesson, exercise = place
    usual = html.escape(Counter(messages).most_common(1)[0][0])
    name = f"Lesson {html.escape(titles[lesson])}, exercise {exercise}"
    return f"<li><b>{name}</b> <span class=n>{len(messages)} wrong, {done} done</span><p>{usual}</p></li>"


def student(progress: Progress, kinds: dict[int, dict[int, str]], titles: dict[int, str]) -> str:
    found = [state(progress, lesson, exercise)[0] for lesson, many in kinds.items() for exercise in many]
    times = [str(lesson.get("checked_at", ""))[:10] for lesson in progress["lessons"].values()]
    last = f", last check {html.escape(max(times))}" if times else ""
    groups = "\n".join(group(progress, lesson, many, titles[lesson]) for lesson, many in kinds.items())
    return (
        f"<section><h3>{html.escape(progress['name'])}</h3>"
        f"<p class=n>{found.count(DONE)} done, {found.count(WRONG)} wrong{last}</p>\n"
        f"<ol class=lessons>\n{groups}\n</ol></section>"
    )


def group(progress: Progress, lesson: int, many: dict[int, str], name: str) -> str:
    marks = []
    for exercise, start in many.items():
        found, message = state(progress, lesson, exercise, start)
        kind, sign = SIGNS[found]
        told = html.escape(
            f"lesson {lesson}, exercise {exercise}: {found}" + (f". {message}" if message else ""), quote=True
        )
        marks.append(f'<span class="s {kind}" role="img" aria-label="{told}" title="{told}">{sign}</span>')
    return f'<li title="{html.escape(name, quote=True)}"><span class=l>{lesson}</span>{"".join(marks)}</li>'
