"""tools/words.py: which texts it reports."""

import importlib.util
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"


def tool(name):
    spec = importlib.util.spec_from_file_location(f"tool_{name}", TOOLS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


words = tool("words")


@pytest.mark.parametrize(
    ("text", "hard"),
    [
        ("One run of backward: its nodes in order, and those of them that it goes to if it has targets.", True),
        ("The nodes of one backward, newest first; `wanted`: those that lead to a target, None for all.", False),
        ("`it`, `its`, `them` and `those` are names here.", False),
        ("it " * 3 + "word " * 27, False),
        ("it " * 3 + "word " * 26, True),
    ],
)
def test_short_texts_of_many_pronouns_are_hard(text, hard):
    assert words.is_hard(text) is hard


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A backend that asks for a device says so.", True),
        ("The list is no longer read.", False),
        ("The list is no tuple.", True),
        ("If there is no node, the gradient is None.", False),
        ("The task `asks` of the kind is known.", False),
        ("A skin of likely tasks.", False),
    ],
)
def test_phrases_are_whole_words_outside_of_code(text, found):
    assert words.has_phrase(text) is found


def test_each_hard_text_is_found_once_with_its_line(tmp_path):
    path = tmp_path / "a.py"
    path.write_text(
        '"""A page."""\nx = 1  # it, its and them\n\n\n# it and its\n# and those\ndef f():\n'
        '    """It is.\n\n    What it says of them and those.\n    """\n    return "# it its '
        'them"\n'
    )
    assert [line for line, _ in words.found(path)] == [2, 5, 10]


def test_phrases_are_counted_apart(tmp_path, capsys):
    (tmp_path / "a.py").write_text("x = 1  # it, its and them\ny = 2  # nobody reads y\n")
    assert words.main([str(tmp_path), "--phrases", "--count", "--limit", "1"]) == 0
    assert words.main([str(tmp_path), "--phrases", "--count", "--limit", "0"]) == 1
    words.main([str(tmp_path), "--phrases"])
    assert "nobody reads y" in capsys.readouterr().out


def test_the_limit_fails_only_above_it(tmp_path, capsys):
    (tmp_path / "a.py").write_text("x = 1  # it, its and them\n")
    assert words.main([str(tmp_path), "--count", "--limit", "1"]) == 0
    assert words.main([str(tmp_path), "--count", "--limit", "0"]) == 1
    assert "over the limit of 0" in capsys.readouterr().err
