"""`rushlight lessons`: notebooks for students, checks of the exercises, the teacher's page."""

from __future__ import annotations

import ast
import json
import re

import pytest

from rushlight.cli import main
from rushlight.demo import BadInput
from rushlight.demo.lessons import check, source
from tests.support.paths import ROOT

SOURCES = source.sources()
SLOW = ("07", "09", "10", "11")  # these train for seconds
LESSONS = [
    pytest.param(path, id=path.stem, marks=[pytest.mark.exhaustive] if path.stem.startswith(SLOW) else [])
    for path in SOURCES
]
LIMIT = 300


def lesson_of(path):
    return source.cells(path.read_text(encoding="utf-8"))


def answered(path, answers):
    """The student's notebook of a lesson, with {exercise: program} in the empty cells."""
    notebook = source.notebook(lesson_of(path))
    exercise = 0
    for cell in notebook["cells"]:
        found = source.EXERCISE.search("".join(cell["source"]))
        if found:
            exercise = int(found[1])
        elif not cell["source"]:
            cell["source"] = answers.get(exercise, "")
    return notebook


def solutions(lesson):
    """{exercise: the program of its solution}"""
    found, exercise = {}, 0
    for cell in lesson:
        number = source.EXERCISE.search(cell.text)
        if number:
            exercise = int(number[1])
        if cell.kind == "code" and "solution" in cell.tags:
            found[exercise] = f"{found.get(exercise, '')}\n{cell.text}"
    return found


def states(path, folder, answers):
    (folder / f"{path.stem}.ipynb").write_text(json.dumps(answered(path, answers)))
    for data in source.data_files():
        (folder / data.name).write_text(data.read_text(encoding="utf-8"), encoding="utf-8")
    checked = check.check(int(path.stem[:2]), folder, LIMIT)
    assert checked.lesson_error == ""
    return checked.exercises


@pytest.mark.parametrize("path", LESSONS)
def test_solutions_pass_their_checks(path, tmp_path):
    found = states(path, tmp_path, solutions(lesson_of(path)))
    with_check = set(source.checks(lesson_of(path)))
    assert {e["number"] for e in found if e["state"] == check.DONE} == with_check, found
    assert {e["number"] for e in found if e["state"] == check.ON_PAPER} == {1, 2, 3} - with_check


@pytest.mark.parametrize("path", LESSONS)
def test_an_empty_notebook_passes_no_check(path, tmp_path):
    found = states(path, tmp_path, {})
    assert {e["state"] for e in found} <= {check.NOT_TRIED, check.ON_PAPER}


@pytest.mark.parametrize("path", [p for p in LESSONS if p.id[:2] not in SLOW])
@pytest.mark.parametrize(
    "answer", ["7", *(pytest.param(a, marks=pytest.mark.exhaustive) for a in ("None", "[]", "lambda *a, **b: 7"))]
)
def test_wrong_answers_fail_each_check(path, answer, tmp_path):
    """Whatever the names are bound to, if it is not an answer."""
    of_lesson = source.checks(lesson_of(path)).values()
    wrong = {one.exercise: "".join(f"{name} = {answer}\n" for name in one.define) for one in of_lesson}
    if answer == "None" and path.stem.startswith("02"):
        wrong.pop(2)  # None is the answer there
    found = states(path, tmp_path, wrong)
    assert {e["number"] for e in found if e["state"] == check.WRONG} == set(wrong), found


