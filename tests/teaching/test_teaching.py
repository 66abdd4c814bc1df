"""Planted mistakes are found, each by its check alone; right programs raise no alarm."""

import io
import subprocess
import sys

import pytest

import rushlight
from rushlight.teaching import CHECKS, Teaching
from tests.support.paths import ROOT
from tests.teaching.planted import PLANTED, RIGHT, START


def found(text, name="you.py"):
    """The hints that a program gets. An error in a check is raised."""
    rushlight.teach(False)
    teaching = Teaching(quiet=True, strict=True)
    teaching.start()
    try:
        exec(compile(START + text, name, "exec"), {"__name__": "__main__"})
    finally:
        teaching.stop()
    return teaching.hints


@pytest.mark.parametrize("program", PLANTED)
def test_a_planted_mistake_is_found_and_nothing_else(program):
    name, text = PLANTED[program]
    hints = found(text)
    assert [hint.name for hint in hints] == [name], "\n".join(map(str, hints))


@pytest.mark.parametrize("program", RIGHT)
def test_no_alarm_for_a_right_program(program):
    assert "\n".join(map(str, found(RIGHT[program]))) == ""


def test_every_check_has_a_planted_program_and_a_text():
    assert {name for name, _ in PLANTED.values()} == {check.name for check in CHECKS}
    for check in CHECKS:
        assert all((check.title, check.why, check.fix, check.wrong, check.right, check.limit))
