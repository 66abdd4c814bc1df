"""Tensors of files as arrays and back, beside the onnx package where it is installed; data beside the model."""

from __future__ import annotations

import os

import numpy as np
import pytest

from rushlight.onnx.messages import GraphProto, SparseTensorProto, StringStringEntryProto, TensorProto, read, written
from rushlight.onnx.tensors import (
    CODES,
    ELEMENTS,
    array_of,
    code_of,
    dense_of,
    external_bytes,
    move_data,
    numpy_type,
    tensor_of,
)
from rushlight.serialization.archive import Damaged

SHAPES = [(3, 5), (), (0, 4), (7,)]


def sample(code, shape):
    """Numbers that each type can hold."""
    name = ELEMENTS[code].name
    if name == "object":
        return np.array(["a", "bé", "", "x", "y", "z"], object).reshape(2, 3)
    rng = np.random.default_rng(0)
    return rng.integers(0, 2 if name in ("int2", "bool") else 4, shape).astype(numpy_type(code))


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and (a.tolist() == b.tolist() or a.tobytes() == b.tobytes())


@pytest.mark.parametrize("code", ELEMENTS, ids=lambda code: ELEMENTS[code].name)
def test_there_and_back(code):
    for shape in SHAPES:
        array = sample(code, shape)
        tensor = tensor_of(array, "x")
        assert same(array_of(read(written(tensor), TensorProto)), array)
        assert code_of(array.dtype) == code


@pytest.mark.parametrize("code", ELEMENTS, ids=lambda code: ELEMENTS[code].name)
def test_as_the_onnx_package(code):
    onnx = pytest.importorskip("onnx")
    for shape in SHAPES:
        array = sample(code, shape)
        theirs = onnx.TensorProto()
        theirs.ParseFromString(written(tensor_of(array)))
        assert same(onnx.numpy_helper.to_array(theirs), array)
        raw = onnx.numpy_helper.from_array(array).SerializeToString()
        assert same(array_of(read(raw, TensorProto)), array)
        if code != CODES["object"]:
            typed = onnx.helper.make_tensor("x", code, array.shape, list(array.reshape(-1))).SerializeToString()
            assert same(array_of(read(typed, TensorProto)), array)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"dims": [2**50], "raw_data": b"abcd"}, "has 4 bytes instead of"),
        ({"dims": [2**40, 2**40], "raw_data": b"abcd"}, "no array has"),
        ({"dims": [0, 2**62, 2**62], "raw_data": b""}, "no array has"),
        ({"dims": [-1], "raw_data": b"abcd"}, "no array has"),
        ({"dims": [1] * 100, "raw_data": b"abcd"}, "no array has"),
        ({"dims": [2], "float_data": np.float32([1])}, "has 1 numbers in float_data"),
        ({"dims": [2**50]}, "has 0 numbers in float_data"),
        ({"dims": [2**50], "data_type": 8}, "has 0 strings"),
        ({"dims": [1], "data_type": 8, "string_data": [b"\xff"]}, "not UTF-8"),
        ({"dims": [3], "data_type": 22, "raw_data": b"a"}, "has 1 bytes instead of 2"),
        ({"dims": [1], "data_type": 99, "raw_data": b"a"}, "99 is not a type"),
    ],
)
def test_tensors_that_mean_harm(fields, words):
    with pytest.raises(Damaged, match=words):
        array_of(TensorProto(**{"data_type": 1, "name": "x", **fields}))


def external(**about):
    entries = [StringStringEntryProto(key=key, value=str(value)) for key, value in about.items()]
    return TensorProto(name="w", data_type=1, dims=[2], data_location=1, external_data=entries)


def test_data_beside_the_model(tmp_path):
    big, small = np.arange(1000, dtype=np.float32), np.float32([1, 2])
    graph = GraphProto(initializer=[tensor_of(big, "big"), tensor_of(small, "small"), tensor_of(big * 2, "more")])
    move_data(graph, tmp_path / "weights.data")
    graph = read(written(graph), GraphProto)
    assert [t.data_location for t in graph.initializer] == [1, 0, 1]
    found = [array_of(t, str(tmp_path)) for t in graph.initializer]
    assert same(found[0], big)
    assert same(found[1], small)
    assert same(found[2], big * 2)


def test_external_paths_stay_in_the_folder(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    secret = tmp_path / "secret"
    secret.write_bytes(b"12345678")
    (folder / "data").write_bytes(b"12345678")
    (folder / "link").symlink_to(secret)
    (folder / "up").symlink_to(tmp_path)
    if hasattr(os, "mkfifo"):  # a browser has no pipes
        os.mkfifo(folder / "pipe")
    assert array_of(external(location="data"), str(folder)).shape == (2,)
    for location in (
        "../secret",
        str(secret),
        "link",
        "up/secret",
        "pipe",
        "",
        ".",
        "a\0b",
        "..\\secret",
        "C:\\secret",
        "none",
    ):
        with pytest.raises(Damaged, match="external data"):
            array_of(external(location=location), str(folder))
    with pytest.raises(Damaged, match="load the model from its path"):
        array_of(external(location="data"))
    for about in ({"offset": 4}, {"length": 2**60}, {"offset": -4}, {"offset": "x"}, {"length": 4}):
        with pytest.raises(Damaged, match="tensor 'w'"):
            array_of(external(location="data", **about), str(folder))
    assert len(external_bytes(external(location="data", offset=4, length=4), str(folder))) == 4


def test_sparse_tensors():
    values = tensor_of(np.float32([5, 7]), "s")
    flat = SparseTensorProto(values=values, indices=tensor_of(np.int64([1, 5])), dims=[2, 3])
    pairs = SparseTensorProto(values=values, indices=tensor_of(np.int64([[0, 1], [1, 2]])), dims=[2, 3])
    for sparse in (flat, pairs):
        assert dense_of(sparse).tolist() == [[0, 5, 0], [0, 0, 7]]
    for indices in ([1, 6], [-1, 2], [[0, 1], [2, 0]], [1]):
        with pytest.raises(Damaged, match="indices"):
            dense_of(SparseTensorProto(values=values, indices=tensor_of(np.int64(indices)), dims=[2, 3]))
    with pytest.raises(Damaged, match="too many"):
        dense_of(SparseTensorProto(values=values, indices=tensor_of(np.int64([1, 5])), dims=[2**50]))
