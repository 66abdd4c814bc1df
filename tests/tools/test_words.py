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
    assert words.has_pronouns(text) is hard


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A backend that asks for a device says so.", True),
        ("The list is no longer read.", False),
        ("The list is no tuple.", True),
        ("If there is no node, the gradient is None.", False),
        ("The task `asks` of the kind is known.", False),
        ("A skin of likely tasks.", False),
        ("The gradient of x, from that of y.", True),
        ("What is saved for the rule.", True),
        ("What is a gradient?", False),
        ("Rows that lie side by side.", True),
        ("The hook that is not there.", True),
        ("The hook is there to end hangs.", True),
        ("How many layers are there?", False),
        ("The loop takes 1.5 times as many steps.", False),
        ("Numbers, as many as planes.", True),
        ("As many rows as the table.", False),
    ],
)
def test_phrases_are_whole_words_outside_of_code(text, found):
    assert words.has_phrase(text) is found


def faults(path):
    return [(line, fault) for line, kind, text in words.texts(path) for fault in words.kinds(kind, text)]


def test_each_hard_text_is_found_once_with_its_line(tmp_path):
    path = tmp_path / "a.py"
    path.write_text(
        '"""A page."""\nx = 1  # it, its and them\n\n\n# it and its\n# and those\ndef f():\n'
        '    """It is.\n\n    Them, those, its.\n    """\n    return "# it its them"\n'
    )
    assert faults(path) == [(2, "pronouns"), (5, "pronouns"), (10, "pronouns")]


def test_messages_are_read_without_their_values(tmp_path):
    path = tmp_path / "a.py"
    path.write_text(
        "raise value_error(f'{asks} is no tensor', 'a hint')\n"
        "raise RuntimeError('a' 'sks for it' if x else 'fine')\n"
        "warn('fine', hint='start anew')\n"
        "print('is no message')\n"
    )
    assert faults(path) == [(1, "message"), (2, "message"), (3, "message")]


def test_pages_are_read_without_code_and_headings(tmp_path):
    path = tmp_path / "a.md"
    path.write_text(
        "# What it is not\n\nStart `anew`.\n\n```python\nx = 1  # start anew\n```\n\n"
        "- fine\n- start anew\n\n| a | that of b |\n|---|---|\n| c | d |\n\nStart\nanew.\n"
    )
    assert faults(path) == [(10, "page"), (12, "page"), (16, "page")]


def test_limits_fail_only_above_them(tmp_path, capsys):
    (tmp_path / "a.py").write_text("x = 1  # it, its and them\ny = 2  # nobody reads y\n")
    assert words.main([str(tmp_path), "--count", "--pronouns", "1", "--phrases", "1"]) == 0
    assert words.main([str(tmp_path), "--count", "--pronouns", "0", "--phrases", "1"]) == 1
    assert "over the limit of 0" in capsys.readouterr().err
    assert words.main([str(tmp_path), "--count", "--pronouns", "1", "--phrases", "0"]) == 1
    words.main([str(tmp_path)])
    assert "nobody reads y" in capsys.readouterr().out


def test_a_message_or_page_with_a_phrase_fails_with_any_limit(tmp_path):
    (tmp_path / "a.md").write_text("Start anew.\n")
    assert words.main([str(tmp_path), "--count"]) == 0
    assert words.main([str(tmp_path), "--count", "--phrases", "9"]) == 1


def test_messages_and_pages_of_the_package_have_no_phrase(capsys):
    """`make words` has limits for comments; there is none for texts that users read."""
    assert words.main(["--count", "--phrases", "100000"]) == 0, capsys.readouterr().out
