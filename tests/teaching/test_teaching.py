"""Planted mistakes are found, each by its check alone; right programs raise no alarm."""

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


def run(program, *args):
    return subprocess.run(
        [sys.executable, "-m", "rushlight", "run", *args, str(program)],
        cwd=program.parent,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.exhaustive
def test_the_command_line_keeps_stdout_and_names_the_line(tmp_path):
    program = tmp_path / "train.py"
    name, text = PLANTED["no zero_grad"]
    text = START.replace("rushlight", "torch") + text + "print(model(x).sum().item())\nraise SystemExit(3)"
    program.write_text(text)
    plain, taught = run(program), run(program, "--teach")
    assert (taught.stdout, taught.returncode) == (plain.stdout, plain.returncode)
    line = text.split("\n").index("    optimizer.step()", text[: text.index("model = ")].count("\n")) + 1
    assert f"  at: {program}:{line}: optimizer.step()" in taught.stderr
    assert taught.stderr.splitlines()[-2:] == [
        "rushlight teach: 1 hint",
        f"  {program}:{line}: gradients are not cleared between steps",
    ]


def losses(steps=12):
    """The losses of a compiled and of an eager training loop."""
    rushlight.manual_seed(0)
    nn, F = rushlight.nn, rushlight.nn.functional
    model = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.5), nn.ReLU(), nn.Linear(16, 3))
    optimizer = rushlight.optim.AdamW(model.parameters())
    x, y = rushlight.randn(32, 8), rushlight.randint(0, 3, (32,))

    def step():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    compiled = rushlight.compile(step)
    found = [step().item() for _ in range(steps)] + [compiled().item() for _ in range(steps)]
    return found, rushlight.compiler.explain(step).graph_break_count


def test_numbers_and_compiled_programs_are_the_same():
    plain = losses()
    with rushlight.teach(quiet=True) as teaching:
        assert losses() == plain
    assert plain[1] == 0
    assert teaching.hints == []


def test_a_compiled_step_is_checked_while_it_is_traced():
    F = rushlight.nn.functional
    w = rushlight.randn(8, 3, requires_grad=True)
    x, y = rushlight.randn(4, 8), rushlight.tensor([0, 1, 2, 0])
    with rushlight.teach(quiet=True) as teaching:
        step = rushlight.compile(lambda: F.cross_entropy((x @ w).softmax(1), y))
        for _ in range(4):
            step()
    assert [hint.name for hint in teaching.hints] == ["softmax-before-cross-entropy"]


def test_nothing_is_wrapped_when_it_is_off():
    F, Tensor = rushlight.nn.functional, rushlight.Tensor
    before = F.cross_entropy, Tensor.argmax, Tensor.max, Tensor.__eq__, rushlight.nn.Module.__call__
    with rushlight.teach(quiet=True):
        assert F.cross_entropy is not before[0]
    after = F.cross_entropy, Tensor.argmax, Tensor.max, Tensor.__eq__, rushlight.nn.Module.__call__
    assert after == before
    assert "load_state_dict" not in vars(rushlight.nn.Module)


def test_a_module_with_an_argument_named_module():
    class Net(rushlight.nn.Module):
        def forward(self, module):
            return module + 1

    with rushlight.teach(quiet=True):
        assert Net()(module=1) == 2


def test_teach_false_stops_and_prints_the_summary(capsys):
    assert rushlight.teach() is not None
    assert rushlight.teach(False) is None
    assert capsys.readouterr() == ("", "rushlight teach: 0 hints\n")
    rushlight.teach(False)
    assert capsys.readouterr() == ("", "")


def test_an_error_in_a_check_leaves_the_program_alone(capsys, monkeypatch):
    from rushlight.teaching.losses import SoftmaxBeforeCrossEntropy

    monkeypatch.setattr(SoftmaxBeforeCrossEntropy, "on_loss", lambda *args: 1 / 0)
    with rushlight.teach():
        rushlight.nn.functional.cross_entropy(rushlight.ones(1, 2), rushlight.tensor([0]))
    assert "softmax-before-cross-entropy is off after ZeroDivisionError" in capsys.readouterr().err


def test_a_hint_is_given_once_for_each_place():
    F, target = rushlight.nn.functional, rushlight.tensor([0])
    scores = rushlight.ones(1, 2, requires_grad=True)
    with rushlight.teach(quiet=True) as teaching:
        for _ in range(3):
            F.cross_entropy(scores.softmax(1), target)
        F.cross_entropy(scores.softmax(1), target)
    assert len(teaching.hints) == 2


def test_the_page_is_written_from_the_checks():
    from rushlight.teaching.page import text

    assert (ROOT / "docs" / "use" / "teach.md").read_text(encoding="utf-8") == text()
