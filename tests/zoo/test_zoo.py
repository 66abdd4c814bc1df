"""The lists, the page and the comparison of the zoo; its programs need packages, and run by `make zoo`."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from tests.zoo import child, run
from tests.zoo.programs import data

RECORDED = json.loads(run.RESULTS.read_text())


def test_each_model_has_a_program_a_package_and_results():
    programs = {path.stem for path in run.PROGRAMS.glob("*.py")} - {"data", "__init__"}
    assert programs == set(run.MODELS) == set(RECORDED)
    packages = {line.partition("==")[0] for line in (run.HERE / "models.txt").read_text().splitlines()}
    assert packages == {model.package for model in run.MODELS.values()}


def test_the_page_shows_the_results_and_the_programs():
    assert run.PAGE.read_text() == run.page(RECORDED)


def test_at_least_ten_models_agree():
    assert sum(found.get("difference", 1) <= run.CLOSE for found in RECORDED.values()) >= 10


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ([[1.0, 2.0]], [[1.0, 2.0]], 0),
        ([[0.5, 200.0]], [[0.25, 202.0]], 0.25),
        ([[100.0]], [[200.0]], 0.5),
        ([[1.0], [2.0, 3.0]], [[1.0], [2.0, 4.0]], 0.25),
        ([[1.0, np.nan]], [[1.0, 2.0]], np.inf),
        ([[1.0]], [[1.0, 1.0]], np.inf),
        ([[1.0]], [[1.0], [1.0]], np.inf),
        ([], [], np.inf),
    ],
)
def test_difference(ours, theirs, expected):
    assert run.difference([np.array(a) for a in ours], [np.array(b) for b in theirs]) == expected


def test_the_smaller_measurements_of_two_runs_count():
    first, second, failed = (
        {"run": 1.0, "load": 5.0, "text": "a"},
        {"run": 2.0, "load": 4.0, "text": "a"},
        {"error": "e"},
    )
    assert run.better(None, first) == first
    assert run.better(first, second) == {"run": 1.0, "load": 4.0, "text": "a"}
    assert run.better(first, failed) == run.better(failed, first) == failed


def test_a_program_that_fails_has_an_error(monkeypatch, tmp_path):
    (tmp_path / "broken.py").write_text("raise ValueError('no weights')")
    monkeypatch.setattr(run, "PROGRAMS", tmp_path)
    found = run.ran(sys.executable, "rushlight", "broken", tmp_path / "results.npz")
    assert found == {"error": "ValueError: no weights"}
    monkeypatch.setitem(run.MODELS, "broken", run.Model("Broken", "broken", (), "ONNX", "MIT"))
    assert run.row("broken", {"rushlight": found, "reference": found})[1:] == [
        "reference: ValueError: no weights", "rushlight: ValueError: no weights",
    ]  # fmt: skip


def test_a_program_is_measured_and_its_arrays_are_kept(monkeypatch, tmp_path):
    (tmp_path / "small.py").write_text(
        "import torch\ndef main():\n    print('made')\n    return torch.ones(2), [torch.zeros(3)]"
    )
    monkeypatch.setattr(run, "PROGRAMS", tmp_path)
    found = run.ran(sys.executable, "rushlight", "small", tmp_path / "results.npz")
    assert found["text"] == "made\n"
    assert 0 < found["run"] <= found["first"]
    assert found["memory"] > 10
    assert found["load"] > 0
    with np.load(tmp_path / "results.npz") as file:
        assert [file[name].tolist() for name in file.files] == [[1, 1], [0, 0, 0]]


def test_nms_keeps_the_boxes_of_rushlight():
    torch = pytest.importorskip("torch")
    import rushlight
    from rushlight.vision.ops import nms

    rng = np.random.default_rng(0)
    low, scores = rng.uniform(0, 10, (40, 2)), rng.uniform(0, 1, 40)
    boxes = np.concatenate([low, low + rng.uniform(1, 5, (40, 2))], 1)
    for most in (0.1, 0.5, 0.9):
        kept = child.nms(torch.as_tensor(boxes), torch.as_tensor(scores), most)
        assert kept.tolist() == nms(rushlight.as_tensor(boxes), rushlight.as_tensor(scores), most).tolist()


def test_inputs_that_need_no_package():
    tone = data.note(440, 0.5)
    assert tone.shape == (8000,)
    assert tone.dtype == np.float32
    assert np.abs(np.fft.rfft(tone)).argmax() == 220  # of bins of 2 Hz
    assert (data.silence(0.1) == data.silence(0.1)).all()
    atoms = data.helix(10)
    assert atoms.shape == (10, 4, 3)
    bonds = [np.linalg.norm(atoms[:, k] - atoms[:, k + 1], axis=1) for k in range(3)]
    bonds += [np.linalg.norm(atoms[1:, 0] - atoms[:-1, 2], axis=1)]  # C to the next N
    assert [abs(bond - length).max() < 0.15 for bond, length in zip(bonds, (1.46, 1.52, 1.23, 1.33))] == [True] * 4
    with pytest.raises(ModuleNotFoundError, match="pip install no_such_package"):
        data.folder_of("no_such_package")
