"""tools/words.py and tools/comment_width.py: what they find, and what they leave alone."""

import importlib.util
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"


def tool(name):
    spec = importlib.util.spec_from_file_location(f"tool_{name}", TOOLS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


words, width = tool("words"), tool("comment_width")


@pytest.mark.parametrize(
    ("text", "hard"),
    [
        (
            "One run of backward: its nodes in order, and those of them that it goes to if it has "
            "targets.",
            True,
        ),
        (
            "The nodes of one backward, newest first; `wanted`: those that lead to a target, None "
            "for all.",
            False,
        ),
        ("`it`, `its`, `them` and `those` are names here.", False),
        ("it " * 3 + "word " * 27, False),
        ("it " * 3 + "word " * 26, True),
    ],
)
def test_short_texts_of_many_pronouns_are_hard(text, hard):
    assert words.is_hard(text) is hard


def test_each_hard_text_is_found_once_with_its_line(tmp_path):
    path = tmp_path / "a.py"
    path.write_text(
        '"""A page."""\nx = 1  # it, its and them\n\n\n# it and its\n# and those\ndef f():\n'
        '    """It is.\n\n    What it says of them and those.\n    """\n    return "# it its '
        'them"\n'
    )
    assert [line for line, _ in words.found(path)] == [2, 5, 10]


def test_the_limit_fails_only_above_it(tmp_path, capsys):
    (tmp_path / "a.py").write_text("x = 1  # it, its and them\n")
    assert words.main([str(tmp_path), "--count", "--limit", "1"]) == 0
    assert words.main([str(tmp_path), "--count", "--limit", "0"]) == 1
    assert "over the limit of 0" in capsys.readouterr().err


LONG = "a word " * 13


def fitted(source):
    made = width.with_docstrings_wrapped(
        width.with_blocks_wrapped(width.with_comments_moved(source))
    )
    assert width.same_code(source, made)
    return made


def test_long_trailing_comments_move_above_their_line():
    assert fitted(f"if x:\n    y = 1  # {LONG}\n") == f"if x:\n    # {LONG.strip()}\n    y = 1\n"
    assert fitted("y = 1  # short\n") == "y = 1  # short\n"


def test_pragmas_and_strings_stay():
    for source in (
        f"import a  # noqa: F401  {LONG}\n",
        f'x = """{LONG}\n# {LONG}\n"""\n',
        f'f(1, "# {LONG}")\n',
    ):
        assert fitted(source) == source


def test_the_words_behind_a_pragma_move():
    assert (
        fitted(f"x = 1  # type: ignore  # {LONG}\n") == f"# {LONG.strip()}\nx = 1  # type: ignore\n"
    )


def test_docstrings_are_wrapped_but_not_their_examples():
    example = f"    >>> f('{LONG}')\n    ... # {LONG}\n    {LONG}"
    source = f'def f():\n    """{LONG}{LONG}\n\n{example}\n    """\n'
    made = fitted(source)
    assert example in made
    assert all(len(line) <= 100 for line in made.replace(example, "").splitlines())
