"""The examples run: MNIST on a few made-up digits, and what it says of files that are missing or damaged."""

import gzip
import runpy
import struct
import sys
from pathlib import Path

import numpy as np
import pytest

MNIST = Path(__file__).parent.parent / "examples" / "mnist.py"


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
def mnist(monkeypatch, capsys):
    """mnist(*arguments) -> exit status, standard output, standard error."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["mnist.py", *map(str, arguments)])
        with pytest.raises(SystemExit) as leaving:
            runpy.run_path(str(MNIST), run_name="__main__")
        return leaving.value.code, *capsys.readouterr()

    return call


def test_both_pairs(mnist, tmp_path):
    write(tmp_path, "train", 80)
    write(tmp_path, "t10k", 20, packed=True)
    settings = ("--epochs", 4, "--batch", 10, "--lr", 0.003, "--save", tmp_path / "w.pt")
    status, out, _ = mnist("--data", tmp_path, *settings)
    assert status == 0
    assert "80 images to learn from, 20 held out" in out
    assert out.rstrip().endswith("accuracy 100.00%")
    assert (tmp_path / "w.pt").stat().st_size > 80_000


def test_one_pair_is_split(mnist, tmp_path):
    write(tmp_path, "t10k", 60)
    status, out, _ = mnist("--data", tmp_path, "--epochs", 1)
    assert status == 0
    assert "48 images to learn from, 12 held out" in out


def refusal(answer):
    status, out, errors = answer
    assert (status, out, errors.count("\n")) == (2, "", 1)
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
    assert "do not go together" in refusal(mnist("--data", tmp_path))
