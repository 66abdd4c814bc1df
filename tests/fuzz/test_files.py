"""Hostile files: those that once did harm, and a short run of the fuzzer (tests/fuzz/files.py)."""

from __future__ import annotations

import io
import pickle
import struct
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import rushlight
from rushlight.serialization import archive, load_npz, save_npz
from rushlight.utils.data import read_idx

sys.path.insert(0, str(Path(__file__).parent))

import files

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are those of Linux")


@LINUX
def test_random_files():
    """No crash, no other error, no more than 500 MB or 5 s, no silent difference."""
    counts, faults = files.fuzz(0, 20261124, files=120)
    assert sum(counts.values()) == 120
    assert faults == {}


@pytest.mark.exhaustive
@LINUX
def test_more_random_files():
    assert files.fuzz(0, 1, files=2000)[1] == {}


TWICE = b")" + b"2\x86" * 70  # the tuple t = (t, t), 70 times
STORAGE = b"(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\x000X\3\0\0\0cpu%btQ"
REBUILD = b"ctorch._utils\n_rebuild_tensor_v2\n(%b%b%b\x89}tR"


def tensor(storage, sizes, strides):
    return REBUILD % (storage, sizes, strides)


@LINUX
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\x95" + struct.pack("<Q", 2**60) + b"N", "declared"),
        (b"\x8e" + struct.pack("<Q", 2**60), "declared"),
        (b"X" + struct.pack("<I", 2**31), "declared"),
        (b"}" + TWICE + b"Ns", "dict key is a tuple"),
        (b"}(" + TWICE + b"Nu", "dict key is a tuple"),
        (b"(" + TWICE + b"Nd", "dict key is a tuple"),
        (b"(" + TWICE + b"\x91", "dict key is a tuple"),
        (b"\x8f(" + TWICE + b"\x90", "dict key is a tuple"),
        (b"cbuiltins\nset\n](" + TWICE + b"e\x85R", "dict key is a tuple"),
        (b"ccollections\nOrderedDict\n](" + TWICE + b"N\x86e\x85R", "dict key is a tuple"),
        (b"ccollections\nCounter\n](" + TWICE + b"e\x85R", "dict key is a tuple"),
        (b"}" + b")" + b"\x85" * 10**5 + b"Ns", "dict key is a tuple"),  # deep: a stack overflow
        (b"}\x8a\x10" + b"\1" * 16 + b"Ns", "dict key is an int"),
        (b"ctorch.serialization\n_get_layout\n" + TWICE + b"\x85R", "layout"),
        (STORAGE[:-8] + TWICE + b"K\1tQ", "damaged"),
        (STORAGE % b"J\xff\xff\xff\xff", "0 or more elements"),
        (tensor(STORAGE % b"K\4", b"K\3K\2\x85", b"J\xff\xff\xff\xff\x85"), "0 or more"),
        (tensor(STORAGE % b"K\4", b"K\0K\2\x85", b"K\1K\1\x86"), "strides"),
        (b"]q\0(" + b"K\1" * 1000 + b"e0" + b"cbuiltins\nset\nh\0\x85R0" * 5000, "copies"),
        (tensor(STORAGE % b"K\4", b"K\0K\2\x85", b"K\1\x85") + b"(K\0K\1u", "puts items into a Tensor"),
        (b"cbuiltins\nset\n" + tensor(STORAGE % b"K\4", b"K\0K\2\x85", b"K\1\x85") + b"\x85R", "of a Tensor"),
    ],
)
def test_pickles_that_mean_harm(content, words):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as z:
        z.writestr("a/data.pkl", b"\x80\4" + content + b".")
        z.writestr("a/data/0", np.arange(4, dtype=np.float32).tobytes())
    file.seek(0)
    with files.limited(), pytest.raises(pickle.UnpicklingError, match=words):
        rushlight.load(file)


def test_a_conjugate_takes_no_more_memory_than_its_storage():
    """An expanded tensor of 2**40 elements on one; torch conjugates it when it is read."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as z:
        many = pickle.dumps((2**40,), 2)[2:-1]
        storage = (STORAGE % b"K\1").replace(b"Float", b"ComplexFloat")
        flag = b"}X\4\0\0\0conj\x88s"
        z.writestr(
            "a/data.pkl",
            b"\x80\2ctorch._utils\n_rebuild_tensor_v2\n(" + storage + b"K\0" + many + b"K\0\x85\x89}" + flag + b"tR.",
        )
        z.writestr("a/data/0", np.array([1 + 2j], np.complex64).tobytes())
    file.seek(0)
    x = rushlight.load(file)
    assert (x.shape, x[5].item()) == ((2**40,), 1 - 2j)


def test_sparse_tensors_in_files_before_1_6():
    """Their memory follows their pickle."""
    file = io.BytesIO()
    x = rushlight.eye(3).to_sparse()
    rushlight.save({"x": x, "y": rushlight.ones(2)}, file, _use_new_zipfile_serialization=False)
    file.seek(0)
    found = rushlight.load(file)
    assert found["x"].to_dense().equal(x.to_dense())
    assert found["y"].tolist() == [1, 1]


def zipped(records, method=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as z:
        for name, content in records:
            z.writestr(name, content)
    return file


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


@LINUX
@pytest.mark.parametrize(
    ("file", "words"),
    [
        (zipped([("x.npy", npy(np.ones(3)).replace(b"(3,)", b"(2,)"))]), "in 24 bytes"),
        (zipped([("x.npy", npy(np.ones(3)).replace(b"(3,), }" + b" " * 12, b"(1099511627776,), }"))]), "damaged"),
        (zipped([("x.npy", npy(np.ones(1))), ("x", npy(np.zeros(1)))]), "twice"),
        (zipped([("x.npy", npy(np.zeros(2**26)))], zipfile.ZIP_DEFLATED), "would unpack"),
        (zipped([("x.npy", npy(np.array([None], object)))]), "damaged"),
    ],
)
def test_npz_files_that_mean_harm(tmp_path, file, words):
    path = tmp_path / "x.npz"
    path.write_bytes(file.getvalue())
    with files.limited(), pytest.raises(archive.Damaged, match=words):
        load_npz(path)


def test_a_table_of_contents_without_a_record(tmp_path):
    """The end of a zip says how many records there are, and where the first one is."""
    save_npz({"a": rushlight.ones(2), "b": rushlight.ones(2)}, path := tmp_path / "x.npz")
    data = bytearray(path.read_bytes())
    end = data.rindex(b"PK\5\6")
    data[end + 8 : end + 16] = bytes(8)  # no records, in a table of no bytes
    path.write_bytes(data)
    with pytest.raises(archive.Damaged, match="leaves out records"):
        load_npz(path)


@LINUX
def test_a_small_file_that_unpacks_to_much():
    import gzip

    many = b"\0\0\x08\1" + struct.pack(">I", 2**28) + bytes(2**28)
    with files.limited(), pytest.raises(ValueError, match="would unpack"):
        read_idx(io.BytesIO(gzip.compress(many, 1)))
    pickle_bomb = zipped([("a/data.pkl", b"\x8f" * 2**25)], zipfile.ZIP_DEFLATED)
    pickle_bomb.seek(0)
    with files.limited(), pytest.raises(archive.Damaged, match="would unpack"):
        rushlight.load(pickle_bomb)


def test_a_header_that_names_a_tensor_twice(tmp_path):
    pytest.importorskip("safetensors")
    path = tmp_path / "x.safetensors"
    entry = b'"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}'
    header = b"{" + entry + b"," + entry + b"}"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(8))
    with pytest.raises(archive.Damaged, match="'a' twice"):
        rushlight.load(path)
