"""The examples run: on a few made-up digits, names and letters; and what they say of files that are missing or
damaged."""

import functools
import gzip
import struct

import numpy as np
import pytest

from tests.support.paths import EXAMPLES


def write(folder, name, count, packed=False):
    """A pair of IDX files: in the image of digit d, the d-th pair of rows is bright."""
    labels = np.arange(count) % 10
    images = np.zeros((count, 28, 28), np.uint8)
    for image, label in zip(images, labels):
        image[2 * label + 4 : 2 * label + 6] = 255
    parts = {
        f"{name}-images-idx3-ubyte": struct.pack(">IIII", 2051, count, 28, 28) + images.tobytes(),
        f"{name}-labels-idx1-ubyte": struct.pack(">II", 2049, count) + labels.astype(np.uint8).tobytes(),
    }
    for file, raw in parts.items():
        (folder / (file + ".gz" if packed else file)).write_bytes(gzip.compress(raw) if packed else raw)


@pytest.fixture
def mnist(run_example):
    return functools.partial(run_example, "mnist.py")


def test_both_pairs(mnist, tmp_path):
    write(tmp_path, "train", 80)
    write(tmp_path, "t10k", 20, packed=True)
    settings = ("--epochs", 4, "--batch", 10, "--lr", 0.003, "--save", tmp_path / "w.pt")
    status, out, _ = mnist("--data", tmp_path, *settings)
    assert status == 0
    assert "80 images to learn from, 20 held out" in out
    assert "epoch 4  accuracy 100.00%" in out
    assert (tmp_path / "w.pt").stat().st_size > 80_000


def test_one_pair_is_split(mnist, tmp_path):
    write(tmp_path, "t10k", 60)
    status, out, _ = mnist("--data", tmp_path, "--epochs", 1)
    assert status == 0
    assert "48 images to learn from, 12 held out" in out


def refusal(answer):
    status, out, errors = answer
    assert (status, out) == (2, "")
    assert "Traceback" not in errors
    return errors


def test_no_files(mnist, tmp_path):
    assert "no MNIST" in refusal(mnist("--data", tmp_path))


def test_labels_missing(mnist, tmp_path):
    write(tmp_path, "train", 20)
    (tmp_path / "train-labels-idx1-ubyte").unlink()
    assert "train-labels-idx1-ubyte is missing" in refusal(mnist("--data", tmp_path))


def test_truncated(mnist, tmp_path):
    write(tmp_path, "train", 20)
    path = tmp_path / "train-images-idx3-ubyte"
    path.write_bytes(path.read_bytes()[:-100])
    assert f"{path}: the file is truncated" in refusal(mnist("--data", tmp_path))


def test_files_of_different_sets(mnist, tmp_path):
    write(tmp_path, "train", 20)
    labels = (tmp_path / "train-labels-idx1-ubyte").read_bytes()
    write(tmp_path, "train", 30)
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(labels)
    assert "do not belong together" in refusal(mnist("--data", tmp_path))


# -- names and letters -----------------------------------------------------------------------------

TEXT = "the quick brown fox jumps over the lazy dog.\n" * 300


def loss(out):
    return float(out.split("not seen: ")[1].split()[0])


def test_names(run_example, tmp_path):
    names = [a + b + c for a in ("an", "be", "ka") for b in ("na", "li", "ro", "mi") for c in ("", "n", "s", "ta")]
    (tmp_path / "names.txt").write_text("\n".join(names * 5))
    status, out, _ = run_example(
        "names.py", "--data", tmp_path, "--epochs", 8, "--batch", 32, "--width", 20, "--names", 3
    )
    assert status == 0
    assert loss(out) < 1.5  # any of 14 letters: 2.6
    assert len(out.split("not seen: ")[1].splitlines()) == 4


def test_gpt(run_example, tmp_path):
    (tmp_path / "tinyshakespeare.txt").write_text(TEXT)
    status, out, _ = run_example("gpt.py", "--data", tmp_path, "--steps", 12, "--batch", 8, "--letters", 20)
    assert status == 0
    assert loss(out) < 3.1  # any of 29 letters: 3.4
    assert len(out.split("not seen: ")[1].split("\n", 1)[1]) == 21


def test_char_lstm(run_example, tmp_path):
    (tmp_path / "text").write_text(TEXT)
    status, out, _ = run_example(
        "char_lstm.py", "--data", tmp_path / "text", "--batch", 8, "--width", 32, "--letters", 20
    )
    assert status == 0
    assert loss(out) < 2.0
    assert len(out.split("not seen: ")[1].split("\n", 1)[1]) == 21


def test_per_sample_gradients(run_example):
    status, out, _ = run_example("per_sample_gradients.py", "--steps", 60, "--batch", 32)
    assert status == 0
    assert float(out.split("at most ")[1].split(" apart")[0]) < 1e-5
    assert float(out.rsplit("% of 1000", 1)[0].split()[-1]) > 80


def test_ensembling(run_example):
    status, out, _ = run_example("ensembling.py", "--models", 4, "--steps", 150)
    assert status == 0
    assert float(out.split("at most ")[1].split(" apart")[0]) < 1e-5
    assert float(out.split("steps: ")[1].split()[0]) < 0.05


@pytest.mark.parametrize("example", ["names.py", "gpt.py", "char_lstm.py", "mnist.py"])
def test_bad_input_is_one_line(run_example, tmp_path, example):
    for arguments in (("--data", tmp_path / "none"), ("--data", tmp_path), ("--data", tmp_path, "--epochs", 0)):
        assert refusal(run_example(example, *arguments)).startswith(f"{example}: ")
    for name in ("names.txt", "tinyshakespeare.txt"):
        (tmp_path / name).write_text("too few")
    assert refusal(run_example(example, "--data", tmp_path)).startswith(f"{example}: ")


def test_each_is_short():
    assert all(len(path.read_text().splitlines()) < 165 for path in EXAMPLES.glob("*.py"))
