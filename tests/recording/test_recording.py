"""A replay gives the same losses to the bit, also after the process was killed."""

import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rushlight
from rushlight import nn
from tests.recording.training import main
from tests.support.paths import ROOT


def run(*args):
    """{step: loss} that the program prints in a process of its own, and the exit status."""
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("training.py"), *map(str, args)],
        env={"PYTHONPATH": str(ROOT), "PATH": "", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode in (0, -9), done.stderr
    return dict(line.split() for line in done.stdout.splitlines()), done.returncode


@pytest.mark.exhaustive
def test_replays_from_three_points_with_workers_dropout_and_the_compiler(tmp_path):
    whole, _ = run("record", tmp_path / "whole")
    assert list(whole) == [str(step) for step in range(200)]
    killed, status = run("record", tmp_path / "killed", 163)
    assert (status, killed) == (-9, {s: loss for s, loss in whole.items() if int(s) < 163})
    for folder, step in (("whole", 17), ("whole", 80), ("killed", 137)):
        again, _ = run("replay", tmp_path / folder, step)
        assert again == {s: loss for s, loss in whole.items() if int(s) >= step}
    resumed, _ = run("resume", tmp_path / "killed")
    assert resumed == {s: loss for s, loss in whole.items() if int(s) >= 160}


@pytest.mark.parametrize("workers", [0, 1])
def test_replay_in_the_same_process(tmp_path, workers):
    def losses(action, *step):
        return dict(main(action, tmp_path, *step, workers=workers, compiled=False))

    whole = losses("record")
    for step in (0, 40, 57, 187):
        assert losses("replay", step) == {s: x for s, x in whole.items() if s >= step}


def small(**settings):
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
    return model, rushlight.optim.Adam(model.parameters(), **settings)


def test_without_body_the_loop_makes_the_steps_from_the_checkpoint(tmp_path):
    data, model = [rushlight.ones(1, 2)] * 7, small()[0]
    recording = rushlight.record(tmp_path, data, every=3, epochs=2, model=model)
    assert [step for step, _ in recording] == [*range(14)]
    steps = rushlight.replay(tmp_path, data, step=8, model=model)
    assert (steps.step, steps.epoch) == (6, 0)
    assert [step for step, _ in steps] == [*range(6, 14)]  # the epoch of step 8 ends
    assert [s for s, _ in rushlight.replay(tmp_path, data, model=model)] == [12, 13]


def test_accumulated_gradients_and_modes_come_back(tmp_path):
    model, optimizer = small()
    for step, x in rushlight.record(tmp_path, [rushlight.ones(1, 2)] * 4, every=2, model=model, optimizer=optimizer):
        model(x).sum().backward()
        if step == 0:
            model[1].eval()
        if step == 1:
            known = model[0].weight.grad.clone()
    model, optimizer = small()
    steps = rushlight.replay(tmp_path, [rushlight.ones(1, 2)] * 4, step=2, model=model, optimizer=optimizer)
    next(steps)
    assert model[0].weight.grad.equal(known)
    assert (model[0].training, model[1].training) == (True, False)


def test_generators_of_the_loader(tmp_path):
    data = rushlight.utils.data.TensorDataset(rushlight.arange(20))

    def order(action, **settings):
        generator = rushlight.Generator().manual_seed(5 if action is rushlight.record else 6)
        loader = rushlight.utils.data.DataLoader(data, 3, shuffle=True, generator=generator)
        return [batch[0].tolist() for _, batch in action(tmp_path, loader, epochs=3, **settings)]

    whole = order(rushlight.record, every=5)
    assert order(rushlight.replay, step=11) == whole[10:]
    assert len(whole) == 21


def test_a_step_of_a_later_epoch_than_that_of_the_checkpoint(tmp_path):
    model, _ = small()
    data = [rushlight.ones(1, 2) * i for i in range(5)]
    steps = [*rushlight.record(tmp_path, data, every=100, epochs=4, model=model)]
    replayed = rushlight.replay(tmp_path, data, step=12, body=lambda x: None, model=model)
    assert [step for step, _ in replayed] == [12, 13, 14]  # to the end of the epoch of step 12
    replayed = rushlight.replay(tmp_path, data, step=10, model=model)
    assert [step for step, _ in replayed] == list(range(15))
    assert len(steps) == 20


def test_files_hold_no_classes_of_the_program(tmp_path):
    model, optimizer = small()
    for _ in rushlight.record(tmp_path, [0], model=model, optimizer=optimizer):
        pass
    content = rushlight.load(tmp_path / "step-000000000.pt", weights_only=True)
    assert sorted(content["objects"]) == ["model", "optimizer"]


def test_errors(tmp_path):
    model, optimizer = small()
    with pytest.raises(ValueError, match="no checkpoint in .*\n.*\n  hint: write them by"):
        rushlight.replay(tmp_path, [0], model=model)
    with pytest.raises(TypeError, match="data, of type list, has no state_dict"):
        rushlight.record(tmp_path, [0], data=[1])
    with pytest.raises(ValueError, match="every=0 is below 1"):
        rushlight.record(tmp_path, [0], every=0)
    assert len([*rushlight.record(tmp_path, [0, 1, 2], every=2, model=model)]) == 3
    with pytest.raises(ValueError, match="has a recording up to step 2\n.*\n.*resume=True"):
        rushlight.record(tmp_path, [0], model=model)
    before = model[0].weight.clone()
    with pytest.raises(ValueError, match="the recording has model, but model, optimizer were"):
        rushlight.replay(tmp_path, [0], model=small()[0], optimizer=optimizer)
    assert model[0].weight.equal(before)
    with pytest.raises(ValueError, match="the loader ends at step 3, before 9"):
        rushlight.replay(tmp_path, [0, 1, 2], step=9, body=lambda x: None, model=model)


def test_a_killed_write_leaves_no_checkpoint(tmp_path, monkeypatch):
    def fail(*args):
        raise OSError(28, "disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        next(rushlight.record(tmp_path, [0], model=small()[0]))
    assert list(tmp_path.iterdir()) == []


def test_persistent_workers_are_told(tmp_path):
    data = rushlight.utils.data.TensorDataset(rushlight.arange(4))
    loader = rushlight.utils.data.DataLoader(data, num_workers=1, persistent_workers=True)
    assert len([*rushlight.record(tmp_path, loader)]) == 4
    with pytest.warns(UserWarning, match="persistent workers"):
        rushlight.replay(tmp_path, loader)


def test_the_guide_prints_what_it_shows():
    text = (ROOT / "docs" / "use" / "replay.md").read_text(encoding="utf-8")
    names = {"__name__": "example"}
    pairs = re.findall(r"```python\n((?:(?!```).)*)```\n+```text\n(.*?)```", text, re.DOTALL)
    assert len(pairs) == 3
    for code, shown in pairs:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, "replay.md", "exec"), names)
        assert out.getvalue() == shown


def test_recording_changes_no_number(tmp_path):
    def losses(record):
        rushlight.manual_seed(0)
        model, optimizer = small()
        data = rushlight.utils.data.TensorDataset(rushlight.randn(30, 2))
        loader = rushlight.utils.data.DataLoader(data, batch_size=4, shuffle=True)
        settings = {"every": 3, "model": model, "optimizer": optimizer}
        steps = rushlight.record(tmp_path, loader, **settings) if record else enumerate(loader)
        for _, (x,) in steps:
            optimizer.zero_grad()
            loss = model(x).square().sum()
            loss.backward()
            optimizer.step()
            yield loss.item()

    assert list(losses(True)) == list(losses(False))
