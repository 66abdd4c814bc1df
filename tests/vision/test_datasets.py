"""Data sets of photographs, read from small files of their formats."""

from __future__ import annotations

import gzip
import hashlib
import zipfile

import numpy as np
import pytest

import rushlight
from rushlight.vision import datasets, transforms
from rushlight.vision.datasets import utils


def numbers(*shape):
    return (np.arange(np.prod(shape)) % 253).astype(np.uint8).reshape(shape)


# -- house numbers: MATLAB files, X (32, 32, 3, N) and y (N, 1), in which 10 means 0 ---------------


class SmallSVHN(datasets.SVHN):
    pass


@pytest.fixture
def svhn(tmp_path, monkeypatch):
    from scipy.io import savemat

    pixels = numbers(32, 32, 3, 4)
    savemat(tmp_path / "test_32x32.mat", {"X": pixels, "y": np.array([[1], [10], [9], [10]], np.uint8)})
    whole = hashlib.md5((tmp_path / "test_32x32.mat").read_bytes()).hexdigest()
    monkeypatch.setattr(SmallSVHN, "split_list", {**datasets.SVHN.split_list, "test": whole})
    return tmp_path, pixels


def test_svhn(svhn):
    folder, pixels = svhn
    data = SmallSVHN(folder, split="test", transform=transforms.ToTensor(), target_transform=lambda y: y + 100)
    assert (len(data), data.data.shape, data.labels.tolist()) == (4, (4, 3, 32, 32), [1, 0, 9, 0])
    image, label = data[2]
    assert label == 109
    assert np.array_equal(data.data[2], pixels[..., 2].transpose(2, 0, 1))
    assert np.allclose(image.numpy() * 255, pixels[..., 2].transpose(2, 0, 1))
    assert repr(data).splitlines()[:4] == [
        "Dataset SmallSVHN",
        "    Number of datapoints: 4",
        f"    Root location: {folder}",
        "    Split: test",
    ]


def test_svhn_is_checked(svhn):
    folder, _ = svhn
    with pytest.raises(ValueError, match="Unknown value 'valid' for argument split"):
        SmallSVHN(folder, split="valid")
    with pytest.raises(RuntimeError, match="(?s)not found or corrupted.*train_32x32.mat"):
        SmallSVHN(folder)
    with open(folder / "test_32x32.mat", "ab") as file:
        file.write(b"changed")
    with pytest.raises(RuntimeError, match="not found or corrupted"):
        SmallSVHN(folder, split="test")


# -- STL-10: bytes (N, 3, columns, rows) and labels from 1 -----------------------------------------


@pytest.fixture
def stl(tmp_path):
    folder = tmp_path / "stl10_binary"
    folder.mkdir()
    pixels = {
        name: numbers(n, 3, 96, 96) + i for i, (name, n) in enumerate((("train", 3), ("test", 2), ("unlabeled", 1)))
    }
    for name, content in pixels.items():
        content.tofile(folder / f"{name}_X.bin")
    np.array([1, 10, 4], np.uint8).tofile(folder / "train_y.bin")
    np.array([2, 3], np.uint8).tofile(folder / "test_y.bin")
    (folder / "class_names.txt").write_text("airplane\nbird\n")
    (folder / "fold_indices.txt").write_text("0 1 \n2 0 \n")
    return tmp_path, pixels


def test_stl10(stl):
    folder, pixels = stl
    train, test = datasets.STL10(folder), datasets.STL10(folder, "test", transform=transforms.ToTensor())
    assert (train.data.shape, train.labels.tolist(), train.classes) == ((3, 3, 96, 96), [0, 9, 3], ["airplane", "bird"])
    assert np.array_equal(train.data[1], pixels["train"][1].transpose(0, 2, 1))
    image, label = test[1]
    assert (image.shape, label) == ((3, 96, 96), 2)
    assert np.asarray(train[2][0])[5, 7].tolist() == pixels["train"][2][:, 7, 5].tolist()
    assert repr(test).splitlines()[3] == "    Split: test"


def test_parts_and_folds_of_stl10(stl):
    folder, pixels = stl
    both = datasets.STL10(folder, "train+unlabeled")
    assert both.labels.tolist() == [0, 9, 3, -1]
    assert np.array_equal(both.data[3], pixels["unlabeled"][0].transpose(0, 2, 1))
    assert datasets.STL10(folder, "unlabeled")[0][1] == -1
    fold = datasets.STL10(folder, folds=1)
    assert fold.labels.tolist() == [3, 0]
    assert np.array_equal(fold.data[0], pixels["train"][2].transpose(0, 2, 1))
    with pytest.raises(ValueError, match="Unknown value 'valid'"):
        datasets.STL10(folder, "valid")
    (folder / "stl10_binary" / "test_y.bin").unlink()
    with pytest.raises(RuntimeError, match="(?s)not found or corrupted.*test_y.bin"):
        datasets.STL10(folder, "test")


# -- CelebA: pictures and lists of texts -----------------------------------------------------------