@pytest.mark.exhaustive
@pytest.mark.parametrize("path", [p for p in LESSONS if p.id[:2] in SLOW])
def test_wrong_answers_fail_each_check_of_slow_lessons(path, tmp_path):
    test_wrong_answers_fail_each_check(path, "7", tmp_path)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_exercises_name_what_their_checks_need(path):
    """The text of an exercise has the names, and the lesson itself does not define them."""
    lesson = lesson_of(path)
    assert source.exercises(lesson) == [1, 2, 3]
    texts = {}
    for cell in lesson:
        number = source.EXERCISE.search(cell.text) if cell.kind == "markdown" else None
        if number:
            texts[int(number[1])] = cell.text
    program = "\n".join(cell.text for cell in lesson if cell.kind == "code" and not cell.tags)
    defined = {node.id for node in ast.walk(ast.parse(program)) if isinstance(node, ast.Name)}
    for exercise, one in source.checks(lesson).items():
        for name in one.define:
            assert re.search(rf"\b{name}\b", texts[exercise]), f"exercise {exercise} does not name {name}"
            assert name not in defined, f"{name} is a name of the lesson itself"
        for node in ast.walk(ast.parse(one.program)):
            assert not isinstance(node, ast.Assert) or node.msg, "each assert has a message"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_cells_are_those_of_jupytext(path):
    jupytext = pytest.importorskip("jupytext")
    theirs = jupytext.read(path, fmt="py:percent").cells
    ours = lesson_of(path)
    assert [(c.kind, c.text) for c in ours] == [(c.cell_type, c.source) for c in theirs]
    assert [c.tags for c in ours] == [c.metadata.get("tags", []) for c in theirs]


def test_notebooks_have_no_solutions_and_are_never_overwritten(tmp_path, capsys):
    place = tmp_path / "course"
    assert main(["lessons", str(place)]) == 0
    shown = capsys.readouterr().out
    assert "14 files written" in shown
    assert f"jupyter lab {place}" in shown
    assert len(list(place.glob("*.ipynb"))) == 12
    for path in SOURCES:
        text = "\n".join("".join(c["source"]) for c in json.loads((place / f"{path.stem}.ipynb").read_text())["cells"])
        hidden = [cell.text for cell in lesson_of(path) if set(cell.tags) & {"solution", "check"}]
        assert hidden
        assert not [cell for cell in hidden if cell in text]
        assert not re.search(r"\]\([^)]*\.md\)", text)
    (place / "01_scalar.ipynb").write_text("mine")
    (place / "alice.txt").unlink()
    assert main(["lessons", str(place)]) == 0
    assert "1 files written" in capsys.readouterr().out
    assert (place / "01_scalar.ipynb").read_text() == "mine"


def test_notebooks_are_valid(tmp_path):
    nbformat = pytest.importorskip("nbformat")
    source.write(tmp_path)
    for path in tmp_path.glob("*.ipynb"):
        nbformat.validate(nbformat.read(path, as_version=4))


def test_check_tells_done_wrong_and_not_tried(tmp_path, capsys):
    answers = {1: solutions(lesson_of(SOURCES[0]))[1], 2: 'wrong = ["3 * x"]'}
    states(SOURCES[0], tmp_path, answers)
    capsys.readouterr()
    assert main(["lessons", "check", str(tmp_path), "--name", "Ada"]) == 1  # finds that lesson 1 was begun
    shown = capsys.readouterr().out
    assert "✓ exercise 1: done" in shown
    assert "✗ exercise 2: wrong\n      In 3 * x and x.tanh() x is used once" in shown
    assert "– exercise 3: on paper" in shown
    progress = json.loads((tmp_path / "progress.json").read_text())
    assert progress["name"] == "Ada"
    first = progress["lessons"]["1"]["exercises"]["1"]["done_at"]
    assert first
    assert main(["lessons", "check", "1", str(tmp_path)]) == 1
    progress = json.loads((tmp_path / "progress.json").read_text())
    assert progress["name"] == "Ada"
    assert progress["lessons"]["1"]["checks"] == 2
    assert progress["lessons"]["1"]["exercises"]["1"]["done_at"] == first


def test_an_endless_cell_ends_with_the_time_limit(tmp_path):
    notebook = answered(SOURCES[11], {2: "while True: pass"})
    notebook["cells"] = [
        c for c in notebook["cells"] if c["cell_type"] == "markdown" or "while" in "".join(c["source"])
    ]
    (tmp_path / f"{SOURCES[11].stem}.ipynb").write_text(json.dumps(notebook))
    found = check.check(12, tmp_path, 5.0).exercises
    assert found[1]["state"] == check.WRONG
    assert "took more than 5 s" in found[1]["message"]


