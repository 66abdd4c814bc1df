"""docs/mistakes.md: the commonest mistakes. Each program fails with the message shown, the message has a hint, and the
program with the hint followed runs."""

import re

import mistakes  # tools/mistakes.py
import pytest

ENTRIES = mistakes.mistakes(mistakes.PAGE.read_text(encoding="utf-8"))
TITLES = [entry.title for entry in ENTRIES]
each = pytest.mark.parametrize("entry", ENTRIES, ids=TITLES)


def test_there_are_sixty():
    assert len(ENTRIES) >= 60
    assert len(ENTRIES) == mistakes.PAGE.read_text(encoding="utf-8").count("### ")
    assert len(set(TITLES)) == len(TITLES)


@each
def test_the_message_is_the_one_shown(entry):
    assert mistakes.message_of(mistakes.error_of(entry.program)) == entry.message


@each
def test_the_message_says_what_to_do(entry):
    assert "hint:" in entry.message or "super().__init__()" in entry.message
    if "at: " in entry.message:
        assert re.search(r"  at: you\.py:\d+: \S", entry.message)


@pytest.mark.origin("newcomers")
@each
def test_the_hint_adds_to_the_message(entry):
    """A hint has words of its own: it does not repeat the sentence above it."""
    said, _, hint = entry.message.partition("hint:")
    words, known = (set(re.findall(r"\w{3,}", text.lower())) for text in (hint, said.split("  at: ")[0]))
    assert not words or words - known - {"write", "use", "call", "pass", "give", "the"}


@each
def test_the_hint_mends_the_program(entry):
    assert entry.mended != entry.program
    assert mistakes.error_of(entry.mended) is None


@each
def test_the_traceback_ends_at_the_users_line(entry):
    error = mistakes.error_of(entry.program)
    assert error.__cause__ is None
    assert error.__context__ is None
    files, step = [], error.__traceback__.tb_next
    while step is not None:
        files.append(step.tb_frame.f_code.co_filename)
        step = step.tb_next
    assert files
    assert not any("rushlight" in file for file in files)


@each
def test_torch_says_what_the_page_quotes(entry, torch):
    error = mistakes.error_of(entry.program, "torch")
    assert mistakes.shown(mistakes.message_of(error).split("\n")[0]) == entry.torch
    if error is not None:
        kinds = {kind.__name__ for kind in type(error).__mro__}
        assert entry.message.split(":")[0].rpartition(".")[2] in kinds
