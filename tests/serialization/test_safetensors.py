"""safetensors and .npz files: the package's own bytes, dtypes, and what is refused."""

from __future__ import annotations

import json
import struct
import sys
import zipfile

import numpy as np
import pytest

import rushlight
from rushlight.base import dtypes
from rushlight.serialization import archive, load_file, load_npz, safetensors, save_file, save_npz

COMMON = [d.name for d in dtypes.DTYPES if d.name != "complex128"]


def every_dtype():
    six = rushlight.tensor([0, 1, 1, 0, 1, 0])
    return {name: six.to(getattr(rushlight, name)).reshape(2, 3) for name in COMMON}


def same(found, expected):
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert found[name].dtype is tensor.dtype
        assert found[name].shape == tensor.shape
        assert found[name].tolist() == tensor.tolist()


def test_round_trip(tmp_path):
    path = tmp_path / "a.safetensors"
    content = {**every_dtype(), "": rushlight.tensor(3.5), "empty": rushlight.zeros(0, 3), "of é": rushlight.ones(1)}
    save_file(content, path, {"made by": "test"})
    same(load_file(path), content)
    same(rushlight.load(path), content)
    same(safetensors.load(path.read_bytes()), content)
    same(safetensors.load(safetensors.save(content)), content)
    assert safetensors.metadata(path) == {"made by": "test"}
    loaded = load_file(path)["float32"]
    loaded.fill_(7)
    assert load_file(path)["float32"].tolist() == [[0, 1, 1], [0, 1, 0]]


def test_save_by_the_name(tmp_path):
    weights = rushlight.nn.Linear(3, 2).state_dict()
    rushlight.save(weights, tmp_path / "a.safetensors")
    same(rushlight.load(tmp_path / "a.safetensors"), weights)
    with pytest.raises(ValueError, match=r"Key `epoch` is invalid(.|\n)*use a .pt file for other objects"):
        rushlight.save({**weights, "epoch": 3}, tmp_path / "a.safetensors")
    same(rushlight.load(tmp_path / "a.safetensors"), weights)
    assert [p.name for p in tmp_path.iterdir()] == ["a.safetensors"]


def test_both_directions_with_torch(torch, tmp_path):
    st = pytest.importorskip("safetensors.torch")
    path = tmp_path / "a.safetensors"
    save_file(every_dtype(), path)
    theirs = st.load_file(path)
    assert {k: (str(v.dtype), v.tolist()) for k, v in theirs.items()} == {
        k: (str(v.dtype), v.tolist()) for k, v in every_dtype().items()
    }
    st.save_file(theirs, path)
    same(load_file(path), every_dtype())


@pytest.mark.parametrize(
    ("error", "words", "make"),
    [
        (ValueError, "non contiguous tensor: `a`", lambda: {"a": rushlight.ones(2, 3).T}),
        (RuntimeError, "share memory", lambda: dict.fromkeys("ab", rushlight.ones(2))),
        (RuntimeError, "share memory", lambda: dict(zip("ab", rushlight.ones(2, 2).unbind()))),
        (ValueError, "Expected a dict", lambda: [rushlight.ones(2)]),
        (ValueError, "Key `a` is invalid", lambda: {"a": {"b": rushlight.ones(2)}}),
        (RuntimeError, "complex128", lambda: {"a": rushlight.ones(2, dtype=rushlight.complex128)}),
    ],
)
def test_what_the_format_cannot_say(tmp_path, error, words, make):
    with pytest.raises(error, match=words):
        save_file(make(), tmp_path / "a.safetensors")
    assert list(tmp_path.iterdir()) == []


def header(**tensors):
    text = json.dumps(tensors).encode()
    return struct.pack("<Q", len(text)) + text


def told(dtype="F32", shape=(2,), offsets=(0, 8)):
    return header(a={"dtype": dtype, "shape": shape, "data_offsets": offsets}) + b"\0" * 8


@pytest.mark.parametrize(
    "content",
    [
        struct.pack("<Q", 2**63) + b"{}",
        struct.pack("<Q", 10**9) + b"{" + b" " * 100,
        told(offsets=(0, 2**40)),
        told(shape=(2**40,)),
        told(shape=(2**40, 2**40)),
        told(offsets=(8, 0)),
        told(offsets=(4, 12)),
        told(dtype="F99"),
        told(shape=(3,)),
        told()[:-1],
        struct.pack("<Q", 8) + b"{not it}",
        told() + b"more",
        header(
            a={"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
            b={"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
        )
        + b"\0" * 8,
    ],
)
def test_damaged_and_hostile_files(tmp_path, content):
    path = tmp_path / "a.safetensors"
    path.write_bytes(content)
    with pytest.raises(archive.Damaged, match="a.safetensors is damaged"):
        rushlight.load(path)


def test_missing_file_and_package(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError):
        load_file(tmp_path / "a.safetensors")
    monkeypatch.setitem(sys.modules, "safetensors", None)
    monkeypatch.setitem(sys.modules, "safetensors.numpy", None)
    with pytest.raises(ImportError, match="pip install safetensors"):
        save_file({}, tmp_path / "a.safetensors")


# -- .npz ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compressed", [False, True])
def test_npz(tmp_path, compressed):
    content = {k: v for k, v in every_dtype().items() if k != "bfloat16"} | {"file": rushlight.tensor(3.5)}
    content["layer.weight"] = rushlight.ones(3, 2).T
    save_npz(content, tmp_path / "a.npz", compressed)
    same(load_npz(tmp_path / "a.npz"), content)
    with np.load(tmp_path / "a.npz") as arrays:
        assert arrays["float32"].tolist() == [[0, 1, 1], [0, 1, 0]]
    np.savez(tmp_path / "b.npz", x=np.arange(3))
    assert load_npz(tmp_path / "b.npz")["x"].tolist() == [0, 1, 2]


def test_npz_refusals(tmp_path):
    path = tmp_path / "a.npz"
    with pytest.raises(TypeError, match=r"NumPy has no torch.bfloat16"):
        save_npz({"a": rushlight.ones(1, dtype=rushlight.bfloat16)}, path)
    assert list(tmp_path.iterdir()) == []
    np.savez(path, a=np.array([{}], object))
    for content in (path.read_bytes(), b"", b"PK\x03\x04", b"hello"):
        path.write_bytes(content)
        with pytest.raises(RuntimeError, match="damaged"):
            load_npz(path)
    with zipfile.ZipFile(path, "w") as z, z.open("a.npy", "w") as record:
        np.lib.format.write_array_header_1_0(record, {"descr": "<f8", "fortran_order": False, "shape": (2**40,)})
    with pytest.raises(RuntimeError, match="damaged"):
        load_npz(path)
    with pytest.raises(FileNotFoundError):
        load_npz(tmp_path / "none.npz")
