"""SummaryWriter: what TensorBoard itself reads in the files."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest

import rushlight
from rushlight.utils.tensorboard import SummaryWriter

accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")


def read(folder):
    found = accumulator.EventAccumulator(str(folder), size_guidance={"tensors": 0, "histograms": 0, "images": 0})
    found.Reload()
    return found


def test_scalars(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        for step in range(3):
            writer.add_scalar("loss", rushlight.tensor(1.0 / (step + 1)), step)
        writer.add_scalar("half", rushlight.tensor(0.5, dtype=rushlight.bfloat16), 0, walltime=7.0)
        writer.add_scalars("pair", {"a": 1, "b": np.float32(2)}, rushlight.tensor(4))
        assert writer.get_logdir() == str(tmp_path)
    found = read(tmp_path)
    assert [(e.step, e.value) for e in found.Scalars("loss")] == [(0, 1.0), (1, 0.5), (2, pytest.approx(1 / 3))]
    assert (found.Scalars("half")[0].value, found.Scalars("half")[0].wall_time) == (0.5, 7.0)
    assert [(e.step, e.value) for e in read(tmp_path / "pair_b").Scalars("pair")] == [(4, 2.0)]
    with pytest.raises(ValueError, match="scalar should be 0D"):
        writer.add_scalar("loss", rushlight.ones(2))


def test_histograms_texts_and_pictures(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    x = rushlight.tensor([0.0, 1.0, 1.0, -2.0, 50.0])
    picture = rushlight.arange(24.0).reshape(3, 2, 4) / 24
    with SummaryWriter(tmp_path) as writer:
        writer.add_histogram("weights", x, 1)
        writer.add_histogram("few", x, 1, bins=4)
        writer.add_text("note", "**bold**", 2)
        writer.add_image("picture", picture, 3)
        writer.add_image("grey", np.eye(5, dtype=np.uint8) * 200, dataformats="HW")
        writer.add_images("many", rushlight.ones(3, 1, 2, 2))
    found = read(tmp_path)
    h = found.Histograms("weights")[0].histogram_value
    assert (h.min, h.max, h.num, h.sum, h.sum_squares, sum(h.bucket)) == (-2, 50, 5, 50, 2506, 5)
    assert len(h.bucket) == len(h.bucket_limit)
    assert [limit for limit, count in zip(h.bucket_limit, h.bucket) if count == 2] == [pytest.approx(1.0, rel=0.11)]
    assert sum(found.Histograms("few")[0].histogram_value.bucket) == 5
    assert found.Tensors("note/text_summary")[0].tensor_proto.string_val == [b"**bold**"]
    event = found.Images("picture")[0]
    assert (event.step, event.width, event.height) == (3, 4, 2)
    pixels = np.asarray(Image.open(io.BytesIO(event.encoded_image_string)))
    assert pixels.tolist() == (picture.numpy().transpose(1, 2, 0) * 255).astype(np.uint8).tolist()
    assert (found.Images("many")[0].width, found.Images("many")[0].height) == (4, 4)
    with pytest.raises(ValueError, match="histogram is empty"):
        writer.add_histogram("none", rushlight.ones(0))
    with pytest.raises(ValueError, match="input_format: CHW"):
        writer.add_image("flat", rushlight.ones(2, 2))


def test_the_same_histogram_as_torchs(torch, tmp_path):
    module = pytest.importorskip("torch.utils.tensorboard")
    values = np.random.RandomState(0).randn(1000)
    with SummaryWriter(tmp_path / "ours") as ours, module.SummaryWriter(tmp_path / "theirs") as theirs:
        for writer in (ours, theirs):
            writer.add_histogram("x", values, bins="tensorflow")
            writer.add_histogram("few", values, bins=10)
            writer.add_histogram("most", values, max_bins=50)
    a, b = read(tmp_path / "ours"), read(tmp_path / "theirs")
    for tag in ("x", "few"):
        mine, other = (found.Histograms(tag)[0].histogram_value for found in (a, b))
        assert list(mine.bucket) == list(other.bucket)
        np.testing.assert_allclose(mine.bucket_limit, other.bucket_limit)
        assert mine.sum_squares == pytest.approx(other.sum_squares)


def test_the_same_curves_points_and_sounds_as_torchs(torch, tmp_path):
    module = pytest.importorskip("torch.utils.tensorboard")
    draw = np.random.RandomState(0)
    labels, scores, weights, points = draw.randint(0, 2, 50), draw.rand(50), draw.rand(50), draw.randn(5, 3)
    with SummaryWriter(tmp_path / "ours") as ours, module.SummaryWriter(tmp_path / "theirs") as theirs:
        for writer, library in ((ours, rushlight), (theirs, torch)):
            writer.add_pr_curve("curve", labels, scores, 3)
            writer.add_pr_curve("few", labels, scores, num_thresholds=20, weights=weights)
            writer.add_audio("sound", np.linspace(-1, 1, 100), 1, 8000)
            writer.add_embedding(points, list("abcde"), library.eye(4).expand(5, 3, 4, 4), 2)
            writer.add_embedding(points, [["a", 1]] * 5, tag="x/y", metadata_header=["letter", "number"])
    a, b = read(tmp_path / "ours"), read(tmp_path / "theirs")
    for tag in ("curve", "few"):
        mine, other = (found.Tensors(tag)[0].tensor_proto for found in (a, b))
        assert mine.tensor_shape == other.tensor_shape
        from tensorboard.util.tensor_util import make_ndarray

        np.testing.assert_allclose(make_ndarray(mine), make_ndarray(other), rtol=1e-5)
        assert a.SummaryMetadata(tag) == b.SummaryMetadata(tag)
    mine, other = (found.Audio("sound")[0] for found in (a, b))
    assert mine.encoded_audio_string == other.encoded_audio_string
    assert (mine.step, mine.sample_rate, mine.length_frames) == (other.step, other.sample_rate, other.length_frames)
    files = {
        str(path.relative_to(tmp_path / "theirs")): path.read_bytes()
        for path in (tmp_path / "theirs").rglob("*")
        if path.suffix in (".tsv", ".png", ".pbtxt")
    }
    assert len(files) == 6
    assert files == {name: (tmp_path / "ours" / name).read_bytes() for name in files}


def test_points_and_labels_go_in_pairs(tmp_path):
    with SummaryWriter(tmp_path) as writer, pytest.raises(ValueError, match="#labels should equal with #data points"):
        writer.add_embedding(rushlight.ones(3, 2), metadata=["a"])


def test_settings_of_runs(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_hparams({"lr": 0.1, "batch": 3, "name": "x", "on": True}, {"accuracy": 0.9}, run_name="one")
    found = read(tmp_path / "one")
    assert found.Scalars("accuracy")[0].value == pytest.approx(0.9)
    assert found.PluginTagToContent("hparams").keys() == {"_hparams_/session_start_info", "_hparams_/session_end_info"}


def test_what_is_missing(monkeypatch, tmp_path):
    with pytest.warns(UserWarning, match="add_graph writes nothing"):
        SummaryWriter(tmp_path).add_graph(None)
    with pytest.raises(NotImplementedError, match="SummaryWriter.add_mesh is not supported"):
        SummaryWriter(tmp_path).add_mesh("x")
    for name in [n for n in sys.modules if n.split(".")[0] == "tensorboard"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(ImportError, match="pip install tensorboard"):
        SummaryWriter(tmp_path)