def test_errors_of_cells_are_told(tmp_path):
    notebook = answered(SOURCES[0], {1: "def exp(x):\n    return y\nexp(1)", 2: "%matplotlib inline\n1 / 0"})
    notebook["cells"][2]["source"] = "raise ValueError('mine')"
    (tmp_path / "01_scalar.ipynb").write_text(json.dumps(notebook))
    checked = check.check(1, tmp_path, LIMIT)
    assert checked.lesson_error.endswith("ValueError: mine")
    assert [e["state"] for e in checked.exercises] == [check.WRONG, check.WRONG, check.ON_PAPER]
    assert "ZeroDivisionError" in checked.exercises[1]["message"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["check", "13"], "no lesson 13; the lessons are 1 to 12"),
        (["check", "1", "x", "y"], "expected a lesson and a folder, got x y"),
        (["check", "1", "nowhere"], "no folder nowhere"),
        (["check", "1", "."], "no file 01_scalar.ipynb"),
        (["check", "."], "no exercise is begun in ."),
        (["class", "."], "no progress.json in these folders"),
        (["a", "b"], "expected one folder, got a b"),
    ],
)
def test_what_lessons_refuses(words, told, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lessons").mkdir()
    assert main(["lessons", *words]) == 2
    assert capsys.readouterr().err.startswith(f"rushlight lessons: {told}")


def test_files_of_another_form_are_refused(tmp_path):
    (tmp_path / "01_scalar.ipynb").write_text("[1]")
    with pytest.raises(BadInput, match="is not a notebook"):
        check.check(1, tmp_path, LIMIT)
    (tmp_path / "progress.json").write_text('{"name": 3, "lessons": {}}')
    with pytest.raises(BadInput, match="is not a file of"):
        check.load(tmp_path / "progress.json")


def test_the_wheel_has_all_sources():
    text = (ROOT / "pyproject.toml").read_text()
    included = re.findall(r'"docs/learn/(\S+)" = "rushlight/demo/lessons/sources/(\S+)"', text)
    assert {there for there, _ in included} == {path.name for path in [*SOURCES, *source.data_files()]}
    assert all(there == here for there, here in included)


def progress(name, states_of_lesson_1):
    exercises = {
        str(i): {"state": state, "message": "<b>hint</b>" if state == check.WRONG else "", "done_at": None}
        for i, state in enumerate(states_of_lesson_1, 1)
    }
    return {"name": name, "lessons": {"1": {"checked_at": "2026-11-30T10:00:00", "exercises": exercises}}}


def test_the_page_of_a_class(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, found in {
        "Bo <script>": [check.WRONG, check.WRONG, check.ON_PAPER],
        "Ada": [check.DONE, check.WRONG, check.ON_PAPER],
    }.items():
        folder = tmp_path / "class" / name[:2]
        folder.mkdir(parents=True)
        (folder / "progress.json").write_text(json.dumps(progress(name, found)))
    assert main(["lessons", "class", "class"]) == 0
    assert capsys.readouterr().out == "class.html\n"
    page = (tmp_path / "class.html").read_text(encoding="utf-8")
    assert "2 students" in page
    assert page.index("Ada</h3>") < page.index("Bo &lt;script&gt;</h3>")
    assert "<script" not in page
    assert not re.search(r"https?:|src=|@import", page)
    hard = re.findall(r"exercise (\d)</b> <span class=n>(\d) wrong, (\d) done</span><p>(.*?)</p>", page)
    assert hard == [("2", "2", "0", "&lt;b&gt;hint&lt;/b&gt;"), ("1", "1", "1", "&lt;b&gt;hint&lt;/b&gt;")]
    assert page.count('class="s done"') == 1 + 1  # the key has one as well
    assert page.count('class="s wrong"') == 3 + 1
    assert page.count('role="img"') == 2 * 36