@pytest.fixture
def celeba(tmp_path):
    image = pytest.importorskip("PIL.Image")
    folder = tmp_path / "celeba"
    (folder / "img_align_celeba").mkdir(parents=True)
    for i in range(1, 5):
        image.fromarray(np.full((218, 178, 3), 40 * i, np.uint8)).save(folder / "img_align_celeba" / f"00000{i}.jpg")
    (folder / "list_eval_partition.txt").write_text("000001.jpg 0\n000002.jpg 1\n000003.jpg 0\n000004.jpg 2\n")
    rows = ["-1  1 -1", " 1  1 -1", " 1 -1  1", "-1 -1 -1"]
    named = [f"00000{i + 1}.jpg {row}\n" for i, row in enumerate(rows)]
    (folder / "list_attr_celeba.txt").write_text("4\nBald Smiling Young \n" + "".join(named))
    (folder / "identity_CelebA.txt").write_text("".join(f"00000{i}.jpg {100 + i}\n" for i in range(1, 5)))
    (folder / "list_bbox_celeba.txt").write_text(
        "4\nimage_id x_1 y_1 width height\n" + "".join(f"00000{i}.jpg    {i}  72 221 31{i}\n" for i in range(1, 5))
    )
    return tmp_path


def test_celeba(celeba):
    data = datasets.CelebA(celeba, transform=transforms.ToTensor())
    assert (len(data), data.filename, data.attr_names) == (
        2,
        ["000001.jpg", "000003.jpg"],
        ["Bald", "Smiling", "Young"],
    )
    image, attributes = data[1]
    assert image.shape == (3, 218, 178)
    assert float(image.mean()) == pytest.approx(120 / 255, abs=0.01)
    assert (attributes.tolist(), attributes.dtype) == ([1, 0, 1], rushlight.int64)
    assert data.attr.tolist() == [[0, 1, 0], [1, 0, 1]]
    assert repr(data).splitlines()[3:5] == ["    Target type: ['attr']", "    Split: train"]


def test_targets_of_celeba(celeba):
    several = datasets.CelebA(
        celeba, "all", ["identity", "bbox"], target_transform=lambda t: (t[0].item(), t[1].tolist())
    )
    assert [several[i][1] for i in range(4)] == [(100 + i, [i, 72, 221, 310 + i]) for i in range(1, 5)]
    assert datasets.CelebA(celeba, "valid", "identity")[0][1].shape == ()
    assert datasets.CelebA(celeba, "test", [])[0][1] is None
    with pytest.raises(ValueError, match="Unknown value 'none' for argument split"):
        datasets.CelebA(celeba, "none")
    with pytest.raises(ValueError, match='Target type "age" is not recognized'):
        datasets.CelebA(celeba, target_type="age")
    with pytest.raises(RuntimeError, match="target_type is empty"):
        datasets.CelebA(celeba, target_type=[], target_transform=str)
    with pytest.raises(RuntimeError, match="(?s)not found or corrupted.*landmarks"):
        datasets.CelebA(celeba, target_type="landmarks")


# -- Kuzushiji: MNIST's files in a folder of their own ---------------------------------------------


def test_kmnist(tmp_path):
    raw = tmp_path / "KMNIST" / "raw"
    raw.mkdir(parents=True)
    pixels = numbers(2, 28, 28)
    head = np.array([0x803, 2, 28, 28], ">u4").tobytes()
    (raw / "t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(head + pixels.tobytes()))
    (raw / "t10k-labels-idx1-ubyte").write_bytes(np.array([0x801, 2], ">u4").tobytes() + bytes([3, 9]))
    data = datasets.KMNIST(tmp_path, train=False, transform=transforms.ToTensor())
    with pytest.warns(UserWarning, match="test_labels has been renamed targets"):
        assert data.test_labels is data.targets
    assert (len(data), data[0][1], data[1][1], data.classes[data[1][1]]) == (2, 3, 9, "wo")
    assert np.array_equal(data.data.numpy(), pixels)
    with pytest.raises(RuntimeError, match="(?s)Dataset not found.*train-images-idx3-ubyte"):
        datasets.KMNIST(tmp_path)


# -- files -----------------------------------------------------------------------------------------


def test_sums_of_files(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    known = "900150983cd24fb0d6963f7d28e17f72"  # of "abc", RFC 1321
    assert utils.calculate_md5(tmp_path / "a") == known
    assert utils.check_md5(str(tmp_path / "a"), known)
    assert not utils.check_md5(tmp_path / "a", "0" * 32)
    assert utils.check_integrity(tmp_path / "a")
    assert utils.check_integrity(tmp_path / "a", known)
    assert not utils.check_integrity(tmp_path / "b")
    utils.download_url("http://127.0.0.1:1/a", tmp_path, md5=known)  # it is there: nobody is asked


def test_archives(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("inside/text", "hello")
    (tmp_path / "b.bin.gz").write_bytes(gzip.compress(b"packed"))
    assert utils.extract_archive(str(tmp_path / "a.zip"), str(tmp_path / "out")) == str(tmp_path / "out")
    assert (tmp_path / "out" / "inside" / "text").read_text() == "hello"
    assert utils.extract_archive(tmp_path / "b.bin.gz", remove_finished=True) == str(tmp_path / "b.bin")
    assert (tmp_path / "b.bin").read_bytes() == b"packed"
    assert not (tmp_path / "b.bin.gz").exists()
    utils.download_and_extract_archive("http://127.0.0.1:1/a.zip", tmp_path, tmp_path / "more")
    assert utils.list_dir(tmp_path / "more") == ["inside"]
    assert utils.list_dir(tmp_path / "more", prefix=True) == [str(tmp_path / "more" / "inside")]
    assert utils.list_files(tmp_path / "more" / "inside", "xt") == ["text"]
    assert utils.list_files(tmp_path / "more" / "inside", ".bin") == []
