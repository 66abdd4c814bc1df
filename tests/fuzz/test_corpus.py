"""Programs that once gave other answers than torch (tests/fuzz/corpus): each beside torch, or beside what torch
answered."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import rushlight

FUZZ = Path(__file__).parent
sys.path.insert(0, str(FUZZ))

import differences  # noqa: E402
import harness  # noqa: E402

PROGRAMS = [
    (kind, name, text)
    for kind in ("combinations", "eager", "transforms", "layouts")
    for name, text in harness.corpus(kind)
]


def answered(text, torch):
    """Whether torch refuses the program, the leaves of its answer, and why ours differs on purpose.

    The reason stands in the golden file, too: some reasons are found by running torch."""
    made = harness.run(text, torch)
    return [bool(made.error), made.leaves, differences.reason(text)]


@pytest.mark.parametrize(("kind", "name", "text"), PROGRAMS, ids=[f"{kind}-{name}" for kind, name, _ in PROGRAMS])
def test_program(oracle, kind, name, text):
    harness.library("rushlight")
    refused, leaves, why = oracle(lambda torch: answered(text, harness.library("torch")))
    if why:
        pytest.skip(f"differs on purpose: {why}")
    ours = harness.run(text, rushlight)
    torchs = harness.Outcome(leaves, "refused" if refused else "")
    assert harness.compared(torchs, ours) == "same", f"{text}\n\ntorch: {torchs}\nrushlight: {ours}"


@pytest.mark.parametrize(("name", "text"), harness.corpus("compiled"))
def test_compiled_program(name, text):
    import compiled

    assert harness.difference(text, compiled.sides())[0] == "same"


def test_differences_are_told_apart():
    """A wrong number, a missing answer and an answer too many are what they are; rounding is not wrong."""
    for wrong, kind in (
        ("t.tensor([1.5])", "wrong"),
        ("1 / 0", "refused"),
        ("t.tensor([1.0])", "same"),
        ("t.tensor([1.00001])", "same"),
        ("t.tensor([[1.0]])", "wrong"),
        ("t.tensor([1])", "wrong"),
    ):
        first, second = harness.run("return t.tensor([1.0])", rushlight), harness.run(f"return {wrong}", rushlight)
        assert harness.compared(first, second) == kind
    assert harness.compared(second, harness.run("return 1 / 0", rushlight)) == "refused"
    assert harness.compared(harness.run("return 1 / 0", rushlight), second) == "accepted"


def test_minimised():
    """Without what the answer does not need: lines, blocks, parts of lists and calls."""

    def keeps(text):
        made = harness.run(text, rushlight)
        return not made.error and made.leaves[-1] is not None and np.allclose(made.leaves[-1], 3 * np.sin(2))

    text = (
        "a = t.ones(2)\nb = a * 2\nwith t.no_grad():\n    c = b.sin()\n    c.mul_(3)\nd = c.abs()\n"
        "return [a, d.cos(), c.clone()]"
    )
    small = harness.minimised(text, keeps).split("\n")
    assert small == ["a = t.ones()", "b = a * 2", "c = b.sin()", "c.mul_(3)", "return [c]"]
